// Package settings holds the operations of Settings → Developers: API keys, webhook
// endpoints, the log of deliveries, the audit trail. Who calls them has signed in; the
// workspace is the user's, never one that a request names.
package settings

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/danielgtaylor/huma/v2"

	"parley/shared/carrier"
	"parley/shared/config"
	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/httpapi"
	"parley/shared/webhook"
)

// Function serves all routes of the settings. It is its folder under functions/.
const Function = "settings"

// What the operations need beside the tables, as infra names it.
const (
	WebhookKey    = "WebhookKey" // the KMS key that seals the secrets of webhook endpoints
	DeliveryQueue = "WebhookDeliveries"
)

// What the operations ask of AWS beside the store. They are interfaces so that a function
// that only describes the operations links no clients.
type (
	// Sealer encrypts what only the function that delivers can read: webhook.Sealer.
	Sealer interface {
		Seal(ctx context.Context, e conversation.WebhookEndpoint, secret string) ([]byte, error)
	}
	// Publisher sends test events: webhook.Publisher.
	Publisher interface {
		SendTest(ctx context.Context, e conversation.WebhookEndpoint) (conversation.Delivery, error)
	}
	// Queue takes deliveries to be tried again: webhook.Queue.
	Queue interface {
		Retry(ctx context.Context, deliveries ...conversation.Delivery) error
	}
	// Simulator lets customers ring and write: carrier.Simulator.
	Simulator interface {
		Ring(ctx context.Context, call carrier.Placement, test bool) (carrierID string, err error)
		Write(ctx context.Context, t carrier.Text, mediaCount int, test bool) (carrierID string, err error)
	}
)

// Settings is what the operations stand on. The zero value describes them and answers none.
type Settings struct {
	Store     *dynamo.Store
	Sealer    Sealer
	Publisher Publisher
	Queue     Queue
	Simulator Simulator
	BaseURL   string                                    // the API's public address, without a trailing slash
	Longest   func(seconds int) (longest time.Duration) // how long a call lasts that may last so long
	Loopback  bool                                      // webhooks may go to this machine, as the local stage needs
	Now       func() time.Time
}

// New makes the settings of the stage that cfg names. longest says how long a call lasts
// there that may last so many seconds.
func New(aws aws.Config, cfg config.Config, longest func(seconds int) time.Duration) Settings {
	store := dynamo.New(aws, cfg)
	queue := webhook.NewQueue(sqs.NewFromConfig(aws), cfg.DeliveryQueueURL)
	return Settings{
		Store:     store,
		Sealer:    webhook.NewSealer(kms.NewFromConfig(aws), cfg.WebhookKey),
		Publisher: webhook.NewPublisher(webhook.PublisherOptions{Store: store, Queue: queue, BaseURL: cfg.BaseURL}),
		Queue:     queue,
		Simulator: carrier.NewSimulator(aws, cfg.SimulatorFunction, nil),
		BaseURL:   cfg.BaseURL,
		Longest:   longest,
		Loopback:  cfg.LoopbackWebhooks,
		Now:       time.Now,
	}
}

// Routes are the endpoints of the settings, with their operations.
func (s Settings) Routes() []httpapi.Route {
	return []httpapi.Route{
		s.listAPIKeysRoute(), s.createAPIKeyRoute(), s.updateAPIKeyRoute(), s.revokeAPIKeyRoute(),
		s.listEndpointsRoute(), s.createEndpointRoute(), s.getEndpointRoute(), s.updateEndpointRoute(), s.deleteEndpointRoute(), s.rotateSecretRoute(), s.testEndpointRoute(),
		s.listDeliveriesRoute(), s.getDeliveryRoute(), s.retryDeliveryRoute(), s.retryDeliveriesRoute(),
		s.listAuditRoute(),
		s.ringRoute(), s.writeRoute(),
	}
}

// Routes are the same for who wants to know of them only.
func Routes() []httpapi.Route { return Settings{}.Routes() }

// tag is the operations' own in the OpenAPI document.
var tag = []string{"Settings"}

// row is a row of the table of endpoints.
func row(method, path string, grants ...httpapi.Grant) httpapi.Route {
	return httpapi.Route{Function: Function, Method: method, Path: "/settings" + path, Auth: httpapi.ByUser, Grants: grants}
}

// What the operations may do, beside writing the audit trail. A transaction needs the
// permissions of what is in it.
var (
	listWorkspaces = []httpapi.Grant{
		{Table: dynamo.Workspaces, Index: dynamo.ByWorkspace, Actions: []string{"dynamodb:Query"}},
		{Table: dynamo.Workspaces, Actions: []string{"dynamodb:BatchGetItem"}},
	}
	getWorkspaces    = httpapi.Grant{Table: dynamo.Workspaces, Actions: []string{"dynamodb:GetItem"}}
	writeWorkspaces  = httpapi.Grant{Table: dynamo.Workspaces, Actions: []string{"dynamodb:ConditionCheckItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}}
	deleteWorkspaces = httpapi.Grant{Table: dynamo.Workspaces, Actions: []string{"dynamodb:DeleteItem"}}
	getDeliveries    = httpapi.Grant{Table: dynamo.Deliveries, Actions: []string{"dynamodb:GetItem"}}
	listDeliveries   = []httpapi.Grant{
		{Table: dynamo.Deliveries, Index: dynamo.ByWorkspace, Actions: []string{"dynamodb:Query"}},
		{Table: dynamo.Deliveries, Index: dynamo.ByEndpoint, Actions: []string{"dynamodb:Query"}},
		{Table: dynamo.Deliveries, Index: dynamo.ByFailure, Actions: []string{"dynamodb:Query"}},
		{Table: dynamo.Deliveries, Actions: []string{"dynamodb:BatchGetItem"}},
	}
	readBodies     = httpapi.Grant{Prefix: dynamo.DeliveriesPrefix, Actions: []string{"s3:GetObject"}}
	sendDeliveries = []httpapi.Grant{{Queue: DeliveryQueue, Actions: []string{"sqs:SendMessage"}}}
	askSimulator   = httpapi.Grant{Function: httpapi.SimulateCarrier, Actions: []string{"lambda:InvokeFunction"}}
	seal           = httpapi.Grant{Key: WebhookKey, Actions: []string{"kms:Encrypt"}}
)

// bodyErrors are the problems of a request with a body.
var bodyErrors = []int{http.StatusRequestEntityTooLarge}

type settingsKey struct{}

// addTo lets the resolvers of a request know the settings.
func (s Settings) addTo(ctx huma.Context, next func(huma.Context)) {
	next(huma.WithValue(ctx, settingsKey{}, s))
}

func settingsOf(ctx context.Context) Settings {
	s, _ := ctx.Value(settingsKey{}).(Settings)
	return s
}

// block is a block to choose.
type block string

func (block) Schema(huma.Registry) *huma.Schema { return oneOf(conversation.AllBlocks()) }

// event is an event to choose.
type event string

func (event) Schema(huma.Registry) *huma.Schema { return oneOf(conversation.EventNames()) }

func oneOf[S ~string](values []S) *huma.Schema {
	schema := &huma.Schema{Type: huma.TypeString}
	for _, value := range values {
		schema.Enum = append(schema.Enum, string(value))
	}
	schema.PrecomputeMessages()
	return schema
}

// blocksOf is the set of these blocks, or the usual one when none are given.
func blocksOf(chosen *[]block) conversation.Blocks {
	if chosen == nil {
		return conversation.DefaultBlocks()
	}
	names := make([]string, len(*chosen))
	for i, name := range *chosen {
		names[i] = string(name)
	}
	blocks, _ := conversation.ParseBlocks(names) // the schema knows no others
	return blocks
}
