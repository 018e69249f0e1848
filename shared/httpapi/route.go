package httpapi

import (
	"net/http"

	"parley/shared/dynamo"
)

// Auth is how a route knows its caller.
type Auth int

const (
	ByKey Auth = iota + 1 // API key: Authorization: Bearer
)

// Limit is how often one caller may use one endpoint (spec: Limits). 0 is no limit.
type Limit struct {
	PerHour   int
	PerSecond int
}

// Grant allows a function some actions on one resource: a table, one of its indexes, or
// the objects under a prefix of the bucket.
type Grant struct {
	Table   string
	Index   string
	Prefix  string
	Actions []string
}

// Route is one endpoint. Infra makes its function, its gateway route and its policy of
// it; the OpenAPI document, the sample events and the tests follow the same rows.
type Route struct {
	Function string // folder under functions/
	Method   string
	Path     string
	Auth     Auth
	Limit    Limit
	Grants   []Grant // beside what Auth and Limit need: KeyGrants

	register func(*API, Route)
}

// KeyGrants is what a function needs to know its caller by key and to count its requests.
var KeyGrants = []Grant{
	{Table: dynamo.Workspaces, Actions: []string{"dynamodb:GetItem", "dynamodb:UpdateItem"}},
	{Table: dynamo.Counters, Actions: []string{"dynamodb:UpdateItem"}},
}

var readLimit = Limit{PerHour: 1000, PerSecond: 100}

// Every endpoint is a variable of its own, so that a function links only its own.
var (
	ListCalls        = Route{"list-calls", http.MethodGet, "/v1/calls", ByKey, readLimit, listGrants, registerListCalls}
	GetCall          = Route{"get-call", http.MethodGet, "/v1/calls/{call_id}", ByKey, readLimit, getGrants, registerGetCall}
	GetCallRecording = Route{"get-call-recording", http.MethodGet, "/v1/calls/{call_id}/recording", ByKey, readLimit, recordingGrants, registerGetCallRecording}
	ListMessages     = Route{"list-messages", http.MethodGet, "/v1/messages", ByKey, readLimit, messageGrants, registerListMessages}
	GetMessage       = Route{"get-message", http.MethodGet, "/v1/messages/{message_id}", ByKey, readLimit, getGrants, registerGetMessage}
	ListThreads      = Route{"list-threads", http.MethodGet, "/v1/threads", ByKey, readLimit, listGrants, registerListThreads}
	GetThread        = Route{"get-thread", http.MethodGet, "/v1/threads/{thread_id}", ByKey, readLimit, getGrants, registerGetThread}
	ListAssistants   = Route{"list-assistants", http.MethodGet, "/v1/assistants", ByKey, readLimit, assistantGrants, registerListAssistants}
	GetOpenAPI       = Route{"get-open-api", http.MethodGet, "/open-api", ByKey, readLimit, nil, registerGetOpenAPI}
)

// Routes returns the table of endpoints.
func Routes() []Route {
	return []Route{
		ListCalls, GetCall, GetCallRecording,
		ListMessages, GetMessage,
		ListThreads, GetThread,
		ListAssistants,
		GetOpenAPI,
	}
}

// DefaultFunction also answers what no route matches: 404 and 405 in the API's own form.
const DefaultFunction = "get-open-api"

var (
	listGrants = []Grant{
		{Table: dynamo.Conversations, Index: dynamo.ByWorkspace, Actions: []string{"dynamodb:Query"}},
		{Table: dynamo.Conversations, Index: dynamo.ByAssistant, Actions: []string{"dynamodb:Query"}},
		{Table: dynamo.Conversations, Actions: []string{"dynamodb:BatchGetItem"}},
		{Prefix: dynamo.FieldsPrefix, Actions: []string{"s3:GetObject"}},
	}
	messageGrants = []Grant{
		{Table: dynamo.Conversations, Index: dynamo.ByWorkspace, Actions: []string{"dynamodb:Query"}},
		{Table: dynamo.Conversations, Index: dynamo.ByAssistant, Actions: []string{"dynamodb:Query"}},
		{Table: dynamo.Conversations, Index: dynamo.ByThread, Actions: []string{"dynamodb:Query"}},
		{Table: dynamo.Conversations, Actions: []string{"dynamodb:BatchGetItem"}},
		{Prefix: dynamo.FieldsPrefix, Actions: []string{"s3:GetObject"}},
	}
	getGrants = []Grant{
		{Table: dynamo.Conversations, Actions: []string{"dynamodb:GetItem"}},
		{Prefix: dynamo.FieldsPrefix, Actions: []string{"s3:GetObject"}},
	}
	recordingGrants = []Grant{
		{Table: dynamo.Conversations, Actions: []string{"dynamodb:GetItem"}},
		{Prefix: dynamo.RecordingsPrefix, Actions: []string{"s3:GetObject"}},
	}
	assistantGrants = []Grant{
		{Table: dynamo.Workspaces, Index: dynamo.ByWorkspace, Actions: []string{"dynamodb:Query"}},
		{Table: dynamo.Workspaces, Actions: []string{"dynamodb:BatchGetItem"}},
	}
)
