package main

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/shared/dynamo"
	"parley/shared/httpapi"
	"parley/shared/lifecycle"
	"parley/shared/settings"
)

// The stream leads to start-lifecycles and publish-events, each queue to its function; all
// report which of a batch have failed. What a stream's function fails on for good is kept.
func TestEventSources(t *testing.T) {
	tm := prod(t)
	type source struct {
		BatchSize                  int
		StartingPosition           string
		BisectBatchOnFunctionError bool
		FunctionResponseTypes      []string
		Bounded                    bool // a record that always fails doesn't hold up the others for ever
		Kept                       string
		MaximumConcurrency         int
	}
	got := map[string]source{}
	for _, r := range tm.service.of("AWS::Lambda::EventSourceMapping") {
		p := as[struct {
			EventSourceArn, FunctionName any
			BatchSize                    int
			StartingPosition             string
			BisectBatchOnFunctionError   bool
			FunctionResponseTypes        []string
			MaximumRetryAttempts         int
			MaximumRecordAgeInSeconds    int
			DestinationConfig            struct{ OnFailure struct{ Destination any } }
			ScalingConfig                struct{ MaximumConcurrency int }
			MetricsConfig                struct{ Metrics []string }
		}](t, r.Properties)
		kept := ""
		if p.DestinationConfig.OnFailure.Destination != nil {
			kept = tm.text(p.DestinationConfig.OnFailure.Destination)
			if !slices.Equal(p.MetricsConfig.Metrics, []string{"EventCount"}) {
				t.Errorf("got metrics %v, want those of events, for the alarms", p.MetricsConfig.Metrics)
			}
		}
		got[tm.text(p.EventSourceArn)+" > "+tm.text(p.FunctionName)] = source{
			p.BatchSize, p.StartingPosition, p.BisectBatchOnFunctionError, p.FunctionResponseTypes,
			p.MaximumRetryAttempts > 0 && p.MaximumRecordAgeInSeconds > 0 && p.MaximumRecordAgeInSeconds <= 24*60*60,
			kept, p.ScalingConfig.MaximumConcurrency,
		}
	}
	reports := []string{"ReportBatchItemFailures"}
	want := map[string]source{
		dynamo.Conversations + ".StreamArn > startlifecycles": {100, "TRIM_HORIZON", true, reports, true, "Objects.Arn", 0},
		dynamo.Conversations + ".StreamArn > publishevents":   {100, "TRIM_HORIZON", true, reports, true, "Objects.Arn", 0},
		// The queues bound these. Marks don't wait for turns.
		threadTurns + ".Arn > replytothread":             {BatchSize: 10, FunctionResponseTypes: reports, MaximumConcurrency: 2},
		threadMarks + ".Arn > replytothread":             {BatchSize: 10, FunctionResponseTypes: reports, MaximumConcurrency: 2},
		simulatorSteps + ".Arn > simulatecarrier":        {BatchSize: 10, FunctionResponseTypes: reports},
		settings.DeliveryQueue + ".Arn > deliverwebhook": {BatchSize: 10, FunctionResponseTypes: reports, MaximumConcurrency: 5},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event sources (-want +got):\n%s", diff)
	}
}

// Only calls that live here reach the stream's functions: history that was put in whole, messages
// and keys don't.
func TestStreamFilter(t *testing.T) {
	tm := prod(t)
	for _, r := range tm.service.of("AWS::Lambda::EventSourceMapping") {
		criteria := as[struct {
			FilterCriteria struct{ Filters []struct{ Pattern string } }
		}](t, r.Properties).FilterCriteria.Filters
		if r.Properties["StartingPosition"] == nil {
			continue // a queue's
		}
		if len(criteria) != 1 {
			t.Fatalf("got %d filters, want 1", len(criteria))
		}
		want := map[string]any{"dynamodb": map[string]any{"NewImage": map[string]any{
			"carrier": map[string]any{"S": []any{map[string]any{"exists": true}}},
		}}}
		if diff := cmp.Diff(want, decode[map[string]any](t, []byte(criteria[0].Pattern))); diff != "" {
			t.Errorf("filter (-want +got):\n%s", diff)
		}
	}
}

// A message that fails five times is kept apart for two weeks. The queue waits longer than
// the function may take.
func TestQueues(t *testing.T) {
	tm := prod(t)
	queues := map[string]resource{}
	for id, r := range tm.service.of("AWS::SQS::Queue") {
		queues[generated.ReplaceAllString(id, "")] = r
	}
	want := []string{simulatorSteps, simulatorSteps + "Failed", threadMarks, threadMarks + "Failed", threadTurns, threadTurns + "Failed", settings.DeliveryQueue, settings.DeliveryQueue + "Failed"}
	if names := slices.Sorted(maps.Keys(queues)); !slices.Equal(names, want) {
		t.Fatalf("got queues %v, want %v", names, want)
	}
	for name, atLeast := range map[string]float64{
		simulatorSteps:         sizes[simulateCarrier].seconds,
		threadTurns:            sizes[replyToThread].seconds,
		threadMarks:            sizes[replyToThread].seconds,
		settings.DeliveryQueue: 6 * sizes[deliverWebhook].seconds, // as AWS asks for, since a batch may wait for a free function
	} {
		queue := as[struct {
			VisibilityTimeout    int
			SqsManagedSseEnabled bool
			RedrivePolicy        struct {
				DeadLetterTargetArn any `json:"deadLetterTargetArn"`
				MaxReceiveCount     int `json:"maxReceiveCount"`
			}
		}](t, queues[name].Properties)
		if got := tm.text(queue.RedrivePolicy.DeadLetterTargetArn); got != name+"Failed.Arn" || queue.RedrivePolicy.MaxReceiveCount != 5 {
			t.Errorf("%s: got failed messages after %d tries in %q, want after 5 in the queue beside it", name, queue.RedrivePolicy.MaxReceiveCount, got)
		}
		if !queue.SqsManagedSseEnabled || float64(queue.VisibilityTimeout) < atLeast {
			t.Errorf("%s: got encryption %t, visibility %d s; want it encrypted, and %g s at least", name, queue.SqsManagedSseEnabled, queue.VisibilityTimeout, atLeast)
		}
		failed := as[struct {
			MessageRetentionPeriod int
			SqsManagedSseEnabled   bool
		}](t, queues[name+"Failed"].Properties)
		if failed.MessageRetentionPeriod != 14*24*60*60 || !failed.SqsManagedSseEnabled {
			t.Errorf("%s: got %+v, want two weeks, encrypted", name, failed)
		}
	}
}

// A turn that failed is tried twice more before it is taken for dead, unless the stage is
// scaled; and when a turn, or its claim, is taken for dead, its function has ended.
func TestTurnsAreTriedAgain(t *testing.T) {
	function := time.Duration(sizes[replyToThread].seconds) * time.Second
	if lifecycle.TurnVisibility <= function {
		t.Errorf("got a visibility of %s, want more than the function's %s", lifecycle.TurnVisibility, function)
	}
	for scale, want := range map[lifecycle.Scale]int{1: 3, 60: 1} {
		dead, tries := scale.Turn(), 0
		for at := scale.Of(15 * time.Second); at < dead; at += lifecycle.TurnVisibility { // after the message
			tries++
		}
		if tries != want || dead <= function {
			t.Errorf("scale %d: got %d tries within %s, want %d, and more than the function's %s", scale, tries, dead, want, function)
		}
	}
}

func TestSchedules(t *testing.T) {
	tm := prod(t)
	schedules := tm.service.of("AWS::Scheduler::Schedule")
	if len(schedules) != 1 {
		t.Fatalf("got %d schedules, want the sweep's", len(schedules))
	}
	for _, r := range schedules {
		p := as[struct {
			ScheduleExpression string
			FlexibleTimeWindow struct{ Mode string }
			State              string
			Target             struct{ Arn, RoleArn any }
		}](t, r.Properties)
		if p.ScheduleExpression != "rate(5 minutes)" || p.FlexibleTimeWindow.Mode != "OFF" || p.State == "DISABLED" || tm.text(p.Target.Arn) != "sweep.Arn" {
			t.Errorf("got %s of %s, want the sweep every 5 minutes", p.ScheduleExpression, tm.text(p.Target.Arn))
		}
		tm.mayOnlyCall(t, p.Target.RoleArn, "scheduler.amazonaws.com", "sweep")
	}
	// The next sweep finds the last one over.
	if got := sizes[sweep].seconds; got > 5*60 {
		t.Errorf("got a sweep of up to %g s, want less than its schedule's 5 minutes", got)
	}
}

// mayOnlyCall checks that a role is one service's, and calls these functions and does
// nothing else.
func (tm templates) mayOnlyCall(t *testing.T, roleArn any, service string, functions ...string) {
	t.Helper()
	want := map[string]bool{}
	for _, function := range functions {
		want["lambda:InvokeFunction "+function+".Arn"] = true
	}
	for id, r := range tm.service.of("AWS::IAM::Role") {
		if tm.text(roleArn) != generated.ReplaceAllString(id, "")+".Arn" {
			continue
		}
		if diff := cmp.Diff(want, tm.allowed(t, as[role](t, r.Properties))); diff != "" {
			t.Errorf("%s may (-want +got):\n%s", id, diff)
		}
		trust := as[struct {
			Statement []struct {
				Action    string
				Effect    string
				Principal struct{ Service string }
			}
		}](t, r.Properties["AssumeRolePolicyDocument"])
		if len(trust.Statement) != 1 || trust.Statement[0].Principal.Service != service || trust.Statement[0].Action != "sts:AssumeRole" || trust.Statement[0].Effect != "Allow" {
			t.Errorf("%s is assumed by %+v, want %s alone", id, trust.Statement, service)
		}
		return
	}
	t.Errorf("there is no role %s", tm.text(roleArn))
}

func TestStateMachines(t *testing.T) {
	tm := prod(t)
	type machine struct{ Definition, Placeholder, Function string }
	want := map[string]machine{
		callLifecycle:   {callLifecycleASL, "AdvanceCall", "advancecall"},
		threadLifecycle: {threadLifecycleASL, "AdvanceThread", "advancethread"},
		webhookRetry:    {webhookRetryASL, "RetryWebhook", "retrywebhook"},
	}
	machines := tm.service.of("AWS::StepFunctions::StateMachine")
	if len(machines) != len(want) {
		t.Fatalf("got %d state machines, want %d", len(machines), len(want))
	}
	for _, r := range machines {
		p := as[struct {
			StateMachineName, StateMachineType string
			DefinitionString                   string
			DefinitionSubstitutions            map[string]any
			RoleArn                            any
		}](t, r.Properties)
		want, ok := want[strings.TrimPrefix(p.StateMachineName, "parley-prod-")]
		if !ok || p.StateMachineType == "EXPRESS" {
			t.Errorf("got %s of type %q, want one of ours, which run for hours", p.StateMachineName, p.StateMachineType)
		}
		var placeholders []string
		for _, found := range regexp.MustCompile(`\$\{(\w+)\}`).FindAllStringSubmatch(p.DefinitionString, -1) {
			if !slices.Contains(placeholders, found[1]) {
				placeholders = append(placeholders, found[1])
			}
		}
		if !slices.Equal(placeholders, []string{want.Placeholder}) || len(p.DefinitionSubstitutions) != 1 || tm.text(p.DefinitionSubstitutions[want.Placeholder]) != want.Function+".Arn" {
			t.Errorf("got placeholders %v, filled with %v; want %s, %s", placeholders, p.DefinitionSubstitutions, want.Placeholder, want.Function)
		}
		if !json.Valid([]byte(p.DefinitionString)) || p.DefinitionString != want.Definition {
			t.Errorf("%s: the definition is not the file's, or not JSON", p.StateMachineName)
		}
		tm.mayOnlyCall(t, p.RoleArn, "states.amazonaws.com", want.Function)
	}
}

// asl is a definition in the states language, as far as ours use it.
type asl struct {
	Comment        string
	StartAt        string
	TimeoutSeconds int
	States         map[string]aslState
}

type aslState struct {
	Comment, Type, Resource string
	Parameters              struct {
		FunctionName string
		Payload      map[string]any
	}
	Seconds            int
	SecondsPath        string
	TimeoutSeconds     int
	TimeoutSecondsPath string
	ResultSelector     map[string]string
	ResultPath         any
	Choices            []struct {
		Variable      string
		BooleanEquals bool
		StringEquals  string
		Next          string
	}
	Default string
	Retry   []aslRetry
	Catch   []struct {
		ErrorEquals []string
		ResultPath  any
		Next        string
	}
	Next string
	End  bool
}

type aslRetry struct {
	ErrorEquals     []string
	IntervalSeconds int
	BackoffRate     float64
	MaxAttempts     *int
	MaxDelaySeconds int
	JitterStrategy  string
}

// readASL refuses what it doesn't know.
func readASL(t *testing.T, definition string) asl {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(definition))
	decoder.DisallowUnknownFields()
	var machine asl
	if err := decoder.Decode(&machine); err != nil {
		t.Fatal(err)
	}
	return machine
}

// The definition says of each task what happens when it fails, and of each that waits how
// long; whatever fails, an execution gets to its end.
func TestCallLifecycle(t *testing.T) {
	machine := readASL(t, callLifecycleASL)
	// The longest call lasts 4 h; an execution that is stuck ends within a day.
	if machine.TimeoutSeconds < 5*60*60 || machine.TimeoutSeconds > 24*60*60 {
		t.Errorf("got a timeout of %d s, want more than the longest call, and a day at most", machine.TimeoutSeconds)
	}
	input := []string{"$.workspace_id", "$.call_id", "$.pickup_seconds", "$.call_seconds"}
	for name, state := range machine.States {
		t.Run(name, func(t *testing.T) {
			if state.Type != "Task" || state.Parameters.FunctionName != "${AdvanceCall}" {
				t.Errorf("got a %s of %s, want a task of advance-call", state.Type, state.Parameters.FunctionName)
			}
			payload := state.Parameters.Payload
			if payload["workspace_id.$"] != "$.workspace_id" || payload["call_id.$"] != "$.call_id" {
				t.Errorf("got payload %v, want it to name the call", payload)
			}
			switch state.Resource {
			case "arn:aws:states:::lambda:invoke.waitForTaskToken":
				if state.TimeoutSeconds == 0 && !slices.Contains(input, state.TimeoutSecondsPath) {
					t.Errorf("got a timeout at %q, want one of the input", state.TimeoutSecondsPath)
				}
				if payload["token.$"] != "$$.Task.Token" || payload["entered_at.$"] != "$$.State.EnteredTime" || payload["retry_count.$"] != "$$.State.RetryCount" || payload["await_pickup"] != (name == "AwaitPickup") {
					t.Errorf("got payload %v, want the token, when it is from, and what it awaits", payload)
				}
			case "arn:aws:states:::lambda:invoke":
				if payload["token.$"] != nil {
					t.Error("got a token, which nobody would wait for")
				}
			default:
				t.Errorf("got resource %s", state.Resource)
			}
			// What a function fails with is tried again, a few times, ever later.
			all := slices.IndexFunc(state.Retry, func(r aslRetry) bool {
				return slices.Equal(r.ErrorEquals, []string{"States.ALL"})
			})
			if all < 0 || all != len(state.Retry)-1 {
				t.Fatal("got no retry of States.ALL at the end, want one")
			}
			if r := state.Retry[all]; r.IntervalSeconds < 1 || r.BackoffRate < 1.5 || r.MaxAttempts == nil || *r.MaxAttempts < 5 || *r.MaxAttempts > 20 {
				t.Errorf("got %+v, want 5 to 20 attempts, ever later", r)
			}
			for _, r := range state.Retry[:all] {
				if name == "Finish" { // a call that isn't over yet is looked at for hours, ever more rarely
					if !slices.Equal(r.ErrorEquals, []string{"NotYet"}) || r.MaxAttempts == nil || *r.MaxAttempts < 20 || r.MaxDelaySeconds < 60 {
						t.Errorf("got %+v, want a patient retry of NotYet", r)
					}
					continue
				}
				// A timeout and NotYet have said what they have to say.
				if r.MaxAttempts == nil || *r.MaxAttempts != 0 {
					t.Errorf("got a retry of %v, want none", r.ErrorEquals)
				}
			}
			if state.End {
				if state.Next != "" || len(state.Catch) != 0 {
					t.Errorf("got next %q, %d catches; want none: the alarm and the sweep see it fail", state.Next, len(state.Catch))
				}
				return
			}
			if _, ok := machine.States[state.Next]; !ok {
				t.Errorf("got next %q, want a state", state.Next)
			}
			// The input stays, as the next states need it.
			if state.ResultPath != nil {
				t.Errorf("got result path %v, want null", state.ResultPath)
			}
			if len(state.Catch) != 1 || !slices.Equal(state.Catch[0].ErrorEquals, []string{"States.ALL"}) || state.Catch[0].ResultPath != nil {
				t.Fatalf("got catches %+v, want one of States.ALL that keeps the input", state.Catch)
			}
			if _, ok := machine.States[state.Catch[0].Next]; !ok {
				t.Errorf("got catch to %q, want a state", state.Catch[0].Next)
			}
		})
	}
	// A null that is left out means the opposite.
	if got, want := strings.Count(callLifecycleASL, `"ResultPath": null`), 2*(len(machine.States)-1); got != want {
		t.Errorf("got %d times \"ResultPath\": null, want %d: of each state but the last, and of its catch", got, want)
	}
	// No way leads back, so it ends after as many steps as there are states.
	for start := range machine.States {
		seen := map[string]bool{}
		var walk func(string)
		walk = func(name string) {
			if seen[name] {
				t.Errorf("%s leads back to %s", start, name)
				return
			}
			seen[name] = true
			state := machine.States[name]
			next := map[string]bool{}
			if state.Next != "" {
				next[state.Next] = true
			}
			for _, c := range state.Catch {
				next[c.Next] = true
			}
			for to := range next {
				walk(to)
			}
			delete(seen, name)
		}
		walk(start)
	}
	if machine.StartAt != "AwaitPickup" || !machine.States["Finish"].End {
		t.Errorf("got start %s, end of Finish %t", machine.StartAt, machine.States["Finish"].End)
	}
}

// The simulator's secret is generated, and in no output.
func TestSimulatorSecret(t *testing.T) {
	tm := prod(t)
	secrets := tm.service.of("AWS::SecretsManager::Secret")
	if len(secrets) != 1 {
		t.Fatalf("got %d secrets, want the simulator's", len(secrets))
	}
	for _, r := range secrets {
		p := as[struct {
			Name                 string
			SecretString         any
			GenerateSecretString struct{ PasswordLength int }
		}](t, r.Properties)
		if p.SecretString != nil || p.GenerateSecretString.PasswordLength < 32 {
			t.Errorf("got %+v, want a generated one of 32 characters at least", p)
		}
	}
	for name := range tm.service.Outputs {
		if strings.Contains(strings.ToLower(name), "secret") {
			t.Errorf("got output %s, want no secret among them", name)
		}
	}
}

// A function that a state machine calls may take as long as a recording is awaited, and
// one that a stream calls has room for a batch; the simulator waits for our callbacks.
func TestWorkersHaveTime(t *testing.T) {
	for name, atLeast := range map[string]float64{advanceCall: 115, startLifecycles: 30, sweep: 120, httpapi.CarrierCallback.Function: 12, simulateCarrier: 25, deliverWebhook: 25, retryWebhook: 25, publishEvents: 30, replyToThread: 60, advanceThread: 90} {
		if got := sizes[name].seconds; got < atLeast {
			t.Errorf("%s: got %g s, want %g at least", name, got, atLeast)
		}
	}
}
