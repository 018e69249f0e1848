package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/shared/conversation"
	"parley/shared/settings"
	"parley/shared/webhook"
)

// A receiver is a customer's server. It keeps what arrives.
type receiver struct {
	url     string
	mu      sync.Mutex
	arrived []arrival
}

// An arrival is a post as it came.
type arrival struct {
	at     time.Time
	method string
	header http.Header
	body   []byte
}

// newReceiver opens a receiver until the test has ended. It answers as answer says, which
// is told the how-many-eth arrival that is, from 1 on, and runs beside the test.
func newReceiver(t testing.TB, answer func(w http.ResponseWriter, n int)) *receiver {
	t.Helper()
	r := new(receiver)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		at := time.Now()
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.arrived = append(r.arrived, arrival{at, request.Method, request.Header, body})
		n := len(r.arrived)
		r.mu.Unlock()
		answer(w, n)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// answers gives these statuses in turn, and then the last one for ever.
func answers(statuses ...int) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, n int) { w.WriteHeader(statuses[min(n, len(statuses))-1]) }
}

// arrivals are those so far.
func (r *receiver) arrivals() []arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.arrived)
}

// of are the arrivals so far that are a delivery's.
func (r *receiver) of(d settings.Delivery) []arrival {
	return only(r.arrivals(), func(a arrival) bool {
		return strings.Contains(string(a.body), d.EventID) && a.header.Get(webhook.EventHeader) == string(d.Event)
	})
}

// await waits until so many have arrived, and wants no more.
func (r *receiver) await(t testing.TB, n int) []arrival {
	t.Helper()
	var got []arrival
	await(t, func() error {
		if got = r.arrivals(); len(got) < n {
			return fmt.Errorf("%d webhooks have arrived, want %d", len(got), n)
		}
		return nil
	})
	if len(got) > n {
		t.Errorf("%d webhooks have arrived, want %d", len(got), n)
	}
	return got
}

// An envelope is what a webhook's body says (spec: Envelope).
type envelope struct {
	Event      conversation.EventName `json:"event"`
	EventID    string                 `json:"event_id"`
	Version    int                    `json:"version"`
	OccurredAt conversation.Time      `json:"occurred_at"`
	Call       json.RawMessage        `json:"call"`
	Message    json.RawMessage        `json:"message"`
	Thread     json.RawMessage        `json:"thread"`
	Webhook    json.RawMessage        `json:"webhook"`
}

// open verifies a webhook by the secret and returns its envelope, whose headers say the
// same as it does.
func (a arrival) open(t testing.TB, secret string) envelope {
	t.Helper()
	if err := a.verify(secret); err != nil {
		t.Errorf("%s: %v", a.body, err)
	}
	var e envelope
	decoder := json.NewDecoder(bytes.NewReader(a.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil {
		t.Errorf("%s: %v", a.body, err)
	}
	headers := map[string]string{"Content-Type": "application/json", webhook.EventHeader: string(e.Event), webhook.VersionHeader: "1"}
	for name, value := range headers {
		if got := a.header.Values(name); len(got) != 1 || got[0] != value {
			t.Errorf("%s %s: header %s is %q, want %q", e.Event, e.EventID, name, got, value)
		}
	}
	if !uuidPattern.MatchString(a.deliveryID()) || a.method != http.MethodPost || e.Version != 1 || !uuidPattern.MatchString(e.EventID) {
		t.Errorf("%s %v: %s", a.method, a.header, a.body)
	}
	if e.OccurredAt.IsZero() || e.OccurredAt.After(a.at) || !strings.Contains(string(a.body), `"occurred_at":"`+e.OccurredAt.WithOffset().String()+`"`) {
		t.Errorf("occurred_at isn't a time before %v with +00:00: %s", a.at, a.body)
	}
	return e
}

// verify does what receivers should, at the time of arrival.
func (a arrival) verify(secret string) error {
	return webhook.Verify(a.body, a.header.Get(webhook.SignatureHeader), secret, 5*time.Minute, a.at)
}

// deliveryID is the X-Service-Delivery-Id.
func (a arrival) deliveryID() string { return a.header.Get(webhook.DeliveryIDHeader) }
