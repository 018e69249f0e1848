package conversation

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the sample payloads under events/webhooks")

const apiURL = "https://api.example.com"

// sampleCall is a call after all of its life, with a value in every field.
func sampleCall() Call {
	started := At(time.Date(2026, 3, 1, 11, 58, 20, 250_000_000, time.UTC))
	return Call{
		CallID: "019ca94f-6a7a-7c11-8a53-0c6f1e4d7b21", WorkspaceID: "019ca900-0000-7000-8000-000000000001",
		AssistantID: "019ca900-0000-7000-8000-000000000002", AssistantName: "Front desk",
		CallType: Outbound, Direction: Outbound, Status: CallEnded, DurationSeconds: 74,
		StartedAt: started, EndedAt: At(started.Add(79 * time.Second)), EndReason: EndCustomerHungUp,
		CallVariables: JSON(`{"room":"12","nights":2}`), Metadata: JSON(`{"booking":"B-1042","note":"<late & quiet>"}`),
		Customer: &Customer{
			CustomerID: "019ca900-0000-7000-8000-000000000003", Name: "Ada Okafor", Phone: "+12025550123",
			Email: "ada@example.com", Language: "en", Country: "US",
		},
		Costs: &CallCosts{Currency: "USD", Total: "0.10", Components: []CostComponent{
			{Type: "telephony", Amount: "0.04"}, {Type: "assistant", Amount: "0.06"},
		}},
		Transcript: []Turn{
			{Role: RoleAssistant, Content: "Hello Ada, will you arrive before six?"},
			{Role: RoleUser, Content: "Rather at eight — is that fine?"},
			{Role: RoleAssistant, Content: "It is. We look forward to seeing you."},
		},
		Analysis: &Analysis{Summary: "Ada arrives at eight.", Intent: "announce arrival", Outcome: OutcomeResolved, Sentiment: SentimentPositive},
		Evaluations: []Evaluation{{
			EvaluationID: "019ca900-0000-7000-8000-000000000004", Title: "Asked for the time of arrival",
			Result: Pass, InitialResult: Fail, Rationale: "Asked in the first sentence.", Recovered: true,
		}},
		FollowUps: []FollowUp{{Status: FollowUpSent, Channel: SMS, SentAt: At(started.Add(90 * time.Second))}},
		Recording: &Recording{Status: RecordingComplete, Available: true},
		PerformanceMetrics: &PerformanceMetrics{
			Speech: Latency{P50: 120, P90: 180, P95: 210, Max: 260, Count: 3}, Model: Latency{P50: 400, P90: 520, P95: 600, Max: 650, Count: 3},
			Voice: Latency{P50: 150, P90: 200, P95: 220, Max: 240, Count: 3}, EndToEnd: Latency{P50: 700, P90: 900, P95: 980, Max: 1100, Count: 3},
		},
		ConfigSnapshot: &ConfigSnapshot{Version: 3, Model: "scripted", Voice: "clear", Language: "en", Greeting: "Hello {{participant_name}}", Prompt: "Ask when they arrive."},
	}
}

// life is a call's record at each step of its life.
func life() (queued, dialling, hungUp, ended, completed, failed CallRecord) {
	whole := sampleCall()
	queued = CallRecord{Call: whole, HoldsSlot: true}
	queued.Status, queued.DurationSeconds, queued.EndedAt, queued.EndReason = CallQueued, 0, Time{}, ""
	queued.Costs, queued.Transcript, queued.Analysis, queued.Evaluations, queued.FollowUps = nil, nil, nil, nil, nil
	queued.Recording, queued.PerformanceMetrics, queued.ConfigSnapshot = nil, nil, nil
	queued.Customer = &Customer{Name: whole.Customer.Name, Phone: whole.Customer.Phone}

	dialling = queued
	dialling.Status, dialling.DiallingAt = CallInProgress, At(whole.StartedAt.Add(time.Second))
	hungUp = dialling
	hungUp.HungUpAt = whole.EndedAt
	ended = hungUp
	ended.Status, ended.EndedAt, ended.EndReason, ended.Transcript = CallEnded, whole.EndedAt, EndCustomerHungUp, whole.Transcript
	completed = ended
	completed.Call, completed.CompletedAt = whole, At(whole.EndedAt.Add(4*time.Second))
	failed = queued
	failed.Status, failed.EndReason, failed.EndedAt = CallError, EndBusy, At(whole.StartedAt.Add(8*time.Second))
	return
}

func TestCallEvents(t *testing.T) {
	queued, dialling, hungUp, ended, completed, failed := life()
	none := CallRecord{}
	arrived := dialling
	arrived.Direction, arrived.CallType, arrived.DiallingAt = Inbound, Inbound, dialling.StartedAt
	failedLate := failed
	failedLate.DiallingAt = dialling.DiallingAt
	ringing := queued
	ringing.CarrierID = "sim-1"
	followedUp := completed
	followedUp.FollowUps = nil
	history := CallRecord{Call: sampleCall()}
	test := arrived
	test.IsTest = true
	type events = map[EventName]Time
	for name, tt := range map[string]struct {
		before, after CallRecord
		want          events
	}{
		"accepted":                       {none, queued, events{}},
		"the carrier's id":               {queued, ringing, events{}},
		"dialling":                       {queued, dialling, events{CallStarted: dialling.DiallingAt}},
		"hung up":                        {dialling, hungUp, events{}},
		"hung up before we knew":         {queued, hungUp, events{CallStarted: dialling.DiallingAt}},
		"ended":                          {hungUp, ended, events{}},
		"completed":                      {ended, completed, events{CallCompleted: completed.CompletedAt}},
		"follow-ups of a completed call": {completed, followedUp, events{}},
		"failed before dialling":         {queued, failed, events{CallFailed: failed.EndedAt}},
		"failed while dialling":          {dialling, failedLate, events{CallFailed: failed.EndedAt}},
		"arrived":                        {none, arrived, events{CallStarted: arrived.StartedAt}},
		"a test call":                    {none, test, events{CallStarted: arrived.StartedAt}},
		"history, inserted whole":        {none, history, events{}},
		"history of a failure":           {none, failedLate, events{}},
		"history with all our times":     {none, completed, events{}},
		"removed":                        {completed, none, events{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := events{}
			for _, e := range CallEvents(tt.before, tt.after) {
				got[e.Name] = e.OccurredAt
				if e.ID != string(tt.after.CallID) || !cmp.Equal(*e.Call, tt.after.Call) {
					t.Errorf("%s is of %s with call %+v; want the call as it is after", e.Name, e.ID, e.Call)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// The sample payloads of events/webhooks are what the code writes, indented.
func TestSamplePayloads(t *testing.T) {
	queued, dialling, _, ended, completed, failed := life()
	endpoint := WebhookEndpoint{
		EndpointID: "019ca900-0000-7000-8000-000000000005", WorkspaceID: queued.WorkspaceID, URL: "https://example.com/webhooks",
		Events: []EventName{CallStarted, CallCompleted}, Blocks: DefaultBlocks(), Enabled: true,
	}
	for _, e := range []Event{
		CallEvents(queued, dialling)[0],
		CallEvents(ended, completed)[0],
		CallEvents(queued, failed)[0],
		TestEvent(endpoint, "019ca900-0000-7000-8000-000000000006", completed.CompletedAt),
	} {
		payload, err := e.Payload(AllBlocks(), apiURL)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := json.Indent(&got, payload, "", "  "); err != nil {
			t.Fatal(err)
		}
		got.WriteByte('\n')
		file := filepath.Join("..", "..", "events", "webhooks", string(e.Name)+".json")
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s has changed: look, and run the test with -update if it should (-want +got):\n%s", file, diff)
		}
	}
}

func subject(t *testing.T, e Event, blocks Blocks) map[string]any {
	t.Helper()
	payload, err := e.Payload(blocks, apiURL)
	if err != nil {
		t.Fatal(err)
	}
	var envelope struct {
		Event      string
		EventID    string `json:"event_id"`
		Version    int
		OccurredAt string `json:"occurred_at"`
		Call       map[string]any
	}
	if err := json.Unmarshal(payload, &envelope); err != nil {
		t.Fatal(err)
	}
	if envelope.Event != string(e.Name) || envelope.EventID != e.ID || envelope.Version != 1 || envelope.OccurredAt != e.OccurredAt.WithOffset().String() {
		t.Errorf("envelope %+v is not that of %+v", envelope, e)
	}
	return envelope.Call
}

func TestPayloadIsCutToTheBlocks(t *testing.T) {
	_, _, _, ended, completed, _ := life()
	e := CallEvents(ended, completed)[0]
	for _, blocks := range []Blocks{nil, DefaultBlocks(), {BlockCosts}, AllBlocks()} {
		call := subject(t, e, blocks)
		for _, block := range AllBlocks()[1:] {
			if _, got := call[string(block)]; got != blocks.Has(block) {
				t.Errorf("blocks %s: %s shown: %t", blocks, block, got)
			}
		}
		if _, ok := call["metadata"]; !ok {
			t.Errorf("blocks %s: no metadata", blocks)
		}
	}
	recording, _ := subject(t, e, AllBlocks())["recording"].(map[string]any)
	if want := apiURL + "/v1/calls/" + string(completed.CallID) + "/recording"; recording["download_url"] != want {
		t.Errorf("download_url = %v, want %s", recording["download_url"], want)
	}
	if e.Call.Recording.DownloadURL != "" || e.Call.FollowUps[0].SentAt != At(e.Call.FollowUps[0].SentAt.Time) {
		t.Error("writing the payload has changed the call")
	}
}

// A call that starts carries no conversation, even if its record did.
func TestStartedPayload(t *testing.T) {
	queued, dialling, _, _, completed, _ := life()
	dialling.Call = completed.Call
	dialling.IsTest = true
	call := subject(t, CallEvents(queued, dialling)[0], AllBlocks())
	want := strings.Fields("call_id workspace_id assistant_id assistant_name direction status started_at is_test customer call_variables metadata")
	for _, name := range want {
		if _, ok := call[name]; !ok {
			t.Errorf("%s is missing", name)
		}
		delete(call, name)
	}
	if len(call) > 0 {
		t.Errorf("the payload also has %v", call)
	}
	if call := subject(t, CallEvents(queued, dialling)[0], nil); call["customer"] != nil {
		t.Errorf("without the block: customer %v", call["customer"])
	}
}

// Every time in a payload is written with +00:00 and three decimals, whatever fields a
// call will have.
func TestPayloadTimes(t *testing.T) {
	at := At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	var call Call
	times := fillTimes(reflect.ValueOf(&call).Elem(), at)
	payload, err := Event{Name: CallCompleted, ID: "1", OccurredAt: at, Call: &call}.Payload(AllBlocks(), apiURL)
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`"2026-[^"]*"`).FindAllString(string(payload), -1)
	if len(all) != times+1 || times < 3 {
		t.Errorf("%d times in %s, want %d and occurred_at", len(all), payload, times)
	}
	for _, got := range all {
		if got != `"2026-03-01T12:00:00.000+00:00"` {
			t.Errorf("time %s, want one with +00:00 and three decimals", got)
		}
	}
}

// fillTimes sets every Time below v, making what pointers and lists need, and counts them.
func fillTimes(v reflect.Value, at Time) int {
	if v.Type() == reflect.TypeFor[Time]() {
		v.Set(reflect.ValueOf(at))
		return 1
	}
	n := 0
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		n += fillTimes(v.Elem(), at)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			n += fillTimes(v.Index(0), at)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += fillTimes(v.Field(i), at)
		}
	}
	return n
}

// Metadata and texts arrive as they were sent.
func TestPayloadIsNotEscaped(t *testing.T) {
	_, _, _, ended, completed, _ := life()
	completed.Metadata = JSON(`{"b":1.10,"a":12345678901234567890,"html":"<&>","a":"é👋"}`)
	completed.Analysis = &Analysis{Summary: "<b>Fish & chips</b> 日本"}
	payload, err := CallEvents(ended, completed)[0].Payload(AllBlocks(), apiURL)
	for _, want := range []string{`"metadata":` + string(completed.Metadata), `"summary":"<b>Fish & chips</b> 日本"`} {
		if err != nil || !bytes.Contains(payload, []byte(want)) {
			t.Errorf("payload %s, %v; want %s in it", payload, err, want)
		}
	}
}

// A test event of an endpoint that chose nothing shows empty lists, not null.
func TestTestEvent(t *testing.T) {
	payload, err := TestEvent(WebhookEndpoint{EndpointID: "e", WorkspaceID: "w", URL: "https://example.com/?a=1&b=2"}, "1", At(time.Unix(0, 0))).Payload(nil, apiURL)
	want := `{"event":"webhook.test","event_id":"1","version":1,"occurred_at":"1970-01-01T00:00:00.000+00:00",` +
		`"webhook":{"endpoint_id":"e","workspace_id":"w","url":"https://example.com/?a=1&b=2","events":[],"blocks":[]}}`
	if err != nil || string(payload) != want {
		t.Errorf("payload %s, %v; want %s", payload, err, want)
	}
}
