package dynamo_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/dynamo/dynamotest"
)

func simulatorCall(now time.Time) dynamo.SimulatorCall {
	return dynamo.SimulatorCall{
		CarrierID: "sim-1", WorkspaceID: conversation.WorkspaceID(conversation.NewID()), CallID: "1",
		From: "+12025550101", To: "+12025550102", CallbackURL: "https://api.example.com/carriers/simulator/w/1",
		MaxDuration: time.Hour, PlacedAt: conversation.At(now), Placements: 1, Phase: "dialling",
	}
}

func TestSimulatorCall(t *testing.T) {
	now := time.Now()
	s := clockAt(dynamotest.Store(t), now)
	call := simulatorCall(now)
	if _, err := s.SimulatorCall(t.Context(), call.WorkspaceID, call.CarrierID); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("before it is written: %v, want ErrNotFound", err)
	}
	if isNew, err := s.InsertSimulatorCall(t.Context(), call); !isNew || err != nil {
		t.Fatalf("InsertSimulatorCall = %v, %v; want a new one", isNew, err)
	}
	if isNew, err := s.InsertSimulatorCall(t.Context(), call); isNew || err != nil {
		t.Errorf("InsertSimulatorCall again = %v, %v; want an old one", isNew, err)
	}
	answered := func(c *dynamo.SimulatorCall) bool {
		c.Phase, c.AnsweredAt, c.TalkTime = "talking", conversation.At(now), 7*time.Second
		// The largest greeting of a legal call: 50 variables of 5,000 characters of 4 bytes.
		c.Tools = []dynamo.SimulatorTool{{After: time.Second, Text: "👋"}}
		c.Transcript = []conversation.Turn{{Role: conversation.RoleAssistant, Content: strings.Repeat("👋", 50*5000)}}
		return true
	}
	changed, err := s.ChangeSimulatorCall(t.Context(), call.WorkspaceID, call.CarrierID, answered)
	if err != nil {
		t.Fatal(err)
	}
	answered(&call)
	call.Version = 2
	got, err := s.SimulatorCall(t.Context(), call.WorkspaceID, call.CarrierID)
	if err != nil || !cmp.Equal(got, call) || !cmp.Equal(changed, call) {
		t.Errorf("call = %+v, %v; want %+v", got, err, call)
	}
	unchanged, err := s.ChangeSimulatorCall(t.Context(), call.WorkspaceID, call.CarrierID, func(*dynamo.SimulatorCall) bool { return false })
	if err != nil || unchanged.Version != 2 {
		t.Errorf("nothing to write: version %d, %v; want 2", unchanged.Version, err)
	}
	other := conversation.WorkspaceID(conversation.NewID())
	if _, err := s.SimulatorCall(t.Context(), other, call.CarrierID); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("of another workspace: %v, want ErrNotFound", err)
	}
	later := clockAt(s, now.Add(25*time.Hour))
	if _, err := later.SimulatorCall(t.Context(), call.WorkspaceID, call.CarrierID); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("a day later: %v, want ErrNotFound", err)
	}
	if _, err := later.ChangeSimulatorCall(t.Context(), call.WorkspaceID, call.CarrierID, answered); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("changed a day later: %v, want ErrNotFound", err)
	}
}

// No change is lost although several happen at once.
func TestChangeSimulatorCallAtOnce(t *testing.T) {
	now := time.Now()
	s := clockAt(dynamotest.Store(t), now)
	call := simulatorCall(now)
	if _, err := s.InsertSimulatorCall(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			_, err := s.ChangeSimulatorCall(t.Context(), call.WorkspaceID, call.CarrierID, func(c *dynamo.SimulatorCall) bool {
				c.Placements++
				return true
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	got, err := s.SimulatorCall(t.Context(), call.WorkspaceID, call.CarrierID)
	if err != nil || got.Placements != 7 || got.Version != 7 {
		t.Errorf("placements %d in version %d, %v; want 7 in 7", got.Placements, got.Version, err)
	}
}

func simulatorText(now time.Time) dynamo.SimulatorText {
	return dynamo.SimulatorText{
		CarrierID: "sim-1", WorkspaceID: conversation.WorkspaceID(conversation.NewID()), MessageID: "1", IsTest: true,
		Channel: conversation.WhatsApp, From: "+12025550101", To: "US.13491208655302741918", Content: "👋", MediaCount: 1,
		Source: conversation.SourceInbound, CallbackURL: "https://api.example.com/carriers/simulator/w", SentAt: conversation.At(now),
	}
}

// A text is what it was when it was first sent, and lives for a day.
func TestSimulatorText(t *testing.T) {
	now := time.Now()
	s := clockAt(dynamotest.Store(t), now)
	text := simulatorText(now)
	if _, err := s.SimulatorText(t.Context(), text.WorkspaceID, text.CarrierID); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("before it is sent: %v, want ErrNotFound", err)
	}
	want := text
	want.Sends = 1
	if got, err := s.SendSimulatorText(t.Context(), text); err != nil || got != want {
		t.Errorf("sent = %+v, %v; want %+v", got, err, want)
	}
	other := text
	other.Content, other.SentAt = "changed", conversation.At(now.Add(time.Hour))
	want.Sends = 2
	if got, err := s.SendSimulatorText(t.Context(), other); err != nil || got != want {
		t.Errorf("sent again = %+v, %v; want %+v", got, err, want)
	}
	if got, err := s.SimulatorText(t.Context(), text.WorkspaceID, text.CarrierID); err != nil || got != want {
		t.Errorf("text = %+v, %v; want %+v", got, err, want)
	}
	if _, err := s.SimulatorText(t.Context(), conversation.WorkspaceID(conversation.NewID()), text.CarrierID); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("of another workspace: %v, want ErrNotFound", err)
	}
	later := clockAt(s, now.Add(25*time.Hour))
	if _, err := later.SimulatorText(t.Context(), text.WorkspaceID, text.CarrierID); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("a day later: %v, want ErrNotFound", err)
	}
	if got, err := later.SendSimulatorText(t.Context(), other); err != nil || got.Sends != 1 || got.Content != "changed" {
		t.Errorf("sent a day later = %+v, %v; want a new one", got, err)
	}
}

// No request is lost in the count although several come at once.
func TestSendSimulatorTextAtOnce(t *testing.T) {
	now := time.Now()
	s := clockAt(dynamotest.Store(t), now)
	text := simulatorText(now)
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			if _, err := s.SendSimulatorText(t.Context(), text); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got, err := s.SimulatorText(t.Context(), text.WorkspaceID, text.CarrierID); err != nil || got.Sends != 6 {
		t.Errorf("asked for %d times, %v; want 6", got.Sends, err)
	}
}

func TestSimulatorFirst(t *testing.T) {
	now := time.Now()
	s := clockAt(dynamotest.Store(t), now)
	ws, other := conversation.WorkspaceID(conversation.NewID()), conversation.WorkspaceID(conversation.NewID())
	for _, tt := range []struct {
		name string
		at   time.Duration
		ws   conversation.WorkspaceID
		what string
		who  string
		want bool
	}{
		{"the first", 0, ws, "complain", "a", true},
		{"the same", 0, ws, "complain", "a", true},
		{"the second", 0, ws, "complain", "b", false},
		{"of something else", 0, ws, "praise", "b", true},
		{"of another workspace", 0, other, "complain", "b", true},
		{"the second, late", 23 * time.Hour, ws, "complain", "b", false},
		{"a day later", 24 * time.Hour, ws, "complain", "b", true},
		{"who was first then", 25 * time.Hour, ws, "complain", "a", false},
	} {
		got, err := clockAt(s, now.Add(tt.at)).SimulatorFirst(t.Context(), tt.ws, tt.what, tt.who)
		if err != nil || got != tt.want {
			t.Errorf("%s: SimulatorFirst = %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}

	var group sync.WaitGroup
	firsts := make([]bool, 6)
	for i := range firsts {
		group.Go(func() {
			var err error
			if firsts[i], err = s.SimulatorFirst(t.Context(), ws, "at once", string(rune('a'+i))); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	n := 0
	for _, first := range firsts {
		if first {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d were first at once, want one", n)
	}
}
