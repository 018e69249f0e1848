package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"parley/shared/webhook"
)

const (
	tolerance = 5 * time.Minute // of a signature's age
	maxBody   = 16 << 20
)

// receiver takes webhooks. What is done with an event is done after the answer, by one
// worker, in the order of arrival.
type receiver struct {
	secret string
	now    func() time.Time
	work   chan delivery
}

// delivery is a webhook that was verified.
type delivery struct {
	id    string // X-Service-Delivery-Id
	event envelope
}

// envelope is what every event has; its subject is an object named call, message, thread
// or webhook. What else is in it, and events that we don't know, are no errors.
type envelope struct {
	Event      string    `json:"event"`
	EventID    string    `json:"event_id"`
	OccurredAt time.Time `json:"occurred_at"`
}

func newReceiver(secret string, now func() time.Time, out io.Writer) *receiver {
	r := &receiver{secret, now, make(chan delivery, 1000)}
	go func() {
		seen := newSeen()
		for d := range r.work {
			if !seen.before(d.event) {
				fmt.Fprintf(out, "%s  %-16s %s  verified, delivery %s\n", d.event.OccurredAt.Format(time.RFC3339), d.event.Event, d.event.EventID, d.id)
			}
		}
	}()
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodPost {
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	// The signature is over the body as it was sent: verify first, parse then.
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxBody))
	if err != nil {
		http.Error(w, "can't read the body", http.StatusBadRequest)
		return
	}
	if err := webhook.Verify(body, request.Header.Get(webhook.SignatureHeader), r.secret, tolerance, r.now()); err != nil {
		log.Printf("refused: %v", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d := delivery{id: request.Header.Get(webhook.DeliveryIDHeader)}
	if err := json.Unmarshal(body, &d.event); err != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	select {
	case r.work <- d:
		w.WriteHeader(http.StatusOK)
	default: // the service tries again later
		http.Error(w, "busy", http.StatusServiceUnavailable)
	}
}

// seen remembers the last events, as the same one may come more than once. A receiver that
// restarts should keep this in its database.
type seen struct {
	known  map[string]bool
	oldest []string
}

const remembered = 10_000

func newSeen() *seen { return &seen{known: map[string]bool{}} }

// before tells whether the event was here before. call.started and call.completed of a call
// have the same id, so the event's name counts, too.
func (s *seen) before(e envelope) bool {
	name := e.Event + " " + e.EventID
	if s.known[name] {
		return true
	}
	s.known[name] = true
	s.oldest = append(s.oldest, name)
	if len(s.oldest) > remembered {
		delete(s.known, s.oldest[0])
		s.oldest = s.oldest[1:]
	}
	return false
}
