package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// ThreadTask is the input of the tasks of a conversation's state machine. The one that waits
// for an answer has a Token.
type ThreadTask struct {
	WorkspaceID conversation.WorkspaceID `json:"workspace_id"`
	ThreadID    conversation.ThreadID    `json:"thread_id"`
	Token       string                   `json:"token"`
	EnteredAt   conversation.Time        `json:"entered_at"`  // when the state was entered
	RetryCount  int                      `json:"retry_count"` // of this state
}

// Step is what a conversation's state machine does next.
type Step struct {
	Next    NextStep `json:"next"`
	Seconds int      `json:"seconds"` // of wait and answer
}

// NextStep is what the state machine's choice goes by.
type NextStep string

const (
	StepWait   NextStep = "wait"   // for a while, and look again
	StepAnswer NextStep = "answer" // wait until the follow-up is answered, or for so long, and look again
	StepDone   NextStep = "done"   // the conversation is completed, or gone
)

// in is a step that takes d, rounded up to whole seconds, one at least: then d is over.
func (next NextStep) in(d time.Duration) Step {
	return Step{next, max(1, int(math.Ceil(d.Seconds())))}
}

// Run does a task. One without a token looks at the conversation and says what comes next.
// One with a token ends when the token is answered: by start-lifecycles when the stream
// shows what it waits for, or here if that has already happened.
func (t Threads) Run(m Machine) func(context.Context, ThreadTask) (Step, error) {
	return func(ctx context.Context, task ThreadTask) (Step, error) {
		if task.Token == "" {
			return t.Advance(ctx, task.WorkspaceID, task.ThreadID)
		}
		return Step{}, t.await(ctx, m, task)
	}
}

func (t Threads) await(ctx context.Context, m Machine, task ThreadTask) error {
	attempt := fmt.Sprintf("%s#%04d", task.EnteredAt, task.RetryCount)
	thread, err := t.Store.StoreThreadToken(ctx, task.WorkspaceID, task.ThreadID, task.Token, attempt)
	if errors.Is(err, dynamo.ErrStale) {
		return nil // a later attempt waits
	}
	isGone := errors.Is(err, conversation.ErrNotFound)
	if err != nil && !isGone || !awaited(thread) {
		return err
	}
	return m.wake(ctx, task.Token)
}

// awaited tells whether what a task with a token waits for has happened, or can't happen
// any more.
func awaited(t conversation.ThreadRecord) bool {
	return !t.Open() || t.Attempt == nil || t.Attempt.Status == conversation.FollowUpFailed || answered(t)
}

// answered tells whether the customer has written since the follow-up. Who claims one
// forgets when the customer wrote last, and every message of theirs notes it anew, so that
// the order of the writes decides, and no clock.
func answered(t conversation.ThreadRecord) bool {
	return t.Attempt != nil && !t.LastCustomerAt.IsZero()
}
