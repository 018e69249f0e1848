package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"parley/shared/carrier/phone"
	"parley/shared/config"
	"parley/shared/conversation"
)

// A cursor is read if and only if it was written for the same list.
func FuzzReadCursor(f *testing.F) {
	f.Add("list-calls?", writeCursor("list-calls?", someID))
	f.Add("list-calls?", writeCursor("list-threads?", someID))
	f.Add("", "")
	f.Add("list-calls?", "MQ")
	f.Add("list-calls?", writeCursor("list-calls?", ""))
	f.Fuzz(func(t *testing.T, list, cursor string) {
		position, ok := readCursor(list, cursor)
		if ok && (position == "" || writeCursor(list, position) != cursor) {
			t.Errorf("%q reads as %q, which is written %q", cursor, position, writeCursor(list, position))
		}
		if !ok && position != "" && writeCursor(list, position) == cursor {
			t.Errorf("%q isn't read", cursor)
		}
		if back, ok := readCursor(list, writeCursor(list, cursor)); cursor != "" && (!ok || back != cursor) {
			t.Errorf("position %q comes back as %q, %v", cursor, back, ok)
		}
	})
}

// Whatever a client asks, it gets an answer that is JSON, and never a 5xx. No store is
// behind it: a canned AWS knows the key, counts, and has no records.
func FuzzRequest(f *testing.F) {
	for _, target := range []string{
		"/v1/calls", "/v1/calls?limit=5&from=2026-01-31T08:00:00+01:00&to=2026-02-01&include_test=true&fields=costs,analysis",
		"/v1/messages?channel=sms&direction=inbound&thread_id=" + someID, "/v1/threads?close_reason=follow_up_skipped:quiet_hours",
		"/v1/assistants?limit=100", "/open-api", "/v1/calls/" + someID, "/v1/calls/" + someID + "/recording",
		"/v1/messages/" + someID, "/v1/threads/" + someID + "?fields=transcript", "//v1/calls", "/v1/calls/", "/%zz", "*", "",
		"/v1/calls?cursor=" + writeCursor("list-calls?", someID), "/v1/threads?cursor=" + writeCursor("list-threads?", "2026#"+someID),
		"/v1/calls?%00&limit=;&&&=&from=0000-01-01T00:00:00-23:59&to=9999-12-31T23:59:60Z",
	} {
		f.Add("GET", target)
	}
	f.Add("HEAD", "/v1/calls")
	f.Add("POST", "/v1/calls")
	f.Add("G\x00T", "/v1/calls")
	auth, store := cannedStore(f)
	routes := Routes()
	for i := range routes {
		routes[i].Limit = Limit{}
	}
	handler := Handler(Service{Store: store.Store, BaseURL: baseURL, Calling: Calling{Country: phone.Country}}, routes...)
	function := Lambda(handler)
	f.Fuzz(func(t *testing.T, method, target string) {
		answer, err := function(context.Background(), eventOf(method, target, auth))
		if err != nil || answer.StatusCode >= 500 || answer.StatusCode < 200 {
			t.Errorf("%d %s, %v", answer.StatusCode, answer.Body, err)
		}
		if answer.Body != "" && !json.Valid([]byte(answer.Body)) || answer.Headers[requestIDHeader] == "" {
			t.Errorf("%d %v %s", answer.StatusCode, answer.Headers, answer.Body)
		}

		// As a server gets it, and with a cursor that its list has written.
		address, err := url.ParseRequestURI(target)
		if err != nil || strings.ContainsAny(method, " \x00") {
			return
		}
		query := address.Query()
		if position := query.Get("cursor"); position != "" {
			query.Del("cursor")
			address.RawQuery = query.Encode() + "&cursor=" + writeCursor("list-"+strings.TrimPrefix(address.Path, "/v1/")+"?"+query.Encode(), position)
		}
		r, err := http.NewRequest(method, baseURL, nil)
		if err != nil {
			return
		}
		r.URL = address
		r.Header.Set("Authorization", auth)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code >= 500 || w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: %d %s", address, w.Code, w.Body)
		}
	})
}

// Whatever is asked for as a call, the answer is a problem that the client can mend, in JSON
// and of bounded size: nothing panics, and nothing but a request in order gets as far as
// the table, which knows no assistant.
func FuzzCallBody(f *testing.F) {
	for _, body := range []string{
		"", "null", "[]", "{", bodyWith(), bodyWith() + "x", bodyWith("to", `"+8001"`), bodyWith("metadata", "[[[[1e400]]]]"), `{"to":"1","to":"2"}`,
		bodyWith("call_variables", `{"a":1,"a":"\ud800","":null,"secret__":{}}`), bodyWith("call_variables", `{"a":{"a":[]},"b":-0}`), "\xff", "\ufeff{}",
	} {
		f.Add(body, "application/json", "key")
	}
	f.Add(bodyWith(), "text/plain; a=\"", "\x00")
	auth, store := cannedStore(f)
	function := Lambda(Handler(Service{Store: store.Store, BaseURL: baseURL, Calling: Calling{Country: phone.Country}}, limitedTo(CreateCall, Limit{})))
	f.Fuzz(func(t *testing.T, body, kind, key string) {
		event := eventOf(http.MethodPost, "/v1/calls", auth)
		event.Headers["content-type"], event.Headers["idempotency-key"], event.Body = kind, key, body
		answer, err := function(context.Background(), event)
		var problem Problem
		if err != nil || json.Unmarshal([]byte(answer.Body), &problem) != nil || len(problem.Detail) == 0 || len(answer.Body) > 4<<20 {
			t.Errorf("%d %.1000s, %v", answer.StatusCode, answer.Body, err)
		}
		switch answer.StatusCode {
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		case http.StatusNotFound:
			var sent map[string]json.RawMessage
			if err := json.Unmarshal([]byte(body), &sent); err != nil || sent["to"] == nil || sent["assistant_id"] == nil {
				t.Errorf("%q, %v: 404", body, err)
			}
		default:
			t.Errorf("%q: %d %s", body, answer.StatusCode, answer.Body)
		}
	})
}

// cannedStore is a store that knows one key and nothing else. It needs no emulator, so
// that a fuzzer's many processes don't each start one.
func cannedStore(t testing.TB) (auth string, store aLine) {
	key := conversation.APIKey{
		APIKeyID: conversation.APIKeyID(conversation.NewID()), WorkspaceID: conversation.WorkspaceID(conversation.NewID()),
		SecretHash: conversation.HashSecret("SECRET"), LastUsedAt: conversation.At(time.Now().Add(1000 * time.Hour)),
	}
	text := func(s string) any { return map[string]string{"S": s} }
	var blocks []any
	for _, block := range conversation.AllBlocks() {
		blocks = append(blocks, text(string(block)))
	}
	item, err := json.Marshal(map[string]any{"Item": map[string]any{
		"pk": text("key#" + string(key.APIKeyID)), "api_key_id": text(string(key.APIKeyID)), "workspace_id": text(string(key.WorkspaceID)),
		"secret_hash": text(key.SecretHash), "last_used_at": text(key.LastUsedAt.String()), "blocks": map[string]any{"L": blocks},
		"place_calls": map[string]bool{"BOOL": true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	store = wired(aws.Config{Region: "us-east-1", Credentials: aws.AnonymousCredentials{}, HTTPClient: http.DefaultClient}, config.Config{WorkspacesTable: "Workspaces"})
	store.meddle = func(operation string, r *http.Request) (*http.Response, error) {
		var asked struct{ TableName string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			return nil, err
		}
		switch {
		case operation == "dynamodb:GetItem" && asked.TableName == "Workspaces":
			return fails(http.StatusOK, string(item))(r)
		case operation == "dynamodb:Query":
			return fails(http.StatusOK, `{"Items":[],"Count":0}`)(r)
		}
		return fails(http.StatusOK, `{}`)(r)
	}
	return "Bearer " + key.Text("SECRET"), store
}
