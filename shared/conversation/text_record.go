package conversation

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/uuid"
)

// MessageRecord is a message with what the service alone knows of it.
type MessageRecord struct {
	Message
	Carrier   string `json:"carrier"`
	Number    string `json:"number"`             // the workspace's own, E.164
	Address   string `json:"address"`            // the customer's: E.164, or a user id of WhatsApp
	IsTest    bool   `json:"is_test"`            // of a test thread, which has no API row and no event
	CallID    CallID `json:"call_id,omitzero"`   // the call that sent it, or whose evaluation it follows up
	ArrivedAt Time   `json:"arrived_at"`         // stored at
	MarkedAt  Time   `json:"marked_at,omitzero"` // the event mark of an inbound message: its turn is over, message.received happens
	SentAt    Time   `json:"sent_at,omitzero"`   // of an outbound one: the carrier took it, or must be taken to have; message.sent happens
}

// ThreadRecord is a thread on its way, with what the service alone knows of it. It is
// always written whole, by who has read its version.
type ThreadRecord struct {
	Thread
	Carrier string `json:"carrier"`
	Number  string `json:"number"`  // the workspace's own, E.164
	Address string `json:"address"` // the customer's: E.164, or a user id of WhatsApp
	IsTest  bool   `json:"is_test"`
	Version int    `json:"version"` // how often it was written

	TextBytes int `json:"text_bytes"` // of its messages' texts

	LastArrivalAt  Time `json:"last_arrival_at"`           // of any message, by our clock
	LastCustomerAt Time `json:"last_customer_at,omitzero"` // occurred_at of the customer's latest message, since the follow-up if there is one

	Unanswered []Unanswered `json:"unanswered,omitzero"` // the customer's messages whose turn isn't over, by arrival
	Unmarked   []Unanswered `json:"unmarked,omitzero"`   // the customer's messages without their event mark, by arrival
	Claim      *Claim       `json:"claim,omitzero"`      // the turn's reply, about to be sent
	Turns      int          `json:"turns"`               // how many turns were claimed or ended

	Attempt    *FollowUpAttempt `json:"attempt,omitzero"`     // the recovery follow-up, at most one
	FollowedUp []CallID         `json:"followed_up,omitzero"` // calls whose follow-up is in this thread
	Superseded bool             `json:"superseded"`           // it was full, so the pointer names another thread by now

	Token   string `json:"token,omitzero"`    // of the task that waits for the follow-up's answer
	TokenAt string `json:"token_at,omitzero"` // sorts by when its attempt began
}

// Unanswered is a customer's message that something is still to be done for.
type Unanswered struct {
	MessageID MessageID `json:"message_id"`
	ArrivedAt Time      `json:"arrived_at"`
}

// Claim is written before a reply is sent, so that it is sent once.
type Claim struct {
	Messages []MessageID `json:"messages"` // what it answers; the last one's event carries it
	ReplyID  MessageID   `json:"reply_id"`
	Text     string      `json:"text"`
	At       Time        `json:"at"`
}

// FollowUpAttempt is a recovery follow-up with what the service alone knows of it. Pending
// is claimed, and perhaps being sent.
type FollowUpAttempt struct {
	FollowUp
	MessageID MessageID `json:"message_id"`
	Text      string    `json:"text,omitzero"`
	ClaimedAt Time      `json:"claimed_at"`
	AnswerBy  Time      `json:"answer_by"` // then it counts as unanswered
}

// Open tells whether the thread still takes messages.
func (t ThreadRecord) Open() bool { return t.CompletedAt.IsZero() }

// What a thread takes: the message after that opens another. So its transcript, whatever
// JSON makes of its characters, fits into a response.
const (
	MaxThreadMessages = 1000
	MaxThreadBytes    = 512 << 10
)

// Full tells whether the next message opens another thread.
func (t ThreadRecord) Full() bool {
	return t.MessageCount >= MaxThreadMessages || t.TextBytes >= MaxThreadBytes
}

// DerivedMessageID is the id of a message that comes of something that happens once, so
// that it is one message however often it is made.
func DerivedMessageID(ws WorkspaceID, of string, at Time) MessageID {
	hash := sha256.Sum256([]byte(string(ws) + "\n" + of))
	var derived uuid.UUID
	copy(derived[:], hash[:])
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(0, at.UnixMilli())))
	copy(derived[:6], ms[2:])
	derived[6] = 0x70 | derived[6]&0x0f
	derived[8] = 0x80 | derived[8]&0x3f
	return MessageID(derived.String())
}
