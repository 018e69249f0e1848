package e2e

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
	"parley/shared/settings"
)

// waits are the times between the attempts of a round, a sixtieth of the spec's.
var waits = []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}

// slack is how much longer than its wait an attempt may take to arrive where two cores run
// everything at once.
const slack = 5 * time.Second

// A receiver that always fails gets six attempts at their times, and then the delivery
// shows as failed. Retried by hand, it begins a round anew, and is delivered once the
// receiver has healed.
func TestFailingReceiver(t *testing.T) {
	d := newDesk(t)
	u := newUser(t, d.ws)
	var healed atomic.Bool
	r := newReceiver(t, func(w http.ResponseWriter, _ int) {
		if !healed.Load() {
			http.Error(w, "not today", http.StatusServiceUnavailable)
		}
	})
	s := subscriber{r, u.createEndpoint(t, r.url, []conversation.EventName{failed}, nil)}
	test, busy := u.sendTest(t, s.oneEndpoint), d.place(t, "01")
	t.Parallel()
	await(t, func() error {
		if got := u.deliveries(t, ""); len(got) != 2 {
			return fmt.Errorf("after the first attempts, the log has %+v", got)
		}
		return nil
	})
	// The waits last for half a minute. A subtest gets its turn after all tests that wait
	// for theirs by now.
	t.Run("in the end", func(t *testing.T) {
		t.Parallel()
		call := u.awaitLogged(t, "event_id="+string(busy.CallID), conversation.DeliveryFailed)
		test := u.awaitLogged(t, "event_id="+test.EventID, conversation.DeliveryFailed)
		checkRound(t, s, u.delivery(t, call.ID))
		checkRound(t, s, u.delivery(t, test.ID))
		healed.Store(true)
		u.checkRetries(t, s, test, call)
	})
}

// checkRetries retries two failed deliveries, first by the time of the later one, at a
// receiver that has healed.
func (u user) checkRetries(t *testing.T, s subscriber, test, call settings.Delivery) {
	t.Helper()
	if !test.CreatedAt.Before(call.CreatedAt.Time) {
		t.Fatalf("the test was made at %v, the call's event at %v", test.CreatedAt, call.CreatedAt)
	}
	since := anything{"endpoint_id": s.EndpointID, "since": call.CreatedAt}
	all := want[deliveryList](t, u.ask(t, http.MethodPost, "/deliveries/retry", since), http.StatusAccepted)
	if len(all.Deliveries) != 1 || all.Deliveries[0].ID != call.ID || all.HasMore {
		t.Errorf("retried together: %+v, want the call's delivery alone", all)
	}
	u.checkSecondRound(t, s, call)
	if got := u.delivery(t, test.ID); got.Status != conversation.DeliveryFailed {
		t.Errorf("the delivery from before is %s, want failed", got.Status)
	}
	again := "/deliveries/" + string(test.ID) + "/retry"
	if got := want[oneDelivery](t, u.ask(t, http.MethodPost, again, nil), http.StatusAccepted).Delivery; got.ID != test.ID {
		t.Errorf("retried: %+v, want delivery %s", got, test.ID)
	}
	u.checkSecondRound(t, s, test)
	if got := want[problem](t, u.ask(t, http.MethodPost, again, nil), http.StatusConflict); got.Code != "delivery_not_retryable" {
		t.Errorf("a delivered one, retried: %+v, want delivery_not_retryable", got)
	}
	if all = want[deliveryList](t, u.ask(t, http.MethodPost, "/deliveries/retry", since), http.StatusAccepted); len(all.Deliveries) != 0 {
		t.Errorf("retried together again: %+v, want none", all)
	}
	s.await(t, 14)
}

// awaitLogged waits until the one delivery that the query asks for has the status.
func (u user) awaitLogged(t testing.TB, query string, status conversation.DeliveryStatus) settings.Delivery {
	t.Helper()
	var got []settings.Delivery
	await(t, func() error {
		if got = u.deliveries(t, query); len(got) != 1 || got[0].Status != status {
			return fmt.Errorf("deliveries?%s: %+v, want one that is %s", query, got, status)
		}
		return nil
	})
	return got[0]
}

// checkRound wants six attempts to have arrived, and to be in the log, as they should.
func checkRound(t *testing.T, s subscriber, logged settings.Delivery) {
	t.Helper()
	got := s.of(logged)
	if len(got) != 6 || len(logged.Attempts) != 6 || logged.Status != conversation.DeliveryFailed {
		t.Fatalf("%s: %d attempts arrived, want 6; the log: %+v", logged.Event, len(got), logged)
	}
	ids := map[string]bool{}
	for i, a := range got {
		ids[a.deliveryID()] = true
		if e := a.open(t, s.Secret); e.Event != logged.Event || e.EventID != logged.EventID || string(a.body) != string(logged.RequestBody) {
			t.Errorf("attempt %d: %s, want %s", i+1, a.body, logged.RequestBody)
		}
		recorded := logged.Attempts[i]
		expected := conversation.Attempt{
			ID: conversation.AttemptID(a.deliveryID()), Round: 1, Number: i + 1, At: recorded.At,
			StatusCode: http.StatusServiceUnavailable, LatencyMS: recorded.LatencyMS, ResponseBody: "not today\n",
		}
		if diff := cmp.Diff(expected, recorded); diff != "" || recorded.At.After(a.at) {
			t.Errorf("attempt %d, arrived at %v, in the log (-want +got):\n%s", i+1, a.at, diff)
		}
		if i == 0 {
			continue
		}
		if gap := a.at.Sub(got[i-1].at); gap < waits[i-1] || gap > waits[i-1]+slack {
			t.Errorf("%s: attempt %d came after %v, want %v", logged.Event, i+1, gap, waits[i-1])
		}
	}
	if len(ids) != 6 {
		t.Errorf("the ids of the attempts are %v, want six", ids)
	}
}

// checkSecondRound wants a failed delivery to arrive once more, and to be delivered.
func (u user) checkSecondRound(t *testing.T, s subscriber, before settings.Delivery) {
	t.Helper()
	after := u.awaitLogged(t, "delivery_id="+string(before.ID), conversation.DeliveryDelivered)
	if len(after.Attempts) != 7 {
		t.Fatalf("%d attempts, want a seventh: %+v", len(after.Attempts), after)
	}
	if diff := cmp.Diff(before.Attempts, after.Attempts[:6]); diff != "" {
		t.Errorf("the first round has changed (-before +after):\n%s", diff)
	}
	last := after.Attempts[6]
	if last.Round != 2 || last.Number != 1 || last.StatusCode != http.StatusOK || last.Error != "" {
		t.Errorf("the seventh is %+v, want the first of round 2, with 200", last)
	}
	got := s.of(before)
	if len(got) != 7 || got[6].deliveryID() != string(last.ID) || string(got[6].body) != string(got[0].body) {
		t.Fatalf("%d arrived, the last one %+v; want a seventh, attempt %s", len(got), got[len(got)-1], last.ID)
	}
	got[6].open(t, s.Secret)
}
