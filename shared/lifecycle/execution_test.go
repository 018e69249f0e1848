package lifecycle_test

import (
	"encoding/json"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/shared/conversation"
	"parley/shared/lifecycle"
)

// definition is the state machine's, as far as its states use the language.
type definition struct {
	StartAt string
	States  map[string]struct {
		Resource   string
		Parameters struct{ Payload map[string]any }
		Retry      []struct {
			ErrorEquals     []string
			IntervalSeconds float64
			BackoffRate     float64
			MaxAttempts     int
			MaxDelaySeconds float64
		}
		Catch []struct {
			ErrorEquals []string
			Next        string
		}
		TimeoutSecondsPath string
		Next               string
		End                bool
	}
}

func callLifecycle(t fatal) definition {
	t.Helper()
	data, err := os.ReadFile("../../infra/statemachines/call-lifecycle.asl.json")
	if err != nil {
		t.Fatalf("%v", err)
	}
	var d definition
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatalf("%v", err)
	}
	return d
}

// execution is one of the state machine, run by the test as Step Functions would.
type execution struct {
	definition
	w       *world
	steps   *steps
	input   map[string]any
	state   string
	entered time.Time
	retries []int     // of the state, by retrier
	due     time.Time // of the next attempt
	token   string    // of a task that waits
	until   time.Time // its timeout
	ended   string    // "": it runs; "succeeded", "failed"
}

func (s *steps) execution(t fatal, w *world, d definition, callID conversation.CallID) *execution {
	t.Helper()
	e := &execution{definition: d, w: w, steps: s}
	if err := json.Unmarshal([]byte(s.started[string(callID)]), &e.input); err != nil {
		t.Fatalf("%v", err)
	}
	e.enter(d.StartAt)
	return e
}

func (e *execution) enter(state string) {
	e.state, e.entered, e.due, e.token = state, e.w.now(), e.w.now(), ""
	e.retries = make([]int, len(e.States[state].Retry))
}

func (e *execution) retryCount() int {
	n := 0
	for _, one := range e.retries {
		n += one
	}
	return n
}

// run does what is due, if anything is, and tells whether it was.
func (e *execution) run(t fatal) bool {
	t.Helper()
	state := e.States[e.state]
	switch now := e.w.now(); {
	case e.ended != "":
		return false
	case e.token != "" && !e.steps.isWaiting(e.token):
		e.succeed()
		return true
	case e.token != "" && now.Before(e.until):
		return false
	case e.token != "":
		e.fail("States.Timeout")
		return true
	case now.Before(e.due):
		return false
	}
	token := ""
	if strings.HasSuffix(state.Resource, ".waitForTaskToken") {
		token = conversation.NewID()
		e.steps.wait(token)
	}
	err := e.w.calls.Run(e.steps.Machine)(e.w.ctx, e.payload(t, token))
	switch {
	case err != nil:
		e.fail(reflect.Indirect(reflect.ValueOf(err)).Type().Name())
	case token == "":
		e.succeed()
	default:
		e.token = token
		seconds, _ := e.input[strings.TrimPrefix(state.TimeoutSecondsPath, "$.")].(float64)
		e.until = e.w.now().Add(time.Duration(seconds * float64(time.Second)))
	}
	return true
}

// payload is the task's input, with what its paths name.
func (e *execution) payload(t fatal, token string) lifecycle.Task {
	t.Helper()
	values := map[string]any{
		"$$.Task.Token": token, "$$.State.EnteredTime": e.entered.Format(time.RFC3339Nano), "$$.State.RetryCount": e.retryCount(),
	}
	payload := map[string]any{}
	for name, value := range e.States[e.state].Parameters.Payload {
		if field, isPath := strings.CutSuffix(name, ".$"); isPath {
			path := value.(string)
			if name = field; strings.HasPrefix(path, "$$.") {
				value = values[path]
			} else {
				value = e.input[strings.TrimPrefix(path, "$.")]
			}
		}
		payload[name] = value
	}
	data, err := json.Marshal(payload)
	if err != nil {
		t.Fatalf("%v", err)
	}
	var task lifecycle.Task
	if err := json.Unmarshal(data, &task); err != nil {
		t.Fatalf("payload %s: %v", data, err)
	}
	return task
}

func (e *execution) succeed() {
	if e.States[e.state].End {
		e.ended = "succeeded"
		return
	}
	e.enter(e.States[e.state].Next)
}

func (e *execution) fail(name string) {
	e.token = ""
	state := e.States[e.state]
	matches := func(names []string) bool { return slices.Contains(names, name) || slices.Contains(names, "States.ALL") }
	for i, r := range state.Retry {
		if !matches(r.ErrorEquals) {
			continue
		}
		if e.retries[i] < r.MaxAttempts {
			delay := r.IntervalSeconds * math.Pow(r.BackoffRate, float64(e.retries[i]))
			if r.MaxDelaySeconds > 0 {
				delay = min(delay, r.MaxDelaySeconds)
			}
			e.retries[i]++
			e.due = e.w.now().Add(time.Duration(delay * float64(time.Second)))
			return
		}
		break
	}
	for _, c := range state.Catch {
		if matches(c.ErrorEquals) {
			e.enter(c.Next)
			return
		}
	}
	e.ended = "failed"
}

// The state machine takes a call through its life without a detour: it waits where it
// should, is woken by the change that it waits for, and ends with the call.
func TestExecutions(t *testing.T) {
	stage, asl := newStage(t), callLifecycle(t)
	const minute = time.Minute
	type step struct {
		does  func(*world, *phone) // before the machine goes on
		after time.Duration
		in    string // the state that it waits in then; "": it has ended
	}
	rings := func(w *world, ph *phone) { w.line.ring(ph) }
	answers := func(w *world, ph *phone) { w.line.answer(ph) }
	hangsUp := func(w *world, ph *phone) { w.line.hangUp(ph, conversation.EndCustomerHungUp) }
	isBusy := func(w *world, ph *phone) { w.line.hangUp(ph, conversation.EndBusy) }
	silently := func(does func(*world, *phone)) func(*world, *phone) { // the callback is lost
		return func(w *world, ph *phone) { does(w, ph); ph.reports = nil }
	}
	tests := map[string]struct {
		steps  []step
		status conversation.CallStatus
		reason conversation.EndReason
	}{
		"answered": {[]step{
			{nil, 0, "AwaitPickup"}, {rings, time.Second, "AwaitHangUp"}, {answers, 20 * time.Second, "AwaitHangUp"}, {hangsUp, 59 * minute, ""},
		}, "ended", "customer_hung_up"},
		"busy":               {[]step{{nil, 0, "AwaitPickup"}, {isBusy, time.Second, ""}}, "error", "busy"},
		"busy after it rang": {[]step{{rings, time.Second, "AwaitHangUp"}, {isBusy, 30 * time.Second, ""}}, "error", "busy"},
		"over before the machine began": {[]step{
			{func(w *world, ph *phone) { rings(w, ph); answers(w, ph); hangsUp(w, ph) }, 0, ""},
		}, "ended", "customer_hung_up"},
		"unknown to the carrier": {[]step{
			{nil, 0, "AwaitPickup"}, {func(_ *world, ph *phone) { ph.forgotten = true }, 119 * time.Second, "AwaitPickup"}, {nil, time.Second, ""},
		}, "error", "stalled"},
		"rings, and no callback says so": {[]step{
			{nil, 0, "AwaitPickup"}, {silently(rings), 2 * minute, "AwaitHangUp"}, {answers, minute, "AwaitHangUp"}, {hangsUp, minute, ""},
		}, "ended", "customer_hung_up"},
		"never hangs up": {[]step{
			{rings, 0, "AwaitHangUp"}, {answers, 59 * minute, "AwaitHangUp"}, {nil, minute, ""},
		}, "ended", "max_duration"},
		"hangs up, and no callback says so": {[]step{
			{rings, 0, "AwaitHangUp"}, {answers, 10 * minute, "AwaitHangUp"}, {silently(hangsUp), 50 * minute, ""},
		}, "ended", "customer_hung_up"},
		"falls silent": {[]step{
			{rings, 0, "AwaitHangUp"}, {func(_ *world, ph *phone) { ph.forgotten = true }, 60 * minute, ""},
		}, "error", "stalled"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w, m := stage.newWorld(t, nil), newSteps(t)
			var ph *phone
			call := w.newCall(customer + "99")
			w.follow(t, m, w.change(t, "accepted", call.CallID, func() { ph = w.place(t, call) }))
			e := m.execution(t, w, asl, call.CallID)
			for n, step := range tt.steps {
				if step.does != nil {
					w.follow(t, m, w.change(t, "changed", call.CallID, func() { step.does(w, ph); w.deliverAll(t, ph) }))
				}
				w.pass(step.after)
				for e.run(t) {
				}
				in := e.state
				if e.ended != "" {
					in = ""
				}
				if in != step.in {
					t.Fatalf("step %d: the machine is in %q, want %q", n, in, step.in)
				}
			}
			got := w.read(t, call.CallID)
			if e.ended != "succeeded" || got.Status != tt.status || got.EndReason != tt.reason || e.retryCount() != 0 || w.slots(t) != "0" {
				t.Errorf("the machine has %s after %d retries of %s, the call is %s, %q, %s active calls; want it to succeed at once, %s, %q, 0",
					e.ended, e.retryCount(), e.state, got.Status, got.EndReason, w.slots(t), tt.status, tt.reason)
			}
		})
	}
}
