package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"
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
		{reflect.TypeFor[conversation.WorkspaceID](), reflect.TypeFor[id]()},
		{reflect.TypeFor[conversation.AssistantID](), reflect.TypeFor[id]()},
		{reflect.TypeFor[conversation.CallID](), reflect.TypeFor[id]()},
		{reflect.TypeFor[conversation.MessageID](), reflect.TypeFor[id]()},
		{reflect.TypeFor[conversation.ThreadID](), reflect.TypeFor[id]()},
		{reflect.TypeFor[conversation.CustomerID](), reflect.TypeFor[id]()},
		{reflect.TypeFor[conversation.EvaluationID](), reflect.TypeFor[id]()},
		{reflect.TypeFor[conversation.APIKeyID](), reflect.TypeFor[id]()},
		{reflect.TypeFor[conversation.EndpointID](), reflect.TypeFor[id]()},
		{reflect.TypeFor[conversation.DeliveryID](), reflect.TypeFor[id]()},
		{reflect.TypeFor[conversation.AttemptID](), reflect.TypeFor[id]()},
		{reflect.TypeFor[conversation.AuditID](), reflect.TypeFor[id]()},
		{reflect.TypeFor[conversation.CallStatus](), reflect.TypeFor[callStatus]()},
		{reflect.TypeFor[conversation.Direction](), reflect.TypeFor[direction]()},
		{reflect.TypeFor[conversation.Channel](), reflect.TypeFor[channel]()},
	} {
		registry.RegisterTypeAlias(alias.ours, alias.shown)
	}
	cfg := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title:   "Parley",
				Version: "1",
				Description: "AI assistants talk with your customers over voice calls, SMS and WhatsApp; this API gives you the result. " +
					"Within version 1 fields, events and values are only added: ignore what you don't know, and treat a missing field as normal.\n\n" +
					"The gateway in front of the API answers 413, 429 and 503 on its own when it has to, and 401 under /settings; such a body is {\"message\": \"…\"}.",
			},
			Servers: []*huma.Server{{URL: baseURL}},
			Tags: []*huma.Tag{
				{Name: "Calls", Description: "Voice calls, from queued to ended or error."},
				{Name: "Messages", Description: "SMS and WhatsApp messages, as they happen."},
				{Name: "Threads", Description: "Completed SMS and WhatsApp conversations: how they ended and how they were graded."},
				{Name: "Assistants", Description: "The AI agents of your workspace."},
				{Name: "OpenAPI", Description: "This description."},
				{Name: "Settings", Description: "Settings → Developers: API keys, webhook endpoints, the log of deliveries, the audit trail. For people who are signed in, not for API keys."},
			},
			Components: &huma.Components{
				Schemas: registry,
				Headers: headers,
				SecuritySchemes: map[string]*huma.SecurityScheme{
					bearer:  {Type: "http", Scheme: "bearer", Description: "An API key of one workspace, parley_live_…: it says what may be read."},
					idToken: {Type: "http", Scheme: "bearer", BearerFormat: "JWT", Description: "The ID token of a user of the workspace, who has signed in."},
				},
			},
			OnAddOperation: []huma.AddOpFunc{describeRequest, describeResponses},
		},
		Formats:       map[string]huma.Format{"application/json": jsonFormat},
		DefaultFormat: "application/json",
	}
	cfg.AllowAdditionalPropertiesByDefault = true // fields are added within a version
	return cfg
}

// anyJSON is any JSON value.
type anyJSON struct{}

func (anyJSON) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }

// id is an id as the service writes it.
type id string

func (id) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "uuid"}
}

// Sets of values that are closed within version 1. The others are told in descriptions.
type (
	callStatus string
	direction  string
	channel    string
)

func (callStatus) Schema(huma.Registry) *huma.Schema {
	return oneOf(conversation.CallQueued, conversation.CallInProgress, conversation.CallEnded, conversation.CallError)
}

func (direction) Schema(huma.Registry) *huma.Schema {
	return oneOf(conversation.Inbound, conversation.Outbound)
}

func (channel) Schema(huma.Registry) *huma.Schema {
	return oneOf(conversation.SMS, conversation.WhatsApp)
}

func oneOf[S ~string](values ...S) *huma.Schema {
	schema := &huma.Schema{Type: huma.TypeString}
	for _, value := range values {
		schema.Enum = append(schema.Enum, string(value))
	}
	schema.PrecomputeMessages()
	return schema
}

// headers are those that endpoints have in common.
var headers = map[string]*huma.Header{
	requestIDHeader: {
		Description: "Names this request; tell it to support.", Schema: &huma.Schema{Type: huma.TypeString},
	},
	"RateLimit-Policy": {
		Description: "The endpoint's limits: q requests per w seconds.",
		Schema:      &huma.Schema{Type: huma.TypeString, Examples: []any{`"hour";q=1000;w=3600, "second";q=100;w=1`}},
	},
	"RateLimit": {
		Description: "What is left of each limit: r requests for the next t seconds.",
		Schema:      &huma.Schema{Type: huma.TypeString, Examples: []any{`"hour";r=999;t=1800, "second";r=99;t=1`}},
	},
	"Retry-After": {
		Description: "In how many seconds to try again.", Schema: &huma.Schema{Type: huma.TypeInteger},
	},
	"WWW-Authenticate": {
		Description: "How to authenticate: Bearer.", Schema: &huma.Schema{Type: huma.TypeString},
	},
}

// describeProblems adds the problems that every operation may answer.
func describeProblems(op *huma.Operation, limit Limit) {
	op.Errors = append(op.Errors, http.StatusBadRequest, http.StatusUnauthorized, http.StatusInternalServerError)
	if limit != (Limit{}) {
		op.Errors = append(op.Errors, http.StatusTooManyRequests)
	}
	if strings.Contains(op.Path, "{") {
		op.Errors = append(op.Errors, http.StatusNotFound)
	}
}

// describeRequest leaves JSON as the only form of a body: the library takes a handler that
// looks at the bytes for one that takes any.
func describeRequest(_ *huma.OpenAPI, op *huma.Operation) {
	if op.RequestBody != nil {
		delete(op.RequestBody.Content, "application/octet-stream")
	}
}

// describeResponses says which responses carry which of the common headers.
func describeResponses(_ *huma.OpenAPI, op *huma.Operation) {
	delete(op.Responses, strconv.Itoa(http.StatusUnprocessableEntity)) // the library's 422 is our 400
	_, limited := op.Responses[strconv.Itoa(http.StatusTooManyRequests)]
	for status, response := range op.Responses {
		names := []string{requestIDHeader, "RateLimit-Policy", "RateLimit"}
		switch status {
		case strconv.Itoa(http.StatusUnauthorized): // of nobody, so not counted
			names = []string{requestIDHeader, "WWW-Authenticate"}
		case strconv.Itoa(http.StatusTooManyRequests):
			names = append(names, "Retry-After")
		case strconv.Itoa(http.StatusInternalServerError): // may be that the request couldn't be counted
			names = []string{requestIDHeader}
		default:
			if !limited {
				names = []string{requestIDHeader}
			}
		}
		if response.Headers == nil {
			response.Headers = map[string]*huma.Header{}
		}
		for _, name := range names {
			response.Headers[name] = &huma.Header{Ref: "#/components/headers/" + name}
		}
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
