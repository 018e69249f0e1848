package lifecycle_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"parley/shared/agent"
	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/lifecycle"
)

// examiner judges by what the customer says: a criterion fails until they say its title.
type examiner struct {
	agent.Scripted
	evaluate, analyse, followUp func() error // nil: it succeeds
	asked                       map[string]int
}

func (a *examiner) Analyse(ctx context.Context, c agent.Conversation) (conversation.Analysis, error) {
	a.asked["analyse"]++
	if a.analyse != nil {
		return conversation.Analysis{}, a.analyse()
	}
	return a.Scripted.Analyse(ctx, c)
}

func (a *examiner) Evaluate(_ context.Context, c agent.Conversation, criteria []conversation.Criterion) ([]conversation.Evaluation, error) {
	a.asked["evaluate"]++
	if a.evaluate != nil {
		return nil, a.evaluate()
	}
	evaluations := []conversation.Evaluation{}
	for _, criterion := range criteria {
		e := conversation.Evaluation{EvaluationID: criterion.EvaluationID, Title: criterion.Title, Result: conversation.Fail, Rationale: "It wasn't said."}
		for _, turn := range c.Turns {
			if turn.Role == conversation.RoleUser && strings.Contains(turn.Content, criterion.Title) {
				e.Result, e.Rationale = conversation.Pass, "It was said."
			}
		}
		if criterion.Instructions == "" {
			e.Result, e.Rationale = conversation.Undecided, "Nobody knows."
		}
		evaluations = append(evaluations, e)
	}
	return evaluations, nil
}

func (a *examiner) FollowUp(context.Context, agent.Conversation, []conversation.Criterion) (string, error) {
	a.asked["follow-up"]++
	if a.followUp != nil {
		if err := a.followUp(); err != nil {
			return "", err
		}
	}
	return "What can we still do?", nil
}

const (
	answeredCriterion = "Answered" // recoverable
	politeCriterion   = "Polite"   // isn't
	vagueCriterion    = "Vague"    // nobody knows
)

// newExamined makes a world in which an assistant is judged by an examiner, and follow-ups
// are sent, and may be at any hour.
func (s stage) newExamined(t testing.TB, store *dynamo.Store) (*world, *examiner) {
	t.Helper()
	w := s.newWorld(t, store)
	a := &examiner{asked: map[string]int{}}
	w.calls.Agent = func(model string) (agent.Agent, error) {
		if _, err := agent.For(model); err != nil {
			return nil, err
		}
		return a, nil
	}
	w.define(t, func(d *dynamo.Definition) {
		criterion := func(title string, recoverable bool, instructions string) conversation.Criterion {
			return conversation.Criterion{
				EvaluationID: conversation.EvaluationID(conversation.NewID()), Title: title, Instructions: instructions,
				Enabled: true, Recoverable: recoverable,
			}
		}
		d.Assistants[0].Criteria = []conversation.Criterion{
			criterion(answeredCriterion, true, "It is said."), criterion(politeCriterion, false, "It is said."), criterion(vagueCriterion, true, ""),
		}
		d.Workspace.FollowUps = conversation.FollowUpPolicy{
			Enabled: true, Channel: conversation.SMS, Number: ours, Model: agent.ScriptedModel, WaitSeconds: 24 * 60 * 60, DailyCap: 100,
		}
	})
	return w, a
}

// look looks at conversations as advance-thread does. Its waits take the world's time.
func (w *world) look() lifecycle.Threads { return lifecycle.Threads{Parts: w.calls.Parts} }

// says lets the customer write, and their turn be over.
func (w *world) says(t fatal, contents ...string) conversation.ThreadID {
	t.Helper()
	var m conversation.MessageRecord
	for _, content := range contents {
		m = w.writes(t, w.message(content))
		w.elapse(t, 30*time.Second)
	}
	return m.ThreadID
}

func (w *world) advance(t fatal, threadID conversation.ThreadID) lifecycle.Step {
	t.Helper()
	step, err := w.look().Advance(w.ctx, w.workspace, threadID)
	if err != nil {
		t.Fatalf("Advance = %v", err)
	}
	return step
}

// toItsEnd looks until the conversation is completed, each time when the last look says, and
// returns what the looks said.
func (w *world) toItsEnd(t fatal, threadID conversation.ThreadID) string {
	t.Helper()
	var steps []string
	for range 20 {
		step := w.advance(t, threadID)
		steps = append(steps, string(step.Next))
		if step.Next == lifecycle.StepDone {
			return strings.Join(steps, " ")
		}
		w.pass(time.Duration(step.Seconds) * time.Second)
	}
	t.Fatalf("it is open after %v", steps)
	return ""
}

// results are a thread's evaluations: title, result, the first result, and whether it
// recovered.
func results(evaluations []conversation.Evaluation) string {
	var all []string
	for _, e := range evaluations {
		one := e.Title + " " + string(e.Result)
		if e.InitialResult != "" {
			one += " after " + string(e.InitialResult)
		}
		if e.Recovered {
			one += ", recovered"
		}
		all = append(all, one)
	}
	return strings.Join(all, "; ")
}

// A conversation of one exchange: it waits until it is quiet, is graded, and completed, once.
func TestThreadCompletes(t *testing.T) {
	w, a := newStage(t).newExamined(t, nil)
	began := conversation.At(w.now())
	threadID := w.says(t, "Answered and Polite?")
	replied := w.messages(t)[1]

	step := w.advance(t, threadID)
	if want := int(replied.ArrivedAt.Add(30*time.Minute).Sub(w.now()) / time.Second); step.Next != lifecycle.StepWait || step.Seconds != want {
		t.Fatalf("right after the exchange: %+v, want to wait the %d s until it is quiet", step, want)
	}
	w.pass(time.Duration(step.Seconds)*time.Second - time.Millisecond)
	if step := w.advance(t, threadID); step != (lifecycle.Step{Next: lifecycle.StepWait, Seconds: 1}) || len(a.asked) != 0 {
		t.Fatalf("a moment before: %+v, asked the agent %v; want to wait 1 s, not asked", step, a.asked)
	}
	w.pass(time.Millisecond)
	if step := w.advance(t, threadID); step != (lifecycle.Step{Next: lifecycle.StepDone}) {
		t.Fatalf("quiet: %+v, want done", step)
	}
	got, err := w.store.Thread(w.ctx, w.workspace, threadID, conversation.AllBlocks())
	if err != nil {
		t.Fatal(err)
	}
	criteria := w.definition.Assistants[0].Criteria
	want := conversation.Thread{
		ThreadID: threadID, WorkspaceID: w.workspace, AssistantID: w.assistant, AssistantName: "Reception", Channel: conversation.SMS,
		CloseReason: conversation.Graded, MessageCount: 2, StartedAt: began, LastMessageAt: replied.OccurredAt, CompletedAt: conversation.At(w.now()),
		AnchorMessageID: replied.MessageID, Customer: &conversation.Customer{CustomerID: got.Customer.CustomerID, Phone: customer + "99"},
		Costs:      &conversation.ThreadCosts{Currency: "USD", Total: "0.0150", ChargedMessageCount: 2},
		Transcript: []conversation.Turn{{Role: conversation.RoleUser, Content: "Answered and Polite?"}, {Role: conversation.RoleAssistant, Content: replied.Content}},
		Analysis:   got.Analysis,
		Evaluations: []conversation.Evaluation{
			{EvaluationID: criteria[0].EvaluationID, Title: answeredCriterion, Result: conversation.Pass, Rationale: "It was said."},
			{EvaluationID: criteria[1].EvaluationID, Title: politeCriterion, Result: conversation.Pass, Rationale: "It was said."},
			{EvaluationID: criteria[2].EvaluationID, Title: vagueCriterion, Result: conversation.Undecided, Rationale: "Nobody knows."},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || got.Analysis == nil || got.Customer.CustomerID == "" {
		t.Errorf("thread (-want +got):\n%s", diff)
	}
	it := w.threadItem(t, threadID)
	for _, gone := range []string{"open_shard", "open_until", "token", "claim", "attempt"} {
		if it[gone] != nil {
			t.Errorf("got %s of a completed thread, want none", gone)
		}
	}
	if w.pointer(t) != "" {
		t.Errorf("the pointer names %s, want none", w.pointer(t))
	}

	before := w.readThread(t, threadID)
	w.pass(time.Hour)
	if step := w.advance(t, threadID); step.Next != lifecycle.StepDone || a.asked["evaluate"] != 1 {
		t.Errorf("again: %+v, evaluated %d times; want done, once", step, a.asked["evaluate"])
	}
	if diff := cmp.Diff(before, w.readThread(t, threadID)); diff != "" {
		t.Errorf("the completed thread has changed:\n%s", diff)
	}
	if next := w.says(t, "Hello again"); next == threadID {
		t.Error("got a message in the completed thread, want another")
	}
}

// pointer is the open thread of the customer whose number ends in 99.
func (w *world) pointer(t fatal) string {
	t.Helper()
	return textOf(w.item(t, w.names.ConversationsTable, "open_thread", ours, customer+"99", "sms"), "thread_id")
}

// Each reason of the spec's table, from its cause in the world.
func TestCloseReasons(t *testing.T) {
	stage := newStage(t)
	const (
		all      = "Answered fail; Polite fail; Vague unknown"
		verdicts = "Answered fail; Polite fail"
		noReply  = "Answered fail after fail; Polite fail after fail; Vague unknown after unknown"
	)
	disabled := func(d *dynamo.Definition) { d.Assistants[0].Enabled = false }
	tests := map[string]struct {
		define    func(*dynamo.Definition)
		agent     func(*world, *examiner)
		says      string                                          // "Hello" if nothing else is said
		write     func(*carrier.MessageCallback)                  // how
		fate      fate                                            // of the follow-up
		after     func(*testing.T, *world, conversation.ThreadID) // when the follow-up was sent
		reason    conversation.CloseReason
		steps     string
		results   string
		followUps string
		texts     int // the follow-up's
	}{
		"all passed":     {says: "Answered Polite", reason: "graded", steps: "wait done", results: "Answered pass; Polite pass; Vague unknown"},
		"follow-ups off": {define: func(d *dynamo.Definition) { d.Workspace.FollowUps.Enabled = false }, reason: "graded", steps: "wait done", results: all},
		"nobody answers": {reason: "no_reply_after_follow_up", steps: "wait answer done", results: noReply, followUps: "sent", texts: 1},
		"nobody answers, and it was delivered": {
			after:  func(t *testing.T, w *world, _ conversation.ThreadID) { w.deliverReceipts(t) },
			reason: "no_reply_after_follow_up", steps: "wait answer done", results: noReply, followUps: "delivered", texts: 1,
		},
		"opts out":   {says: "STOP", reason: "customer_opted_out", steps: "done"},
		"help alone": {says: "HELP", reason: "empty_transcript", steps: "wait done"},
		"opts out after the follow-up": {
			after:  func(t *testing.T, w *world, _ conversation.ThreadID) { w.says(t, "Stop") },
			reason: "customer_opted_out", steps: "wait answer done", results: "Answered fail after fail; Polite fail after fail", followUps: "sent", texts: 1,
		},
		"opts out of another number while the follow-up is written": {
			agent:  func(w *world, a *examiner) { a.followUp = func() error { w.optOut(); return nil } },
			reason: "customer_opted_out", steps: "wait done", results: verdicts,
		},
		"no evaluations": {define: func(d *dynamo.Definition) {
			criteria := slices.Clone(d.Assistants[0].Criteria)
			for i := range criteria {
				criteria[i].Enabled = false
			}
			d.Assistants[0].Criteria = criteria
		}, reason: "no_enabled_evaluations", steps: "wait done"},
		"pictures alone":                 {write: func(m *carrier.MessageCallback) { m.Content, m.MediaCount = "", 2 }, reason: "empty_transcript", steps: "wait done"},
		"evaluating fails":               {agent: func(_ *world, a *examiner) { a.evaluate = func() error { return errBroken } }, reason: "grading_failed", steps: "wait done"},
		"no such model":                  {define: func(d *dynamo.Definition) { d.Assistants[0].Model = "of the future" }, reason: "grading_failed", steps: "wait done"},
		"the follow-up is refused":       {fate: textRefused, reason: "follow_up_failed", steps: "wait done", followUps: "failed", texts: 1},
		"the follow-up can't be written": {agent: func(_ *world, a *examiner) { a.followUp = func() error { return errBroken } }, reason: "follow_up_failed", steps: "wait done", followUps: "failed"},
		"the follow-up's receipt says that it failed": {
			after:  func(t *testing.T, w *world, threadID conversation.ThreadID) { w.failReceipt(t, threadID) },
			reason: "follow_up_failed", steps: "wait answer wait done", followUps: "failed", texts: 1,
		},
		"no answer of the carrier": {fate: textLost, reason: "follow_up_send_ambiguous", steps: "wait answer done", followUps: "ambiguous", texts: 1},
		"no answer of the carrier, but a receipt": {
			fate:   textMute,
			after:  func(t *testing.T, w *world, _ conversation.ThreadID) { w.deliverReceipts(t) },
			reason: "no_reply_after_follow_up", steps: "wait answer done", results: noReply, followUps: "delivered", texts: 1,
		},
		"the workspace's cap": {define: func(d *dynamo.Definition) { d.Workspace.FollowUps.DailyCap = 0 }, reason: "follow_up_daily_cap", steps: "wait done", followUps: "skipped"},
		"nothing recoverable": {says: "Answered", reason: "follow_up_no_criteria", steps: "wait done", results: "Answered pass; Polite fail"},
		"no phone": {write: func(m *carrier.MessageCallback) {
			m.From, m.Channel = "US.13491208655302741918", conversation.WhatsApp
		}, reason: "follow_up_no_customer_phone", steps: "wait done", followUps: "skipped"},
		"no model for follow-ups": {define: func(d *dynamo.Definition) { d.Workspace.FollowUps.Model = "" }, reason: "follow_up_missing_provider_key", steps: "wait done", followUps: "skipped"},
		"outside the window": {
			define: func(d *dynamo.Definition) { d.Workspace.InactivitySeconds = 24 * 60 * 60 },
			write:  func(m *carrier.MessageCallback) { m.Channel = conversation.WhatsApp },
			reason: "follow_up_skipped:outside_24h_window", steps: "wait done", followUps: "skipped",
		},
		"inside the window": {
			define: func(d *dynamo.Definition) { d.Workspace.InactivitySeconds = 23 * 60 * 60 },
			write:  func(m *carrier.MessageCallback) { m.Channel = conversation.WhatsApp },
			reason: "no_reply_after_follow_up", steps: "wait answer done", results: noReply, followUps: "sent", texts: 1,
		},
		"quiet hours in Tokyo": {
			define: func(d *dynamo.Definition) {
				d.Workspace.QuietHours = conversation.QuietHours{From: "16:30", To: "07:00"}
			},
			reason: "follow_up_skipped:quiet_hours", steps: "wait done", followUps: "skipped",
		},
		"quiet hours elsewhere": {
			define: func(d *dynamo.Definition) {
				d.Workspace.Timezone, d.Workspace.QuietHours = "UTC", conversation.QuietHours{From: "16:30", To: "07:00"}
			},
			reason: "no_reply_after_follow_up", steps: "wait answer done", results: noReply, followUps: "sent", texts: 1,
		},
		"a disabled assistant": {define: disabled, reason: "follow_up_skipped:assistant_disabled", steps: "wait done", followUps: "skipped"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w, a := stage.newExamined(t, nil)
			if tt.define != nil {
				w.define(t, tt.define)
			}
			if tt.agent != nil {
				tt.agent(w, a)
			}
			report := w.message("Hello")
			if tt.says != "" {
				report.Content = tt.says
			}
			if tt.write != nil {
				tt.write(&report)
			}
			threadID := w.writes(t, report).ThreadID
			w.elapse(t, 30*time.Second)
			w.line.fate = func(carrier.Text) fate { return tt.fate }

			var steps []string
			for range 10 {
				step := w.advance(t, threadID)
				steps = append(steps, string(step.Next))
				if step.Next == lifecycle.StepDone {
					break
				}
				if step.Next == lifecycle.StepAnswer && tt.after != nil {
					tt.after(t, w, threadID)
					tt.after = nil
					if awaited := w.readThread(t, threadID); awaited.LastCustomerAt.IsZero() && awaited.Attempt.Status != conversation.FollowUpFailed {
						w.pass(time.Duration(step.Seconds) * time.Second)
					}
					continue
				}
				w.pass(time.Duration(step.Seconds) * time.Second)
			}
			got := w.readThread(t, threadID)
			if got.CloseReason != tt.reason || got.Open() || strings.Join(steps, " ") != tt.steps {
				t.Errorf("%s by %v, want %s by %s", got.CloseReason, steps, tt.reason, tt.steps)
			}
			if results(got.Evaluations) != tt.results {
				t.Errorf("evaluations %q, want %q", results(got.Evaluations), tt.results)
			}
			var followUps []string
			for _, f := range got.FollowUps {
				followUps = append(followUps, string(f.Status))
				if sent := f.Status == conversation.FollowUpSent || f.Status == conversation.FollowUpDelivered; f.Channel != got.Channel || sent == f.SentAt.IsZero() && f.Status != conversation.FollowUpFailed {
					t.Errorf("follow-up %+v, want the thread's channel, and when it was sent if it was", f)
				}
			}
			if strings.Join(followUps, " ") != tt.followUps {
				t.Errorf("follow-ups %v, want %q", followUps, tt.followUps)
			}
			if texts := slices.DeleteFunc(w.sent(), func(s string) bool { return s != "What can we still do?" }); len(texts) != tt.texts {
				t.Errorf("the carrier was asked for %d follow-ups, want %d", len(texts), tt.texts)
			}
			w.checkThread(t, got)
		})
	}
}

// checkThread checks what holds of every completed thread.
func (w *world) checkThread(t fatal, thread conversation.ThreadRecord) {
	t.Helper()
	var listed []time.Time
	for _, m := range w.messages(t) {
		if m.ThreadID != thread.ThreadID {
			continue
		}
		listed = append(listed, m.OccurredAt.Time)
		if m.Direction == conversation.Inbound && m.MarkedAt.IsZero() || m.Direction == conversation.Outbound && m.SentAt.IsZero() {
			t.Fatalf("%s message %q has no mark, or was never sent", m.Direction, m.Content)
		}
	}
	if n := len(listed); n != thread.MessageCount || n != len(thread.Transcript) || thread.Transcript == nil {
		t.Fatalf("%d messages; want the count of %d, and the transcript's %d", n, thread.MessageCount, len(thread.Transcript))
	}
	if thread.Costs == nil || thread.Costs.ChargedMessageCount != len(listed) {
		t.Fatalf("costs %+v, want those of %d messages", thread.Costs, len(listed))
	}
	slices.SortFunc(listed, time.Time.Compare)
	if n := len(listed); n > 0 && (!thread.StartedAt.Equal(listed[0]) || !thread.LastMessageAt.Equal(listed[n-1])) {
		t.Fatalf("from %s to %s, want from the first message to the last, %s", thread.StartedAt, thread.LastMessageAt, listed)
	}
	if graded := thread.Evaluations != nil; graded && thread.AnchorMessageID == "" {
		t.Fatalf("graded without an anchor")
	}
	if thread.Claim != nil || thread.Attempt != nil || thread.Token != "" || len(thread.Unanswered)+len(thread.Unmarked) > 0 {
		t.Fatalf("it is completed with something under way: %+v", thread)
	}
}

// optOut opts the customer out without a word in their open conversation.
func (w *world) optOut() {
	_, err := w.db.UpdateItem(w.ctx, &dynamodb.UpdateItemInput{
		TableName:                 &w.names.WorkspacesTable,
		Key:                       map[string]types.AttributeValue{dynamo.PartitionKey: &types.AttributeValueMemberS{Value: string(w.workspace) + "#customer#" + customer + "99"}},
		UpdateExpression:          aws.String("SET sms_opted_out = :true"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":true": &types.AttributeValueMemberBOOL{Value: true}},
	})
	if err != nil {
		panic(err)
	}
}

// deliverReceipts delivers the line's receipts.
func (w *world) deliverReceipts(t fatal) {
	t.Helper()
	for {
		receipt, ok := w.line.takeReceipt()
		if !ok {
			return
		}
		if status := w.postText(t, receipt); status != 200 {
			t.Fatalf("receipt: status %d", status)
		}
	}
}

// failReceipt reports that the conversation's follow-up failed.
func (w *world) failReceipt(t fatal, threadID conversation.ThreadID) {
	t.Helper()
	if status := w.postText(t, carrier.MessageCallback{
		Event: carrier.EventReceipt, CarrierID: "it failed", At: w.now(), Status: carrier.ReceiptFailed,
		MessageID: w.readThread(t, threadID).Attempt.MessageID,
	}); status != 200 {
		t.Fatalf("receipt: status %d", status)
	}
}

// The agent is asked three times for each part; a part that fails at last is left out, and
// of evaluations that fails the grading.
func TestGradingTries(t *testing.T) {
	stage := newStage(t)
	for name, tt := range map[string]struct {
		part   string
		fails  int // times
		says   string
		reason conversation.CloseReason
		there  bool // the analysis
	}{
		"evaluations, twice":      {"evaluate", 2, "Answered Polite", "graded", true},
		"evaluations, for ever":   {"evaluate", 9, "Answered Polite", "grading_failed", true},
		"analysis, twice":         {"analyse", 2, "Answered Polite", "graded", true},
		"analysis, for ever":      {"analyse", 9, "Answered Polite", "graded", false},
		"the follow-up, twice":    {"follow-up", 2, "Hello", "no_reply_after_follow_up", true},
		"the follow-up, for ever": {"follow-up", 9, "Hello", "follow_up_failed", true},
	} {
		t.Run(name, func(t *testing.T) {
			w, a := stage.newExamined(t, nil)
			fails := func() error {
				if a.asked[tt.part] <= tt.fails {
					return errBroken
				}
				return nil
			}
			*map[string]*func() error{"evaluate": &a.evaluate, "analyse": &a.analyse, "follow-up": &a.followUp}[tt.part] = fails
			threadID := w.says(t, tt.says)
			w.toItsEnd(t, threadID)
			got := w.readThread(t, threadID)
			if got.CloseReason != tt.reason || a.asked[tt.part] != 3 || (got.Analysis != nil) != tt.there {
				t.Errorf("%s, asked %d times, analysis %v; want %s, 3, %t", got.CloseReason, a.asked[tt.part], got.Analysis, tt.reason, tt.there)
			}
		})
	}
}

// Somebody writes again and again: the conversation waits each time until it is quiet.
func TestThreadWaitsForQuiet(t *testing.T) {
	w, _ := newStage(t).newExamined(t, nil)
	threadID := w.says(t, "Answered")
	for range 3 {
		w.pass(29 * time.Minute)
		w.says(t, "Polite")
		if step := w.advance(t, threadID); step.Next != lifecycle.StepWait || step.Seconds < 29*60 {
			t.Fatalf("after a message: %+v, want to wait", step)
		}
	}
	if steps := w.toItsEnd(t, threadID); steps != "wait done" || w.readThread(t, threadID).MessageCount != 8 {
		t.Errorf("%s with %d messages, want it done with 8", steps, w.readThread(t, threadID).MessageCount)
	}
}

// A turn that has died is ended by the look: its reply counts as sent, its messages have
// their events. One that may be alive is waited for.
func TestDeadTurn(t *testing.T) {
	stage := newStage(t)
	for name, tt := range map[string]struct {
		scale   lifecycle.Scale
		claim   bool
		died    time.Duration // then it has
		pause   int
		replied bool
	}{
		"nobody was at it":             {1, false, 5 * time.Minute, 30, false},
		"claimed":                      {1, true, 5 * time.Minute, 30, true},
		"claimed, on a scaled stage":   {60, true, 100 * time.Second, 1, true},
		"nobody was at it, and scaled": {60, false, 100 * time.Second, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := stage.newExamined(t, nil)
			w.calls.Scale = tt.scale
			report := w.message("Answered Polite")
			if status := w.postText(t, report); status != 200 { // its queue item is lost
				t.Fatalf("status %d", status)
			}
			m := w.byCarrierID(t, report.CarrierID)
			if tt.claim {
				thread := w.readThread(t, m.ThreadID)
				thread.Claim = &conversation.Claim{Messages: []conversation.MessageID{m.MessageID}, ReplyID: conversation.MessageID(conversation.NewID()), Text: "Hi.", At: conversation.At(w.now())}
				if err := w.store.WriteThread(w.ctx, dynamo.ThreadWrite{Thread: thread, Until: w.now()}); err != nil {
					t.Fatal(err)
				}
			}
			w.pass(tt.died - time.Millisecond)
			if step := w.advance(t, m.ThreadID); step != (lifecycle.Step{Next: lifecycle.StepWait, Seconds: tt.pause}) {
				t.Fatalf("while it may be alive: %+v, want to wait %d s", step, tt.pause)
			}
			w.pass(time.Millisecond)
			step := w.advance(t, m.ThreadID)
			thread := w.readThread(t, m.ThreadID)
			if tt.scale == 1 && step.Next != lifecycle.StepWait || thread.Claim != nil || len(thread.Unanswered)+len(thread.Unmarked) > 0 {
				t.Fatalf("when it has died: %+v, %+v; want it settled, and to wait", step, thread)
			}
			m = w.readMessage(t, m.MessageID)
			if m.MarkedAt != conversation.At(w.now()) || (m.Reply != nil) != tt.replied || tt.replied && (m.Reply.Content != "Hi." || m.Reply.ProviderMessageID != "") {
				t.Errorf("marked at %s, reply %+v; want now, %t", m.MarkedAt, m.Reply, tt.replied)
			}
			if len(w.sent()) != 0 {
				t.Errorf("sent %v, want nothing", w.sent())
			}
			w.toItsEnd(t, m.ThreadID)
			got := w.readThread(t, m.ThreadID)
			if want := map[bool]int{false: 1, true: 2}[tt.replied]; got.CloseReason != conversation.Graded || got.MessageCount != want {
				t.Errorf("%s with %d messages, want graded, %d", got.CloseReason, got.MessageCount, want)
			}
			w.checkThread(t, got)
		})
	}
}

// A customer who writes hundreds of messages while every turn dies: they all get their marks.
func TestManyDeadTurns(t *testing.T) {
	w, _ := newStage(t).newExamined(t, nil)
	var threadID conversation.ThreadID
	for range 120 {
		if status := w.postText(t, w.message("Answered Polite")); status != 200 {
			t.Fatalf("status %d", status)
		}
	}
	threadID = w.allThreads(t)[0].ThreadID
	w.pass(31 * time.Minute)
	if step := w.advance(t, threadID); step.Next != lifecycle.StepDone {
		t.Fatalf("%+v, want done", step)
	}
	got := w.readThread(t, threadID)
	if got.MessageCount != 120 {
		t.Errorf("%d messages, want 120", got.MessageCount)
	}
	w.checkThread(t, got)
}

// STOP ends the conversation at the next look; START undoes it; what was sent late loses.
func TestOptOutAndIn(t *testing.T) {
	w, _ := newStage(t).newExamined(t, nil)
	threadID := w.says(t, "Hello", "STOP", "START")
	if step := w.advance(t, threadID); step.Next != lifecycle.StepWait {
		t.Errorf("opted in again: %+v, want to wait until it is quiet", step)
	}
	w.says(t, "stop")
	if step := w.advance(t, threadID); step.Next != lifecycle.StepDone || w.readThread(t, threadID).CloseReason != conversation.CustomerOptedOut {
		t.Errorf("opted out: %+v, %s; want done at once", step, w.readThread(t, threadID).CloseReason)
	}
	// What they write after that is stored, and its conversation closes at once as well.
	next := w.says(t, "Hello?")
	if step := w.advance(t, next); next == threadID || step.Next != lifecycle.StepDone || w.readThread(t, next).CloseReason != conversation.CustomerOptedOut {
		t.Errorf("after the opt-out: %+v, %s; want another thread, done at once", step, w.readThread(t, next).CloseReason)
	}
}

// The index that shows a thread's messages lags: nothing completes without all of them, and
// what lags for long is an error.
func TestLaggingIndex(t *testing.T) {
	w, _ := newStage(t).newExamined(t, nil)
	threadID := w.says(t, "Answered Polite")
	thread := w.readThread(t, threadID)
	thread.MessageCount++
	if err := w.store.WriteThread(w.ctx, dynamo.ThreadWrite{Thread: thread, Until: w.now()}); err != nil {
		t.Fatal(err)
	}
	w.pass(30 * time.Minute)
	if step := w.advance(t, threadID); step != (lifecycle.Step{Next: lifecycle.StepWait, Seconds: 5}) {
		t.Errorf("one message is missing: %+v, want to wait 5 s", step)
	}
	w.pass(10 * time.Minute)
	if step, err := w.look().Advance(w.ctx, w.workspace, threadID); err == nil || !w.readThread(t, threadID).Open() {
		t.Errorf("for ten minutes: %+v, want an error, and the thread open", step)
	}
	thread = w.readThread(t, threadID)
	thread.MessageCount--
	if err := w.store.WriteThread(w.ctx, dynamo.ThreadWrite{Thread: thread, Until: w.now()}); err != nil {
		t.Fatal(err)
	}
	if step := w.advance(t, threadID); step.Next != lifecycle.StepDone {
		t.Errorf("when it is there: %+v, want done", step)
	}
}

// A test's conversation goes the same way, and is in no list.
func TestTestThread(t *testing.T) {
	w, _ := newStage(t).newExamined(t, nil)
	report := w.message("Hello")
	report.Test = true
	m := w.writes(t, report)
	w.elapse(t, 30*time.Second)
	if steps := w.toItsEnd(t, m.ThreadID); steps != "wait answer done" {
		t.Errorf("%s, want a follow-up", steps)
	}
	got := w.readThread(t, m.ThreadID)
	if got.CloseReason != conversation.NoReplyAfterFollowUp || got.MessageCount != 3 {
		t.Errorf("%s, %d messages; want no reply, 3", got.CloseReason, got.MessageCount)
	}
	w.checkThread(t, got)
	for _, m := range w.messages(t) {
		if m.Source != conversation.SourceTest {
			t.Errorf("message %q has source %s, want test", m.Content, m.Source)
		}
	}
	if it := w.threadItem(t, m.ThreadID); it["workspace_list"] != nil || it["open_shard"] != nil {
		t.Errorf("got a test's thread in a list: %v", it)
	}
}

// A thread that is gone is done.
func TestAdvanceUnknownThread(t *testing.T) {
	w, _ := newStage(t).newExamined(t, nil)
	if step := w.advance(t, "nobody"); step != (lifecycle.Step{Next: lifecycle.StepDone}) {
		t.Errorf("Advance = %+v, want done", step)
	}
}

// A message of the very second in which the conversation completes joins it or opens
// another, never neither, and a completed thread never gains one, however many look at once.
func TestMessageInTheSecondOfCompletion(t *testing.T) {
	w, _ := newStage(t).newExamined(t, nil)
	w.calls.Wait = func(_ context.Context, d time.Duration) error { time.Sleep(min(d, 5*time.Millisecond)); return nil }
	w.calls.Agent = agent.For // an examiner isn't for many at once
	outcomes := map[bool]int{}
	for range 40 {
		report := w.message("Hello")
		if status := w.postText(t, report); status != 200 {
			t.Fatalf("status %d", status)
		}
		threadID := w.byCarrierID(t, report.CarrierID).ThreadID
		w.pass(time.Hour)

		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if _, err := w.look().Advance(w.ctx, w.workspace, threadID); err != nil {
					t.Errorf("Advance = %v", err)
				}
			})
		}
		reports := []carrier.MessageCallback{w.message("wait"), w.message("and another")}
		for _, report := range reports {
			all.Go(func() {
				time.Sleep(rand.N(30 * time.Millisecond))
				if status := w.postText(t, report); status != 200 {
					t.Errorf("status %d, want 200", status)
				}
			})
		}
		all.Wait()
		counts := map[conversation.ThreadID]int{}
		for _, m := range w.messages(t) {
			counts[m.ThreadID]++
		}
		open := 0
		for _, thread := range w.allThreads(t) {
			if thread.MessageCount != counts[thread.ThreadID] {
				t.Fatalf("thread %s counts %d messages, and has %d", thread.ThreadID, thread.MessageCount, counts[thread.ThreadID])
			}
			if thread.Open() {
				open++
				if string(thread.ThreadID) != w.pointer(t) {
					t.Fatalf("the pointer doesn't name the open thread")
				}
			}
		}
		if open > 1 {
			t.Fatalf("%d open threads, want one at most", open)
		}
		for _, report := range reports {
			outcomes[w.byCarrierID(t, report.CarrierID).ThreadID == threadID]++
		}
		if p := w.pointer(t); p != "" {
			w.pass(time.Hour)
			w.advance(t, conversation.ThreadID(p))
		}
	}
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Errorf("%d messages joined, %d opened another conversation; want some of each", outcomes[true], outcomes[false])
	}
	if n := len(w.messages(t)); n != 120 {
		t.Errorf("%d messages are stored, want all 120", n)
	}
}

// A text of a call whose sending has died is waited for as long as it may be on its way, and
// counts as sent when the conversation completes.
func TestUnsentText(t *testing.T) {
	w, _ := newStage(t).newExamined(t, nil)
	w.define(t, func(d *dynamo.Definition) { d.Workspace.InactivitySeconds = 60 })
	threadID := w.says(t, "Answered Polite")
	thread := w.readThread(t, threadID)
	now := conversation.At(w.now())
	text := conversation.MessageRecord{
		Message: conversation.Message{
			MessageID: conversation.MessageID(conversation.NewID()), AssistantID: w.assistant, Channel: conversation.SMS,
			Direction: conversation.Outbound, Source: conversation.SourceVoiceTool, OccurredAt: now, Content: "The address.",
		},
		Carrier: w.carrier, Number: ours, Address: customer + "99", ArrivedAt: now,
	}
	thread.MessageCount++ // it is listed, and the conversation is quiet all the same
	if err := w.store.WriteThread(w.ctx, dynamo.ThreadWrite{Thread: thread, Until: w.now(), New: []conversation.MessageRecord{text}}); err != nil {
		t.Fatal(err)
	}
	w.pass(50 * time.Second)
	if step := w.advance(t, threadID); step != (lifecycle.Step{Next: lifecycle.StepWait, Seconds: 10}) {
		t.Fatalf("while it may be on its way: %+v, want to wait 10 s", step)
	}
	w.pass(10 * time.Second)
	if step := w.advance(t, threadID); step.Next != lifecycle.StepDone || w.readMessage(t, text.MessageID).SentAt != conversation.At(w.now()) {
		t.Errorf("%+v, sent at %s; want done, and sent now", step, w.readMessage(t, text.MessageID).SentAt)
	}
	w.checkThread(t, w.readThread(t, threadID))
}
