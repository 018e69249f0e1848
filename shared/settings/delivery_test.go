package settings_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/httpapi"
)

// insertDelivery puts a call.completed into the log, with the attempts that lead to a status.
func (d *desk) insertDelivery(t *testing.T, ws conversation.WorkspaceID, endpoint conversation.EndpointID, status conversation.DeliveryStatus) conversation.Delivery {
	t.Helper()
	callID := conversation.NewID()
	now := conversation.At(time.Now())
	stored := dynamo.StoredDelivery{Delivery: conversation.Delivery{
		ID: conversation.NewDeliveryID(endpoint, conversation.CallCompleted, callID), WorkspaceID: ws, EndpointID: endpoint,
		Event: conversation.CallCompleted, EventID: callID, Status: conversation.DeliveryPending, CreatedAt: now,
	}}
	var err error
	if stored.Body, err = d.Store.PackBody(t.Context(), ws, stored.ID, []byte(`{"event":"call.completed","n":1.0}`)); err != nil {
		t.Fatal(err)
	}
	attempts := map[conversation.DeliveryStatus]int{conversation.DeliveryPending: 1, conversation.DeliveryDelivered: 1, conversation.DeliveryFailed: 6}[status]
	for number := 1; number <= attempts; number++ {
		a := conversation.Attempt{ID: stored.ID.Attempt(1, number), Round: 1, Number: number, At: now, StatusCode: 500, LatencyMS: 12, ResponseBody: "no"}
		if status == conversation.DeliveryDelivered {
			a.StatusCode = 204
		}
		if stored, err = d.Store.RecordAttempt(t.Context(), stored, a); err != nil {
			t.Fatal(err)
		}
	}
	return stored.Delivery
}

func TestDeliveries(t *testing.T) {
	d := newDesk(t)
	u := d.newUser(t)
	e, other := u.createEndpoint(t, nil).WebhookEndpoint.EndpointID, u.createEndpoint(t, nil).WebhookEndpoint.EndpointID
	failed := d.insertDelivery(t, u.ws, e, conversation.DeliveryFailed)
	delivered := d.insertDelivery(t, u.ws, e, conversation.DeliveryDelivered)
	pending := d.insertDelivery(t, u.ws, other, conversation.DeliveryPending)
	all := []conversation.DeliveryID{failed.ID, delivered.ID, pending.ID}
	tomorrow := time.Now().Add(24 * time.Hour).Format(time.DateOnly)
	for query, wanted := range map[string][]conversation.DeliveryID{
		"":                                    all,
		"from=2026-01-01&to=" + tomorrow:      all,
		"from=" + tomorrow:                    {},
		"endpoint_id=" + string(e):            {failed.ID, delivered.ID},
		"status=failed":                       {failed.ID},
		"status=canceled":                     {},
		"event=call.started":                  {},
		"event=call.completed&status=pending": {pending.ID},
		"event_id=" + pending.EventID:         {pending.ID},
		"delivery_id=" + string(failed.ID):    {failed.ID},
		"delivery_id=" + string(failed.ID.Attempt(1, 6)):                         {failed.ID},
		"delivery_id=" + string(failed.ID.Attempt(2, 1)):                         {},
		"status=delivered&delivery_id=" + string(failed.ID):                      {},
		"delivery_id=" + string(failed.ID) + "&from=" + tomorrow:                 {},
		"delivery_id=" + url.QueryEscape("0191d1c0-0000-7000-8000-00000000000f"): {},
	} {
		var got []conversation.DeliveryID
		for _, shown := range want[deliveryList](t, u.ask(t, "GET", "/deliveries?"+query, nil), http.StatusOK).Deliveries {
			got = append(got, shown.ID)
			if shown.RequestBody != nil {
				t.Errorf("%s: the list has bodies", query)
			}
		}
		slices.Sort(got)
		slices.Sort(wanted)
		if !slices.Equal(got, wanted) {
			t.Errorf("%s: %v, want %v", query, got, wanted)
		}
	}
	got := want[oneDelivery](t, u.ask(t, "GET", "/deliveries/"+string(failed.ID), nil), http.StatusOK).Delivery
	if string(got.RequestBody) != `{"event":"call.completed","n":1.0}` || !cmp.Equal(got.Attempts, failed.Attempts) || got.Status != conversation.DeliveryFailed {
		t.Errorf("delivery %+v, want it whole", got)
	}
}

func TestRetry(t *testing.T) {
	d := newDesk(t)
	u := d.newUser(t)
	e, other := u.createEndpoint(t, nil).WebhookEndpoint.EndpointID, u.createEndpoint(t, nil).WebhookEndpoint.EndpointID
	failed := d.insertDelivery(t, u.ws, e, conversation.DeliveryFailed)
	delivered := d.insertDelivery(t, u.ws, e, conversation.DeliveryDelivered)
	d.insertDelivery(t, u.ws, other, conversation.DeliveryFailed)

	check := func(what string) {
		t.Helper()
		sent, ok := d.sent(t)
		if !ok || sent.DeliveryID != failed.ID || sent.Round != 2 || sent.EventID != failed.EventID || sent.WorkspaceID != u.ws {
			t.Errorf("%s sent %+v, want round 2 of %s", what, sent, failed.ID)
		}
		if more, ok := d.sent(t); ok {
			t.Errorf("%s sent also %+v", what, more)
		}
	}
	answer := want[oneDelivery](t, u.ask(t, "POST", "/deliveries/"+string(failed.ID)+"/retry", nil), http.StatusAccepted)
	if answer.Delivery.ID != failed.ID || answer.Delivery.Status != conversation.DeliveryPending || len(answer.Delivery.Attempts) != len(failed.Attempts) {
		t.Errorf("answered %+v", answer)
	}
	check("retry")
	refused := want[httpapi.Problem](t, u.ask(t, "POST", "/deliveries/"+string(delivered.ID)+"/retry", nil), http.StatusConflict)
	if refused.Code != "delivery_not_retryable" {
		t.Errorf("delivered: %+v", refused)
	}
	since := want[deliveryList](t, u.ask(t, "POST", "/deliveries/retry", anything{"endpoint_id": e, "since": "2026-01-01"}), http.StatusAccepted)
	if len(since.Deliveries) != 1 || since.Deliveries[0].ID != failed.ID || since.Deliveries[0].Status != conversation.DeliveryPending || since.HasMore {
		t.Errorf("since: %+v", since)
	}
	check("retry since")
	none := want[deliveryList](t, u.ask(t, "POST", "/deliveries/retry", anything{"endpoint_id": e, "since": time.Now().Add(time.Hour)}), http.StatusAccepted)
	if len(none.Deliveries) != 0 {
		t.Errorf("since later: %+v", none)
	}
}

// What an endpoint doesn't want isn't retried: it would end as canceled at once.
func TestRetryUnwanted(t *testing.T) {
	d := newDesk(t)
	u := d.newUser(t)
	e := u.createEndpoint(t, nil).WebhookEndpoint.EndpointID
	failed := d.insertDelivery(t, u.ws, e, conversation.DeliveryFailed)
	refused := func(path string, body any) {
		t.Helper()
		if got := want[httpapi.Problem](t, u.ask(t, "POST", path, body), http.StatusConflict); got.Code != "endpoint_not_listening" {
			t.Errorf("%s: %+v", path, got)
		}
		if sent, ok := d.sent(t); ok {
			t.Errorf("%s sent %+v", path, sent)
		}
	}
	one, endpoint := "/deliveries/"+string(failed.ID)+"/retry", "/webhook-endpoints/"+string(e)
	want[any](t, u.ask(t, "PATCH", endpoint, anything{"events": []string{"message.sent"}}), http.StatusOK)
	refused(one, nil)
	want[any](t, u.ask(t, "PATCH", endpoint, anything{"events": []conversation.EventName{failed.Event}, "enabled": false}), http.StatusOK)
	refused(one, nil)
	refused("/deliveries/retry", anything{"endpoint_id": e, "since": "2026-01-01"})
	u.ask(t, "DELETE", endpoint, nil)
	refused(one, nil)
}

func TestRetryOfMany(t *testing.T) {
	d := newDesk(t)
	u := d.newUser(t)
	e := u.createEndpoint(t, nil).WebhookEndpoint.EndpointID
	for range 101 {
		d.insertDelivery(t, u.ws, e, conversation.DeliveryFailed)
	}
	got := want[deliveryList](t, u.ask(t, "POST", "/deliveries/retry", anything{"endpoint_id": e, "since": "2026-01-01"}), http.StatusAccepted)
	if len(got.Deliveries) != 100 || !got.HasMore {
		t.Errorf("%d deliveries, has_more %t; want 100 and more", len(got.Deliveries), got.HasMore)
	}
}
