package lifecycle_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/shared/conversation"
	"parley/shared/lifecycle"
)

// threadTask is the input of a task, by way of the JSON that the state machine sends.
func (w *world) threadTask(t fatal, threadID conversation.ThreadID, token, enteredAt string, retry int) lifecycle.ThreadTask {
	t.Helper()
	payload := fmt.Sprintf(`{"workspace_id":%q,"thread_id":%q,"token":%q,"entered_at":%q,"retry_count":%d}`, w.workspace, threadID, token, enteredAt, retry)
	if token == "" {
		payload = fmt.Sprintf(`{"workspace_id":%q,"thread_id":%q}`, w.workspace, threadID)
	}
	var task lifecycle.ThreadTask
	if err := json.Unmarshal([]byte(payload), &task); err != nil {
		t.Fatalf("%v", err)
	}
	return task
}

// awaiting brings a conversation so far that its follow-up's answer is awaited.
func (w *world) awaiting(t fatal) conversation.ThreadID {
	t.Helper()
	threadID := w.says(t, "Hello")
	w.pass(30 * time.Minute)
	if step := w.advance(t, threadID); step.Next != lifecycle.StepAnswer {
		t.Fatalf("%+v, want to wait for an answer", step)
	}
	return threadID
}

// A task without a token says what comes next, in the words that the state machine knows.
func TestThreadTask(t *testing.T) {
	w, _ := newStage(t).newExamined(t, nil)
	m := w.turns.steps
	run := func(threadID conversation.ThreadID) string {
		step, err := w.look().Run(m.threads())(w.ctx, w.threadTask(t, threadID, "", "", 0))
		if err != nil {
			t.Fatalf("Run = %v", err)
		}
		answer, err := json.Marshal(step)
		if err != nil {
			t.Fatal(err)
		}
		return string(answer)
	}
	threadID := w.says(t, "Hello")
	w.pass(30*time.Minute - 15*time.Second - 5*time.Second)
	for _, want := range []string{`{"next":"wait","seconds":5}`, `{"next":"answer","seconds":86400}`, `{"next":"done","seconds":0}`} {
		if got := run(threadID); got != want {
			t.Errorf("Run = %s, want %s", got, want)
		}
		w.pass(24 * time.Hour)
		if want == `{"next":"wait","seconds":5}` {
			w.pass(-24*time.Hour + 5*time.Second)
		}
	}
	asl, err := os.ReadFile("../../infra/statemachines/thread-lifecycle.asl.json")
	for _, step := range []lifecycle.NextStep{lifecycle.StepWait, lifecycle.StepAnswer} {
		if err != nil || !strings.Contains(string(asl), fmt.Sprintf(`"StringEquals": %q`, step)) {
			t.Errorf("the state machine doesn't know %q: %v", step, err)
		}
	}
	// The execution's input has what a look's answer has.
	for _, field := range reflect.VisibleFields(reflect.TypeFor[lifecycle.Step]()) {
		if name := field.Tag.Get("json"); !strings.Contains(string(asl), "$.Payload."+name) {
			t.Errorf("the state machine doesn't read %q", name)
		}
	}
}

// A task whose conversation is gone has nothing to wait for, and brings nothing back.
func TestThreadTaskOfNothing(t *testing.T) {
	w, m := newStage(t).newWorld(t, nil), newSteps(t)
	m.wait("token")
	_, err := w.look().Run(m.threads())(w.ctx, w.threadTask(t, "nobody", "token", entered, 0))
	if err != nil || m.isWaiting("token") || w.threadItem(t, "nobody") != nil {
		t.Errorf("Run = %v, waiting: %t; want it woken", err, m.isWaiting("token"))
	}
}

// A task with a token answers itself if what it waits for has happened.
func TestThreadTaskAnswersItself(t *testing.T) {
	stage := newStage(t)
	for name, tt := range map[string]struct {
		happens func(*testing.T, *world, conversation.ThreadID)
		want    bool
	}{
		"nothing":               {func(*testing.T, *world, conversation.ThreadID) {}, false},
		"it was delivered":      {func(t *testing.T, w *world, _ conversation.ThreadID) { w.deliverReceipts(t) }, false},
		"it failed":             {func(t *testing.T, w *world, id conversation.ThreadID) { w.failReceipt(t, id) }, true},
		"the customer answered": {func(t *testing.T, w *world, _ conversation.ThreadID) { w.says(t, "Yes") }, true},
		"they opted out":        {func(t *testing.T, w *world, _ conversation.ThreadID) { w.says(t, "STOP") }, true},
		"it is completed": {func(t *testing.T, w *world, id conversation.ThreadID) {
			w.says(t, "STOP")
			w.advance(t, id)
		}, true},
		"an answer that was written before the follow-up, and arrives after it": {func(t *testing.T, w *world, _ conversation.ThreadID) {
			report := w.message("One more thing")
			report.At = w.now().Add(-time.Hour)
			w.writes(t, report)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := stage.newExamined(t, nil)
			m := w.turns.steps
			threadID := w.awaiting(t)
			tt.happens(t, w, threadID)
			m.wait("token")
			if _, err := w.look().Run(m.threads())(w.ctx, w.threadTask(t, threadID, "token", entered, 0)); err != nil {
				t.Fatalf("Run = %v", err)
			}
			if woken := !m.isWaiting("token"); woken != tt.want {
				t.Errorf("woken: %t, want %t", woken, tt.want)
			}
			// The late attempt of an earlier state leaves the token alone.
			if _, err := w.look().Run(m.threads())(w.ctx, w.threadTask(t, threadID, "late", "2030-05-06T07:08:08Z", 3)); err != nil {
				t.Errorf("late attempt: Run = %v, want nil", err)
			}
			if thread := w.readThread(t, threadID); thread.Open() && thread.Token != "token" {
				t.Errorf("token %q is stored, want the later state's", thread.Token)
			}
		})
	}
}

// Whatever the order of what the customer, the carrier and the task write, and of the
// stream's records of it, the task is woken, once, and no earlier than what it waits for.
func TestNoOrderLosesTheAnswer(t *testing.T) {
	stage := newStage(t)
	rapid.Check(t, func(rt *rapid.T) {
		w, _ := stage.newExamined(t, nil)
		m := w.turns.steps
		threadID := w.awaiting(rt)
		event := rapid.SampledFrom([]string{"answer", "failure"}).Draw(rt, "event")
		var stream []string
		write := func(do func()) {
			before := w.threadItem(rt, threadID)
			do()
			if after := w.threadItem(rt, threadID); !reflect.DeepEqual(before, after) {
				stream = append(stream, record(rt, fmt.Sprint(len(stream)), before, after))
			}
		}
		m.wait("token 0")
		happened, attempt := false, 0
		todo := []string{"event", "token"}
		for range rapid.IntRange(0, 3).Draw(rt, "more") {
			todo = append(todo, rapid.SampledFrom([]string{"token", "retry", "record", "receipt"}).Draw(rt, "again"))
		}
		for _, step := range append(rapid.Permutation(todo).Draw(rt, "order"), "record") {
			switch step {
			case "event":
				happened = true
				write(func() {
					if event == "failure" {
						w.failReceipt(rt, threadID)
					} else if status := w.postText(rt, w.message("Yes")); status != 200 {
						rt.Fatalf("status %d", status)
					}
				})
			case "receipt": // that changes nothing, or not what is awaited
				if event == "answer" {
					write(func() { w.deliverReceipts(rt) })
				}
			case "retry":
				m.mu.Lock()
				delete(m.waiting, fmt.Sprintf("token %d", attempt))
				m.mu.Unlock()
				attempt++
				m.wait(fmt.Sprintf("token %d", attempt))
				fallthrough
			case "token":
				token := fmt.Sprintf("token %d", attempt)
				write(func() {
					if _, err := w.look().Run(m.threads())(w.ctx, w.threadTask(rt, threadID, token, entered, attempt)); err != nil {
						rt.Fatalf("Run = %v", err)
					}
				})
			case "record":
				if failed := w.follow(rt, m, stream...); len(failed) != 0 {
					rt.Fatalf("failed %v", failed)
				}
			}
			if woken := slices.Clone(m.woken); !happened && len(woken) != 0 {
				rt.Fatalf("woke %v before it happened", woken)
			}
		}
		if last := fmt.Sprintf("token %d", attempt); m.isWaiting(last) {
			rt.Fatalf("nobody woke %s; woken were %v", last, m.woken)
		}
	})
}
