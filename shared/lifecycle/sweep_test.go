package lifecycle_test

import (
	"testing"
	"time"

	"parley/shared/carrier"
	"parley/shared/conversation"
)

// The sweep takes what is past its deadline through the same steps; what stays unfinished
// is looked at again later.
func TestSweep(t *testing.T) {
	w := newWorld(t)
	lost := w.place(t, w.newCall(customer+"99")) // no answer from the carrier, and none knows it
	lost.forgotten = true
	silent := w.bring(t, talking) // its hang-up was lost
	w.pass(30 * time.Second)
	w.line.hangUp(silent, conversation.EndCustomerHungUp)
	crashed := w.bring(t, hungUp) // its state machine is gone
	talks := w.bring(t, talking)
	fresh := w.bring(t, talking)
	stranger := w.bring(t, talking) // of a carrier that is out of order
	w.pass(6 * time.Minute)
	if err := w.store.PostponeCall(w.ctx, w.workspace, fresh.CallID, w.now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	broken := newLine(w.now)
	broken.out = errOutOfOrder
	w.calls.Carriers[w.carrier] = byCall{w.line, map[conversation.CallID]*line{stranger.CallID: broken}}

	asked := w.line.asked
	if err := w.calls.Sweep(w.ctx); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		ph     *phone
		status conversation.CallStatus
		reason conversation.EndReason
		open   string
	}{
		"unknown to the carrier": {lost, "error", "stalled", ""},
		"hang-up lost":           {silent, "ended", "customer_hung_up", ""},
		"machine gone":           {crashed, "ended", "customer_hung_up", ""},
		"alive":                  {talks, "in_progress", "", conversation.At(w.now().Add(5 * time.Minute)).String()},
		"not due yet":            {fresh, "in_progress", "", conversation.At(w.now().Add(time.Second)).String()},
		"carrier out of order":   {stranger, "in_progress", "", conversation.At(w.now().Add(5 * time.Minute)).String()},
	} {
		got := w.read(t, tt.ph.CallID)
		until := textOf(w.callItem(t, tt.ph.CallID), "open_until")
		if got.Status != tt.status || got.EndReason != tt.reason || until != tt.open {
			t.Errorf("%s: %s, %q, open until %q; want %s, %q, %q", name, got.Status, got.EndReason, until, tt.status, tt.reason, tt.open)
		}
		if got.Status == conversation.CallEnded && got.CompletedAt.IsZero() {
			t.Errorf("%s: it isn't completed", name)
		}
	}
	if w.slots(t) != "3" || w.line.asked == asked {
		t.Errorf("%s active calls, the carrier was asked %d times; want 3, some", w.slots(t), w.line.asked-asked)
	}

	// Nothing is due now: the carrier is left alone.
	asked = w.line.asked
	if err := w.calls.Sweep(w.ctx); err != nil || w.line.asked != asked {
		t.Errorf("again: %v, the carrier was asked %d times; want nil, not at all", err, w.line.asked-asked)
	}
	w.line.hangUp(talks, conversation.EndAssistantHungUp)
	w.calls.Carriers[w.carrier] = w.line
	w.pass(time.Hour)
	if err := w.calls.Sweep(w.ctx); err != nil || w.slots(t) != "0" {
		t.Errorf("an hour later: %v, %s active calls; want nil, none", err, w.slots(t))
	}
	for _, ph := range []*phone{fresh, stranger} {
		if got := w.read(t, ph.CallID); got.EndReason != conversation.EndMaxDuration || ph.state.Phase != carrier.Over {
			t.Errorf("%s, %s, phone %s; want ended, max_duration, over", got.Status, got.EndReason, ph.state.Phase)
		}
	}
}
