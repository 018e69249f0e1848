package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"parley/shared/conversation"
)

// document is the library's configuration: what the OpenAPI document says of the whole
// API, and how bodies are read and written.
func document(baseURL string) huma.Config {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	for _, alias := range []struct{ ours, shown reflect.Type }{
		{reflect.TypeFor[conversation.Time](), reflect.TypeFor[time.Time]()},
		{reflect.TypeFor[conversation.JSON](), reflect.TypeFor[anyJSON]()},
		{reflect.TypeFor[conversation.WorkspaceID](), reflect.TypeFor[UUID]()},
		{reflect.TypeFor[conversation.AssistantID](), reflect.TypeFor[UUID]()},
		{reflect.TypeFor[conversation.CallID](), reflect.TypeFor[UUID]()},
		{reflect.TypeFor[conversation.MessageID](), reflect.TypeFor[UUID]()},
		{reflect.TypeFor[conversation.ThreadID](), reflect.TypeFor[UUID]()},
		{reflect.TypeFor[conversation.CustomerID](), reflect.TypeFor[UUID]()},
		{reflect.TypeFor[conversation.EvaluationID](), reflect.TypeFor[UUID]()},
	} {
		registry.RegisterTypeAlias(alias.ours, alias.shown)
	}
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title:   "Parley",
				Version: "1",
				Description: "AI assistants talk with your customers over voice calls, SMS and WhatsApp; this API gives you the result. " +
					"Within version 1 fields, events and values are only added: ignore what you don't know, and treat a missing field as normal.",
			},
			Servers: []*huma.Server{{URL: baseURL}},
			Components: &huma.Components{
				Schemas: registry,
				SecuritySchemes: map[string]*huma.SecurityScheme{
					bearer: {Type: "http", Scheme: "bearer", Description: "An API key of one workspace."},
				},
			},
			OnAddOperation: []huma.AddOpFunc{func(_ *huma.OpenAPI, op *huma.Operation) {
				delete(op.Responses, strconv.Itoa(http.StatusUnprocessableEntity)) // the library's 422 is our 400
			}},
		},
		Formats:       map[string]huma.Format{"application/json": jsonFormat},
		DefaultFormat: "application/json",
	}
}

// anyJSON is any JSON value.
type anyJSON struct{}

func (anyJSON) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }

// describeProblems says which problems an operation may answer, and the headers of all.
func describeProblems(op *huma.Operation) {
	op.Errors = []int{
		http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
		http.StatusTooManyRequests, http.StatusInternalServerError,
	}
}

type getOpenAPIRequest struct{ Strict }

type getOpenAPIResponse struct {
	Body json.RawMessage
}

func registerGetOpenAPI(a *API, route Route) {
	operation(a, route, huma.Operation{
		Summary: "Get this document",
		Tags:    []string{"OpenAPI"},
	}, a.getOpenAPI)
}

func (a *API) getOpenAPI(context.Context, *getOpenAPIRequest) (*getOpenAPIResponse, error) {
	body, err := json.Marshal(a.huma.OpenAPI())
	return &getOpenAPIResponse{Body: body}, err
}
