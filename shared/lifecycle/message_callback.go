package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// callback takes a carrier's report about texts: a customer's message, or what became of one
// of ours.
func (t Threads) callback(r *http.Request, e envelope) ([]byte, error) {
	report, err := e.by.ParseMessage(r.Header, e.url, e.body, t.Now())
	if err != nil {
		return nil, err
	}
	switch report.Event {
	case carrier.EventMessage:
		err = t.receive(r.Context(), e, report)
	case carrier.EventReceipt:
		err = t.receipt(r.Context(), e, report)
	default:
		err = fmt.Errorf("event %q: %w", report.Event, carrier.ErrMalformed)
	}
	if err != nil {
		return nil, err
	}
	return e.by.Answer(carrier.Instruction{})
}

// receive stores a customer's message in their conversation, and with it their STOP or START.
// One that is stored already is left as it is, whatever else has changed since.
func (t Threads) receive(ctx context.Context, e envelope, report carrier.MessageCallback) error {
	number, err := t.number(ctx, e.carrierName, e.workspace, report.To)
	if err != nil {
		return err
	}
	workspace, assistant, err := t.Store.CallConfig(ctx, e.workspace, number.AssistantID)
	if err != nil {
		return err
	}
	assistant.AssistantID = number.AssistantID // it may be gone, and the message is stored all the same
	var known conversation.Customer
	if carrier.IsE164(report.From) {
		known.Phone = report.From
	}
	customer, err := t.Store.NameAddress(ctx, e.workspace, report.From, known)
	if err != nil {
		return err
	}
	arrived, occurred := t.Now(), conversation.At(report.At)
	own := conversation.Message{
		MessageID: conversation.MessageID(conversation.NewID()), Direction: conversation.Inbound, Source: conversation.SourceInbound,
		OccurredAt: occurred, Content: report.Content, MediaCount: report.MediaCount, ProviderMessageID: report.CarrierID,
	}
	optOut := optOutBy(e.by.Keyword(report.Content), occurred)
	key := dynamo.ThreadKey{Number: report.To, Address: report.From, Channel: report.Channel, Test: report.Test}
	seed := newThread(workspace, assistant, e.carrierName, key, customer, occurred)
	store := func() error {
		_, err := t.join(ctx, seed, func(thread *conversation.ThreadRecord) dynamo.ThreadWrite {
			thread.Customer = &customer
			m := newMessage(*thread, workspace, own, arrived)
			list(thread, m)
			thread.LastCustomerAt = later(thread.LastCustomerAt, occurred)
			waiting := conversation.Unanswered{MessageID: m.MessageID, ArrivedAt: m.ArrivedAt}
			thread.Unanswered = append(thread.Unanswered, waiting)
			thread.Unmarked = append(thread.Unmarked, waiting)
			return dynamo.ThreadWrite{New: []conversation.MessageRecord{m}, OptOut: optOut}
		})
		return err
	}
	err = store()
	if errors.Is(err, dynamo.ErrOldOptOut) {
		optOut = nil // what the customer wrote later counts
		err = store()
	}
	if errors.Is(err, dynamo.ErrMessageExists) {
		return nil
	}
	return err
}

// optOutBy is what a keyword makes of the customer's consent; nil: nothing.
func optOutBy(word carrier.Keyword, at conversation.Time) *dynamo.OptOut {
	switch word {
	case carrier.OptOutWord:
		return &dynamo.OptOut{Out: true, At: at}
	case carrier.OptInWord:
		return &dynamo.OptOut{Out: false, At: at}
	}
	return nil
}

// receipt notes what became of a text of ours. It is found by our id of it. A reply, and a
// conversation's follow-up, are listed when they are known to be sent: the carrier reports
// again what comes before that. What is known already, and what nobody lists, is ignored.
func (t Threads) receipt(ctx context.Context, e envelope, report carrier.MessageCallback) error {
	m, err := t.Store.MessageRecord(ctx, e.workspace, report.MessageID)
	switch {
	case errors.Is(err, conversation.ErrNotFound) && t.isNew(report.MessageID):
		return fmt.Errorf("message %s isn't listed yet", report.MessageID)
	case errors.Is(err, conversation.ErrNotFound), err == nil && (m.Carrier != e.carrierName || m.Direction != conversation.Outbound):
		slog.WarnContext(ctx, "a receipt of no text of ours", "workspace_id", e.workspace, "message_id", report.MessageID, "status", report.Status)
		return nil
	case err != nil:
		return err
	}
	var sent conversation.Time // nothing: a text that failed was perhaps never sent
	if report.Status != carrier.ReceiptFailed {
		sent = conversation.At(report.At)
	}
	if m.ProviderMessageID == "" || m.SentAt.IsZero() && !sent.IsZero() {
		if err := t.Store.NoteSent(ctx, e.workspace, m.MessageID, report.CarrierID, sent); err != nil {
			return err
		}
	}
	if m.Source != conversation.SourceEvaluationFollowUp && !m.IsTest {
		return nil
	}
	status := followUpStatuses[report.Status]
	if err := t.forwardAttempt(ctx, m, status, sent); err != nil || m.CallID == "" {
		return err
	}
	call, err := t.Store.CallRecord(ctx, m.WorkspaceID, m.CallID)
	if err != nil || m.MessageID != followUpOf(call.CallRecord) { // in a test, all texts have the same source
		return err
	}
	err = t.Store.ForwardFollowUp(ctx, m.WorkspaceID, m.CallID, status, sent)
	if errors.Is(err, dynamo.ErrStale) {
		return nil // it is further already
	}
	return err
}

// isNew tells whether an id may be of a text that is on its way: it was made no longer than
// sendingTime ago.
func (t Threads) isNew(messageID conversation.MessageID) bool {
	now, id := t.Now(), string(messageID)
	return conversation.FirstID(now.Add(-sendingTime)) <= id && id < conversation.FirstID(now.Add(time.Millisecond))
}

var followUpStatuses = map[carrier.ReceiptStatus]conversation.FollowUpStatus{
	carrier.ReceiptSent:      conversation.FollowUpSent,
	carrier.ReceiptDelivered: conversation.FollowUpDelivered,
	carrier.ReceiptFailed:    conversation.FollowUpFailed,
}

// forwardAttempt moves the status of the conversation's follow-up forward, if the message is
// it and the conversation is open: what a completed one says of its follow-up, it has said.
func (t Threads) forwardAttempt(ctx context.Context, m conversation.MessageRecord, status conversation.FollowUpStatus, sent conversation.Time) error {
	thread, err := t.Store.ThreadRecord(ctx, m.WorkspaceID, m.ThreadID)
	if err != nil {
		return err
	}
	_, err = t.change(ctx, thread, func(thread conversation.ThreadRecord) (*dynamo.ThreadWrite, error) {
		if a := thread.Attempt; !thread.Open() || a == nil || a.MessageID != m.MessageID || followUpRank[status] <= followUpRank[a.Status] {
			return nil, nil
		}
		attempt := *thread.Attempt
		attempt.Status = status
		if attempt.SentAt.IsZero() {
			attempt.SentAt = sent
		}
		thread.Attempt = &attempt
		return &dynamo.ThreadWrite{Thread: thread}, nil
	})
	return err
}

// followUpRank says what comes after what: delivered and failed are final.
var followUpRank = map[conversation.FollowUpStatus]int{
	conversation.FollowUpPending: 0, conversation.FollowUpAmbiguous: 0,
	conversation.FollowUpSent: 1, conversation.FollowUpDelivered: 2, conversation.FollowUpFailed: 2,
}
