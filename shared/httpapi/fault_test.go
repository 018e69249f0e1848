package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// What AWS answers when it can't.
const (
	throttled   = `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"CAUSE: too fast"}`
	serverFault = `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"CAUSE: a disk"}`
	forbidden   = `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"CAUSE: no policy"}`
)

// fails answers in AWS's place.
func fails(status int, body string) fault {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Request: r,
			Header: http.Header{
				"Content-Type": {"application/x-amz-json-1.0"},
				"X-Amz-Crc32":  {fmt.Sprint(crc32.ChecksumIEEE([]byte(body)))},
			},
		}, nil
	}
}

// times answers so the first n times that an operation is asked for.
func times(n int, operation string, answer fault) func(string, *http.Request) (*http.Response, error) {
	var left atomic.Int64
	left.Store(int64(n))
	return func(asked string, r *http.Request) (*http.Response, error) {
		if asked != operation || left.Add(-1) < 0 {
			return nil, nil
		}
		return answer(r)
	}
}

const forEver = 1 << 30

func cutOff(*http.Request) (*http.Response, error) {
	return nil, errors.New("CAUSE: connection reset by peer")
}

func silent(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// at is where a fault strikes: an operation, and what asks for it.
type at struct{ operation, target string }

// together tries every fault at every place at once: most of the time they wait.
func together[F any](faults map[string]F, places []at, try func(name string, fault F, place at)) {
	var group sync.WaitGroup
	for name, fault := range faults {
		for _, place := range places {
			group.Go(func() { try(name+", "+place.operation, fault, place) })
		}
	}
	group.Wait()
}

// fault is an answer in AWS's place.
type fault = func(*http.Request) (*http.Response, error)

// A fault that passes is not seen by the client.
func TestPassingFaults(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	call := callOf(k.ws, 0)
	insertCalls(t, store, call)
	together(map[string]fault{
		"throttled":  fails(http.StatusBadRequest, throttled),
		"its fault":  fails(http.StatusInternalServerError, serverFault),
		"no service": fails(http.StatusServiceUnavailable, "<html>CAUSE"),
		"cut off":    cutOff,
	}, []at{
		{"dynamodb:GetItem", "/v1/calls/" + string(call.CallID)},
		{"dynamodb:UpdateItem", "/v1/calls/" + string(call.CallID)},
		{"dynamodb:Query", "/v1/calls"},
		{"dynamodb:BatchGetItem", "/v1/calls"},
	}, func(name string, fault fault, place at) {
		store := newStore(t)
		store.meddle = times(3, place.operation, fault)
		if got := k.get(t, api(store), place.target); got.status != http.StatusOK || !strings.Contains(got.body, string(call.CallID)) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	})
}

// A fault that lasts is a 500 that says nothing of its cause, within the request's time;
// the log has the cause, under the request's id.
func TestLastingFaults(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	call, large := callOf(k.ws, 0), callOf(k.ws, 1)
	large.Transcript[0].Content = strings.Repeat("x", 400_000)
	insertCalls(t, store, call, large)
	places := []at{
		{"dynamodb:GetItem", "/v1/calls/" + string(call.CallID)},
		{"dynamodb:UpdateItem", "/v1/calls/" + string(call.CallID)},
		{"dynamodb:Query", "/v1/calls"},
		{"dynamodb:BatchGetItem", "/v1/calls"},
	}
	try := func(name string, fault fault, place at) {
		store := newStore(t)
		store.meddle = times(forEver, place.operation, fault)
		checkFailure(t, name, k, api(store), place.target, "CAUSE")
	}
	together(map[string]fault{
		"throttled": fails(http.StatusBadRequest, throttled),
		"its fault": fails(http.StatusInternalServerError, serverFault),
		"forbidden": fails(http.StatusBadRequest, forbidden),
		"cut off":   cutOff,
	}, places, try)
	together(map[string]fault{
		"gone":      fails(http.StatusNotFound, "<Error><Code>NoSuchKey</Code><Message>CAUSE</Message></Error>"),
		"its fault": fails(http.StatusInternalServerError, "<Error><Code>InternalError</Code><Message>CAUSE</Message></Error>"),
		"cut off":   cutOff,
	}, []at{{"s3:GET", "/v1/calls/" + string(large.CallID)}, {"s3:GET", "/v1/calls"}}, try)
}

// checkFailure wants a 500 without its cause, which is in the log.
func checkFailure(t *testing.T, name string, k tenant, handler http.Handler, target, cause string) {
	t.Helper()
	start := time.Now()
	got := k.get(t, handler, target)
	const body = `{"detail":["the service failed to answer; the cause is in its log under this X-Request-Id"],"code":"internal_error"}` + "\n"
	if got.status != http.StatusInternalServerError || got.body != body {
		t.Errorf("%s: %d %s, want 500 %s", name, got.status, got.body, body)
	}
	for header, values := range got.header {
		if strings.Contains(strings.Join(values, " "), cause) {
			t.Errorf("%s: %s: %s", name, header, values)
		}
	}
	if line := logged.of(got.header.Get(requestIDHeader)); !strings.Contains(line, cause) || !strings.Contains(line, `"level":"ERROR"`) {
		t.Errorf("%s: the log has %q of this request, want its cause", name, line)
	}
	if took := time.Since(start); took > 8*time.Second {
		t.Errorf("%s: it took %s", name, took)
	}
}

// An attempt that AWS never answers leaves time for another.
func TestLostAttempt(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	together(map[string]fault{"silent": silent}, []at{
		{"dynamodb:GetItem", "/v1/calls"}, {"dynamodb:UpdateItem", "/v1/calls"}, {"dynamodb:Query", "/v1/calls"},
	}, func(name string, fault fault, place at) {
		store := newStore(t)
		store.meddle = times(1, place.operation, fault)
		if got := k.get(t, api(store), place.target); got.status != http.StatusOK {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	})
}

// When AWS stays silent, the function answers before Lambda ends it.
func TestSilence(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	handler := api(store)
	k.get(t, handler, "/v1/calls")
	store.meddle = times(forEver, "dynamodb:Query", silent)
	ctx, cancel := context.WithTimeout(t.Context(), answerTime+200*time.Millisecond)
	defer cancel()
	event := eventOf("GET", "/v1/calls", k.auth)
	answer, err := Lambda(handler)(ctx, event)
	if err != nil || answer.StatusCode != http.StatusInternalServerError || ctx.Err() != nil {
		t.Errorf("%d, %v, context %v; want 500 in time", answer.StatusCode, err, ctx.Err())
	}
	if line := logged.of(event.RequestContext.RequestID); !strings.Contains(line, "context deadline exceeded") {
		t.Errorf("the log has %q of this request", line)
	}
}

// eventOf is the least event that API Gateway could send.
func eventOf(method, target, auth string) events.APIGatewayV2HTTPRequest {
	path, query, _ := strings.Cut(target, "?")
	return events.APIGatewayV2HTTPRequest{
		Version: "2.0", RawPath: path, RawQueryString: query, Headers: map[string]string{"authorization": auth},
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			RequestID: strings.NewReplacer("/", "-", " ", "-").Replace("id-of-" + method + path),
			HTTP:      events.APIGatewayV2HTTPRequestContextHTTPDescription{Method: method, Path: path},
		},
	}
}

// unprocessed asks AWS for the first n keys of each BatchGetItem alone, in any order, and
// answers that the others are unprocessed. n may be different each time.
func unprocessed(store aLine, n func(batch int) int, first bool) {
	forward := store.HTTPClient
	batches := 0
	store.meddle = func(operation string, r *http.Request) (*http.Response, error) {
		if operation != "dynamodb:BatchGetItem" {
			return nil, nil
		}
		type keys struct{ Keys []json.RawMessage }
		var request struct{ RequestItems map[string]keys }
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &request); err != nil {
			return nil, err
		}
		answer := map[string]any{"Responses": map[string]any{}}
		left := map[string]keys{}
		for table, asked := range request.RequestItems {
			batches++
			cut := min(n(batches), len(asked.Keys))
			read, unread := asked.Keys[:cut], asked.Keys[cut:]
			if !first { // the first ones are the unread ones
				unread, read = asked.Keys[:len(asked.Keys)-cut], asked.Keys[len(asked.Keys)-cut:]
			}
			left[table] = keys{unread}
			request.RequestItems[table] = keys{read}
			if cut == 0 {
				continue
			}
			text, _ := json.Marshal(request)
			forwarded := r.Clone(r.Context())
			forwarded.Body, forwarded.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
			response, err := forward.Do(forwarded)
			if err != nil {
				return nil, err
			}
			defer response.Body.Close()
			if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
				return nil, err
			}
		}
		answer["UnprocessedKeys"] = left
		text, err := json.Marshal(answer)
		response, _ := fails(http.StatusOK, string(text))(r)
		return response, err
	}
}

// A page is cut before the first key that AWS left unread, and says that there is more.
func TestUnprocessedKeys(t *testing.T) {
	tests := map[string]struct {
		n     func(batch int) int // how many keys are read each time
		first bool                // the first of them, or the last
		fails bool
	}{
		"some":               {n: func(int) int { return 2 }, first: true},
		"all, twice":         {n: func(batch int) int { return 100 * (batch / 3) }, first: true},
		"the first, twice":   {n: func(batch int) int { return 4 + batch/3 }},
		"all, for ever":      {n: func(int) int { return 0 }, first: true, fails: true},
		"the first for ever": {n: func(int) int { return 4 }, fails: true},
	}
	store := newStore(t)
	k := newTenant(t, store)
	for n := range 5 {
		insertCalls(t, store, callOf(k.ws, n))
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newStore(t)
			handler := api(store)
			unprocessed(store, tt.n, tt.first)
			if tt.fails {
				checkFailure(t, name, k, handler, "/v1/calls?limit=5", "items stayed unread")
				return
			}
			_, all := pages(t, k, handler, "/v1/calls?limit=5", idsOfCalls)
			if len(all) != 5 || !strings.HasSuffix(all[0], "4") || !strings.HasSuffix(all[4], "0") {
				t.Errorf("calls %v, want all five, newest first", all)
			}
		})
	}
}

// A key that can't be noted as used works all the same.
func TestTouchFails(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	now := time.Now().Add(2 * time.Hour)
	handler := apiAt(store, &now)
	store.meddle = func(operation string, r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if operation == "dynamodb:UpdateItem" && bytes.Contains(body, []byte("last_used_at")) {
			return fails(http.StatusBadRequest, forbidden)(r)
		}
		return nil, nil
	}
	got := k.get(t, handler, "/v1/calls")
	if got.status != http.StatusOK || !strings.Contains(logged.of(got.header.Get(requestIDHeader)), "touch API key") {
		t.Errorf("status %d, and the log has %q; want 200 and a note", got.status, logged.of(got.header.Get(requestIDHeader)))
	}
}

// A panic is a 500 like any other.
func TestPanic(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	handler := api(store)
	store.meddle = func(string, *http.Request) (*http.Response, error) { panic("CAUSE: a bug") }
	checkFailure(t, "panic", k, handler, "/v1/calls", "CAUSE")
}
