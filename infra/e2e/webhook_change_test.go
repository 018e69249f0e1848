package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"parley/shared/conversation"
	"parley/shared/settings"
)

// What happens between attempts counts for the next one. Each of these begins with an
// attempt that fails, and returns what there is to check when the waits are over, so that
// they all wait at once, and beside other tests.
func TestBetweenAttempts(t *testing.T) {
	n := newTenant(t)
	u := newUser(t, n.ws)
	checks := map[string]func(*testing.T){
		"healed":             u.healed(t),
		"redirected":         u.redirected(t),
		"moved":              u.moved(t),
		"secret rotated":     u.rotated(t),
		"disabled":           u.disabled(t),
		"deleted":            u.deleted(t),
		"event not selected": unselected(t),
	}
	t.Parallel()
	for name, check := range checks {
		t.Run(name, check)
	}
}

// An attempt is round, number and outcome as the log has them.
func attempts(d settings.Delivery) []string {
	texts := []string{}
	for _, a := range d.Attempts {
		texts = append(texts, fmt.Sprintf("%d.%d %d %s", a.Round, a.Number, a.StatusCode, a.Error))
	}
	return texts
}

// checkEnd waits until a delivery has ended so, after these attempts, of which so many
// have arrived; no state machine is at work on another one.
func (u user) checkEnd(t *testing.T, d settings.Delivery, r *receiver, status conversation.DeliveryStatus, arrived int, expected ...string) {
	t.Helper()
	d = u.awaitLogged(t, "event_id="+d.EventID, status)
	if got := attempts(d); !slices.Equal(got, expected) {
		t.Errorf("the log has the attempts %q, want %q", got, expected)
	}
	await(t, func() error {
		if got := executionStatus(t, retriesOf(d, 1)); got != types.ExecutionStatusSucceeded {
			return fmt.Errorf("the execution of delivery %s is %q", d.ID, got)
		}
		return nil
	})
	r.await(t, arrived)
}

// retriesOf is the execution of a round of a delivery that is in the log.
func retriesOf(d settings.Delivery, round int) *string {
	return aws.String(fmt.Sprintf("arn:aws:states:us-east-1:000000000000:execution:parley-local-webhook-retry:%s-%d-%d", d.ID, round, d.CreatedAt.Unix()))
}

func (u user) healed(t *testing.T) func(*testing.T) {
	r := newReceiver(t, answers(http.StatusInternalServerError, http.StatusTooManyRequests, http.StatusNoContent))
	d := u.sendTest(t, u.createEndpoint(t, r.url, nil, nil))
	return func(t *testing.T) {
		u.checkEnd(t, d, r, conversation.DeliveryDelivered, 3, "1.1 500 ", "1.2 429 ", "1.3 204 ")
	}
}

// The target of a redirect hears nothing, least of all a signature.
func (u user) redirected(t *testing.T) func(*testing.T) {
	target := newReceiver(t, answers(http.StatusOK))
	statuses := []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusOK}
	r := newReceiver(t, func(w http.ResponseWriter, n int) {
		w.Header().Set("Location", target.url)
		w.WriteHeader(statuses[min(n, len(statuses))-1])
	})
	d := u.sendTest(t, u.createEndpoint(t, r.url, nil, nil))
	return func(t *testing.T) {
		u.checkEnd(t, d, r, conversation.DeliveryDelivered, 3, "1.1 302 redirect", "1.2 307 redirect", "1.3 200 ")
		target.await(t, 0)
	}
}

// meanwhile is a receiver whose first answer is a failure, after what its user does.
func meanwhile(t *testing.T, do func()) *receiver {
	return newReceiver(t, func(w http.ResponseWriter, n int) {
		if n == 1 {
			do()
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
}

// later is an endpoint that a receiver needs to know before it is made.
type later struct{ atomic.Pointer[oneEndpoint] }

// test makes the endpoint, then sends it a test.
func (l *later) test(t *testing.T, u user, r *receiver) (oneEndpoint, settings.Delivery) {
	t.Helper()
	e := u.createEndpoint(t, r.url, nil, nil)
	l.Store(&e)
	return e, u.sendTest(t, e)
}

// target is where the endpoint is in the settings.
func (l *later) target() string { return "/webhook-endpoints/" + string(l.Load().EndpointID) }

func (u user) moved(t *testing.T) func(*testing.T) {
	var e later
	next := newReceiver(t, answers(http.StatusOK))
	r := meanwhile(t, func() { u.ask(t, http.MethodPatch, e.target(), anything{"url": next.url}) })
	_, d := e.test(t, u, r)
	return func(t *testing.T) {
		u.checkEnd(t, d, r, conversation.DeliveryDelivered, 1, "1.1 500 ", "1.2 200 ")
		next.await(t, 1)
	}
}

func (u user) rotated(t *testing.T) func(*testing.T) {
	var e later
	var rotated atomic.Pointer[answer]
	r := meanwhile(t, func() {
		got := u.ask(t, http.MethodPost, e.target()+"/secret", nil)
		rotated.Store(&got)
	})
	first, d := e.test(t, u, r)
	return func(t *testing.T) {
		u.checkEnd(t, d, r, conversation.DeliveryDelivered, 2, "1.1 500 ", "1.2 200 ")
		secret := want[struct{ Secret string }](t, *rotated.Load(), http.StatusOK).Secret
		for i, a := range r.arrivals() {
			byOld, byNew := a.verify(first.Secret) == nil, a.verify(secret) == nil
			if byOld != (i == 0) || byNew != (i == 1) {
				t.Errorf("attempt %d verifies by the old secret: %v, by the new one: %v", i+1, byOld, byNew)
			}
		}
	}
}

// A delivery that was canceled can be retried when the endpoint is there again.
func (u user) disabled(t *testing.T) func(*testing.T) {
	var e later
	r := meanwhile(t, func() { u.ask(t, http.MethodPatch, e.target(), anything{"enabled": false}) })
	_, d := e.test(t, u, r)
	return func(t *testing.T) {
		u.checkEnd(t, d, r, conversation.DeliveryCanceled, 1, "1.1 500 ", "1.2 0 canceled")
		if got := want[problem](t, u.ask(t, http.MethodPost, e.target()+"/test", nil), http.StatusConflict); got.Code != "webhook_endpoint_disabled" {
			t.Errorf("a test to a disabled endpoint: %+v, want webhook_endpoint_disabled", got)
		}
		want[oneEndpoint](t, u.ask(t, http.MethodPatch, e.target(), anything{"enabled": true}), http.StatusOK)
		want[oneDelivery](t, u.ask(t, http.MethodPost, "/deliveries/"+string(d.ID)+"/retry", nil), http.StatusAccepted)
		u.checkEnd(t, d, r, conversation.DeliveryDelivered, 2, "1.1 500 ", "1.2 0 canceled", "2.1 200 ")
	}
}

func (u user) deleted(t *testing.T) func(*testing.T) {
	var e later
	r := meanwhile(t, func() { u.ask(t, http.MethodDelete, e.target(), nil) })
	_, d := e.test(t, u, r)
	return func(t *testing.T) {
		u.checkEnd(t, d, r, conversation.DeliveryCanceled, 1, "1.1 500 ", "1.2 0 canceled")
		want[problem](t, u.ask(t, http.MethodGet, e.target(), nil), http.StatusNotFound)
	}
}

// unselected has a call's event, as tests are sent whatever an endpoint has selected.
func unselected(t *testing.T) func(*testing.T) {
	d := newDesk(t)
	u := newUser(t, d.ws)
	var e later
	r := meanwhile(t, func() { u.ask(t, http.MethodPatch, e.target(), anything{"events": []string{"call.started"}}) })
	made := u.createEndpoint(t, r.url, []conversation.EventName{failed}, nil)
	e.Store(&made)
	busy := d.place(t, "01")
	return func(t *testing.T) {
		u.checkEnd(t, settings.Delivery{EventID: string(busy.CallID)}, r, conversation.DeliveryCanceled, 1, "1.1 500 ", "1.2 0 canceled")
	}
}
