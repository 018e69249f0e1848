package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"parley/shared/agent"
	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// A text conversation is written whole: read, changed, and written on condition that nobody
// has written it since. again repeats that while others are faster; change does it for a
// thread, and join for whoever has a message to add, whether or not the customer's
// conversation is open.

// maxWrites bounds how often one change of a conversation is tried.
const maxWrites = 16

// again does what reads a conversation and writes it, and repeats it as long as it returns
// ErrStale: somebody else has written meanwhile. It gives up with that error.
func (p Parts) again(ctx context.Context, do func() error) error {
	var err error
	for attempt := range maxWrites {
		if attempt > 0 {
			ceiling := min(10*time.Millisecond<<attempt, 400*time.Millisecond)
			if err := p.Wait(ctx, rand.N(ceiling)); err != nil {
				return err
			}
		}
		if err = do(); !errors.Is(err, dynamo.ErrStale) {
			return err
		}
	}
	return fmt.Errorf("others were faster %d times: %w", maxWrites, err)
}

// change changes a thread, as it was read. decide says what is written, nil for nothing; it
// is asked again, about the thread as it is by then, when somebody else has written
// meanwhile, and its error ends it. change returns the thread as it left it.
func (p Parts) change(ctx context.Context, thread conversation.ThreadRecord, decide func(conversation.ThreadRecord) (*dynamo.ThreadWrite, error)) (conversation.ThreadRecord, error) {
	known := true
	err := p.again(ctx, func() error {
		if !known {
			now, err := p.Store.ThreadRecord(ctx, thread.WorkspaceID, thread.ThreadID)
			if err != nil {
				return err
			}
			thread = now
		}
		known = false
		w, err := decide(thread)
		if err != nil || w == nil {
			return err
		}
		if err := p.write(ctx, *w); err != nil {
			return err
		}
		thread = w.Thread
		thread.Version++
		return nil
	})
	return thread, err
}

// join finds the open conversation between the number and the address of seed, on its channel
// (a test's is one of its own), or begins one as seed says. add changes it and returns what is
// written with it; what is left out of that, join fills in: the thread itself, its deadline,
// and the full thread that a new one takes over from. add may be called again, with the
// conversation as it is by then. join returns the conversation as it was written. Nothing was
// if there is an error: ErrMessageExists, ErrOptedOut, ErrOldOptOut and ErrDailyCap mean what
// they mean to WriteThread.
func (p Parts) join(ctx context.Context, seed conversation.ThreadRecord, add func(*conversation.ThreadRecord) dynamo.ThreadWrite) (conversation.ThreadRecord, error) {
	key := keyOf(seed)
	var thread conversation.ThreadRecord
	err := p.again(ctx, func() error {
		var full conversation.ThreadID
		var err error
		thread, err = p.Store.OpenThread(ctx, seed.WorkspaceID, key)
		switch {
		case errors.Is(err, conversation.ErrNotFound):
			thread = seed
		case err != nil:
			return err
		case thread.Full():
			thread, full = seed, thread.ThreadID
		}
		write := add(&thread)
		write.Thread, write.Replaces = thread, full
		if err := p.write(ctx, write); err != nil {
			return err
		}
		thread.Version++
		return nil
	})
	return thread, err
}

// write writes a conversation with its deadline.
func (p Parts) write(ctx context.Context, w dynamo.ThreadWrite) error {
	w.Until = p.until(w.Thread)
	return p.Store.WriteThread(ctx, w)
}

// until is when the sweep looks at an open conversation: a while after all that it waits for
// should have happened.
func (p Parts) until(t conversation.ThreadRecord) time.Time {
	soon := p.Now().Add(p.Scale.Of(patience))
	switch {
	case isUnderWay(t):
		return soon
	case !awaited(t):
		return t.Attempt.AnswerBy.Add(p.Scale.Of(patience))
	}
	return soon.Add(p.Scale.Of(conversation.DefaultInactivity))
}

// isUnderWay tells whether a turn or the sending of a follow-up goes on in a conversation.
func isUnderWay(t conversation.ThreadRecord) bool {
	return t.Claim != nil || len(t.Unanswered) > 0 || len(t.Unmarked) > 0 ||
		t.Attempt != nil && t.Attempt.Status == conversation.FollowUpPending
}

// keyOf says whose conversation a thread is.
func keyOf(t conversation.ThreadRecord) dynamo.ThreadKey {
	return dynamo.ThreadKey{Number: t.Number, Address: t.Address, Channel: t.Channel, Test: t.IsTest}
}

// newThread is a conversation that begins: join's seed.
func newThread(ws conversation.Workspace, assistant conversation.AssistantConfig, carrierName string, key dynamo.ThreadKey, customer conversation.Customer, at conversation.Time) conversation.ThreadRecord {
	return conversation.ThreadRecord{
		Thread: conversation.Thread{
			ThreadID: conversation.ThreadID(conversation.NewID()), WorkspaceID: ws.WorkspaceID,
			AssistantID: assistant.AssistantID, AssistantName: assistant.AssistantName,
			Channel: key.Channel, StartedAt: at, LastMessageAt: at, Customer: &customer,
		},
		Carrier: carrierName, Number: key.Number, Address: key.Address, IsTest: key.Test,
	}
}

// newMessage is a message of a conversation. own is what it has for itself: id, direction,
// source, text, media, when it was written, and the carrier's id, if it has one. In a test
// its source is test.
func newMessage(t conversation.ThreadRecord, ws conversation.Workspace, own conversation.Message, arrived time.Time) conversation.MessageRecord {
	own.WorkspaceID, own.AssistantID, own.AssistantName = t.WorkspaceID, t.AssistantID, t.AssistantName
	own.Channel, own.ThreadID, own.Customer, own.Costs = t.Channel, t.ThreadID, t.Customer, messageCosts(ws, t.Channel)
	if t.IsTest {
		own.Source = conversation.SourceTest
	}
	return conversation.MessageRecord{
		Message: own, Carrier: t.Carrier, Number: t.Number, Address: t.Address, IsTest: t.IsTest,
		ArrivedAt: conversation.At(arrived),
	}
}

// list counts a message. It may have been written before those that are there.
func list(t *conversation.ThreadRecord, m conversation.MessageRecord) {
	t.MessageCount++
	t.TextBytes += len(m.Content)
	if m.OccurredAt.Before(t.StartedAt.Time) {
		t.StartedAt = m.OccurredAt
	}
	t.LastMessageAt = later(t.LastMessageAt, m.OccurredAt)
	t.LastArrivalAt = later(t.LastArrivalAt, m.ArrivedAt)
}

// unlist takes back that a message was counted, which was refused.
func unlist(t *conversation.ThreadRecord, m conversation.MessageRecord) {
	t.MessageCount--
	t.TextBytes -= len(m.Content)
}

func later(a, b conversation.Time) conversation.Time {
	if b.After(a.Time) {
		return b
	}
	return a
}

// sendOutcome is what became of a text that a carrier was asked to send.
type sendOutcome string

const (
	sendAccepted sendOutcome = "accepted" // it has the carrier's id
	sendRefused  sendOutcome = "refused"  // it was not sent and never will be
	sendUnknown  sendOutcome = "unknown"  // it may have been sent: no answer
)

// send asks the message's carrier, once, to send it, and waits for at most
// carrier.PlaceTimeout. source says what the text is, also in a test. What became of it is
// never an error: an error says that nobody was asked, as this stage has no such carrier.
// Whoever sends has written down before that it will, and asks no second time.
func (p Parts) send(ctx context.Context, m conversation.MessageRecord, source conversation.Source) (carrierID string, outcome sendOutcome, err error) {
	by, ok := p.Carriers[m.Carrier]
	if !ok {
		return "", "", fmt.Errorf("message %s is on the carrier %q, which this stage doesn't have", m.MessageID, m.Carrier)
	}
	asking, stop := context.WithTimeout(ctx, carrier.PlaceTimeout)
	defer stop()
	carrierID, err = by.SendMessage(asking, carrier.Text{
		WorkspaceID: m.WorkspaceID, MessageID: m.MessageID, Channel: m.Channel, From: m.Number, To: m.Address,
		Content: m.Content, Source: source, Test: m.IsTest,
		CallbackURL: p.BaseURL + "/carriers/" + m.Carrier + "/" + string(m.WorkspaceID),
	})
	switch {
	case errors.Is(err, carrier.ErrRefused):
		outcome = sendRefused
	case err != nil:
		outcome = sendUnknown
	default:
		return carrierID, sendAccepted, nil
	}
	slog.ErrorContext(ctx, "send a text", "workspace_id", m.WorkspaceID, "thread_id", m.ThreadID, "message_id", m.MessageID, "outcome", outcome, "error", err)
	return "", outcome, nil
}

// fit cuts a text to what the channel carries in one message, by characters.
func fit(ctx context.Context, t conversation.ThreadRecord, text string) string {
	fitting := carrier.Fit(t.Channel, text)
	if len(fitting) < len(text) {
		slog.WarnContext(ctx, "a text is cut", "thread_id", t.ThreadID, "channel", t.Channel, "bytes", len(text), "kept", len(fitting))
	}
	return fitting
}

// textPrice is what n messages of a channel cost. Amounts have four decimals.
func textPrice(ws conversation.Workspace, channel conversation.Channel, n int) (string, error) {
	each := ws.Prices.SMS
	if channel == conversation.WhatsApp {
		each = ws.Prices.WhatsApp
	}
	price, err := decimal.NewFromString(each)
	if err != nil {
		return "", fmt.Errorf("price of a message by %s: %w", channel, err)
	}
	return price.Mul(decimal.NewFromInt(int64(n))).StringFixed(4), nil
}

// messageCosts is what one message costs; none if the workspace's price can't be read.
func messageCosts(ws conversation.Workspace, channel conversation.Channel) *conversation.MessageCosts {
	total, err := textPrice(ws, channel, 1)
	if err != nil {
		slog.Error("a part of the message is left out", "part", "costs", "workspace_id", ws.WorkspaceID, "error", err)
		return nil
	}
	return &conversation.MessageCosts{Currency: ws.Currency, Total: total}
}

// conversationOf is what an agent is told of a conversation: what these messages say, in this
// order, and the assistant's prompt with its variables filled in.
func (p Parts) conversationOf(ws conversation.Workspace, assistant conversation.AssistantConfig, t conversation.ThreadRecord, messages []conversation.MessageRecord) agent.Conversation {
	who := conversation.CallRecord{Call: conversation.Call{Customer: t.Customer}, Number: t.Number} // no call, and so no call's variables
	return agent.Conversation{
		Prompt: conversation.Render(assistant.Prompt, variables(ws, who, p.Now())),
		Turns:  turnsOf(p.worded(messages)),
	}
}

// worded are the messages that say something to be answered or judged: neither media alone
// nor a customer's word to the carrier (STOP and its kin).
func (p Parts) worded(messages []conversation.MessageRecord) []conversation.MessageRecord {
	return slices.DeleteFunc(slices.Clone(messages), func(m conversation.MessageRecord) bool {
		by, ok := p.Carriers[m.Carrier]
		isKeyword := ok && m.Direction == conversation.Inbound && by.Keyword(m.Content) != ""
		return strings.TrimSpace(m.Content) == "" || isKeyword
	})
}

// turnsOf is the transcript of messages: a turn for each, empty for media alone.
func turnsOf(messages []conversation.MessageRecord) []conversation.Turn {
	turns := []conversation.Turn{}
	for _, m := range messages {
		role := conversation.RoleAssistant
		if m.Direction == conversation.Inbound {
			role = conversation.RoleUser
		}
		turns = append(turns, conversation.Turn{Role: role, Content: m.Content})
	}
	return turns
}
