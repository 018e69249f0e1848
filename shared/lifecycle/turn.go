package lifecycle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"parley/shared/agent"
	"parley/shared/batch"
	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// Durations of a turn, before they are scaled.
const (
	// replyPause is how long after the customer's last message a turn is due, and how long a
	// message waits for its event at least.
	replyPause = 15 * time.Second
	// longestReplyPause is how long after the customer's first message it is due at the latest.
	longestReplyPause = 20 * time.Second
)

// Durations of a turn that are not scaled.
const (
	// latestMark is how long after its arrival a message has its event mark at the latest.
	latestMark = 28 * time.Second
	// thinking is how long the agent may take for a reply.
	thinking = 26 * time.Second
	// leadTimeout is how long a turn that is due is left to its leader: one that was there has
	// thought and sent by then, and one whose item is lost never comes. Between another item
	// and a leader that comes late, the claim decides.
	leadTimeout = thinking + carrier.PlaceTimeout
	// turnWait is how long an item waits for others: long enough to lead itself, if the leader
	// doesn't come. What isn't over by then is looked at again when the queue delivers the item
	// again.
	turnWait = leadTimeout + 2*time.Second
)

// TurnItem is what the queues hold for each message of a customer: the queue of turns an item
// that sees to the message's turn, the queue of marks one that only marks it.
type TurnItem struct {
	WorkspaceID conversation.WorkspaceID `json:"workspace_id"`
	ThreadID    conversation.ThreadID    `json:"thread_id"`
	MessageID   conversation.MessageID   `json:"message_id"`
	MarkOnly    bool                     `json:"mark_only"`
}

// Turns answers customers' messages. A turn is the customer's messages that have no answer
// yet, and one reply to them. The item of its first message, the leader, holds the turn when
// it is due; the others wait for it, and after leadTimeout any of them leads. Who leads claims
// the turn before it sends, and a claim is sent at most once: one that is left open is closed
// as if it had been sent.
//
// Each message's own item gives it the event mark, with which message.received happens: when
// its turn is over, not before 15 s (scaled) after its arrival, and 28 s after it at the
// latest, whatever the turn is doing. Items may come late, twice and at once. One that fails
// is reported, and comes again.
func (t Threads) Turns(ctx context.Context, items events.SQSEvent) (events.SQSEventResponse, error) {
	return batch.Each(ctx, "turn", items, func(ctx context.Context, body string) error {
		if err := t.see(ctx, body); err != nil {
			return fmt.Errorf("item %s: %w", body, err)
		}
		return nil
	}), nil
}

// see does what an item asks for.
func (t Threads) see(ctx context.Context, body string) error {
	var item TurnItem
	if err := json.Unmarshal([]byte(body), &item); err != nil {
		return fmt.Errorf("read item: %w", err)
	}
	if item.MarkOnly {
		return t.mark(ctx, item)
	}
	m, err := t.Store.MessageRecord(ctx, item.WorkspaceID, item.MessageID)
	if err != nil {
		return err
	}
	beside, stop := context.WithCancel(ctx)
	defer stop()
	late := make(chan error, 1)
	go func() {
		if t.waitUntil(beside, m.ArrivedAt.Add(latestMark)) != nil {
			late <- nil // the turn was over earlier
			return
		}
		late <- t.mark(ctx, item)
	}()
	err = t.turn(ctx, item)
	if err == nil {
		err = t.waitUntil(ctx, m.ArrivedAt.Add(t.Scale.Of(replyPause)))
	}
	stop()
	err = errors.Join(err, <-late)
	if err != nil {
		return err
	}
	return t.mark(ctx, item)
}

func (t Threads) waitUntil(ctx context.Context, when time.Time) error {
	left := when.Sub(t.Now())
	if left <= 0 {
		return ctx.Err()
	}
	return t.Wait(ctx, left)
}

// mark gives a message its event mark, once.
func (t Threads) mark(ctx context.Context, item TurnItem) error {
	thread, err := t.Store.ThreadRecord(ctx, item.WorkspaceID, item.ThreadID)
	if err != nil {
		return err
	}
	return t.markAll(ctx, thread, item.MessageID)
}

// markAll gives these messages of a thread their event marks, as far as they have none.
func (t Threads) markAll(ctx context.Context, thread conversation.ThreadRecord, messages ...conversation.MessageID) error {
	_, err := t.change(ctx, thread, func(thread conversation.ThreadRecord) (*dynamo.ThreadWrite, error) {
		var w dynamo.ThreadWrite
		for _, messageID := range messages {
			if isAmong(thread.Unmarked, messageID) {
				w.Changed = append(w.Changed, conversation.MessageRecord{
					Message: conversation.Message{MessageID: messageID}, MarkedAt: conversation.At(t.Now()),
				})
			}
		}
		if w.Changed == nil {
			return nil, nil
		}
		thread.Unmarked = without(thread.Unmarked, messages)
		w.Thread = thread
		return &w, nil
	})
	return err
}

var (
	// errBusy: somebody else is at the turn. The item comes again.
	errBusy = errors.New("the turn is not over yet")
	// errOtherTurn: it isn't the turn any more that was thought about.
	errOtherTurn = errors.New("the turn has changed")
)

// turn returns when the message's turn is over, and leads it if that is the message's to do, or
// nobody else has done it.
func (t Threads) turn(ctx context.Context, item TurnItem) error {
	patient := t.Now().Add(turnWait)
	for {
		thread, err := t.Store.ThreadRecord(ctx, item.WorkspaceID, item.ThreadID)
		if err != nil || !isAmong(thread.Unanswered, item.MessageID) {
			return err
		}
		pause := 500 * time.Millisecond
		now, due := t.Now(), t.due(thread)
		switch {
		case thread.Claim != nil && now.Before(thread.Claim.At.Add(minTurnTimeout)): // its reply is on its way
		case thread.Claim != nil:
			if err := t.closeClaim(ctx, thread); err != nil {
				return err
			}
			continue
		case thread.Unanswered[0].MessageID != item.MessageID && !now.After(due.Add(leadTimeout)): // another leads
		case now.Before(due):
			pause = due.Sub(now)
		default:
			if err := t.lead(ctx, thread); !errors.Is(err, errOtherTurn) {
				return err
			}
			continue
		}
		if now.After(patient) {
			return errBusy
		}
		if err := t.Wait(ctx, pause); err != nil {
			return err
		}
	}
}

// due is when the turn of a thread's unanswered messages is due.
func (t Threads) due(thread conversation.ThreadRecord) time.Time {
	last := thread.Unanswered[0].ArrivedAt
	for _, waiting := range thread.Unanswered {
		last = later(last, waiting.ArrivedAt)
	}
	due, latest := last.Add(t.Scale.Of(replyPause)), t.latest(thread)
	if latest.Before(due) {
		return latest
	}
	return due
}

// latest is when it is due though the customer goes on writing.
func (t Threads) latest(thread conversation.ThreadRecord) time.Time {
	return thread.Unanswered[0].ArrivedAt.Add(t.Scale.Of(longestReplyPause))
}

// lead does a turn: it thinks of a reply to all that is unanswered, claims the turn, sends
// the reply, and records it. errOtherTurn: nothing was written, and it is to be looked at
// again.
func (t Threads) lead(ctx context.Context, thread conversation.ThreadRecord) error {
	ws, assistant, err := t.Store.CallConfig(ctx, thread.WorkspaceID, thread.AssistantID)
	if err != nil {
		return err
	}
	covered := idsOf(thread.Unanswered)
	text, err := t.reply(ctx, ws, assistant, thread, covered)
	if err != nil {
		return err
	}
	if text == "" {
		return t.endTurn(ctx, thread, covered)
	}
	claim := conversation.Claim{Messages: covered, ReplyID: conversation.MessageID(conversation.NewID()), Text: fit(ctx, thread, text)}
	thread, claim, err = t.claim(ctx, thread, claim)
	if errors.Is(err, dynamo.ErrOptedOut) {
		return t.endTurn(ctx, thread, covered)
	}
	if err != nil {
		return err
	}
	carrierID, outcome, err := t.send(ctx, replyOf(thread, ws, claim, t.Now()), conversation.SourceInbound)
	if err != nil || outcome == sendRefused {
		slog.ErrorContext(ctx, "a turn ends without reply", "thread_id", thread.ThreadID, "outcome", outcome, "error", err)
		return t.drop(ctx, thread, claim)
	}
	return t.record(ctx, ws, thread, claim, carrierID)
}

// reply is what the assistant replies to the customer's messages of a turn; "": nothing. An
// agent that fails or takes too long has nothing to say.
func (t Threads) reply(ctx context.Context, ws conversation.Workspace, assistant conversation.AssistantConfig, thread conversation.ThreadRecord, covered []conversation.MessageID) (string, error) {
	by, ok := t.Carriers[thread.Carrier]
	if !ok {
		return "", fmt.Errorf("thread %s is on the carrier %q, which this stage doesn't have", thread.ThreadID, thread.Carrier)
	}
	optedOut, err := t.Store.OptedOut(ctx, thread.WorkspaceID, keyOf(thread))
	if err != nil || optedOut {
		return "", err
	}
	messages, err := t.Store.ThreadMessages(ctx, thread, covered...)
	if err != nil {
		return "", err
	}
	// What was said before, then what is to be answered, whenever the customer's clock says
	// that it was written.
	asked, help, talk := []conversation.MessageRecord{}, false, false
	said := slices.DeleteFunc(messages, func(m conversation.MessageRecord) bool {
		if !slices.Contains(covered, m.MessageID) {
			return false
		}
		asked = append(asked, m)
		return true
	})
	for _, m := range asked {
		word := by.Keyword(m.Content)
		help, talk = help || word == carrier.HelpWord, talk || word == ""
	}
	switch {
	case !talk && help:
		return ws.HelpText, nil
	case !talk || !assistant.Enabled:
		return "", nil
	}
	text, err := t.think(ctx, cmp.Or(assistant.Model, ws.Model), t.conversationOf(ws, assistant, thread, append(said, asked...)))
	if err != nil {
		slog.ErrorContext(ctx, "the agent has no reply", "workspace_id", ws.WorkspaceID, "thread_id", thread.ThreadID, "error", err)
		return "", nil
	}
	if strings.TrimSpace(text) == "" {
		slog.WarnContext(ctx, "the agent replies nothing", "workspace_id", ws.WorkspaceID, "thread_id", thread.ThreadID)
		return "", nil
	}
	return text, nil
}

func (t Threads) think(ctx context.Context, model string, said agent.Conversation) (string, error) {
	thinker, err := t.Agent(model)
	if err != nil {
		return "", err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_ = t.Wait(ctx, thinking) // it ends early when there is a reply
		stop()
	}()
	return thinker.Reply(ctx, said)
}

// claim writes down that the reply is about to be sent. It stands though others have written
// to the thread while the agent thought, unless the customer had more to say in the time
// that a turn waits for it: errOtherTurn, and errOtherTurn if somebody else has claimed.
func (t Threads) claim(ctx context.Context, thread conversation.ThreadRecord, claim conversation.Claim) (conversation.ThreadRecord, conversation.Claim, error) {
	attempt := func(thread conversation.ThreadRecord) (conversation.ThreadRecord, error) {
		return t.change(ctx, thread, func(thread conversation.ThreadRecord) (*dynamo.ThreadWrite, error) {
			if thread.Claim != nil && thread.Claim.ReplyID == claim.ReplyID {
				claim = *thread.Claim
				return nil, nil
			}
			if !t.sameTurn(thread, claim.Messages) {
				return nil, errOtherTurn
			}
			claim.At = conversation.At(t.Now())
			mine := claim
			thread.Claim, thread.Turns = &mine, thread.Turns+1
			return &dynamo.ThreadWrite{Thread: thread, MayWrite: true}, nil
		})
	}
	written, err := attempt(thread)
	if err == nil || errors.Is(err, errOtherTurn) || errors.Is(err, dynamo.ErrOptedOut) || errors.Is(err, dynamo.ErrStale) {
		return written, claim, err
	}
	// Perhaps it was written, and the answer lost. Whoever else finds it would never send it.
	now, readErr := t.Store.ThreadRecord(ctx, thread.WorkspaceID, thread.ThreadID)
	if readErr != nil {
		return thread, claim, errors.Join(err, readErr)
	}
	written, err = attempt(now)
	return written, claim, err
}

// sameTurn tells whether a turn about these messages may be claimed, or ended, still.
func (t Threads) sameTurn(thread conversation.ThreadRecord, covered []conversation.MessageID) bool {
	for _, messageID := range covered {
		if !isAmong(thread.Unanswered, messageID) {
			return false
		}
	}
	return thread.Claim == nil && (len(thread.Unanswered) == len(covered) || !t.Now().Before(t.latest(thread)))
}

// endTurn ends a turn about these messages without a reply.
func (t Threads) endTurn(ctx context.Context, thread conversation.ThreadRecord, covered []conversation.MessageID) error {
	_, err := t.change(ctx, thread, func(thread conversation.ThreadRecord) (*dynamo.ThreadWrite, error) {
		if !t.sameTurn(thread, covered) {
			return nil, errOtherTurn
		}
		thread.Unanswered, thread.Turns = without(thread.Unanswered, covered), thread.Turns+1
		return t.over(thread, covered), nil
	})
	return err
}

// drop ends a turn whose reply was refused.
func (t Threads) drop(ctx context.Context, thread conversation.ThreadRecord, claim conversation.Claim) error {
	_, err := t.change(ctx, thread, func(thread conversation.ThreadRecord) (*dynamo.ThreadWrite, error) {
		if thread.Claim == nil || thread.Claim.ReplyID != claim.ReplyID {
			return nil, nil
		}
		thread.Unanswered, thread.Claim = without(thread.Unanswered, claim.Messages), nil
		return t.over(thread, claim.Messages), nil
	})
	return err
}

// closeClaim closes a claim that nobody is at any more: its reply may have been sent, so it
// is listed, without the carrier's id, and is never sent again.
func (t Threads) closeClaim(ctx context.Context, thread conversation.ThreadRecord) error {
	ws, _, err := t.Store.CallConfig(ctx, thread.WorkspaceID, thread.AssistantID)
	if err != nil {
		return err
	}
	return t.record(ctx, ws, thread, *thread.Claim, "")
}

// record ends a turn whose reply was sent: the reply is listed as a message, and the turn's
// last message carries it. carrierID may be unknown. If somebody has closed the claim
// meanwhile, the message gets the carrier's id.
func (t Threads) record(ctx context.Context, ws conversation.Workspace, thread conversation.ThreadRecord, claim conversation.Claim, carrierID string) error {
	_, err := t.change(ctx, thread, func(thread conversation.ThreadRecord) (*dynamo.ThreadWrite, error) {
		if thread.Claim == nil || thread.Claim.ReplyID != claim.ReplyID {
			return nil, dynamo.ErrMessageExists
		}
		m := replyOf(thread, ws, claim, t.Now())
		m.ProviderMessageID, m.SentAt = carrierID, conversation.At(t.Now())
		list(&thread, m)
		thread.Unanswered, thread.Claim = without(thread.Unanswered, claim.Messages), nil
		w := t.over(thread, claim.Messages)
		w.New = []conversation.MessageRecord{m}
		w.Changed[0].Reply = &conversation.Reply{Content: m.Content, ProviderMessageID: carrierID, Timestamp: m.OccurredAt}
		return w, nil
	})
	if errors.Is(err, dynamo.ErrMessageExists) {
		return t.Store.NoteSent(ctx, thread.WorkspaceID, claim.ReplyID, carrierID, conversation.Time{})
	}
	return err
}

// markedAtOnce bounds how many messages the end of a turn marks: DynamoDB writes 100 items at
// once. The others are marked by their own items.
const markedAtOnce = 50

// over is the write with which the turn of these messages is over. The first of those that
// it changes is the turn's last message. It marks those that have been here for as long as
// their event waits; the others' own items mark them.
func (t Threads) over(thread conversation.ThreadRecord, covered []conversation.MessageID) *dynamo.ThreadWrite {
	w := dynamo.ThreadWrite{}
	now := conversation.At(t.Now())
	var marked []conversation.MessageID
	for _, messageID := range slices.Backward(covered) {
		m := conversation.MessageRecord{Message: conversation.Message{MessageID: messageID}}
		i := slices.IndexFunc(thread.Unmarked, func(w conversation.Unanswered) bool { return w.MessageID == messageID })
		if i >= 0 && len(marked) < markedAtOnce && !now.Before(thread.Unmarked[i].ArrivedAt.Add(t.Scale.Of(replyPause))) {
			m.MarkedAt = now
			marked = append(marked, messageID)
		}
		if len(w.Changed) == 0 || !m.MarkedAt.IsZero() {
			w.Changed = append(w.Changed, m)
		}
	}
	thread.Unmarked = without(thread.Unmarked, marked)
	w.Thread = thread
	return &w
}

// replyOf is the message that a claim's reply is.
func replyOf(thread conversation.ThreadRecord, ws conversation.Workspace, claim conversation.Claim, at time.Time) conversation.MessageRecord {
	return newMessage(thread, ws, conversation.Message{
		MessageID: claim.ReplyID, Direction: conversation.Outbound, Source: conversation.SourceInbound,
		OccurredAt: claim.At, Content: claim.Text,
	}, at)
}

func isAmong(waiting []conversation.Unanswered, messageID conversation.MessageID) bool {
	return slices.ContainsFunc(waiting, func(w conversation.Unanswered) bool { return w.MessageID == messageID })
}

func without(waiting []conversation.Unanswered, messages []conversation.MessageID) []conversation.Unanswered {
	return slices.DeleteFunc(slices.Clone(waiting), func(w conversation.Unanswered) bool { return slices.Contains(messages, w.MessageID) })
}

func idsOf(waiting []conversation.Unanswered) []conversation.MessageID {
	var messages []conversation.MessageID
	for _, w := range waiting {
		messages = append(messages, w.MessageID)
	}
	return messages
}
