package simulator_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// 13: who asks for a text gets one while they talk.
func TestTool(t *testing.T) {
	for name, scale := range map[string]int{"": 1, "fast": 60} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, scale)
			w.told.Script.Prompt = "You are the front desk. Check-in is from 3 pm."
			p := w.place("13")
			w.run()
			if got, want := w.events(), []string{"progress", "answered", "tool", "hung_up customer_hung_up"}; !slices.Equal(got, want) {
				t.Fatalf("callbacks = %v, want %v", got, want)
			}
			answered, tool, hungUp := w.heard[1], w.heard[2], w.heard[3]
			if tool.CarrierID != p.CarrierID || tool.ToolID == "" || tool.Text == "" {
				t.Errorf("tool = %+v, want a text and an id", tool)
			}
			if !tool.At.After(answered.At) || !tool.At.Before(hungUp.At) {
				t.Errorf("the tool was used at %v, want between %v and %v", tool.At, answered.At, hungUp.At)
			}
			if got := w.state(p.Ref); got.Phase != carrier.Over || len(got.Transcript) != 7 {
				t.Errorf("state = %s, %d turns; want over, 7", got.Phase, len(got.Transcript))
			}
		})
	}
}

// Only who asks for a text gets one: the same call to another number has no tool.
func TestNoTool(t *testing.T) {
	w := newWorld(t, 60)
	w.place("50")
	w.run()
	if slices.Contains(w.events(), "tool") {
		t.Errorf("callbacks = %v, want no tool", w.events())
	}
}

// The text is no longer than what can be sent, however long the prompt's sentences are.
func TestToolsTextFits(t *testing.T) {
	w := newWorld(t, 60)
	w.told.Script.Prompt = "We can text you that: " + strings.Repeat("👋", 250_000)
	w.place("13")
	w.run()
	for _, c := range w.heard {
		if c.Event == carrier.EventTool && len([]rune(c.Text)) > carrier.MaxText(conversation.SMS) {
			t.Errorf("the text has %d characters, want %d at most", len([]rune(c.Text)), carrier.MaxText(conversation.SMS))
		}
	}
	if !slices.Contains(w.events(), "tool") {
		t.Errorf("callbacks = %v, want a tool", w.events())
	}
}

// Each step twice, and an endpoint that fails at first: one tool id, and the call ends.
func TestToolTwice(t *testing.T) {
	w := newWorld(t, 60)
	failed := false
	w.endpoint = func() int {
		if len(w.heard) == 2 && !failed { // the tool's first attempt
			failed = true
			return 500
		}
		return 200
	}
	p := w.place("13")
	for len(w.queue) > 0 {
		w.queue = append(w.queue, w.queue[0])
		for range 2 {
			w.step()
		}
		w.queue = slices.CompactFunc(w.queue, func(a, b queued) bool { return a.body == b.body })
	}
	ids := map[string]bool{}
	for _, c := range w.heard {
		if c.Event == carrier.EventTool {
			ids[c.ToolID+c.Text] = true
		}
	}
	if len(ids) != 1 {
		t.Errorf("tools = %v, want one", ids)
	}
	if got := w.state(p.Ref); got.Phase != carrier.Over || got.Reason != conversation.EndCustomerHungUp {
		t.Errorf("state = %s, %s; want over, customer_hung_up", got.Phase, got.Reason)
	}
}

// Who asks for two texts gets both before anybody hangs up, in their order.
func TestTwoTools(t *testing.T) {
	w := newWorld(t, 60)
	p := w.place("13")
	for !slices.Contains(w.events(), "answered") {
		w.step()
	}
	_, err := w.store.ChangeSimulatorCall(t.Context(), p.WorkspaceID, p.CarrierID, func(c *dynamo.SimulatorCall) bool {
		c.Tools = append(c.Tools, dynamo.SimulatorTool{After: c.Tools[0].After + time.Second, Text: "And the second."})
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	w.run()
	if got, want := w.events(), []string{"progress", "answered", "tool", "tool", "hung_up customer_hung_up"}; !slices.Equal(got, want) {
		t.Fatalf("callbacks = %v, want %v", got, want)
	}
	if first, second := w.heard[2], w.heard[3]; first.ToolID == second.ToolID || second.Text != "And the second." || !first.At.Before(second.At) {
		t.Errorf("tools = %+v, %+v; want two", first, second)
	}
}

// What a call that is cut short hadn't come to is not asked for: by us, or by the
// carrier's limit.
func TestToolOfACallThatIsCutShort(t *testing.T) {
	w := newWorld(t, 1)
	p := w.place("13")
	for !slices.Contains(w.events(), "answered") {
		w.step()
	}
	w.pass(time.Second)
	if err := w.us.EndCall(t.Context(), p.Ref, conversation.EndCanceled); err != nil {
		t.Fatal(err)
	}
	w.run()
	if got, want := w.events(), []string{"progress", "answered", "hung_up canceled"}; !slices.Equal(got, want) {
		t.Errorf("callbacks = %v, want %v", got, want)
	}

	w = newWorld(t, 1)
	p = w.placement("13")
	p.MaxDuration = 3 * time.Second
	if _, err := w.us.PlaceCall(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.run()
	if got, want := w.events(), []string{"progress", "answered", "hung_up max_duration"}; !slices.Equal(got, want) {
		t.Errorf("callbacks = %v, want %v", got, want)
	}
}
