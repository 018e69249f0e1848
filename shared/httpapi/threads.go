package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

type listThreadsRequest struct {
	Strict
	Cursor
	PageSize
	Span
	Fields
	AssistantID UUID                 `query:"assistant_id" doc:"Only conversations of this assistant."`
	Channel     conversation.Channel `query:"channel" doc:"Only this channel."`
	CloseReason CloseReasonParam     `query:"close_reason" doc:"One of the close_reason values; follow_up_skipped stands for follow_up_skipped with any reason."`
}

type listThreadsResponse struct {
	Body struct {
		Threads []resource[conversation.Thread] `json:"threads"`
		Paging
	}
}

func registerListThreads(a *API, route Route) {
	operation(a, route, huma.Operation{
		Summary:     "List completed SMS and WhatsApp conversations",
		Description: "Newest first by completed_at, which from (inclusive) and to (exclusive) bound. A conversation appears when it is completed.",
		Tags:        []string{"Threads"},
		Errors:      []int{http.StatusForbidden},
	}, a.listThreads)
}

func (a *API) listThreads(ctx context.Context, in *listThreadsRequest) (*listThreadsResponse, error) {
	query := dynamo.ThreadQuery{
		AssistantID: canonical[conversation.AssistantID](in.AssistantID),
		Channel:     in.Channel,
		CloseReason: conversation.CloseReason(in.CloseReason),
		From:        in.From.Time, To: in.To.Time,
	}
	var out listThreadsResponse
	var err error
	out.Body.Threads, out.Body.Paging, err = answer(ctx, a, list[conversation.Thread]{
		cursor: in.Cursor, limit: in.Limit, fields: in.Fields, show: conversation.Only[conversation.Thread],
		read: func(p dynamo.PageRequest) (dynamo.Page[conversation.Thread], error) {
			return a.store.Threads(ctx, caller(ctx).WorkspaceID, query, p)
		},
	})
	return &out, err
}

type getThreadRequest struct {
	Strict
	Fields
	ThreadID UUID `path:"thread_id"`
}

type getThreadResponse struct {
	Body struct {
		Thread resource[conversation.Thread] `json:"thread"`
	}
}

func registerGetThread(a *API, route Route) {
	operation(a, route, huma.Operation{
		Summary:     "Get a completed conversation",
		Description: "404 while the conversation is open; its messages can be listed by thread_id.",
		Tags:        []string{"Threads"},
		Errors:      []int{http.StatusForbidden},
	}, a.getThread)
}

func (a *API) getThread(ctx context.Context, in *getThreadRequest) (*getThreadResponse, error) {
	blocks, err := a.blocks(ctx, in.blocks)
	if err != nil {
		return nil, err
	}
	thread, err := a.store.Thread(ctx, caller(ctx).WorkspaceID, canonical[conversation.ThreadID](in.ThreadID), blocks)
	if err != nil {
		return nil, err
	}
	var out getThreadResponse
	out.Body.Thread, err = encode(conversation.Only(thread, blocks))
	return &out, err
}
