package dynamo

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"parley/shared/conversation"
)

const (
	kindEndpoint  = "endpoint"
	endpointsList = "endpoints"
)

// ErrTooManyEndpoints says that the workspace has as many endpoints as it may have.
var ErrTooManyEndpoints = errors.New("the workspace has as many webhook endpoints as it may have")

// StoredEndpoint is an endpoint as it was read, for the write that replaces it.
type StoredEndpoint struct {
	conversation.WebhookEndpoint
	Version int `json:"version"`
}

// All endpoints of a workspace also share an item of what publishing an event needs of
// them, as an index could show an endpoint too late: every write of an endpoint writes
// its part of that item, too. A part's attribute is named after its endpoint.
func subscriptionsID(ws conversation.WorkspaceID) string { return id(ws, "subscriptions", "all") }

const subscriptionPrefix = "endpoint_"

var endpointCount = expression.Name("endpoints")

// InsertWebhookEndpoint writes a new endpoint of a workspace that exists. Its error is
// ErrTooManyEndpoints if there is no room for it.
func (s *Store) InsertWebhookEndpoint(ctx context.Context, e conversation.WebhookEndpoint, audit ...conversation.AuditEntry) error {
	var t transaction
	t.check(s.table(Workspaces), workspaceID(e.WorkspaceID), exists,
		wrap(conversation.ErrNotFound, "get workspace %s", e.WorkspaceID))
	t.put(s.table(Workspaces), s.endpointItem(&t, StoredEndpoint{e, 1}), absent, errors.New("it exists already"))
	s.subscribe(&t, e, conversation.Subscription{}, expression.Add(endpointCount, expression.Value(1)),
		endpointCount.AttributeNotExists().Or(endpointCount.LessThan(expression.Value(conversation.MaxWebhookEndpoints))),
		ErrTooManyEndpoints)
	s.record(&t, audit)
	return wrap(t.commit(ctx, s.db), "insert webhook endpoint %s", e.EndpointID)
}

// WebhookEndpoint reads an endpoint, strongly consistent.
func (s *Store) WebhookEndpoint(ctx context.Context, ws conversation.WorkspaceID, endpoint conversation.EndpointID) (StoredEndpoint, error) {
	it, err := s.read(ctx, Workspaces, id(ws, kindEndpoint, endpoint))
	if err != nil {
		return StoredEndpoint{}, wrap(err, "get webhook endpoint %s", endpoint)
	}
	e, err := decode[StoredEndpoint](it)
	return e, wrap(err, "get webhook endpoint %s", endpoint)
}

// WebhookEndpoints lists a workspace's endpoints, newest first.
func (s *Store) WebhookEndpoints(ctx context.Context, ws conversation.WorkspaceID, p PageRequest) (Page[conversation.WebhookEndpoint], error) {
	l := listing{
		table: Workspaces, index: ByWorkspace, attribute: "workspace_list",
		partition: list(ws, endpointsList), prefix: id(ws, kindEndpoint, ""), from: first, to: last,
	}
	page, err := fetch[conversation.WebhookEndpoint](ctx, s, l, p)
	return page, wrap(err, "list webhook endpoints")
}

// ReplaceWebhookEndpoint writes an endpoint that was read before, changed. Its error is
// ErrStale if somebody else has changed or deleted it meanwhile: read it again.
func (s *Store) ReplaceWebhookEndpoint(ctx context.Context, e StoredEndpoint, audit ...conversation.AuditEntry) error {
	subscriptions, err := s.Subscriptions(ctx, e.WorkspaceID)
	if err != nil {
		return wrap(err, "change webhook endpoint %s", e.EndpointID)
	}
	var before conversation.Subscription
	if i := slices.IndexFunc(subscriptions, func(o conversation.Subscription) bool { return o.EndpointID == e.EndpointID }); i >= 0 {
		before = subscriptions[i]
	}
	var t transaction
	read := expression.Name(versionAttribute).Equal(expression.Value(e.Version))
	e.Version++
	t.put(s.table(Workspaces), s.endpointItem(&t, e), read, ErrStale)
	s.subscribe(&t, e.WebhookEndpoint, before, expression.UpdateBuilder{}, subscriptionOf(e.EndpointID).AttributeExists(), ErrStale)
	s.record(&t, audit)
	return wrap(t.commit(ctx, s.db), "change webhook endpoint %s", e.EndpointID)
}

// DeleteWebhookEndpoint removes an endpoint. What is on its way to it ends as canceled.
func (s *Store) DeleteWebhookEndpoint(ctx context.Context, ws conversation.WorkspaceID, endpoint conversation.EndpointID, audit ...conversation.AuditEntry) error {
	var t transaction
	t.delete(s.table(Workspaces), id(ws, kindEndpoint, endpoint), exists, conversation.ErrNotFound)
	t.update(s.table(Workspaces), subscriptionsID(ws),
		expression.Remove(subscriptionOf(endpoint)).Add(endpointCount, expression.Value(-1)),
		subscriptionOf(endpoint).AttributeExists(), conversation.ErrNotFound)
	s.record(&t, audit)
	return wrap(t.commit(ctx, s.db), "delete webhook endpoint %s", endpoint)
}

// Subscriptions says which endpoints of a workspace want which events, strongly consistent.
func (s *Store) Subscriptions(ctx context.Context, ws conversation.WorkspaceID) ([]conversation.Subscription, error) {
	it, err := s.read(ctx, Workspaces, subscriptionsID(ws))
	if errors.Is(err, conversation.ErrNotFound) {
		return nil, nil // it has never had an endpoint
	}
	if err != nil {
		return nil, wrap(err, "get subscriptions of %s", ws)
	}
	var all []conversation.Subscription
	for name, value := range it {
		m, isMap := value.(*types.AttributeValueMemberM)
		if !isMap || !strings.HasPrefix(name, subscriptionPrefix) {
			continue
		}
		subscription, err := decode[conversation.Subscription](m.Value)
		if err != nil {
			return nil, wrap(err, "get subscriptions of %s", ws)
		}
		all = append(all, subscription)
	}
	slices.SortFunc(all, func(a, b conversation.Subscription) int {
		return strings.Compare(string(a.EndpointID), string(b.EndpointID))
	})
	return all, nil
}

func (s *Store) endpointItem(t *transaction, e StoredEndpoint) item {
	it := t.encode(e)
	it[PartitionKey] = text(id(e.WorkspaceID, kindEndpoint, e.EndpointID))
	it["workspace_list"] = text(list(e.WorkspaceID, endpointsList))
	it["listed_at"] = text(string(e.EndpointID))
	return it
}

func subscriptionOf(endpoint conversation.EndpointID) expression.NameBuilder {
	return expression.Name(subscriptionPrefix + string(endpoint))
}

func (s *Store) subscribe(t *transaction, e conversation.WebhookEndpoint, before conversation.Subscription, change expression.UpdateBuilder, condition expression.ConditionBuilder, conflict error) {
	part := t.encode(e.Subscription(before, conversation.At(s.now())))
	change = change.Set(subscriptionOf(e.EndpointID), expression.Value(&types.AttributeValueMemberM{Value: part}))
	t.update(s.table(Workspaces), subscriptionsID(e.WorkspaceID), change, condition, conflict)
}
