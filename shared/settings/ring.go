package settings

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/httpapi"
)

type ringRequest struct {
	httpapi.Strict
	httpapi.StrictBody
	Body ringRequestBody
}

type ringRequestBody struct {
	_    struct{} `additionalProperties:"false"`
	From string   `json:"from" minLength:"1" doc:"The customer's number, E.164. Its last two digits choose what happens."`
	To   string   `json:"to" minLength:"1" doc:"A number of the workspace, E.164."`
	Test bool     `json:"test,omitempty" doc:"Whether it is a test call; without it: no."`
}

func (b *ringRequestBody) Resolve(huma.Context, *huma.PathBuffer) []error {
	var problems []error
	for _, number := range []struct{ field, value string }{{"from", b.From}, {"to", b.To}} {
		if number.value != "" && !carrier.IsE164(number.value) {
			problems = append(problems, fmt.Errorf("%s: must be a phone number in E.164, such as +12025550123", number.field))
		}
	}
	return problems
}

type ringResponse struct {
	Body struct {
		ProviderCallID string `json:"provider_call_id" doc:"The carrier's id of the call. The call itself appears when it has arrived."`
	}
}

// ringGrace is how much longer than us the carrier lets a call last.
const ringGrace = time.Minute

func (s Settings) ringRoute() httpapi.Route {
	return httpapi.Operation(row(http.MethodPost, "/sandbox/calls", getWorkspaces, askSimulator), huma.Operation{
		OperationID: "ring", Tags: tag, DefaultStatus: http.StatusAccepted,
		Errors:      append([]int{http.StatusNotFound, http.StatusConflict, http.StatusBadGateway}, bodyErrors...),
		Summary:     "Let a customer ring",
		Description: "In a workspace on the simulator, which rings nobody. 409 in any other; 404 for a number that isn't the workspace's.",
	}, s.ring)
}

func (s Settings) ring(ctx context.Context, in *ringRequest) (*ringResponse, error) {
	ws := httpapi.UserOf(ctx).WorkspaceID
	definition, err := s.sandbox(ctx, ws, in.Body.To)
	if err != nil {
		return nil, err
	}
	callID := conversation.CallID(conversation.NewID())
	carrierID, err := s.Simulator.Ring(ctx, carrier.Placement{
		Ref: carrier.Ref{WorkspaceID: ws, CallID: callID}, From: in.Body.From, To: in.Body.To,
		CallbackURL: fmt.Sprintf("%s/carriers/%s/%s/%s", s.BaseURL, carrier.SimulatorName, ws, callID),
		MaxDuration: s.Longest(definition.Workspace.Limits.LongestCallSeconds) + ringGrace,
	}, in.Body.Test)
	if errors.Is(err, carrier.ErrRefused) {
		return nil, httpapi.Refuse(http.StatusBadGateway, "provider_refused", "the simulator refused the call")
	}
	var out ringResponse
	out.Body.ProviderCallID = carrierID
	return &out, err
}
