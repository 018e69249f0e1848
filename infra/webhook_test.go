package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The retry schedule of the spec: attempts 2 to 6 after 1, 2, 4, 8 and 16 minutes, each
// asked for with its number, and the end as soon as the delivery is over.
func TestWebhookRetry(t *testing.T) {
	for _, tt := range []struct {
		scale int
		waits []int // seconds before the attempts 2 to 6
	}{
		{1, []int{60, 120, 240, 480, 960}},
		{60, []int{1, 2, 4, 8, 16}},
		{100, []int{1, 2, 3, 5, 10}}, // rounded up
	} {
		machine := readASL(t, Stage{TimeScale: tt.scale}.scaled(webhookRetryASL))
		at := machine.StartAt
		for i, seconds := range tt.waits {
			wait := machine.States[at]
			if wait.Type != "Wait" || wait.Seconds != seconds {
				t.Fatalf("scale %d, %s: got a %s of %d s, want a wait of %d s", tt.scale, at, wait.Type, wait.Seconds, seconds)
			}
			task, attempt := machine.States[wait.Next], i+2
			checkRetryTask(t, task, attempt)
			if attempt == 6 {
				if !task.End {
					t.Errorf("attempt 6 leads to %s, want the end", task.Next)
				}
				break
			}
			choice := machine.States[task.Next]
			if len(choice.Choices) != 1 || choice.Choices[0].Variable != "$.last.done" || !choice.Choices[0].BooleanEquals ||
				machine.States[choice.Choices[0].Next].Type != "Succeed" {
				t.Errorf("after attempt %d: got %+v, want the end if it is done", attempt, choice)
			}
			at = choice.Default
		}
		// Each wait and each attempt is as many states as the walk has seen, and one end.
		if got, want := len(machine.States), 5+5+4+1; got != want {
			t.Errorf("got %d states, want %d", got, want)
		}
		// The waits, and five tasks that are each retried for a while, fit in.
		if machine.TimeoutSeconds < 6*60*60 || machine.TimeoutSeconds > 24*60*60 {
			t.Errorf("got a timeout of %d s, want hours", machine.TimeoutSeconds)
		}
	}
}

func checkRetryTask(t *testing.T, task aslState, attempt int) {
	t.Helper()
	want := map[string]any{
		"workspace_id.$": "$.workspace_id", "delivery_id.$": "$.delivery_id", "round.$": "$.round", "attempt": float64(attempt),
	}
	if got := task.Parameters; got.FunctionName != "${RetryWebhook}" || fmt.Sprint(got.Payload) != fmt.Sprint(want) {
		t.Errorf("attempt %d: got %+v, want %v", attempt, got, want)
	}
	// The task's answer is kept beside the input, which the next task needs.
	if task.ResultPath != "$.last" || task.ResultSelector["done.$"] != "$.Payload.done" || len(task.ResultSelector) != 1 {
		t.Errorf("attempt %d: got %v at %v, want the answer's done at $.last", attempt, task.ResultSelector, task.ResultPath)
	}
	if len(task.Catch) != 0 || task.TimeoutSeconds <= int(sizes[retryWebhook].seconds) {
		t.Errorf("attempt %d: got a timeout of %d s and catches %v, want more than the function's, and none", attempt, task.TimeoutSeconds, task.Catch)
	}
	// Each task waits for room for hours, and five of them, with three events a try, stay below
	// the 25,000 events of a history.
	if len(task.Retry) != 2 || !slices.Equal(task.Retry[0].ErrorEquals, []string{"Lambda.TooManyRequestsException"}) ||
		*task.Retry[0].MaxAttempts < 1000 || *task.Retry[0].MaxAttempts*5*3 > 20_000 || task.Retry[0].JitterStrategy != "FULL" ||
		!slices.Equal(task.Retry[1].ErrorEquals, []string{"States.ALL"}) || *task.Retry[1].MaxAttempts < 10 || task.Retry[1].BackoffRate < 1.5 {
		t.Errorf("attempt %d: got %+v, want patience with a function that has no room, and a retry of all errors, ever later", attempt, task.Retry)
	}
}

// Deliveries may be given more room, which is then set aside for them: as much again for the
// later attempts, which the queue's bound doesn't hold.
func TestDeliveryConcurrency(t *testing.T) {
	tm := synth(t, map[string]any{"stage": "prod", "deliveryConcurrency": "50"})
	for _, r := range tm.service.of("AWS::Lambda::EventSourceMapping") {
		config, ok := r.Properties["ScalingConfig"].(map[string]any)
		if ok && tm.text(r.Properties["FunctionName"]) == "deliverwebhook" && config["MaximumConcurrency"] != 50.0 {
			t.Errorf("got %v, want 50", config)
		}
	}
	for _, function := range tm.service.of("AWS::Lambda::Function") {
		got := function.Properties["ReservedConcurrentExecutions"]
		if want := folder(function) == deliverWebhook || folder(function) == retryWebhook; want && got != 50.0 || !want && got != nil {
			t.Errorf("%s: got %v set aside, want 50 for each of the two that post", folder(function), got)
		}
	}
	for _, function := range prod(t).service.of("AWS::Lambda::Function") {
		if got := function.Properties["ReservedConcurrentExecutions"]; got != nil {
			t.Errorf("%s: got %v set aside, want none: a new account has none to give", folder(function), got)
		}
	}
}

// Whatever can be left undone has an alarm.
func TestAlarms(t *testing.T) {
	tm := prod(t)
	want := []string{"AWS/ApiGateway 5xx Api", "AWS/Lambda Errors parley-prod-sweep"}
	for _, queue := range []string{"ThreadMarks", "ThreadTurns", "WebhookDeliveries"} {
		want = append(want, "AWS/SQS ApproximateAgeOfOldestMessage "+queue+".QueueName")
	}
	for _, queue := range []string{"SimulatorSteps", "ThreadMarks", "ThreadTurns", "WebhookDeliveries"} {
		want = append(want, "AWS/SQS ApproximateNumberOfMessagesVisible "+queue+"Failed.QueueName")
	}
	for _, machine := range []string{callLifecycle, threadLifecycle, webhookRetry} {
		arn := "arn:AWS::Partition:states:AWS::Region:AWS::AccountId:stateMachine:parley-prod-" + machine
		want = append(want, "AWS/States ExecutionsFailed "+arn, "AWS/States ExecutionsTimedOut "+arn, "AWS/States ExecutionsAborted "+arn)
	}
	for _, function := range []string{startLifecycles, publishEvents} {
		mapping := inID(function) + "source.Id"
		want = append(want, "AWS/Lambda IteratorAge parley-prod-"+function,
			"AWS/Lambda OnFailureDestinationDeliveredEventCount "+mapping, "AWS/Lambda DroppedEventCount "+mapping)
	}
	var got []string
	for _, r := range tm.service.of("AWS::CloudWatch::Alarm") {
		p := as[struct {
			Namespace, MetricName, ComparisonOperator, TreatMissingData string
			Dimensions                                                  []struct{ Value any }
			Period, EvaluationPeriods                                   int
			Threshold                                                   float64
		}](t, r.Properties)
		got = append(got, strings.Join([]string{p.Namespace, p.MetricName, tm.text(p.Dimensions[0].Value)}, " "))
		if p.Threshold < 1 || p.Period != 300 || p.EvaluationPeriods != 1 || p.ComparisonOperator != "GreaterThanOrEqualToThreshold" || p.TreatMissingData != "notBreaching" {
			t.Errorf("%s: got %+v, want it within five minutes", got[len(got)-1], p)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got alarms\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
