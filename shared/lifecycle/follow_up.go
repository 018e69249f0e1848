package lifecycle

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"parley/shared/agent"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// A follow-up is claimed before it is sent, with the version of the conversation that was
// graded, and recorded when it is known what became of it. It is sent once: a claim that is
// found later is never sent again. A conversation's own is listed when it is recorded; a
// call's is listed with its claim, as it may open the conversation that it is in.

// maxFollowedUp is how many calls, the latest, a conversation's end is written to: they are
// completed together with it. A customer gets one follow-up a day.
const maxFollowedUp = 50

// errNoText: the agent wrote nothing.
var errNoText = errors.New("the follow-up has no text")

// sending is what a follow-up to a customer depends on.
func sending(ws conversation.Workspace, assistant conversation.AssistantConfig, customer *conversation.Customer, window bool, now time.Time) Sending {
	return Sending{
		Policy: ws.FollowUps, Phone: customer != nil && customer.Phone != "", Enabled: assistant.Enabled, Window: window,
		Quiet: ws.QuietHours, Timezone: ws.Timezone, Now: now,
	}
}

// writeFollowUp lets the workspace's model for follow-ups write one.
func (p Parts) writeFollowUp(ctx context.Context, ws conversation.Workspace, said agent.Conversation, failed []conversation.Criterion) (string, error) {
	thinker, err := p.Agent(ws.FollowUps.Model)
	if err != nil {
		return "", err
	}
	text, err := think(ctx, p, func(ctx context.Context) (string, error) { return thinker.FollowUp(ctx, said, failed) })
	if err == nil && strings.TrimSpace(text) == "" {
		err = errNoText
	}
	return text, err
}

// newAttempt is a follow-up that is about to be sent.
func (p Parts) newAttempt(ws conversation.Workspace, channel conversation.Channel, id conversation.MessageID, text string) *conversation.FollowUpAttempt {
	now := p.Now()
	return &conversation.FollowUpAttempt{
		FollowUp:  conversation.FollowUp{Status: conversation.FollowUpPending, Channel: channel},
		MessageID: id, Text: text, ClaimedAt: conversation.At(now),
		AnswerBy: conversation.At(now.Add(p.Scale.Of(time.Duration(ws.FollowUps.WaitSeconds) * time.Second))),
	}
}

// followUpCap bounds the follow-ups of today.
func (p Parts) followUpCap(ws conversation.Workspace) *dynamo.FollowUpCap {
	return &dynamo.FollowUpCap{PerDay: ws.FollowUps.DailyCap, At: p.Now()}
}

// followUp sends a conversation's follow-up, or completes it if there can't be one.
func (t Threads) followUp(ctx context.Context, q quiet) (Step, error) {
	said := t.conversationOf(q.ws, q.assistant, q.thread, q.messages)
	text, err := t.writeFollowUp(ctx, q.ws, said, toRecover(q.assistant, q.evaluations))
	if err != nil {
		slog.ErrorContext(ctx, "write a follow-up", "thread_id", q.thread.ThreadID, "error", err)
		return t.complete(ctx, q, conversation.FollowUpFailedReason)
	}
	claimed := q.thread
	id := conversation.DerivedMessageID(claimed.WorkspaceID, "follow-up "+string(claimed.ThreadID), conversation.At(t.Now()))
	claimed.Attempt = t.newAttempt(q.ws, claimed.Channel, id, fit(ctx, claimed, text))
	claimed.Analysis, claimed.Evaluations, claimed.AnchorMessageID = q.analysis, q.evaluations, q.anchor
	claimed.LastCustomerAt = conversation.Time{}
	err = t.write(ctx, dynamo.ThreadWrite{Thread: claimed, MayWrite: true, Cap: t.followUpCap(q.ws)})
	switch {
	case errors.Is(err, dynamo.ErrOptedOut):
		return t.complete(ctx, q, conversation.CustomerOptedOut)
	case errors.Is(err, dynamo.ErrDailyCap):
		return t.complete(ctx, q, conversation.FollowUpDailyCap)
	case err != nil:
		return Step{}, err
	}
	claimed.Version++
	m := followUpMessage(claimed, q.ws)
	carrierID, outcome := t.sendFollowUp(ctx, m)
	return Step{}, t.recordFollowUp(ctx, claimed, m, outcome, carrierID)
}

// followUpMessage is the message of a conversation's own follow-up.
func followUpMessage(t conversation.ThreadRecord, ws conversation.Workspace) conversation.MessageRecord {
	return newMessage(t, ws, conversation.Message{
		MessageID: t.Attempt.MessageID, Direction: conversation.Outbound, Source: conversation.SourceEvaluationFollowUp,
		OccurredAt: t.Attempt.ClaimedAt, Content: t.Attempt.Text,
	}, t.Attempt.ClaimedAt.Time)
}

// sendFollowUp sends a follow-up that was claimed just now.
func (p Parts) sendFollowUp(ctx context.Context, m conversation.MessageRecord) (carrierID string, outcome sendOutcome) {
	carrierID, outcome, err := p.send(ctx, m, conversation.SourceEvaluationFollowUp)
	if err != nil { // nobody was asked
		slog.ErrorContext(ctx, "send a follow-up", "thread_id", m.ThreadID, "message_id", m.MessageID, "error", err)
		return "", sendRefused
	}
	return carrierID, outcome
}

// statusOfSent is where a follow-up stands after it was sent.
var statusOfSent = map[sendOutcome]conversation.FollowUpStatus{
	sendAccepted: conversation.FollowUpSent, sendRefused: conversation.FollowUpFailed, sendUnknown: conversation.FollowUpAmbiguous,
}

func sent(m conversation.MessageRecord, outcome sendOutcome, at conversation.Time) conversation.FollowUp {
	followUp := conversation.FollowUp{Status: statusOfSent[outcome], Channel: m.Channel}
	if outcome == sendAccepted {
		followUp.SentAt = at
	}
	return followUp
}

// recordFollowUp writes down what became of a follow-up: in its conversation, if that still
// waits to know, and in its message. One that was refused is no message of the conversation.
func (p Parts) recordFollowUp(ctx context.Context, thread conversation.ThreadRecord, m conversation.MessageRecord, outcome sendOutcome, carrierID string) error {
	at := conversation.At(p.Now())
	isCalls := m.CallID != ""
	_, err := p.change(ctx, thread, func(thread conversation.ThreadRecord) (*dynamo.ThreadWrite, error) {
		awaits := thread.Open() && thread.Attempt != nil && thread.Attempt.MessageID == m.MessageID && thread.Attempt.Status == conversation.FollowUpPending
		write := &dynamo.ThreadWrite{}
		switch {
		case outcome == sendRefused && isCalls && thread.Open():
			unlist(&thread, m)
			thread.FollowedUp = slices.DeleteFunc(slices.Clone(thread.FollowedUp), func(id conversation.CallID) bool { return id == m.CallID })
			write.Removed = []conversation.MessageID{m.MessageID}
		case outcome == sendRefused && !awaits:
			return nil, nil
		case outcome == sendRefused: // it was never listed
		case !awaits: // somebody has given it up, or a receipt has come already
			return nil, p.Store.NoteSent(ctx, m.WorkspaceID, m.MessageID, carrierID, at)
		case isCalls:
			write.Changed = []conversation.MessageRecord{{
				Message: conversation.Message{MessageID: m.MessageID, ProviderMessageID: carrierID}, SentAt: at,
			}}
		default:
			m.SentAt, m.ProviderMessageID = at, carrierID
			write.New = []conversation.MessageRecord{m}
			list(&thread, m)
		}
		if awaits {
			attempt := *thread.Attempt
			attempt.FollowUp = sent(m, outcome, at)
			thread.Attempt = &attempt
		}
		write.Thread = thread
		return write, nil
	})
	return err
}

// settleFollowUp gives up to know what became of a follow-up whose sending has died: it may
// have been sent, and is listed, unless its call knows that it was refused. One that may be on
// its way is waited for.
func (t Threads) settleFollowUp(ctx context.Context, thread conversation.ThreadRecord) (Step, error) {
	attempt := thread.Attempt
	if left := attempt.ClaimedAt.Add(sendingTime).Sub(t.Now()); left > 0 {
		return StepWait.in(left), nil
	}
	m, err := t.Store.MessageRecord(ctx, thread.WorkspaceID, attempt.MessageID)
	if errors.Is(err, conversation.ErrNotFound) {
		var ws conversation.Workspace
		if ws, _, err = t.Store.CallConfig(ctx, thread.WorkspaceID, thread.AssistantID); err == nil {
			m = followUpMessage(thread, ws)
		}
	}
	if err != nil {
		return Step{}, err
	}
	outcome := outcomeOf(m)
	if refused, err := t.isRefused(ctx, m); err != nil {
		return Step{}, err
	} else if refused {
		outcome = sendRefused
	}
	return Step{}, t.recordFollowUp(ctx, thread, m, outcome, m.ProviderMessageID)
}

// isRefused tells whether a message is a call's follow-up of which the call alone knows that
// it was refused: who sent it has died in between. One with the carrier's id was taken,
// whatever became of it.
func (t Threads) isRefused(ctx context.Context, m conversation.MessageRecord) (bool, error) {
	if m.CallID == "" || !m.SentAt.IsZero() || m.ProviderMessageID != "" {
		return false, nil
	}
	call, err := t.Store.CallRecord(ctx, m.WorkspaceID, m.CallID)
	if err != nil || m.MessageID != followUpOf(call.CallRecord) {
		return false, err
	}
	return slices.ContainsFunc(call.FollowUps, func(f conversation.FollowUp) bool { return f.Status == conversation.FollowUpFailed }), nil
}

// outcomeOf is what a stored message says became of it: without the carrier's id it may
// have been sent.
func outcomeOf(m conversation.MessageRecord) sendOutcome {
	if m.ProviderMessageID != "" {
		return sendAccepted
	}
	return sendUnknown
}

// followUpOf is the message that a completed call's follow-up is.
func followUpOf(call conversation.CallRecord) conversation.MessageID {
	return conversation.DerivedMessageID(call.WorkspaceID, "follow-up "+string(call.CallID), call.CompletedAt)
}

// followUpCall sends the follow-up that an ended call waits for, once, or says why there is
// none. Nothing of the call but its follow_ups changes.
func (c *Calls) followUpCall(ctx context.Context, call dynamo.StoredCall) error {
	id := followUpOf(call.CallRecord)
	m, err := c.Store.MessageRecord(ctx, call.WorkspaceID, id)
	if errors.Is(err, conversation.ErrNotFound) {
		return c.claimCallFollowUp(ctx, call, id)
	}
	if err != nil {
		return err
	}
	// It was claimed by somebody who has died since, or is sending it.
	if m.SentAt.IsZero() && c.Now().Before(m.ArrivedAt.Add(sendingTime)) {
		return ErrNotYet
	}
	if m.SentAt.IsZero() {
		thread, err := c.Store.ThreadRecord(ctx, m.WorkspaceID, m.ThreadID)
		if err != nil {
			return err
		}
		if err := c.recordFollowUp(ctx, thread, m, outcomeOf(m), m.ProviderMessageID); err != nil {
			return err
		}
	}
	return c.resolve(ctx, call, sent(m, outcomeOf(m), m.SentAt))
}

// resolve says what became of a call's follow-up.
func (c *Calls) resolve(ctx context.Context, call dynamo.StoredCall, followUp conversation.FollowUp) error {
	return c.Store.ResolveFollowUp(ctx, call, []conversation.FollowUp{followUp})
}

// claimCallFollowUp adds a call's follow-up to the customer's conversation on the policy's
// number and channel, open or new, and sends it.
func (c *Calls) claimCallFollowUp(ctx context.Context, call dynamo.StoredCall, id conversation.MessageID) error {
	ws, assistant, err := c.Store.CallConfig(ctx, call.WorkspaceID, call.AssistantID)
	if err != nil {
		return err
	}
	skipped := conversation.FollowUp{Status: conversation.FollowUpSkipped, Channel: call.FollowUps[0].Channel}
	failed := conversation.FollowUp{Status: conversation.FollowUpFailed, Channel: call.FollowUps[0].Channel}
	// Whether WhatsApp's window is open, the carrier knows: completed conversations count too.
	obstacle := sending(ws, assistant, call.Customer, true, c.Now()).obstacle()
	criteria := toRecover(assistant, call.Evaluations)
	if !ws.FollowUps.Enabled || obstacle != "" || len(criteria) == 0 {
		return c.resolve(ctx, call, skipped)
	}
	number, err := c.number(ctx, ws.Carrier, call.WorkspaceID, ws.FollowUps.Number)
	if errors.Is(err, conversation.ErrNotFound) {
		logFailure(ctx, call.CallRecord, "follow-up", err)
		return c.resolve(ctx, call, failed)
	}
	if err != nil {
		return err
	}
	_, sender, err := c.Store.CallConfig(ctx, call.WorkspaceID, number.AssistantID)
	if err != nil {
		return err
	}
	sender.AssistantID = number.AssistantID
	text, err := c.writeFollowUp(ctx, ws, saidIn(call.CallRecord, ws, assistant, c.Now()), criteria)
	if err != nil {
		logFailure(ctx, call.CallRecord, "follow-up", err)
		return c.resolve(ctx, call, failed)
	}
	key := dynamo.ThreadKey{Number: number.PhoneNumber.PhoneNumber, Address: call.Customer.Phone, Channel: ws.FollowUps.Channel, Test: call.IsTest}
	now := conversation.At(c.Now())
	var m conversation.MessageRecord
	thread, err := c.join(ctx, newThread(ws, sender, ws.Carrier, key, *call.Customer, now), func(t *conversation.ThreadRecord) dynamo.ThreadWrite {
		m = newMessage(*t, ws, conversation.Message{
			MessageID: id, Direction: conversation.Outbound, Source: conversation.SourceEvaluationFollowUp,
			OccurredAt: now, Content: fit(ctx, *t, text),
		}, now.Time)
		m.CallID = call.CallID
		list(t, m)
		t.FollowedUp = append(slices.Clone(t.FollowedUp[max(0, len(t.FollowedUp)+1-maxFollowedUp):]), call.CallID)
		if t.Attempt == nil {
			t.Attempt = c.newAttempt(ws, key.Channel, id, m.Content)
			t.LastCustomerAt = conversation.Time{}
		}
		return dynamo.ThreadWrite{New: []conversation.MessageRecord{m}, MayWrite: true, Cap: c.followUpCap(ws)}
	})
	switch {
	case errors.Is(err, dynamo.ErrMessageExists):
		return dynamo.ErrStale // somebody else has claimed it
	case errors.Is(err, dynamo.ErrOptedOut), errors.Is(err, dynamo.ErrDailyCap):
		return c.resolve(ctx, call, skipped)
	case err != nil:
		return err
	}
	carrierID, outcome := c.sendFollowUp(ctx, m)
	followUp := sent(m, outcome, conversation.At(c.Now()))
	if outcome == sendRefused { // the call knows it first: see settleFollowUp
		if err := c.resolve(ctx, call, followUp); err != nil {
			return err
		}
		return c.recordFollowUp(ctx, thread, m, outcome, carrierID)
	}
	if err := c.recordFollowUp(ctx, thread, m, outcome, carrierID); err != nil {
		return err
	}
	return c.resolve(ctx, call, followUp)
}
