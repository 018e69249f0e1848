package httpapi

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
)

// What has no value is absent; 0, false and an empty list are values.
func TestFieldsWithoutValue(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	call := conversation.Call{
		CallID: idAt[conversation.CallID](t0, 0), WorkspaceID: k.ws, AssistantID: frontDesk, AssistantName: "Front desk",
		CallType: conversation.Outbound, Direction: conversation.Outbound, Status: conversation.CallQueued, StartedAt: conversation.At(t0),
		Evaluations: []conversation.Evaluation{}, Customer: &conversation.Customer{Phone: "+12025550123"},
		PerformanceMetrics: &conversation.PerformanceMetrics{}, Costs: &conversation.CallCosts{Currency: "USD", Total: "0", Components: []conversation.CostComponent{}},
	}
	insertCalls(t, store, call)
	message := conversation.Message{
		MessageID: idAt[conversation.MessageID](t0, 0), WorkspaceID: k.ws, AssistantID: frontDesk, AssistantName: "Front desk",
		Channel: conversation.WhatsApp, Direction: conversation.Inbound, ThreadID: someID, Source: conversation.SourceInbound, OccurredAt: conversation.At(t0),
	}
	insertMessages(t, store, message)
	thread := conversation.Thread{
		ThreadID: idAt[conversation.ThreadID](t0, 0), WorkspaceID: k.ws, AssistantID: frontDesk, AssistantName: "Front desk",
		Channel: conversation.SMS, CloseReason: conversation.EmptyTranscript, StartedAt: conversation.At(t0), LastMessageAt: conversation.At(t0),
		CompletedAt: conversation.At(t0), Transcript: []conversation.Turn{}, Costs: &conversation.ThreadCosts{Currency: "USD", Total: "0"},
	}
	insertThreads(t, store, thread)
	handler := api(store)

	const latency = `{"p50":0,"p90":0,"p95":0,"max":0,"count":0}`
	own := `"workspace_id":"` + string(k.ws) + `","assistant_id":"` + string(frontDesk) + `","assistant_name":"Front desk"`
	tests := map[string]string{
		"/v1/calls/" + string(call.CallID): `{"call":{"call_id":"` + string(call.CallID) + `",` + own +
			`,"call_type":"outbound","direction":"outbound","status":"queued","duration_seconds":0,"started_at":"2026-03-01T12:00:00.000Z","is_test":false` +
			`,"customer":{"phone":"+12025550123"},"costs":{"currency":"USD","total":"0","components":[]},"evaluations":[]` +
			`,"performance_metrics":{"speech":` + latency + `,"model":` + latency + `,"voice":` + latency + `,"end_to_end":` + latency + `}}}`,
		"/v1/messages/" + string(message.MessageID): `{"message":{"message_id":"` + string(message.MessageID) + `",` + own +
			`,"channel":"whatsapp","direction":"inbound","thread_id":"` + someID + `","source":"inbound","occurred_at":"2026-03-01T12:00:00.000Z"}}`,
		"/v1/threads/" + string(thread.ThreadID): `{"thread":{"thread_id":"` + string(thread.ThreadID) + `",` + own +
			`,"channel":"sms","close_reason":"empty_transcript","message_count":0,"started_at":"2026-03-01T12:00:00.000Z"` +
			`,"last_message_at":"2026-03-01T12:00:00.000Z","completed_at":"2026-03-01T12:00:00.000Z"` +
			`,"costs":{"currency":"USD","total":"0","charged_message_count":0},"transcript":[]}}`,
	}
	for target, expected := range tests {
		if got := k.get(t, handler, target); got.status != http.StatusOK || got.body != expected+"\n" {
			t.Errorf("%s (-want +got):\n%s", target, cmp.Diff(expected+"\n", got.body))
		}
	}
}

// Records come back as they were written, in GET and in lists; no value is null, and
// every time has three decimals and Z.
func TestRecordsComeBack(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	call, message, thread := callOf(k.ws, 0), messageOf(k.ws, 0), threadOf(k.ws, 0)
	call.EndedAt = conversation.At(t0.Add(1500 * time.Millisecond))
	insertCalls(t, store, call)
	insertMessages(t, store, message)
	insertThreads(t, store, thread)
	handler := api(store)
	shown := call.WithDownloadURL(baseURL)
	if shown.Recording.DownloadURL != baseURL+"/v1/calls/"+string(call.CallID)+"/recording" {
		t.Errorf("download_url %s", shown.Recording.DownloadURL)
	}
	tests := map[string]any{
		"/v1/calls/" + string(call.CallID):          map[string]any{"call": shown},
		"/v1/calls":                                 map[string]any{"calls": []any{shown}, "has_more": false},
		"/v1/messages/" + string(message.MessageID): map[string]any{"message": message},
		"/v1/messages":                              map[string]any{"messages": []any{message}, "has_more": false},
		"/v1/threads/" + string(thread.ThreadID):    map[string]any{"thread": thread},
		"/v1/threads":                               map[string]any{"threads": []any{thread}, "has_more": false},
	}
	times := regexp.MustCompile(`"[a-z_]+_at":"([^"]*)"`)
	exact := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
	for target, record := range tests {
		text, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		var expected, body any
		_ = json.Unmarshal(text, &expected)
		got := k.get(t, handler, target)
		_ = json.Unmarshal([]byte(got.body), &body)
		if diff := cmp.Diff(expected, body); diff != "" || got.status != http.StatusOK {
			t.Errorf("%s: status %d (-want +got):\n%s", target, got.status, diff)
		}
		if strings.Contains(got.body, "null") {
			t.Errorf("%s: null in %s", target, got.body)
		}
		for _, found := range times.FindAllStringSubmatch(got.body, -1) {
			if !exact.MatchString(found[1]) {
				t.Errorf("%s: %s, want three decimals and Z", target, found[0])
			}
		}
	}
}

// A customer's own JSON is given back as it was sent, however it was written.
func TestMetadataIsGivenBackAsItWasSent(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	handler := api(store)
	for n, metadata := range []string{
		`{"b":1.10,"a":12345678901234567890,"c":1e400,"d":-0.0,"e":1E+2}`,
		`{"html":"<b>&amp;</b>","escapes":"\u00e9\/\u003c\"\\","own":"é😀","separators":"` + "\u2028" + `"}`,
		`{"z":1,"a":2,"z":3,"":4}`,
		`[null,true,{"deep":[[[]]],"none":null},""]`,
		`"only text"`, `12.50`, `null`, `{}`, `[]`, `false`,
	} {
		call := callOf(k.ws, n)
		call.Metadata = conversation.JSON(metadata)
		call.CallVariables = conversation.JSON(`{"n":2.50,"t":"<&>","b":true}`)
		if n%2 == 1 { // the variables from S3
			call.CallVariables = conversation.JSON(`{"n":2.50,"t":"<&>` + strings.Repeat("x", 400_000) + `","b":true}`)
		}
		insertCalls(t, store, call)
		for _, target := range []string{"/v1/calls/" + string(call.CallID), "/v1/calls?limit=1"} {
			got := k.get(t, handler, target)
			for name, value := range map[string]string{"metadata": metadata, "call_variables": string(call.CallVariables)} {
				if !strings.Contains(got.body, `"`+name+`":`+value+`,`) {
					t.Errorf("%s: no %s of %.200s in %.1000s", target, name, value, got.body)
				}
			}
		}
	}
}

func TestWhatAClientAccepts(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	handler := api(store)
	for _, accepted := range []string{"", "*/*", "application/json", "text/html", "application/cbor", "application/json;q=0.1, application/xml", "nonsense"} {
		wrapped := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Accept", accepted)
			handler.ServeHTTP(w, r)
		})
		if got := k.get(t, wrapped, "/v1/calls"); got.status != http.StatusOK {
			t.Errorf("Accept %s: %d %s", accepted, got.status, got.body)
		}
	}
}
