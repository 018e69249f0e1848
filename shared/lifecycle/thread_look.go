package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// maxLooks bounds how often one Advance looks: each look leads to the next state, and up to
// settledAtOnce messages whose turn has died take one.
const (
	maxLooks      = 32
	settledAtOnce = 40
)

// Advance does all that is due for a conversation, and says what its state machine does
// next. It may be done by several at once: whoever is slower looks again. One that is gone is
// done. An error says that it should be tried again.
func (t Threads) Advance(ctx context.Context, ws conversation.WorkspaceID, threadID conversation.ThreadID) (Step, error) {
	for range maxLooks {
		var step Step
		err := t.again(ctx, func() error {
			thread, err := t.Store.ThreadRecord(ctx, ws, threadID)
			switch {
			case errors.Is(err, conversation.ErrNotFound):
				step, err = Step{Next: StepDone}, nil
			case err == nil:
				step, err = t.look(ctx, thread)
			}
			return err
		})
		if err != nil {
			return Step{}, fmt.Errorf("advance thread %s: %w", threadID, err)
		}
		if step != (Step{}) {
			return step, nil
		}
	}
	return Step{}, fmt.Errorf("advance thread %s: it changed %d times meanwhile", threadID, maxLooks)
}

// look does what is due in the conversation's state. The zero Step means that it has
// changed, and is to be looked at again.
func (t Threads) look(ctx context.Context, thread conversation.ThreadRecord) (Step, error) {
	switch {
	case !thread.Open():
		return Step{Next: StepDone}, nil
	case thread.Attempt != nil && thread.Attempt.Status == conversation.FollowUpPending:
		return t.settleFollowUp(ctx, thread)
	case isUnderWay(thread):
		return t.settleTurn(ctx, thread)
	}
	optedOut, err := t.Store.OptedOut(ctx, thread.WorkspaceID, keyOf(thread))
	if err != nil {
		return Step{}, err
	}
	ws, assistant, err := t.Store.CallConfig(ctx, thread.WorkspaceID, thread.AssistantID)
	if err != nil {
		return Step{}, err
	}
	now := t.Now()
	quietAt := thread.LastArrivalAt.Add(t.Scale.Inactivity(ws))
	switch attempt := thread.Attempt; {
	case optedOut: // it is over at once
	case !awaited(thread) && now.Before(attempt.AnswerBy.Time):
		return StepAnswer.in(attempt.AnswerBy.Sub(now)), nil
	case now.Before(quietAt):
		return StepWait.in(quietAt.Sub(now)), nil
	}
	return t.finish(ctx, quiet{thread: thread, ws: ws, assistant: assistant, optedOut: optedOut})
}

// settleTurn ends a turn that has died: its reply may have been sent, and is listed without
// the carrier's id; what it didn't answer stays unanswered; its messages' events happen. A
// turn that may be alive is waited for.
func (t Threads) settleTurn(ctx context.Context, thread conversation.ThreadRecord) (Step, error) {
	now := conversation.At(t.Now())
	died := now.Add(-t.Scale.Turn())
	unanswered, unmarked := arrivedBy(died, thread.Unanswered), arrivedBy(died, thread.Unmarked)
	switch {
	case thread.Claim != nil && !thread.Claim.At.After(died):
		return Step{}, t.closeClaim(ctx, thread)
	case thread.Claim != nil || unanswered+unmarked == 0:
		return StepWait.in(t.Scale.Of(turnPause)), nil
	}
	var write dynamo.ThreadWrite
	for _, u := range thread.Unmarked[:min(unmarked, settledAtOnce)] {
		write.Changed = append(write.Changed, conversation.MessageRecord{
			Message: conversation.Message{MessageID: u.MessageID}, MarkedAt: now,
		})
	}
	if unanswered > 0 {
		slog.ErrorContext(ctx, "a turn has died", "thread_id", thread.ThreadID, "messages", unanswered)
		thread.Turns++
	}
	thread.Unanswered, thread.Unmarked = thread.Unanswered[unanswered:], thread.Unmarked[len(write.Changed):]
	write.Thread = thread
	return Step{}, t.write(ctx, write)
}

// arrivedBy counts the messages, which are in the order of their arrival, that were there
// by a moment.
func arrivedBy(at time.Time, messages []conversation.Unanswered) int {
	later := slices.IndexFunc(messages, func(u conversation.Unanswered) bool { return u.ArrivedAt.After(at) })
	if later < 0 {
		return len(messages)
	}
	return later
}

// quiet is a conversation in which nothing is under way.
type quiet struct {
	thread    conversation.ThreadRecord
	ws        conversation.Workspace
	assistant conversation.AssistantConfig
	optedOut  bool
	messages  []conversation.MessageRecord // all of them, by time
	grading
}

var errIndexLags = errors.New("the index doesn't show all messages")

// finish grades a quiet conversation, and completes it or sends a follow-up.
func (t Threads) finish(ctx context.Context, q quiet) (Step, error) {
	var err error
	q.messages, err = t.messages(ctx, q.thread)
	if errors.Is(err, errIndexLags) && t.Now().Before(q.thread.LastArrivalAt.Add(t.Scale.Inactivity(q.ws)+indexTimeout)) {
		return StepWait.in(indexPause), nil
	}
	if err != nil {
		return Step{}, err
	}
	now := t.Now()
	for _, m := range slices.DeleteFunc(slices.Clone(q.messages), isSent) {
		if left := m.ArrivedAt.Add(sendingTime).Sub(now); left > 0 {
			return StepWait.in(left), nil
		}
		if refused, err := t.isRefused(ctx, m); err != nil {
			return Step{}, err
		} else if refused {
			return Step{}, t.recordFollowUp(ctx, q.thread, m, sendRefused, "")
		}
	}
	q.grading = t.grade(ctx, q)
	reason, followUp := Decide(t.facts(q))
	if followUp {
		return t.followUp(ctx, q)
	}
	return t.complete(ctx, q, reason)
}

// messages reads all of the thread's messages. Their index lags a moment behind them. One
// that shows more than the thread has, as it was read, shows that it was written since:
// ErrStale.
func (t Threads) messages(ctx context.Context, thread conversation.ThreadRecord) ([]conversation.MessageRecord, error) {
	shown := 0
	for range 3 {
		messages, err := t.Store.ThreadMessages(ctx, thread)
		switch shown = len(messages); {
		case err != nil || shown == thread.MessageCount:
			return messages, err
		case shown > thread.MessageCount:
			return nil, dynamo.ErrStale
		}
		if err := t.Wait(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%d of %d messages: %w", shown, thread.MessageCount, errIndexLags)
}

// isSent tells of any message but a text that is perhaps on its way, or whose sender has died.
func isSent(m conversation.MessageRecord) bool {
	return m.Direction == conversation.Inbound || !m.SentAt.IsZero()
}

// facts are what Decide goes by.
func (t Threads) facts(q quiet) Facts {
	now := t.Now()
	return Facts{
		OptedOut: q.optedOut, CustomerSpoke: t.spoke(q.messages),
		Evaluated:     len(enabled(q.assistant)) > 0 || len(q.evaluations) > 0,
		GradingFailed: q.failed,
		Failed:        slices.ContainsFunc(q.evaluations, func(e conversation.Evaluation) bool { return e.Result == conversation.Fail }),
		Recoverable:   len(toRecover(q.assistant, q.evaluations)) > 0,
		Attempt:       q.thread.Attempt, Answered: answered(q.thread),
		Sending: sending(q.ws, q.assistant, q.thread.Customer, inWindow(q.thread.Channel, q.thread.LastCustomerAt.Time, now), now),
	}
}

// complete completes a conversation for a reason, in one write on the version that was
// graded. The calls whose follow-up it has learn in the same write what that made of their
// evaluations, and a text whose sending has died counts as sent.
func (t Threads) complete(ctx context.Context, q quiet, reason conversation.CloseReason) (Step, error) {
	calls, err := t.outcomes(ctx, q)
	if err != nil {
		return Step{}, err
	}
	done := q.thread
	done.CloseReason, done.CompletedAt = reason, conversation.At(t.Now())
	done.Transcript = turnsOf(q.messages)
	if n := len(q.messages); n > 0 { // a text that was refused may have been the first or the last
		done.StartedAt, done.LastMessageAt = q.messages[0].OccurredAt, q.messages[n-1].OccurredAt
	}
	done.Analysis, done.Evaluations, done.AnchorMessageID = q.analysis, shown(reason, q.evaluations), q.anchor
	done.FollowUps = followUpsOf(q.thread, reason)
	done.Attempt = nil
	if total, err := textPrice(q.ws, done.Channel, done.MessageCount); err == nil {
		done.Costs = &conversation.ThreadCosts{Currency: q.ws.Currency, Total: total, ChargedMessageCount: done.MessageCount}
	} else {
		slog.ErrorContext(ctx, "a part of the thread is left out", "part", "costs", "thread_id", done.ThreadID, "error", err)
	}
	write := dynamo.ThreadWrite{Thread: done, Calls: calls}
	for _, m := range q.messages {
		if !isSent(m) && len(write.Changed) < settledAtOnce {
			write.Changed = append(write.Changed, conversation.MessageRecord{
				Message: conversation.Message{MessageID: m.MessageID}, SentAt: done.CompletedAt,
			})
		}
	}
	if err := t.write(ctx, write); err != nil {
		return Step{}, err
	}
	return Step{Next: StepDone}, nil
}
