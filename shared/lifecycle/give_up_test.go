package lifecycle_test

import (
	"testing"
	"time"

	"parley/shared/conversation"
)

// A carrier that can't be asked for hours leaves no call waiting, and the call ends within
// the span that lists by ended_at count on.
func TestCarrierThatStaysOutOfReach(t *testing.T) {
	stage := newStage(t)
	for _, from := range []reached{queued, inProgress, hungUp} {
		w := stage.newWorld(t, nil)
		ph := w.bring(t, from)
		w.line.out = errOutOfOrder

		w.pass(conversation.MaxCallDuration)
		if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err == nil {
			t.Errorf("%v: Advance succeeds after %s, want the carrier's failure", from, conversation.MaxCallDuration)
		}
		w.pass(conversation.CallSpan - conversation.MaxCallDuration - 10*time.Minute)
		if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err != nil {
			t.Errorf("%v: Advance = %v, want it to give up", from, err)
		}
		got := w.read(t, ph.CallID)
		if got.Status != conversation.CallError || got.EndReason != conversation.EndStalled || w.slots(t) != "0" {
			t.Errorf("%v: %s, %q, %s active calls; want error, stalled, 0", from, got.Status, got.EndReason, w.slots(t))
		}
	}
}
