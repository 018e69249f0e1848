package simulator_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"parley/shared/agent"
	"parley/shared/carrier"
	"parley/shared/carrier/carriertest"
	"parley/shared/conversation"
	"parley/shared/simulator"
)

// The conversation uses what the prompt was filled with, and the agent's analysis knows
// the customer's words.
func TestConversation(t *testing.T) {
	tests := map[string]struct {
		outcome conversation.Outcome
		verdict conversation.Verdict // of a recoverable criterion
	}{
		"05": {conversation.OutcomeUnknown, conversation.NotApplicable},
		"06": {conversation.OutcomeVoicemail, conversation.NotApplicable},
		"12": {conversation.OutcomeUnresolved, conversation.Fail},
		"13": {conversation.OutcomeResolved, conversation.Pass},
		"50": {conversation.OutcomeResolved, conversation.Pass},
	}
	criteria := []conversation.Criterion{{EvaluationID: "e", Title: "Answered", Instructions: "It was answered.", Enabled: true, Recoverable: true}}
	for digits, tt := range tests {
		t.Run(digits, func(t *testing.T) {
			w := newWorld(t, 1)
			w.told.Script.Greeting = "Good day Ms Ito, this is Harbour Hotel."
			w.told.Script.Prompt = "You are the front desk. The guest is in room 417. Check-in is from 3 pm."
			p := w.place(digits)
			w.run()
			said := agent.Conversation{Turns: w.state(p.Ref).Transcript}
			if said.Turns[0].Content != w.told.Script.Greeting {
				t.Errorf("greeting = %q, want %q", said.Turns[0].Content, w.told.Script.Greeting)
			}
			analysis, err := agent.Scripted{}.Analyse(t.Context(), said)
			if err != nil || analysis.Outcome != tt.outcome {
				t.Errorf("analysis = %+v, %v; want %s", analysis, err, tt.outcome)
			}
			evaluations, err := agent.Scripted{}.Evaluate(t.Context(), said, criteria)
			if err != nil || evaluations[0].Result != tt.verdict {
				t.Errorf("evaluations = %+v, %v; want %s", evaluations, err, tt.verdict)
			}
			if digits == "50" && (said.Turns[2].Content != "The guest is in room 417." || said.Turns[4].Content != "Check-in is from 3 pm.") {
				t.Errorf("transcript = %v, want the prompt's room and check-in", said.Turns)
			}
		})
	}
}

// A message that comes twice changes nothing, nor does a whole call's.
func TestDoubledMessages(t *testing.T) {
	for _, digits := range []string{"01", "05", "08", "09", "13", "50"} {
		t.Run(digits, func(t *testing.T) {
			w := newWorld(t, 60)
			p := w.place(digits)
			var played []string
			for len(w.queue) > 0 {
				w.queue = append(w.queue, queued{w.queue[0].due, w.queue[0].body}) // comes again at once
				played = append(played, w.queue[0].body)
				for range 2 {
					w.step()
				}
				w.queue = slices.CompactFunc(w.queue, func(a, b queued) bool { return a.body == b.body })
			}
			before := w.record(p)
			for _, body := range played {
				if err := w.sim.Step(t.Context(), body); err != nil {
					t.Error(err)
				}
			}
			w.run()
			if after := w.record(p); !reflect.DeepEqual(after, before) {
				t.Errorf("record = %+v, want %+v", after, before)
			}
		})
	}
}

// Each message reaches three functions at once, and each change is written once.
func TestMessagesAtOnce(t *testing.T) {
	w := newWorld(t, 60)
	p := w.place("50")
	for len(w.queue) > 0 {
		body := w.queue[0].body
		w.pass(w.queue[0].due.Sub(w.clock()))
		w.queue = nil
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				if err := w.sim.Step(t.Context(), body); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
	if call := w.record(p); call.Phase != string(carrier.Over) || call.Version != 3 || len(call.Transcript) != 7 {
		t.Errorf("%s, %d turns, written %d times; want over, 7, 3: placed, answered, over", call.Phase, len(call.Transcript), call.Version)
	}
}

// A second placement is seen in the record, and one phone rings.
func TestPlacedTwice(t *testing.T) {
	w := newWorld(t, 1)
	p := w.place("50")
	again, err := w.us.PlaceCall(t.Context(), p)
	if err != nil || again != p.CarrierID {
		t.Errorf("PlaceCall = %q, %v; want %q", again, err, p.CarrierID)
	}
	w.run()
	if call := w.record(p); call.Placements != 2 || call.Phase != string(carrier.Over) {
		t.Errorf("placed %d times, %s; want 2, over", call.Placements, call.Phase)
	}
}

func TestPlacementIsChecked(t *testing.T) {
	tests := map[string]func(*carrier.Placement){
		"no workspace":      func(p *carrier.Placement) { p.WorkspaceID = "" },
		"no call":           func(p *carrier.Placement) { p.CallID = "" },
		"from no number":    func(p *carrier.Placement) { p.From = "us" },
		"to no number":      func(p *carrier.Placement) { p.To = "+1" },
		"no address":        func(p *carrier.Placement) { p.CallbackURL = "" },
		"a file":            func(p *carrier.Placement) { p.CallbackURL = "file:///etc/hosts" },
		"no time to talk":   func(p *carrier.Placement) { p.MaxDuration = 0 },
		"less than no time": func(p *carrier.Placement) { p.MaxDuration = -1 },
	}
	w := newWorld(t, 1)
	for name, spoil := range tests {
		p := w.placement("50")
		spoil(&p)
		answer, err := w.sim.Handle(t.Context(), carrier.SimulatorRequest{Op: carrier.OpPlace, Placement: p})
		if err != nil || answer.Status != http.StatusBadRequest || answer.Error == "" {
			t.Errorf("%s: answer = %+v, %v; want 400", name, answer, err)
		}
	}
	if answer, err := w.sim.Handle(t.Context(), carrier.SimulatorRequest{Op: "sing"}); err != nil || answer.Status != http.StatusBadRequest {
		t.Errorf("unknown operation: answer = %+v, %v; want 400", answer, err)
	}
}

// A customer rings: the same life, from the question what to do with it.
func TestRing(t *testing.T) {
	tests := map[string]struct { // digits of the customer
		events []string
		reason conversation.EndReason
	}{
		"50": {[]string{"incoming", "hung_up customer_hung_up"}, conversation.EndCustomerHungUp},
		"01": {[]string{"incoming", "hung_up customer_hung_up"}, conversation.EndCustomerHungUp}, // who rings isn't busy
		"05": {[]string{"incoming", "hung_up assistant_hung_up"}, conversation.EndAssistantHungUp},
		"11": {[]string{"incoming", "hung_up max_duration"}, conversation.EndMaxDuration},
	}
	for digits, tt := range tests {
		t.Run(digits, func(t *testing.T) {
			w := newWorld(t, 60)
			p := w.placement("")
			p.From, p.To = customer+digits, ours
			id, err := w.us.Ring(t.Context(), p, true)
			if err != nil || id != "sim-"+string(p.CallID) {
				t.Fatalf("Ring = %q, %v; want the call's id", id, err)
			}
			w.run()
			if got := w.events(); !slices.Equal(got, tt.events) {
				t.Errorf("callbacks = %v, want %v", got, tt.events)
			}
			if got := w.heard[0]; got.From != p.From || got.To != ours || !got.Test {
				t.Errorf("incoming = %+v, want a test from %s to %s", got, p.From, ours)
			}
			if got := w.state(p.Ref); got.Phase != carrier.Over || got.Reason != tt.reason {
				t.Errorf("state = %s, %s; want over, %s", got.Phase, got.Reason, tt.reason)
			}
		})
	}
}

// What can't be reported now is reported later, and the call ends as it should.
func TestEndpointFails(t *testing.T) {
	for name, status := range map[string]int{"fails": 500, "refuses": 404, "redirects": 307, "hangs": 0} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 60)
			w.sim.HTTP.Timeout = 50 * time.Millisecond
			p, asked := w.place("50"), 0
			w.endpoint = func() int {
				if asked++; asked%2 == 1 {
					return status
				}
				return http.StatusOK
			}
			w.run()
			if got, want := w.events(), []string{"progress", "answered", "hung_up customer_hung_up"}; !slices.Equal(got, want) || asked != 6 {
				t.Errorf("callbacks = %v of %d, want %v, each at the second attempt", got, asked, want)
			}
			if got := w.state(p.Ref).Phase; got != carrier.Over {
				t.Errorf("the call is %s, want over", got)
			}
		})
	}
}

// SQS fails after each step, so each is played twice. The question is asked once.
func TestQueueFails(t *testing.T) {
	w := newWorld(t, 60)
	p, sent := w.place("50"), 0
	w.queueFails = func() bool { sent++; return sent%2 == 1 }
	w.run()
	if got, want := w.events(), []string{"progress", "progress", "answered", "hung_up customer_hung_up"}; !slices.Equal(got, want) {
		t.Errorf("callbacks = %v, want %v", got, want)
	}
	if got := w.state(p.Ref).Phase; got != carrier.Over {
		t.Errorf("the call is %s, want over", got)
	}
}

// A call that can't be queued may have been placed, for all that its caller knows.
func TestPlacingFails(t *testing.T) {
	w := newWorld(t, 60)
	w.queueFails = func() bool { return true }
	if id, err := w.us.PlaceCall(t.Context(), w.placement("50")); err == nil || errors.Is(err, carrier.ErrRefused) {
		t.Errorf("PlaceCall = %q, %v; want no answer", id, err)
	}
}

// A model that nobody has can't talk.
func TestNoModel(t *testing.T) {
	w := newWorld(t, 60)
	w.told.Script.Model = "none"
	p := w.place("50")
	w.run()
	if got, want := w.events(), []string{"progress", "answered", "failed agent_unavailable"}; !slices.Equal(got, want) {
		t.Errorf("callbacks = %v, want %v", got, want)
	}
	if got := w.state(p.Ref).Phase; got != carrier.Failed {
		t.Errorf("the call is %s, want failed", got)
	}
}

// An endpoint that says neither this nor that is asked again.
func TestNoInstruction(t *testing.T) {
	w := newWorld(t, 60)
	w.told = carrier.Instruction{}
	p := w.place("50")
	for range 5 {
		w.step()
	}
	if got := w.state(p.Ref).Phase; got != carrier.Dialling {
		t.Errorf("the call is %s, want dialling", got)
	}
	w.told.Script = carriertest.Script
	w.run()
	if got := w.state(p.Ref).Phase; got != carrier.Over {
		t.Errorf("the call is %s, want over", got)
	}
}

// Of a call that is cut short remains what was said by then, and its recording.
func TestEndedHalfway(t *testing.T) {
	w := newWorld(t, 60)
	p := w.place("11")
	for !slices.Contains(w.events(), "answered") {
		w.step()
	}
	whole := w.record(p).Transcript
	if got := w.state(p.Ref); got.Phase != carrier.Talking || got.Transcript != nil {
		t.Errorf("state = %+v, want talking, with nothing to tell yet", got)
	}
	w.pass(150 * time.Millisecond) // nine seconds at that pace
	if err := w.us.EndCall(t.Context(), p.Ref, conversation.EndMaxDuration); err != nil {
		t.Fatal(err)
	}
	got := w.state(p.Ref)
	if got.DurationSeconds != 9 || len(got.Transcript) != 3 || !reflect.DeepEqual(got.Transcript, whole[:3]) {
		t.Errorf("state = %d s, %v; want 9 s, %v", got.DurationSeconds, got.Transcript, whole[:3])
	}
	if got.Recording != conversation.RecordingPending {
		t.Errorf("recording is %q, want pending", got.Recording)
	}
	if _, err := w.us.FetchRecording(t.Context(), p.Ref); err == nil || !strings.Contains(err.Error(), "pending") {
		t.Errorf("FetchRecording = %v, want that it is pending", err)
	}
	w.pass(time.Second)
	audio, err := w.us.FetchRecording(t.Context(), p.Ref)
	if want := simulator.Audio(whole[:3]); err != nil || !slices.Equal(audio, want) {
		t.Errorf("FetchRecording = %d bytes, %v; want %d", len(audio), err, len(want))
	}
	w.run() // the limit's message comes, and finds the call over
	if again := w.state(p.Ref); again.HungUpAt != got.HungUpAt {
		t.Errorf("hung up at %v, then at %v", got.HungUpAt, again.HungUpAt)
	}
}

// Who ends a call reports that, once; steps that were on their way say nothing more.
func TestEndedOnce(t *testing.T) {
	tests := map[string][]string{ // all callbacks, of which the last is the end's
		"at once":      {"failed canceled"},
		"when it rang": {"progress", "failed canceled"},
		"answered":     {"progress", "answered", "hung_up canceled"},
	}
	for name, events := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			p := w.place("50")
			for len(w.events()) < len(events)-1 {
				w.step()
			}
			w.pass(time.Millisecond)
			if err := w.us.EndCall(t.Context(), p.Ref, conversation.EndCanceled); err != nil {
				t.Fatal(err)
			}
			w.run()
			if got := w.events(); !slices.Equal(got, events) {
				t.Errorf("callbacks = %v, want %v", got, events)
			}
		})
	}
}

// The customer's line outlives its service's patience: the carrier's own limit.
func TestCarriersLimit(t *testing.T) {
	w := newWorld(t, 1)
	p := w.placement("50")
	p.MaxDuration = 10 * time.Second
	if _, err := w.us.PlaceCall(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.run()
	if got := w.state(p.Ref); got.Reason != conversation.EndMaxDuration || got.DurationSeconds != 10 {
		t.Errorf("state = %s after %d s, want max_duration after 10", got.Reason, got.DurationSeconds)
	}
}

// The largest legal call lives its whole life: 50 variables of 5,000 characters of 4 bytes,
// all in the greeting and all in the prompt.
func TestLargestCall(t *testing.T) {
	for name, variable := range map[string]string{
		"one word":   strings.Repeat("👋", 5000),
		"many words": strings.Repeat("👋 ", 2500),
		"escaped":    strings.Repeat("<\x01", 2500),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 60)
			w.told.Script.Greeting = strings.Repeat(variable, 50)
			w.told.Script.Prompt = "Your room is " + strings.Repeat(variable, 50)
			p := w.place("50")
			w.run()
			w.pass(time.Minute)
			got := w.state(p.Ref)
			if got.Phase != carrier.Over || len(got.Transcript) != 7 || got.Transcript[0].Content != w.told.Script.Greeting {
				t.Errorf("state = %s, %d turns; want over, 7, from the whole greeting", got.Phase, len(got.Transcript))
			}
			event, err := json.Marshal(carrier.SimulatorRequest{Op: carrier.OpRecording, Placement: p})
			if err != nil {
				t.Fatal(err)
			}
			answer, err := w.sim.Invoke(t.Context(), event)
			if err != nil {
				t.Fatal(err)
			}
			if size := sizeOf(t, answer); size > 6<<20 || size < 100_000 {
				t.Errorf("the recording's answer has %d bytes, want no more than Lambda's 6 MiB", size)
			}
		})
	}
}

func sizeOf(t *testing.T, answer any) int {
	t.Helper()
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}

// A batch is answered with the messages that should come again, and with a list if there
// are none.
func TestBatch(t *testing.T) {
	w := newWorld(t, 60)
	w.place("50")
	event, err := json.Marshal(events.SQSEvent{Records: []events.SQSMessage{
		{MessageId: "good", Body: w.queue[0].body}, {MessageId: "bad", Body: "{"}, {MessageId: "gone", Body: `{"part":"dial"}`},
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.pass(time.Minute)
	answer, err := w.sim.Invoke(t.Context(), event)
	want := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{{ItemIdentifier: "bad"}}}
	if err != nil || !reflect.DeepEqual(answer, want) {
		t.Errorf("Invoke = %+v, %v; want %+v", answer, err, want)
	}
	answer, err = w.sim.Invoke(t.Context(), []byte(`{"Records":[{"messageId":"gone","body":"{\"part\":\"dial\"}"}]}`))
	if err != nil || !reflect.DeepEqual(answer, events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}) {
		t.Errorf("Invoke = %+v, %v; want an empty list", answer, err)
	}
	if _, err := w.sim.Invoke(t.Context(), []byte(`[]`)); err == nil {
		t.Error("Invoke([]) succeeded")
	}
}
