package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

type listMessagesRequest struct {
	Strict
	Cursor
	PageSize
	Span
	Fields
	AssistantID UUID                   `query:"assistant_id" doc:"Only messages of this assistant."`
	Channel     conversation.Channel   `query:"channel" doc:"Only this channel."`
	Direction   conversation.Direction `query:"direction" doc:"Only this direction."`
	ThreadID    UUID                   `query:"thread_id" doc:"Only messages of this conversation."`
}

type listMessagesResponse struct {
	Body struct {
		Messages []resource[conversation.Message] `json:"messages"`
		Paging
	}
}

func registerListMessages(a *API, route Route) {
	operation(a, route, huma.Operation{
		Summary:     "List SMS and WhatsApp messages",
		Description: "Newest first. from and to choose messages by occurred_at, from inclusive, to exclusive.",
		Tags:        []string{"Messages"},
		Errors:      []int{http.StatusForbidden},
	}, a.listMessages)
}

func (a *API) listMessages(ctx context.Context, in *listMessagesRequest) (*listMessagesResponse, error) {
	query := dynamo.MessageQuery{
		AssistantID: canonical[conversation.AssistantID](in.AssistantID),
		ThreadID:    canonical[conversation.ThreadID](in.ThreadID),
		Channel:     in.Channel, Direction: in.Direction,
		From: in.From.Time, To: in.To.Time,
	}
	var out listMessagesResponse
	var err error
	out.Body.Messages, out.Body.Paging, err = answer(ctx, a, list[conversation.Message]{
		cursor: in.Cursor, limit: in.Limit, fields: in.Fields, show: shownMessage,
		read: func(p dynamo.PageRequest) (dynamo.Page[conversation.Message], error) {
			return a.store.Messages(ctx, caller(ctx).WorkspaceID, query, p)
		},
	})
	return &out, err
}

type getMessageRequest struct {
	Strict
	Fields
	MessageID UUID `path:"message_id"`
}

type getMessageResponse struct {
	Body struct {
		Message resource[conversation.Message] `json:"message"`
	}
}

func registerGetMessage(a *API, route Route) {
	operation(a, route, huma.Operation{
		Summary: "Get a message",
		Tags:    []string{"Messages"},
		Errors:  []int{http.StatusForbidden},
	}, a.getMessage)
}

func (a *API) getMessage(ctx context.Context, in *getMessageRequest) (*getMessageResponse, error) {
	blocks, err := a.blocks(ctx, in.blocks)
	if err != nil {
		return nil, err
	}
	message, err := a.store.Message(ctx, caller(ctx).WorkspaceID, canonical[conversation.MessageID](in.MessageID), blocks)
	if err != nil {
		return nil, err
	}
	var out getMessageResponse
	out.Body.Message, err = encode(shownMessage(message, blocks))
	return &out, err
}

// shownMessage is a message cut to the blocks. Its reply is a message of its own, and shows
// beside it in message.received alone.
func shownMessage(m conversation.Message, blocks conversation.Blocks) conversation.Message {
	m.Reply = nil
	return conversation.Only(m, blocks)
}
