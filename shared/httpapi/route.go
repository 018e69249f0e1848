package httpapi

import (
	"net/http"
	"slices"

	"parley/shared/dynamo"
)

// Auth is how a route knows its caller.
type Auth int

const (
	ByKey        Auth = iota + 1 // API key: Authorization: Bearer
	ByPlacingKey                 // an API key that may place calls
	ByCarrier                    // the carrier's signature; not in the OpenAPI document
	ByUser                       // a user's ID token, which the gateway has checked
)

// Limit is how often one caller may use one endpoint (spec: Limits). 0 is no limit. The
// caller is the key, or all keys of the workspace together.
type Limit struct {
	PerHour      int
	PerSecond    int
	PerWorkspace bool
}

// Grant allows a function some actions on one resource.
type Grant struct {
	Table      string
	Index      string // of the table
	Stream     bool   // of the table
	Bucket     bool   // the bucket itself
	Prefix     string // of the bucket's objects
	Function   string // its folder under functions/
	Secret     string
	Queue      string
	Machine    string // a state machine
	Key        string // a KMS key
	Everything bool   // for actions of which IAM knows no resource
	Actions    []string
}

// Route is one endpoint. Infra makes its function, its gateway route and its policy of
// it; the OpenAPI document, the sample events and the tests follow the same rows.
type Route struct {
	Function string // folder under functions/
	Method   string
	Path     string
	Auth     Auth
	Limit    Limit
	Grants   []Grant // beside what Auth and Limit need: see AllGrants

	register func(*API, Route)
}

// AllGrants is what the route's function needs: its own grants, and those to know its
// caller by key and to count its requests.
func (r Route) AllGrants() []Grant {
	if r.Auth == ByCarrier || r.Auth == ByUser {
		return r.Grants
	}
	return append(slices.Clone(keyGrants), r.Grants...)
}

var keyGrants = []Grant{
	{Table: dynamo.Workspaces, Actions: []string{"dynamodb:GetItem", "dynamodb:UpdateItem"}},
	{Table: dynamo.Counters, Actions: []string{"dynamodb:UpdateItem"}},
}

var (
	readLimit  = Limit{PerHour: 1000, PerSecond: 100}
	placeLimit = Limit{PerSecond: 10, PerWorkspace: true} // an hour's calls are counted as they are accepted
)

// Every endpoint is a variable of its own, so that a function links only its own.
var (
	ListCalls        = Route{"list-calls", http.MethodGet, "/v1/calls", ByKey, readLimit, listGrants, registerListCalls}
	GetCall          = Route{"get-call", http.MethodGet, "/v1/calls/{call_id}", ByKey, readLimit, getGrants, registerGetCall}
	GetCallRecording = Route{"get-call-recording", http.MethodGet, "/v1/calls/{call_id}/recording", ByKey, readLimit, recordingGrants, registerGetCallRecording}
	CreateCall       = Route{"create-call", http.MethodPost, "/v1/calls", ByPlacingKey, placeLimit, placeGrants, registerCreateCall}
	ListMessages     = Route{"list-messages", http.MethodGet, "/v1/messages", ByKey, readLimit, messageGrants, registerListMessages}
	GetMessage       = Route{"get-message", http.MethodGet, "/v1/messages/{message_id}", ByKey, readLimit, getGrants, registerGetMessage}
	ListThreads      = Route{"list-threads", http.MethodGet, "/v1/threads", ByKey, readLimit, listGrants, registerListThreads}
	GetThread        = Route{"get-thread", http.MethodGet, "/v1/threads/{thread_id}", ByKey, readLimit, getGrants, registerGetThread}
	ListAssistants   = Route{"list-assistants", http.MethodGet, "/v1/assistants", ByKey, readLimit, assistantGrants, registerListAssistants}
	CarrierCallback  = Route{"carrier-callback", http.MethodPost, "/carriers/{carrier}/{workspace_id}/{call_id}", ByCarrier, Limit{}, callbackGrants, nil}
	MessageCallback  = Route{"carrier-callback", http.MethodPost, "/carriers/{carrier}/{workspace_id}", ByCarrier, Limit{}, nil, nil}
	GetOpenAPI       = Route{"get-open-api", http.MethodGet, "/open-api", ByKey, readLimit, nil, registerGetOpenAPI}
)

// Routes returns the table of endpoints.
func Routes() []Route {
	return []Route{
		ListCalls, GetCall, GetCallRecording, CreateCall,
		ListMessages, GetMessage,
		ListThreads, GetThread,
		ListAssistants,
		CarrierCallback, MessageCallback,
		GetOpenAPI,
	}
}

// What stands behind the sandbox's carrier.
const (
	SimulateCarrier = "simulate-carrier"
	SimulatorSecret = "simulator-secret"
)

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
	placeGrants = []Grant{
		{Table: dynamo.Conversations, Actions: []string{"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"}},
		{Table: dynamo.Workspaces, Actions: []string{"dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem"}},
		{Prefix: dynamo.FieldsPrefix, Actions: []string{"s3:GetObject", "s3:PutObject"}},
		{Function: SimulateCarrier, Actions: []string{"lambda:InvokeFunction"}},
	}
	callbackGrants = []Grant{
		{Table: dynamo.Conversations, Actions: []string{"dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}},
		{Table: dynamo.Workspaces, Actions: []string{"dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem", "dynamodb:GetItem", "dynamodb:UpdateItem"}},
		{Prefix: dynamo.FieldsPrefix, Actions: []string{"s3:GetObject", "s3:PutObject"}},
		{Function: SimulateCarrier, Actions: []string{"lambda:InvokeFunction"}},
		{Secret: SimulatorSecret, Actions: []string{"secretsmanager:GetSecretValue"}},
	}
	assistantGrants = []Grant{
		{Table: dynamo.Workspaces, Index: dynamo.ByWorkspace, Actions: []string{"dynamodb:Query"}},
		{Table: dynamo.Workspaces, Actions: []string{"dynamodb:BatchGetItem"}},
	}
)
