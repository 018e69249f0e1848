package simulator

import (
	"hash/fnv"
	"slices"
	"time"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// recordingDelay is how long after the hang-up the audio is there.
const recordingDelay = 3 * time.Second

// state is what the carrier tells of a call.
func (s *Simulator) state(call dynamo.SimulatorCall) carrier.CallState {
	state := carrier.CallState{
		CarrierID: call.CarrierID, Phase: carrier.Phase(call.Phase), Reason: call.Reason, HungUpAt: call.HungUpAt,
	}
	if state.Phase == carrier.Over {
		state.DurationSeconds = int((call.TalkTime + time.Second - 1) / time.Second)
		state.Transcript = call.Transcript
		state.Latencies = latencies(call.Transcript)
		state.Recording = s.recordingStatus(call)
	}
	return state
}

// recordingStatus is absent for a call in which the customer said nothing.
func (s *Simulator) recordingStatus(call dynamo.SimulatorCall) conversation.RecordingStatus {
	switch {
	case !slices.ContainsFunc(call.Transcript, isCustomers):
		return conversation.RecordingAbsent
	case s.Now().Before(call.HungUpAt.Add(s.scaled(recordingDelay))):
		return conversation.RecordingPending
	default:
		return conversation.RecordingComplete
	}
}

func isCustomers(turn conversation.Turn) bool { return turn.Role == conversation.RoleUser }

// ending makes a call over, or failed if nobody had answered it; a call that has ended
// stays as it is. Of a conversation that is cut short, what was said by then remains.
func (s *Simulator) ending(reason conversation.EndReason, now time.Time) func(*dynamo.SimulatorCall) bool {
	return func(call *dynamo.SimulatorCall) bool {
		switch carrier.Phase(call.Phase) {
		case carrier.Dialling:
			call.Phase = string(carrier.Failed)
		case carrier.Talking:
			call.Phase = string(carrier.Over)
			if lasted := now.Sub(call.AnsweredAt.Time) * time.Duration(s.TimeScale); lasted < call.TalkTime {
				call.TalkTime = max(0, lasted)
				call.Transcript = heard(call.Transcript, lasted)
			}
		default:
			return false
		}
		call.Reason, call.HungUpAt = reason, conversation.At(now)
		return true
	}
}

// heard are the turns that have begun after a while.
func heard(turns []conversation.Turn, while time.Duration) []conversation.Turn {
	n := 0
	for n < len(turns) && Duration(turns[:n]) < while {
		n++
	}
	return turns[:n]
}

// latencies are those of the assistant's replies, drawn from their texts.
func latencies(turns []conversation.Turn) []carrier.TurnLatency {
	var replies []carrier.TurnLatency
	for i, turn := range turns {
		if i == 0 || isCustomers(turn) {
			continue
		}
		hash := fnv.New32a()
		hash.Write([]byte(turn.Content))
		n := int(hash.Sum32() >> 1)
		replies = append(replies, carrier.TurnLatency{Speech: 80 + n%100, Model: 250 + n%400, Voice: 100 + n%150})
	}
	return replies
}

func (s *Simulator) scaled(d time.Duration) time.Duration { return d / time.Duration(s.TimeScale) }
