// Package carrier knows what a phone number is (E.164, its country) and what a carrier
// does: it places and ends calls, tells their state, and reports what happens by signed
// HTTPS callbacks. Every implementation passes the suite in carriertest.
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
	// ErrRefused: the call was not placed and never will be.
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
	// ParseCallback verifies a callback and reads it: ErrUnverified, ErrMalformed.
	ParseCallback(header http.Header, url string, body []byte, now time.Time) (Callback, error)
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
)

// Callback is one report of the carrier.
type Callback struct {
	Event     Event                  `json:"event"`
	CarrierID string                 `json:"carrier_id"`
	At        time.Time              `json:"at"`
	Reason    conversation.EndReason `json:"reason,omitzero"` // of hung_up and failed
	From      string                 `json:"from,omitzero"`   // of incoming, E.164
	To        string                 `json:"to,omitzero"`     // of incoming, E.164
	Test      bool                   `json:"test,omitzero"`   // of incoming, on the simulator only
}

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
