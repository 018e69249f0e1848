package httpapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"parley/shared/carrier"
	"parley/shared/conversation"
)

const eventsFolder = "../../events"

// readEvent decodes a function's sample event, which must have nothing that API Gateway
// doesn't send.
func readEvent(t testing.TB, function string) request {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(eventsFolder, function+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var event request
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&event); err != nil {
		t.Fatalf("%s: %v", function, err)
	}
	return event
}

// Every function of the API has a sample event of its row, or of the first of its rows.
func TestSampleEvents(t *testing.T) {
	seen := map[string]bool{}
	for _, route := range Routes() {
		if seen[route.Function] {
			continue
		}
		seen[route.Function] = true
		event := readEvent(t, route.Function)
		routeKey := route.Method + " " + route.Path
		path := route.Path
		for name, value := range event.PathParameters {
			path = strings.Replace(path, "{"+name+"}", value, 1)
		}
		about := event.RequestContext
		if event.Version != "2.0" || event.RouteKey != routeKey || about.RouteKey != routeKey ||
			about.HTTP.Method != route.Method || event.RawPath != path || about.HTTP.Path != path {
			t.Errorf("%s: %s %s, %s; want %s and %s", route.Function, event.RouteKey, about.RouteKey, event.RawPath, routeKey, path)
		}
		if _, _, ok := conversation.ParseAPIKey(strings.TrimPrefix(event.Headers["authorization"], "Bearer ")); route.Auth != ByCarrier && !ok {
			t.Errorf("%s: its key is none", route.Function)
		}
	}
}

// The sample of a carrier's callback is one that the simulator could have sent, but for a
// signature that nobody could know.
func TestSampleCallback(t *testing.T) {
	event := readEvent(t, CarrierCallback.Function)
	url, secret := baseURL+event.RawPath, []byte("a secret of the tests")
	at := time.UnixMilli(event.RequestContext.TimeEpoch)
	simulator := carrier.NewSimulator(aws.Config{}, "", secret)
	header := http.Header{}
	for name, value := range event.Headers {
		header.Set(name, value)
	}
	if _, err := simulator.ParseCallback(header, url, []byte(event.Body), at); !errors.Is(err, carrier.ErrUnverified) {
		t.Errorf("as it is: %v, want ErrUnverified", err)
	}
	header.Set(carrier.SignatureHeader, carrier.Sign(secret, at, url, []byte(event.Body)))
	if callback, err := simulator.ParseCallback(header, url, []byte(event.Body), at); err != nil || callback.CarrierID != "sim-"+event.PathParameters["call_id"] {
		t.Errorf("signed: %+v, %v", callback, err)
	}
}

// The sample of a call to be placed places one, and is a replay the second time.
func TestSampleCallInvokes(t *testing.T) {
	store := newStore(t)
	o := newOffice(t, store)
	function := Lambda(Handler(o.service(store), CreateCall))
	event := readEvent(t, CreateCall.Function)
	if answer, err := function(t.Context(), event); err != nil || answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("with the sample's key: %d, %v; want 401", answer.StatusCode, err)
	}
	event.Headers["authorization"] = o.auth
	if answer, err := function(t.Context(), event); err != nil || answer.StatusCode != http.StatusNotFound {
		t.Errorf("with the sample's assistant: %d %s, %v; want 404", answer.StatusCode, answer.Body, err)
	}
	var body struct {
		AssistantID string `json:"assistant_id"`
	}
	if err := json.Unmarshal([]byte(event.Body), &body); err != nil {
		t.Fatal(err)
	}
	event.Body = strings.Replace(event.Body, body.AssistantID, string(oneNumber), 1)
	for _, replay := range []string{"", "true"} {
		answer, err := function(t.Context(), event)
		if err != nil || answer.StatusCode != http.StatusCreated || answer.Headers["Idempotent-Replay"] != replay ||
			!strings.Contains(answer.Body, `"metadata":{"booking":4711}`) || answer.Headers[requestIDHeader] != event.RequestContext.RequestID {
			t.Errorf("%d %v %s, %v; want 201, Idempotent-Replay %q", answer.StatusCode, answer.Headers, answer.Body, err, replay)
		}
	}
	event.Body, event.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(event.Body)), true
	if answer, err := function(t.Context(), event); err != nil || answer.StatusCode != http.StatusCreated {
		t.Errorf("in base64: %d %s, %v; want 201", answer.StatusCode, answer.Body, err)
	}
}

// Each sample event invokes the function that it is for; with a real key and records of
// the ids that it asks for, it succeeds.
func TestSampleEventsInvoke(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	call, message, thread := callOf(k.ws, 0), messageOf(k.ws, 0), threadOf(k.ws, 0)
	call.CallID = conversation.CallID(readEvent(t, GetCall.Function).PathParameters["call_id"])
	message.MessageID = conversation.MessageID(readEvent(t, GetMessage.Function).PathParameters["message_id"])
	thread.ThreadID = conversation.ThreadID(readEvent(t, GetThread.Function).PathParameters["thread_id"])
	insertCalls(t, store, call)
	insertMessages(t, store, message)
	insertThreads(t, store, thread)
	for _, route := range Routes() {
		if route.Method != http.MethodGet {
			continue
		}
		handler := Handler(Service{Store: store.Store, BaseURL: baseURL}, route)
		if route.Function == DefaultFunction {
			handler = DefaultHandler(Service{Store: store.Store, BaseURL: baseURL}, Routes())
		}
		function := Lambda(handler)
		event := readEvent(t, route.Function)
		answer, err := function(t.Context(), event)
		if err != nil || answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s with the sample's key: %d, %v; want 401", route.Function, answer.StatusCode, err)
		}
		event.Headers["authorization"] = k.auth
		answer, err = function(t.Context(), event)
		if err != nil || answer.StatusCode >= 400 || answer.IsBase64Encoded || answer.Headers[requestIDHeader] != event.RequestContext.RequestID {
			t.Errorf("%s: %d %s, %v; want success", route.Function, answer.StatusCode, answer.Body, err)
		}
		if (answer.StatusCode == http.StatusOK) != strings.HasPrefix(answer.Body, "{") {
			t.Errorf("%s: %d with body %q", route.Function, answer.StatusCode, answer.Body)
		}
	}
}

// What the adapter makes of events must not change what a client sent.
func TestEventsReachTheHandlerAsSent(t *testing.T) {
	echo := Lambda(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte(strings.Join([]string{
			r.Method, r.URL.Path, r.URL.RawQuery, strings.Join(r.Header.Values("Idempotency-Key"), "|"), r.Header.Get("Authorization"),
		}, " ")))
	}))
	event := eventOf("POST", "/v1/a b/ü?fields=a,b&fields=c&from=2026-01-31T08:00:00%2B01:00", "Bearer x,y")
	event.Headers["idempotency-key"] = "a, b,c"
	answer, err := echo(t.Context(), event)
	const expected = "POST /v1/a b/ü fields=a,b&fields=c&from=2026-01-31T08:00:00%2B01:00 a, b,c Bearer x,y"
	if err != nil || answer.Body != expected {
		t.Errorf("the handler got %q, %v; want %q", answer.Body, err, expected)
	}
	head := eventOf("HEAD", "/v1/calls", "")
	if answer, err := echo(t.Context(), head); err != nil || answer.Body != "" {
		t.Errorf("HEAD answers a body: %q, %v", answer.Body, err)
	}
}

// An event that can't be read is a 400 in our own words, not the gateway's 500.
func TestUnreadableEvents(t *testing.T) {
	function := Lambda(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") }))
	path := eventOf("GET", "/v1/calls", "")
	path.RawPath = "/v1/%zz"
	control := eventOf("GET", "/v1/calls", "")
	control.RawPath = "/v1/\x00"
	body := eventOf("POST", "/v1/calls", "")
	body.Body, body.IsBase64Encoded = "no base64!", true
	method := eventOf("G E T", "/v1/calls", "")
	for name, event := range map[string]request{"path": path, "control character": control, "body": body, "method": method} {
		answer, err := function(t.Context(), event)
		if err != nil || answer.StatusCode != http.StatusBadRequest || answer.Headers[requestIDHeader] != event.RequestContext.RequestID ||
			answer.Body != `{"detail":["the request's path or body can't be read"],"code":"invalid_request"}` {
			t.Errorf("%s: %+v, %v; want 400", name, answer, err)
		}
	}
}

// A handler knows the end of its time before Lambda does.
func TestTimeToAnswer(t *testing.T) {
	var left time.Duration
	function := Lambda(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		deadline, ok := r.Context().Deadline()
		if !ok {
			t.Error("no deadline")
		}
		left = time.Until(deadline)
		w.WriteHeader(http.StatusNoContent)
	}))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := function(ctx, eventOf("GET", "/", "")); err != nil || left > 10*time.Second-answerTime || left < 5*time.Second {
		t.Errorf("the handler has %s of 10 s, %v", left, err)
	}
}

// The functions under functions/ are those of the rows.
func TestFunctionsOfRoutes(t *testing.T) {
	var functions []string
	for _, route := range Routes() {
		functions = append(functions, route.Function)
		if _, err := os.Stat(filepath.Join("../../functions", route.Function, "main.go")); err != nil {
			t.Error(err)
		}
	}
	if !slices.Contains(functions, DefaultFunction) {
		t.Errorf("no row has the default function %s", DefaultFunction)
	}
}
