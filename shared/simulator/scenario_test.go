package simulator_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"parley/shared/carrier"
	"parley/shared/conversation"
)

// Each scenario to its end, in our pace and sixty times as fast.
func TestScenarios(t *testing.T) {
	tests := map[string]struct {
		events    []string
		phase     carrier.Phase
		reason    conversation.EndReason
		turns     int
		recording conversation.RecordingStatus
	}{
		"01": {[]string{"progress", "failed busy"}, carrier.Failed, "busy", 0, ""},
		"02": {[]string{"progress", "failed no_answer"}, carrier.Failed, "no_answer", 0, ""},
		"03": {[]string{"progress", "failed rejected"}, carrier.Failed, "rejected", 0, ""},
		"05": {[]string{"progress", "answered", "hung_up assistant_hung_up"}, carrier.Over, "assistant_hung_up", 1, "absent"},
		"06": {[]string{"progress", "answered", "hung_up assistant_hung_up"}, carrier.Over, "assistant_hung_up", 3, "complete"},
		"08": {
			[]string{"answered", "hung_up customer_hung_up", "progress", "progress", "answered", "hung_up customer_hung_up", "progress"},
			carrier.Over, "customer_hung_up", 7, "complete",
		},
		"09": {[]string{"failed agent_error"}, carrier.Failed, "agent_error", 0, ""},
		"11": {[]string{"progress", "answered", "hung_up max_duration"}, carrier.Over, "max_duration", 7, "complete"},
		"12": {[]string{"progress", "answered", "hung_up customer_hung_up"}, carrier.Over, "customer_hung_up", 5, "complete"},
		"13": {[]string{"progress", "answered", "tool", "hung_up customer_hung_up"}, carrier.Over, "customer_hung_up", 7, "complete"},
		"50": {[]string{"progress", "answered", "hung_up customer_hung_up"}, carrier.Over, "customer_hung_up", 7, "complete"},
	}
	for digits, tt := range tests {
		for name, scale := range map[string]int{"": 1, ", fast": 60} {
			t.Run(digits+name, func(t *testing.T) {
				w := newWorld(t, scale)
				p := w.place(digits)
				w.run()
				w.pass(time.Minute)
				if got := w.events(); !slices.Equal(got, tt.events) {
					t.Errorf("callbacks = %v, want %v", got, tt.events)
				}
				got := w.state(p.Ref)
				if got.Phase != tt.phase || got.Reason != tt.reason || len(got.Transcript) != tt.turns || got.Recording != tt.recording {
					t.Errorf("state = %s, %s, %d turns, recording %q; want %s, %s, %d, %q",
						got.Phase, got.Reason, len(got.Transcript), got.Recording, tt.phase, tt.reason, tt.turns, tt.recording)
				}
				if len(got.Latencies) != max(0, tt.turns-1)/2 {
					t.Errorf("%d latencies, want one for each of the assistant's replies", len(got.Latencies))
				}
				if call := w.record(p); call.Placements != 1 {
					t.Errorf("placed %d times, want once", call.Placements)
				}
			})
		}
	}
}

// 07: after the answer nothing comes, and the carrier knows nothing.
func TestCallThatIsForgotten(t *testing.T) {
	w := newWorld(t, 1)
	p := w.place("07")
	w.run()
	if got, want := w.events(), []string{"progress", "answered"}; !slices.Equal(got, want) {
		t.Errorf("callbacks = %v, want %v", got, want)
	}
	if _, err := w.us.FetchCall(t.Context(), p.Ref); !errors.Is(err, carrier.ErrUnknownCall) {
		t.Errorf("FetchCall = %v, want ErrUnknownCall", err)
	}
	if err := w.us.EndCall(t.Context(), p.Ref, conversation.EndMaxDuration); err != nil {
		t.Errorf("EndCall = %v, want nil", err)
	}
}

// 10: nobody knows whether the call was placed, and the phone rings.
func TestCallWhosePlacingHangs(t *testing.T) {
	w := newWorld(t, 1)
	w.us.PlaceTimeout = 50 * time.Millisecond
	p := w.placement("10")
	if id, err := w.us.PlaceCall(t.Context(), p); err == nil || errors.Is(err, carrier.ErrRefused) {
		t.Errorf("PlaceCall = %q, %v; want no answer", id, err)
	}
	if got := w.state(p.Ref).Phase; got != carrier.Dialling {
		t.Errorf("the call is %s, want dialling", got)
	}
	w.run()
	if got := w.state(p.Ref); got.Phase != carrier.Over || got.Reason != conversation.EndCustomerHungUp {
		t.Errorf("state = %s, %s; want over, customer_hung_up", got.Phase, got.Reason)
	}
}

// 11: as SQS keeps a message for 15 minutes at most, the limit of an hour is reached in
// several.
func TestCallWithoutEnd(t *testing.T) {
	w := newWorld(t, 1)
	p := w.place("11")
	w.run()
	if got := slices.Max(w.delays); got != 900 {
		t.Errorf("the longest delay is %d s, want 900", got)
	}
	if got := w.state(p.Ref).DurationSeconds; got != 3600 {
		t.Errorf("the call lasted %d s, want an hour", got)
	}
}

// The simulator's pace is divided; what a call reports of itself is not.
func TestPace(t *testing.T) {
	for _, scale := range []int{1, 60} {
		w := newWorld(t, scale)
		began := w.clock()
		p := w.place("50")
		w.run()
		state, took := w.state(p.Ref), w.clock().Sub(began)
		if want := time.Duration(state.DurationSeconds)*time.Second/time.Duration(scale) + 5*time.Second; took > want+2*time.Second {
			t.Errorf("at %d: %v passed for a call of %d s, want about %v", scale, took, state.DurationSeconds, want)
		}
		if state.DurationSeconds < 20 || state.DurationSeconds > 60 {
			t.Errorf("at %d: the call lasted %d s, want what its words take", scale, state.DurationSeconds)
		}
	}
}
