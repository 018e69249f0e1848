package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// maxCallback bounds a callback's body.
const maxCallback = 256 << 10

// Callbacks answers the carriers' callbacks about calls,
//
//	POST /carriers/{carrier}/{workspace_id}/{call_id}
//
// It verifies, writes by condition and answers; it never talks to a state machine. 2xx
// tells the carrier that its report is taken, also when it comes late or again; 5xx that
// it should repeat it. baseURL is the API's public address, which the signatures cover.
func Callbacks(calls *Calls, baseURL string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /carriers/{carrier}/{workspace_id}/{call_id}", func(w http.ResponseWriter, r *http.Request) {
		answer, err := calls.callback(r, baseURL)
		status := statusOf(err)
		if err != nil {
			slog.ErrorContext(r.Context(), "callback", "carrier", r.PathValue("carrier"), "call_id", r.PathValue("call_id"), "status", status, "error", err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(answer) // the carrier is gone if this fails, and repeats
	})
	return mux
}

var errTooLarge = errors.New("the callback is too large")

func statusOf(err error) int {
	for status, is := range map[int]error{
		http.StatusUnauthorized:          carrier.ErrUnverified,
		http.StatusBadRequest:            carrier.ErrMalformed,
		http.StatusNotFound:              conversation.ErrNotFound,
		http.StatusRequestEntityTooLarge: errTooLarge,
	} {
		if errors.Is(err, is) {
			return status
		}
	}
	if err != nil {
		return http.StatusInternalServerError
	}
	return http.StatusOK
}

func (c *Calls) callback(r *http.Request, baseURL string) ([]byte, error) {
	name := r.PathValue("carrier")
	by, ok := c.Carriers[name]
	if !ok {
		return nil, fmt.Errorf("carrier %q: %w", name, conversation.ErrNotFound)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxCallback+1))
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	if len(body) > maxCallback {
		return nil, errTooLarge
	}
	report, err := by.ParseCallback(r.Header, baseURL+r.URL.Path, body, c.Now())
	if err != nil {
		return nil, err
	}
	ws, callID := conversation.WorkspaceID(r.PathValue("workspace_id")), conversation.CallID(r.PathValue("call_id"))
	instruction, err := c.report(r.Context(), name, ws, callID, report)
	if err != nil {
		return nil, err
	}
	return by.Answer(instruction)
}

// report writes down what a carrier reports and says what it is to do.
func (c *Calls) report(ctx context.Context, carrierName string, ws conversation.WorkspaceID, callID conversation.CallID, report carrier.Callback) (carrier.Instruction, error) {
	if report.Event == carrier.EventIncoming {
		return c.receive(ctx, carrierName, ws, callID, report)
	}
	stored, err := c.Store.CallRecord(ctx, ws, callID)
	if err != nil {
		return carrier.Instruction{}, err
	}
	call := stored.CallRecord
	if call.Carrier != carrierName {
		return carrier.Instruction{}, fmt.Errorf("call %s of carrier %q: %w", callID, carrierName, conversation.ErrNotFound)
	}
	switch report.Event {
	case carrier.EventProgress:
		err = c.pickUp(ctx, call, report.CarrierID, report.At)
	case carrier.EventAnswered:
		return c.answer(ctx, stored, report)
	case carrier.EventHungUp:
		err = c.hangUp(ctx, call, report.CarrierID, report.At, report.Reason)
	case carrier.EventFailed:
		err = c.Store.FailCall(ctx, call, report.Reason, report.At)
	default:
		return carrier.Instruction{}, fmt.Errorf("event %q: %w", report.Event, carrier.ErrMalformed)
	}
	if errors.Is(err, dynamo.ErrStale) {
		return c.late(ctx, call, report)
	}
	return carrier.Instruction{}, err
}

// late is a report that changes nothing any more. If it shows that the phone of a call
// that was given up still rings, the carrier is told to hang up.
func (c *Calls) late(ctx context.Context, call conversation.CallRecord, report carrier.Callback) (carrier.Instruction, error) {
	now, err := c.Store.CallRecord(ctx, call.WorkspaceID, call.CallID)
	if err != nil {
		return carrier.Instruction{}, err
	}
	if now.Status != conversation.CallError || report.Event != carrier.EventProgress {
		return carrier.Instruction{}, nil
	}
	call.CarrierID = report.CarrierID
	return carrier.Instruction{HangUp: true}, c.hangUpAtCarrier(ctx, call, now.EndReason)
}

// answer says what to do with a call that somebody has answered. Unless the call is still
// wanted, that is to hang up: a phone that rings after its call was given up falls silent.
func (c *Calls) answer(ctx context.Context, call dynamo.StoredCall, report carrier.Callback) (carrier.Instruction, error) {
	err := c.pickUp(ctx, call.CallRecord, report.CarrierID, report.At)
	if err != nil && !errors.Is(err, dynamo.ErrStale) {
		return carrier.Instruction{}, err
	}
	return c.answerNow(ctx, call.WorkspaceID, call.CallID)
}

// answerNow judges by the call as it stands.
func (c *Calls) answerNow(ctx context.Context, ws conversation.WorkspaceID, callID conversation.CallID) (carrier.Instruction, error) {
	call, err := c.Store.CallRecord(ctx, ws, callID)
	if err != nil {
		return carrier.Instruction{}, err
	}
	if !call.Active() || !call.HungUpAt.IsZero() {
		return carrier.Instruction{HangUp: true}, nil
	}
	return c.instruct(ctx, call)
}

// instruct tells the carrier how the assistant speaks, and keeps the configuration that it
// speaks by.
func (c *Calls) instruct(ctx context.Context, call dynamo.StoredCall) (carrier.Instruction, error) {
	ws, assistant, err := c.Store.CallConfig(ctx, call.WorkspaceID, call.AssistantID)
	if err != nil {
		return carrier.Instruction{}, err
	}
	err = c.Store.SnapshotCall(ctx, call, snapshot(ws, assistant))
	if err != nil && !errors.Is(err, dynamo.ErrStale) { // stale: asked again, and kept already
		return carrier.Instruction{}, err
	}
	return carrier.Instruction{Script: script(ws, assistant, call.CallRecord, c.Now())}, nil
}

// receive takes a customer's call: it is in progress from its arrival. A report that comes
// again finds the call, as its address names it.
func (c *Calls) receive(ctx context.Context, carrierName string, ws conversation.WorkspaceID, callID conversation.CallID, report carrier.Callback) (carrier.Instruction, error) {
	number, err := c.Store.Number(ctx, carrierName, report.To)
	if err != nil {
		return carrier.Instruction{}, err
	}
	if number.WorkspaceID != ws {
		return carrier.Instruction{}, fmt.Errorf("number %s: %w", report.To, conversation.ErrNotFound)
	}
	workspace, assistant, err := c.Store.CallConfig(ctx, ws, number.AssistantID)
	if err != nil {
		return carrier.Instruction{}, err
	}
	customer, err := c.Store.NameCustomer(ctx, ws, conversation.Customer{Phone: report.From})
	if err != nil {
		return carrier.Instruction{}, err
	}
	now := conversation.At(c.Now())
	call := conversation.CallRecord{
		Call: conversation.Call{
			CallID: callID, WorkspaceID: ws, AssistantID: number.AssistantID, AssistantName: assistant.AssistantName,
			CallType: conversation.Inbound, Direction: conversation.Inbound, Status: conversation.CallInProgress,
			StartedAt: now, IsTest: report.Test, Customer: &customer,
		},
		Carrier: carrierName, CarrierID: report.CarrierID, Number: report.To,
		LongestSeconds: workspace.Limits.LongestCallSeconds, DiallingAt: now,
	}
	if !assistant.Enabled {
		call.Status, call.EndReason, call.EndedAt = conversation.CallError, conversation.EndAgentUnavailable, now
	}
	if err := c.Store.ReceiveCall(ctx, call, c.Now().Add(c.Scale.Of(patience))); err != nil {
		return carrier.Instruction{}, err
	}
	return c.answerNow(ctx, ws, callID)
}
