package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
)

// An ending is what becomes of a call to a number of the simulator.
type ending struct {
	status    conversation.CallStatus
	reason    conversation.EndReason
	answered  bool
	turns     int
	recording conversation.RecordingStatus
	outcome   conversation.Outcome
	sentiment conversation.Sentiment
	verdicts  []conversation.Verdict // of recoverable and polite
	longest   int                    // seconds that the workspace's calls may last, if not an hour
}

var (
	passed = []conversation.Verdict{conversation.Pass, conversation.Pass}
	unsaid = []conversation.Verdict{conversation.NotApplicable, conversation.NotApplicable}
)

// endings by the last two digits of the customer's number; 04 is never accepted.
var endings = map[string]ending{
	"01": {status: "error", reason: "busy"},
	"02": {status: "error", reason: "no_answer"},
	"03": {status: "error", reason: "rejected"},
	"05": {"ended", "assistant_hung_up", true, 1, "absent", "unknown", "unknown", unsaid, 0},
	"06": {"ended", "assistant_hung_up", true, 3, "complete", "voicemail", "unknown", unsaid, 0},
	"07": {status: "error", reason: "stalled", answered: true, longest: 300},
	"08": {"ended", "customer_hung_up", true, 7, "complete", "resolved", "positive", passed, 0},
	"09": {status: "error", reason: "agent_error"},
	"10": {"ended", "customer_hung_up", true, 7, "complete", "resolved", "positive", passed, 0},
	"11": {"ended", "max_duration", true, 7, "complete", "resolved", "positive", passed, 600},
	"12": {"ended", "customer_hung_up", true, 5, "complete", "unresolved", "negative", []conversation.Verdict{conversation.Fail, conversation.Pass}, 0},
	"13": {"ended", "customer_hung_up", true, 7, "complete", "resolved", "positive", passed, 0},
	"99": {"ended", "customer_hung_up", true, 7, "complete", "resolved", "positive", passed, 0},
}

// Every number's call ends as its scenario says, with all that belongs to it, and leaves
// nothing behind. They are all placed at once: the slow ones, whose carrier gives no answer
// (10) or whose customer never hangs up (11), take as long as all of them.
func TestCallScenarios(t *testing.T) {
	t.Parallel()
	desks, answers := map[string]desk{}, map[string]*answer{}
	for digits, e := range endings {
		desks[digits], answers[digits] = newDesk(t, longest(e.longest)), new(answer)
	}
	var group sync.WaitGroup
	for digits, got := range answers {
		group.Go(func() { *got = desks[digits].order(t, orderTo(digits), "one call") })
	}
	again := desks["10"].replayOfHanging(t)
	group.Wait()
	placed := map[string]conversation.Call{}
	for digits, got := range answers {
		placed[digits] = accepted(t, *got)
	}
	if again != placed["10"].CallID {
		t.Errorf("10: repeated while it hung, the request names call %s, want %s", again, placed["10"].CallID)
	}
	for digits, call := range placed {
		desks[digits].finished(t, call.CallID)
	}
	for digits, call := range placed { // those with late callbacks (08) have had them by now
		t.Run(digits, func(t *testing.T) {
			d, e := desks[digits], endings[digits]
			d.checkSettled(t, call.CallID)
			if got := d.placements(t, call.CallID); got != 1 {
				t.Errorf("the carrier was asked %d times, want once", got)
			}
			e.check(t, d, call, customerOf(digits), d.get(t, call.CallID))
		})
	}
}

// replayOfHanging repeats a request that still hangs, as its client may do, and returns the
// call that it names.
func (d desk) replayOfHanging(t *testing.T) conversation.CallID {
	t.Helper()
	await(t, func() error {
		if calls := pageOf[conversation.Call](t, d.key, "calls", ""); len(calls.Items) != 1 {
			return fmt.Errorf("%d calls, want one", len(calls.Items))
		}
		return nil
	})
	began := time.Now()
	got := d.order(t, orderTo("10"), "one call")
	if took := time.Since(began); got.header.Get("Idempotent-Replay") != "true" || took > 5*time.Second {
		t.Errorf("repeated while it hangs: %v after %v, want a replay at once", got.header, took)
	}
	return accepted(t, got).CallID
}

// check compares a call with its ending, and with how it began.
func (e ending) check(t *testing.T, d desk, began conversation.Call, customer string, got conversation.Call) {
	t.Helper()
	expected := began
	expected.CallType = began.Direction
	expected.Status, expected.EndReason, expected.EndedAt = e.status, e.reason, got.EndedAt
	expected.Customer = &conversation.Customer{Name: began.Customer.Name, Phone: customer}
	expected.DurationSeconds = got.DurationSeconds
	if !got.EndedAt.After(got.StartedAt.Time) {
		t.Errorf("it ended at %v, and began at %v", got.EndedAt, got.StartedAt)
	}
	if e.answered {
		assistant := d.defined.Assistants[0]
		expected.ConfigSnapshot = &conversation.ConfigSnapshot{
			Version: 1, Model: assistant.Model, Voice: assistant.Voice, Language: assistant.Language,
			Greeting: assistant.Greeting, Prompt: assistant.Prompt,
		}
	}
	if e.status == conversation.CallEnded {
		e.checkTalk(t, got)
		expected.Customer.CustomerID = got.Customer.CustomerID
		expected.Transcript, expected.Analysis = got.Transcript, got.Analysis
		expected.Evaluations, expected.PerformanceMetrics = got.Evaluations, got.PerformanceMetrics
		expected.Costs = costsOf(got.DurationSeconds)
		expected.Recording = &conversation.Recording{Status: e.recording}
		if e.recording == conversation.RecordingComplete {
			expected.Recording.Available = true
			expected.Recording.DownloadURL = deployed(t).BaseURL + "/v1/calls/" + string(got.CallID) + "/recording"
			e.checkAudio(t, d, got)
		}
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("call (-want +got):\n%s", diff)
	}
	if e.status == conversation.CallError && got.DurationSeconds != 0 {
		t.Errorf("it lasted %d s, and never happened", got.DurationSeconds)
	}
}

// costsOf are the costs of a call at a desk's prices.
func costsOf(seconds int) *conversation.CallCosts {
	amount := func(thousandths int) string { return fmt.Sprintf("%d.%03d0", thousandths/1000, thousandths%1000) }
	return &conversation.CallCosts{Currency: "USD", Total: amount(11 * seconds), Components: []conversation.CostComponent{
		{Type: "telephony", Amount: amount(seconds)}, {Type: "assistant", Amount: amount(10 * seconds)},
	}}
}

// checkTalk wants what was said, and what was made of it.
func (e ending) checkTalk(t *testing.T, got conversation.Call) {
	t.Helper()
	if got.DurationSeconds == 0 || got.Customer == nil || got.Customer.CustomerID == "" {
		t.Errorf("it lasted %d s, with %+v", got.DurationSeconds, got.Customer)
	}
	if len(got.Transcript) != e.turns {
		t.Fatalf("%d turns, want %d: %v", len(got.Transcript), e.turns, got.Transcript)
	}
	said := ""
	for i, turn := range got.Transcript {
		if speaks := []conversation.Role{conversation.RoleAssistant, conversation.RoleUser}[i%2]; turn.Role != speaks || turn.Content == "" {
			t.Errorf("turn %d is %+v, want one of the %s", i, turn, speaks)
		}
		said += turn.Content + "\n"
	}
	greeting := "Good day " + got.Customer.Name + ", this is Harbour Hotel."
	if got.Transcript[0].Content != greeting {
		t.Errorf("the greeting is %q, want %q", got.Transcript[0].Content, greeting)
	}
	booking := strings.TrimSpace("The booking of the room is "+got.Variables()["booking"]) + "."
	asked := strings.Contains(said, "my booking")
	if e.turns == 7 && (asked && !strings.Contains(said, booking) || !strings.Contains(said, "Check-in is from 3 pm.")) {
		t.Errorf("the assistant doesn't go by its variables: %s", said)
	}
	if got.Analysis == nil || got.Analysis.Summary == "" || got.Analysis.Intent == "" || got.Analysis.Outcome != e.outcome || got.Analysis.Sentiment != e.sentiment {
		t.Errorf("analysis %+v, want %s, %s", got.Analysis, e.outcome, e.sentiment)
	}
	evaluations := []conversation.Evaluation{
		{EvaluationID: recoverable, Title: "Question answered", Result: e.verdicts[0]}, {EvaluationID: polite, Title: "Polite", Result: e.verdicts[1]},
	}
	for i := range min(len(evaluations), len(got.Evaluations)) {
		evaluations[i].Rationale = got.Evaluations[i].Rationale
		if evaluations[i].Rationale == "" {
			t.Errorf("evaluation %+v has no reason", got.Evaluations[i])
		}
	}
	if diff := cmp.Diff(evaluations, got.Evaluations); diff != "" {
		t.Errorf("evaluations (-want +got):\n%s", diff)
	}
	checkMetrics(t, got.PerformanceMetrics, (e.turns-1)/2)
}

func checkMetrics(t *testing.T, got *conversation.PerformanceMetrics, replies int) {
	t.Helper()
	if (got != nil) != (replies > 0) {
		t.Errorf("performance metrics %+v after %d replies", got, replies)
	}
	if got == nil {
		return
	}
	for name, l := range map[string]conversation.Latency{"speech": got.Speech, "model": got.Model, "voice": got.Voice, "end_to_end": got.EndToEnd} {
		if l.Count != replies || l.P50 <= 0 || l.P90 < l.P50 || l.P95 < l.P90 || l.Max < l.P95 {
			t.Errorf("latencies of %s: %+v, of %d replies", name, l, replies)
		}
	}
}

// checkAudio plays the recording: it lasts as long as the talk, and a call whose customer
// then stays on the line lasts longer.
func (e ending) checkAudio(t *testing.T, d desk, call conversation.Call) {
	t.Helper()
	stable, err := url.Parse(call.Recording.DownloadURL)
	if err != nil {
		t.Fatal(err)
	}
	got := d.key.get(t, stable.Path)
	if got.status != http.StatusFound {
		t.Fatalf("recording: %d, want 302: %s", got.status, got.body)
	}
	lasts, whole := wavDuration(t, download(t, got.header.Get("Location"))), time.Duration(call.DurationSeconds)*time.Second
	if lasts < 5*time.Second || lasts > whole || e.reason != conversation.EndMaxDuration && lasts < whole-time.Second {
		t.Errorf("the audio lasts %v, the call %v", lasts, whole)
	}
}

// A call that the carrier refuses at once is answered with 502, and its key is free: the
// next try with it places a new call.
func TestRefusedCall(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for range 2 {
		got := want[problem](t, d.order(t, orderTo("04"), "one call"), http.StatusBadGateway)
		if diff := cmp.Diff(problem{[]string{"the telephony provider refused the call"}, "provider_refused"}, got); diff != "" {
			t.Errorf("502 (-want +got):\n%s", diff)
		}
		if got := d.activeCalls(t); got != "0" {
			t.Errorf("active calls: %s, want 0", got)
		}
	}
	third := d.order(t, orderTo("50"), "one call")
	placed := accepted(t, third)
	if third.header.Get("Idempotent-Replay") != "" {
		t.Errorf("the third try is a replay: %v", third.header)
	}
	var ids []conversation.CallID
	refused := ending{status: conversation.CallError, reason: conversation.EndProviderRefused}
	for _, call := range walk[conversation.Call](t, d.key, "calls", "limit=10") {
		ids = append(ids, call.CallID)
		if call.CallID == placed.CallID {
			continue
		}
		began := placed
		began.CallID, began.StartedAt = call.CallID, call.StartedAt
		refused.check(t, d, began, customerOf("04"), call)
		if got := d.placements(t, call.CallID); got != 0 {
			t.Errorf("a refused call was placed %d times", got)
		}
	}
	if len(ids) != 3 {
		t.Errorf("%d calls are listed, want the refused ones and the new one", len(ids))
	}
	d.finished(t, placed.CallID)
	d.checkSettled(t, ids...)
	endings["99"].check(t, d, placed, customerOf("50"), d.get(t, placed.CallID))
}
