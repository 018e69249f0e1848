package dynamo_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// talks is what is stored of one customer's conversations, as the conditions of their
// writes say it in one place.
type talks struct {
	threads  map[conversation.ThreadID]conversation.ThreadRecord
	pointer  conversation.ThreadID // to the open thread; "": none
	messages map[conversation.MessageID]conversation.MessageRecord
	carriers map[string]bool // the carrier's ids
	optOut   *dynamo.OptOut
	counted  int // follow-ups of the day
}

// write is what WriteThread should answer, and does what it should do.
func (m *talks) write(w dynamo.ThreadWrite) error {
	isNew, stored := w.Thread.Version == 0, m.threads[w.Thread.ThreadID]
	for _, one := range w.New {
		if _, exists := m.messages[one.MessageID]; exists || one.Direction == conversation.Inbound && m.carriers[one.ProviderMessageID] {
			return dynamo.ErrMessageExists
		}
	}
	if w.MayWrite && m.optOut != nil && m.optOut.Out {
		return dynamo.ErrOptedOut
	}
	if w.OptOut != nil && m.optOut != nil {
		newer := w.OptOut.At.Compare(m.optOut.At.Time)
		if newer < 0 || newer == 0 && !w.OptOut.Out {
			return dynamo.ErrOldOptOut
		}
	}
	if w.Cap != nil && (m.counted >= w.Cap.PerDay || m.counted == 1) { // one to a customer
		return dynamo.ErrDailyCap
	}
	replaced := m.threads[w.Replaces]
	switch {
	case stored.Version != w.Thread.Version, stored.Version > 0 && !stored.Open():
		return dynamo.ErrStale
	case isNew && m.pointer != w.Replaces:
		return dynamo.ErrStale
	case isNew && w.Replaces != "" && (!replaced.Open() || replaced.Superseded):
		return dynamo.ErrStale
	case (w.Delete || !w.Thread.Open()) && !w.Thread.Superseded && m.pointer != w.Thread.ThreadID:
		return dynamo.ErrStale
	}
	for _, id := range w.Removed {
		if one, exists := m.messages[id]; !exists || one.Direction == conversation.Inbound || !one.SentAt.IsZero() {
			return dynamo.ErrStale
		}
	}

	thread := w.Thread
	thread.Version++
	m.threads[thread.ThreadID] = thread
	if w.Delete {
		delete(m.threads, thread.ThreadID)
	}
	switch {
	case isNew:
		m.pointer = thread.ThreadID
	case (w.Delete || !thread.Open()) && !thread.Superseded:
		m.pointer = ""
	}
	if w.Replaces != "" {
		replaced.Superseded = true
		replaced.Version++
		m.threads[w.Replaces] = replaced
	}
	for _, one := range w.New {
		one.ThreadID = thread.ThreadID
		m.messages[one.MessageID] = one
		if one.Direction == conversation.Inbound {
			m.carriers[one.ProviderMessageID] = true
		}
	}
	for _, id := range w.Removed {
		delete(m.messages, id)
	}
	if w.OptOut != nil {
		m.optOut = w.OptOut
	}
	if w.Cap != nil {
		m.counted++
	}
	return nil
}

// Random writes, most of them decided on what isn't so any more, are answered as the
// conditions say, and leave what they say.
func TestThreadWritesByProperty(t *testing.T) {
	stage := newWard(t)
	rapid.Check(t, func(rt *rapid.T) {
		w := stage
		w.definition = newDefinition()
		model := talks{
			threads: map[conversation.ThreadID]conversation.ThreadRecord{}, messages: map[conversation.MessageID]conversation.MessageRecord{},
			carriers: map[string]bool{},
		}
		read := []conversation.ThreadRecord{w.newThread(bySMS), w.newThread(bySMS)} // what anybody has ever read
		var known []conversation.MessageID
		for n := range rapid.IntRange(1, 10).Draw(rt, "writes") {
			likely := func(label string, of int) bool { return rapid.IntRange(1, of).Draw(rt, label) == 1 }
			base := len(read) - 1 // the latest, more often than not
			if likely("an earlier one", 3) {
				base = rapid.IntRange(0, len(read)-1).Draw(rt, "which")
			}
			var messages []conversation.MessageRecord
			if likely("a message", 2) {
				one := w.written(bySMS, fmt.Sprint("message ", n))
				one.ProviderMessageID = fmt.Sprint("theirs ", rapid.IntRange(1, 6).Draw(rt, "the carrier's id"))
				messages = append(messages, one)
			}
			if likely("a message of ours", 3) {
				one := w.sent(bySMS, fmt.Sprint("message ", n))
				if likely("sent", 2) {
					one.SentAt = after(0)
				}
				if len(known) > 0 && likely("that exists", 4) {
					one.MessageID = rapid.SampledFrom(known).Draw(rt, "which message")
				}
				messages = append(messages, one)
			}
			write := joining(read[base], messages...)
			write.Thread.Unmarked = nil
			switch {
			case write.Thread.Version > 0 && likely("completes", 4):
				write = completing(write.Thread)
				write.New = messages
			case write.Thread.Version > 0 && len(messages) == 0:
				write.Delete = likely("deletes", 4)
			}
			if write.Thread.Version == 0 && write.Thread.ThreadID != model.pointer && likely("replaces", 2) {
				write.Replaces = model.pointer
			}
			if len(known) > 0 && likely("removes", 5) {
				id := rapid.SampledFrom(known).Draw(rt, "which to remove")
				if len(messages) == 0 || messages[len(messages)-1].MessageID != id {
					write.Removed = []conversation.MessageID{id}
				}
			}
			switch rapid.IntRange(1, 5).Draw(rt, "consent") {
			case 1:
				write.MayWrite = true
			case 2:
				at := after(time.Duration(rapid.IntRange(0, 3).Draw(rt, "at")) * time.Second)
				write.OptOut = &dynamo.OptOut{Out: rapid.Bool().Draw(rt, "out"), At: at}
			}
			if likely("a follow-up", 5) {
				write.Cap = &dynamo.FollowUpCap{PerDay: rapid.IntRange(0, 2).Draw(rt, "cap"), At: now}
			}

			want := model.write(write)
			if err := w.WriteThread(t.Context(), write); !errors.Is(err, want) || want == nil && err != nil {
				rt.Fatalf("write %d: %v, want %v", n, err, want)
			}
			if want == nil {
				for _, m := range write.New {
					known = append(known, m.MessageID)
				}
				if !write.Delete {
					read = append(read, model.threads[write.Thread.ThreadID])
				}
				if likely("someone begins anew", 4) {
					read = append(read, w.newThread(bySMS))
				}
			}
		}

		for id, want := range model.threads {
			got, err := w.ThreadRecord(t.Context(), w.ws(), id)
			if err != nil {
				rt.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Errorf("thread (-want +got):\n%s", diff)
			}
			messages, err := w.ThreadMessages(t.Context(), want)
			if err != nil {
				rt.Fatal(err)
			}
			stored := map[conversation.MessageID]conversation.MessageRecord{}
			for _, m := range messages {
				stored[m.MessageID] = m
			}
			for id, m := range model.messages {
				if _, here := stored[id]; here != (m.ThreadID == want.ThreadID) {
					rt.Errorf("message %s is in thread %s: %t, want %t", id, want.ThreadID, here, !here)
				}
				delete(stored, id)
			}
			if len(stored) > 0 {
				rt.Errorf("thread %s has messages that it should not: %v", want.ThreadID, stored)
			}
		}
		open, err := w.OpenThread(t.Context(), w.ws(), bySMS)
		if open.ThreadID != model.pointer || errors.Is(err, conversation.ErrNotFound) != (model.pointer == "") {
			rt.Errorf("open thread %q, %v; want %q", open.ThreadID, err, model.pointer)
		}
		out, err := w.OptedOut(t.Context(), w.ws(), bySMS)
		if want := model.optOut != nil && model.optOut.Out; out != want || err != nil {
			rt.Errorf("opted out: %t, %v; want %t", out, err, want)
		}
	})
}
