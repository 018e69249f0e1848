package simulator

import (
	"time"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// scenario is what happens at the customer's end of a call.
type scenario struct {
	refuses   bool                   // the carrier turns the call down at once
	hangs     bool                   // the request to place the call gets no answer in time
	dial      []step                 // until somebody answers, or nobody does
	says      []string               // the customer's lines; the assistant greets first, and answers each
	silence   time.Duration          // after the last turn
	hangsUp   conversation.EndReason // who does; "" is nobody, until the carrier's limit
	forgotten bool                   // once the call is answered the carrier knows nothing of it
	after     []step                 // when the call is over and that has been reported
}

// step is one thing that happens, a while after the one before it.
type step struct {
	after  time.Duration
	do     action
	reason conversation.EndReason // of finish
}

// action is what a step does.
type action int

const (
	progress action = iota // reports that the phone rings
	answer                 // asks what to do, and holds the conversation
	useTool                // wants a text to be sent, while they talk
	askAgain               // asks again, and drops the answer
	finish                 // ends the call, unless it is over, and reports its end
)

// Ways to answer the phone.
var (
	pickUp   = []step{{time.Second, progress, ""}, {4 * time.Second, answer, ""}}
	incoming = []step{{0, answer, ""}}
)

var (
	smallTalk = []string{
		"Hello. What do you know about my booking and my room?",
		"And when is check-in?",
		"Thank you, that is all. Goodbye.",
	}
	voicemail = []string{"I can't take your call now. Please leave a message after the tone."}
	complaint = []string{
		"Hello. I asked for a quiet room. Is that noted?",
		"That did not answer my question. Goodbye.",
	}
	textMe = []string{
		"Hello. When is check-in?",
		"Can you text me that, please?",
		"Thank you, that is all. Goodbye.",
	}
)

// other is the scenario of every number that has none of its own.
var other = scenario{dial: pickUp, says: smallTalk, hangsUp: conversation.EndCustomerHungUp}

// scenarios are keyed by the last two digits of the customer's number.
var scenarios = map[string]scenario{
	"01": {dial: []step{{time.Second, progress, ""}, {2 * time.Second, finish, conversation.EndBusy}}},
	"02": {dial: []step{{time.Second, progress, ""}, {30 * time.Second, finish, conversation.EndNoAnswer}}},
	"03": {dial: []step{{time.Second, progress, ""}, {5 * time.Second, finish, conversation.EndRejected}}},
	"04": {refuses: true},
	"05": {dial: pickUp, silence: 10 * time.Second, hangsUp: conversation.EndAssistantHungUp},
	"06": {dial: pickUp, says: voicemail, hangsUp: conversation.EndAssistantHungUp},
	"07": {dial: pickUp, says: smallTalk, forgotten: true},
	"08": {
		dial: []step{{5 * time.Second, answer, ""}}, says: smallTalk, hangsUp: conversation.EndCustomerHungUp,
		after: []step{
			{2 * time.Second, progress, ""}, {0, progress, ""}, {2 * time.Second, askAgain, ""},
			{2 * time.Second, finish, ""}, {2 * time.Second, progress, ""},
		},
	},
	"09": {dial: []step{{2 * time.Second, finish, conversation.EndAgentError}}},
	"10": {hangs: true, dial: pickUp, says: smallTalk, hangsUp: conversation.EndCustomerHungUp},
	"11": {dial: pickUp, says: smallTalk},
	"12": {dial: pickUp, says: complaint, hangsUp: conversation.EndCustomerHungUp},
	"13": {dial: pickUp, says: textMe, hangsUp: conversation.EndCustomerHungUp},
}

// scenarioOf finds a call's scenario. A customer who rings is there, so the scenarios in
// which nobody answers don't apply.
func scenarioOf(call dynamo.SimulatorCall) scenario {
	if call.Inbound {
		s := byDigits(call.From)
		if !s.answers() {
			s = other
		}
		s.dial = incoming
		return s
	}
	return byDigits(call.To)
}

func byDigits(number string) scenario {
	if s, ok := scenarios[digits(number)]; ok {
		return s
	}
	return other
}

// digits are the last two of a customer's number, or of their user id.
func digits(address string) string { return address[max(0, len(address)-2):] }

func (s scenario) answers() bool {
	return len(s.dial) > 0 && s.dial[len(s.dial)-1].do == answer
}

// part is a run of steps.
type part string

const (
	dialPart  part = "dial"
	toolPart  part = "tool"  // what the assistant does while they talk
	afterPart part = "after" // the end, then what comes after it
	textPart  part = "text"  // the steps of a text, which is no call
)

// stepsOf are the steps of one of a call's parts.
func stepsOf(call dynamo.SimulatorCall, p part) []step {
	switch p {
	case dialPart:
		return scenarioOf(call).dial
	case toolPart:
		var steps []step
		var before time.Duration
		for _, tool := range call.Tools {
			steps = append(steps, step{tool.After - before, useTool, ""})
			before = tool.After
		}
		return steps
	default:
		return append([]step{{0, finish, ""}}, scenarioOf(call).after...)
	}
}
