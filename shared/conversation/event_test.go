package conversation

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
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

// sampleMessages are a customer's message whose turn is over, and one that a call sent, with
// a value in every field.
func sampleMessages() (received, sent MessageRecord) {
	call := sampleCall()
	at := At(time.Date(2026, 3, 1, 12, 10, 0, 125_000_000, time.UTC))
	received = MessageRecord{
		Message: Message{
			MessageID: "019ca95a-163d-7c11-8a53-0c6f1e4d7b22", WorkspaceID: call.WorkspaceID,
			AssistantID: call.AssistantID, AssistantName: call.AssistantName, Channel: WhatsApp, Direction: Inbound,
			ThreadID: "019ca95a-163d-7c11-8a53-0c6f1e4d7b23", Source: SourceInbound, OccurredAt: at,
			Content: "Is there a lift? <3 & thanks 👋", MediaCount: 1, ProviderMessageID: "wamid.HBgLMTIwMjU1NTAxMjM",
			Reply:    &Reply{Content: "Yes, next to the stairs.", ProviderMessageID: "wamid.HBgLMTIwMjU1NTAxMjQ", Timestamp: At(at.Add(17 * time.Second))},
			Customer: call.Customer, Costs: &MessageCosts{Currency: "USD", Total: "0.0079"},
		},
		Carrier: "simulator", Number: "+12025550100", Address: "+12025550123",
		ArrivedAt: At(at.Add(time.Second)), MarkedAt: At(at.Add(18 * time.Second)),
	}
	sent = received
	sent.MessageID, sent.Channel, sent.Direction, sent.Source = "019ca94f-c48a-7c11-8a53-0c6f1e4d7b24", SMS, Outbound, SourceVoiceTool
	sent.ThreadID, sent.ProviderMessageID = "019ca94f-c48a-7c11-8a53-0c6f1e4d7b25", "SM2f6c8d"
	sent.OccurredAt, sent.Content, sent.MediaCount, sent.Reply = At(call.StartedAt.Add(40*time.Second)), "The address is 12 Quay Road.", 0, nil
	sent.Customer = &Customer{CustomerID: call.Customer.CustomerID, Phone: call.Customer.Phone}
	sent.CallID, sent.ArrivedAt, sent.MarkedAt, sent.SentAt = call.CallID, sent.OccurredAt, Time{}, At(sent.OccurredAt.Add(time.Second))
	return
}

// sampleThread is a thread after all of its life, with a value in every field.
func sampleThread() ThreadRecord {
	call := sampleCall()
	received, _ := sampleMessages()
	started := received.OccurredAt
	return ThreadRecord{
		Thread: Thread{
			ThreadID: received.ThreadID, WorkspaceID: call.WorkspaceID, AssistantID: call.AssistantID, AssistantName: call.AssistantName,
			Channel: WhatsApp, CloseReason: Graded, MessageCount: 4, StartedAt: started, LastMessageAt: At(started.Add(40 * time.Minute)),
			CompletedAt: At(started.Add(71 * time.Minute)), AnchorMessageID: "019ca97e-b5bd-7c11-8a53-0c6f1e4d7b26",
			Customer: &Customer{CustomerID: call.Customer.CustomerID, Name: call.Customer.Name, Phone: call.Customer.Phone},
			Costs:    &ThreadCosts{Currency: "USD", Total: "0.0316", ChargedMessageCount: 4},
			Transcript: []Turn{
				{Role: RoleUser, Content: "Is there a lift?"},
				{Role: RoleAssistant, Content: "I will find that out for you."},
				{Role: RoleAssistant, Content: "Hello! We would like to put something right for you: “Question answered”. What can we still do?"},
				{Role: RoleUser, Content: "I have found it, thank you."},
			},
			Analysis: &Analysis{Summary: "Ada asked for a lift and found it.", Intent: "ask for a lift", Outcome: OutcomeResolved, Sentiment: SentimentPositive},
			Evaluations: []Evaluation{{
				EvaluationID: "019ca900-0000-7000-8000-000000000007", Title: "Question answered",
				Result: Pass, InitialResult: Fail, Rationale: "The customer found the lift.", Recovered: true,
			}},
			FollowUps: []FollowUp{{Status: FollowUpDelivered, Channel: WhatsApp, SentAt: At(started.Add(31 * time.Minute))}},
		},
		Carrier: "simulator", Number: "+12025550100", Address: "+12025550123", Version: 9, LastArrivalAt: At(started.Add(40 * time.Minute)),
	}
}

// life is a call's record at each step of its life.
func life() (queued, dialling, hungUp, ended, completed, failed CallRecord) {
	whole := sampleCall()
	queued = CallRecord{Call: whole, Carrier: "simulator", HoldsSlot: true}
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
	history, historyWithTimes := CallRecord{Call: sampleCall()}, completed
	historyWithTimes.Carrier = ""
	declined := failed
	declined.DiallingAt, declined.EndedAt, declined.EndReason = arrived.StartedAt, arrived.StartedAt, EndAgentUnavailable
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
		"arrived, and declined":          {none, declined, events{CallStarted: arrived.StartedAt, CallFailed: arrived.StartedAt}},
		"history with all our times":     {none, historyWithTimes, events{}},
		"removed":                        {completed, none, events{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := events{}
			for _, e := range CallEvents(tt.before, tt.after) {
				got[e.Name] = e.OccurredAt
				if e.ID != string(tt.after.CallID) || e.WorkspaceID != tt.after.WorkspaceID || !cmp.Equal(*e.Call, tt.after.Call) {
					t.Errorf("%s is of %s with call %+v; want the call as it is after", e.Name, e.ID, e.Call)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMessageEvents(t *testing.T) {
	none := MessageRecord{}
	marked, sent := sampleMessages()
	arrived := marked
	arrived.MarkedAt, arrived.Reply = Time{}, nil
	replied := marked
	replied.MarkedAt = Time{}
	stored := sent
	stored.SentAt, stored.ProviderMessageID = Time{}, ""
	with := func(m MessageRecord, change func(*MessageRecord)) MessageRecord {
		change(&m)
		return m
	}
	followUp := func(m *MessageRecord) { m.Source = SourceEvaluationFollowUp }
	reply := func(m *MessageRecord) { m.Source = SourceInbound }
	asTest := func(m *MessageRecord) { m.IsTest = true }
	fromTest := func(m *MessageRecord) { m.Source = SourceTest }
	history := func(m *MessageRecord) { m.Carrier = "" }
	for name, tt := range map[string]struct {
		before, after MessageRecord
		want          EventName
	}{
		"arrived":                         {none, arrived, ""},
		"its turn has a reply":            {arrived, replied, ""},
		"marked":                          {replied, marked, MessageReceived},
		"marked without a reply":          {arrived, with(arrived, func(m *MessageRecord) { m.MarkedAt = marked.MarkedAt }), MessageReceived},
		"marked, then the carrier's id":   {with(marked, func(m *MessageRecord) { m.Reply = nil }), marked, ""},
		"marked again":                    {marked, with(marked, func(m *MessageRecord) { m.MarkedAt = At(m.MarkedAt.Add(time.Second)) }), ""},
		"about to be sent":                {none, stored, ""},
		"sent by a call":                  {stored, sent, MessageSent},
		"sent by a call, as it is stored": {none, sent, MessageSent},
		"a follow-up":                     {with(stored, followUp), with(sent, followUp), MessageSent},
		"a follow-up, as it is stored":    {none, with(sent, followUp), MessageSent},
		"delivered":                       {with(sent, func(m *MessageRecord) { m.ProviderMessageID = "" }), sent, ""},
		"a reply":                         {none, with(sent, reply), ""},
		"an outbound one with a mark":     {sent, with(sent, func(m *MessageRecord) { m.MarkedAt = marked.MarkedAt }), ""},
		"an inbound one with sent_at":     {arrived, with(arrived, func(m *MessageRecord) { m.Source, m.SentAt = SourceVoiceTool, sent.SentAt }), ""},
		"of an unknown source":            {stored, with(sent, func(m *MessageRecord) { m.Source = "campaign" }), ""},
		"taken out again":                 {stored, none, ""},
		"a test":                          {with(arrived, asTest), with(marked, asTest), ""},
		"of source test":                  {with(arrived, fromTest), with(marked, fromTest), ""},
		"sent to a test's customer":       {none, with(sent, asTest), ""},
		"a test's reply":                  {none, with(sent, fromTest), ""},
		"history":                         {none, with(marked, history), ""},
		"history of what was sent":        {none, with(sent, history), ""},
		"history, changed":                {with(arrived, history), with(marked, history), ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := []Event{{Name: tt.want, ID: string(tt.after.MessageID), WorkspaceID: tt.after.WorkspaceID, OccurredAt: tt.after.OccurredAt, Message: &tt.after.Message}}
			if tt.want == "" {
				want = nil
			}
			if diff := cmp.Diff(want, MessageEvents(tt.before, tt.after)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestThreadEvents(t *testing.T) {
	none, completed := ThreadRecord{}, sampleThread()
	open := completed
	open.CompletedAt, open.CloseReason = Time{}, ""
	test, openTest := completed, open
	test.IsTest, openTest.IsTest = true, true
	history := completed
	history.Carrier = ""
	for name, tt := range map[string]struct {
		before, after ThreadRecord
		want          bool
	}{
		"opened":           {none, open, false},
		"another message":  {open, open, false},
		"completed":        {open, completed, true},
		"completed before": {completed, completed, false},
		"removed":          {completed, none, false},
		"a test":           {openTest, test, false},
		"history":          {none, history, false},
	} {
		t.Run(name, func(t *testing.T) {
			var want []Event
			if tt.want {
				want = []Event{{Name: ThreadCompleted, ID: string(tt.after.ThreadID), WorkspaceID: tt.after.WorkspaceID, OccurredAt: tt.after.CompletedAt, Thread: &tt.after.Thread}}
			}
			if diff := cmp.Diff(want, ThreadEvents(tt.before, tt.after)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// samples are one event of each name that an endpoint may choose.
func samples() []Event {
	queued, dialling, _, ended, completed, failed := life()
	received, sent := sampleMessages()
	thread := sampleThread()
	return slices.Concat(
		CallEvents(queued, dialling), CallEvents(ended, completed), CallEvents(queued, failed),
		MessageEvents(MessageRecord{}, received), MessageEvents(MessageRecord{}, sent), ThreadEvents(ThreadRecord{}, thread),
	)
}

// The sample payloads of events/webhooks are what the code writes, indented.
func TestSamplePayloads(t *testing.T) {
	all := samples()
	var names []EventName
	for _, e := range all {
		names = append(names, e.Name)
	}
	if !slices.Equal(names, EventNames()) {
		t.Errorf("samples of %q, want one of each of %q", names, EventNames())
	}
	call := sampleCall()
	endpoint := WebhookEndpoint{
		EndpointID: "019ca900-0000-7000-8000-000000000005", WorkspaceID: call.WorkspaceID, URL: "https://example.com/webhooks",
		Events: []EventName{CallStarted, CallCompleted}, Blocks: DefaultBlocks(), Enabled: true,
	}
	for _, e := range append(all, TestEvent(endpoint, "019ca900-0000-7000-8000-000000000006", At(call.EndedAt.Add(4*time.Second)))) {
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

// subject is the object that an event's payload is about. It is named after the event.
func subject(t *testing.T, e Event, blocks Blocks) map[string]any {
	t.Helper()
	payload, err := e.Payload(blocks, apiURL)
	if err != nil {
		t.Fatal(err)
	}
	var envelope map[string]any
	if err := json.Unmarshal(payload, &envelope); err != nil {
		t.Fatal(err)
	}
	kind, _, _ := strings.Cut(string(e.Name), ".")
	object, _ := envelope[kind].(map[string]any)
	delete(envelope, kind)
	want := map[string]any{"event": string(e.Name), "event_id": e.ID, "version": 1.0, "occurred_at": e.OccurredAt.WithOffset().String()}
	if diff := cmp.Diff(want, envelope); object == nil || diff != "" {
		t.Errorf("envelope of %s, beside its %s (-want +got):\n%s", e.Name, kind, diff)
	}
	return object
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

// Messages and threads have the fields of the spec that apply to them, and the blocks that
// are on.
func TestTextPayloads(t *testing.T) {
	const identity = "workspace_id assistant_id assistant_name channel "
	const message = identity + "message_id direction thread_id source occurred_at content provider_message_id "
	const thread = identity + "thread_id close_reason message_count started_at last_message_at completed_at anchor_message_id "
	received, sent := sampleMessages()
	receivedEvent, sentEvent := MessageEvents(MessageRecord{}, received)[0], MessageEvents(MessageRecord{}, sent)[0]
	completed := ThreadEvents(ThreadRecord{}, sampleThread())[0]
	for _, tt := range []struct {
		event  Event
		blocks Blocks
		want   string
	}{
		{receivedEvent, AllBlocks(), message + "media_count reply customer costs"},
		{receivedEvent, DefaultBlocks(), message + "media_count reply customer"},
		{receivedEvent, nil, message + "media_count reply"},
		{sentEvent, AllBlocks(), message + "customer costs"},
		{sentEvent, DefaultBlocks(), message + "customer"},
		{sentEvent, Blocks{BlockCosts, BlockTranscript}, message + "costs"},
		{completed, AllBlocks(), thread + "customer costs transcript analysis evaluations follow_ups"},
		{completed, DefaultBlocks(), thread + "customer transcript analysis evaluations"},
		{completed, Blocks{BlockFollowUps, BlockRecording}, thread + "follow_ups"},
		{completed, nil, thread},
	} {
		got := slices.Sorted(maps.Keys(subject(t, tt.event, tt.blocks)))
		want := strings.Fields(tt.want)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s with blocks %s: %q, want %q", tt.event.Name, tt.blocks, got, want)
		}
	}
	if got := subject(t, receivedEvent, nil)["reply"]; !cmp.Equal(got, any(map[string]any{
		"content": received.Reply.Content, "provider_message_id": received.Reply.ProviderMessageID, "timestamp": "2026-03-01T12:10:17.125+00:00",
	})) {
		t.Errorf("reply = %v", got)
	}
	// What isn't known is left out.
	if got, want := subject(t, sentEvent, AllBlocks())["customer"], any(map[string]any{
		"customer_id": string(sent.Customer.CustomerID), "phone": sent.Customer.Phone,
	}); !cmp.Equal(got, want) {
		t.Errorf("customer = %v, want %v", got, want)
	}
	if receivedEvent.Message.Reply.Timestamp != At(received.Reply.Timestamp.Time) || completed.Thread.FollowUps[0].SentAt != At(completed.Thread.FollowUps[0].SentAt.Time) {
		t.Error("writing the payload has changed its subject")
	}
}

// Every time in a payload is written with +00:00 and three decimals, whatever fields its
// subject will have.
func TestPayloadTimes(t *testing.T) {
	at := At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	var call Call
	var message Message
	var thread Thread
	for _, tt := range []struct {
		event Event
		times int // that the subject has, at least
	}{
		{Event{Name: CallCompleted, Call: &call}, 3},
		{Event{Name: MessageReceived, Message: &message}, 2},
		{Event{Name: ThreadCompleted, Thread: &thread}, 4},
	} {
		times := 0
		for _, subject := range []reflect.Value{reflect.ValueOf(tt.event.Call), reflect.ValueOf(tt.event.Message), reflect.ValueOf(tt.event.Thread)} {
			if !subject.IsNil() {
				times += fillTimes(subject.Elem(), at)
			}
		}
		tt.event.OccurredAt = at
		payload, err := tt.event.Payload(AllBlocks(), apiURL)
		if err != nil {
			t.Fatal(err)
		}
		all := regexp.MustCompile(`"2026-[^"]*"`).FindAllString(string(payload), -1)
		if len(all) != times+1 || times < tt.times {
			t.Errorf("%d times in %s, want %d and occurred_at", len(all), payload, times)
		}
		for _, got := range all {
			if got != `"2026-03-01T12:00:00.000+00:00"` {
				t.Errorf("%s: time %s, want one with +00:00 and three decimals", tt.event.Name, got)
			}
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
