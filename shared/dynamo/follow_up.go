package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"parley/shared/conversation"
)

// FollowUpCap bounds the follow-ups of a UTC day: so many of a workspace, and one to a
// customer. Those of tests are counted apart.
type FollowUpCap struct {
	PerDay int
	At     time.Time
}

const followUpsPerCustomer = 1

func (s *Store) countFollowUp(t *transaction, w ThreadWrite) {
	if w.Cap == nil {
		return
	}
	names := []string{"follow_ups", w.Cap.At.UTC().Format(time.DateOnly)}
	if w.Thread.IsTest {
		names = append(names, "test")
	}
	sent, expires := expression.Name("sent"), expression.Value(w.Cap.At.Add(48*time.Hour).Unix())
	for pk, most := range map[string]int{
		list(w.Thread.WorkspaceID, names...):                           w.Cap.PerDay,
		list(w.Thread.WorkspaceID, append(names, w.Thread.Address)...): followUpsPerCustomer,
	} {
		hasRoom := sent.LessThan(expression.Value(most))
		if most > 0 {
			hasRoom = hasRoom.Or(sent.AttributeNotExists())
		}
		t.update(s.table(Counters), pk, expression.Add(sent, expression.Value(1)).Set(expression.Name(TTL), expires), hasRoom, ErrDailyCap)
	}
}

// CallOutcome is what a thread makes of the evaluations of a call whose follow-up it has.
type CallOutcome struct {
	CallID      conversation.CallID
	Evaluations []conversation.Evaluation
}

func (s *Store) writeOutcomes(t *transaction, w ThreadWrite) {
	for _, outcome := range w.Calls {
		fields := t.encode(struct {
			Evaluations []conversation.Evaluation `json:"evaluations"`
		}{outcome.Evaluations})
		t.update(s.table(Conversations), id(w.Thread.WorkspaceID, kindCall, outcome.CallID), setAll(fields),
			exists, wrap(conversation.ErrNotFound, "call %s", outcome.CallID))
	}
}

func isPending(f conversation.FollowUp) bool { return f.Status == conversation.FollowUpPending }

// A call has one follow-up at most.
var followUpStatus = expression.Name("follow_ups[0].status")

// ResolveFollowUp says what became of the follow-up that a completed call waits for, with
// which nothing more is to be done for the call. ErrStale: it is known already, from a
// receipt, or because the answer to this very write was lost.
func (s *Store) ResolveFollowUp(ctx context.Context, call StoredCall, followUps []conversation.FollowUp) error {
	fields, err := encode(struct {
		FollowUps []conversation.FollowUp `json:"follow_ups"`
	}{followUps})
	if err != nil {
		return wrap(err, "resolve the follow-up of call %s", call.CallID)
	}
	return s.change(ctx, call.CallRecord, "resolve the follow-up of", removeOpen(setAll(fields)),
		followUpStatus.Equal(expression.Value(conversation.FollowUpPending)))
}

// ForwardFollowUp moves a call's follow-up on, as a carrier's receipt says: from pending, or
// ambiguous, to sent, and from any of these to delivered or failed. Any other move is
// ErrStale, and so is one of a call without a follow-up. What isn't failed was sent at the
// moment at, if none is known.
func (s *Store) ForwardFollowUp(ctx context.Context, ws conversation.WorkspaceID, callID conversation.CallID, to conversation.FollowUpStatus, at conversation.Time) error {
	from := followUpStatus.In(expression.Value(conversation.FollowUpPending), expression.Value(conversation.FollowUpAmbiguous))
	switch to {
	case conversation.FollowUpSent:
	case conversation.FollowUpDelivered, conversation.FollowUpFailed:
		from = from.Or(followUpStatus.Equal(expression.Value(conversation.FollowUpSent)))
	default:
		return fmt.Errorf("forward the follow-up of call %s: no receipt says %q", callID, to)
	}
	change := expression.Set(followUpStatus, expression.Value(to))
	if to != conversation.FollowUpFailed {
		sent := expression.Name("follow_ups[0].sent_at")
		change = change.Set(sent, sent.IfNotExists(expression.Value(at.String())))
	}
	call := conversation.CallRecord{Call: conversation.Call{WorkspaceID: ws, CallID: callID}}
	return s.change(ctx, call, "forward the follow-up of", removeOpen(change), from)
}
