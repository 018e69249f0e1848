// Package lifecycle takes calls and text conversations through their lives: it starts and
// wakes their state machines from the table's stream, writes down what carriers report, and
// finishes them.
//
// Who writes what of a call: POST /v1/calls accepts a call (queued) and asks the carrier once.
// Carriers' callbacks move it: dialling began (in_progress), somebody answered, it was
// hung up (hung_up_at), it was never answered (error). The state machine waits for these
// changes by task tokens, and steps in when they don't come; the sweep does the same for
// calls whose machine is gone. Each write has a condition, in dynamo's call_life.go, so all
// of them may come late, twice, out of order and at once. A step judges by a consistent
// read, never by what woke it.
//
// Of a text conversation: carriers' callbacks add the customer's messages, calls add the
// texts that their assistant or their evaluation wants sent, the queue of turns has each
// message answered and marked, the state machine waits until it is quiet, grades it, and
// follows it up or completes it; the sweep does that for those whose machine is gone. Each
// writes the thread whole, on the version that it read (send.go).
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"parley/shared/agent"
	"parley/shared/carrier"
	"parley/shared/config"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// Parts are what the lifecycles of a stage work with.
type Parts struct {
	Store    *dynamo.Store
	Carriers map[string]carrier.Carrier // by the name that workspaces choose
	Agent    func(model string) (agent.Agent, error)
	Scale    Scale
	BaseURL  string // the API's public address, without a trailing slash
	Now      func() time.Time
	Wait     func(context.Context, time.Duration) error // lets time pass
}

// NewParts makes the Parts of a stage. secret signs the simulator's callbacks; who reads none
// needs none.
func NewParts(aws aws.Config, cfg config.Config, secret []byte) Parts {
	return Parts{
		Store:    dynamo.New(aws, cfg),
		Carriers: carrier.ForStage(aws, cfg, secret),
		Agent:    agent.For,
		Scale:    Scale(cfg.TimeScale),
		BaseURL:  cfg.BaseURL,
		Now:      time.Now,
		Wait:     wait,
	}
}

// Calls takes calls through their lives.
type Calls struct{ Parts }

// New makes the Calls of a stage: see NewParts.
func New(aws aws.Config, cfg config.Config, secret []byte) *Calls {
	return &Calls{NewParts(aws, cfg, secret)}
}

// NotYet says that a call isn't finished, and nothing is left to do for it now. The state
// machine knows it by this name.
type NotYet struct{}

func (NotYet) Error() string { return "the call isn't finished yet" }

// ErrNotYet is NotYet.
var ErrNotYet error = NotYet{}

// maxSteps bounds how often one Advance reads a call: each step leads to the next state.
const maxSteps = 8

// Advance does all that is due for a call and returns nil when it is finished: in error, or
// completed without a follow-up to be sent. ErrNotYet means that it waits for its carrier or
// its customer; any other error that it should be tried again.
func (c *Calls) Advance(ctx context.Context, ws conversation.WorkspaceID, callID conversation.CallID) error {
	for range maxSteps {
		call, err := c.Store.CallRecord(ctx, ws, callID)
		if err != nil {
			return err
		}
		if finished(call.CallRecord) {
			return nil
		}
		// ErrStale: somebody else has moved the call. It is read again.
		if err := c.step(ctx, call); err != nil && !errors.Is(err, dynamo.ErrStale) {
			return err
		}
	}
	return fmt.Errorf("advance call %s: it changed %d times meanwhile", callID, maxSteps)
}

func finished(call conversation.CallRecord) bool {
	return call.Status == conversation.CallError || !call.CompletedAt.IsZero() && !awaitsFollowUp(call)
}

// awaitsFollowUp tells whether the call's follow-up is still to be sent.
func awaitsFollowUp(call conversation.CallRecord) bool {
	return len(call.FollowUps) > 0 && call.FollowUps[0].Status == conversation.FollowUpPending
}

// step does what is due in the call's state.
func (c *Calls) step(ctx context.Context, call dynamo.StoredCall) error {
	switch {
	case !call.CompletedAt.IsZero():
		return c.followUpCall(ctx, call)
	case call.Status == conversation.CallEnded:
		return c.complete(ctx, call)
	case !call.HungUpAt.IsZero():
		return c.end(ctx, call)
	case call.Status == conversation.CallQueued && c.Now().Before(call.StartedAt.Add(c.Scale.Pickup())):
		return ErrNotYet
	default:
		return c.reconcile(ctx, call)
	}
}

// reconcile asks the carrier what became of a call that its callbacks are silent about. One
// that is alive, and has lasted as long as it may, is cut off.
func (c *Calls) reconcile(ctx context.Context, call dynamo.StoredCall) error {
	state, err := c.fetch(ctx, call)
	now := c.Now()
	switch {
	case errors.Is(err, carrier.ErrUnknownCall) && call.Status == conversation.CallQueued:
		return c.Store.StallQueuedCall(ctx, call.CallRecord, now)
	case errors.Is(err, carrier.ErrUnknownCall):
		return c.Store.StallCall(ctx, call.CallRecord, now)
	case err != nil:
		return err
	case state.Phase == carrier.Failed:
		return c.Store.FailCall(ctx, call.CallRecord, state.Reason, now)
	case state.Phase == carrier.Over:
		return c.hangUp(ctx, call.CallRecord, state.CarrierID, orNow(state.HungUpAt, now), state.Reason)
	case call.Status == conversation.CallQueued:
		return c.pickUp(ctx, call.CallRecord, state.CarrierID, now)
	case !now.Before(call.DiallingAt.Add(c.Scale.Longest(call.LongestSeconds))):
		return c.cutOff(ctx, call, state.Phase)
	}
	return ErrNotYet
}

// cutOff hangs up a call that has lasted as long as it may. One that still rings has not
// happened: its carrier is asked again what became of it.
func (c *Calls) cutOff(ctx context.Context, call dynamo.StoredCall, phase carrier.Phase) error {
	if phase == carrier.Dialling {
		return c.hangUpAtCarrier(ctx, call.CallRecord, conversation.EndNoAnswer)
	}
	if err := c.hangUpAtCarrier(ctx, call.CallRecord, conversation.EndMaxDuration); err != nil {
		return err
	}
	return c.hangUp(ctx, call.CallRecord, "", c.Now(), conversation.EndMaxDuration)
}

// end saves the transcript of a call that is over, with which it is ended.
func (c *Calls) end(ctx context.Context, call dynamo.StoredCall) error {
	state, err := c.fetch(ctx, call)
	switch {
	case errors.Is(err, carrier.ErrUnknownCall) || err == nil && state.Phase == carrier.Failed:
		return c.Store.StallCall(ctx, call.CallRecord, c.Now())
	case err != nil:
		return err
	case state.Phase != carrier.Over:
		if err := c.hangUpAtCarrier(ctx, call.CallRecord, call.HungUpReason); err != nil {
			return err
		}
		return ErrNotYet
	}
	reason := call.HungUpReason
	if reason == "" {
		reason = state.Reason
	}
	transcript := state.Transcript
	if transcript == nil {
		transcript = []conversation.Turn{} // nobody said a word
	}
	return c.Store.EndCall(ctx, call, dynamo.Ending{
		At: call.HungUpAt, Reason: reason, DurationSeconds: state.DurationSeconds, Transcript: transcript,
	}, c.Now().Add(c.Scale.Of(patience)))
}

func (c *Calls) pickUp(ctx context.Context, call conversation.CallRecord, carrierID string, at time.Time) error {
	return c.Store.PickUpCall(ctx, call, carrierID, at, c.Now().Add(c.Scale.Of(patience)))
}

func (c *Calls) hangUp(ctx context.Context, call conversation.CallRecord, carrierID string, at time.Time, reason conversation.EndReason) error {
	return c.Store.HangUpCall(ctx, call, carrierID, at, reason, c.Now().Add(c.Scale.Of(patience)))
}

// fetch asks the call's carrier for its state. A carrier that can't be asked for hours
// counts as one that doesn't know the call, as no call may be left waiting for ever.
func (c *Calls) fetch(ctx context.Context, call dynamo.StoredCall) (carrier.CallState, error) {
	by, err := c.carrierOf(call.CallRecord)
	if err != nil {
		return carrier.CallState{}, err
	}
	state, err := by.FetchCall(ctx, refOf(call.CallRecord))
	if err != nil && c.Now().After(call.StartedAt.Add(giveUp)) {
		return carrier.CallState{}, fmt.Errorf("ask the carrier for call %s, for the last time: %w: %w", call.CallID, carrier.ErrUnknownCall, err)
	}
	if err != nil {
		return carrier.CallState{}, fmt.Errorf("ask the carrier for call %s: %w", call.CallID, err)
	}
	return state, nil
}

// hangUpAtCarrier silences a call at its carrier.
func (c *Calls) hangUpAtCarrier(ctx context.Context, call conversation.CallRecord, reason conversation.EndReason) error {
	by, err := c.carrierOf(call)
	if err != nil {
		return err
	}
	if err := by.EndCall(ctx, refOf(call), reason); err != nil {
		return fmt.Errorf("hang up call %s (%s): %w", call.CallID, reason, err)
	}
	return nil
}

func (c *Calls) carrierOf(call conversation.CallRecord) (carrier.Carrier, error) {
	by, ok := c.Carriers[call.Carrier]
	if !ok {
		return nil, fmt.Errorf("call %s is on the carrier %q, which this stage doesn't have", call.CallID, call.Carrier)
	}
	return by, nil
}

func refOf(call conversation.CallRecord) carrier.Ref {
	return carrier.Ref{WorkspaceID: call.WorkspaceID, CallID: call.CallID, CarrierID: call.CarrierID}
}

func orNow(t conversation.Time, now time.Time) time.Time {
	if t.IsZero() {
		return now
	}
	return t.Time
}

// logFailure is for a part of a call's aftermath that is left out.
func logFailure(ctx context.Context, call conversation.CallRecord, part string, err error) {
	slog.ErrorContext(ctx, "a part of the call is left out", "part", part, "call_id", call.CallID, "error", err)
}
