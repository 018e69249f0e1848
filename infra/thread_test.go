package main

import (
	"slices"
	"strings"
	"testing"
)

// The definition loops as long as somebody writes: it waits as long as it is told, looks, and
// goes on as the look says. Whatever fails, an execution gets to its end.
func TestThreadLifecycle(t *testing.T) {
	machine := readASL(t, threadLifecycleASL)
	// A follow-up's answer is waited for up to 7 days; what lasts longer is the sweep's.
	if machine.TimeoutSeconds < 8*24*60*60 || machine.TimeoutSeconds > 31*24*60*60 {
		t.Errorf("got a timeout of %d s, want 8 to 31 days", machine.TimeoutSeconds)
	}
	if !strings.Contains(machine.Comment, "history") || !strings.Contains(machine.Comment, "sweep") {
		t.Errorf("got comment %q, want it to say what bounds the history, and who takes over", machine.Comment)
	}
	wait, longer, look, choose, answer, done := machine.States["Wait"], machine.States["WaitLonger"], machine.States["Look"], machine.States["Choose"], machine.States["AwaitAnswer"], machine.States["Done"]
	if len(machine.States) != 6 || machine.StartAt != "Wait" {
		t.Fatalf("got %d states from %s, want Wait, Look, Choose, WaitLonger, AwaitAnswer, Done", len(machine.States), machine.StartAt)
	}

	if wait.Type != "Wait" || wait.SecondsPath != "$.wait_seconds" || wait.Next != "Look" {
		t.Errorf("got Wait %+v, want the input's time, then Look", wait)
	}
	if longer.Type != "Wait" || longer.SecondsPath != "$.look.seconds" || longer.Next != "Look" {
		t.Errorf("got WaitLonger %+v, want the look's time, then Look", longer)
	}
	// The look's answer goes beside the input, which stays.
	if look.ResultSelector["next.$"] != "$.Payload.next" || look.ResultSelector["seconds.$"] != "$.Payload.seconds" || look.ResultPath != "$.look" ||
		look.Next != "Choose" || look.Parameters.Payload["token.$"] != nil {
		t.Errorf("got Look %+v, want its answer at $.look, then Choose, and no token", look)
	}
	// Its function's timeout comes first.
	if float64(look.TimeoutSeconds) <= sizes[advanceThread].seconds {
		t.Errorf("got a look of up to %d s, want more than its function's %g", look.TimeoutSeconds, sizes[advanceThread].seconds)
	}

	next := map[string]string{}
	for _, c := range choose.Choices {
		if c.Variable != "$.look.next" {
			t.Errorf("got a choice by %s, want the look's", c.Variable)
		}
		next[c.StringEquals] = c.Next
	}
	if len(next) != 2 || next["wait"] != "WaitLonger" || next["answer"] != "AwaitAnswer" || choose.Default != "Done" || done.Type != "Succeed" {
		t.Errorf("got choices %v, else %s (%s); want wait, answer, else the end", next, choose.Default, done.Type)
	}

	payload := answer.Parameters.Payload
	if answer.Resource != "arn:aws:states:::lambda:invoke.waitForTaskToken" || answer.TimeoutSecondsPath != "$.look.seconds" ||
		payload["token.$"] != "$$.Task.Token" || payload["entered_at.$"] != "$$.State.EnteredTime" || payload["retry_count.$"] != "$$.State.RetryCount" {
		t.Errorf("got AwaitAnswer %+v, want a token, when it is from, and the look's timeout", answer)
	}
	// Whatever ends it, the input stays, and it is looked again.
	if answer.Next != "Look" || len(answer.Catch) != 1 || !slices.Equal(answer.Catch[0].ErrorEquals, []string{"States.ALL"}) || answer.Catch[0].Next != "Look" ||
		strings.Count(threadLifecycleASL, `"ResultPath": null`) != 2 {
		t.Errorf("got AwaitAnswer %+v, want Look after it and after each of its failures, with the same input", answer)
	}
	if r := answer.Retry[0]; !slices.Equal(r.ErrorEquals, []string{"States.Timeout"}) || r.MaxAttempts == nil || *r.MaxAttempts != 0 {
		t.Errorf("got %+v, want no retry of a timeout", r)
	}

	for name, state := range map[string]aslState{"Look": look, "AwaitAnswer": answer} {
		if state.Parameters.FunctionName != "${AdvanceThread}" || state.Parameters.Payload["workspace_id.$"] != "$.workspace_id" || state.Parameters.Payload["thread_id.$"] != "$.thread_id" {
			t.Errorf("%s: got %+v, want advance-thread, and the thread's name", name, state.Parameters)
		}
		last := state.Retry[len(state.Retry)-1]
		if !slices.Equal(last.ErrorEquals, []string{"States.ALL"}) || last.IntervalSeconds < 1 || last.BackoffRate < 1.5 || last.MaxAttempts == nil || *last.MaxAttempts < 5 || *last.MaxAttempts > 20 {
			t.Errorf("%s: got %+v, want 5 to 20 attempts at everything, ever later", name, last)
		}
	}
}

// The price of a conversation counts the transitions: four for one that is quiet and
// completed at its first look, three for each further look.
func TestThreadLifecycleTransitions(t *testing.T) {
	machine := readASL(t, threadLifecycleASL)
	// walk goes from state to state, with these answers of the looks.
	walk := func(answers ...string) (transitions int) {
		for state := machine.StartAt; ; transitions++ {
			s := machine.States[state]
			switch {
			case s.Type == "Succeed":
				return transitions + 1
			case s.Type == "Choice":
				state = s.Default
				for _, c := range s.Choices {
					if c.StringEquals == answers[0] {
						state = c.Next
					}
				}
				answers = answers[1:]
			default:
				state = s.Next
			}
		}
	}
	for _, tt := range []struct {
		answers []string
		want    int
	}{
		{[]string{"done"}, 4}, {[]string{"wait", "done"}, 7}, {[]string{"wait", "wait", "done"}, 10}, {[]string{"answer", "wait", "done"}, 10},
	} {
		if got := walk(tt.answers...); got != tt.want {
			t.Errorf("%v: got %d transitions, want %d", tt.answers, got, tt.want)
		}
	}
}
