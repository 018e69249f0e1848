package dynamo_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
	"parley/shared/dynamo/dynamotest"
)

// finished is a call with a value in every field, so that nothing is lost on the way.
func finished(ws conversation.WorkspaceID, at time.Time) conversation.Call {
	callID := conversation.CallID(conversation.NewID())
	return conversation.Call{
		CallID: callID, WorkspaceID: ws, AssistantID: "0191d1c0-0000-7000-8000-0000000000aa", AssistantName: "Front desk",
		CallType: conversation.Outbound, Direction: conversation.Outbound, Status: conversation.CallEnded,
		DurationSeconds: 42, StartedAt: conversation.At(at), EndedAt: conversation.At(at.Add(time.Minute)),
		EndReason:     conversation.EndCustomerHungUp,
		CallVariables: conversation.JSON(`{"room":"12","nights":2.50}`),
		Metadata:      conversation.JSON(`{"b":1.10,"a":[12345678901234567890,"<&>"],"a":null}`),
		Customer:      &conversation.Customer{CustomerID: "0191d1c0-0000-7000-8000-0000000000cc", Name: "Ada", Phone: "+12025550123"},
		Costs: &conversation.CallCosts{Currency: "USD", Total: "0.10", Components: []conversation.CostComponent{
			{Type: "telephony", Amount: "0.04"}, {Type: "assistant", Amount: "0.06"},
		}},
		Transcript:  []conversation.Turn{{Role: conversation.RoleAssistant, Content: "Hello 👋"}},
		Analysis:    &conversation.Analysis{Summary: "A call.", Intent: "booking", Outcome: conversation.OutcomeResolved, Sentiment: conversation.SentimentPositive},
		Evaluations: []conversation.Evaluation{{EvaluationID: "0191d1c0-0000-7000-8000-0000000000ee", Title: "Polite", Result: conversation.Pass, Rationale: "Yes."}},
		FollowUps:   []conversation.FollowUp{{Status: conversation.FollowUpSent, Channel: conversation.SMS, SentAt: conversation.At(at)}},
		Recording:   &conversation.Recording{Status: conversation.RecordingComplete, Available: true},
		PerformanceMetrics: &conversation.PerformanceMetrics{
			Speech: conversation.Latency{P50: 1, P95: 2, Max: 3, Count: 4},
		},
		ConfigSnapshot: &conversation.ConfigSnapshot{Version: 3, Model: "m", Voice: "v", Language: "en", Greeting: "Hi {{name}}", Prompt: "p"},
	}
}

func newWorkspace() conversation.WorkspaceID { return conversation.WorkspaceID(conversation.NewID()) }

func TestCallKeepsEveryField(t *testing.T) {
	store := dynamotest.Store(t)
	want := finished(newWorkspace(), time.Now())
	if err := store.InsertCall(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := store.Call(t.Context(), want.WorkspaceID, want.CallID, conversation.AllBlocks())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("call read differs (-written +read):\n%s", diff)
	}
}

func TestCallKeepsWhatHasNoValue(t *testing.T) {
	store := dynamotest.Store(t)
	want := conversation.Call{
		CallID: conversation.CallID(conversation.NewID()), WorkspaceID: newWorkspace(),
		Status: conversation.CallQueued, StartedAt: conversation.At(time.Now()),
		Evaluations: []conversation.Evaluation{}, // an empty list is a value
	}
	if err := store.InsertCall(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := store.Call(t.Context(), want.WorkspaceID, want.CallID, conversation.AllBlocks())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("call read differs (-written +read):\n%s", diff)
	}
}

func TestCallOfAnotherWorkspaceIsNotFound(t *testing.T) {
	store := dynamotest.Store(t)
	call := finished(newWorkspace(), time.Now())
	if err := store.InsertCall(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Call(t.Context(), newWorkspace(), call.CallID, nil); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("error = %v, want ErrNotFound", err)
	}
}

func TestInsertCallLeavesWhatExists(t *testing.T) {
	store := dynamotest.Store(t)
	want := finished(newWorkspace(), time.Now())
	other := want
	other.AssistantName = "Another"
	for _, call := range []conversation.Call{want, other} {
		if err := store.InsertCall(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	got, err := store.Call(t.Context(), want.WorkspaceID, want.CallID, conversation.AllBlocks())
	if err != nil || got.AssistantName != want.AssistantName {
		t.Errorf("assistant = %q, %v; want %q", got.AssistantName, err, want.AssistantName)
	}
}

// The largest fields leave the item, largest first, and readers don't notice.
func TestLargeCall(t *testing.T) {
	store := dynamotest.Store(t)
	want := finished(newWorkspace(), time.Now())
	want.Transcript[0].Content = strings.Repeat("überlang ", 100_000)
	want.CallVariables = conversation.JSON(`{"text":"` + strings.Repeat("𝄞", 250_000) + `"}`)
	if err := store.InsertCall(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := store.Call(t.Context(), want.WorkspaceID, want.CallID, conversation.AllBlocks())
	if err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(want, got) {
		t.Error("the large call was not read back as it was written")
	}

	got, err = store.Call(t.Context(), want.WorkspaceID, want.CallID, conversation.Blocks{conversation.BlockAnalysis})
	if err != nil {
		t.Fatal(err)
	}
	if got.Transcript != nil || string(got.CallVariables) != string(want.CallVariables) {
		t.Errorf("without the block: transcript of %d turns, variables of %d bytes; want none, and all", len(got.Transcript), len(got.CallVariables))
	}
}
