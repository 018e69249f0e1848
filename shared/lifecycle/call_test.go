package lifecycle_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/shared/agent"
	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/lifecycle"
)

// What is due for a call whose callbacks are silent, by what its carrier says.
func TestAdvance(t *testing.T) {
	stage := newStage(t)
	const pickup, hour = 2*time.Minute + time.Second, time.Hour + time.Second
	type want struct {
		err    error // nil: the call is resolved
		status conversation.CallStatus
		reason conversation.EndReason
		slots  string
	}
	waits := func(status conversation.CallStatus) want { return want{lifecycle.ErrNotYet, status, "", "1"} }
	tests := map[string]struct {
		from  reached
		phone func(*world, *phone) // what happens that nobody reports
		after time.Duration
		want  want
	}{
		"queued, before the pickup timeout": {queued, func(w *world, ph *phone) { ph.forgotten = true }, pickup - 2*time.Second, waits("queued")},
		"queued, unknown to the carrier":    {queued, func(w *world, ph *phone) { ph.forgotten = true }, pickup, want{nil, "error", "stalled", "0"}},
		"queued, yet it rings":              {queued, nil, pickup, waits("in_progress")},
		"queued, yet somebody talks":        {queued, func(w *world, ph *phone) { w.line.answer(ph) }, pickup, waits("in_progress")},
		"queued, yet it was busy": {queued, func(w *world, ph *phone) { w.line.hangUp(ph, conversation.EndBusy) }, pickup,
			want{nil, "error", "busy", "0"}},
		"queued, yet it is over": {queued, func(w *world, ph *phone) {
			w.line.answer(ph)
			w.line.hangUp(ph, conversation.EndCustomerHungUp)
		}, pickup, want{nil, "ended", "customer_hung_up", "0"}},
		"in progress": {inProgress, nil, hour / 2, waits("in_progress")},
		"in progress, never answered": {inProgress, func(w *world, ph *phone) { w.line.hangUp(ph, conversation.EndNoAnswer) }, time.Second,
			want{nil, "error", "no_answer", "0"}},
		"in progress, unknown to the carrier": {inProgress, func(w *world, ph *phone) { ph.forgotten = true }, time.Second,
			want{nil, "error", "stalled", "0"}},
		"in progress, over": {talking, func(w *world, ph *phone) { w.line.hangUp(ph, conversation.EndAssistantHungUp) }, time.Second,
			want{nil, "ended", "assistant_hung_up", "0"}},
		"talking for an hour": {talking, nil, hour, want{nil, "ended", "max_duration", "0"}},
		"ringing for an hour": {inProgress, nil, hour, want{nil, "error", "no_answer", "0"}},
		"over for an hour, and nobody told us": {talking, func(w *world, ph *phone) { w.line.hangUp(ph, conversation.EndCustomerHungUp) }, hour,
			want{nil, "ended", "customer_hung_up", "0"}},
		"busy an hour ago, and nobody told us": {inProgress, func(w *world, ph *phone) { w.line.hangUp(ph, conversation.EndBusy) }, hour,
			want{nil, "error", "busy", "0"}},
		"hung up": {hungUp, nil, time.Second, want{nil, "ended", "customer_hung_up", "0"}},
		"hung up, unknown to the carrier": {hungUp, func(w *world, ph *phone) { ph.forgotten = true }, time.Second,
			want{nil, "error", "stalled", "0"}},
		"hung up, yet the carrier says that it talks": {hungUp, func(w *world, ph *phone) { ph.state.Phase = carrier.Talking }, time.Second,
			want{lifecycle.ErrNotYet, "in_progress", "", "1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := stage.newWorld(t, nil)
			ph := w.bring(t, tt.from)
			over := w.now()
			if tt.phone != nil {
				tt.phone(w, ph)
			}
			w.pass(tt.after)
			err := w.calls.Advance(w.ctx, w.workspace, ph.CallID)
			got := w.read(t, ph.CallID)
			if err != tt.want.err || got.Status != tt.want.status || got.EndReason != tt.want.reason || w.slots(t) != tt.want.slots {
				t.Errorf("Advance = %v: %s, %q, %s active calls; want %v: %s, %q, %s", err, got.Status, got.EndReason, w.slots(t),
					tt.want.err, tt.want.status, tt.want.reason, tt.want.slots)
			}
			if ended := got.Status == conversation.CallEnded; ended != !got.CompletedAt.IsZero() || ended != (got.Transcript != nil) {
				t.Errorf("%s: completed at %s with %d turns; want both with ended alone", got.Status, got.CompletedAt, len(got.Transcript))
			}
			if got.EndReason == conversation.EndCustomerHungUp && got.EndedAt != conversation.At(over) {
				t.Errorf("ended at %s, want when the customer hung up, %s", got.EndedAt, over)
			}
			if open := w.callItem(t, ph.CallID)["open_shard"] != nil; open != (tt.want.err != nil) {
				t.Errorf("open: %t, want %t", open, tt.want.err != nil)
			}
			if phase := ph.state.Phase; err == nil && !ph.forgotten && (phase == carrier.Talking || phase == carrier.Dialling) {
				t.Errorf("resolved, yet the phone is %s", phase)
			}
		})
	}
}

// While the carrier gives no answer nothing is decided, whatever is due.
func TestCarrierOutOfOrder(t *testing.T) {
	stage := newStage(t)
	for _, from := range []reached{queued, inProgress, talking, hungUp} {
		w := stage.newWorld(t, nil)
		ph := w.bring(t, from)
		w.pass(2 * time.Hour)
		before := w.read(t, ph.CallID)
		w.line.out = errOutOfOrder
		if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); !errors.Is(err, errOutOfOrder) {
			t.Errorf("from %d: Advance = %v, want the carrier's error", from, err)
		}
		if got := w.read(t, ph.CallID); got.Status != before.Status || got.HungUpAt != before.HungUpAt || w.slots(t) != "1" {
			t.Errorf("from %d: %s, %s active calls; want it as it was", from, got.Status, w.slots(t))
		}
		w.line.out = nil
		if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err != nil && err != lifecycle.ErrNotYet {
			t.Errorf("from %d, in order again: Advance = %v", from, err)
		}
	}
}

// A hang-up that the carrier hasn't made yet is asked for again, not taken for done.
func TestCarrierThatIsSlowToHangUp(t *testing.T) {
	w := newWorld(t)
	ph := w.bring(t, talking)
	if err := w.store.HangUpCall(w.ctx, w.read(t, ph.CallID).CallRecord, "", w.now(), conversation.EndMaxDuration, w.now()); err != nil {
		t.Fatal(err)
	}
	if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err != lifecycle.ErrNotYet || !slices.Equal(w.line.ended, []conversation.CallID{ph.CallID}) {
		t.Errorf("Advance = %v, hung up %v; want ErrNotYet, this call", err, w.line.ended)
	}
	if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err != nil || w.read(t, ph.CallID).EndReason != conversation.EndMaxDuration {
		t.Errorf("Advance = %v, %s; want ended, max_duration", err, w.read(t, ph.CallID).EndReason)
	}
}

func TestAdvanceNobody(t *testing.T) {
	w := newWorld(t)
	if err := w.calls.Advance(w.ctx, w.workspace, "nobody"); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("Advance = %v, want ErrNotFound", err)
	}
	ph := w.bring(t, hungUp)
	delete(w.calls.Carriers, w.carrier)
	if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err == nil {
		t.Error("a carrier that the stage doesn't have: Advance = nil, want an error")
	}
}

// State machine, sweep and callbacks at once: one of them ends the call, one completes it.
func TestAllAtOnce(t *testing.T) {
	w := newWorld(t)
	m := newSteps(t)
	for range 10 {
		w.line.phones = map[conversation.CallID]*phone{}
		ph := w.bring(t, talking)
		w.pass(time.Minute)
		w.line.hangUp(ph, conversation.EndCustomerHungUp)
		report, _ := w.line.take(ph)
		w.pass(10 * time.Minute)
		balance := w.balance(t)
		m.wait("t")
		task := w.task(t, ph.CallID, false, "t", entered, 0)
		var group sync.WaitGroup
		for _, do := range []func() error{
			func() error { return w.calls.Advance(w.ctx, w.workspace, ph.CallID) },
			func() error { return w.calls.Advance(w.ctx, w.workspace, ph.CallID) },
			func() error { return w.calls.Sweep(w.ctx) },
			func() error { w.deliver(t, ph, report); return nil },
			func() error { w.deliver(t, ph, report); return nil },
			func() error { return w.calls.Run(m.Machine)(w.ctx, task) },
		} {
			group.Go(func() {
				if err := do(); err != nil && err != lifecycle.ErrNotYet {
					t.Errorf("error %v", err)
				}
			})
		}
		group.Wait()
		if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err != nil {
			t.Fatal(err)
		}
		got := w.read(t, ph.CallID)
		if got.Status != conversation.CallEnded || got.CompletedAt.IsZero() || w.slots(t) != "0" || w.balance(t) == balance {
			t.Fatalf("%s, %s active calls, balance %s; want ended, none, charged", got.Status, w.slots(t), w.balance(t))
		}
	}
	// 60 s at 0.02 and 0.10 a minute, ten times.
	if got := w.balance(t); got != "24.3" {
		t.Errorf("balance %s, want 24.3: each call charged once", got)
	}
}

// The defaults that a function gets.
func TestNew(t *testing.T) {
	s := newStage(t)
	calls := lifecycle.New(s.cfg, s.names, secret)
	if calls.Carriers[carrier.SimulatorName] == nil || calls.Agent == nil || calls.Wait == nil || time.Since(calls.Now()) > time.Minute {
		t.Errorf("New = %+v, want all of it", calls)
	}
	if _, err := calls.Agent(agent.ScriptedModel); err != nil {
		t.Errorf("the scripted model: %v", err)
	}
}
