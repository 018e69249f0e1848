package lifecycle

import (
	"time"

	"parley/shared/conversation"
)

// Durations of a call's and a text conversation's life, before they are scaled.
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
	// partsTimeout is how long all parts of a call's aftermath may take, and isn't scaled:
	// recordingTimeout, or two parts of a grading with their pauses (64 s), and some seconds to
	// copy the audio. The follow-up that comes next takes the agent 32 s and the carrier 8, so
	// all of it fits into the 120 s of advance-call.
	partsTimeout = 70 * time.Second
	// patience is how long the sweep leaves a call or a text conversation alone after each of
	// its changes.
	patience = 5 * time.Minute

	// turnTimeout is how long a turn's reply and marks may take: by then the queue has handed
	// out an item three times, unless the stage is scaled. What is older has died.
	turnTimeout = 5 * time.Minute
	// minTurnTimeout exceeds the life of the function that replies, however the stage is
	// scaled: whoever claimed a turn that long ago has sent its reply, or never will.
	minTurnTimeout = 100 * time.Second
	// firstTurn is how long after a conversation's first message it has its reply, as a rule,
	// and minFirstTurn how long however the stage is scaled, as agents and carriers aren't.
	firstTurn    = 30 * time.Second
	minFirstTurn = 3 * time.Second
	// turnPause is how long a conversation is left alone in which a turn is under way.
	turnPause = 30 * time.Second
	// indexPause is how long a thread's index is left alone that doesn't show all of its
	// messages yet, and indexTimeout when that becomes an error. They are DynamoDB's, and
	// aren't scaled.
	indexPause   = 5 * time.Second
	indexTimeout = 10 * time.Minute
	// thinkTimeout is how long the agent has for one part of a grading, each of thinkTries
	// times.
	thinkTimeout = 10 * time.Second
	thinkTries   = 3
	// outcomesTimeout is how long it has for all calls that a conversation follows up.
	outcomesTimeout = 30 * time.Second
)

// TurnVisibility is how long after it was taken from the queue of turns, or of marks, an item
// that failed comes again. It exceeds the timeout of the function that replies, as AWS asks
// for, by little: a turn is to be tried again before it is taken for dead.
const TurnVisibility = 100 * time.Second

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

// Turn is how old a turn's reply or mark is before it has died.
func (s Scale) Turn() time.Duration { return max(s.Of(turnTimeout), minTurnTimeout) }

// Inactivity is how long a text conversation is quiet before it is over.
func (s Scale) Inactivity(ws conversation.Workspace) time.Duration {
	return s.Of(time.Duration(ws.InactivitySeconds) * time.Second)
}

// FirstLook is how long after its first message a text conversation is looked at: when it is
// over if it has only the assistant's reply, which takes about firstTurn.
func (s Scale) FirstLook(ws conversation.Workspace) time.Duration {
	return s.Inactivity(ws) + max(s.Of(firstTurn), minFirstTurn)
}
