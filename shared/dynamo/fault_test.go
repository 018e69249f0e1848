package dynamo_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/dynamo/dynamotest"
	"parley/shared/emulator"
)

// faulty lets a test stand between the store and DynamoDB. The emulator itself never
// throttles, never meets a conflict, and leaves nothing unprocessed.
type faulty struct {
	aws.HTTPClient
	answer func(operation string, body []byte, forward forward) (status int, answer string)
}

// forward asks the emulator.
type forward func(body []byte) (status int, answer string)

func (f *faulty) Do(r *http.Request) (*http.Response, error) {
	_, operation, isDynamoDB := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !isDynamoDB || f.answer == nil {
		return f.HTTPClient.Do(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	status, answer := f.answer(operation, body, func(body []byte) (int, string) {
		forwarded := r.Clone(r.Context())
		forwarded.Body, forwarded.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		response, err := f.HTTPClient.Do(forwarded)
		if err != nil {
			return http.StatusBadGateway, err.Error()
		}
		defer response.Body.Close()
		answer, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(answer)
	})
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(answer)), ContentLength: int64(len(answer)), Request: r,
	}, nil
}

func faultyStore(t *testing.T) (*dynamo.Store, *faulty) {
	t.Helper()
	cfg := emulator.Config(t)
	stage := dynamotest.Stage(t, cfg)
	f := &faulty{HTTPClient: cfg.HTTPClient}
	cfg.HTTPClient = f
	return dynamo.New(cfg, stage), f
}

const (
	throttled   = `{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"slow down"}`
	conflict    = `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionConflictException","message":"busy"}`
	serverFault = `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"oops"}`
)

// What may pass by itself is asked again: the read and the write succeed although the
// first answers are failures.
func TestTransientFailures(t *testing.T) {
	tests := map[string]struct {
		status int
		answer string
	}{
		"throttled":             {400, throttled},
		"transaction conflict":  {400, conflict},
		"DynamoDB's own fault":  {500, serverFault},
		"no answer that is one": {503, "<html>"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			store, f := faultyStore(t)
			requests := 0
			f.answer = func(_ string, body []byte, forward forward) (int, string) {
				if requests++; requests%4 != 0 {
					return tt.status, tt.answer
				}
				return forward(body)
			}
			call := finished(newWorkspace(), time.Now())
			if err := store.InsertCall(t.Context(), call); err != nil {
				t.Errorf("write: %v", err)
			}
			if _, err := store.Call(t.Context(), call.WorkspaceID, call.CallID, nil); err != nil {
				t.Errorf("read: %v", err)
			}
		})
	}
}

// A failure that lasts is told within a few seconds.
func TestLastingFailure(t *testing.T) {
	store, f := faultyStore(t)
	tries := 0
	f.answer = func(string, []byte, forward) (int, string) {
		tries++
		return 400, throttled
	}
	start := time.Now()
	_, err := store.Call(t.Context(), newWorkspace(), "0191d1c0-0000-7000-8000-000000000001", nil)
	if took := time.Since(start); err == nil || tries != 8 || took > 3*time.Second {
		t.Errorf("error %v after %d tries in %s; want one after 8 tries in under 3 s", err, tries, took)
	}
}

type batch struct {
	RequestItems map[string]struct{ Keys []json.RawMessage }
}

// readOnly passes a BatchGetItem on for its first n keys, and leaves the others unprocessed.
func readOnly(n int, body []byte, forward forward) (int, string) {
	var request, left batch
	if err := json.Unmarshal(body, &request); err != nil {
		return http.StatusBadGateway, err.Error()
	}
	answer := map[string]any{"Responses": map[string]any{}}
	left.RequestItems = map[string]struct{ Keys []json.RawMessage }{}
	for table, keys := range request.RequestItems {
		n = min(n, len(keys.Keys))
		left.RequestItems[table] = struct{ Keys []json.RawMessage }{keys.Keys[n:]}
		keys.Keys = keys.Keys[:n]
		request.RequestItems[table] = keys
	}
	if n > 0 {
		first, _ := json.Marshal(request)
		_, read := forward(first)
		_ = json.Unmarshal([]byte(read), &answer)
	}
	answer["UnprocessedKeys"] = left.RequestItems
	text, _ := json.Marshal(answer)
	return http.StatusOK, string(text)
}

func TestUnprocessedKeys(t *testing.T) {
	tests := map[string]struct {
		read  func(batch int) int // how many keys the nth BatchGetItem reads; 5 are all
		fails bool
		pages int
	}{
		"none at first":      {read: func(batch int) int { return 5 * (batch / 3) }, pages: 1},
		"two at a time":      {read: func(int) int { return 2 }, pages: 3},
		"none, and it lasts": {read: func(int) int { return 0 }, fails: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			store, f := faultyStore(t)
			ws := newWorkspace()
			var want []string
			for n := range 5 {
				at := t0.Add(time.Duration(n) * time.Minute)
				call := conversation.Call{CallID: conversation.CallID(idAt(at, n)), WorkspaceID: ws, StartedAt: conversation.At(at)}
				want = append(want, string(call.CallID))
				if err := store.InsertCall(t.Context(), call); err != nil {
					t.Fatal(err)
				}
			}
			slices.Reverse(want)
			batches := 0
			f.answer = func(operation string, body []byte, forward forward) (int, string) {
				if operation != "BatchGetItem" {
					return forward(body)
				}
				batches++
				return readOnly(tt.read(batches), body, forward)
			}
			if tt.fails {
				page, err := store.Calls(t.Context(), ws, dynamo.CallQuery{}, dynamo.PageRequest{Limit: 5})
				if err == nil {
					t.Errorf("a page of %d calls that says it is complete; want an error", len(page.Items))
				}
				return
			}
			pages := 0
			got := walk(t, 5, func(p dynamo.PageRequest) (dynamo.Page[conversation.Call], error) {
				pages++
				return store.Calls(t.Context(), ws, dynamo.CallQuery{}, p)
			}, func(c conversation.Call) string { return string(c.CallID) })
			if diff := cmp.Diff(want, got); diff != "" || pages != tt.pages {
				t.Errorf("%d pages, want %d; calls (-want +got):\n%s", pages, tt.pages, diff)
			}
		})
	}
}
