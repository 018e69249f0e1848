package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"parley/shared/conversation"
)

// A thread is one item, and every change of a conversation is one transaction around it:
// who changes a thread reads it, decides on what was read, and writes it whole, together
// with the messages, the opt-out, the caps and the calls that change with it. The condition
// is that the thread still is in the version that was read, and open, which holds whatever
// the decision checked. ErrStale: read again, decide again.

// Why a conversation is not written, beside ErrStale.
var (
	ErrMessageExists = errors.New("the message is stored already")
	ErrOptedOut      = errors.New("the customer has opted out of the channel")
	ErrOldOptOut     = errors.New("the customer has opted in or out later than that")
	ErrDailyCap      = errors.New("as many follow-ups were sent today as may be")
)

// ThreadKey is what at most one open thread of a workspace has.
type ThreadKey struct {
	Number  string // the workspace's own, E.164
	Address string // the customer's: E.164, or a user id of WhatsApp
	Channel conversation.Channel
	Test    bool
}

func keyOf(t conversation.ThreadRecord) ThreadKey {
	return ThreadKey{t.Number, t.Address, t.Channel, t.IsTest}
}

// openThreadID is the key of the pointer to the open thread.
func openThreadID(ws conversation.WorkspaceID, k ThreadKey) string {
	names := []string{"open_thread", k.Number, k.Address, string(k.Channel)}
	if k.Test {
		names = append(names, "test")
	}
	return list(ws, names...)
}

// ThreadWrite is one change of a conversation, all of it or nothing. DynamoDB writes 100
// items at once: the thread, the one that it takes over from, its pointer, an opt-out and the
// caps take up to six of them, an inbound message two, every other message or call one.
type ThreadWrite struct {
	// Thread is as it shall be, but for its version, which is the one that was read; 0: it is
	// new. With CompletedAt it completes, and forgets its token.
	Thread conversation.ThreadRecord
	// Until is when the sweep looks at the thread, while it is open.
	Until time.Time
	// Replaces is the open thread, full by now, in whose place this new one takes messages.
	Replaces conversation.ThreadID
	// New are messages that must not exist; an inbound one not by its carrier's id either.
	// They become the thread's: its workspace, id, and whether it is a test.
	New []conversation.MessageRecord
	// Changed are messages that get what comes later, each of it once: the event mark, when
	// it was sent, the carrier's id, the reply. What is there already stays; the rest of the
	// record is not written.
	Changed []conversation.MessageRecord
	// Removed are messages that were to be sent, and were refused.
	Removed []conversation.MessageID
	// Delete takes away the thread, which is open and has nothing left, with its pointer.
	Delete bool
	// OptOut is what the customer asks for; not together with MayWrite.
	OptOut *OptOut
	// MayWrite asks that the customer has not opted out of the thread's channel.
	MayWrite bool
	// Cap counts a follow-up, unless as many as may be were sent that day.
	Cap *FollowUpCap
	// Calls are the calls whose follow-up is in the thread.
	Calls []CallOutcome
}

// WriteThread makes the change. The errors are ErrMessageExists, then ErrOptedOut,
// ErrOldOptOut, ErrDailyCap, ErrStale: the first of those that hold.
func (s *Store) WriteThread(ctx context.Context, w ThreadWrite) error {
	var t transaction
	s.writeThread(ctx, &t, w)
	s.writePointer(&t, w)
	s.writeMessages(&t, w)
	s.writeOptOut(&t, w)
	s.countFollowUp(&t, w)
	s.writeOutcomes(&t, w)
	err := firstOf(t.commit(ctx, s.db), ErrMessageExists, ErrOptedOut, ErrOldOptOut, ErrDailyCap, ErrStale)
	return wrap(err, "write thread %s", w.Thread.ThreadID)
}

var (
	version      = expression.Name(versionAttribute)
	isOpenThread = expression.Name("completed_at").AttributeNotExists()
)

func (s *Store) writeThread(ctx context.Context, t *transaction, w ThreadWrite) {
	thread := w.Thread
	asRead := absent
	if thread.Version > 0 {
		asRead = version.Equal(expression.Value(thread.Version)).And(isOpenThread)
	}
	pk := id(thread.WorkspaceID, kindThread, thread.ThreadID)
	if w.Delete {
		t.delete(s.table(Conversations), pk, asRead, ErrStale)
		return
	}
	if !thread.Open() {
		thread.Token, thread.TokenAt = "", ""
		if thread.Claim != nil || len(thread.Unmarked) > 0 {
			t.note(fmt.Errorf("complete it: a reply is about to be sent, or %d messages have no mark", len(thread.Unmarked)))
		}
	}
	thread.Version++
	it := t.encode(thread)
	it[PartitionKey] = text(pk)
	switch {
	case thread.Open():
		openAs(it, kindThread, thread.ThreadID, w.Until)
	case !thread.IsTest:
		listAs(it, thread.WorkspaceID, thread.AssistantID, threadsList, timed(thread.CompletedAt, thread.ThreadID))
	}
	t.note(s.offload(ctx, it))
	t.put(s.table(Conversations), it, asRead, ErrStale)
}

// writePointer keeps the pointer: to the open thread, from its first write until it
// completes or is deleted, or until it is full and another takes its place. Then the full one
// is told, in a new version, that the pointer is no longer its own to remove.
func (s *Store) writePointer(t *transaction, w ThreadWrite) {
	table, pk := s.table(Conversations), openThreadID(w.Thread.WorkspaceID, keyOf(w.Thread))
	pointer := item{PartitionKey: text(pk), "thread_id": text(string(w.Thread.ThreadID))}
	names := func(thread conversation.ThreadID) expression.ConditionBuilder {
		return expression.Name("thread_id").Equal(expression.Value(thread))
	}
	switch isNew := w.Thread.Version == 0; {
	case isNew && w.Replaces == "":
		t.put(table, pointer, absent, ErrStale)
	case isNew:
		t.put(table, pointer, names(w.Replaces), ErrStale)
		t.update(table, id(w.Thread.WorkspaceID, kindThread, w.Replaces),
			expression.Set(expression.Name("superseded"), expression.Value(true)).Add(version, expression.Value(1)),
			exists, ErrStale)
	case (w.Delete || !w.Thread.Open()) && !w.Thread.Superseded:
		t.delete(table, pk, names(w.Thread.ThreadID), ErrStale)
	}
}

// StoreThreadToken notes the token of the task that waits for an answer in the thread,
// unless a later attempt's is there, and returns the thread. attempt sorts by when it
// began. A thread that has completed is returned as it is: nothing is left to wait for.
// Like every change of a thread this one counts up its version.
func (s *Store) StoreThreadToken(ctx context.Context, ws conversation.WorkspaceID, threadID conversation.ThreadID, token, attempt string) (conversation.ThreadRecord, error) {
	it, err := s.update(ctx, Conversations, id(ws, kindThread, threadID),
		setToken(token, attempt).Add(version, expression.Value(1)), noLaterToken(attempt).And(isOpenThread))
	if isConditionFailed(err) {
		stored, err := s.ThreadRecord(ctx, ws, threadID)
		if err == nil && stored.Open() {
			err = ErrStale
		}
		return stored, wrap(err, "store token of thread %s", threadID)
	}
	if err != nil {
		return conversation.ThreadRecord{}, wrap(err, "store token of thread %s", threadID)
	}
	record, err := decode[conversation.ThreadRecord](it)
	return record, wrap(err, "store token of thread %s", threadID)
}

// PostponeThread gives an open thread until then before the sweep looks again.
func (s *Store) PostponeThread(ctx context.Context, ws conversation.WorkspaceID, threadID conversation.ThreadID, until time.Time) error {
	return wrap(s.postpone(ctx, id(ws, kindThread, threadID), until), "postpone thread %s", threadID)
}

// OverdueThread names a thread past its deadline.
type OverdueThread struct {
	WorkspaceID conversation.WorkspaceID
	ThreadID    conversation.ThreadID
}

// OverdueThreads lists threads past their deadline, the longest overdue first, up to limit
// a shard.
func (s *Store) OverdueThreads(ctx context.Context, now time.Time, limit int) ([]OverdueThread, error) {
	overdue, err := s.overdue(ctx, kindThread, now, limit)
	var threads []OverdueThread
	for _, pk := range overdue {
		ws, threadID := ownerOf[conversation.ThreadID](pk)
		threads = append(threads, OverdueThread{ws, threadID})
	}
	return threads, wrap(err, "list overdue threads")
}
