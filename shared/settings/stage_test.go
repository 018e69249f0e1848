package settings_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"parley/shared/carrier"
	"parley/shared/config"
	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/dynamo/dynamotest"
	"parley/shared/emulator"
	"parley/shared/httpapi"
	"parley/shared/settings"
	"parley/shared/webhook"
)

// logged is what all tests together wrote, and secrets what must not be in it.
var (
	logged  journal
	secrets sync.Map
)

type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.NewJSONHandler(&logged, nil)))
	status := m.Run()
	secrets.Range(func(secret, _ any) bool {
		if strings.Contains(logged.text.String(), secret.(string)) {
			fmt.Println("FAIL: the log has a secret in it")
			status = 1
		}
		return true
	})
	os.Exit(status)
}

// All tests share one stage; each has workspaces of its own.
var shared struct {
	sync.Once
	config.Config
}

// desk is the settings with what they stand on.
type desk struct {
	settings.Settings
	stage    config.Config
	aws      aws.Config
	queueURL string
	serve    func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	cfg := emulator.Config(t)
	shared.Do(func() {
		shared.Config = dynamotest.Stage(t, cfg)
		key, err := kms.NewFromConfig(cfg).CreateKey(t.Context(), &kms.CreateKeyInput{})
		if err != nil {
			t.Fatal(err)
		}
		shared.WebhookKey = aws.ToString(key.KeyMetadata.Arn)
	})
	stage := shared.Config
	queue, err := sqs.NewFromConfig(cfg).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("test-" + conversation.NewID())})
	if err != nil {
		t.Fatal(err)
	}
	stage.DeliveryQueueURL = aws.ToString(queue.QueueUrl)
	d := &desk{Settings: settings.New(cfg, stage, scale), stage: stage, aws: cfg, queueURL: stage.DeliveryQueueURL}
	d.open()
	return d
}

func scale(seconds int) time.Duration { return time.Duration(seconds) * time.Second }

// open serves the settings as they are now.
func (d *desk) open() {
	d.serve = httpapi.Lambda(httpapi.Handler(httpapi.Service{BaseURL: d.stage.BaseURL}, d.Routes()...))
}

// simulated puts a function that answers in place of the simulator's, and tells what it was asked.
func (d *desk) simulated(t *testing.T, answer carrier.SimulatorAnswer) *carrier.SimulatorRequest {
	t.Helper()
	asked := new(carrier.SimulatorRequest)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(asked); err != nil {
			t.Error(err)
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	d.Simulator = carrier.NewSimulator(aws.Config{
		Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}, "simulate-carrier", nil)
	d.open()
	return asked
}

// user is somebody who has signed in to a workspace of their own.
type user struct {
	d      *desk
	ws     conversation.WorkspaceID
	sub    string
	claims map[string]string
}

func (d *desk) newUser(t *testing.T) user {
	t.Helper()
	ws := conversation.WorkspaceID(conversation.NewID())
	definition := dynamo.Definition{Workspace: conversation.Workspace{WorkspaceID: ws, Name: "Test", Carrier: carrier.SimulatorName}}
	if err := d.Store.Define(t.Context(), dynamo.Definition{}, definition, "0"); err != nil {
		t.Fatal(err)
	}
	sub := conversation.NewID()
	return user{d, ws, sub, map[string]string{"sub": sub, "token_use": "id", "custom:workspace_id": string(ws), "email": "ada@example.com"}}
}

type answered struct {
	status int
	header map[string]string
	body   string
}

// ask sends a request as the gateway hands it over.
func (u user) ask(t *testing.T, method, target string, body any) answered {
	t.Helper()
	path, query, _ := strings.Cut(target, "?")
	event := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RawPath: "/settings" + path, RawQueryString: query, Headers: map[string]string{"content-type": "application/json"},
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			RequestID: conversation.NewID(), DomainName: "api.example.com",
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{Method: method, Path: "/settings" + path},
		},
	}
	if u.claims != nil {
		event.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
			JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: u.claims},
		}
	}
	switch body := body.(type) {
	case nil:
	case string:
		event.Body = body
	default:
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		event.Body = string(text)
	}
	answer, err := u.d.serve(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Headers["X-Request-Id"] != event.RequestContext.RequestID {
		t.Errorf("%s %s: no X-Request-Id", method, target)
	}
	return answered{answer.StatusCode, answer.Headers, answer.Body}
}

// The sample event invokes the function that it is for.
func TestSampleEvent(t *testing.T) {
	text, err := os.ReadFile("../../events/settings.json")
	if err != nil {
		t.Fatal(err)
	}
	var event events.APIGatewayV2HTTPRequest
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&event); err != nil {
		t.Fatal(err)
	}
	answer, err := newDesk(t).serve(t.Context(), event)
	if err != nil || answer.StatusCode != http.StatusOK || answer.Headers["X-Request-Id"] != event.RequestContext.RequestID {
		t.Errorf("%+v, %v; want success", answer, err)
	}
}

// want checks the status, and decodes the body.
func want[T any](t *testing.T, got answered, status int) T {
	t.Helper()
	var value T
	if got.status != status {
		t.Fatalf("status %d, want %d: %.600s", got.status, status, got.body)
	}
	if status == http.StatusNoContent {
		return value
	}
	decoder := json.NewDecoder(strings.NewReader(got.body))
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%v: %.400s", err, got.body)
	}
	return value
}

// remember keeps a secret that must not be in the log.
func remember(secret string) string {
	secrets.Store(secret, true)
	return secret
}

// Bodies as a client decodes them.
type (
	anything  = map[string]any
	oneAPIKey struct {
		APIKey settings.APIKey `json:"api_key"`
		Secret string
	}
	apiKeyList struct {
		httpapi.Paging
		APIKeys []settings.APIKey `json:"api_keys"`
	}
	oneEndpoint struct {
		WebhookEndpoint settings.WebhookEndpoint `json:"webhook_endpoint"`
		Secret          string
	}
	endpointList struct {
		httpapi.Paging
		WebhookEndpoints []settings.WebhookEndpoint `json:"webhook_endpoints"`
	}
	oneDelivery  struct{ Delivery settings.Delivery }
	deliveryList struct {
		httpapi.Paging
		Deliveries []settings.Delivery
	}
	auditList struct {
		httpapi.Paging
		Audit []settings.AuditEntry
	}
)

func (u user) createKey(t *testing.T, label string) oneAPIKey {
	t.Helper()
	created := want[oneAPIKey](t, u.ask(t, "POST", "/api-keys", anything{"label": label}), http.StatusCreated)
	_, secret, ok := conversation.ParseAPIKey(created.Secret)
	if !ok {
		t.Errorf("%q is no API key", created.Secret)
	}
	remember(secret)
	return created
}

func (u user) createEndpoint(t *testing.T, more anything) oneEndpoint {
	t.Helper()
	body := anything{"url": "https://example.com/hooks", "events": []string{"call.completed"}}
	for name, value := range more {
		body[name] = value
	}
	created := want[oneEndpoint](t, u.ask(t, "POST", "/webhook-endpoints", body), http.StatusCreated)
	remember(created.Secret)
	return created
}

// audit is the whole trail of the workspace, newest first.
func (u user) audit(t *testing.T) []settings.AuditEntry {
	t.Helper()
	return want[auditList](t, u.ask(t, "GET", "/audit?limit=100", nil), http.StatusOK).Audit
}

// sent takes a message from the queue of deliveries; false if there is none.
func (d *desk) sent(t *testing.T) (webhook.Message, bool) {
	t.Helper()
	client := sqs.NewFromConfig(d.aws)
	out, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &d.queueURL, MaxNumberOfMessages: 1})
	if err != nil {
		t.Fatal(err)
	}
	var m webhook.Message
	if len(out.Messages) == 0 {
		return m, false
	}
	if err := json.Unmarshal([]byte(aws.ToString(out.Messages[0].Body)), &m); err != nil {
		t.Fatal(err)
	}
	if _, err := client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &d.queueURL, ReceiptHandle: out.Messages[0].ReceiptHandle}); err != nil {
		t.Fatal(err)
	}
	return m, true
}
