package httpapi

import (
	"cmp"
	"context"

	"github.com/danielgtaylor/huma/v2"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

type listAssistantsRequest struct {
	Strict
	Cursor
	Limit int `query:"limit" minimum:"1" maximum:"100" doc:"How many assistants a page may hold. Without it: all of them in one answer."`
}

type listAssistantsResponse struct {
	Body struct {
		Assistants []resource[conversation.Assistant] `json:"assistants"`
		Paging
	}
}

func registerListAssistants(a *API, route Route) {
	operation(a, route, huma.Operation{
		Summary:     "List the workspace's assistants",
		Description: "call_variables names what a call may be given: the variables that the assistant's prompt and greeting use.",
		Tags:        []string{"Assistants"},
	}, a.listAssistants)
}

func (a *API) listAssistants(ctx context.Context, in *listAssistantsRequest) (*listAssistantsResponse, error) {
	var out listAssistantsResponse
	var err error
	out.Body.Assistants, out.Body.Paging, err = answer(ctx, a, list[conversation.Assistant]{
		cursor: in.Cursor, limit: cmp.Or(in.Limit, conversation.MaxAssistants),
		show: showAssistant,
		read: func(p dynamo.PageRequest) (dynamo.Page[conversation.Assistant], error) {
			return a.store.Assistants(ctx, caller(ctx).WorkspaceID, p)
		},
	})
	return &out, err
}

// showAssistant shows empty lists as such: the store doesn't tell them from none.
func showAssistant(assistant conversation.Assistant, _ conversation.Blocks) conversation.Assistant {
	assistant.PhoneNumbers = append([]conversation.PhoneNumber{}, assistant.PhoneNumbers...)
	assistant.CallVariables = append([]string{}, assistant.CallVariables...)
	return assistant
}
