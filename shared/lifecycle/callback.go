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

// Callbacks answers the carriers' callbacks about calls and about texts,
//
//	POST /carriers/{carrier}/{workspace_id}/{call_id}
//	POST /carriers/{carrier}/{workspace_id}
//
// It verifies, writes by condition and answers; it never talks to a state machine. 2xx
// tells the carrier that its report is taken, also when it comes late or again; 5xx that
// it should repeat it. baseURL is the API's public address, which the signatures cover.
func Callbacks(calls *Calls, baseURL string) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, take func(*http.Request, envelope) ([]byte, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			answer, err := calls.open(r, baseURL, take)
			status := statusOf(err)
			if err != nil {
				slog.ErrorContext(r.Context(), "callback", "carrier", r.PathValue("carrier"), "workspace_id", r.PathValue("workspace_id"),
					"call_id", r.PathValue("call_id"), "status", status, "error", err)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write(answer) // the carrier is gone if this fails, and repeats
		})
	}
	handle("POST /carriers/{carrier}/{workspace_id}/{call_id}", calls.callback)
	handle("POST /carriers/{carrier}/{workspace_id}", func(r *http.Request, e envelope) ([]byte, error) {
		return Threads{calls.Parts}.callback(r, e)
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

// envelope is what all callbacks have: the carrier and the workspace that the address names,
// the address as it was signed, and the body.
type envelope struct {
	carrierName string
	by          carrier.Carrier
	workspace   conversation.WorkspaceID
	url         string
	body        []byte
}

func (p Parts) open(r *http.Request, baseURL string, take func(*http.Request, envelope) ([]byte, error)) ([]byte, error) {
	e := envelope{carrierName: r.PathValue("carrier"), workspace: conversation.WorkspaceID(r.PathValue("workspace_id")), url: baseURL + r.URL.Path}
	var known bool
	if e.by, known = p.Carriers[e.carrierName]; !known {
		return nil, fmt.Errorf("carrier %q: %w", e.carrierName, conversation.ErrNotFound)
	}
	var err error
	if e.body, err = io.ReadAll(io.LimitReader(r.Body, maxCallback+1)); err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	if len(e.body) > maxCallback {
		return nil, errTooLarge
	}
	return take(r, e)
}

func (c *Calls) callback(r *http.Request, e envelope) ([]byte, error) {
	report, err := e.by.ParseCallback(r.Header, e.url, e.body, c.Now())
	if err != nil {
		return nil, err
	}
	instruction, err := c.report(r.Context(), e.carrierName, e.workspace, conversation.CallID(r.PathValue("call_id")), report)
	if err != nil {
		return nil, err
	}
	return e.by.Answer(instruction)
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
	case carrier.EventTool:
		return carrier.Instruction{}, c.text(ctx, call, report)
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
	number, err := c.number(ctx, carrierName, ws, report.To)
	if err != nil {
		return carrier.Instruction{}, err
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

// number finds the workspace's own number that a customer rings or writes to.
func (p Parts) number(ctx context.Context, carrierName string, ws conversation.WorkspaceID, called string) (conversation.Number, error) {
	number, err := p.Store.Number(ctx, carrierName, called)
	if err == nil && number.WorkspaceID != ws {
		err = fmt.Errorf("number %s: %w", called, conversation.ErrNotFound)
	}
	return number, err
}
