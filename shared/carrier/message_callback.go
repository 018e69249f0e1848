package carrier

import (
	"fmt"
	"regexp"

	"parley/shared/conversation"
)

// problem says what is wrong with the callback; "" is nothing. A message may have neither
// content nor media.
func (c MessageCallback) problem() string {
	fields, known := fieldsOfMessages[c.Event]
	text := c.Channel != "" || c.From != "" || c.To != "" || c.Content != "" || c.MediaCount != 0 || c.Test
	switch {
	case !known:
		return fmt.Sprintf("there is no event %q", c.Event)
	case c.CarrierID == "" || len(c.CarrierID) > maxID:
		return "carrier_id is missing or too long"
	case c.At.IsZero():
		return "at is missing"
	case !fields.text && text:
		return "channel, from, to, content, media_count and test are for messages"
	case !fields.receipt && (c.MessageID != "" || c.Status != ""):
		return "message_id and status are for receipts"
	case fields.receipt && (c.MessageID == "" || len(c.MessageID) > maxID):
		return "message_id is missing or too long"
	case fields.receipt && c.Status != ReceiptSent && c.Status != ReceiptDelivered && c.Status != ReceiptFailed:
		return fmt.Sprintf("status is %q", c.Status)
	case fields.text && !IsAddress(c.Channel, c.From):
		return "channel must be sms or whatsapp, and from an address of it"
	case fields.text && !IsE164(c.To):
		return "to must be a number in E.164"
	case len(c.Content) > maxContent:
		return "content is too long"
	case c.MediaCount < 0:
		return "media_count is negative"
	default:
		return ""
	}
}

// fieldsOfMessages says what the callbacks of each event have beside carrier_id and at.
var fieldsOfMessages = map[MessageEvent]struct{ text, receipt bool }{
	EventMessage: {text: true},
	EventReceipt: {receipt: true},
}

// userID is Meta's business-scoped user id: a country, and what names the person to this
// business. Who has a user name on WhatsApp may write without telling their number.
var userID = regexp.MustCompile(`^[A-Z]{2}\.[0-9A-Za-z]{1,128}$`)

// IsAddress tells whether a customer can have this address on the channel: a number in
// E.164, or on WhatsApp a user id.
func IsAddress(channel conversation.Channel, address string) bool {
	switch channel {
	case conversation.SMS:
		return IsE164(address)
	case conversation.WhatsApp:
		return IsE164(address) || userID.MatchString(address)
	default:
		return false
	}
}
