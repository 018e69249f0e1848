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
