package dynamo_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/dynamo/dynamotest"
)

// withWorkspace makes a store and a workspace in it.
func withWorkspace(t *testing.T, now time.Time) (*dynamo.Store, conversation.WorkspaceID) {
	t.Helper()
	s := clockAt(dynamotest.Store(t), now)
	ws := newWorkspace()
	if err := s.Define(t.Context(), dynamo.Definition{}, dynamo.Definition{Workspace: conversation.Workspace{WorkspaceID: ws}}, "0"); err != nil {
		t.Fatal(err)
	}
	return s, ws
}

func newEndpoint(ws conversation.WorkspaceID) conversation.WebhookEndpoint {
	return conversation.WebhookEndpoint{
		EndpointID: conversation.EndpointID(conversation.NewID()), WorkspaceID: ws, URL: "https://example.com/hooks",
		Events: []conversation.EventName{conversation.CallStarted}, Blocks: conversation.DefaultBlocks(),
		TimeoutSeconds: 10, Enabled: true, CreatedAt: conversation.At(t0), SealedSecret: []byte{0, 1, 2},
		Headers: []conversation.SealedHeader{{Name: "X-Api-Key", SealedValue: []byte("sealed")}},
	}
}

func TestWebhookEndpoint(t *testing.T) {
	s, ws := withWorkspace(t, t0)
	ctx := t.Context()
	e := newEndpoint(ws)
	if _, err := s.WebhookEndpoint(ctx, ws, e.EndpointID); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("before it is written: %v, want ErrNotFound", err)
	}
	if err := s.InsertWebhookEndpoint(ctx, e); err != nil {
		t.Fatal(err)
	}
	stored, err := s.WebhookEndpoint(ctx, ws, e.EndpointID)
	if diff := cmp.Diff(dynamo.StoredEndpoint{WebhookEndpoint: e, Version: 1}, stored); err != nil || diff != "" {
		t.Errorf("%v; endpoint (-written +read):\n%s", err, diff)
	}
	if _, err := s.WebhookEndpoint(ctx, newWorkspace(), e.EndpointID); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("of another workspace: %v, want ErrNotFound", err)
	}

	changed := stored
	changed.Events, changed.Blocks = append(changed.Events, conversation.CallCompleted), nil
	later := clockAt(s, t0.Add(time.Hour))
	if err := later.ReplaceWebhookEndpoint(ctx, changed); err != nil {
		t.Fatal(err)
	}
	if err := later.ReplaceWebhookEndpoint(ctx, stored); !errors.Is(err, dynamo.ErrStale) {
		t.Errorf("a change of what was read before another change: %v, want ErrStale", err)
	}
	subscriptions, err := s.Subscriptions(ctx, ws)
	want := []conversation.Subscription{{EndpointID: e.EndpointID, Since: map[conversation.EventName]conversation.Time{
		conversation.CallStarted: conversation.At(t0), conversation.CallCompleted: conversation.At(t0.Add(time.Hour)),
	}}}
	if diff := cmp.Diff(want, subscriptions); err != nil || diff != "" {
		t.Errorf("%v; subscriptions (-want +got):\n%s", err, diff)
	}

	if err := s.DeleteWebhookEndpoint(ctx, newWorkspace(), e.EndpointID); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("deleted by another workspace: %v, want ErrNotFound", err)
	}
	if err := s.DeleteWebhookEndpoint(ctx, ws, e.EndpointID); err != nil {
		t.Error(err)
	}
	if err := s.DeleteWebhookEndpoint(ctx, ws, e.EndpointID); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("deleted again: %v, want ErrNotFound", err)
	}
	if err := s.ReplaceWebhookEndpoint(ctx, changed); !errors.Is(err, dynamo.ErrStale) {
		t.Errorf("changed after it was deleted: %v, want ErrStale", err)
	}
	if all, err := s.Subscriptions(ctx, ws); len(all) != 0 || err != nil {
		t.Errorf("subscriptions %+v, %v; want none", all, err)
	}
}

func TestWebhookEndpointsOfAWorkspace(t *testing.T) {
	s, ws := withWorkspace(t, t0)
	ctx := t.Context()
	if err := s.InsertWebhookEndpoint(ctx, newEndpoint(newWorkspace())); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("endpoint of no workspace: %v, want ErrNotFound", err)
	}
	if all, err := s.Subscriptions(ctx, ws); all != nil || err != nil {
		t.Errorf("subscriptions before there is an endpoint: %v, %v; want none", all, err)
	}
	var want []string
	for range conversation.MaxWebhookEndpoints {
		e := newEndpoint(ws)
		if err := s.InsertWebhookEndpoint(ctx, e); err != nil {
			t.Fatal(err)
		}
		want = append(want, string(e.EndpointID))
	}
	if err := s.InsertWebhookEndpoint(ctx, newEndpoint(ws)); !errors.Is(err, dynamo.ErrTooManyEndpoints) {
		t.Errorf("one more: %v, want ErrTooManyEndpoints", err)
	}
	subscriptions, err := s.Subscriptions(ctx, ws)
	if err != nil || len(subscriptions) != len(want) {
		t.Errorf("%d subscriptions, %v; want %d", len(subscriptions), err, len(want))
	}
	for i, got := range subscriptions {
		if string(got.EndpointID) != want[i] {
			t.Errorf("subscription %d is of %s, want %s", i, got.EndpointID, want[i])
		}
	}
	slices.Reverse(want)
	got := walk(t, 7, func(p dynamo.PageRequest) (dynamo.Page[conversation.WebhookEndpoint], error) {
		return s.WebhookEndpoints(ctx, ws, p)
	}, func(e conversation.WebhookEndpoint) string { return string(e.EndpointID) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
	if err := s.DeleteWebhookEndpoint(ctx, ws, conversation.EndpointID(want[0])); err != nil {
		t.Fatal(err)
	}
	if err := s.InsertWebhookEndpoint(ctx, newEndpoint(ws)); err != nil {
		t.Errorf("one more after one is deleted: %v", err)
	}
}
