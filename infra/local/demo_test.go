package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/nyaruka/phonenumbers"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/dynamo/dynamotest"
	"parley/shared/simulator"
)

var demoNow = time.Date(2026, 3, 14, 15, 9, 26, 535_897_932, time.UTC)

// readDemo reads as much of a definition as a history is made of. The operator's command
// has tests of its own that the file is valid.
func readDemo(t *testing.T, name string) dynamo.Definition {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		WorkspaceID conversation.WorkspaceID `yaml:"workspace_id"`
		Name        string
		Timezone    string
		Country     string
		Currency    string
		Carrier     string
		Prices      struct {
			Telephony string `yaml:"telephony_per_minute"`
			Assistant string `yaml:"assistant_per_minute"`
			SMS       string `yaml:"sms"`
			WhatsApp  string `yaml:"whatsapp"`
		}
		FollowUps  struct{ Channel conversation.Channel } `yaml:"follow_ups"`
		Assistants []struct {
			AssistantID conversation.AssistantID `yaml:"assistant_id"`
			Name        string
			Greeting    string
			Prompt      string
			Evaluations []struct {
				EvaluationID conversation.EvaluationID `yaml:"evaluation_id"`
				Title        string
				Instructions string
				Enabled      *bool
				Recoverable  bool
			}
		}
		Numbers []struct{ Number, Assistant string }
	}
	if err := yaml.Unmarshal(content, &f); err != nil {
		t.Fatal(err)
	}
	d := dynamo.Definition{Workspace: conversation.Workspace{
		WorkspaceID: f.WorkspaceID, Name: f.Name, Timezone: f.Timezone, Country: f.Country, Currency: f.Currency, Carrier: f.Carrier,
		Prices:            conversation.Prices{TelephonyPerMinute: f.Prices.Telephony, AssistantPerMinute: f.Prices.Assistant, SMS: f.Prices.SMS, WhatsApp: f.Prices.WhatsApp},
		Limits:            conversation.Limits{LongestCallSeconds: 3600},
		InactivitySeconds: 1800, FollowUps: conversation.FollowUpPolicy{Channel: f.FollowUps.Channel, WaitSeconds: 1800},
	}}
	for _, fa := range f.Assistants {
		a := conversation.AssistantConfig{Greeting: fa.Greeting, Prompt: fa.Prompt}
		a.AssistantID, a.AssistantName, a.WorkspaceID = fa.AssistantID, fa.Name, f.WorkspaceID
		a.CallVariables = conversation.CallVariables(d.Workspace.FilledVariables(), a.Prompt, a.Greeting)
		for _, e := range fa.Evaluations {
			a.Criteria = append(a.Criteria, conversation.Criterion{
				EvaluationID: e.EvaluationID, Title: e.Title, Instructions: e.Instructions,
				Enabled: e.Enabled == nil || *e.Enabled, Recoverable: e.Recoverable,
			})
		}
		for _, n := range f.Numbers {
			if n.Assistant == a.AssistantName {
				a.PhoneNumbers = append(a.PhoneNumbers, conversation.PhoneNumber{PhoneNumber: n.Number, OutboundEnabled: true})
			}
		}
		d.Assistants = append(d.Assistants, a)
	}
	return d
}

func demoHistory(t *testing.T) history {
	t.Helper()
	return newHistory(1, demoNow, readDemo(t, "demo.yaml"), 120, demoReasons())
}

func count[T any](items []T, is func(T) bool) int {
	n := 0
	for _, item := range items {
		if is(item) {
			n++
		}
	}
	return n
}

func TestDemoIsTheSameEachTime(t *testing.T) {
	if diff := cmp.Diff(demoHistory(t), demoHistory(t), cmp.AllowUnexported(history{})); diff != "" {
		t.Errorf("two histories differ:\n%s", diff)
	}
}

func TestDemoCalls(t *testing.T) {
	calls := demoHistory(t).calls
	is := map[string]struct {
		is    func(conversation.Call) bool
		least int
	}{
		"inbound":    {func(c conversation.Call) bool { return c.Direction == conversation.Inbound }, 60},
		"outbound":   {func(c conversation.Call) bool { return c.Direction == conversation.Outbound }, 40},
		"ended":      {func(c conversation.Call) bool { return c.Status == conversation.CallEnded }, 100},
		"error":      {func(c conversation.Call) bool { return c.Status == conversation.CallError }, 10},
		"tests":      {func(c conversation.Call) bool { return c.IsTest }, 3},
		"recordings": {func(c conversation.Call) bool { return c.Recording != nil && c.Recording.Available }, 80},
		"no audio":   {func(c conversation.Call) bool { return c.Recording != nil && !c.Recording.Available }, 5},
		"voicemail": {func(c conversation.Call) bool {
			return c.Analysis != nil && c.Analysis.Outcome == conversation.OutcomeVoicemail
		}, 2},
		"follow-ups":   {func(c conversation.Call) bool { return len(c.FollowUps) > 0 }, 20},
		"recovered":    {func(c conversation.Call) bool { return slices.ContainsFunc(c.Evaluations, recovered) }, 2},
		"metadata":     {func(c conversation.Call) bool { return c.Metadata != nil }, 40},
		"max_duration": {func(c conversation.Call) bool { return c.EndReason == conversation.EndMaxDuration }, 1},
	}
	if len(calls) != 120 {
		t.Errorf("calls = %d, want 120", len(calls))
	}
	for name, tt := range is {
		if got := count(calls, tt.is); got < tt.least {
			t.Errorf("%s = %d, want %d or more", name, got, tt.least)
		}
	}
	reasons := map[conversation.EndReason]bool{}
	for _, c := range calls {
		reasons[c.EndReason] = true
	}
	for _, reason := range append(failures, conversation.EndCustomerHungUp, conversation.EndAssistantHungUp) {
		if !reasons[reason] {
			t.Errorf("no call has the end_reason %s", reason)
		}
	}
}

func recovered(e conversation.Evaluation) bool {
	return e.Recovered && e.Result == conversation.Pass && e.InitialResult == conversation.Fail
}

func TestDemoCallsHangTogether(t *testing.T) {
	for _, c := range demoHistory(t).calls {
		if happened := c.Status == conversation.CallEnded; happened != (c.Transcript != nil) || happened != (c.Analysis != nil) ||
			happened != (c.Recording != nil) || happened != (c.Costs != nil) || happened != (c.DurationSeconds > 0) {
			t.Errorf("%s call %s has parts of another status: %+v", c.Status, c.CallID, c)
		}
		if id := uuid.MustParse(string(c.CallID)); id.Version() != 7 || string(c.CallID) < conversation.FirstID(c.StartedAt.Time) ||
			string(c.CallID) >= conversation.FirstID(c.StartedAt.Add(time.Millisecond)) {
			t.Errorf("call_id %s is no UUIDv7 of %v", c.CallID, c.StartedAt)
		}
		if c.StartedAt.Before(demoNow.AddDate(0, 0, -historyDays)) || c.EndedAt.After(demoNow) || c.EndedAt.Before(c.StartedAt.Time) {
			t.Errorf("call %s lasts from %v to %v, want within %d days before %v", c.CallID, c.StartedAt, c.EndedAt, historyDays, demoNow)
		}
		if variables := c.CallVariables != nil; variables != (c.Direction == conversation.Outbound) || variables && !json.Valid(c.CallVariables) {
			t.Errorf("%s call %s has the variables %s", c.Direction, c.CallID, c.CallVariables)
		}
		audio := simulator.Duration(c.Transcript)
		if c.Recording != nil && c.Recording.Available && (audio-time.Duration(c.DurationSeconds)*time.Second).Abs() > time.Second {
			t.Errorf("call %s lasts %d s, its audio %v", c.CallID, c.DurationSeconds, audio)
		}
	}
}

func TestDemoThreads(t *testing.T) {
	h := demoHistory(t)
	if len(h.threads) != 40 {
		t.Errorf("threads = %d, want 40", len(h.threads))
	}
	reasons := map[conversation.CloseReason]bool{}
	for _, thread := range h.threads {
		kind, _, _ := strings.Cut(string(thread.CloseReason), ":")
		reasons[thread.CloseReason], reasons[conversation.CloseReason(kind)] = true, true
	}
	for _, reason := range append(conversation.CloseReasons(), conversation.SkippedOutside24hWindow, conversation.SkippedQuietHours, conversation.SkippedAssistantDisabled) {
		if !reasons[reason] {
			t.Errorf("no thread has the close_reason %s", reason)
		}
	}
	for _, channel := range []conversation.Channel{conversation.SMS, conversation.WhatsApp} {
		if got := count(h.threads, func(thread conversation.Thread) bool { return thread.Channel == channel }); got < 10 {
			t.Errorf("threads by %s = %d, want 10 or more", channel, got)
		}
	}
	if got := count(h.threads, func(thread conversation.Thread) bool { return slices.ContainsFunc(thread.Evaluations, recovered) }); got < 2 {
		t.Errorf("recovered threads = %d, want 2 or more", got)
	}
}

// TestDemoThreadsAreGradedAsTheirReasonSays holds the spec's table against the threads:
// yes, all evaluations; partly, those with a verdict; no, none.
func TestDemoThreadsAreGradedAsTheirReasonSays(t *testing.T) {
	graded := []conversation.CloseReason{conversation.Graded, conversation.NoReplyAfterFollowUp}
	partly := []conversation.CloseReason{conversation.CustomerOptedOut, conversation.FollowUpNoCriteria}
	for _, thread := range demoHistory(t).threads {
		wantsAny := slices.Contains(graded, thread.CloseReason) || slices.Contains(partly, thread.CloseReason)
		if (len(thread.Evaluations) > 0) != wantsAny {
			t.Errorf("thread %s has %d evaluations", thread.CloseReason, len(thread.Evaluations))
		}
		for _, e := range thread.Evaluations {
			if slices.Contains(partly, thread.CloseReason) && e.Result != conversation.Pass && e.Result != conversation.Fail {
				t.Errorf("thread %s has the result %s", thread.CloseReason, e.Result)
			}
			if e.InitialResult != "" && len(thread.FollowUps) == 0 {
				t.Errorf("thread %s has an initial_result without a follow-up", thread.CloseReason)
			}
		}
		skipped := strings.HasPrefix(string(thread.CloseReason), string(conversation.FollowUpSkippedReason)+":")
		if skipped && thread.FollowUps[0].Status != conversation.FollowUpSkipped {
			t.Errorf("thread %s has the follow-up %+v", thread.CloseReason, thread.FollowUps[0])
		}
		if noPhone := thread.Customer.Phone == ""; noPhone != (thread.CloseReason == conversation.FollowUpNoCustomerPhone) {
			t.Errorf("thread %s has the customer %+v", thread.CloseReason, thread.Customer)
		}
	}
}

func TestDemoMessages(t *testing.T) {
	h := demoHistory(t)
	sources := map[conversation.Source]int{}
	inThread := map[conversation.ThreadID][]conversation.Message{}
	for _, m := range h.messages {
		sources[m.Source]++
		inThread[m.ThreadID] = append(inThread[m.ThreadID], m)
		if string(m.MessageID) < conversation.FirstID(m.OccurredAt.Time) || m.Reply != nil {
			t.Errorf("message %+v is not of its time, or carries a reply", m)
		}
	}
	for _, source := range []conversation.Source{conversation.SourceInbound, conversation.SourceVoiceTool, conversation.SourceEvaluationFollowUp, conversation.SourceTest} {
		if sources[source] == 0 {
			t.Errorf("no message has the source %s", source)
		}
	}
	for _, thread := range h.threads {
		messages := inThread[thread.ThreadID]
		delete(inThread, thread.ThreadID)
		if len(messages) != thread.MessageCount || len(thread.Transcript) != thread.MessageCount {
			t.Fatalf("thread %s has %d messages, %d turns and counts %d", thread.CloseReason, len(messages), len(thread.Transcript), thread.MessageCount)
		}
		last := messages[len(messages)-1]
		if messages[0].OccurredAt != thread.StartedAt || last.OccurredAt != thread.LastMessageAt ||
			!thread.CompletedAt.After(last.OccurredAt.Time) || thread.CompletedAt.After(demoNow) {
			t.Errorf("thread %s of %v to %v, completed %v, has messages of %v to %v", thread.CloseReason,
				thread.StartedAt, thread.LastMessageAt, thread.CompletedAt, messages[0].OccurredAt, last.OccurredAt)
		}
		for i, m := range messages {
			if m.Content != thread.Transcript[i].Content || m.Channel != thread.Channel || m.Source == conversation.SourceTest {
				t.Errorf("thread %s: message %+v is not its turn %+v", thread.CloseReason, m, thread.Transcript[i])
			}
		}
	}
	for _, messages := range inThread { // what is left has no thread
		if i := slices.IndexFunc(messages, func(m conversation.Message) bool { return m.Source != conversation.SourceTest }); i >= 0 {
			t.Errorf("message %+v has no thread, and is no test", messages[i])
		}
	}
}

func TestDemoNumbersAreValidAndPlayNoScenario(t *testing.T) {
	for _, name := range []string{"demo.yaml", "demo-other.yaml"} {
		for _, call := range newHistory(1, demoNow, readDemo(t, name), 200, nil).calls {
			number, err := phonenumbers.Parse(call.Customer.Phone, "")
			if err != nil || !phonenumbers.IsValidNumber(number) || phonenumbers.GetRegionCodeForNumber(number) != call.Customer.Country {
				t.Errorf("%s: phone %s of %s is not valid: %v", name, call.Customer.Phone, call.Customer.Country, err)
			}
			if digits := call.Customer.Phone[len(call.Customer.Phone)-2:]; digits <= "12" {
				t.Errorf("%s: phone %s plays the simulator's scenario %s", name, call.Customer.Phone, digits)
			}
		}
	}
}

func TestFillDemo(t *testing.T) {
	store := dynamotest.Store(t)
	definition, other := readDemo(t, "demo.yaml"), readDemo(t, "demo-other.yaml")
	for _, d := range []dynamo.Definition{definition, other} {
		if err := store.Define(t.Context(), dynamo.Definition{}, d, "1"); err != nil {
			t.Fatal(err)
		}
	}
	now, start := time.Now(), time.Now()
	got, err := fillDemo(t.Context(), store, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("filled in %v", time.Since(start).Round(time.Millisecond))

	if names := slices.Sorted(maps.Keys(got.Keys)); !slices.Equal(names, []string{"default", "full", "no_transcript", "other_workspace", "place_calls", "revoked"}) {
		t.Errorf("keys = %v", names)
	}
	want := map[string][]string{"two_numbers": {"+12025550150", "+12025550151"}, "one_number": {"+12025550152"}}
	if diff := cmp.Diff(want, got.Numbers); diff != "" {
		t.Errorf("numbers differ (-want +got):\n%s", diff)
	}
	if len(got.Assistants) != 3 || got.Assistants["no_number"] == "" {
		t.Errorf("assistants = %v, want three", got.Assistants)
	}
	checkKeys(t, store, got.Keys)

	page, err := store.Calls(t.Context(), demoWorkspace, dynamo.CallQuery{IncludeTest: true}, dynamo.PageRequest{Limit: 100, Blocks: conversation.AllBlocks()})
	if err != nil || len(page.Items) != 100 || page.Next == "" {
		t.Errorf("calls = %d, %v; want a page of 100 and more", len(page.Items), err)
	}
	threads, err := store.Threads(t.Context(), demoWorkspace, dynamo.ThreadQuery{}, dynamo.PageRequest{Limit: 100})
	if err != nil || len(threads.Items) != 40 {
		t.Errorf("threads = %d, %v; want 40", len(threads.Items), err)
	}
	others, err := store.Calls(t.Context(), otherWorkspace, dynamo.CallQuery{IncludeTest: true}, dynamo.PageRequest{Limit: 100})
	if err != nil || len(others.Items) != 12 {
		t.Errorf("the other workspace's calls = %d, %v; want 12", len(others.Items), err)
	}
}

func checkKeys(t *testing.T, store *dynamo.Store, keys map[string]string) {
	t.Helper()
	for name, text := range keys {
		id, _, ok := conversation.ParseAPIKey(text)
		k, err := store.APIKey(t.Context(), id)
		if !ok || err != nil {
			t.Errorf("key %s = %q, %v", name, text, err)
		}
		if (name == "revoked") != !k.RevokedAt.IsZero() {
			t.Errorf("key %s was revoked at %v", name, k.RevokedAt)
		}
		if (name == "other_workspace") != (k.WorkspaceID == otherWorkspace) {
			t.Errorf("key %s is of workspace %s", name, k.WorkspaceID)
		}
		if k.PlaceCalls != slices.Contains([]string{"full", "place_calls", "other_workspace"}, name) {
			t.Errorf("key %s may place calls: %v", name, k.PlaceCalls)
		}
		if k.Blocks.Has(conversation.BlockTranscript) != (name != "no_transcript") {
			t.Errorf("key %s reads %v", name, k.Blocks)
		}
	}
}

func TestDemoRecordingsAreAudio(t *testing.T) {
	for _, call := range demoHistory(t).calls[:12] {
		if call.Recording == nil || !call.Recording.Available {
			continue
		}
		audio := simulator.Audio(call.Transcript)
		if !bytes.HasPrefix(audio, []byte("RIFF")) || len(audio) > 1<<20 {
			t.Errorf("call %s has %d bytes of audio, want a WAV file under 1 MB", call.CallID, len(audio))
		}
	}
}
