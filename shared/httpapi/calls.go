package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

type listCallsRequest struct {
	Strict
	Cursor
	PageSize
	Span
	Fields
	AssistantID UUID `query:"assistant_id" doc:"Only calls of this assistant."`
	IncludeTest bool `query:"include_test" doc:"Also test calls. Without it they are left out."`
}

type listCallsResponse struct {
	Body struct {
		Calls []resource[conversation.Call] `json:"calls"`
		Paging
	}
}

func registerListCalls(a *API, route Route) {
	operation(a, route, huma.Operation{
		Summary: "List voice calls",
		Description: "Newest first. from and to choose calls by when they ended, from inclusive, to exclusive; " +
			"with either of them, calls that are still queued or in progress are left out.",
		Tags:   []string{"Calls"},
		Errors: []int{http.StatusForbidden},
	}, a.listCalls)
}

func (a *API) listCalls(ctx context.Context, in *listCallsRequest) (*listCallsResponse, error) {
	query := dynamo.CallQuery{
		AssistantID: canonical[conversation.AssistantID](in.AssistantID),
		From:        in.From.Time, To: in.To.Time,
		IncludeTest: in.IncludeTest,
	}
	var out listCallsResponse
	var err error
	out.Body.Calls, out.Body.Paging, err = answer(ctx, a, list[conversation.Call]{
		cursor: in.Cursor, limit: in.Limit, fields: in.Fields, show: a.showCall,
		read: func(p dynamo.PageRequest) (dynamo.Page[conversation.Call], error) {
			return a.store.Calls(ctx, caller(ctx).WorkspaceID, query, p)
		},
	})
	return &out, err
}

type getCallRequest struct {
	Strict
	Fields
	CallID UUID `path:"call_id"`
}

type getCallResponse struct {
	Body struct {
		Call resource[conversation.Call] `json:"call"`
	}
}

func registerGetCall(a *API, route Route) {
	operation(a, route, huma.Operation{
		Summary:     "Get a voice call",
		Description: "The same shape serves the call's whole life; a block that cannot exist yet is absent.",
		Tags:        []string{"Calls"},
		Errors:      []int{http.StatusForbidden},
	}, a.getCall)
}

func (a *API) getCall(ctx context.Context, in *getCallRequest) (*getCallResponse, error) {
	blocks, err := a.blocks(ctx, in.blocks)
	if err != nil {
		return nil, err
	}
	call, err := a.store.Call(ctx, caller(ctx).WorkspaceID, canonical[conversation.CallID](in.CallID), blocks)
	if err != nil {
		return nil, err
	}
	var out getCallResponse
	out.Body.Call, err = encode(a.showCall(call, blocks))
	return &out, err
}

// showCall cuts a call to the blocks; its recording has the address of this API.
func (a *API) showCall(call conversation.Call, blocks conversation.Blocks) conversation.Call {
	return conversation.Only(call.WithDownloadURL(a.baseURL), blocks)
}

type getCallRecordingRequest struct {
	Strict
	CallID UUID `path:"call_id"`
}

type getCallRecordingResponse struct {
	Location     string `header:"Location" doc:"A temporary address of the audio. Do not store it."`
	CacheControl string `header:"Cache-Control"`
}

// recordingExpiry is how long the address of a recording's audio works.
const recordingExpiry = 5 * time.Minute

func registerGetCallRecording(a *API, route Route) {
	operation(a, route, huma.Operation{
		Summary: "Get a call's recording",
		Description: "Redirects to the audio (WAV). The target works for five minutes; store this endpoint's address instead, " +
			"which makes a new one each time. 404 while there is no audio. Needs the permission to read the block recording.",
		Tags:          []string{"Calls"},
		Errors:        []int{http.StatusForbidden},
		DefaultStatus: http.StatusFound,
	}, a.getCallRecording)
}

func (a *API) getCallRecording(ctx context.Context, in *getCallRecordingRequest) (*getCallRecordingResponse, error) {
	needed := conversation.Blocks{conversation.BlockRecording}
	if _, err := a.blocks(ctx, needed); err != nil {
		return nil, err
	}
	ws, callID := caller(ctx).WorkspaceID, canonical[conversation.CallID](in.CallID)
	call, err := a.store.Call(ctx, ws, callID, nil)
	if err != nil {
		return nil, err
	}
	if call.Recording == nil || !call.Recording.Available {
		return nil, problem(http.StatusNotFound, "this call has no recording")
	}
	url, err := a.store.RecordingURL(ctx, ws, callID, recordingExpiry)
	return &getCallRecordingResponse{Location: url, CacheControl: "no-store"}, err
}
