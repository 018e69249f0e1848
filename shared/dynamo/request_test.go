package dynamo_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/dynamo/dynamotest"
)

// clockAt makes a store's clock stand still.
func clockAt(s *dynamo.Store, now time.Time) *dynamo.Store {
	return s.WithClock(func() time.Time { return now })
}

func TestCountRequest(t *testing.T) {
	s := dynamotest.Store(t)
	ws := conversation.WorkspaceID(conversation.NewID())
	start := time.Now().UTC().Truncate(time.Hour).Add(30 * time.Minute)
	steps := []struct {
		at       time.Duration // after start
		admitted bool
		inHour   int
		inSecond int
	}{
		{0, true, 1, 1},
		{0, true, 2, 2},
		{0, false, 2, 2},                // two a second
		{time.Second, true, 3, 1},       // the next second
		{0, true, 4, 2},                 // a clock that is behind counts in the newest second
		{0, false, 4, 2},                // and is held to its limit
		{9 * time.Second, true, 5, 1},   // five an hour
		{20 * time.Second, false, 5, 1}, // none is left in this hour
		{30 * time.Minute, true, 1, 1},  // the next hour
	}
	var last dynamo.Requests
	for i, step := range steps {
		got, admitted, err := clockAt(s, start.Add(step.at)).CountRequest(t.Context(), ws, "caller", 5, 2, last)
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if admitted != step.admitted || got.InHour != step.inHour || got.InSecond != step.inSecond {
			t.Errorf("step %d: admitted %v, %d in the hour, %d in the second; want %v, %d, %d",
				i, admitted, got.InHour, got.InSecond, step.admitted, step.inHour, step.inSecond)
		}
		last = got
	}
}

// The limits are exact although two functions count at once.
func TestCountRequestIsExact(t *testing.T) {
	s := clockAt(dynamotest.Store(t), time.Now().UTC().Truncate(time.Second))
	tests := map[string]struct{ perHour, perSecond, want int }{
		"hour":   {perHour: 30, perSecond: 1000, want: 30},
		"second": {perHour: 1000, perSecond: 20, want: 20},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ws := conversation.WorkspaceID(conversation.NewID())
			var admitted atomic.Int32
			var group sync.WaitGroup
			for range 2 {
				group.Go(func() {
					var last dynamo.Requests
					for range 25 {
						got, ok, err := s.CountRequest(t.Context(), ws, "caller", tt.perHour, tt.perSecond, last)
						if err != nil {
							t.Error(err)
							return
						}
						if ok {
							admitted.Add(1)
						}
						last = got
					}
				})
			}
			group.Wait()
			if int(admitted.Load()) != tt.want {
				t.Errorf("%d of 50 requests admitted, want %d", admitted.Load(), tt.want)
			}
		})
	}
}

func TestCountRequestOfOthers(t *testing.T) {
	s := clockAt(dynamotest.Store(t), time.Now().UTC().Truncate(time.Second))
	ws := conversation.WorkspaceID(conversation.NewID())
	other := conversation.WorkspaceID(conversation.NewID())
	for _, who := range []struct {
		ws     conversation.WorkspaceID
		caller string
	}{{ws, "a"}, {ws, "b"}, {other, "a"}} {
		if _, admitted, err := s.CountRequest(t.Context(), who.ws, who.caller, 1, 1, dynamo.Requests{}); err != nil || !admitted {
			t.Errorf("first request of %v: admitted %v, %v; want true", who, admitted, err)
		}
	}
}
