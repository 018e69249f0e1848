package dynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"parley/shared/conversation"
)

// carrierMessageID is the key of the item that stands for an inbound message of a carrier:
// however often it is reported, it is stored once.
func carrierMessageID(ws conversation.WorkspaceID, carrierName, providerID string) string {
	return list(ws, "carrier_message", carrierName, providerID)
}

var (
	sentAt     = expression.Name("sent_at")
	isOutbound = expression.Name("direction").Equal(expression.Value(conversation.Outbound))
)

func (s *Store) writeMessages(t *transaction, w ThreadWrite) {
	table, ws := s.table(Conversations), w.Thread.WorkspaceID
	for _, m := range w.New {
		m.WorkspaceID, m.ThreadID, m.IsTest = ws, w.Thread.ThreadID, w.Thread.IsTest
		if m.IsTest {
			m.Source = conversation.SourceTest
		}
		it := t.encode(m)
		it[PartitionKey] = text(id(ws, kindMessage, m.MessageID))
		listMessage(it, m)
		t.put(table, it, absent, ErrMessageExists)
		if m.Direction == conversation.Inbound {
			if m.ProviderMessageID == "" {
				t.note(fmt.Errorf("message %s comes without the carrier's id", m.MessageID))
			}
			t.put(table, item{
				PartitionKey: text(carrierMessageID(ws, m.Carrier, m.ProviderMessageID)),
				"message_id": text(string(m.MessageID)),
			}, absent, ErrMessageExists)
		}
	}
	for _, m := range w.Changed {
		if change, any := setLater(t.encode(m)); any {
			t.update(table, id(ws, kindMessage, m.MessageID), change, exists, ErrStale)
		}
	}
	for _, messageID := range w.Removed {
		t.delete(table, id(ws, kindMessage, messageID), isOutbound.And(sentAt.AttributeNotExists()), ErrStale)
	}
}

// setLater sets what a message gets after it is stored, where it isn't there yet. It tells
// whether there is any of it.
func setLater(it item) (change expression.UpdateBuilder, any bool) {
	for _, name := range []string{"marked_at", "sent_at", "provider_message_id", "reply"} {
		if value, ok := it[name]; ok {
			attribute := expression.Name(name)
			change = change.Set(attribute, attribute.IfNotExists(expression.Value(value)))
			any = true
		}
	}
	return change, any
}

// NoteSent notes that the carrier has taken an outbound message, and its id of it, where
// that isn't known. A message that isn't ours, or is none that we send, is ErrNotFound.
func (s *Store) NoteSent(ctx context.Context, ws conversation.WorkspaceID, messageID conversation.MessageID, providerID string, at conversation.Time) error {
	it, err := encode(conversation.MessageRecord{Message: conversation.Message{ProviderMessageID: providerID}, SentAt: at})
	if err != nil {
		return wrap(err, "note that message %s was sent", messageID)
	}
	if change, any := setLater(it); any {
		_, err = s.update(ctx, Conversations, id(ws, kindMessage, messageID), change, isOutbound)
	}
	if isConditionFailed(err) {
		err = conversation.ErrNotFound
	}
	return wrap(err, "note that message %s was sent", messageID)
}
