package lifecycle_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/shared/conversation"
	"parley/shared/lifecycle"
)

// task is the input of a task, by way of the JSON that the state machine sends.
func (w *world) task(t fatal, callID conversation.CallID, awaitPickup bool, token, enteredAt string, retry int) lifecycle.Task {
	t.Helper()
	payload := fmt.Sprintf(`{"workspace_id":%q,"call_id":%q,"await_pickup":%t,"token":%q,"entered_at":%q,"retry_count":%d}`,
		w.workspace, callID, awaitPickup, token, enteredAt, retry)
	var task lifecycle.Task
	if err := json.Unmarshal([]byte(payload), &task); err != nil {
		t.Fatalf("%v", err)
	}
	return task
}

const entered = "2030-05-06T07:08:09.123Z"

func TestTaskAnswersItself(t *testing.T) {
	w, m := newWorld(t), newSteps(t)
	for name, tt := range map[string]struct {
		bring       func() conversation.CallID
		awaitPickup bool
		want        bool // it has happened already
	}{
		"pickup, queued":       {func() conversation.CallID { return w.bring(t, queued).CallID }, true, false},
		"pickup, in progress":  {func() conversation.CallID { return w.bring(t, inProgress).CallID }, true, true},
		"pickup, hung up":      {func() conversation.CallID { return w.bring(t, hungUp).CallID }, true, true},
		"pickup, busy":         {func() conversation.CallID { return w.busy(t) }, true, true},
		"hang-up, queued":      {func() conversation.CallID { return w.bring(t, queued).CallID }, false, false},
		"hang-up, in progress": {func() conversation.CallID { return w.bring(t, inProgress).CallID }, false, false},
		"hang-up, talking":     {func() conversation.CallID { return w.bring(t, talking).CallID }, false, false},
		"hang-up, hung up":     {func() conversation.CallID { return w.bring(t, hungUp).CallID }, false, true},
		"hang-up, busy":        {func() conversation.CallID { return w.busy(t) }, false, true},
		"hang-up, completed":   {func() conversation.CallID { return w.completed(t) }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			callID := tt.bring()
			m.wait(name)
			if err := w.calls.Run(m.Machine)(w.ctx, w.task(t, callID, tt.awaitPickup, name, entered, 0)); err != nil {
				t.Fatalf("Run = %v, want nil", err)
			}
			if woken := !m.isWaiting(name); woken != tt.want {
				t.Errorf("woken: %t, want %t", woken, tt.want)
			}
			if got := w.read(t, callID).Token; got != name {
				t.Errorf("token %q is stored, want %q", got, name)
			}
		})
	}
}

func (w *world) busy(t fatal) conversation.CallID {
	ph := w.place(t, w.newCall(customer+"01"))
	w.line.hangUp(ph, conversation.EndBusy)
	w.deliverAll(t, ph)
	return ph.CallID
}

func (w *world) completed(t fatal) conversation.CallID {
	ph := w.bring(t, hungUp)
	if err := w.calls.Advance(w.ctx, w.workspace, ph.CallID); err != nil {
		t.Fatalf("Advance = %v", err)
	}
	return ph.CallID
}

func TestTaskFailures(t *testing.T) {
	w, m := newWorld(t), newSteps(t)
	callID := w.bring(t, inProgress).CallID
	run := w.calls.Run(m.Machine)

	// The token is dead: the task is over, and needs no answer.
	if err := run(w.ctx, w.task(t, callID, true, "dead", entered, 0)); err != nil {
		t.Errorf("dead token: Run = %v, want nil", err)
	}
	// The answer can't be given: the task is tried again, and its next attempt has another token.
	m.wait("first")
	m.answer = func(string) string { return "AccessDeniedException" }
	if err := run(w.ctx, w.task(t, callID, true, "first", entered, 1)); err == nil {
		t.Error("no answer possible: Run = nil, want an error")
	}
	m.answer = func(string) string { return "" }
	m.wait("second")
	if err := run(w.ctx, w.task(t, callID, true, "second", entered, 2)); err != nil || m.isWaiting("second") {
		t.Errorf("next attempt: Run = %v, waits: %t; want nil, woken", err, m.isWaiting("second"))
	}
	// The first attempt again, late: the later one's token stays.
	if err := run(w.ctx, w.task(t, callID, true, "first", entered, 1)); err != nil || w.read(t, callID).Token != "second" {
		t.Errorf("late attempt: Run = %v, token %s; want nil, the later one's", err, w.read(t, callID).Token)
	}
	// The later state wins, though its moment is written with fewer digits: 10 s is after 9.999 s.
	for _, step := range []struct{ token, entered string }{{"a", "2030-05-06T07:08:09.999Z"}, {"b", "2030-05-06T07:08:10Z"}, {"c", "2030-05-06T07:08:10.001Z"}} {
		if err := run(w.ctx, w.task(t, callID, false, step.token, step.entered, 0)); err != nil || w.read(t, callID).Token != step.token {
			t.Errorf("entered at %s: Run = %v, token %s; want %s", step.entered, err, w.read(t, callID).Token, step.token)
		}
	}
	// The same attempt twice, as Lambda may call a function again: it is woken all the same.
	ph := w.bring(t, hungUp)
	m.wait("twice")
	m.answer = func(string) string { return "AccessDeniedException" }
	_ = run(w.ctx, w.task(t, ph.CallID, false, "twice", entered, 0))
	m.answer = func(string) string { return "" }
	if err := run(w.ctx, w.task(t, ph.CallID, false, "twice", entered, 0)); err != nil || m.isWaiting("twice") {
		t.Errorf("the same attempt: Run = %v, waits: %t; want nil, woken", err, m.isWaiting("twice"))
	}
}

// A task without a token is Advance. NotYet reaches the state machine by its name.
func TestTaskWithoutToken(t *testing.T) {
	w, m := newWorld(t), newSteps(t)
	task := lifecycle.Task{WorkspaceID: w.workspace, CallID: w.bring(t, hungUp).CallID}
	if err := w.calls.Run(m.Machine)(w.ctx, task); err != nil || w.read(t, task.CallID).CompletedAt.IsZero() {
		t.Errorf("Run = %v, want the call completed", err)
	}
	task.CallID = w.bring(t, talking).CallID
	err := w.calls.Run(m.Machine)(w.ctx, task)
	if err != lifecycle.ErrNotYet {
		t.Errorf("Run = %v, want ErrNotYet as it is", err)
	}
	asl, readErr := os.ReadFile("../../infra/statemachines/call-lifecycle.asl.json")
	if name := reflect.TypeOf(err).Name(); readErr != nil || !strings.Contains(string(asl), `"`+name+`"`) {
		t.Errorf("the state machine doesn't know %q: %v", name, readErr)
	}
	task.CallID = "nobody"
	if err := w.calls.Run(m.Machine)(w.ctx, task); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("Run = %v, want ErrNotFound", err)
	}
}

// Whatever the order of the callback's write, the stream's record of it and the task's
// token, the task is woken, once, and no earlier than what it waits for.
func TestNoOrderLosesTheWaking(t *testing.T) {
	stage, m := newStage(t), newSteps(t)
	rapid.Check(t, func(rt *rapid.T) {
		w := stage.newWorld(t, nil)
		m.waiting, m.woken = map[string]bool{}, nil
		awaitPickup := rapid.Bool().Draw(rt, "await pickup")
		from := queued
		if !awaitPickup {
			from = talking
		}
		ph := w.bring(rt, from)
		outcome := rapid.SampledFrom([]string{"goes on", "fails"}).Draw(rt, "outcome")
		if outcome == "goes on" && awaitPickup {
			w.line.ring(ph)
		} else {
			w.line.hangUp(ph, conversation.EndBusy)
		}
		report, _ := w.line.take(ph)

		var stream []string
		happened := false
		attempt := 0
		m.wait("token 0")
		todo := []string{"write", "token"}
		for range rapid.IntRange(0, 3).Draw(rt, "more") {
			todo = append(todo, rapid.SampledFrom([]string{"write", "token", "record", "retry"}).Draw(rt, "again"))
		}
		todo = rapid.Permutation(todo).Draw(rt, "order")
		todo = append(todo, "record") // the stream comes to an end
		for _, step := range todo {
			switch step {
			case "write":
				record := w.change(rt, fmt.Sprint(len(stream)), ph.CallID, func() {
					if status := w.deliver(rt, ph, report); status != 200 {
						rt.Fatalf("callback: status %d", status)
					}
				})
				stream = append(stream, record)
				happened = true
			case "retry": // the attempt failed, and the next one begins
				delete(m.waiting, fmt.Sprintf("token %d", attempt))
				attempt++
				m.wait(fmt.Sprintf("token %d", attempt))
				fallthrough
			case "token":
				token := fmt.Sprintf("token %d", attempt)
				stream = append(stream, w.change(rt, fmt.Sprint(len(stream)), ph.CallID, func() {
					if err := w.calls.Run(m.Machine)(w.ctx, w.task(rt, ph.CallID, awaitPickup, token, entered, attempt)); err != nil {
						rt.Fatalf("Run = %v", err)
					}
				}))
			case "record": // all there are, from the beginning: the batch comes again
				if failed := w.follow(rt, m, stream...); len(failed) != 0 {
					rt.Fatalf("failed %v", failed)
				}
			}
			if !happened && len(m.woken) != 0 {
				rt.Fatalf("woke %v before it happened", m.woken)
			}
		}
		last := fmt.Sprintf("token %d", attempt)
		if m.isWaiting(last) {
			rt.Fatalf("nobody woke %s; woken were %v", last, m.woken)
		}
	})
}

// Retries sort after their state's first attempt, also beyond the ninth.
func TestLaterAttemptWins(t *testing.T) {
	w, m := newWorld(t), newSteps(t)
	callID := w.bring(t, queued).CallID
	for retry := range 12 {
		token := fmt.Sprint(retry)
		if err := w.calls.Run(m.Machine)(w.ctx, w.task(t, callID, true, token, entered, retry)); err != nil || w.read(t, callID).Token != token {
			t.Errorf("retry %d: Run = %v, token %s", retry, err, w.read(t, callID).Token)
		}
	}
	w.pass(time.Second)
	if err := w.calls.Run(m.Machine)(w.ctx, w.task(t, callID, false, "next", "2030-05-06T07:08:09.124Z", 0)); err != nil || w.read(t, callID).Token != "next" {
		t.Errorf("the next state: Run = %v, token %s", err, w.read(t, callID).Token)
	}
}
