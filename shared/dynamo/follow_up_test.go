package dynamo_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// following is a completed call with this follow-up.
func (w ward) following(t *testing.T, status conversation.FollowUpStatus) dynamo.StoredCall {
	t.Helper()
	call := w.bring(t, ended, false)
	done := completion
	done.FollowUps, done.Until = []conversation.FollowUp{{Status: status, Channel: conversation.SMS}}, deadline
	if err := w.CompleteCall(t.Context(), call, done); err != nil {
		t.Fatal(err)
	}
	return w.read(t, call.CallRecord)
}

// until is when the sweep looks at a call; "": never.
func (w ward) until(t *testing.T, call dynamo.StoredCall) string {
	t.Helper()
	it := w.item(t, w.conversations, callPK(call.CallRecord))
	if (it["open_shard"] == nil) != (it["open_until"] == nil) {
		t.Errorf("the call is half in the open index: %v, %v", it["open_shard"], it["open_until"])
	}
	return stringOf(it, "open_until")
}

// A call with a pending follow-up is completed, charged once and still open.
func TestCompleteWithFollowUp(t *testing.T) {
	w := newWard(t)
	for _, tt := range []struct {
		status conversation.FollowUpStatus
		until  string
	}{
		{conversation.FollowUpPending, conversation.At(deadline).String()},
		{conversation.FollowUpSkipped, ""},
	} {
		call := w.following(t, tt.status)
		if got := w.until(t, call); call.CompletedAt.IsZero() || len(call.FollowUps) != 1 || call.FollowUps[0].Status != tt.status || got != tt.until {
			t.Errorf("%s: completed at %s with %v, open until %q; want a moment, it, %q", tt.status, call.CompletedAt, call.FollowUps, got, tt.until)
		}
		if err := w.CompleteCall(t.Context(), call, completion); !errors.Is(err, dynamo.ErrStale) {
			t.Errorf("%s: a second CompleteCall = %v, want ErrStale", tt.status, err)
		}
	}
	if got := trimmed(w.balance(t)); got != "25" {
		t.Errorf("balance %s, want 25", got)
	}
}

// A follow-up's status only moves forward, whoever moves it.
func TestFollowUpMovesForward(t *testing.T) {
	w := newWard(t)
	resolve := func(to conversation.FollowUpStatus) func(dynamo.StoredCall) error {
		return func(call dynamo.StoredCall) error {
			return w.ResolveFollowUp(t.Context(), call, []conversation.FollowUp{{Status: to, Channel: conversation.SMS, SentAt: after(0)}})
		}
	}
	receipt := func(to conversation.FollowUpStatus) func(dynamo.StoredCall) error {
		return func(call dynamo.StoredCall) error {
			return w.ForwardFollowUp(t.Context(), call.WorkspaceID, call.CallID, to, after(time.Minute))
		}
	}
	type status = conversation.FollowUpStatus
	all := []status{conversation.FollowUpPending, conversation.FollowUpAmbiguous, conversation.FollowUpSent,
		conversation.FollowUpDelivered, conversation.FollowUpFailed, conversation.FollowUpSkipped}
	for name, tt := range map[string]struct {
		move func(dynamo.StoredCall) error
		to   status
		from map[status]bool
	}{
		"resolved as sent":      {resolve(conversation.FollowUpSent), conversation.FollowUpSent, map[status]bool{conversation.FollowUpPending: true}},
		"resolved as skipped":   {resolve(conversation.FollowUpSkipped), conversation.FollowUpSkipped, map[status]bool{conversation.FollowUpPending: true}},
		"resolved as ambiguous": {resolve(conversation.FollowUpAmbiguous), conversation.FollowUpAmbiguous, map[status]bool{conversation.FollowUpPending: true}},
		"reported as sent": {receipt(conversation.FollowUpSent), conversation.FollowUpSent,
			map[status]bool{conversation.FollowUpPending: true, conversation.FollowUpAmbiguous: true}},
		"reported as delivered": {receipt(conversation.FollowUpDelivered), conversation.FollowUpDelivered,
			map[status]bool{conversation.FollowUpPending: true, conversation.FollowUpAmbiguous: true, conversation.FollowUpSent: true}},
		"reported as failed": {receipt(conversation.FollowUpFailed), conversation.FollowUpFailed,
			map[status]bool{conversation.FollowUpPending: true, conversation.FollowUpAmbiguous: true, conversation.FollowUpSent: true}},
	} {
		for _, from := range all {
			call := w.following(t, from)
			err := tt.move(call)
			got, want := w.read(t, call.CallRecord).FollowUps, from
			if tt.from[from] {
				want = tt.to
			}
			if errors.Is(err, dynamo.ErrStale) == tt.from[from] || tt.from[from] && err != nil || len(got) != 1 || got[0].Status != want || got[0].Channel != conversation.SMS {
				t.Errorf("%s, %s: %v, then %v; want %s", from, name, err, got, want)
			}
			if until := w.until(t, call); (until != "") != (want == conversation.FollowUpPending) {
				t.Errorf("%s, %s: open until %q; want it open only while one is pending", from, name, until)
			}
		}
		plain := w.bring(t, completed, false)
		if err := tt.move(plain); !errors.Is(err, dynamo.ErrStale) || w.read(t, plain.CallRecord).FollowUps != nil {
			t.Errorf("%s, without a follow-up: %v, want ErrStale", name, err)
		}
	}
	call := w.following(t, conversation.FollowUpPending)
	if err := receipt(conversation.FollowUpSkipped)(call); err == nil || errors.Is(err, dynamo.ErrStale) {
		t.Errorf("reported as skipped: %v, want an error of its own", err)
	}
}

// When it was sent is kept as it was known first; what failed was perhaps never sent.
func TestFollowUpSentAt(t *testing.T) {
	w := newWard(t)
	for _, tt := range []struct {
		reports []conversation.FollowUpStatus
		want    conversation.Time
	}{
		{[]conversation.FollowUpStatus{conversation.FollowUpSent, conversation.FollowUpDelivered}, after(0)},
		{[]conversation.FollowUpStatus{conversation.FollowUpFailed}, conversation.Time{}},
	} {
		call := w.following(t, conversation.FollowUpPending)
		for n, to := range tt.reports {
			if err := w.ForwardFollowUp(t.Context(), call.WorkspaceID, call.CallID, to, after(time.Duration(n)*time.Minute)); err != nil {
				t.Errorf("%s: %v", to, err)
			}
		}
		if got := w.read(t, call.CallRecord).FollowUps[0].SentAt; got != tt.want {
			t.Errorf("after %v it was sent at %s, want %s", tt.reports, got, tt.want)
		}
	}
}

// A thread's outcome for a call are the call's evaluations, and nothing else of it.
func TestCallOutcomes(t *testing.T) {
	w := newWard(t)
	call, other := w.following(t, conversation.FollowUpSent), w.following(t, conversation.FollowUpSent)
	write := completing(w.talk(t, bySMS))
	evaluations := []conversation.Evaluation{{EvaluationID: "e", Title: "Answered", Result: conversation.Pass, InitialResult: conversation.Fail, Recovered: true}}
	write.Calls = []dynamo.CallOutcome{{CallID: call.CallID, Evaluations: evaluations}}
	w.write(t, write)
	want := call.CallRecord
	want.Evaluations = evaluations
	if diff := cmp.Diff(want, w.read(t, call.CallRecord).CallRecord); diff != "" {
		t.Errorf("the call (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(other.CallRecord, w.read(t, other.CallRecord).CallRecord); diff != "" {
		t.Errorf("another call (-want +got):\n%s", diff)
	}
}
