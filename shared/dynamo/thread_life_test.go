package dynamo_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

var (
	otherChannel = dynamo.ThreadKey{Number: bySMS.Number, Address: bySMS.Address, Channel: conversation.WhatsApp}
	asTest       = dynamo.ThreadKey{Number: bySMS.Number, Address: bySMS.Address, Channel: conversation.SMS, Test: true}
	someoneElse  = dynamo.ThreadKey{Number: bySMS.Number, Address: "US.13491208655302741918", Channel: conversation.SMS}
)

// Every condition of a conversation's write. What is refused changes nothing at all.
func TestWriteThread(t *testing.T) {
	stage := newWard(t)
	stop := func(out bool, at time.Duration) *dynamo.OptOut { return &dynamo.OptOut{Out: out, At: after(at)} }
	// optedOut is a thread whose customer has written STOP.
	optedOut := func(t *testing.T, w ward, k dynamo.ThreadKey) conversation.ThreadRecord {
		write := joining(w.newThread(k), w.written(k, "STOP"))
		write.OptOut = stop(true, 0)
		return w.write(t, write)
	}
	// sentOn is a thread of which a follow-up was sent.
	sentOn := func(t *testing.T, w ward, k dynamo.ThreadKey, perDay int, at time.Duration) conversation.ThreadRecord {
		write := joining(w.newThread(k), w.sent(k, "One more thing."))
		write.Cap = &dynamo.FollowUpCap{PerDay: perDay, At: now.Add(at)}
		return w.write(t, write)
	}
	tests := map[string]struct {
		write func(*testing.T, ward) dynamo.ThreadWrite
		want  error
	}{
		"opens": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			return joining(w.newThread(bySMS), w.written(bySMS, "Hello."))
		}, nil},
		"opens beside an open one": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			w.talk(t, bySMS)
			return joining(w.newThread(bySMS), w.written(bySMS, "Hello?"))
		}, dynamo.ErrStale},
		"opens on another channel": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			w.talk(t, bySMS)
			return joining(w.newThread(otherChannel), w.written(otherChannel, "Hello?"))
		}, nil},
		"opens a test beside the customer's own": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			w.talk(t, bySMS)
			return joining(w.newThread(asTest), w.written(asTest, "Hello?"))
		}, nil},
		"opens after a completed one": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			w.write(t, completing(w.talk(t, bySMS)))
			return joining(w.newThread(bySMS), w.written(bySMS, "Hello?"))
		}, nil},
		"joins": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			return joining(w.talk(t, bySMS), w.written(bySMS, "Hello?"))
		}, nil},
		"joins one that was written since": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			thread := w.talk(t, bySMS)
			w.write(t, joining(thread, w.written(bySMS, "Hello?")))
			return joining(thread, w.written(bySMS, "Anybody?"))
		}, dynamo.ErrStale},
		"joins one that has completed since": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			thread := w.talk(t, bySMS)
			w.write(t, completing(thread))
			return joining(thread, w.written(bySMS, "Hello?"))
		}, dynamo.ErrStale},
		"joins a completed one": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			return joining(w.write(t, completing(w.talk(t, bySMS))), w.sent(bySMS, "Hello?"))
		}, dynamo.ErrStale},
		"opens a completed one again": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			thread := w.write(t, completing(w.talk(t, bySMS)))
			thread.CompletedAt = conversation.Time{}
			return joining(thread, w.written(bySMS, "Hello?"))
		}, dynamo.ErrStale},
		"joins none": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			thread := w.newThread(bySMS)
			thread.Version = 3
			return joining(thread, w.written(bySMS, "Hello?"))
		}, dynamo.ErrStale},

		"a carrier's message again": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			first, again := w.written(bySMS, "Hello."), w.written(bySMS, "Hello.")
			again.ProviderMessageID = first.ProviderMessageID
			return joining(w.write(t, joining(w.newThread(bySMS), first)), again)
		}, dynamo.ErrMessageExists},
		"a carrier's message again, as everything else stands against it": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			write := joining(w.newThread(bySMS), w.written(bySMS, "STOP"))
			write.OptOut, write.Cap = stop(true, 0), &dynamo.FollowUpCap{PerDay: 1, At: now}
			w.write(t, write)
			write.OptOut, write.MayWrite = nil, true
			return write
		}, dynamo.ErrMessageExists},
		"another carrier's message of this id": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			first, other := w.written(bySMS, "Hello."), w.written(bySMS, "Hello.")
			other.ProviderMessageID, other.Carrier = first.ProviderMessageID, "another"
			return joining(w.write(t, joining(w.newThread(bySMS), first)), other)
		}, nil},
		"a message of ours again": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			m := w.sent(bySMS, "Your code is 42.")
			return joining(w.write(t, joining(w.newThread(bySMS), m)), m)
		}, dynamo.ErrMessageExists},
		"two messages of ours without the carrier's id": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			return joining(w.write(t, joining(w.newThread(bySMS), w.sent(bySMS, "One."))), w.sent(bySMS, "Two."))
		}, nil},

		"may write, as ever": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			write := joining(w.talk(t, bySMS), w.sent(bySMS, "Hello."))
			write.MayWrite = true
			return write
		}, nil},
		"may write after STOP": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			write := joining(optedOut(t, w, bySMS), w.sent(bySMS, "Hello."))
			write.MayWrite = true
			return write
		}, dynamo.ErrOptedOut},
		"may write after STOP, in a conversation that was written since": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			thread := w.talk(t, bySMS)
			write := joining(thread, w.written(bySMS, "STOP"))
			write.OptOut = stop(true, 0)
			w.write(t, write)
			write = joining(thread, w.sent(bySMS, "Hello."))
			write.MayWrite = true
			return write
		}, dynamo.ErrOptedOut},
		"may write after STOP and START": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			write := joining(optedOut(t, w, bySMS), w.written(bySMS, "START"))
			write.OptOut = stop(false, time.Second)
			write = joining(w.write(t, write), w.sent(bySMS, "Hello."))
			write.MayWrite = true
			return write
		}, nil},
		"may write on another channel after STOP": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			optedOut(t, w, bySMS)
			write := joining(w.newThread(otherChannel), w.sent(otherChannel, "Hello."))
			write.MayWrite = true
			return write
		}, nil},
		"may write after a test's STOP": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			optedOut(t, w, asTest)
			write := joining(w.newThread(bySMS), w.sent(bySMS, "Hello."))
			write.MayWrite = true
			return write
		}, nil},
		"may write to another after STOP": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			optedOut(t, w, bySMS)
			write := joining(w.newThread(someoneElse), w.sent(someoneElse, "Hello."))
			write.MayWrite = true
			return write
		}, nil},

		"an old START": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			write := joining(optedOut(t, w, bySMS), w.written(bySMS, "START"))
			write.OptOut = stop(false, -time.Millisecond)
			return write
		}, dynamo.ErrOldOptOut},
		"an old START in a conversation that was written since": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			thread := w.talk(t, bySMS)
			write := joining(thread, w.written(bySMS, "STOP"))
			write.OptOut = stop(true, 0)
			w.write(t, write)
			write = joining(thread, w.written(bySMS, "START"))
			write.OptOut = stop(false, -time.Second)
			return write
		}, dynamo.ErrOldOptOut},

		"a follow-up within the cap": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			sentOn(t, w, bySMS, 2, 0)
			write := joining(w.newThread(someoneElse), w.sent(someoneElse, "Hello."))
			write.Cap = &dynamo.FollowUpCap{PerDay: 2, At: now}
			return write
		}, nil},
		"a follow-up over the cap": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			sentOn(t, w, bySMS, 1, 0)
			write := joining(w.newThread(someoneElse), w.sent(someoneElse, "Hello."))
			write.Cap = &dynamo.FollowUpCap{PerDay: 1, At: now}
			return write
		}, dynamo.ErrDailyCap},
		"a follow-up where none may be": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			write := joining(w.newThread(bySMS), w.sent(bySMS, "Hello."))
			write.Cap = &dynamo.FollowUpCap{At: now}
			return write
		}, dynamo.ErrDailyCap},
		"a customer's second follow-up": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			sentOn(t, w, bySMS, 9, 0)
			write := joining(w.newThread(otherChannel), w.sent(otherChannel, "Hello."))
			write.Cap = &dynamo.FollowUpCap{PerDay: 9, At: now.Truncate(24 * time.Hour).Add(24*time.Hour - 1)}
			return write
		}, dynamo.ErrDailyCap},
		"a customer's second follow-up, the day after": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			sentOn(t, w, bySMS, 1, 0)
			write := joining(w.newThread(otherChannel), w.sent(otherChannel, "Hello."))
			write.Cap = &dynamo.FollowUpCap{PerDay: 1, At: now.Truncate(24 * time.Hour).Add(24 * time.Hour)}
			return write
		}, nil},
		"a follow-up over the cap after STOP": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			sentOn(t, w, bySMS, 1, 0)
			optedOut(t, w, otherChannel)
			write := joining(w.thread(t, w.openThread(t, otherChannel)), w.sent(otherChannel, "Hello."))
			write.MayWrite, write.Cap = true, &dynamo.FollowUpCap{PerDay: 1, At: now}
			return write
		}, dynamo.ErrOptedOut},
		"a follow-up over the cap in a conversation that was written since": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			thread := sentOn(t, w, bySMS, 1, 0)
			w.write(t, joining(thread, w.written(bySMS, "Thanks.")))
			write := joining(thread, w.sent(bySMS, "Hello."))
			write.Cap = &dynamo.FollowUpCap{PerDay: 1, At: now}
			return write
		}, dynamo.ErrDailyCap},

		"a test's follow-up, and the customer has had theirs": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			sentOn(t, w, bySMS, 1, 0)
			write := joining(w.newThread(asTest), w.sent(asTest, "Hello."))
			write.Cap = &dynamo.FollowUpCap{PerDay: 1, At: now}
			return write
		}, nil},
		"a follow-up after a test's": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			sentOn(t, w, asTest, 1, 0)
			write := joining(w.newThread(bySMS), w.sent(bySMS, "Hello."))
			write.Cap = &dynamo.FollowUpCap{PerDay: 1, At: now}
			return write
		}, nil},
		"a test's second follow-up": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			write := joining(sentOn(t, w, asTest, 9, 0), w.sent(asTest, "Hello."))
			write.Cap = &dynamo.FollowUpCap{PerDay: 9, At: now}
			return write
		}, dynamo.ErrDailyCap},
		"a test's follow-up over the cap of tests": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			sentOn(t, w, asTest, 1, 0)
			another := dynamo.ThreadKey{Number: asTest.Number, Address: someoneElse.Address, Channel: asTest.Channel, Test: true}
			write := joining(w.newThread(another), w.sent(another, "Hello."))
			write.Cap = &dynamo.FollowUpCap{PerDay: 1, At: now}
			return write
		}, dynamo.ErrDailyCap},

		"a mark": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			m := w.written(bySMS, "Hello.")
			write := joining(w.write(t, joining(w.newThread(bySMS), m)))
			m.MarkedAt = after(time.Second)
			write.Changed = []conversation.MessageRecord{m}
			return write
		}, nil},
		"a mark of no message": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			m := w.written(bySMS, "Hello.")
			m.MarkedAt = after(time.Second)
			write := joining(w.talk(t, bySMS))
			write.Changed = []conversation.MessageRecord{m}
			return write
		}, dynamo.ErrStale},
		"nothing new of a message": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			m := w.sent(bySMS, "Hello.")
			write := joining(w.write(t, joining(w.newThread(bySMS), m)))
			write.Changed = []conversation.MessageRecord{m}
			return write
		}, nil},

		"a refused message": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			m := w.sent(bySMS, "Hello.")
			write := joining(w.write(t, joining(w.newThread(bySMS), m)))
			write.Removed = []conversation.MessageID{m.MessageID}
			return write
		}, nil},
		"a refused message that was sent": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			m := w.sent(bySMS, "Hello.")
			m.SentAt = after(0)
			write := joining(w.write(t, joining(w.newThread(bySMS), m)))
			write.Removed = []conversation.MessageID{m.MessageID}
			return write
		}, dynamo.ErrStale},
		"a refused message that is the customer's": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			m := w.written(bySMS, "Hello.")
			write := joining(w.write(t, joining(w.newThread(bySMS), m)))
			write.Removed = []conversation.MessageID{m.MessageID}
			return write
		}, dynamo.ErrStale},
		"a refused message that isn't there": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			write := joining(w.talk(t, bySMS))
			write.Removed = []conversation.MessageID{w.sent(bySMS, "").MessageID}
			return write
		}, dynamo.ErrStale},

		"completes": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			return completing(w.talk(t, bySMS))
		}, nil},
		"completes a test": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			return completing(w.talk(t, asTest))
		}, nil},
		"completes what was written since": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			thread := w.talk(t, bySMS)
			w.write(t, joining(thread, w.written(bySMS, "Hello?")))
			return completing(thread)
		}, dynamo.ErrStale},
		"completes twice": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			return completing(w.write(t, completing(w.talk(t, bySMS))))
		}, dynamo.ErrStale},
		"completes a full one before another takes its place": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			thread := w.talk(t, bySMS)
			write := joining(w.newThread(bySMS), w.written(bySMS, "Hello?"))
			write.Replaces = thread.ThreadID
			w.write(t, write)
			return completing(thread)
		}, dynamo.ErrStale},
		"completes a full one after another has taken its place": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			thread := w.talk(t, bySMS)
			write := joining(w.newThread(bySMS), w.written(bySMS, "Hello?"))
			write.Replaces = thread.ThreadID
			w.write(t, write)
			return completing(w.thread(t, thread.ThreadID))
		}, nil},

		"takes a full one's place": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			write := joining(w.newThread(bySMS))
			write.Replaces = w.talk(t, bySMS).ThreadID
			return write
		}, nil},
		"takes the place of one that has completed": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			write := joining(w.newThread(bySMS), w.written(bySMS, "Hello?"))
			write.Replaces = w.write(t, completing(w.talk(t, bySMS))).ThreadID
			return write
		}, dynamo.ErrStale},
		"takes a place that is taken": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			full := w.talk(t, bySMS).ThreadID
			first, second := joining(w.newThread(bySMS)), joining(w.newThread(bySMS), w.written(bySMS, "Hello?"))
			first.Replaces, second.Replaces = full, full
			w.write(t, first)
			return second
		}, dynamo.ErrStale},
		"takes another customer's place": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			w.talk(t, bySMS)
			write := joining(w.newThread(bySMS))
			write.Replaces = w.talk(t, someoneElse).ThreadID
			return write
		}, dynamo.ErrStale},

		"the outcome of a call": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			write := completing(w.talk(t, bySMS))
			write.Calls = []dynamo.CallOutcome{{CallID: w.bring(t, completed, false).CallID, Evaluations: []conversation.Evaluation{{EvaluationID: "e"}}}}
			return write
		}, nil},
		"the outcome of no call": {func(t *testing.T, w ward) dynamo.ThreadWrite {
			write := completing(w.talk(t, bySMS))
			write.Calls = []dynamo.CallOutcome{{CallID: "none", Evaluations: []conversation.Evaluation{}}}
			return write
		}, conversation.ErrNotFound},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := stage.workspace(t)
			write := tt.write(t, w)
			before := w.everything(t)
			err := w.WriteThread(t.Context(), write)
			if tt.want == nil && err != nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Fatalf("WriteThread = %v, want %v", err, tt.want)
			}
			if err != nil {
				if diff := cmp.Diff(before, w.everything(t), ignored); diff != "" {
					t.Errorf("it changed (-before +after):\n%s", diff)
				}
				return
			}
			got := w.thread(t, write.Thread.ThreadID)
			want := write.Thread
			want.Version++
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("thread (-want +got):\n%s", diff)
			}
			for _, m := range write.New {
				if stored := w.message(t, m.MessageID); stored.ThreadID != got.ThreadID || stored.IsTest != got.IsTest {
					t.Errorf("message of thread %s, test %t; want %s, %t", stored.ThreadID, stored.IsTest, got.ThreadID, got.IsTest)
				}
			}
			// The very same write again, by somebody who doesn't know of it.
			again := w.everything(t)
			if err := w.WriteThread(t.Context(), write); err == nil {
				t.Error("again: no error, want one")
			}
			if diff := cmp.Diff(again, w.everything(t), ignored); diff != "" {
				t.Errorf("again: it changed (-before +after):\n%s", diff)
			}
		})
	}
}

// A thread is deleted with its pointer and its refused message, as if it had never been, unless
// somebody has written since.
func TestDeletedThread(t *testing.T) {
	stage := newWard(t)
	for name, tt := range map[string]struct {
		meanwhile func(*testing.T, ward, dynamo.ThreadWrite)
		want      error
	}{
		"nobody writes": {func(*testing.T, ward, dynamo.ThreadWrite) {}, nil},
		"a message joins": {func(t *testing.T, w ward, deletes dynamo.ThreadWrite) {
			w.write(t, joining(w.thread(t, deletes.Thread.ThreadID), w.written(bySMS, "Hello?")))
		}, dynamo.ErrStale},
		"it completes": {func(t *testing.T, w ward, deletes dynamo.ThreadWrite) {
			w.write(t, completing(w.thread(t, deletes.Thread.ThreadID)))
		}, dynamo.ErrStale},
		"a task waits": {func(t *testing.T, w ward, deletes dynamo.ThreadWrite) {
			if _, err := w.StoreThreadToken(t.Context(), w.ws(), deletes.Thread.ThreadID, "token", "1"); err != nil {
				t.Fatal(err)
			}
		}, dynamo.ErrStale},
		"another takes its place": {func(t *testing.T, w ward, deletes dynamo.ThreadWrite) {
			write := joining(w.newThread(bySMS), w.written(bySMS, "Hello?"))
			write.Replaces = deletes.Thread.ThreadID
			w.write(t, write)
		}, dynamo.ErrStale},
		"the text was sent": {func(t *testing.T, w ward, deletes dynamo.ThreadWrite) {
			if err := w.NoteSent(t.Context(), w.ws(), deletes.Removed[0], "", after(0)); err != nil {
				t.Fatal(err)
			}
		}, dynamo.ErrStale},
		"somebody deletes it, and begins another": {func(t *testing.T, w ward, deletes dynamo.ThreadWrite) {
			if err := w.WriteThread(t.Context(), deletes); err != nil {
				t.Fatal(err)
			}
			w.talk(t, bySMS)
		}, dynamo.ErrStale},
	} {
		t.Run(name, func(t *testing.T) {
			w := stage.workspace(t)
			empty := w.everything(t)
			m := w.sent(bySMS, "Your code is 42.")
			thread := w.write(t, joining(w.newThread(bySMS), m))
			thread.MessageCount--
			write := dynamo.ThreadWrite{Thread: thread, Removed: []conversation.MessageID{m.MessageID}, Delete: true}
			tt.meanwhile(t, w, write)
			before := w.everything(t)
			if err := w.WriteThread(t.Context(), write); !errors.Is(err, tt.want) {
				t.Fatalf("WriteThread = %v, want %v", err, tt.want)
			}
			want := before
			if tt.want == nil {
				want = empty
			}
			if diff := cmp.Diff(want, w.everything(t), ignored); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			if err := w.receive(t.Context(), bySMS, w.written(bySMS, "Hello?")); err != nil {
				t.Errorf("the customer writes: %v", err)
			}
		})
	}
}

func (w ward) openThread(t *testing.T, k dynamo.ThreadKey) conversation.ThreadID {
	t.Helper()
	thread, err := w.OpenThread(t.Context(), w.ws(), k)
	if err != nil {
		t.Fatal(err)
	}
	return thread.ThreadID
}

// What can't be meant is refused before anything is asked.
func TestWriteThreadThatCannotBe(t *testing.T) {
	w := newWard(t)
	claimed := completing(w.talk(t, bySMS))
	claimed.Thread.Claim = &conversation.Claim{ReplyID: "r", Text: "Hello.", At: after(0)}
	unmarked := completing(w.thread(t, claimed.Thread.ThreadID))
	unmarked.Thread.Unmarked = []conversation.Unanswered{{MessageID: "m", ArrivedAt: after(0)}}
	nameless := joining(w.newThread(someoneElse), w.written(someoneElse, "Hello."))
	nameless.New[0].ProviderMessageID = ""
	many := joining(w.newThread(someoneElse))
	for range 100 {
		many.New = append(many.New, w.sent(someoneElse, "Hello."))
	}
	before := w.everything(t)
	for name, write := range map[string]dynamo.ThreadWrite{
		"completes with a claim": claimed, "completes without a mark": unmarked,
		"a customer's message without the carrier's id": nameless, "too much at once": many,
	} {
		if err := w.WriteThread(t.Context(), write); err == nil || errors.Is(err, dynamo.ErrStale) || errors.Is(err, dynamo.ErrMessageExists) {
			t.Errorf("%s: %v, want an error of its own", name, err)
		}
	}
	if diff := cmp.Diff(before, w.everything(t), ignored); diff != "" {
		t.Errorf("they changed (-before +after):\n%s", diff)
	}
}

// What is read through the pointer, along a conversation's life.
func TestOpenThread(t *testing.T) {
	w := newWard(t)
	for _, k := range []dynamo.ThreadKey{bySMS, otherChannel, asTest, someoneElse} {
		if _, err := w.OpenThread(t.Context(), w.ws(), k); !errors.Is(err, conversation.ErrNotFound) {
			t.Errorf("%+v: OpenThread before any = %v, want ErrNotFound", k, err)
		}
		full := w.talk(t, k)
		if got := w.openThread(t, k); got != full.ThreadID {
			t.Errorf("%+v: open thread %s, want %s", k, got, full.ThreadID)
		}
		write := joining(w.newThread(k), w.written(k, "Hello?"))
		write.Replaces = full.ThreadID
		next := w.write(t, write)
		if got := w.openThread(t, k); got != next.ThreadID {
			t.Errorf("%+v: open thread %s, want the next, %s", k, got, next.ThreadID)
		}
		if full = w.thread(t, full.ThreadID); !full.Superseded || full.Version != 2 || !full.Open() {
			t.Errorf("%+v: the full one is %+v; want it open, superseded, in version 2", k, full)
		}
		w.write(t, completing(full))
		if got := w.openThread(t, k); got != next.ThreadID {
			t.Errorf("%+v: open thread %s after the full one has completed, want %s", k, got, next.ThreadID)
		}
		w.write(t, completing(next))
		if _, err := w.OpenThread(t.Context(), w.ws(), k); !errors.Is(err, conversation.ErrNotFound) {
			t.Errorf("%+v: OpenThread after all = %v, want ErrNotFound", k, err)
		}
	}
}

// A thread that completes, or is full, between the reading of the pointer and its own is not
// taken for the open one.
func TestOpenThreadRaces(t *testing.T) {
	for name, next := range map[string]bool{"it completes": false, "another takes its place": true} {
		t.Run(name, func(t *testing.T) {
			store, f := faultyStore(t)
			w := ward{Store: store, definition: newDefinition()}
			thread := w.talk(t, bySMS)
			change := completing(thread)
			if next {
				change = joining(w.newThread(bySMS), w.written(bySMS, "Hello?"))
				change.Replaces = thread.ThreadID
			}
			changed := false
			f.answer = func(operation string, body []byte, forward forward) (int, string) {
				status, answer := forward(body)
				if operation == "GetItem" && !changed {
					changed = true
					w.write(t, change)
				}
				return status, answer
			}
			got, err := w.OpenThread(t.Context(), w.ws(), bySMS)
			if next && (err != nil || got.ThreadID != change.Thread.ThreadID) || !next && !errors.Is(err, conversation.ErrNotFound) {
				t.Errorf("OpenThread = %s, %v; want the next one if there is one, else ErrNotFound", got.ThreadID, err)
			}
		})
	}
}

// What a message gets later, it gets once; the rest of it never changes.
func TestChangedMessages(t *testing.T) {
	w := newWard(t)
	in, out := w.written(bySMS, "Hello."), w.sent(bySMS, "Your code is 42.")
	thread := w.write(t, joining(w.newThread(bySMS), in, out))
	in.ThreadID, out.ThreadID = thread.ThreadID, thread.ThreadID
	for n := range 2 {
		first := conversation.MessageRecord{Message: in.Message, MarkedAt: after(time.Duration(n) * time.Second)}
		first.Content, first.OccurredAt, first.ProviderMessageID = "Another text.", after(time.Hour), "another"
		first.Reply = &conversation.Reply{Content: fmt.Sprint("Reply ", n), Timestamp: after(time.Duration(n) * time.Second)}
		second := conversation.MessageRecord{Message: out.Message, SentAt: after(time.Duration(n) * time.Minute)}
		second.ProviderMessageID = fmt.Sprint("carrier's ", n)
		thread = w.write(t, dynamo.ThreadWrite{Thread: thread, Until: deadline, Changed: []conversation.MessageRecord{first, second}})
	}
	in.MarkedAt, in.Reply = after(0), &conversation.Reply{Content: "Reply 0", Timestamp: after(0)}
	out.SentAt, out.ProviderMessageID = after(0), "carrier's 0"
	for _, want := range []conversation.MessageRecord{in, out} {
		if diff := cmp.Diff(want, w.message(t, want.MessageID)); diff != "" {
			t.Errorf("message (-want +got):\n%s", diff)
		}
	}
}

func TestNoteSent(t *testing.T) {
	w := newWard(t)
	in, out, unanswered := w.written(bySMS, "Hello."), w.sent(bySMS, "One."), w.sent(bySMS, "Two.")
	w.write(t, completing(w.write(t, joining(w.newThread(bySMS), in, out, unanswered)))) // a receipt may come after all else
	for _, step := range []struct {
		message    conversation.MessageID
		providerID string
		at         conversation.Time
		want       error
	}{
		{out.MessageID, "theirs", after(0), nil},
		{out.MessageID, "another", after(time.Minute), nil},
		{unanswered.MessageID, "", after(time.Minute), nil},
		{unanswered.MessageID, "late", conversation.Time{}, nil},
		{unanswered.MessageID, "", conversation.Time{}, nil},
		{in.MessageID, "theirs", after(0), conversation.ErrNotFound},
		{"none", "theirs", after(0), conversation.ErrNotFound},
	} {
		if err := w.NoteSent(t.Context(), w.ws(), step.message, step.providerID, step.at); !errors.Is(err, step.want) {
			t.Errorf("NoteSent(%s, %q) = %v, want %v", step.message, step.providerID, err, step.want)
		}
	}
	if got := w.message(t, out.MessageID); got.ProviderMessageID != "theirs" || got.SentAt != after(0) {
		t.Errorf("%q sent at %s, want what was noted first", got.ProviderMessageID, got.SentAt)
	}
	if got := w.message(t, unanswered.MessageID); got.ProviderMessageID != "late" || got.SentAt != after(time.Minute) {
		t.Errorf("%q sent at %s, want each as it was noted first", got.ProviderMessageID, got.SentAt)
	}
	if it := w.item(t, w.conversations, string(w.ws())+"#message#none"); it != nil {
		t.Errorf("a receipt made %v, want nothing", it)
	}
	if err := w.workspace(t).NoteSent(t.Context(), newWorkspace(), out.MessageID, "theirs", after(0)); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("NoteSent in another workspace = %v, want ErrNotFound", err)
	}
}

// One message five times at once is stored once, in one thread; different ones all are.
func TestReceivedAtOnce(t *testing.T) {
	stage := newWard(t)
	for name, same := range map[string]bool{"the same": true, "different ones": false} {
		for round := range 5 {
			w := stage.workspace(t)
			one := w.written(bySMS, "Hello.")
			var existed atomic.Int32
			stored := atOnce(5, func(int) bool {
				m := w.written(bySMS, "Hello.")
				if same {
					m.ProviderMessageID = one.ProviderMessageID
				}
				err := w.receive(t.Context(), bySMS, m)
				if errors.Is(err, dynamo.ErrMessageExists) {
					existed.Add(1)
				} else if err != nil {
					t.Errorf("%s: %v, want nil or ErrMessageExists", name, err)
				}
				return err == nil
			})
			want := map[bool]int{true: 1, false: 5}[same]
			threads, messages := w.threadsOf(t)
			if len(threads) != 1 || stored != want || int(existed.Load()) != 5-want ||
				threads[0].MessageCount != want || messages[threads[0].ThreadID] != want {
				t.Fatalf("%s, round %d: %d stored, %d existed, in %d threads %v; want %d in one", name, round, stored, existed.Load(), len(threads), messages, want)
			}
		}
	}
}

// A message that comes as its thread completes is in that thread or in the next, and each
// thread has as many messages as it says.
func TestCompletionRacesMessage(t *testing.T) {
	stage := newWard(t)
	joined := 0
	for round := range 40 {
		w := stage.workspace(t)
		thread := w.talk(t, bySMS)
		m := w.written(bySMS, "One more thing.")
		atOnce(2, func(n int) bool {
			if n == 0 {
				if err := w.WriteThread(t.Context(), completing(thread)); err != nil && !errors.Is(err, dynamo.ErrStale) {
					t.Errorf("complete: %v, want nil or ErrStale", err)
				}
				return true
			}
			err := w.WriteThread(t.Context(), joining(thread, m)) // as it read the thread before it completed
			if errors.Is(err, dynamo.ErrStale) {
				err = w.receive(t.Context(), bySMS, m)
			}
			if err != nil {
				t.Errorf("receive: %v, want nil", err)
			}
			return true
		})
		threads, messages := w.threadsOf(t)
		open := 0
		for _, one := range threads {
			if one.MessageCount != messages[one.ThreadID] {
				t.Fatalf("round %d: thread %s says %d messages, and has %d", round, one.ThreadID, one.MessageCount, messages[one.ThreadID])
			}
			if one.Open() {
				open++
			}
		}
		if first := w.thread(t, thread.ThreadID); first.Open() {
			joined++
		}
		if stored := w.message(t, m.MessageID); open != 1 || w.openThread(t, bySMS) != stored.ThreadID {
			t.Fatalf("round %d: %d open threads, the message in %s; want one, with the message", round, open, stored.ThreadID)
		}
	}
	t.Logf("the message won %d of 40 times", joined)
}

// STOP and START in any order of arrival: the latest one as they were written counts, and
// of two at the same time STOP.
func TestOptOutOrder(t *testing.T) {
	stage := newWard(t)
	for name, tt := range map[string]struct {
		written []dynamo.OptOut
		want    bool
	}{
		"STOP alone":                 {[]dynamo.OptOut{{Out: true, At: after(0)}}, true},
		"STOP, START":                {[]dynamo.OptOut{{Out: true, At: after(0)}, {Out: false, At: after(1e6)}}, false},
		"START, STOP":                {[]dynamo.OptOut{{Out: false, At: after(0)}, {Out: true, At: after(1e6)}}, true},
		"at once":                    {[]dynamo.OptOut{{Out: false, At: after(0)}, {Out: true, At: after(0)}}, true},
		"STOP, START, STOP":          {[]dynamo.OptOut{{Out: true, At: after(0)}, {Out: false, At: after(1e9)}, {Out: true, At: after(2e9)}}, true},
		"STOP, START, START at once": {[]dynamo.OptOut{{Out: true, At: after(0)}, {Out: false, At: after(1e9)}, {Out: false, At: after(1e9)}}, false},
	} {
		for _, order := range orders(len(tt.written)) {
			w := stage.workspace(t)
			for _, n := range order {
				err := func() error {
					thread := w.newThread(bySMS)
					if open, err := w.OpenThread(t.Context(), w.ws(), bySMS); err == nil {
						thread = open
					}
					write := joining(thread, w.written(bySMS, "a keyword"))
					write.OptOut = &tt.written[n]
					return w.WriteThread(t.Context(), write)
				}()
				if err != nil && !errors.Is(err, dynamo.ErrOldOptOut) {
					t.Errorf("%s in the order %v: %v", name, order, err)
				}
			}
			for _, k := range []dynamo.ThreadKey{bySMS, otherChannel, asTest, someoneElse} {
				got, err := w.OptedOut(t.Context(), w.ws(), k)
				if want := tt.want && k == bySMS; err != nil || got != want {
					t.Errorf("%s in the order %v: OptedOut(%+v) = %t, %v; want %t", name, order, k, got, err, want)
				}
			}
			if got, err := w.OptedOut(t.Context(), stage.ws(), bySMS); err != nil || got {
				t.Errorf("OptedOut in another workspace = %t, %v; want false", got, err)
			}
		}
	}
}

// orders are all orders of n things.
func orders(n int) [][]int {
	if n == 0 {
		return [][]int{{}}
	}
	var all [][]int
	for _, order := range orders(n - 1) {
		for at := range n {
			one := append([]int{}, order[:at]...)
			all = append(all, append(append(one, n-1), order[at:]...))
		}
	}
	return all
}

// The customer's item has the opt-outs beside what is known of the customer, and neither
// disturbs the other.
func TestCustomerWithOptOut(t *testing.T) {
	w := newWard(t)
	write := joining(w.newThread(someoneElse), w.written(someoneElse, "STOP"))
	write.OptOut = &dynamo.OptOut{Out: true, At: after(0)}
	w.write(t, write)
	first, err := w.NameAddress(t.Context(), w.ws(), someoneElse.Address, conversation.Customer{Name: "Ada"})
	if err != nil || first.CustomerID == "" || first.Phone != "" || first.Name != "Ada" {
		t.Errorf("NameAddress = %+v, %v; want an id, the name and no phone", first, err)
	}
	again, err := w.NameAddress(t.Context(), w.ws(), someoneElse.Address, conversation.Customer{})
	if err != nil || again != first {
		t.Errorf("again: %+v, %v; want %+v", again, err, first)
	}
	if out, err := w.OptedOut(t.Context(), w.ws(), someoneElse); err != nil || !out {
		t.Errorf("OptedOut = %t, %v; want true", out, err)
	}
}

// Of many follow-ups at once no more than the cap are counted, and one to a customer.
func TestDailyCapAtOnce(t *testing.T) {
	w := newWard(t)
	followUp := func(address string) error {
		k := dynamo.ThreadKey{Number: mainNumber, Address: address, Channel: conversation.SMS}
		write := joining(w.newThread(k), w.sent(k, "One more thing."))
		write.Cap = &dynamo.FollowUpCap{PerDay: 4, At: now}
		return w.WriteThread(t.Context(), write)
	}
	one := atOnce(3, func(int) bool { return followUp("+12025550100") == nil })
	all := atOnce(10, func(n int) bool {
		err := followUp(fmt.Sprintf("+120255501%02d", n+1))
		if err != nil && !errors.Is(err, dynamo.ErrDailyCap) {
			t.Errorf("error %v, want nil or ErrDailyCap", err)
		}
		return err == nil
	})
	if one != 1 || all != 3 {
		t.Errorf("%d to one customer, then %d to ten; want 1, 3", one, all)
	}
}

// An answer that is lost is not taken for somebody else's write: the SDK repeats the request
// under its token, and DynamoDB knows it.
func TestLostAnswerOfThreadWrite(t *testing.T) {
	for name, lost := range map[string]int{"once": 1, "six times": 6} {
		t.Run(name, func(t *testing.T) {
			store, f := faultyStore(t)
			definition := newDefinition()
			if err := store.Define(t.Context(), dynamo.Definition{}, definition, "1"); err != nil {
				t.Fatal(err)
			}
			w := ward{Store: store, definition: definition}
			asked := map[string]int{}
			f.answer = func(operation string, body []byte, forward forward) (int, string) {
				status, answer := forward(body)
				if operation != "TransactWriteItems" && operation != "UpdateItem" {
					return status, answer
				}
				if asked[operation]++; asked[operation] <= lost {
					return 500, serverFault
				}
				return status, answer
			}
			thread := w.talk(t, bySMS)
			if thread.Version != 1 || thread.MessageCount != 1 || asked["TransactWriteItems"] != lost+1 {
				t.Errorf("version %d, %d messages after %d requests; want 1, 1, %d", thread.Version, thread.MessageCount, asked["TransactWriteItems"], lost+1)
			}
			write := joining(thread, w.written(bySMS, "STOP"))
			write.OptOut, write.Cap = &dynamo.OptOut{Out: true, At: after(0)}, &dynamo.FollowUpCap{PerDay: 1, At: now}
			clear(asked)
			if thread = w.write(t, write); thread.Version != 2 {
				t.Errorf("version %d, want 2", thread.Version)
			}
			clear(asked)
			if thread = w.write(t, completing(thread)); thread.Open() || thread.Version != 3 {
				t.Errorf("version %d, open %t; want 3, completed", thread.Version, thread.Open())
			}
			thread = w.talk(t, otherChannel)
			clear(asked)
			if got, err := w.StoreThreadToken(t.Context(), w.ws(), thread.ThreadID, "token", "1"); err != nil || got.Token != "token" {
				t.Errorf("StoreThreadToken = %q, %v; want it stored", got.Token, err)
			}
		})
	}
}

// A transaction that meets another is tried again; what a condition says stays an answer.
func TestConflictAtTheThread(t *testing.T) {
	store, f := faultyStore(t)
	w := ward{Store: store, definition: newDefinition()}
	thread := w.talk(t, bySMS)
	for name, tt := range map[string]struct {
		answer string
		times  int
		want   func(error) bool
	}{
		"passes":             {transactionConflict, 3, func(err error) bool { return err == nil }},
		"lasts":              {transactionConflict, 100, func(err error) bool { return err != nil && !errors.Is(err, dynamo.ErrStale) }},
		"beside a condition": {conflictAndCondition, 100, func(err error) bool { return errors.Is(err, dynamo.ErrStale) }},
	} {
		asked := 0
		f.answer = func(operation string, body []byte, forward forward) (int, string) {
			if operation != "TransactWriteItems" {
				return forward(body)
			}
			if asked++; asked > tt.times {
				return forward(body)
			}
			return 400, tt.answer
		}
		if err := w.WriteThread(t.Context(), joining(w.thread(t, thread.ThreadID))); !tt.want(err) {
			t.Errorf("%s: WriteThread = %v", name, err)
		}
	}
}

// A long conversation is completed with its transcript, wherever that is.
func TestLargeTranscript(t *testing.T) {
	w := newWard(t)
	write := completing(w.talk(t, bySMS))
	write.Thread.Transcript = []conversation.Turn{{Role: conversation.RoleUser, Content: strings.Repeat("ä", 300<<10)}}
	write.Thread.Analysis = &conversation.Analysis{Summary: "Long."}
	got := w.write(t, write)
	if !cmp.Equal(got.Transcript, write.Thread.Transcript) || got.Analysis == nil {
		t.Error("the thread was not read back as it was written")
	}
	for _, blocks := range []conversation.Blocks{{conversation.BlockTranscript}, {conversation.BlockAnalysis}} {
		thread, err := w.Thread(t.Context(), w.ws(), got.ThreadID, blocks)
		if err != nil || (len(thread.Transcript) == 1) != blocks.Has(conversation.BlockTranscript) {
			t.Errorf("with %v: %d turns, %v", blocks, len(thread.Transcript), err)
		}
	}
	image := imageOf(t, w.item(t, w.conversations, string(w.ws())+"#thread#"+string(got.ThreadID)))
	without, isThread, err := dynamo.ThreadImage(image)
	if err != nil || !isThread || without.Transcript != nil || without.Analysis == nil {
		t.Errorf("ThreadImage = %d turns, %t, %v; want a thread without its transcript", len(without.Transcript), isThread, err)
	}
	whole, err := w.WholeThreadImage(t.Context(), image, conversation.AllBlocks())
	if err != nil || !cmp.Equal(whole, got) {
		t.Errorf("WholeThreadImage = %v, want the thread as it was written", err)
	}
}

// One workspace's conversation is nothing to another, even with the same number, customer
// and ids.
func TestConversationsAreAWorkspacesOwn(t *testing.T) {
	w := newWard(t)
	m := w.written(bySMS, "STOP")
	write := joining(w.newThread(bySMS), m)
	write.OptOut, write.Cap = &dynamo.OptOut{Out: true, At: after(0)}, &dynamo.FollowUpCap{PerDay: 1, At: now}
	w.write(t, write)
	before := w.everything(t)

	other := w.workspace(t)
	for name, err := range map[string]error{
		"ThreadRecord":  second(other.ThreadRecord(t.Context(), other.ws(), write.Thread.ThreadID)),
		"MessageRecord": second(other.MessageRecord(t.Context(), other.ws(), m.MessageID)),
		"OpenThread":    second(other.OpenThread(t.Context(), other.ws(), bySMS)),
		"Message":       second(other.Message(t.Context(), other.ws(), m.MessageID, nil)),
	} {
		if !errors.Is(err, conversation.ErrNotFound) {
			t.Errorf("%s in another workspace = %v, want ErrNotFound", name, err)
		}
	}
	theirs := write
	theirs.Thread.WorkspaceID, theirs.New = other.ws(), []conversation.MessageRecord{m} // which says the first one
	theirs.OptOut, theirs.MayWrite = nil, true
	other.write(t, theirs)
	if got := other.message(t, m.MessageID); got.WorkspaceID != other.ws() {
		t.Errorf("the message says workspace %s, want its thread's", got.WorkspaceID)
	}
	now := w.everything(t)
	for name, it := range before {
		if diff := cmp.Diff(it, now[name], ignored); diff != "" {
			t.Errorf("%s changed (-before +after):\n%s", name, diff)
		}
	}
}

func second[A any](_ A, err error) error { return err }

func TestStoreThreadToken(t *testing.T) {
	w := newWard(t)
	thread := w.talk(t, bySMS)
	const first, second, third = "2030-05-06T07:08:09.000Z#0000", "2030-05-06T07:08:09.000Z#0001", "2030-05-06T07:08:11.500Z#0000"
	for _, step := range []struct {
		token, attempt string
		want           string // the token that stays
		stale          bool
	}{
		{"b", second, "b", false},
		{"a", first, "b", true}, // an earlier attempt comes late
		{"b", second, "b", false},
		{"c", third, "c", false},
	} {
		before := w.thread(t, thread.ThreadID)
		got, err := w.StoreThreadToken(t.Context(), w.ws(), thread.ThreadID, step.token, step.attempt)
		if errors.Is(err, dynamo.ErrStale) != step.stale || !step.stale && (err != nil || got.ThreadID != thread.ThreadID || got.Token != step.token || got.Version != before.Version+1) {
			t.Errorf("StoreThreadToken(%s, %s) = %+v, %v; want stale: %t", step.token, step.attempt, got, err, step.stale)
		}
		if kept := w.thread(t, thread.ThreadID).Token; kept != step.want {
			t.Errorf("after %s of %s the token is %s, want %s", step.token, step.attempt, kept, step.want)
		}
	}
	// A write that doesn't know of the token can't take it away.
	if err := w.WriteThread(t.Context(), joining(thread, w.written(bySMS, "Hello?"))); !errors.Is(err, dynamo.ErrStale) {
		t.Errorf("a write over the token = %v, want ErrStale", err)
	}
	done := w.write(t, completing(w.thread(t, thread.ThreadID)))
	if done.Token != "" || done.TokenAt != "" {
		t.Errorf("completed with token %q at %q, want none", done.Token, done.TokenAt)
	}
	got, err := w.StoreThreadToken(t.Context(), w.ws(), thread.ThreadID, "d", third)
	if err != nil || got.Open() || got.Token != "" || w.thread(t, thread.ThreadID).Version != done.Version {
		t.Errorf("StoreThreadToken of a completed one = %+v, %v; want it as it is", got, err)
	}
	if _, err := w.StoreThreadToken(t.Context(), w.ws(), "none", "t", "1"); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("StoreThreadToken of none = %v, want ErrNotFound", err)
	}
}

func TestOverdueThreads(t *testing.T) {
	w := newWard(t)
	w.bring(t, queued, true) // a call is no thread
	var want []dynamo.OverdueThread
	for n := range 12 {
		k := dynamo.ThreadKey{Number: mainNumber, Address: fmt.Sprintf("+120255501%02d", n), Channel: conversation.SMS, Test: n%2 == 0}
		thread := w.talk(t, k)
		if n%4 == 3 {
			w.write(t, completing(thread))
		}
		until := now.Add(time.Duration(n%4-1) * time.Minute) // a minute ago, now, in a minute
		if err := w.PostponeThread(t.Context(), w.ws(), thread.ThreadID, until); err != nil {
			t.Fatal(err)
		}
		if n%4 == 0 {
			want = append(want, dynamo.OverdueThread{WorkspaceID: w.ws(), ThreadID: thread.ThreadID})
		}
	}
	got, err := w.OverdueThreads(t.Context(), now, 100)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b dynamo.OverdueThread) bool { return a.ThreadID < b.ThreadID })); diff != "" {
		t.Errorf("overdue (-want +got):\n%s", diff)
	}
	if few, err := w.OverdueThreads(t.Context(), now.Add(2*time.Hour), 1); err != nil || len(few) > 4 {
		t.Errorf("%d overdue, %v; want one a shard at most", len(few), err)
	}
	if err := w.PostponeThread(t.Context(), w.ws(), "none", now); err != nil || w.item(t, w.conversations, string(w.ws())+"#thread#none") != nil {
		t.Errorf("PostponeThread of none = %v, want nothing", err)
	}
	// A write sets its own deadline.
	thread := w.thread(t, want[0].ThreadID)
	w.write(t, joining(thread, w.written(bySMS, "Hello?")))
	if got := stringOf(w.item(t, w.conversations, string(w.ws())+"#thread#"+string(thread.ThreadID)), "open_until"); got != conversation.At(deadline).String() {
		t.Errorf("open until %s, want %s", got, conversation.At(deadline))
	}
}
