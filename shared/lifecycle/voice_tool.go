package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// sendingTime is how long a text that is stored, and not yet known to be sent, may be on its
// way, however the stage is scaled: whoever stored it sends it at once, which takes
// carrier.PlaceTimeout.
const sendingTime = time.Minute

// text sends the customer the text that the assistant wants them to have, while it talks to
// them. The text is stored before it is sent, so it is sent once, however often the carrier
// reports that it is wanted; a customer who has opted out gets none.
func (c *Calls) text(ctx context.Context, call conversation.CallRecord, report carrier.Callback) error {
	customer, err := c.customer(ctx, call)
	if err != nil {
		return err
	}
	if customer == nil || customer.Phone == "" {
		logUnsent(ctx, call, errors.New("the customer's number isn't known"))
		return nil
	}
	workspace, assistant, err := c.Store.CallConfig(ctx, call.WorkspaceID, call.AssistantID)
	if err != nil {
		return err
	}
	assistant.AssistantID, assistant.AssistantName = call.AssistantID, call.AssistantName
	now := c.Now()
	key := dynamo.ThreadKey{Number: call.Number, Address: customer.Phone, Channel: conversation.SMS, Test: call.IsTest}
	seed := newThread(workspace, assistant, call.Carrier, key, *customer, conversation.At(report.At))
	own := conversation.Message{
		MessageID: conversation.DerivedMessageID(call.WorkspaceID, "tool "+string(call.CallID)+" "+report.ToolID, call.StartedAt),
		Direction: conversation.Outbound, Source: conversation.SourceVoiceTool,
		OccurredAt: conversation.At(report.At), Content: fit(ctx, seed, report.Text),
	}
	var m conversation.MessageRecord
	_, err = c.join(ctx, seed, func(thread *conversation.ThreadRecord) dynamo.ThreadWrite {
		thread.Customer = customer
		m = newMessage(*thread, workspace, own, now)
		m.CallID = call.CallID
		list(thread, m)
		return dynamo.ThreadWrite{New: []conversation.MessageRecord{m}, MayWrite: true}
	})
	switch {
	case errors.Is(err, dynamo.ErrMessageExists):
		return c.textAgain(ctx, call.WorkspaceID, own.MessageID)
	case errors.Is(err, dynamo.ErrOptedOut):
		logUnsent(ctx, call, err)
		return nil
	case err != nil:
		return err
	}
	carrierID, outcome, err := c.send(ctx, m, conversation.SourceVoiceTool)
	if err != nil || outcome == sendRefused {
		logUnsent(ctx, call, cmp.Or(err, carrier.ErrRefused))
		return c.takeOut(ctx, m)
	}
	return c.Store.NoteSent(ctx, m.WorkspaceID, m.MessageID, carrierID, conversation.At(c.Now()))
}

// textAgain is for a text that is stored already. It is never sent again: nobody knows
// whether whoever stored it has sent it, so in the end it counts as sent.
func (c *Calls) textAgain(ctx context.Context, ws conversation.WorkspaceID, messageID conversation.MessageID) error {
	m, err := c.Store.MessageRecord(ctx, ws, messageID)
	switch {
	case err != nil:
		return err
	case !m.SentAt.IsZero():
		return nil
	case c.Now().Before(m.ArrivedAt.Add(sendingTime)):
		return fmt.Errorf("message %s is being sent", messageID) // the carrier asks again
	}
	return c.Store.NoteSent(ctx, ws, messageID, "", conversation.At(c.Now()))
}

// takeOut takes a text that was refused out of its conversation, and with it the conversation,
// if that has nothing else: it never happened.
func (p Parts) takeOut(ctx context.Context, m conversation.MessageRecord) error {
	thread, err := p.Store.ThreadRecord(ctx, m.WorkspaceID, m.ThreadID)
	if err != nil {
		return err
	}
	_, err = p.change(ctx, thread, func(thread conversation.ThreadRecord) (*dynamo.ThreadWrite, error) {
		unlist(&thread, m)
		return &dynamo.ThreadWrite{
			Thread: thread, Removed: []conversation.MessageID{m.MessageID},
			Delete: thread.MessageCount == 0 && thread.Attempt == nil, // a call's follow-up may have been refused before
		}, nil
	})
	return err
}

// logUnsent says that the customer doesn't get what the assistant has perhaps told them of.
func logUnsent(ctx context.Context, call conversation.CallRecord, err error) {
	slog.WarnContext(ctx, "the assistant's text is not sent", "workspace_id", call.WorkspaceID, "call_id", call.CallID, "error", err)
}
