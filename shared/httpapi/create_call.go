package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// Calling is what placing calls needs beside the store.
type Calling struct {
	Carriers map[string]carrier.Carrier // by the name that workspaces choose
	Country  func(number string) (string, error)
	Pickup   time.Duration                   // how long a call may stay queued
	Longest  func(seconds int) time.Duration // how long a call lasts that may last so long
}

type callingKey struct{}

// calling is what the resolvers of a request to place a call need.
func calling(ctx context.Context) Calling {
	c, _ := ctx.Value(callingKey{}).(Calling)
	return c
}

func (a *API) addCalling(ctx huma.Context, next func(huma.Context)) {
	next(huma.WithValue(ctx, callingKey{}, a.calling))
}

// IdempotencyKey names one intended call.
type IdempotencyKey string

func (IdempotencyKey) Schema(huma.Registry) *huma.Schema {
	maximum := 255
	schema := &huma.Schema{
		Type: huma.TypeString, MaxLength: &maximum,
		Pattern: "^[\\x20-\\x7e]+$", PatternDescription: "printable ASCII",
	}
	schema.PrecomputeMessages()
	return schema
}

// Resolve refuses a header that is there and empty, which the library takes for none: its
// sender believes that a repeated request is safe.
func (k IdempotencyKey) Resolve(ctx huma.Context) []error {
	var problems []error
	ctx.EachHeader(func(name, value string) {
		if value == "" && strings.EqualFold(name, "Idempotency-Key") {
			problems = append(problems, errors.New("Idempotency-Key: must not be empty"))
		}
	})
	return problems
}

// carrierGrace is how much longer than us a carrier lets a call last, should we not reach
// it to hang up.
const carrierGrace = time.Minute

type createCallRequest struct {
	Strict
	IdempotencyKey IdempotencyKey `header:"Idempotency-Key" doc:"Unique per intended call, 1 to 255 printable ASCII characters. A key that was seen before answers with the original call and places none. It is remembered as long as the call."`
	CallBody
}

type createCallResponse struct {
	Replay string `header:"Idempotent-Replay" doc:"true when the idempotency key was seen before: no call was placed."`
	Body   struct {
		Call AcceptedCall `json:"call"`
	}
}

// AcceptedCall is a call as it was accepted. It is made of what never changes, so that a
// replay's body is the same.
type AcceptedCall struct {
	CallID          conversation.CallID      `json:"call_id"`
	WorkspaceID     conversation.WorkspaceID `json:"workspace_id"`
	AssistantID     conversation.AssistantID `json:"assistant_id"`
	AssistantName   string                   `json:"assistant_name"`
	Direction       conversation.Direction   `json:"direction"`
	Status          conversation.CallStatus  `json:"status"`
	DurationSeconds int                      `json:"duration_seconds"`
	StartedAt       conversation.Time        `json:"started_at"`
	Customer        AcceptedCustomer         `json:"customer"`
	CallVariables   conversation.JSON        `json:"call_variables,omitzero"`
	Metadata        conversation.JSON        `json:"metadata,omitzero"`
}

// AcceptedCustomer is who is being called.
type AcceptedCustomer struct {
	Name  string `json:"name,omitzero"`
	Phone string `json:"phone"`
}

func registerCreateCall(a *API, route Route) {
	operation(a, route, huma.Operation{
		Summary: "Place an outbound call",
		Description: "Answers when the call is accepted, before the phone rings; GET the call, or webhooks, tell what became of it. " +
			"Calls are real and billed. Send an Idempotency-Key, so that a request that is repeated after a lost answer places no second call. " +
			"All keys of a workspace together may send 10 requests a second and place 200 calls an hour.\n\n" +
			"Codes that a status alone doesn't tell: country_not_allowed (403); wallet_empty, agent_busy and assistant_disabled (409); provider_refused (502).",
		Tags:          []string{"Calls"},
		DefaultStatus: http.StatusCreated,
		Errors: []int{
			http.StatusForbidden, http.StatusNotFound, http.StatusConflict,
			http.StatusRequestEntityTooLarge, http.StatusBadGateway,
		},
		MaxBodyBytes: maxBodyBytes + 1, // the library refuses an equal count
	}, a.createCall)
}

func (a *API) createCall(ctx context.Context, in *createCallRequest) (*createCallResponse, error) {
	key := ""
	if in.IdempotencyKey != "" {
		key = dynamo.HashIdempotencyKey(string(in.IdempotencyKey))
	}
	ws := caller(ctx).WorkspaceID
	known, err := a.store.CallRequest(ctx, ws, in.call.AssistantID, key)
	if err != nil {
		return nil, err
	}
	if known.Replay != "" {
		return a.replay(ctx, ws, known.Replay)
	}
	number, err := a.outboundNumber(ctx, in.call, known)
	if err != nil {
		return nil, err
	}
	by, ok := a.calling.Carriers[known.Workspace.Carrier]
	if !ok {
		return nil, fmt.Errorf("workspace %s is on the carrier %q, which this stage doesn't have", ws, known.Workspace.Carrier)
	}
	call := a.newCall(in.call, known, number, key)
	replay, err := a.store.AcceptCall(ctx, dynamo.Acceptance{
		Call:            call,
		ConcurrentCalls: known.Workspace.Limits.ConcurrentCalls,
		CallsPerHour:    known.Workspace.Limits.CallsPerHour,
		Until:           call.StartedAt.Add(a.calling.Pickup + time.Minute),
	})
	switch {
	case err != nil:
		return nil, notAccepted(err, a.now())
	case replay != "":
		return a.replay(ctx, ws, replay)
	}
	if err := a.place(ctx, by, call); err != nil {
		return nil, err
	}
	return accepted(call), nil
}

// outboundNumber chooses the number to call from: 404 and 400 as the spec's table says,
// then 403 for another country.
func (a *API) outboundNumber(ctx context.Context, call newCall, known dynamo.Request) (conversation.PhoneNumber, error) {
	if known.Assistant.AssistantID == "" {
		return conversation.PhoneNumber{}, problem(http.StatusNotFound, "assistant_id: there is no such assistant in this workspace")
	}
	number, err := a.chooseNumber(ctx, call.From, known)
	switch {
	case err != nil:
		return conversation.PhoneNumber{}, err
	case call.country != number.Country:
		return conversation.PhoneNumber{}, coded(http.StatusForbidden, "country_not_allowed",
			fmt.Sprintf("to: calls from %s are allowed within %s only", number.PhoneNumber, number.Country))
	case !known.Assistant.Enabled:
		return conversation.PhoneNumber{}, coded(http.StatusConflict, "assistant_disabled", "assistant_id: the assistant is disabled")
	}
	return number, nil
}

// chooseNumber is the assistant's number that was named, or else its only one.
func (a *API) chooseNumber(ctx context.Context, named string, known dynamo.Request) (conversation.PhoneNumber, error) {
	enabled := slices.DeleteFunc(slices.Clone(known.Assistant.PhoneNumbers), func(n conversation.PhoneNumber) bool {
		return !n.OutboundEnabled || named != "" && n.PhoneNumber != named
	})
	switch {
	case len(enabled) == 1:
		return enabled[0], nil
	case named != "":
		return conversation.PhoneNumber{}, a.unusable(ctx, named, known)
	case len(enabled) == 0:
		return conversation.PhoneNumber{}, problem(http.StatusBadRequest, "assistant_id: the assistant has no number that is enabled for outbound calls")
	}
	return conversation.PhoneNumber{}, problem(http.StatusBadRequest, "from: required, as the assistant has more than one number enabled for outbound calls")
}

// unusable says why a number that was named can't be called from.
func (a *API) unusable(ctx context.Context, named string, known dynamo.Request) error {
	number, err := a.store.Number(ctx, known.Workspace.Carrier, named)
	switch {
	case errors.Is(err, conversation.ErrNotFound) || err == nil && number.WorkspaceID != known.Workspace.WorkspaceID:
		return problem(http.StatusNotFound, "from: there is no such number in this workspace")
	case err != nil:
		return err
	case number.AssistantID != known.Assistant.AssistantID:
		return problem(http.StatusBadRequest, "from: the number belongs to another assistant")
	}
	return problem(http.StatusBadRequest, "from: the number is not enabled for outbound calls")
}

func (a *API) newCall(wanted newCall, known dynamo.Request, number conversation.PhoneNumber, key string) conversation.CallRecord {
	return conversation.CallRecord{
		Call: conversation.Call{
			CallID: conversation.CallID(conversation.NewID()), WorkspaceID: known.Workspace.WorkspaceID,
			AssistantID: known.Assistant.AssistantID, AssistantName: known.Assistant.AssistantName,
			CallType: conversation.Outbound, Direction: conversation.Outbound, Status: conversation.CallQueued,
			StartedAt:     conversation.At(a.now()),
			Customer:      &conversation.Customer{Name: wanted.CustomerName, Phone: wanted.To},
			CallVariables: wanted.CallVariables, Metadata: wanted.Metadata,
		},
		CalledName: wanted.CustomerName,
		Carrier:    known.Workspace.Carrier, Number: number.PhoneNumber,
		IdempotencyKey: key, HoldsSlot: true,
		LongestSeconds: known.Workspace.Limits.LongestCallSeconds,
	}
}

// notAccepted is why the table has no room for the call.
func notAccepted(err error, now time.Time) error {
	switch {
	case errors.Is(err, dynamo.ErrHourlyLimit):
		hour := now.UTC().Truncate(time.Hour).Add(time.Hour)
		return huma.ErrorWithHeaders(
			problem(http.StatusTooManyRequests, "the workspace has placed as many calls as an hour may have"),
			http.Header{"Retry-After": {fmt.Sprint(seconds(hour.Sub(now)))}})
	case errors.Is(err, dynamo.ErrNoSlot):
		return coded(http.StatusConflict, "agent_busy", "the assistant has as many calls as it may have at once; try again later")
	case errors.Is(err, dynamo.ErrNoBalance):
		return coded(http.StatusConflict, "wallet_empty", "the workspace's balance is used up; try again after a top-up")
	}
	return err
}

// place asks the carrier, once. Only a refusal undoes the call: without an answer the
// phone may be ringing, so the call stays queued and its lifecycle asks what became of it.
func (a *API) place(ctx context.Context, by carrier.Carrier, call conversation.CallRecord) error {
	ref := carrier.Ref{WorkspaceID: call.WorkspaceID, CallID: call.CallID}
	carrierID, err := by.PlaceCall(ctx, carrier.Placement{
		Ref: ref, From: call.Number, To: call.Customer.Phone,
		CallbackURL: fmt.Sprintf("%s/carriers/%s/%s/%s", a.baseURL, call.Carrier, call.WorkspaceID, call.CallID),
		MaxDuration: a.calling.Longest(call.LongestSeconds) + carrierGrace,
	})
	switch {
	case errors.Is(err, carrier.ErrRefused):
		return a.refuse(ctx, call, err)
	case err != nil:
		slog.WarnContext(ctx, "no answer from the carrier", "request_id", requestID(ctx), "call_id", call.CallID, "error", err)
		return nil
	}
	err = a.store.SetCarrierID(ctx, call, carrierID)
	switch {
	case errors.Is(err, dynamo.ErrStale):
		a.silence(ctx, by, call, carrierID)
	case err != nil: // the carrier knows the call by our id, and its callbacks tell its own
		slog.ErrorContext(ctx, "note the carrier's id", "request_id", requestID(ctx), "call_id", call.CallID, "error", err)
	}
	return nil
}

// refuse answers 502 once the call is undone: in error, its slot given back and its key
// free. Until then a repeated request must find the call.
func (a *API) refuse(ctx context.Context, call conversation.CallRecord, refusal error) error {
	slog.WarnContext(ctx, "the carrier refused", "request_id", requestID(ctx), "call_id", call.CallID, "error", refusal)
	err := a.store.RefuseCall(ctx, call, a.now())
	if errors.Is(err, dynamo.ErrStale) {
		err = a.refusedAlready(ctx, call)
	}
	if err != nil {
		return err
	}
	return coded(http.StatusBadGateway, "provider_refused", "the telephony provider refused the call")
}

// refusedAlready is for a call that somebody else has moved: in error it needs only its
// key freed; anything else contradicts the refusal.
func (a *API) refusedAlready(ctx context.Context, call conversation.CallRecord) error {
	now, err := a.store.CallRecord(ctx, call.WorkspaceID, call.CallID)
	switch {
	case err != nil:
		return err
	case now.Status != conversation.CallError:
		return fmt.Errorf("call %s is %s although its carrier refused it", call.CallID, now.Status)
	case call.IdempotencyKey == "":
		return nil
	}
	return a.store.FreeKey(ctx, call)
}

// silence hangs up a call that was given up while the carrier accepted it. Should that
// fail, whoever answers the phone makes the carrier ask us, and it is told then.
func (a *API) silence(ctx context.Context, by carrier.Carrier, call conversation.CallRecord, carrierID string) {
	now, err := a.store.CallRecord(ctx, call.WorkspaceID, call.CallID)
	if err == nil && now.Status == conversation.CallError {
		ref := carrier.Ref{WorkspaceID: call.WorkspaceID, CallID: call.CallID, CarrierID: carrierID}
		err = by.EndCall(ctx, ref, conversation.EndCanceled)
	}
	if err != nil {
		slog.ErrorContext(ctx, "hang up a call that was given up", "request_id", requestID(ctx), "call_id", call.CallID, "error", err)
	}
}

// replay answers with the call that the idempotency key names.
func (a *API) replay(ctx context.Context, ws conversation.WorkspaceID, callID conversation.CallID) (*createCallResponse, error) {
	call, err := a.store.CallRecord(ctx, ws, callID)
	if err != nil {
		return nil, err
	}
	out := accepted(call.CallRecord)
	out.Replay = "true"
	return out, nil
}

func accepted(call conversation.CallRecord) *createCallResponse {
	var out createCallResponse
	out.Body.Call = AcceptedCall{
		CallID: call.CallID, WorkspaceID: call.WorkspaceID,
		AssistantID: call.AssistantID, AssistantName: call.AssistantName,
		Direction: call.Direction, Status: conversation.CallQueued,
		StartedAt:     call.StartedAt,
		Customer:      AcceptedCustomer{Name: call.CalledName, Phone: call.Customer.Phone},
		CallVariables: call.CallVariables, Metadata: call.Metadata,
	}
	return &out
}
