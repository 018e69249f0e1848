package settings_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
	"parley/shared/httpapi"
	"parley/shared/settings"
	"parley/shared/webhook"
)

func TestWebhookEndpointsLife(t *testing.T) {
	d := newDesk(t)
	u := d.newUser(t)
	ctx := t.Context()
	value, next := remember("letmein-"+conversation.NewID()), remember("letmein-"+conversation.NewID())
	created := u.createEndpoint(t, anything{"headers": anything{"X-Api-Key": value, "Authorization": "Basic abc"}, "events": []string{"call.completed", "call.started", "call.completed"}})
	e := created.WebhookEndpoint
	expected := settings.WebhookEndpoint{
		EndpointID: e.EndpointID, URL: "https://example.com/hooks", Events: []conversation.EventName{conversation.CallStarted, conversation.CallCompleted},
		Blocks: conversation.DefaultBlocks(), Headers: []string{"Authorization", "X-Api-Key"}, TimeoutSeconds: 10, Enabled: true, CreatedAt: e.CreatedAt,
	}
	if diff := cmp.Diff(expected, e); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}
	path := "/webhook-endpoints/" + string(e.EndpointID)

	stored, err := d.Store.WebhookEndpoint(ctx, u.ws, e.EndpointID)
	if err != nil {
		t.Fatal(err)
	}
	sealer := webhook.NewSealer(kms.NewFromConfig(d.aws), d.stage.WebhookKey)
	if secret, err := sealer.Open(ctx, stored.WebhookEndpoint, stored.SealedSecret); err != nil || secret != created.Secret {
		t.Errorf("the stored secret is %q, %v; want the one that was shown", secret, err)
	}
	if opened, err := sealer.Open(ctx, stored.WebhookEndpoint, stored.Headers[1].SealedValue); err != nil || opened != value {
		t.Errorf("the stored header is %q, %v; want what was given", opened, err)
	}

	// A value is replaced in any spelling of its name, null removes, and others stay.
	changed := want[oneEndpoint](t, u.ask(t, "PATCH", path, anything{"headers": anything{"x-api-key": next}}), http.StatusOK).WebhookEndpoint
	if !slices.Equal(changed.Headers, []string{"Authorization", "x-api-key"}) {
		t.Errorf("headers %v", changed.Headers)
	}
	want[oneEndpoint](t, u.ask(t, "PATCH", path, anything{"headers": anything{"x-api-key": next}}), http.StatusOK)
	changed = want[oneEndpoint](t, u.ask(t, "PATCH", path, anything{
		"url": "https://example.com/other", "timeout_seconds": 1, "enabled": false, "events": []string{}, "blocks": []string{}, "headers": anything{"authorization": nil},
	}), http.StatusOK).WebhookEndpoint
	expected.URL, expected.TimeoutSeconds, expected.Enabled = "https://example.com/other", 1, false
	expected.Events, expected.Blocks, expected.Headers = []conversation.EventName{}, conversation.Blocks{conversation.BlockCall}, []string{"x-api-key"}
	got := want[oneEndpoint](t, u.ask(t, "GET", path, nil), http.StatusOK).WebhookEndpoint
	if diff := cmp.Diff(expected, got); diff != "" || !cmp.Equal(got, changed) {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	if stored, err = d.Store.WebhookEndpoint(ctx, u.ws, e.EndpointID); err != nil {
		t.Fatal(err)
	}
	if opened, err := sealer.Open(ctx, stored.WebhookEndpoint, stored.Headers[0].SealedValue); err != nil || opened != next {
		t.Errorf("the stored header is %q, %v; want the new value", opened, err)
	}

	rotated := want[oneEndpoint](t, u.ask(t, "POST", path+"/secret", nil), http.StatusOK).Secret
	remember(rotated)
	if stored, err = d.Store.WebhookEndpoint(ctx, u.ws, e.EndpointID); err != nil {
		t.Fatal(err)
	}
	if secret, err := sealer.Open(ctx, stored.WebhookEndpoint, stored.SealedSecret); err != nil || secret != rotated || rotated == created.Secret {
		t.Errorf("after rotation the stored secret is %q, %v; want %q", secret, err, rotated)
	}

	list := u.ask(t, "GET", "/webhook-endpoints", nil)
	if all := want[endpointList](t, list, http.StatusOK); len(all.WebhookEndpoints) != 1 || !cmp.Equal(all.WebhookEndpoints[0], expected) {
		t.Errorf("listed %+v", all)
	}
	want[anything](t, u.ask(t, "DELETE", path, nil), http.StatusNoContent)
	want[httpapi.Problem](t, u.ask(t, "DELETE", path, nil), http.StatusNotFound)

	trail := u.ask(t, "GET", "/audit", nil)
	var actions []string
	for _, entry := range want[auditList](t, trail, http.StatusOK).Audit {
		var fields []string
		for _, change := range entry.Changes {
			fields = append(fields, change.Field)
		}
		actions = append(actions, string(entry.Action)+" "+strings.Join(fields, ","))
	}
	const all = "blocks,created_at,enabled,endpoint_id,events,headers,timeout_seconds,url"
	wanted := []string{
		"webhook_endpoint.deleted " + all, "webhook_endpoint.secret_rotated ", "webhook_endpoint.updated blocks,enabled,events,headers,timeout_seconds,url",
		"webhook_endpoint.updated headers", "webhook_endpoint.updated headers", "webhook_endpoint.created " + all,
	}
	if diff := cmp.Diff(wanted, actions); diff != "" {
		t.Errorf("trail (-want +got):\n%s", diff)
	}
	for _, secret := range []string{value, next, created.Secret, rotated, "Basic abc"} {
		for _, shown := range []string{trail.body, list.body} {
			if strings.Contains(shown, secret) {
				t.Errorf("%q is shown in %s", secret, shown)
			}
		}
	}
}

func TestTooManyWebhookEndpoints(t *testing.T) {
	u := newDesk(t).newUser(t)
	for range conversation.MaxWebhookEndpoints {
		u.createEndpoint(t, nil)
	}
	got := want[httpapi.Problem](t, u.ask(t, "POST", "/webhook-endpoints", anything{"url": "https://example.com/", "events": []string{}}), http.StatusConflict)
	if got.Code != "too_many_webhook_endpoints" {
		t.Errorf("one too many: %+v", got)
	}
}

func TestHeadersThatAddUp(t *testing.T) {
	u := newDesk(t).newUser(t)
	headers := anything{}
	for i := range conversation.MaxWebhookHeaders {
		headers[fmt.Sprintf("X-%d", i)] = "v"
	}
	path := "/webhook-endpoints/" + string(u.createEndpoint(t, anything{"headers": headers}).WebhookEndpoint.EndpointID)
	want[httpapi.Problem](t, u.ask(t, "PATCH", path, anything{"headers": anything{"Y": "v"}}), http.StatusBadRequest)
	changed := want[oneEndpoint](t, u.ask(t, "PATCH", path, anything{"headers": anything{"Y": "v", "X-0": nil}}), http.StatusOK)
	if len(changed.WebhookEndpoint.Headers) != conversation.MaxWebhookHeaders {
		t.Errorf("%d headers", len(changed.WebhookEndpoint.Headers))
	}
}

func TestTestEvent(t *testing.T) {
	d := newDesk(t)
	u := d.newUser(t)
	e := u.createEndpoint(t, nil).WebhookEndpoint
	path := "/webhook-endpoints/" + string(e.EndpointID)
	answer := want[oneDelivery](t, u.ask(t, "POST", path+"/test", nil), http.StatusAccepted).Delivery
	sent, ok := d.sent(t)
	if !ok || sent.DeliveryID != answer.ID || sent.EndpointID != e.EndpointID || sent.WorkspaceID != u.ws || sent.Event != conversation.WebhookTest ||
		answer.Event != conversation.WebhookTest || answer.Status != conversation.DeliveryPending {
		t.Errorf("sent %+v, answered %+v", sent, answer)
	}
	want[oneEndpoint](t, u.ask(t, "PATCH", path, anything{"enabled": false}), http.StatusOK)
	if got := want[httpapi.Problem](t, u.ask(t, "POST", path+"/test", nil), http.StatusConflict); got.Code != "webhook_endpoint_disabled" {
		t.Errorf("disabled: %+v", got)
	}
	if _, ok := d.sent(t); ok {
		t.Error("a test was sent to an endpoint that is disabled")
	}
}
