package settings

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/httpapi"
)

type writeRequest struct {
	httpapi.Strict
	httpapi.StrictBody
	Body writeRequestBody
}

type writeRequestBody struct {
	_          struct{}             `additionalProperties:"false"`
	Channel    conversation.Channel `json:"channel" enum:"sms,whatsapp"`
	From       string               `json:"from" minLength:"1" doc:"The customer's number, E.164, or on whatsapp a user id such as US.13491208655302741918. Its last two digits choose what happens."`
	To         string               `json:"to" minLength:"1" doc:"A number of the workspace, E.164."`
	Content    string               `json:"content,omitempty" maxLength:"10000" doc:"What the customer writes; may be left out."`
	MediaCount mediaCount           `json:"media_count,omitempty" doc:"How many pictures or files come with it."`
	Test       bool                 `json:"test,omitempty" doc:"Whether it is a test message, which has no API row and makes no event; without it: no."`
}

func (b *writeRequestBody) Resolve(huma.Context, *huma.PathBuffer) []error {
	var problems []error
	if _, err := b.MediaCount.count(); err != nil {
		problems = append(problems, err)
	}
	known := b.Channel == conversation.SMS || b.Channel == conversation.WhatsApp // else the schema says so
	if known && b.From != "" && !carrier.IsAddress(b.Channel, b.From) {
		problems = append(problems, errors.New("from: must be a phone number in E.164, such as +12025550123, or on whatsapp a user id"))
	}
	if b.To != "" && !carrier.IsE164(b.To) {
		problems = append(problems, errors.New("to: must be a phone number in E.164, such as +12025550123"))
	}
	return problems
}

type writeResponse struct {
	Body struct {
		ProviderMessageID string `json:"provider_message_id" doc:"The carrier's id of the message. The message itself appears when it has arrived."`
	}
}

func (s Settings) writeRoute() httpapi.Route {
	return httpapi.Operation(row(http.MethodPost, "/sandbox/messages", getWorkspaces, askSimulator), huma.Operation{
		OperationID: "write", Tags: tag, DefaultStatus: http.StatusAccepted,
		Errors:      append([]int{http.StatusNotFound, http.StatusConflict, http.StatusBadGateway}, bodyErrors...),
		Summary:     "Let a customer write",
		Description: "In a workspace on the simulator, which texts nobody. 409 in any other; 404 for a number that isn't the workspace's.",
	}, s.write)
}

func (s Settings) write(ctx context.Context, in *writeRequest) (*writeResponse, error) {
	ws := httpapi.UserOf(ctx).WorkspaceID
	if _, err := s.sandbox(ctx, ws, in.Body.To); err != nil {
		return nil, err
	}
	media, _ := in.Body.MediaCount.count() // it was checked
	carrierID, err := s.Simulator.Write(ctx, carrier.Text{
		WorkspaceID: ws, MessageID: conversation.MessageID(conversation.NewID()),
		Channel: in.Body.Channel, From: in.Body.From, To: in.Body.To, Content: in.Body.Content,
		CallbackURL: fmt.Sprintf("%s/carriers/%s/%s", s.BaseURL, carrier.SimulatorName, ws),
	}, media, in.Body.Test)
	if errors.Is(err, carrier.ErrRefused) {
		return nil, httpapi.Refuse(http.StatusBadGateway, "provider_refused", "the simulator refused the message")
	}
	var out writeResponse
	out.Body.ProviderMessageID = carrierID
	return &out, err
}
