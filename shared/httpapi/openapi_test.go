package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/errors"

	"parley/shared/conversation"
)

var update = flag.Bool("update", false, "rewrite the golden files under testdata")

// golden compares with a file under testdata, or writes it with -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expected, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(expected), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("%s has changed: look, and run the test with -update if it should (-want +got):\n%s", path, diff)
	}
}

// openAPI is the document as the service gives it.
func openAPI(t testing.TB) []byte {
	t.Helper()
	text, err := json.MarshalIndent(newAPI(Service{BaseURL: baseURL}, Routes()).huma.OpenAPI(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

func newValidator(t testing.TB, document []byte) validator.Validator {
	t.Helper()
	parsed, err := libopenapi.NewDocument(document)
	if err != nil {
		t.Fatal(err)
	}
	v, errs := validator.NewValidator(parsed)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return v
}

func TestOpenAPI(t *testing.T) {
	document := openAPI(t)
	golden(t, "openapi.json", document)
	if ok, errs := newValidator(t, document).ValidateDocument(); !ok {
		t.Errorf("no OpenAPI 3.1: %s", messages(errs))
	}
	broken := bytes.Replace(document, []byte(`"in": "query"`), []byte(`"in": "the sky"`), 1)
	if ok, _ := newValidator(t, broken).ValidateDocument(); ok {
		t.Error("the validator accepts a broken document")
	}
}

func messages(errs []*errors.ValidationError) string {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
		for _, reason := range err.SchemaValidationErrors {
			texts = append(texts, reason.Reason+" at "+reason.Location)
		}
	}
	return strings.Join(texts, "\n")
}

// What clients are generated from has every endpoint, its problems and its headers, and
// names that people understand.
func TestOpenAPIOfEveryRoute(t *testing.T) {
	var document struct {
		OpenAPI    string
		Paths      map[string]map[string]operationObject
		Components struct {
			Schemas         map[string]schemaObject
			SecuritySchemes map[string]struct{ Type, Scheme string }
		}
	}
	if err := json.Unmarshal(openAPI(t), &document); err != nil {
		t.Fatal(err)
	}
	if scheme := document.Components.SecuritySchemes[bearer]; document.OpenAPI != "3.1.0" || scheme.Type != "http" || scheme.Scheme != "bearer" {
		t.Errorf("OpenAPI %s with %+v, want 3.1.0 and a bearer scheme", document.OpenAPI, scheme)
	}
	operations := 0
	for _, methods := range document.Paths {
		operations += len(methods)
	}
	// What carriers call is nobody else's business.
	routes := slices.DeleteFunc(Routes(), func(r Route) bool { return r.Auth == ByCarrier })
	if operations != len(routes) {
		t.Errorf("%d operations for %d routes", operations, len(routes))
	}
	for _, route := range routes {
		op, ok := document.Paths[route.Path][strings.ToLower(route.Method)]
		if !ok || op.OperationID != route.Function || op.Summary == "" || len(op.Tags) != 1 || len(op.Security) != 1 {
			t.Errorf("%s: %+v, want it with an id, a summary, a tag and security", route.Function, op)
			continue
		}
		statuses := []string{"400", "401", "429", "500"}
		if strings.Contains(route.Path, "{") {
			statuses = append(statuses, "404")
		}
		if route.Auth == ByPlacingKey {
			statuses = append(statuses, "201", "403", "404", "409", "413", "502")
		}
		for _, status := range statuses {
			if _, ok := op.Responses[status]; !ok {
				t.Errorf("%s: no response %s", route.Function, status)
			}
		}
		if _, ok := op.Responses["422"]; ok {
			t.Errorf("%s: has a response 422", route.Function)
		}
		for status, response := range op.Responses {
			needed := []string{requestIDHeader}
			if status != "401" && status != "500" {
				needed = append(needed, "RateLimit", "RateLimit-Policy")
			}
			if status == "429" {
				needed = append(needed, "Retry-After")
			}
			for _, name := range needed {
				if _, ok := response.Headers[name]; !ok {
					t.Errorf("%s: response %s has no header %s", route.Function, status, name)
				}
			}
		}
	}
	readable := regexp.MustCompile(`^[A-Z][A-Za-z]+$`)
	for name, schema := range document.Components.Schemas {
		if !readable.MatchString(name) || strings.Contains(name, "Resource") || strings.Contains(name, "JSON") || strings.Contains(name, "httpapi") {
			t.Errorf("schema %s: no name for a client", name)
		}
		if request := strings.Contains(name, "Request"); !request && schema.AdditionalProperties == false {
			t.Errorf("schema %s is closed: no field could be added", name)
		}
		if strings.HasPrefix(name, "List") {
			for _, field := range []string{"has_more", "next_cursor"} {
				if _, ok := schema.Properties[field]; !ok {
					t.Errorf("schema %s has no %s", name, field)
				}
			}
			if slices.Contains(schema.Required, "next_cursor") {
				t.Errorf("schema %s requires next_cursor, which the last page doesn't have", name)
			}
		}
	}
}

type (
	operationObject struct {
		OperationID, Summary string
		Tags                 []string
		Security             []map[string][]string
		Responses            map[string]struct{ Headers map[string]any }
	}
	schemaObject struct {
		AdditionalProperties any
		Properties           map[string]any
		Required             []string
	}
)

// What endpoints really answer, success and problems, is what the document says.
func TestAnswersAreAsDocumented(t *testing.T) {
	store := newStore(t)
	k, few := newTenant(t, store), newTenant(t, store, conversation.BlockCall)
	few.ws = k.ws
	call, message, thread := callOf(k.ws, 0), messageOf(k.ws, 0), threadOf(k.ws, 0)
	least := conversation.Call{
		CallID: idAt[conversation.CallID](t0, 1), WorkspaceID: k.ws, AssistantID: frontDesk, CallType: conversation.Inbound,
		Direction: conversation.Inbound, Status: conversation.CallQueued, StartedAt: conversation.At(t0),
	}
	message.MediaCount = 1
	message.Reply = &conversation.Reply{Content: "Hi", Timestamp: conversation.At(t0)}
	insertCalls(t, store, call, least)
	insertMessages(t, store, message, messageOf(k.ws, 1))
	insertThreads(t, store, thread, threadOf(k.ws, 1))
	defineAssistants(t, store, k.ws)

	handler := api(store)
	limited := Handler(Service{Store: store.Store, BaseURL: baseURL}, limitedTo(ListCalls, Limit{PerHour: 1}), limitedTo(ListThreads, Limit{PerHour: 1}))
	limitedKey := anotherKey(t, store, k.ws)
	want[callList](t, limitedKey.get(t, limited, "/v1/calls"), http.StatusOK)
	broken := newStore(t)
	broken.meddle = times(forEver, "dynamodb:Query", fails(http.StatusBadRequest, forbidden))

	document := newValidator(t, openAPI(t))
	for _, asked := range []struct {
		handler http.Handler
		target  string
		auth    string
		status  int
	}{
		{handler, "/v1/calls", k.auth, 200},
		{handler, "/v1/calls?limit=1", k.auth, 200},
		{handler, "/v1/calls/" + string(call.CallID), k.auth, 200},
		{handler, "/v1/calls/" + string(call.CallID) + "?fields=call", k.auth, 200},
		{handler, "/v1/calls/" + string(least.CallID), k.auth, 200},
		{handler, "/v1/calls/" + string(call.CallID) + "/recording", k.auth, 302},
		{handler, "/v1/messages?limit=1", k.auth, 200},
		{handler, "/v1/messages", k.auth, 200},
		{handler, "/v1/messages/" + string(message.MessageID), k.auth, 200},
		{handler, "/v1/threads?limit=1", k.auth, 200},
		{handler, "/v1/threads", k.auth, 200},
		{handler, "/v1/threads/" + string(thread.ThreadID), k.auth, 200},
		{handler, "/v1/assistants", k.auth, 200},
		{handler, "/v1/assistants?limit=1", k.auth, 200},
		{handler, "/open-api", k.auth, 200},
		{handler, "/v1/calls?limit=0", k.auth, 400},
		{handler, "/v1/messages", "", 401},
		{handler, "/v1/threads?fields=costs", few.auth, 403},
		{handler, "/v1/calls/" + someID, k.auth, 404},
		{limited, "/v1/calls", limitedKey.auth, 429},
		{api(broken), "/v1/threads", k.auth, 500},
	} {
		got := ask(t, asked.handler, http.MethodGet, asked.target, asked.auth)
		if got.status != asked.status {
			t.Errorf("%s: %d %s, want %d", asked.target, got.status, got.body, asked.status)
		}
		checkDocumented(t, document, http.MethodGet, asked.target, got)
	}
}

func checkDocumented(t *testing.T, document validator.Validator, method, target string, got answered) {
	t.Helper()
	request := httptest.NewRequest(method, baseURL+target, nil)
	answer := &http.Response{StatusCode: got.status, Header: got.header, Body: io.NopCloser(strings.NewReader(got.body)), Request: request}
	if ok, errs := document.ValidateHttpResponse(request, answer); !ok {
		t.Errorf("%s %s: %d isn't as documented: %s\n%s", method, target, got.status, messages(errs), got.body)
	}
}

// A request to place a call that is accepted is one by the document, and what is refused by
// its form alone is none; each answer is documented.
func TestPlacingIsAsDocumented(t *testing.T) {
	store := newStore(t)
	o := newOffice(t, store)
	handler := o.unlimited(store)
	document := newValidator(t, openAPI(t))
	full := bodyWith("from", quoted(onlyNumber), "customer_name", `"Ada"`, "metadata", `[1,{"a":null}]`, "call_variables", `{"a":"b","c":1.5,"d":true}`)
	broken := newStore(t)
	broken.meddle = times(forEver, "dynamodb:BatchGetItem", fails(http.StatusBadRequest, forbidden))
	for name, tt := range map[string]struct {
		handler http.Handler
		k       tenant
		body    string
		status  int
		valid   bool
		answer  placing
	}{
		"the least":       {handler, o.tenant, bodyWith(), 201, true, accepts},
		"all":             {handler, o.tenant, full, 201, true, accepts},
		"refused":         {handler, o.tenant, full, 502, true, refuses},
		"no such":         {handler, o.tenant, bodyWith("assistant_id", quoted(someID)), 404, true, nil},
		"abroad":          {handler, o.tenant, bodyWith("to", `"+442079460123"`), 403, true, nil},
		"disabled":        {handler, o.tenant, bodyWith("assistant_id", quoted(string(disabled))), 409, true, nil},
		"no key":          {handler, tenant{}, bodyWith(), 401, true, nil},
		"broken":          {o.unlimited(broken), o.tenant, bodyWith(), 500, true, nil},
		"too large":       {handler, o.tenant, bodyWith("colour", quoted(strings.Repeat("x", 4<<20))), 413, false, nil},
		"unknown field":   {handler, o.tenant, bodyWith("colour", "1"), 400, false, nil},
		"a missing field": {handler, o.tenant, bodyWith("to", ""), 400, false, nil},
		"a bad name":      {handler, o.tenant, bodyWith("call_variables", `{"1":2}`), 400, false, nil},
		"a long name":     {handler, o.tenant, bodyWith("call_variables", variables(1, longName(65), "1")), 400, false, nil},
		"a bad value":     {handler, o.tenant, bodyWith("call_variables", `{"a":null}`), 400, false, nil},
		"a long value":    {handler, o.tenant, bodyWith("call_variables", `{"a":`+quoted(strings.Repeat("x", 5001))+`}`), 400, false, nil},
		"too many":        {handler, o.tenant, bodyWith("call_variables", variables(51, longName(8), "1")), 400, false, nil},
	} {
		o.exchange.answer = tt.answer
		got := tt.k.post(t, tt.handler, tt.body, withKey(name)...)
		if got.status != tt.status {
			t.Errorf("%s: %d %.300s, want %d", name, got.status, got.body, tt.status)
		}
		checkDocumented(t, document, http.MethodPost, "/v1/calls", got)
		request := httptest.NewRequest(http.MethodPost, baseURL+"/v1/calls", strings.NewReader(tt.body))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", o.auth)
		if valid, errs := document.ValidateHttpRequest(request); valid != tt.valid {
			t.Errorf("%s: valid by the document: %t, want %t: %s", name, valid, tt.valid, messages(errs))
		}
	}
}
