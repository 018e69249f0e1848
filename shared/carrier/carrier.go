// Package carrier knows what a phone number is (E.164, its country) and what a carrier
// does: it places and ends calls, tells their state, sends texts, and reports what happens,
// customers' messages among it, by signed HTTPS callbacks. Every implementation passes the suite in carriertest.
package carrier

import (
	"context"
	"errors"
	"net/http"
	"time"

	"parley/shared/conversation"
)

// Errors of a Carrier. Any other error is no answer: what was asked may have happened.
var (
	// ErrRefused: the call was not placed, or the text not sent, and never will be.
	ErrRefused = errors.New("the carrier refused")
	// ErrUnknownCall: the carrier has no such call.
	ErrUnknownCall = errors.New("the carrier does not know the call")
	// ErrUnverified: a callback without a signature, or with a wrong or an old one.
	ErrUnverified = errors.New("the callback's signature is missing, wrong or too old")
	// ErrMalformed: a callback that is not of the carrier's form.
	ErrMalformed = errors.New("the callback can't be read")
)

// Carrier is one telephony provider, for all workspaces that have chosen it.
type Carrier interface {
	// PlaceCall asks the carrier, once, to dial, and returns its id of the call. With
	// ErrRefused the phone never rings; with any other error it may ring.
	PlaceCall(context.Context, Placement) (carrierID string, err error)
	// EndCall hangs up. A call that is over, or unknown, is no error. The reason is what the
	// call's state and callback then say, where the carrier keeps one.
	EndCall(context.Context, Ref, conversation.EndReason) error
	// FetchCall tells a call's state, or ErrUnknownCall.
	FetchCall(context.Context, Ref) (CallState, error)
	// FetchRecording reads the audio (WAV) of a call whose recording is complete, or
	// ErrUnknownCall.
	FetchRecording(context.Context, Ref) ([]byte, error)
	// ParseCallback verifies a callback about a call and reads it: ErrUnverified, ErrMalformed.
	ParseCallback(header http.Header, url string, body []byte, now time.Time) (Callback, error)
	// SendMessage asks the carrier, once, to send a text, and returns its id of it. With
	// ErrRefused it was not sent and never will be; with any other error it may have been.
	SendMessage(context.Context, Text) (carrierID string, err error)
	// ParseMessage verifies a callback about texts and reads it: ErrUnverified, ErrMalformed.
	ParseMessage(header http.Header, url string, body []byte, now time.Time) (MessageCallback, error)
	// Keyword tells whether a text is one of the carrier's words that opt out, opt in or ask
	// for help: alone in the message, in any case.
	Keyword(text string) Keyword
	// Answer is the body of our answer to a callback, in the carrier's form.
	Answer(Instruction) ([]byte, error)
}

// Ref names a call to its carrier: by the carrier's id, or by ours where there is none yet.
type Ref struct {
	WorkspaceID conversation.WorkspaceID `json:"workspace_id"`
	CallID      conversation.CallID      `json:"call_id,omitzero"`
	CarrierID   string                   `json:"carrier_id,omitzero"`
}

// Placement is a call to be placed.
type Placement struct {
	Ref
	From        string        `json:"from"` // E.164
	To          string        `json:"to"`   // E.164
	CallbackURL string        `json:"callback_url"`
	MaxDuration time.Duration `json:"max_duration"` // the carrier's own limit, on its clock, should we not reach it
}

// Phase is how far a call is, for its carrier.
type Phase string

const (
	Dialling Phase = "dialling" // dialling or ringing
	Talking  Phase = "talking"
	Over     Phase = "over"   // it was answered, and is hung up
	Failed   Phase = "failed" // it was never answered
)

// CallState is what the carrier knows of a call.
type CallState struct {
	CarrierID       string                       `json:"carrier_id"`
	Phase           Phase                        `json:"phase"`
	Reason          conversation.EndReason       `json:"reason,omitzero"`     // when over or failed
	HungUpAt        conversation.Time            `json:"hung_up_at,omitzero"` // or given up, when failed
	DurationSeconds int                          `json:"duration_seconds"`    // from answer to hang-up
	Transcript      []conversation.Turn          `json:"transcript,omitzero"` // when over
	Latencies       []TurnLatency                `json:"latencies,omitzero"`  // when over
	Recording       conversation.RecordingStatus `json:"recording,omitzero"`  // when over
}

// TurnLatency is how long one of the assistant's turns took, in milliseconds.
type TurnLatency struct {
	Speech int `json:"speech"`
	Model  int `json:"model"`
	Voice  int `json:"voice"`
}

// Event is what a callback reports.
type Event string

const (
	EventIncoming Event = "incoming" // a customer rings; we answer what to do
	EventProgress Event = "progress" // dialling began, or the phone rings
	EventAnswered Event = "answered" // somebody answered; we answer what to do
	EventHungUp   Event = "hung_up"  // an answered call is over
	EventFailed   Event = "failed"   // it was never answered
	EventTool     Event = "tool"     // the assistant wants a text to be sent to the customer
)

// Callback is one report of the carrier.
type Callback struct {
	Event     Event                  `json:"event"`
	CarrierID string                 `json:"carrier_id"`
	At        time.Time              `json:"at"`
	Reason    conversation.EndReason `json:"reason,omitzero"`  // of hung_up and failed
	From      string                 `json:"from,omitzero"`    // of incoming, E.164
	To        string                 `json:"to,omitzero"`      // of incoming, E.164
	Test      bool                   `json:"test,omitzero"`    // of incoming, on the simulator only
	Text      string                 `json:"text,omitzero"`    // of tool
	ToolID    string                 `json:"tool_id,omitzero"` // of tool: unique within the call
}

// Text is a message to be sent.
type Text struct {
	WorkspaceID conversation.WorkspaceID `json:"workspace_id"`
	MessageID   conversation.MessageID   `json:"message_id"` // ours; receipts name it
	Channel     conversation.Channel     `json:"channel"`
	From        string                   `json:"from"` // the workspace's number, E.164
	To          string                   `json:"to"`   // E.164, or a user id of WhatsApp
	Content     string                   `json:"content"`
	Source      conversation.Source      `json:"source"` // what it is; a tag of ours, which the carrier keeps
	CallbackURL string                   `json:"callback_url"`
	Test        bool                     `json:"test,omitzero"` // of a test thread, on the simulator only
}

// MaxText is how many characters (code points) a channel carries in one message.
func MaxText(channel conversation.Channel) int {
	if channel == conversation.WhatsApp {
		return 4096
	}
	return 1600
}

// Fit is a text cut to what a channel carries in one message.
func Fit(channel conversation.Channel, text string) string {
	n := 0
	for i := range text {
		if n++; n > MaxText(channel) {
			return text[:i]
		}
	}
	return text
}

// MessageEvent is what a callback about a text reports.
type MessageEvent string

const (
	EventMessage MessageEvent = "message" // a customer writes
	EventReceipt MessageEvent = "receipt" // what became of a text of ours; it comes again until it is taken
)

// MessageCallback is one report of the carrier about texts.
type MessageCallback struct {
	Event      MessageEvent           `json:"event"`
	CarrierID  string                 `json:"carrier_id"`           // the carrier's id of the text
	At         time.Time              `json:"at"`                   // when it was written, or when that became of it
	Channel    conversation.Channel   `json:"channel,omitzero"`     // of message
	From       string                 `json:"from,omitzero"`        // of message: the customer's number, or user id of WhatsApp
	To         string                 `json:"to,omitzero"`          // of message, E.164
	Content    string                 `json:"content,omitzero"`     // of message; media alone have none
	MediaCount int                    `json:"media_count,omitzero"` // of message
	Test       bool                   `json:"test,omitzero"`        // of message, on the simulator only
	MessageID  conversation.MessageID `json:"message_id,omitzero"`  // of receipt: our id
	Status     ReceiptStatus          `json:"status,omitzero"`      // of receipt
}

// ReceiptStatus is what became of a text. It moves forward: sent, then delivered or failed.
type ReceiptStatus string

const (
	ReceiptSent      ReceiptStatus = "sent"
	ReceiptDelivered ReceiptStatus = "delivered"
	ReceiptFailed    ReceiptStatus = "failed"
)

// Keyword is a word that means something to the carrier itself.
type Keyword string

const (
	OptOutWord Keyword = "stop"
	OptInWord  Keyword = "start"
	HelpWord   Keyword = "help"
)

// Instruction is what a carrier is told to do with an answered call.
type Instruction struct {
	HangUp bool   `json:"hang_up,omitzero"`
	Script Script `json:"script,omitzero"`
}

// Script is how an assistant speaks in one call: texts with their variables filled in.
type Script struct {
	CallID   conversation.CallID `json:"call_id"`
	Model    string              `json:"model"`
	Voice    string              `json:"voice"`
	Language string              `json:"language"`
	Greeting string              `json:"greeting"`
	Prompt   string              `json:"prompt"`
}
