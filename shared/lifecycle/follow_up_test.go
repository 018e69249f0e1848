package lifecycle_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"parley/shared/agent"
	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/lifecycle"
)

// An answer extends the conversation, which is graded again: what failed before the
// follow-up and passes now has recovered.
func TestFollowUpAnswered(t *testing.T) {
	stage := newStage(t)
	for name, tt := range map[string]struct {
		answer, results string
	}{
		"and it is repaired": {"Answered", "Answered pass after fail, recovered; Polite fail after fail; Vague unknown after unknown"},
		"and it isn't":       {"No.", "Answered fail after fail; Polite fail after fail; Vague unknown after unknown"},
		"and more than that": {"Answered, Polite", "Answered pass after fail, recovered; Polite pass after fail, recovered; Vague unknown after unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			w, a := stage.newExamined(t, nil)
			threadID := w.says(t, "Hello")
			graded := w.messages(t)[1].MessageID
			w.pass(30 * time.Minute)
			if step := w.advance(t, threadID); step != (lifecycle.Step{Next: lifecycle.StepAnswer, Seconds: 24 * 60 * 60}) {
				t.Fatalf("%+v, want to wait a day for the answer", step)
			}
			open := w.readThread(t, threadID)
			followUp := w.messages(t)[2]
			if open.MessageCount != 3 || open.AnchorMessageID != graded || open.Attempt.Status != conversation.FollowUpSent || followUp.Source != conversation.SourceEvaluationFollowUp ||
				followUp.SentAt != conversation.At(w.now()) || followUp.ProviderMessageID == "" || followUp.MessageID != open.Attempt.MessageID {
				t.Errorf("thread %+v, follow-up %+v; want it sent, and listed", open, followUp)
			}
			if _, err := w.store.Thread(w.ctx, w.workspace, threadID, nil); err == nil {
				t.Error("the open thread can be read")
			}
			w.pass(3 * time.Hour)
			if step := w.advance(t, threadID); step.Next != lifecycle.StepAnswer || step.Seconds != 21*60*60 {
				t.Errorf("in between: %+v, want to wait the rest of the day", step)
			}
			w.says(t, tt.answer)
			if steps := w.toItsEnd(t, threadID); steps != "wait done" {
				t.Errorf("after the answer: %s, want to wait until it is quiet", steps)
			}
			got := w.readThread(t, threadID)
			messages := w.messages(t)
			if got.CloseReason != conversation.Graded || results(got.Evaluations) != tt.results || got.AnchorMessageID != messages[len(messages)-1].MessageID || a.asked["evaluate"] != 2 {
				t.Errorf("%s, %s, anchor %s; want graded, %s, the last message", got.CloseReason, results(got.Evaluations), got.AnchorMessageID, tt.results)
			}
			if len(got.FollowUps) != 1 || got.FollowUps[0].Status != conversation.FollowUpSent || got.FollowUps[0].SentAt != followUp.SentAt || a.asked["follow-up"] != 1 {
				t.Errorf("follow-ups %+v, want the one that was sent", got.FollowUps)
			}
			w.checkThread(t, got)
		})
	}
}

// Without an answer nothing is graded again, and the anchor stays.
func TestFollowUpUnanswered(t *testing.T) {
	w, a := newStage(t).newExamined(t, nil)
	threadID := w.says(t, "Hello")
	graded := w.messages(t)[1].MessageID
	w.toItsEnd(t, threadID)
	got := w.readThread(t, threadID)
	if got.AnchorMessageID != graded || a.asked["evaluate"] != 1 || got.MessageCount != 3 || got.LastMessageAt != w.messages(t)[2].OccurredAt {
		t.Errorf("anchor %s, evaluated %d times, %d messages, the last at %s; want the reply, once, 3, the follow-up", got.AnchorMessageID, a.asked["evaluate"], got.MessageCount, got.LastMessageAt)
	}
}

// A customer gets one follow-up a day, and a workspace sends no more than its cap.
func TestFollowUpCaps(t *testing.T) {
	w, _ := newStage(t).newExamined(t, nil)
	w.define(t, func(d *dynamo.Definition) { d.Workspace.FollowUps.DailyCap = 2 })
	reason := func(digits string) conversation.CloseReason {
		report := w.message("Hello")
		report.From = customer + digits
		m := w.writes(t, report)
		w.elapse(t, 30*time.Second)
		w.pass(30 * time.Minute)
		w.advance(t, m.ThreadID)
		thread := w.readThread(t, m.ThreadID)
		if thread.Open() { // end it for the next
			report.Content, report.CarrierID, report.At = "Answered Polite", conversation.NewID(), w.now()
			w.writes(t, report)
			w.elapse(t, 30*time.Second)
			w.pass(30 * time.Minute)
			w.advance(t, m.ThreadID)
			if thread = w.readThread(t, m.ThreadID); len(thread.FollowUps) != 1 {
				t.Errorf("follow-ups %v, want one", thread.FollowUps)
			}
		} else if len(thread.FollowUps) != 1 || thread.FollowUps[0].Status != conversation.FollowUpSkipped || thread.Evaluations != nil {
			t.Errorf("follow-ups %v, evaluations %v; want one that was skipped, none", thread.FollowUps, thread.Evaluations)
		}
		return thread.CloseReason
	}
	for i, tt := range []struct {
		digits string
		want   conversation.CloseReason
	}{
		{"98", "graded"}, {"98", "follow_up_daily_cap"}, {"97", "graded"}, {"96", "follow_up_daily_cap"},
	} {
		if got := reason(tt.digits); got != tt.want {
			t.Errorf("%d, to %s: %s, want %s", i, tt.digits, got, tt.want)
		}
	}
	w.pass(24 * time.Hour)
	if got := reason("98"); got != "graded" {
		t.Errorf("on the next day: %s, want graded", got)
	}
}

// crasher ends a function at one of its calls of DynamoDB, before or after that has its
// effect: nothing that it does then has any.
type crasher struct {
	aws.HTTPClient

	mu    sync.Mutex
	left  int // until the crash; 0: none comes
	after bool
	crash context.CancelFunc
}

func (c *crasher) Do(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	now := c.left == 1
	if c.left > 0 {
		c.left--
	}
	c.mu.Unlock()
	if !now {
		return c.HTTPClient.Do(r)
	}
	if c.after {
		if response, err := c.HTTPClient.Do(r); err == nil {
			response.Body.Close()
		}
	}
	c.crash()
	return nil, context.Canceled
}

// crashing makes worlds whose store crashes when the crasher says so.
func (s stage) crashing(t testing.TB) (*world, *crasher) {
	t.Helper()
	c := &crasher{HTTPClient: s.cfg.HTTPClient}
	cfg := s.cfg
	cfg.HTTPClient = c
	w, _ := s.newExamined(t, dynamo.New(cfg, s.names))
	return w, c
}

// run does something that crashes at its nth call, and tells whether it came so far.
func (c *crasher) run(ctx context.Context, n int, after bool, do func(context.Context) error) bool {
	ctx, c.crash = context.WithCancel(ctx)
	defer c.crash()
	c.mu.Lock()
	c.left, c.after = n, after
	c.mu.Unlock()
	_ = do(ctx) // a crash is no answer
	c.mu.Lock()
	defer c.mu.Unlock()
	crashed := c.left == 0
	c.left = 0
	return crashed
}

// followUpTexts is how often the line was asked to send a follow-up.
func (w *world) followUpTexts() int {
	n := 0
	for _, content := range w.sent() {
		if content == "What can we still do?" {
			n++
		}
	}
	return n
}

// Wherever the look crashes, the conversation completes with a reason that is true, and its
// follow-up is sent once at most, as the day's count says.
func TestFollowUpCrashes(t *testing.T) {
	stage := newStage(t)
	for _, does := range []fate{textSent, textRefused, textMute} {
		for _, after := range []bool{false, true} {
			reasons := map[conversation.CloseReason]int{}
			for n := 1; ; n++ {
				name := fmt.Sprintf("%s, call %d, after %t", does, n, after)
				w, c := stage.crashing(t)
				threadID := w.says(t, "Hello")
				w.line.fate = func(carrier.Text) fate { return does }
				w.pass(30 * time.Minute)
				crashed := c.run(w.ctx, n, after, func(ctx context.Context) error {
					_, err := w.look().Advance(ctx, w.workspace, threadID)
					return err
				})
				steps := w.toItsEnd(t, threadID)
				got := w.readThread(t, threadID)
				w.checkThread(t, got)
				texts, counted := w.followUpTexts(), w.followUpsToday(t)
				reasons[got.CloseReason]++
				if texts > 1 || counted != "1" {
					t.Fatalf("%s: %d follow-ups were sent, and %s counted; want one at most, 1 (%s)", name, texts, counted, steps)
				}
				want := map[fate]conversation.CloseReason{textSent: "no_reply_after_follow_up", textRefused: "follow_up_failed", textMute: "follow_up_send_ambiguous"}[does]
				if got.CloseReason != want && got.CloseReason != conversation.FollowUpSendAmbiguous {
					t.Fatalf("%s: %s after %s, want %s, or that nobody knows", name, got.CloseReason, steps, want)
				}
				listed := map[conversation.FollowUpStatus]int{conversation.FollowUpFailed: 2}[got.FollowUps[0].Status]
				if listed == 0 {
					listed = 3
				}
				if got.MessageCount != listed {
					t.Fatalf("%s: %d messages with a follow-up that is %s, want %d", name, got.MessageCount, got.FollowUps[0].Status, listed)
				}
				if !crashed {
					break
				}
			}
			if reasons[conversation.FollowUpSendAmbiguous] == 0 {
				t.Errorf("%s: %v, want a crash after the claim to leave it ambiguous", does, reasons)
			}
		}
	}
}

// followUpsToday is how many the workspace has counted.
func (w *world) followUpsToday(t fatal) string {
	t.Helper()
	return numberOf(w.item(t, w.names.CountersTable, "follow_ups", "2030-05-06"), "sent")
}

// Two looks at once send one follow-up.
func TestFollowUpRace(t *testing.T) {
	w, _ := newStage(t).newExamined(t, nil)
	for range 10 {
		threadID := w.says(t, "Hello, it did not answer my question")
		w.pass(30 * time.Minute)
		looks := w.look()
		looks.Agent = agent.For // an examiner isn't for many at once
		looks.Wait = func(context.Context, time.Duration) error { time.Sleep(time.Millisecond); return nil }
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if _, err := looks.Advance(w.ctx, w.workspace, threadID); err != nil {
					t.Errorf("Advance = %v", err)
				}
			})
		}
		all.Wait()
		thread := w.readThread(t, threadID)
		if asked := w.asked(thread.Attempt.MessageID); asked != 1 || thread.MessageCount != 3 {
			t.Fatalf("the carrier was asked %d times, %d messages; want once, 3", asked, thread.MessageCount)
		}
		w.says(t, "That is great.")
		w.pass(24 * time.Hour)
		if _, err := looks.Advance(w.ctx, w.workspace, threadID); err != nil || w.readThread(t, threadID).CloseReason != conversation.Graded {
			t.Fatalf("Advance = %v, %s", err, w.readThread(t, threadID).CloseReason)
		}
	}
}

// asked is how often the line was asked to send a text.
func (w *world) asked(messageID conversation.MessageID) int {
	w.line.mu.Lock()
	defer w.line.mu.Unlock()
	if text := w.line.find(messageID); text != nil {
		return text.asked
	}
	return 0
}

// followedUpCall brings a call to its end, which fails what a follow-up may repair, and does
// all that is due for it.
func (w *world) followedUpCall(t fatal) conversation.CallRecord {
	t.Helper()
	ph := w.bring(t, hungUp)
	if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err != nil {
		t.Fatalf("Advance = %v", err)
	}
	return w.read(t, ph.CallID).CallRecord
}

func statusOf(call conversation.CallRecord) string {
	var all []string
	for _, f := range call.FollowUps {
		all = append(all, string(f.Status)+" by "+string(f.Channel))
	}
	return strings.Join(all, ", ")
}

// A call's follow-up opens a conversation, or joins the customer's; what that makes of the
// evaluations is written to the call. The call is completed once, charged once.
func TestCallFollowUp(t *testing.T) {
	stage := newStage(t)
	const (
		failed    = "Answered fail; Polite fail; Vague unknown"
		unchanged = "Answered fail after fail; Polite fail after fail; Vague unknown after unknown"
	)
	for name, tt := range map[string]struct {
		first   string // what the customer writes before the call
		answer  string
		reason  conversation.CloseReason
		count   int
		results string // of the call
		thread  string // its evaluations
	}{
		"nobody answers": {"", "", "no_reply_after_follow_up", 1, unchanged, failed},
		"an answer repairs it": {"", "Answered", "graded", 3,
			"Answered pass after fail, recovered; Polite fail after fail; Vague unknown after unknown", "Answered pass; Polite fail; Vague unknown"},
		"an answer doesn't":                  {"", "Polite", "graded", 3, unchanged, "Answered fail; Polite pass; Vague unknown"},
		"the customer opts out":              {"", "STOP", "customer_opted_out", 2, unchanged, "Answered fail; Polite fail"},
		"it joins, and nobody answers":       {"Answered", "", "no_reply_after_follow_up", 3, unchanged, "Answered pass; Polite fail; Vague unknown"},
		"it joins, and an answer repairs it": {"Polite", "Answered", "graded", 5, "Answered pass after fail, recovered; Polite fail after fail; Vague unknown after unknown", "Answered pass; Polite pass; Vague unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := stage.newExamined(t, nil)
			var threadID conversation.ThreadID
			if tt.first != "" {
				threadID = w.says(t, tt.first)
			}
			call := w.followedUpCall(t)
			if statusOf(call) != "sent by sms" || results(call.Evaluations) != failed || call.FollowUps[0].SentAt != conversation.At(w.now()) || w.followUpTexts() != 1 {
				t.Fatalf("follow-ups %+v, evaluations %s, %d texts; want it sent", call.FollowUps, results(call.Evaluations), w.followUpTexts())
			}
			if it := w.callItem(t, call.CallID); it["open_shard"] != nil || it["open_until"] != nil {
				t.Error("the sweep still sees the call")
			}
			open := w.readThread(t, conversation.ThreadID(w.pointer(t)))
			if threadID != "" && open.ThreadID != threadID || !slices.Equal(open.FollowedUp, []conversation.CallID{call.CallID}) || open.Attempt.Status != conversation.FollowUpSent {
				t.Fatalf("thread %+v, want the call's follow-up in it", open)
			}
			m := w.readMessage(t, open.Attempt.MessageID)
			if m.CallID != call.CallID || m.Source != conversation.SourceEvaluationFollowUp || m.SentAt.IsZero() || m.ProviderMessageID == "" {
				t.Errorf("message %+v, want the call's, sent", m)
			}
			if step := w.advance(t, open.ThreadID); step.Next != lifecycle.StepAnswer {
				t.Errorf("%+v, want to wait for the answer", step)
			}
			w.pass(time.Hour)
			if tt.answer != "" {
				w.says(t, tt.answer)
			}
			w.toItsEnd(t, open.ThreadID)
			thread := w.readThread(t, open.ThreadID)
			if thread.CloseReason != tt.reason || thread.MessageCount != tt.count || results(thread.Evaluations) != tt.thread {
				t.Errorf("thread %s, %d messages, %s; want %s, %d, %s", thread.CloseReason, thread.MessageCount, results(thread.Evaluations), tt.reason, tt.count, tt.thread)
			}
			w.checkThread(t, thread)
			got := w.read(t, call.CallID)
			if results(got.Evaluations) != tt.results || statusOf(got.CallRecord) != "sent by sms" {
				t.Errorf("call %s, %s; want %s, sent", results(got.Evaluations), statusOf(got.CallRecord), tt.results)
			}
			if got.CompletedAt != call.CompletedAt || got.Status != conversation.CallEnded || w.balance(t) != "25.38" || w.slots(t) != "0" || len(got.Transcript) != len(call.Transcript) {
				t.Errorf("%s, completed at %s, balance %s, %s active calls; want what it was", got.Status, got.CompletedAt, w.balance(t), w.slots(t))
			}
		})
	}
}

// Why a call's follow-up isn't sent, or doesn't arrive.
func TestCallFollowUpOutcomes(t *testing.T) {
	stage := newStage(t)
	for name, tt := range map[string]struct {
		define func(*dynamo.Definition)
		before func(*testing.T, *world)
		agent  func(*examiner)
		fate   fate
		after  func(*testing.T, *world)
		want   string
		texts  int
	}{
		"follow-ups off":     {define: func(d *dynamo.Definition) { d.Workspace.FollowUps.Enabled = false }},
		"nothing to recover": {define: func(d *dynamo.Definition) { d.Assistants[0].Criteria = d.Assistants[0].Criteria[1:] }},
		"no model":           {define: func(d *dynamo.Definition) { d.Workspace.FollowUps.Model = "" }, want: "skipped by sms"},
		"quiet hours": {define: func(d *dynamo.Definition) {
			d.Workspace.QuietHours = conversation.QuietHours{From: "16:00", To: "17:00"}
		}, want: "skipped by sms"},
		"the day's cap": {define: func(d *dynamo.Definition) { d.Workspace.FollowUps.DailyCap = 0 }, want: "skipped by sms"},
		"the customer's cap": {before: func(t *testing.T, w *world) {
			w.followedUpCall(t)
			w.line.texts = nil
		}, want: "skipped by sms"},
		"opted out":                 {before: func(t *testing.T, w *world) { w.says(t, "STOP") }, want: "skipped by sms"},
		"it can't be written":       {agent: func(a *examiner) { a.followUp = func() error { return errBroken } }, want: "failed by sms"},
		"a number that is nobody's": {define: func(d *dynamo.Definition) { d.Workspace.FollowUps.Number = "+12025550159" }, want: "failed by sms"},
		"refused":                   {fate: textRefused, want: "failed by sms", texts: 1},
		"no answer":                 {fate: textLost, want: "ambiguous by sms", texts: 1},
		"no answer, but a receipt":  {fate: textMute, after: func(t *testing.T, w *world) { w.deliverReceipts(t) }, want: "delivered by sms", texts: 1},
		"delivered":                 {after: func(t *testing.T, w *world) { w.deliverReceipts(t) }, want: "delivered by sms", texts: 1},
		"failed in the end": {after: func(t *testing.T, w *world) {
			w.failReceipt(t, conversation.ThreadID(w.pointer(t)))
		}, want: "failed by sms", texts: 1},
		"by WhatsApp": {define: func(d *dynamo.Definition) { d.Workspace.FollowUps.Channel = conversation.WhatsApp }, want: "sent by whatsapp", texts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w, a := stage.newExamined(t, nil)
			if tt.define != nil {
				w.define(t, tt.define)
			}
			if tt.before != nil {
				tt.before(t, w)
			}
			if tt.agent != nil {
				tt.agent(a)
			}
			w.line.fate = func(carrier.Text) fate { return tt.fate }
			call := w.followedUpCall(t)
			completed := call.CompletedAt
			if tt.after != nil {
				tt.after(t, w)
			}
			call = w.read(t, call.CallID).CallRecord
			if statusOf(call) != tt.want || w.followUpTexts() != tt.texts || call.CompletedAt != completed {
				t.Errorf("%q, %d texts; want %q, %d", statusOf(call), w.followUpTexts(), tt.want, tt.texts)
			}
			if it := w.callItem(t, call.CallID); it["open_shard"] != nil {
				t.Error("the sweep still sees the call")
			}
			for _, thread := range w.allThreads(t) {
				if thread.Open() && thread.Channel == conversation.SMS {
					w.toItsEnd(t, thread.ThreadID)
					w.checkThread(t, w.readThread(t, thread.ThreadID))
				}
			}
			if name == "refused" {
				if threads := w.allThreads(t); len(threads) != 1 || threads[0].CloseReason != conversation.FollowUpFailedReason || threads[0].MessageCount != 0 {
					t.Errorf("threads %+v, want one without a message, follow_up_failed", threads)
				}
				if got := results(w.read(t, call.CallID).Evaluations); strings.Contains(got, "after") {
					t.Errorf("evaluations %s, want them as they were: nothing was sent", got)
				}
			}
		})
	}
}

// A customer whose number the assistant doesn't know gets none.
func TestCallFollowUpWithoutPhone(t *testing.T) {
	w, _ := newStage(t).newExamined(t, nil)
	call := w.newCall(customer + "99")
	ph := w.bringCall(t, hungUp, call)
	stored := w.read(t, ph.CallID)
	w.bringHome(t)
	if err := w.store.CompleteCall(w.ctx, w.read(t, stored.CallID), dynamo.Completion{
		At: conversation.At(w.now()), Customer: &conversation.Customer{Name: "Ada"}, Until: w.now(),
		FollowUps: []conversation.FollowUp{{Status: conversation.FollowUpPending, Channel: conversation.SMS}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err != nil {
		t.Fatal(err)
	}
	if got := w.read(t, ph.CallID).CallRecord; statusOf(got) != "skipped by sms" || len(w.allThreads(t)) != 0 {
		t.Errorf("%s, want skipped", statusOf(got))
	}
}

// Wherever a call's last task crashes, the call is completed and charged once, and its
// follow-up is sent once at most, and resolved.
func TestCallFollowUpCrashes(t *testing.T) {
	stage := newStage(t)
	for _, does := range []fate{textSent, textRefused, textMute} {
		for _, after := range []bool{false, true} {
			for n := 1; ; n++ {
				name := fmt.Sprintf("%s, call %d, after %t", does, n, after)
				w, c := stage.crashing(t)
				ph := w.bring(t, hungUp)
				w.line.fate = func(carrier.Text) fate { return does }
				crashed := c.run(w.ctx, n, after, func(ctx context.Context) error { return w.calls.Advance(ctx, w.workspace, ph.CallID) })
				first := w.read(t, ph.CallID).CompletedAt
				for range 10 { // as the state machine, and then the sweep
					if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err == nil {
						break
					}
					w.pass(time.Minute)
				}
				call := w.read(t, ph.CallID)
				want := map[fate]string{textSent: "sent by sms", textRefused: "failed by sms", textMute: "ambiguous by sms"}[does]
				if got := statusOf(call.CallRecord); got != want && got != "ambiguous by sms" || w.followUpTexts() > 1 || w.followUpsToday(t) != "1" {
					t.Fatalf("%s: %s, %d texts, %s counted; want %s, or that nobody knows, once", name, got, w.followUpTexts(), w.followUpsToday(t), want)
				}
				if !first.IsZero() && call.CompletedAt != first || call.CompletedAt.IsZero() || w.balance(t) != "25.38" || w.slots(t) != "0" || w.callItem(t, ph.CallID)["open_shard"] != nil {
					t.Fatalf("%s: completed at %s, then %s, balance %s, %s active calls; want once, and out of the sweep's sight", name, first, call.CompletedAt, w.balance(t), w.slots(t))
				}
				threads := w.allThreads(t)
				if len(threads) != 1 {
					t.Fatalf("%s: %d threads, want one", name, len(threads))
				}
				w.toItsEnd(t, threads[0].ThreadID)
				thread := w.readThread(t, threads[0].ThreadID)
				w.checkThread(t, thread)
				if listed := len(w.messages(t)); listed != 1 && statusOf(call.CallRecord) != "failed by sms" {
					t.Fatalf("%s: %d messages, want one", name, listed)
				}
				if !crashed {
					break
				}
			}
		}
	}
}

// A call's follow-up that was refused is no message of the conversation, although that has a
// follow-up of its own, and who sent the call's has died. One that the carrier has taken, and
// that failed at once, is one.
func TestFailedCallFollowUpCrashes(t *testing.T) {
	stage := newStage(t)
	t.Run("refused", func(t *testing.T) {
		stage.failsCallFollowUps(t, 3, func(w *world) { w.line.fate = func(carrier.Text) fate { return textRefused } })
	})
	t.Run("taken", func(t *testing.T) {
		stage.failsCallFollowUps(t, 4, func(w *world) {
			w.line.received = func(_ context.Context, text carrier.Text) {
				w.postText(t, carrier.MessageCallback{
					Event: carrier.EventReceipt, CarrierID: "theirs", At: w.now(), MessageID: text.MessageID, Status: carrier.ReceiptFailed,
				})
			}
		})
	})
}

func (s stage) failsCallFollowUps(t *testing.T, messages int, failing func(*world)) {
	for n := 1; ; n++ {
		w, c := s.crashing(t)
		threadID := w.says(t, "Hello")
		w.pass(30 * time.Minute)
		w.advance(t, threadID)
		w.pass(23 * time.Hour)
		ph := w.bring(t, hungUp)
		failing(w)
		crashed := c.run(w.ctx, n, false, func(ctx context.Context) error { return w.calls.Advance(ctx, w.workspace, ph.CallID) })
		for range 10 {
			if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err == nil {
				break
			}
			w.pass(time.Minute)
		}
		status := statusOf(w.read(t, ph.CallID).CallRecord)
		w.toItsEnd(t, threadID)
		got := w.readThread(t, threadID)
		w.checkThread(t, got)
		if want := map[string]int{"failed by sms": messages, "ambiguous by sms": 4}[status]; got.MessageCount != want {
			t.Fatalf("call %d: %d messages with a call's follow-up that is %q, want %d", n, got.MessageCount, status, want)
		}
		if !crashed {
			return
		}
	}
}

// In a test all texts have the same source; a receipt moves the follow-up that it is about.
func TestReceiptOfTheCallsOtherText(t *testing.T) {
	w, a := newStage(t).newExamined(t, nil)
	call := w.newCall(customer + "99")
	call.IsTest = true
	ph := w.bringCall(t, talking, call)
	if status, _ := w.callback(t, ph.WorkspaceID, ph.CallID, w.tool("Check-in is from 3 pm.")); status != http.StatusOK {
		t.Fatalf("status %d, want 200", status)
	}
	w.line.hangUp(ph, conversation.EndCustomerHungUp)
	w.deliverAll(t, ph)
	a.followUp = func() error { w.deliverReceipts(t); return nil }
	if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err != nil {
		t.Fatal(err)
	}
	if got := statusOf(w.read(t, ph.CallID).CallRecord); got != "sent by sms" || w.followUpTexts() != 1 {
		t.Errorf("%q, %d texts; want one sent", got, w.followUpTexts())
	}
	w.deliverReceipts(t)
	if got := statusOf(w.read(t, ph.CallID).CallRecord); got != "delivered by sms" {
		t.Errorf("%q, want delivered", got)
	}
}
