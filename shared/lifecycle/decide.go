package lifecycle

import (
	"time"

	"parley/shared/conversation"
)

// window is how long after a customer's last message WhatsApp carries what no template
// says. It is WhatsApp's, and isn't scaled.
const window = 24 * time.Hour

// Facts are what the end of a quiet conversation is decided by.
type Facts struct {
	OptedOut      bool
	CustomerSpoke bool // with words, as pictures alone can't be judged
	Evaluated     bool // evaluations are enabled, or have been made
	GradingFailed bool
	Failed        bool // an evaluation says so
	Recoverable   bool // of one that failed

	Attempt  *conversation.FollowUpAttempt // nil: none
	Answered bool                          // since then the customer has written

	Sending Sending
}

// Sending is what a follow-up depends on.
type Sending struct {
	Policy   conversation.FollowUpPolicy
	Phone    bool // the customer's is known
	Enabled  bool // the assistant is
	Window   bool // the carrier's, in which it takes the follow-up
	Quiet    conversation.QuietHours
	Timezone string
	Now      time.Time
}

// Decide says what becomes of a quiet conversation: a follow-up, or the reason for which it
// closes (spec: close_reason). The first that fits counts. That the day's cap is reached
// shows when the follow-up is claimed.
func Decide(f Facts) (reason conversation.CloseReason, followUp bool) {
	switch {
	case f.OptedOut:
		return conversation.CustomerOptedOut, false
	case !f.CustomerSpoke && (f.Attempt == nil || f.Answered): // with pictures alone
		return conversation.EmptyTranscript, false
	case !f.CustomerSpoke && !took(*f.Attempt): // a call's follow-up is all there is
		return afterFollowUp(*f.Attempt, false), false
	case !f.Evaluated:
		return conversation.NoEnabledEvaluations, false
	case f.GradingFailed:
		return conversation.GradingFailed, false
	case f.Attempt != nil && !f.Answered && took(*f.Attempt):
		return conversation.NoReplyAfterFollowUp, false
	case !f.Failed:
		return conversation.Graded, false
	case f.Attempt != nil:
		return afterFollowUp(*f.Attempt, f.Answered), false
	case !f.Sending.Policy.Enabled:
		return conversation.Graded, false
	case !f.Recoverable:
		return conversation.FollowUpNoCriteria, false
	}
	reason = f.Sending.obstacle()
	return reason, reason == ""
}

// took tells whether the carrier has taken a follow-up.
func took(attempt conversation.FollowUpAttempt) bool {
	return attempt.Status == conversation.FollowUpSent || attempt.Status == conversation.FollowUpDelivered
}

// afterFollowUp is how a conversation ends that a follow-up could not repair: one that was
// answered, or that the carrier hasn't taken.
func afterFollowUp(attempt conversation.FollowUpAttempt, answered bool) conversation.CloseReason {
	switch {
	case attempt.Status == conversation.FollowUpFailed:
		return conversation.FollowUpFailedReason
	case answered:
		return conversation.Graded
	}
	return conversation.FollowUpSendAmbiguous
}

// obstacle is why a follow-up that is due isn't sent; "": it may be.
func (s Sending) obstacle() conversation.CloseReason {
	switch {
	case s.Policy.Model == "":
		return conversation.FollowUpMissingProviderKey
	case !s.Phone:
		return conversation.FollowUpNoCustomerPhone
	case !s.Enabled:
		return conversation.SkippedAssistantDisabled
	case !s.Window:
		return conversation.SkippedOutside24hWindow
	case isQuiet(s.Quiet, s.Timezone, s.Now):
		return conversation.SkippedQuietHours
	}
	return ""
}

// inWindow tells whether the channel still takes a message of ours.
func inWindow(channel conversation.Channel, lastCustomerAt, now time.Time) bool {
	return channel != conversation.WhatsApp || now.Before(lastCustomerAt.Add(window))
}

// isQuiet tells whether a moment is in the quiet hours of a timezone: from their first
// minute until before their last. They may reach over midnight.
func isQuiet(hours conversation.QuietHours, timezone string, now time.Time) bool {
	zone, err := time.LoadLocation(timezone)
	if err != nil {
		zone = time.UTC
	}
	clock := now.In(zone).Format("15:04")
	if hours.From <= hours.To {
		return hours.From <= clock && clock < hours.To
	}
	return hours.From <= clock || clock < hours.To
}

// shown are the evaluations that a completed thread has: all of a graded one, of some
// others those with a verdict (spec: close_reason, graded).
func shown(reason conversation.CloseReason, evaluations []conversation.Evaluation) []conversation.Evaluation {
	switch reason {
	case conversation.Graded, conversation.NoReplyAfterFollowUp:
		return evaluations
	case conversation.CustomerOptedOut, conversation.FollowUpNoCriteria:
		var decided []conversation.Evaluation
		for _, e := range evaluations {
			if e.Result == conversation.Pass || e.Result == conversation.Fail {
				decided = append(decided, e)
			}
		}
		return decided
	}
	return nil
}

// followUpsOf are the follow-ups that a completed thread shows: the one that was tried, or
// the one that was due and came to nothing.
func followUpsOf(t conversation.ThreadRecord, reason conversation.CloseReason) []conversation.FollowUp {
	if t.Attempt != nil {
		return []conversation.FollowUp{t.Attempt.FollowUp}
	}
	switch reason {
	case conversation.FollowUpFailedReason:
		return []conversation.FollowUp{{Status: conversation.FollowUpFailed, Channel: t.Channel}}
	case conversation.FollowUpDailyCap, conversation.FollowUpMissingProviderKey, conversation.FollowUpNoCustomerPhone,
		conversation.SkippedAssistantDisabled, conversation.SkippedOutside24hWindow, conversation.SkippedQuietHours:
		return []conversation.FollowUp{{Status: conversation.FollowUpSkipped, Channel: t.Channel}}
	}
	return nil
}
