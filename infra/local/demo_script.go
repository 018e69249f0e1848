package main

import (
	"strings"

	"parley/shared/conversation"
)

// script is what is said in a conversation, and what becomes of it. The speakers take
// turns.
type script struct {
	lines     []string
	summary   string
	intent    string
	outcome   conversation.Outcome
	sentiment conversation.Sentiment
	fails     failing
}

// failing says which of the assistant's criteria a conversation fails.
type failing int

const (
	failsNone failing = iota
	failsRecoverable
	failsOthers
)

// callScripts go on after the assistant's greeting, with the customer.
var callScripts = []script{
	{
		lines: []string{
			"When can I check in on Friday?", "From three in the afternoon. Shall I note your arrival?",
			"Yes, around four please.", "Noted. We look forward to seeing you.",
		},
		summary: "The customer asked when check-in begins; an arrival at four was noted.",
		intent:  "check-in time", outcome: conversation.OutcomeResolved, sentiment: conversation.SentimentPositive,
	},
	{
		lines: []string{
			"I would like to stay one more night.", "Your room is free until Sunday, at the same price. Shall I extend it?",
			"Please do.", "Done. You leave on Sunday now.",
		},
		summary: "The customer extended the stay by one night.",
		intent:  "extend stay", outcome: conversation.OutcomeResolved, sentiment: conversation.SentimentPositive,
	},
	{
		lines: []string{
			"The heating in my room does not work.", "I am sorry. Somebody will look at it within ten minutes.",
			"This is the second time.", "I understand, and I have told the manager.",
		},
		summary: "The customer reported a broken heating for the second time; a repair was promised.",
		intent:  "report a fault", outcome: conversation.OutcomeFollowUpRequired, sentiment: conversation.SentimentNegative, fails: failsRecoverable,
	},
	{
		lines: []string{
			"Do you have a parking space for a van?", "I am not sure about the height. May I write to you about it?",
			"Yes, please.", "I will. Goodbye.",
		},
		summary: "The customer asked about parking for a van; the answer stayed open.",
		intent:  "parking", outcome: conversation.OutcomeUnresolved, sentiment: conversation.SentimentNeutral, fails: failsRecoverable,
	},
	{
		lines: []string{
			"I have to cancel my booking for next week.", "It can be canceled free of charge. Shall I do so?",
			"Yes.", "It is canceled. A confirmation is on its way.",
		},
		summary: "The customer canceled a booking free of charge.",
		intent:  "cancel booking", outcome: conversation.OutcomeResolved, sentiment: conversation.SentimentNeutral,
	},
	{
		lines:   nil,
		summary: "Nobody spoke after the greeting.",
		intent:  "unknown", outcome: conversation.OutcomeUnknown, sentiment: conversation.SentimentUnknown,
	},
}

// voicemail is what an outbound call may reach.
var voicemail = script{
	lines:   []string{"Please leave a message after the tone.", "We called about your stay. We will try again tomorrow."},
	summary: "The call reached a voicemail box; a message was left.",
	intent:  "unknown", outcome: conversation.OutcomeVoicemail, sentiment: conversation.SentimentUnknown,
}

// textScripts begin with the customer.
var textScripts = []script{
	{
		lines: []string{
			"Hi, is breakfast included?", "Yes, from seven to ten, in the restaurant.",
			"Great, thanks!", "You are welcome.",
		},
		summary: "The customer asked whether breakfast is included.",
		intent:  "breakfast", outcome: conversation.OutcomeResolved, sentiment: conversation.SentimentPositive,
	},
	{
		lines:   []string{"Can I check out at noon tomorrow?", "Late check-out at noon is fine, and costs nothing."},
		summary: "The customer asked for a late check-out and got it.",
		intent:  "late check-out", outcome: conversation.OutcomeResolved, sentiment: conversation.SentimentPositive,
	},
	{
		lines: []string{
			"Is there a crib for our baby? 👶", "Yes. Shall I have one put into your room?",
			"Please. And an extra blanket.", "Both will be there when you arrive.",
		},
		summary: "The customer asked for a crib and a blanket.",
		intent:  "room equipment", outcome: conversation.OutcomeResolved, sentiment: conversation.SentimentNeutral,
	},
}

// failingText is a conversation that leaves something to repair.
var failingText = script{
	lines:   []string{"How much is the airport shuttle, and when does it go?", "It goes every hour."},
	summary: "The customer asked for price and times of the shuttle; the price stayed open.",
	intent:  "airport shuttle", outcome: conversation.OutcomeUnresolved, sentiment: conversation.SentimentNeutral, fails: failsRecoverable,
}

// Messages that no customer's message caused, and answers to them.
const (
	voiceToolText   = "As promised on the phone, here is your confirmation: your room is booked. Reply with any question."
	voiceToolAnswer = "Thank you, that was quick."
	followUpText    = "We may have left your question open, and are sorry for it. May we call you, or answer here?"
	followUpAnswer  = "Here is fine. I have what I need now, thanks."
	optOutText      = "STOP"
)

// dialogue gives the lines to the speakers, the first to first.
func dialogue(first conversation.Role, lines ...string) []conversation.Turn {
	turns := make([]conversation.Turn, len(lines))
	role := first
	for i, line := range lines {
		turns[i] = conversation.Turn{Role: role, Content: line}
		role = otherRole(role)
	}
	return turns
}

func otherRole(role conversation.Role) conversation.Role {
	if role == conversation.RoleUser {
		return conversation.RoleAssistant
	}
	return conversation.RoleUser
}

// greeting is the assistant's first line to a customer.
func greeting(a conversation.AssistantConfig, workspace, customer string) string {
	return strings.NewReplacer("{{participant_name}}", customer, "{{hotel_name}}", workspace).Replace(a.Greeting)
}
