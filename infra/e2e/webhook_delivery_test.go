package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
	"parley/shared/settings"
)

// A test event is sent whatever the endpoint has selected, by the very path of every event,
// and the log finds it by all that is known of it.
func TestWebhookTest(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	u := newUser(t, n.ws)
	began := time.Now().Add(-time.Second)
	s := u.subscribe(t, nil)
	sent, second := u.sendTest(t, s.oneEndpoint), u.sendTest(t, s.oneEndpoint)
	s.await(t, 2)
	if sent.Status != conversation.DeliveryPending || len(sent.Attempts) != 0 || sent.Event != conversation.WebhookTest || sent.ID == second.ID {
		t.Errorf("sent %+v and %+v, want two that are pending", sent, second)
	}
	a := s.of(sent)[0]
	e := a.open(t, s.Secret)
	about := fmt.Sprintf(`{"endpoint_id":%q,"workspace_id":%q,"url":%q,"events":[],"blocks":["call","customer","transcript","analysis","evaluations","recording"]}`,
		s.EndpointID, n.ws, s.url)
	if e.Event != conversation.WebhookTest || e.EventID != sent.EventID || string(e.Webhook) != about || e.Call != nil {
		t.Errorf("%s, want webhook.test %s of %s", a.body, sent.EventID, about)
	}

	logged := u.awaitLogged(t, "delivery_id="+string(sent.ID), conversation.DeliveryDelivered)
	expected := sent
	expected.Status = conversation.DeliveryDelivered
	expected.Attempts = []conversation.Attempt{{
		ID: conversation.AttemptID(a.deliveryID()), Round: 1, Number: 1, At: logged.Attempts[0].At,
		StatusCode: http.StatusOK, LatencyMS: logged.Attempts[0].LatencyMS,
	}}
	if diff := cmp.Diff(expected, logged); diff != "" {
		t.Errorf("in the log (-want +got):\n%s", diff)
	}
	expected.RequestBody = json.RawMessage(a.body)
	if diff := cmp.Diff(expected, u.delivery(t, sent.ID)); diff != "" {
		t.Errorf("alone (-want +got):\n%s", diff)
	}
	u.awaitLogged(t, "delivery_id="+string(second.ID), conversation.DeliveryDelivered)
	for query, count := range map[string]int{
		"event_id=" + sent.EventID:                                       1,
		"delivery_id=" + a.deliveryID():                                  1,
		"delivery_id=" + nowhereID:                                       0,
		"endpoint_id=" + string(s.EndpointID):                            2,
		"endpoint_id=" + nowhereID:                                       0,
		"event=webhook.test&status=delivered":                            2,
		"event=call.started":                                             0,
		"status=failed":                                                  0,
		"from=" + began.UTC().Format(time.RFC3339):                       2,
		"to=" + began.UTC().Format(time.RFC3339):                         0,
		"status=delivered&event_id=" + second.EventID + "&to=2999-01-01": 1,
	} {
		if got := u.deliveries(t, query); len(got) != count {
			t.Errorf("deliveries?%s: %+v, want %d", query, got, count)
		}
	}
}

// Receivers that hang keep nobody waiting who shares the queue with them.
func TestHangingReceiver(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	u := newUser(t, n.ws)
	const hanging = 4 // fewer than are delivered at once, if each comes in a batch of its own
	release := make(chan struct{})
	r := newReceiver(t, func(http.ResponseWriter, int) {
		select {
		case <-release:
		case <-time.After(9 * time.Second):
		}
	})
	slow, healthy := u.createEndpoint(t, r.url, nil, nil), u.subscribe(t, nil)
	var held []settings.Delivery
	for range hanging {
		held = append(held, u.sendTest(t, slow))
	}
	r.await(t, hanging)
	began := time.Now()
	quick := u.sendTest(t, healthy.oneEndpoint)
	arrived := healthy.await(t, 1)[0]
	if took := arrived.at.Sub(began); took > 5*time.Second {
		t.Errorf("the healthy endpoint was told after %v", took)
	}
	u.awaitLogged(t, "delivery_id="+string(quick.ID), conversation.DeliveryDelivered)
	if got := u.deliveries(t, "endpoint_id="+string(slow.EndpointID)); len(got) > 0 {
		t.Errorf("%+v: want all to hang still", got)
	}
	close(release)
	for _, d := range held {
		u.awaitLogged(t, "delivery_id="+string(d.ID), conversation.DeliveryDelivered)
	}
}
