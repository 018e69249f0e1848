package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
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

// The sweep takes conversations past their deadline through the same looks; one that stays
// open is looked at again when its next step is over.
func TestSweepThreads(t *testing.T) {
	w, _ := newStage(t).newExamined(t, nil)
	w.define(t, func(d *dynamo.Definition) { d.Workspace.InactivitySeconds = 60 * 60 })
	thread := func(digits, content string) conversation.ThreadID {
		report := w.message(content)
		report.From = customer + digits
		m := w.writes(t, report)
		w.elapse(t, 30*time.Second)
		return m.ThreadID
	}
	over, failed := thread("91", "Answered Polite"), thread("92", "Hello")
	w.pass(24 * time.Minute)
	busy := thread("93", "Hello")
	w.pass(36 * time.Minute)
	fresh := thread("94", "Hello")

	until := func(threadID conversation.ThreadID) time.Time {
		at, _ := time.Parse(time.RFC3339, textOf(w.threadItem(t, threadID), "open_until")) // none: the zero time
		return at
	}
	in := func(d time.Duration) time.Time { return w.now().Add(d) }
	quietAt := w.readThread(t, busy).LastArrivalAt.Add(time.Hour)
	untouched := until(fresh)
	if err := w.look().Sweep(w.ctx); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		threadID conversation.ThreadID
		reason   conversation.CloseReason
		until    time.Time // waits are whole seconds
	}{
		"quiet":         {over, "graded", time.Time{}},
		"followed up":   {failed, "", in(24*time.Hour + 5*time.Minute)},
		"not quiet yet": {busy, "", quietAt.Add(5 * time.Minute)},
		"not due":       {fresh, "", untouched},
	} {
		got, late := w.readThread(t, tt.threadID), until(tt.threadID).Sub(tt.until)
		if got.CloseReason != tt.reason || late < -2*time.Second || late > 2*time.Second {
			t.Errorf("%s: %q, open until %s; want %q, %s", name, got.CloseReason, until(tt.threadID), tt.reason, tt.until)
		}
	}

	// A look that fails is made again later, and keeps no other from being made.
	w.pass(25 * time.Hour)
	lost := w.readThread(t, busy)
	lost.MessageCount++
	if err := w.store.WriteThread(w.ctx, dynamo.ThreadWrite{Thread: lost, Until: w.now().Add(-time.Second)}); err != nil {
		t.Fatal(err)
	}
	if err := w.look().Sweep(w.ctx); err != nil {
		t.Fatal(err)
	}
	if got := w.readThread(t, failed).CloseReason; got != conversation.NoReplyAfterFollowUp {
		t.Errorf("a day later: %q, want no reply", got)
	}
	if late := until(busy).Sub(in(5 * time.Minute)); late < -2*time.Second || late > 2*time.Second {
		t.Errorf("a look that fails: open until %s, want in 5 minutes", until(busy))
	}
}

// The sweep leaves a conversation alone until what it waits for should have happened.
func TestSweepWaits(t *testing.T) {
	w, _ := newStage(t).newExamined(t, nil)
	m := w.writes(t, w.message("Hello"))
	check := func(name string, want time.Time) {
		t.Helper()
		until, err := time.Parse(time.RFC3339, textOf(w.threadItem(t, m.ThreadID), "open_until"))
		if late := until.Sub(want); err != nil || late < -2*time.Second || late > 2*time.Second {
			t.Errorf("%s: open until %s, %v; want %s", name, until, err, want)
		}
	}
	check("a turn is under way", w.now().Add(5*time.Minute))
	w.elapse(t, 30*time.Second)
	marked := w.readMessage(t, m.MessageID).MarkedAt
	check("quiet", marked.Add(conversation.DefaultInactivity+5*time.Minute))
	w.pass(30 * time.Minute)
	if _, err := w.look().Advance(w.ctx, w.workspace, m.ThreadID); err != nil {
		t.Fatal(err)
	}
	attempt := w.readThread(t, m.ThreadID).Attempt
	if attempt == nil {
		t.Fatal("no follow-up is sent")
	}
	check("an answer is awaited", attempt.AnswerBy.Add(5*time.Minute))
	w.writes(t, w.message("Yes"))
	check("it is answered", w.now().Add(5*time.Minute))
}

// A call whose follow-up nobody sends any more, as its state machine is gone, is the sweep's.
func TestSweepFollowUps(t *testing.T) {
	stage := newStage(t)
	w, c := stage.crashing(t)
	for n := 12; ; n++ { // until it crashes after the call's completion, before its follow-up
		ph := w.bring(t, hungUp)
		c.run(w.ctx, n, true, func(ctx context.Context) error { return w.calls.Advance(ctx, w.workspace, ph.CallID) })
		call := w.read(t, ph.CallID)
		if call.CompletedAt.IsZero() {
			continue
		}
		if statusOf(call.CallRecord) != "pending by sms" || w.followUpTexts() != 0 {
			t.Fatalf("%s, %d texts; want it pending", statusOf(call.CallRecord), w.followUpTexts())
		}
		w.pass(6 * time.Minute)
		if err := w.calls.Sweep(w.ctx); err != nil {
			t.Fatal(err)
		}
		if got := w.read(t, ph.CallID); statusOf(got.CallRecord) != "sent by sms" || got.CompletedAt != call.CompletedAt {
			t.Errorf("after the sweep: %s, completed at %s; want sent, %s", statusOf(got.CallRecord), got.CompletedAt, call.CompletedAt)
		}
		return
	}
}
