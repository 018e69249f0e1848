package lifecycle_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"

	"parley/shared/agent"
	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/lifecycle"
)

func TestComplete(t *testing.T) {
	w := newWorld(t)
	ph := w.bring(t, hungUp)
	ph.state.Latencies = nil
	for n := range 20 {
		ph.state.Latencies = append(ph.state.Latencies, carrier.TurnLatency{Speech: 20 - n, Model: 100 * (n + 1), Voice: 7})
	}
	ended := w.now()
	if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err != nil {
		t.Fatal(err)
	}
	got := w.read(t, ph.CallID)

	want := conversation.Call{
		CallID: ph.CallID, WorkspaceID: w.workspace, AssistantID: w.assistant, AssistantName: "Reception",
		CallType: conversation.Outbound, Direction: conversation.Outbound, Status: conversation.CallEnded,
		DurationSeconds: 60, StartedAt: got.StartedAt, EndedAt: conversation.At(ended), EndReason: conversation.EndCustomerHungUp,
		Customer: &conversation.Customer{CustomerID: got.Customer.CustomerID, Name: "Ada", Phone: customer + "99"},
		Costs: &conversation.CallCosts{Currency: "USD", Total: "0.1200", Components: []conversation.CostComponent{
			{Type: "telephony", Amount: "0.0200"}, {Type: "assistant", Amount: "0.1000"},
		}},
		Transcript: []conversation.Turn{
			{Role: conversation.RoleAssistant, Content: "This is Harbour Hotel."}, {Role: conversation.RoleUser, Content: "Is there a room with a view?"},
		},
		Analysis: got.Analysis,
		Evaluations: []conversation.Evaluation{{
			EvaluationID: w.definition.Assistants[0].Criteria[0].EvaluationID, Title: "Answered", Result: conversation.Pass,
			Rationale: "Nothing that the customer said stands against it.",
		}},
		Recording: &conversation.Recording{Status: conversation.RecordingComplete, Available: true},
		PerformanceMetrics: &conversation.PerformanceMetrics{
			Speech:   conversation.Latency{P50: 10, P90: 18, P95: 19, Max: 20, Count: 20},
			Model:    conversation.Latency{P50: 1000, P90: 1800, P95: 1900, Max: 2000, Count: 20},
			Voice:    conversation.Latency{P50: 7, P90: 7, P95: 7, Max: 7, Count: 20},
			EndToEnd: conversation.Latency{P50: 1018, P90: 1810, P95: 1909, Max: 2008, Count: 20},
		},
		ConfigSnapshot: &conversation.ConfigSnapshot{
			Version: 1, Model: "scripted", Voice: "calm", Language: "en", Greeting: "This is {{hotel_name}}.", Prompt: "Help {{participant_name}}.",
		},
	}
	if diff := cmp.Diff(want, got.Call); diff != "" || got.Analysis == nil || got.Customer.CustomerID == "" {
		t.Errorf("call (-want +got):\n%s", diff)
	}
	if w.balance(t) != "25.38" || w.slots(t) != "0" || got.CompletedAt != conversation.At(w.now()) {
		t.Errorf("balance %s, %s active calls, completed at %s; want 25.38, 0, now", w.balance(t), w.slots(t), got.CompletedAt)
	}
	if w.waited != 10*time.Second {
		t.Errorf("waited %s for the recording, want 10 s", w.waited)
	}
	objects := s3.NewFromConfig(w.cfg, func(o *s3.Options) { o.UsePathStyle = true })
	key := dynamo.RecordingsPrefix + string(w.workspace) + "/" + string(ph.CallID) + ".wav"
	if _, err := objects.HeadObject(w.ctx, &s3.HeadObjectInput{Bucket: &w.names.Bucket, Key: &key}); err != nil {
		t.Errorf("the audio: %v", err)
	}
}

// brokenAgent fails at what it names.
type brokenAgent struct {
	agent.Scripted
	analyse, evaluate bool
}

var errBroken = errors.New("the model is broken")

func (a brokenAgent) Analyse(ctx context.Context, c agent.Conversation) (conversation.Analysis, error) {
	if a.analyse {
		return conversation.Analysis{}, errBroken
	}
	return a.Scripted.Analyse(ctx, c)
}

func (a brokenAgent) Evaluate(ctx context.Context, c agent.Conversation, criteria []conversation.Criterion) ([]conversation.Evaluation, error) {
	if a.evaluate {
		return nil, errBroken
	}
	return a.Scripted.Evaluate(ctx, c, criteria)
}

// recordings is a line whose recordings are as a test says.
type recordings struct {
	*line
	status conversation.RecordingStatus
	audio  error
}

func (r *recordings) FetchCall(ctx context.Context, ref carrier.Ref) (carrier.CallState, error) {
	state, err := r.line.FetchCall(ctx, ref)
	if state.Phase == carrier.Over && state.Transcript != nil {
		state.Recording = r.status
	}
	return state, err
}

func (r *recordings) FetchRecording(ctx context.Context, ref carrier.Ref) ([]byte, error) {
	if r.audio != nil {
		return nil, r.audio
	}
	return r.line.FetchRecording(ctx, ref)
}

// A part that fails is left out; the call is completed, and charged, all the same.
func TestCompleteWithoutAPart(t *testing.T) {
	stage := newStage(t)
	all := []string{"analysis", "evaluations", "recording", "costs", "metrics"}
	tests := map[string]struct {
		change    func(*testing.T, *world, *recordings)
		missing   string // parts
		recording conversation.RecordingStatus
		waits     time.Duration
	}{
		"nothing": {func(*testing.T, *world, *recordings) {}, "", "complete", 0},
		"no analysis": {func(_ *testing.T, w *world, _ *recordings) {
			w.calls.Agent = func(string) (agent.Agent, error) { return brokenAgent{analyse: true}, nil }
		}, "analysis", "complete", 2 * time.Second},
		"no evaluations": {func(_ *testing.T, w *world, _ *recordings) {
			w.calls.Agent = func(string) (agent.Agent, error) { return brokenAgent{evaluate: true}, nil }
		}, "evaluations", "complete", 2 * time.Second},
		"an unknown model": {func(t *testing.T, w *world, _ *recordings) {
			w.define(t, func(d *dynamo.Definition) { d.Assistants[0].Model = "of the future" })
		}, "analysis evaluations", "complete", 0},
		"an assistant that was removed": {func(t *testing.T, w *world, _ *recordings) {
			w.bringHome(t)
			w.define(t, func(d *dynamo.Definition) { d.Assistants = nil })
		}, "", "complete", 0},
		"a recording that is absent":     {func(_ *testing.T, _ *world, r *recordings) { r.status = "absent" }, "", "absent", 0},
		"a recording that failed":        {func(_ *testing.T, _ *world, r *recordings) { r.status = "failed" }, "", "failed", 0},
		"a recording that says nothing":  {func(_ *testing.T, _ *world, r *recordings) { r.status = "" }, "", "absent", 0},
		"a recording that never comes":   {func(_ *testing.T, _ *world, r *recordings) { r.status = "pending" }, "", "failed", time.Minute},
		"a recording still processed":    {func(_ *testing.T, _ *world, r *recordings) { r.status = "processing" }, "", "failed", time.Minute},
		"audio that can't be fetched":    {func(_ *testing.T, _ *world, r *recordings) { r.audio = errOutOfOrder }, "", "failed", 0},
		"prices that can't be read":      {func(t *testing.T, w *world, _ *recordings) { w.price(t, "a lot", "0") }, "costs", "complete", 0},
		"a second price, neither can be": {func(t *testing.T, w *world, _ *recordings) { w.price(t, "0.1", "") }, "costs", "complete", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := stage.newWorld(t, nil)
			r := &recordings{line: w.line, status: "complete"}
			w.calls.Carriers[w.carrier] = r
			ph := w.bring(t, hungUp)
			tt.change(t, w, r)
			if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err != nil {
				t.Fatalf("Advance = %v, want nil", err)
			}
			got := w.read(t, ph.CallID)
			there := map[string]bool{
				"analysis": got.Analysis != nil, "evaluations": got.Evaluations != nil, "recording": got.Recording != nil,
				"costs": got.Costs != nil, "metrics": got.PerformanceMetrics != nil,
			}
			for _, part := range all {
				if want := !strings.Contains(tt.missing, part); there[part] != want {
					t.Errorf("%s is there: %t, want %t", part, there[part], want)
				}
			}
			if got.Status != conversation.CallEnded || got.CompletedAt.IsZero() || got.Recording == nil || got.Recording.Status != tt.recording ||
				got.Recording.Available != (tt.recording == "complete") {
				t.Errorf("%s, completed at %s, recording %+v; want ended, completed, %s", got.Status, got.CompletedAt, got.Recording, tt.recording)
			}
			if w.waited != tt.waits {
				t.Errorf("waited %s, want %s", w.waited, tt.waits)
			}
			balance := "25.38"
			if tt.missing == "costs" {
				balance = "25.5"
			}
			if w.balance(t) != balance {
				t.Errorf("balance %s, want %s", w.balance(t), balance)
			}
		})
	}
}

// hanging is an examiner that gives no answer, for these parts, in the time that it has.
type hanging struct {
	*examiner
	parts string
	hang  func(context.Context) error
}

func (a hanging) Analyse(ctx context.Context, c agent.Conversation) (conversation.Analysis, error) {
	if strings.Contains(a.parts, "analysis") {
		return conversation.Analysis{}, a.hang(ctx)
	}
	return a.examiner.Analyse(ctx, c)
}

func (a hanging) Evaluate(ctx context.Context, c agent.Conversation, criteria []conversation.Criterion) ([]conversation.Evaluation, error) {
	if strings.Contains(a.parts, "evaluations") {
		return nil, a.hang(ctx)
	}
	return a.examiner.Evaluate(ctx, c, criteria)
}

func (a hanging) FollowUp(ctx context.Context, c agent.Conversation, failed []conversation.Criterion) (string, error) {
	if strings.Contains(a.parts, "follow-up") {
		return "", a.hang(ctx)
	}
	return a.examiner.FollowUp(ctx, c, failed)
}

// Whatever the agent gives no answer to, and though the recording never comes, the call is
// completed, with its follow-up, while the function lives: it has 120 s.
func TestAgentHangs(t *testing.T) {
	stage := newStage(t)
	for parts, followUp := range map[string]string{
		"analysis": "sent by sms", "evaluations": "", "analysis evaluations": "", "follow-up": "failed by sms", "analysis follow-up": "failed by sms",
	} {
		t.Run(parts, func(t *testing.T) {
			w, a := stage.newExamined(t, nil)
			hang := func(ctx context.Context) error {
				until, _ := ctx.Deadline()
				w.pass(max(0, time.Until(until)))
				if until.IsZero() {
					t.Error("it may take for ever")
				}
				return context.DeadlineExceeded
			}
			w.calls.Agent = func(string) (agent.Agent, error) { return hanging{a, parts, hang}, nil }
			w.calls.Carriers[w.carrier] = &recordings{line: w.line, status: "pending"}
			ph := w.bring(t, hungUp)
			began := w.now()
			if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err != nil {
				t.Fatalf("Advance = %v", err)
			}
			got := w.read(t, ph.CallID)
			if (got.Analysis == nil) != strings.Contains(parts, "analysis") || (got.Evaluations == nil) != strings.Contains(parts, "evaluations") ||
				got.CompletedAt.IsZero() || statusOf(got.CallRecord) != followUp {
				t.Errorf("completed at %s with analysis %v, evaluations %v, follow-up %q; want all but %s", got.CompletedAt, got.Analysis, got.Evaluations, statusOf(got.CallRecord), parts)
			}
			if took := w.now().Sub(began); took < 30*time.Second || took > 110*time.Second {
				t.Errorf("it took %s, want some of the agent's time, and 110 s at most", took)
			}
		})
	}
}

// bringHome gives all slots back, so that the assistant may be removed.
func (w *world) bringHome(t *testing.T) {
	t.Helper()
	for callID := range w.line.phones {
		call := w.read(t, callID)
		if err := w.store.EndCall(w.ctx, call, dynamo.Ending{
			At: call.HungUpAt, Reason: call.HungUpReason, DurationSeconds: 60, Transcript: w.line.phones[callID].state.Transcript,
		}, w.now()); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) price(t *testing.T, telephony, assistant string) {
	t.Helper()
	w.define(t, func(d *dynamo.Definition) {
		d.Workspace.Prices.TelephonyPerMinute, d.Workspace.Prices.AssistantPerMinute = telephony, assistant
	})
}

// The carrier falls silent between transcript and recording: the recording is left out.
func TestCarrierFallsSilentAfterTheTranscript(t *testing.T) {
	w := newWorld(t)
	ph := w.bring(t, hungUp)
	w.bringHome(t)
	w.line.out = errOutOfOrder
	if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err != nil {
		t.Fatal(err)
	}
	got := w.read(t, ph.CallID)
	if got.CompletedAt.IsZero() || got.Recording == nil || got.Recording.Status != conversation.RecordingFailed || got.PerformanceMetrics != nil || got.Costs == nil {
		t.Errorf("completed at %s, recording %+v, metrics %v; want completed, failed, none", got.CompletedAt, got.Recording, got.PerformanceMetrics)
	}
}

// Nobody said a word: ended, with a transcript that is empty, and no metrics.
func TestSilentCall(t *testing.T) {
	w := newWorld(t)
	ph := w.bring(t, inProgress)
	w.line.answer(ph)
	w.line.take(ph) // the answer was never asked for
	w.line.hangUp(ph, conversation.EndCustomerHungUp)
	w.deliverAll(t, ph)
	if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err != nil {
		t.Fatal(err)
	}
	got := w.read(t, ph.CallID)
	if got.Status != conversation.CallEnded || got.Transcript == nil || len(got.Transcript) != 0 || got.PerformanceMetrics != nil ||
		got.Costs == nil || got.Costs.Total != "0.0000" || got.Evaluations == nil || w.balance(t) != "25.5" {
		t.Errorf("call %+v, balance %s; want ended, an empty transcript, no costs", got.Call, w.balance(t))
	}
}

// The transcript is there before anything else is tried, and stays whatever happens then.
func TestTranscriptFirst(t *testing.T) {
	w := newWorld(t)
	ph := w.bring(t, hungUp)
	ctx, cancel := context.WithCancel(w.ctx)
	w.calls.Wait = func(ctx context.Context, _ time.Duration) error { cancel(); return ctx.Err() } // the function's time is up
	if err := w.calls.Advance(ctx, w.workspace, ph.CallID); err == nil {
		t.Fatal("Advance = nil, want the function's end")
	}
	got := w.read(t, ph.CallID)
	if got.Status != conversation.CallEnded || len(got.Transcript) != 2 || !got.CompletedAt.IsZero() || got.Recording != nil || w.slots(t) != "0" || w.balance(t) != "25.5" {
		t.Errorf("%s, %d turns, completed at %s; want ended, 2, not yet", got.Status, len(got.Transcript), got.CompletedAt)
	}
	if it := w.callItem(t, ph.CallID); it["open_shard"] == nil {
		t.Error("it isn't open, want the sweep to see it")
	}
	w.calls.Wait = func(_ context.Context, d time.Duration) error { w.pass(d); return nil }
	if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err != nil || w.read(t, ph.CallID).CompletedAt.IsZero() || w.balance(t) != "25.38" {
		t.Errorf("Advance = %v, balance %s; want it completed and charged", err, w.balance(t))
	}
	if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err != nil || w.balance(t) != "25.38" {
		t.Errorf("Advance again = %v, balance %s; want it charged once", err, w.balance(t))
	}
}

// A stage 60 times as fast waits 60 times less, a second at least.
func TestScaledWaits(t *testing.T) {
	w := newWorld(t)
	w.calls.Scale = 60
	w.calls.Carriers[w.carrier] = &recordings{line: w.line, status: "pending"}
	ph := w.bring(t, hungUp)
	if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err != nil || w.waited != time.Second {
		t.Errorf("Advance = %v, waited %s; want nil, 1 s", err, w.waited)
	}
}

func TestScale(t *testing.T) {
	for _, tt := range []struct {
		scale lifecycle.Scale
		d     time.Duration
		want  time.Duration
	}{
		{0, time.Hour, time.Hour}, {1, 1500 * time.Millisecond, 2 * time.Second}, {60, time.Hour, time.Minute},
		{60, 2 * time.Second, time.Second}, {60, 61 * time.Second, 2 * time.Second}, {7, time.Minute, 9 * time.Second},
	} {
		if got := tt.scale.Of(tt.d); got != tt.want {
			t.Errorf("Scale(%d).Of(%s) = %s, want %s", tt.scale, tt.d, got, tt.want)
		}
	}
	if got := lifecycle.Scale(60).Pickup(); got != 20*time.Second {
		t.Errorf("pickup %s, want 20 s: longer than the function lives that places calls", got)
	}
	if got := lifecycle.Scale(1).Pickup(); got != 2*time.Minute {
		t.Errorf("pickup %s, want 2 min", got)
	}
}
