package lifecycle

import (
	"time"

	"parley/shared/conversation"
)

// Durations of a call's life, before they are scaled.
const (
	// pickupTimeout is how long a call may stay queued.
	pickupTimeout = 2 * time.Minute
	// minPickupTimeout exceeds the timeout of the function that places calls, however the
	// stage is scaled: until that has ended, nobody may take a call for one that the
	// carrier doesn't know.
	minPickupTimeout = 20 * time.Second
	// giveUp is how long after its start a call waits for a carrier that can't be asked. Lists
	// by ended_at count on it being less than conversation.CallSpan.
	giveUp = conversation.MaxCallDuration + time.Hour
	// recordingTimeout is how long a call's audio is awaited.
	recordingTimeout = time.Minute
	// patience is how long the sweep leaves a call alone after each of its changes.
	patience = 5 * time.Minute
)

// Scale divides long durations, so that a stage for trying things out is quick. The zero
// value divides nothing.
type Scale int

// Of is d scaled, rounded up to a whole second.
func (s Scale) Of(d time.Duration) time.Duration {
	scaled := (d + time.Duration(max(1, s)) - 1) / time.Duration(max(1, s))
	return (scaled + time.Second - 1).Truncate(time.Second)
}

// Pickup is how long a call may stay queued.
func (s Scale) Pickup() time.Duration { return max(s.Of(pickupTimeout), minPickupTimeout) }

// Longest is how long a call may last from when dialling began.
func (s Scale) Longest(seconds int) time.Duration { return s.Of(time.Duration(seconds) * time.Second) }
