package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// Whoever asks for a call again and again sees it queued, in progress and ended, in this
// order; a repeated request is answered with the same bytes, then and later, and whatever
// stands against a new one.
func TestCallLife(t *testing.T) {
	t.Parallel()
	var d desk
	var first answer
	var placed conversation.Call
	var steps []conversation.CallStatus
	for range 3 { // dialling begins after a second, which may be before we look
		d = newDeskWith(t, "0.001") // one call uses it up
		first = d.order(t, orderTo("50"), "one call")
		placed = accepted(t, first)
		if steps = d.watch(t, placed); steps[0] == conversation.CallQueued {
			break
		}
	}
	all := []conversation.CallStatus{conversation.CallQueued, conversation.CallInProgress, conversation.CallEnded}
	if !slices.Equal(steps, all) {
		t.Errorf("the call was seen %v, want %v", steps, all)
	}
	d.checkReplay(t, orderTo("50"), first) // it is ended, if perhaps not complete
	d.finished(t, placed.CallID)
	d.checkReplay(t, orderTo("99"), first)
	if got := want[problem](t, d.order(t, orderTo("50"), "another"), http.StatusConflict); got.Code != "wallet_empty" {
		t.Errorf("another call without balance: %+v, want wallet_empty", got)
	}
	d.checkSettled(t, placed.CallID)
	if got := d.placements(t, placed.CallID); got != 1 {
		t.Errorf("the carrier was asked %d times, want once", got)
	}
}

// checkReplay orders with the first answer's key.
func (d desk) checkReplay(t *testing.T, body []byte, first answer) {
	t.Helper()
	if first.header.Get("Idempotent-Replay") != "" {
		t.Errorf("the first answer is a replay: %v", first.header)
	}
	got := d.order(t, body, "one call")
	if got.status != http.StatusCreated || got.header.Get("Idempotent-Replay") != "true" || !bytes.Equal(got.body, first.body) {
		t.Errorf("replayed: %d %v %.500s, want %.500s", got.status, got.header, got.body, first.body)
	}
}

// watch asks for a call until it is ended and returns the statuses that it had, in turn.
func (d desk) watch(t *testing.T, placed conversation.Call) []conversation.CallStatus {
	t.Helper()
	var steps []conversation.CallStatus
	await(t, func() error {
		call := d.get(t, placed.CallID)
		if len(steps) == 0 || steps[len(steps)-1] != call.Status {
			steps = append(steps, call.Status)
		}
		if !call.StartedAt.Equal(placed.StartedAt.Time) {
			t.Errorf("%s: started at %v, want %v", call.Status, call.StartedAt, placed.StartedAt)
		}
		ended := call.Status == conversation.CallEnded
		if ended != (call.Transcript != nil) || ended == call.EndedAt.IsZero() || ended != (call.DurationSeconds > 0) || ended != (call.EndReason != "") {
			t.Errorf("%s: it has parts of another status: %+v", call.Status, call)
		}
		if !ended {
			return fmt.Errorf("the call is %s", call.Status)
		}
		return nil
	})
	return steps
}

// A call whose state machine was stopped while it was in progress is hung up by the sweep, and
// lives on as any other.
func TestCallWithoutStateMachine(t *testing.T) {
	t.Parallel()
	d := newDesk(t, longest(300))
	placed := d.place(t, "11")
	await(t, func() error {
		if call := d.record(t, placed.CallID); call.Status != conversation.CallInProgress {
			return fmt.Errorf("the call is %s", call.Status)
		}
		return nil
	})
	_, err := sfn.NewFromConfig(deployed(t).aws).StopExecution(t.Context(), &sfn.StopExecutionInput{ExecutionArn: executionOf(placed.CallID)})
	if err != nil {
		t.Fatal(err)
	}
	await(t, func() error {
		sweep(t)
		if call := d.record(t, placed.CallID); call.CompletedAt.IsZero() {
			return fmt.Errorf("after a sweep, the call is %s", call.Status)
		}
		return nil
	})
	if status := execution(t, placed.CallID); status != types.ExecutionStatusAborted {
		t.Errorf("the execution is %s, want ABORTED", status)
	}
	endings["11"].check(t, d, placed, customerOf("11"), d.get(t, placed.CallID))
	d.checkCounters(t, placed.CallID)
}

// Where neither a callback comes nor the carrier knows the call, the sweep need not wait
// for the state machine, which then ends by itself.
func TestCallThatIsForgotten(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	placed := d.place(t, "07")
	await(t, func() error {
		sweep(t)
		if call := d.record(t, placed.CallID); call.Status != conversation.CallError {
			return fmt.Errorf("after a sweep, the call is %s", call.Status)
		}
		return nil
	})
	endings["07"].check(t, d, placed, customerOf("07"), d.get(t, placed.CallID))
	d.checkSettled(t, placed.CallID)
}

// The largest call that the rules allow lives its whole life, and comes back whole.
func TestLargestCall(t *testing.T) {
	t.Parallel()
	const value = `\ud83d\udc4b` // one character of four bytes, in twelve
	var sent, greeting strings.Builder
	for i := range 50 {
		name := fmt.Sprintf("v%s%02d", strings.Repeat("x", 61), i)
		fmt.Fprintf(&sent, `,"%s":"%s"`, name, strings.Repeat(value, 5000))
		fmt.Fprintf(&greeting, "{{%s}}", name)
	}
	callVariables := "{" + sent.String()[1:] + "}"
	meta := `{"n":1.10,"s":"\u00e9<&>`
	meta += strings.Repeat("m", 8192-len(meta)-2) + `"}`
	name := strings.Repeat("👋", 5000)
	d := newDesk(t, func(d *dynamo.Definition) {
		d.Assistants[0].Greeting = "{{participant_name}}" + greeting.String()
		d.Assistants[0].Prompt = "The room is " + greeting.String()
	})
	first := d.order(t, fmt.Appendf(nil, `{"assistant_id":%q,"to":%q,"customer_name":%q,"call_variables":%s,"metadata":%s}`,
		assistantID, customerOf("50"), name, callVariables, meta), "one call")
	placed := accepted(t, first)
	d.finished(t, placed.CallID)

	answer := d.key.get(t, "/v1/calls/"+string(placed.CallID))
	for name, text := range map[string]string{"call_variables": callVariables, "metadata": meta} {
		for of, body := range map[string][]byte{"the first answer": first.body, "the call": answer.body} {
			if !bytes.Contains(body, []byte(`"`+name+`":`+text)) {
				t.Errorf("%s has other %s than were sent: %.500s", of, name, body)
			}
		}
	}
	got := want[struct{ Call conversation.Call }](t, answer, http.StatusOK).Call
	said := strings.Repeat("👋", 51*5000)
	if len(got.Transcript) != 7 || got.Transcript[0].Content != said || got.Customer.Name != name {
		t.Errorf("%d turns, the greeting of %d bytes, want 7, of %d", len(got.Transcript), len(got.Transcript[0].Content), len(said))
	}
	expected := &conversation.ConfigSnapshot{
		Version: 1, Model: "scripted", Voice: "calm", Language: "en-US",
		Greeting: d.defined.Assistants[0].Greeting, Prompt: d.defined.Assistants[0].Prompt,
	}
	if diff := cmp.Diff(expected, got.ConfigSnapshot); diff != "" {
		t.Errorf("config_snapshot (-want +got):\n%s", diff)
	}
	if got.Analysis == nil || len(got.Evaluations) != 2 || got.Recording == nil || !got.Recording.Available {
		t.Errorf("analysis %v, evaluations %v, recording %v", got.Analysis, got.Evaluations, got.Recording)
	}
	d.checkReplay(t, orderTo("50"), first)
	d.checkSettled(t, placed.CallID)
}
