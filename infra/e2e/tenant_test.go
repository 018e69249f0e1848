package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/settings"
)

// A tenant is a workspace of one test, with a key that reads all of it.
type tenant struct {
	ws  conversation.WorkspaceID
	key key
}

func newTenant(t testing.TB) tenant {
	t.Helper()
	ws := conversation.WorkspaceID(conversation.NewID())
	frontDesk := conversation.AssistantConfig{Assistant: conversation.Assistant{
		AssistantID: assistantID, AssistantName: "Front desk of " + string(ws), WorkspaceID: ws,
	}}
	want := dynamo.Definition{
		Workspace:  conversation.Workspace{WorkspaceID: ws, Name: "Test"},
		Assistants: []conversation.AssistantConfig{frontDesk},
	}
	if err := deployed(t).store.Define(t.Context(), dynamo.Definition{}, want, "0"); err != nil {
		t.Fatal(err)
	}
	return tenant{ws, newKey(t, ws)}
}

// newKey makes a key that reads the blocks, by default all.
func newKey(t testing.TB, ws conversation.WorkspaceID, blocks ...conversation.Block) key {
	t.Helper()
	k, _ := createKey(t, ws, blocks...)
	return k
}

func createKey(t testing.TB, ws conversation.WorkspaceID, blocks ...conversation.Block) (key, conversation.APIKeyID) {
	t.Helper()
	if blocks == nil {
		blocks = conversation.AllBlocks()
	}
	k, text, err := settings.CreateAPIKey(t.Context(), deployed(t).store,
		settings.NewAPIKey{WorkspaceID: ws, Label: t.Name(), Blocks: blocks}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return key(text), k.APIKeyID
}

// demoKey is a key of the demo's workspace. Those of stack.json may be anybody's, who has
// used up their hour.
func demoKey(t testing.TB) key {
	t.Helper()
	return newKey(t, deployed(t).WorkspaceID)
}

// The ids of a tenant's records are the same in every tenant, so that only the workspace
// tells them apart.
const (
	assistantID conversation.AssistantID = "0199b000-0000-7000-8000-0000000000aa"
	callID      conversation.CallID      = "0199b000-0000-7000-8000-000000000001"
	queuedID    conversation.CallID      = "0199b111-0000-7000-8000-000000000002"
	threadID    conversation.ThreadID    = "0199b000-0000-7000-8000-000000000003"
	messageID   conversation.MessageID   = "0199b000-0000-7000-8000-000000000004"
	nowhereID                            = "0199b000-0000-7000-8000-00000000ffff"
)

// Records with every field of the spec, as the API shows them.
const (
	wholeCall = `{
		"call_id": "0199b000-0000-7000-8000-000000000001", "workspace_id": "WORKSPACE",
		"assistant_id": "0199b000-0000-7000-8000-0000000000aa", "assistant_name": "Front desk of WORKSPACE",
		"call_type": "outbound", "direction": "outbound", "status": "ended", "duration_seconds": 2,
		"started_at": "2025-10-04T16:13:34.080Z", "ended_at": "2025-10-04T16:15:00.000Z", "end_reason": "customer_hung_up",
		"is_test": false, "call_variables": {"room": "12", "nights": 3, "late": false},
		"metadata": {"a": [1.50, null, "👋 <b>"], "z": {}},
		"customer": {"customer_id": "0199b000-0000-7000-8000-0000000000cc", "name": "Chloé of WORKSPACE", "phone": "+12025550123",
			"email": "chloe@example.com", "language": "fr", "country": "US"},
		"costs": {"currency": "USD", "total": "0.10", "components": [{"type": "telephony", "amount": "0.10"}]},
		"transcript": [{"role": "assistant", "content": "Hello 👋"}, {"role": "user", "content": "Room \"12\"\\ please"}],
		"analysis": {"summary": "A call of WORKSPACE.", "intent": "booking", "outcome": "resolved", "sentiment": "positive"},
		"evaluations": [{"evaluation_id": "0199b000-0000-7000-8000-0000000000ee", "title": "Polite", "result": "pass",
			"initial_result": "fail", "rationale": "In the end.", "recovered": true}],
		"follow_ups": [{"status": "sent", "channel": "sms", "sent_at": "2025-10-04T16:16:00.000Z"}],
		"recording": {"status": "complete", "available": true, "download_url": "BASE/v1/calls/0199b000-0000-7000-8000-000000000001/recording"},
		"performance_metrics": {
			"speech": {"p50": 1, "p90": 2, "p95": 3, "max": 4, "count": 5}, "model": {"p50": 1, "p90": 2, "p95": 3, "max": 4, "count": 5},
			"voice": {"p50": 1, "p90": 2, "p95": 3, "max": 4, "count": 5}, "end_to_end": {"p50": 0, "p90": 0, "p95": 0, "max": 0, "count": 0}},
		"config_snapshot": {"version": 3, "model": "m", "voice": "v", "language": "en", "greeting": "Hi {{participant_name}}", "prompt": "Be kind"}
	}`
	queuedCall = `{
		"call_id": "0199b111-0000-7000-8000-000000000002", "workspace_id": "WORKSPACE",
		"assistant_id": "0199b000-0000-7000-8000-0000000000aa", "assistant_name": "Front desk of WORKSPACE",
		"call_type": "outbound", "direction": "outbound", "status": "queued", "duration_seconds": 0,
		"started_at": "2025-10-04T21:11:45.408Z", "is_test": false
	}`
	wholeThread = `{
		"thread_id": "0199b000-0000-7000-8000-000000000003", "workspace_id": "WORKSPACE",
		"assistant_id": "0199b000-0000-7000-8000-0000000000aa", "assistant_name": "Front desk of WORKSPACE",
		"channel": "whatsapp", "close_reason": "follow_up_skipped:quiet_hours", "message_count": 1,
		"started_at": "2025-10-04T16:13:34.080Z", "last_message_at": "2025-10-04T16:13:34.080Z", "completed_at": "2025-10-04T16:43:34.080Z",
		"anchor_message_id": "0199b000-0000-7000-8000-000000000004",
		"customer": {"customer_id": "0199b000-0000-7000-8000-0000000000cc", "name": "Chloé of WORKSPACE", "phone": "+12025550123"},
		"costs": {"currency": "USD", "total": "0.005", "charged_message_count": 1},
		"transcript": [{"role": "user", "content": "Hello 👋"}],
		"analysis": {"summary": "A thread of WORKSPACE.", "intent": "", "outcome": "unknown", "sentiment": "unknown"},
		"evaluations": [], "follow_ups": [{"status": "skipped", "channel": "whatsapp"}]
	}`
	wholeMessage = `{
		"message_id": "0199b000-0000-7000-8000-000000000004", "workspace_id": "WORKSPACE",
		"assistant_id": "0199b000-0000-7000-8000-0000000000aa", "assistant_name": "Front desk of WORKSPACE",
		"channel": "whatsapp", "direction": "inbound", "thread_id": "0199b000-0000-7000-8000-000000000003", "source": "inbound",
		"occurred_at": "2025-10-04T16:13:34.080Z", "content": "Hello 👋 WORKSPACE", "provider_message_id": "SM1",
		"customer": {"customer_id": "0199b000-0000-7000-8000-0000000000cc", "name": "Chloé of WORKSPACE", "phone": "+12025550123"},
		"costs": {"currency": "USD", "total": "0.005"}
	}`
)

// fill gives the tenant one of each.
func (n tenant) fill(t testing.TB) {
	t.Helper()
	store := deployed(t).store
	call := read[conversation.Call](t, n, wholeCall)
	call.Recording.DownloadURL = "" // it is made when it is read
	for _, err := range []error{
		store.InsertCall(t.Context(), call),
		store.InsertCall(t.Context(), read[conversation.Call](t, n, queuedCall)),
		store.InsertThread(t.Context(), read[conversation.Thread](t, n, wholeThread)),
		store.InsertMessage(t.Context(), read[conversation.Message](t, n, wholeMessage)),
		store.PutRecording(t.Context(), n.ws, callID, []byte("audio of "+n.ws)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// read is a record of this tenant from its JSON.
func read[R any](t testing.TB, n tenant, text string) R {
	t.Helper()
	var record R
	text = strings.NewReplacer("WORKSPACE", string(n.ws), "BASE", deployed(t).BaseURL).Replace(text)
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		t.Fatal(err)
	}
	return record
}

func insertCall(t testing.TB, call conversation.Call) {
	t.Helper()
	if err := deployed(t).store.InsertCall(t.Context(), call); err != nil {
		t.Fatal(err)
	}
}
