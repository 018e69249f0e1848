package simulator_test

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/shared/agent"
	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

const userID = "US.134912086553027419" // and two digits

func (w *world) newText(to string, source conversation.Source) carrier.Text {
	return carrier.Text{
		WorkspaceID: conversation.WorkspaceID(conversation.NewID()), MessageID: conversation.MessageID(conversation.NewID()),
		Channel: conversation.SMS, From: ours, To: to, Content: "Check-in is from 3 pm.", Source: source, CallbackURL: w.textURL,
	}
}

// text sends a text.
func (w *world) text(t carrier.Text) carrier.Text {
	w.t.Helper()
	if id, err := w.us.SendMessage(w.t.Context(), t); err != nil || id != "sim-"+string(t.MessageID) {
		w.t.Fatalf("SendMessage = %q, %v; want sim-%s", id, err, t.MessageID)
	}
	return t
}

// sent is what the simulator keeps of a text.
func (w *world) sent(t carrier.Text) dynamo.SimulatorText {
	w.t.Helper()
	stored, err := w.store.SimulatorText(w.t.Context(), t.WorkspaceID, "sim-"+string(t.MessageID))
	if err != nil {
		w.t.Fatal(err)
	}
	return stored
}

// said are the receipts, and what customers wrote.
func (w *world) said() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := []string{}
	for _, c := range w.texts {
		said = append(said, string(c.Status)+c.Content)
	}
	return said
}

// Each row of the table, by number and by user id, in our pace and sixty times as fast.
func TestTextScenarios(t *testing.T) {
	const (
		thanks  = "Thank you, that answers it. Perfect."
		unhappy = "That did not answer my question."
	)
	reply, followUp, tool := conversation.SourceInbound, conversation.SourceEvaluationFollowUp, conversation.SourceVoiceTool
	delivered := []string{"sent", "delivered"}
	tests := []struct {
		digits string
		source conversation.Source
		want   []string
	}{
		{"01", reply, delivered},
		{"01", followUp, delivered},
		{"02", reply, []string{"failed"}},
		{"02", followUp, []string{"failed"}},
		{"05", reply, delivered},
		{"05", followUp, []string{"sent", "delivered", thanks}},
		{"06", reply, delivered},
		{"06", followUp, []string{"sent", "delivered", "STOP"}},
		{"08", reply, []string{"delivered", "delivered", "sent", "sent"}},
		{"12", reply, []string{"sent", "delivered", unhappy}},
		{"12", conversation.SourceTest, []string{"sent", "delivered", unhappy}},
		{"12", followUp, delivered},
		{"12", tool, delivered},
		{"13", tool, delivered},
		{"50", followUp, delivered},
	}
	for _, tt := range tests {
		for name, scale := range map[string]int{"": 1, ", fast": 60} {
			for _, to := range []string{customer + tt.digits, userID + tt.digits} {
				t.Run(fmt.Sprintf("%s to %s%s", tt.source, to, name), func(t *testing.T) {
					w := newWorld(t, scale)
					text := w.newText(to, tt.source)
					text.Channel, text.Test = conversation.WhatsApp, tt.source == conversation.SourceTest
					w.text(text)
					w.run()
					if got := w.said(); !slices.Equal(got, tt.want) {
						t.Errorf("callbacks = %q, want %q", got, tt.want)
					}
					for _, c := range w.texts {
						receipt := c.Event == carrier.EventReceipt && c.CarrierID == "sim-"+string(text.MessageID) && c.MessageID == text.MessageID
						answer := c.Event == carrier.EventMessage && c.CarrierID == "sim-"+string(text.MessageID)+"-answer" &&
							c.From == text.To && c.To == text.From && c.Channel == text.Channel && c.Test == text.Test
						if !receipt && !answer {
							t.Errorf("callback = %+v, want a receipt of the text or an answer to it", c)
						}
					}
					if got := w.sent(text).Sends; got != 1 {
						t.Errorf("asked for %d times, want once", got)
					}
				})
			}
		}
	}
}

// 03: nobody knows whether the text was sent, and no receipt comes.
func TestTextWhoseSendingHangs(t *testing.T) {
	w := newWorld(t, 1)
	w.sim.Hang = time.Minute
	w.us.PlaceTimeout = time.Second
	text := w.newText(customer+"03", conversation.SourceInbound)
	if id, err := w.us.SendMessage(t.Context(), text); err == nil || errors.Is(err, carrier.ErrRefused) {
		t.Errorf("SendMessage = %q, %v; want no answer", id, err)
	}
	w.run()
	if got := w.said(); len(got) != 0 {
		t.Errorf("callbacks = %q, want none", got)
	}
	if got := w.sent(text).Sends; got != 1 {
		t.Errorf("asked for %d times, want once", got)
	}
}

// 04: the carrier turns the text down, and keeps nothing of it.
func TestTextThatIsRefused(t *testing.T) {
	w := newWorld(t, 1)
	text := w.newText(customer+"04", conversation.SourceInbound)
	if id, err := w.us.SendMessage(t.Context(), text); !errors.Is(err, carrier.ErrRefused) {
		t.Errorf("SendMessage = %q, %v; want ErrRefused", id, err)
	}
	w.run()
	if got := w.said(); len(got) != 0 {
		t.Errorf("callbacks = %q, want none", got)
	}
	if _, err := w.store.SimulatorText(t.Context(), text.WorkspaceID, "sim-"+string(text.MessageID)); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("SimulatorText = %v, want ErrNotFound", err)
	}
}

// The receipts and the answer come in their time, by the simulator's clock.
func TestTextPace(t *testing.T) {
	w := newWorld(t, 1)
	text, began := w.text(w.newText(customer+"05", conversation.SourceEvaluationFollowUp)), w.clock()
	w.run()
	var after []time.Duration
	for _, c := range w.texts {
		after = append(after, c.At.Sub(began))
	}
	if want := []time.Duration{time.Second, time.Second, 4 * time.Second}; !slices.Equal(after, want) {
		t.Errorf("text %s: callbacks of %v, want %v", text.MessageID, after, want)
	}
}

// What the customers say is what the agent grades by.
func TestCustomersAreContentOrNot(t *testing.T) {
	criteria := []conversation.Criterion{{EvaluationID: "e", Title: "Answered", Instructions: "It was answered.", Enabled: true, Recoverable: true}}
	for digits, want := range map[string]conversation.Verdict{"05": conversation.Pass, "12": conversation.Fail} {
		w := newWorld(t, 60)
		source := conversation.SourceInbound
		if digits == "05" {
			source = conversation.SourceEvaluationFollowUp
		}
		w.text(w.newText(customer+digits, source))
		w.run()
		said := agent.Conversation{Turns: []conversation.Turn{
			{Role: conversation.RoleUser, Content: "That doesn't help."},
			{Role: conversation.RoleUser, Content: w.said()[2]},
		}}
		got, err := agent.Scripted{}.Evaluate(t.Context(), said, criteria)
		if err != nil || got[0].Result != want {
			t.Errorf("%s: evaluations = %+v, %v; want %s", digits, got, err, want)
		}
	}
}

// 12 complains once a day, in each conversation.
func TestComplaintOnceADay(t *testing.T) {
	w := newWorld(t, 60)
	first := w.newText(customer+"12", conversation.SourceInbound)
	complaints := func(change func(*carrier.Text)) int {
		t.Helper()
		text := first
		text.MessageID = conversation.MessageID(conversation.NewID())
		change(&text)
		w.texts = nil
		w.text(text)
		w.run()
		return len(w.texts) - 2
	}
	tests := []struct {
		name   string
		change func(*carrier.Text)
		want   int
	}{
		{"the first reply", func(*carrier.Text) {}, 1},
		{"the second", func(*carrier.Text) {}, 0},
		{"in a test conversation", func(x *carrier.Text) { x.Test = true }, 1},
		{"on another channel", func(x *carrier.Text) { x.Channel = conversation.WhatsApp }, 1},
		{"from another number", func(x *carrier.Text) { x.From = "+12025550151" }, 1},
		{"to another customer", func(x *carrier.Text) { x.To = "+12025550212" }, 1},
		{"in another workspace", func(x *carrier.Text) { x.WorkspaceID = "another" }, 1},
		{"the third", func(*carrier.Text) {}, 0},
	}
	for _, tt := range tests {
		if got := complaints(tt.change); got != tt.want {
			t.Errorf("%s: %d complaints, want %d", tt.name, got, tt.want)
		}
	}
	w.pass(24 * time.Hour)
	if got := complaints(func(*carrier.Text) {}); got != 1 {
		t.Errorf("a day later: %d complaints, want 1", got)
	}
}

// A customer writes: the text comes as they wrote it, once it was asked for.
func TestWrite(t *testing.T) {
	long := strings.Repeat("\x01", 10_000)
	tests := map[string]struct {
		from    string
		channel conversation.Channel
		content string
		media   int
		test    bool
	}{
		"sms":             {customer + "50", conversation.SMS, " Hello?\n", 0, false},
		"a test":          {customer + "50", conversation.SMS, "Hello?", 0, true},
		"media alone":     {userID + "50", conversation.WhatsApp, "", 3, false},
		"nothing at all":  {customer + "50", conversation.WhatsApp, "", 0, false},
		"no scenario":     {customer + "04", conversation.SMS, "Hello?", 0, false},
		"the largest one": {customer + "12", conversation.SMS, long, 10, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 60)
			text := w.newText(ours, "")
			text.MessageID, text.From, text.Channel, text.Content = "", tt.from, tt.channel, tt.content
			id, err := w.us.Write(t.Context(), text, tt.media, tt.test)
			if err != nil || !strings.HasPrefix(id, "sim-") {
				t.Fatalf("Write = %q, %v; want an id of the simulator's", id, err)
			}
			written := w.clock()
			w.pass(time.Minute)
			w.run()
			want := []carrier.MessageCallback{{
				Event: carrier.EventMessage, CarrierID: id, At: written, Channel: tt.channel,
				From: tt.from, To: ours, Content: tt.content, MediaCount: tt.media, Test: tt.test,
			}}
			if !slices.Equal(w.texts, want) {
				t.Errorf("callbacks = %+v, want %+v", w.texts, want)
			}
			if again, err := w.us.Write(t.Context(), text, tt.media, tt.test); err != nil || again == id {
				t.Errorf("Write again = %q, %v; want another id", again, err)
			}
		})
	}
}

// Asked twice for the same text, the simulator counts that, and there is one.
func TestTextAskedForTwice(t *testing.T) {
	w := newWorld(t, 60)
	text := w.text(w.newText(customer+"05", conversation.SourceEvaluationFollowUp))
	w.text(text)
	w.run()
	if got := w.sent(text).Sends; got != 2 {
		t.Errorf("asked for %d times, want twice", got)
	}
	ids := map[string]bool{}
	for _, c := range w.texts {
		ids[c.CarrierID] = true
	}
	if want := map[string]bool{"sim-" + string(text.MessageID): true, "sim-" + string(text.MessageID) + "-answer": true}; !reflect.DeepEqual(ids, want) {
		t.Errorf("ids = %v, want %v", ids, want)
	}
}

// A step that comes twice, or again when all is over, makes nothing new: the ids, and what
// they say, stay the same.
func TestDoubledTextSteps(t *testing.T) {
	for _, digits := range []string{"02", "05", "06", "08", "12", "50"} {
		t.Run(digits, func(t *testing.T) {
			w := newWorld(t, 60)
			source := conversation.SourceEvaluationFollowUp
			if digits == "12" {
				source = conversation.SourceInbound
			}
			text := w.text(w.newText(customer+digits, source))
			var played []string
			for len(w.queue) > 0 {
				w.queue = append(w.queue, w.queue[0]) // comes again at once
				played = append(played, w.queue[0].body)
				for range 2 {
					w.step()
				}
				w.queue = slices.CompactFunc(w.queue, func(a, b queued) bool { return a.body == b.body })
			}
			before, stored := distinct(w.texts), w.sent(text)
			for _, body := range played {
				if err := w.sim.Step(t.Context(), body); err != nil {
					t.Error(err)
				}
			}
			w.run()
			if after := distinct(w.texts); !reflect.DeepEqual(after, before) {
				t.Errorf("callbacks = %v, want %v", after, before)
			}
			if after := w.sent(text); after != stored {
				t.Errorf("record = %+v, want %+v", after, stored)
			}
		})
	}
}

// distinct are the callbacks that differ in more than their moment.
func distinct(texts []carrier.MessageCallback) map[carrier.MessageCallback]bool {
	all := map[carrier.MessageCallback]bool{}
	for _, c := range texts {
		c.At = time.Time{}
		all[c] = true
	}
	return all
}

// A step reaches three functions at once: the customer complains in one text.
func TestTextStepsAtOnce(t *testing.T) {
	w := newWorld(t, 60)
	text := w.text(w.newText(customer+"12", conversation.SourceInbound))
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
	if got := distinct(w.texts); len(got) != 3 {
		t.Errorf("text %s: callbacks = %v, want sent, delivered and one answer", text.MessageID, got)
	}
}

// What can't be reported, or queued, now is later.
func TestTextEndpointAndQueueFail(t *testing.T) {
	for name, status := range map[string]int{"fails": 500, "refuses": 404, "redirects": 307, "hangs": 0} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 60)
			w.sim.HTTP.Timeout = 50 * time.Millisecond
			w.text(w.newText(customer+"06", conversation.SourceEvaluationFollowUp))
			asked := 0
			w.endpoint = func() int {
				if asked++; asked%2 == 1 {
					return status
				}
				return http.StatusOK
			}
			w.run()
			if got, want := w.said(), []string{"sent", "delivered", "STOP"}; !slices.Equal(got, want) || asked != 6 {
				t.Errorf("callbacks = %q of %d, want %q, each at the second attempt", got, asked, want)
			}
		})
	}
	w := newWorld(t, 60)
	w.queueFails = func() bool { return true }
	if id, err := w.us.SendMessage(t.Context(), w.newText(customer+"50", conversation.SourceInbound)); err == nil || errors.Is(err, carrier.ErrRefused) {
		t.Errorf("SendMessage without a queue = %q, %v; want no answer", id, err)
	}
}

// What is left of a text's steps after a day does nothing.
func TestTextIsForgotten(t *testing.T) {
	w := newWorld(t, 1)
	text := w.text(w.newText(customer+"05", conversation.SourceEvaluationFollowUp))
	w.step()
	w.pass(24 * time.Hour)
	w.run()
	if got := w.said(); !slices.Equal(got, []string{"sent"}) {
		t.Errorf("callbacks = %q, want what came before", got)
	}
	if _, err := w.store.SimulatorText(t.Context(), text.WorkspaceID, "sim-"+string(text.MessageID)); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("SimulatorText = %v, want ErrNotFound", err)
	}
}

func TestTextIsChecked(t *testing.T) {
	tests := map[string]func(*carrier.SimulatorRequest){
		"no text":                        func(r *carrier.SimulatorRequest) { r.Text = nil },
		"no workspace":                   func(r *carrier.SimulatorRequest) { r.Text.WorkspaceID = "" },
		"no message":                     func(r *carrier.SimulatorRequest) { r.Text.MessageID = "" },
		"an endless id":                  func(r *carrier.SimulatorRequest) { r.Text.MessageID = conversation.MessageID(strings.Repeat("x", 129)) },
		"no channel":                     func(r *carrier.SimulatorRequest) { r.Text.Channel = "" },
		"to a user id by sms":            func(r *carrier.SimulatorRequest) { r.Text.To = userID + "50" },
		"from a name":                    func(r *carrier.SimulatorRequest) { r.Text.From = "us" },
		"no address":                     func(r *carrier.SimulatorRequest) { r.Text.CallbackURL = "" },
		"blank":                          func(r *carrier.SimulatorRequest) { r.Text.Content = " \n" },
		"too long for sms":               func(r *carrier.SimulatorRequest) { r.Text.Content = strings.Repeat("é", 1601) },
		"with media":                     func(r *carrier.SimulatorRequest) { r.MediaCount = 1 },
		"written to a user id":           func(r *carrier.SimulatorRequest) { write(r); r.Text.Channel, r.Text.To = "whatsapp", userID+"50" },
		"written by a user id of no SMS": func(r *carrier.SimulatorRequest) { write(r); r.Text.From = userID + "50" },
		"written at length":              func(r *carrier.SimulatorRequest) { write(r); r.Text.Content = strings.Repeat("é", 10_001) },
		"written with less than nothing": func(r *carrier.SimulatorRequest) { write(r); r.MediaCount = -1 },
	}
	w := newWorld(t, 1)
	for name, spoil := range tests {
		text := w.newText(customer+"50", conversation.SourceInbound)
		request := carrier.SimulatorRequest{Op: carrier.OpSend, Text: &text}
		spoil(&request)
		answer, err := w.sim.Handle(t.Context(), request)
		if err != nil || answer.Status != http.StatusBadRequest || answer.Error == "" {
			t.Errorf("%s: answer = %+v, %v; want 400", name, answer, err)
		}
	}
	longest := w.newText(customer+"50", conversation.SourceInbound)
	longest.Content = strings.Repeat("é", 1600)
	w.text(longest)
}

// write makes a customer write what would have been sent to them.
func write(r *carrier.SimulatorRequest) {
	r.Op = carrier.OpWrite
	r.Text.From, r.Text.To = r.Text.To, r.Text.From
}
