package simulator

import (
	"time"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// textScenario is what becomes of a text at the customer's end.
type textScenario struct {
	refuses    bool       // the carrier turns the text down at once
	hangs      bool       // the request to send it gets no answer in time
	receipts   []textStep // which the carrier reports
	toFollowUp string     // what the customer answers to a recovery follow-up; "" is nothing
	toReply    string     // what the customer answers to a reply, once a day: they would talk for ever
}

// textStep is one thing that happens to a text, a while after the one before it: a receipt,
// or that a customer writes. What a customer has written has one step, which says nothing
// of its own.
type textStep struct {
	after  time.Duration
	status carrier.ReceiptStatus
	says   string
	once   bool // nothing, if the customer said so today already
}

// answerDelay is how long after the last receipt a customer answers.
const answerDelay = 3 * time.Second

// delivered is how a text arrives. Whoever sent it has a second to write that down: a receipt
// that comes before isn't taken, and comes again a minute later.
var delivered = []textStep{{after: time.Second, status: carrier.ReceiptSent}, {status: carrier.ReceiptDelivered}}

// otherText is the scenario of every customer that has none of their own.
var otherText = textScenario{receipts: delivered}

// textScenarios are keyed by the last two digits of the customer's number, or user id.
var textScenarios = map[string]textScenario{
	"01": {receipts: delivered},
	"02": {receipts: []textStep{{after: time.Second, status: carrier.ReceiptFailed}}},
	"03": {hangs: true},
	"04": {refuses: true},
	"05": {receipts: delivered, toFollowUp: "Thank you, that answers it. Perfect."},
	"06": {receipts: delivered, toFollowUp: "STOP"},
	"08": {receipts: []textStep{
		{after: time.Second, status: carrier.ReceiptDelivered}, {status: carrier.ReceiptDelivered},
		{after: 2 * time.Second, status: carrier.ReceiptSent}, {status: carrier.ReceiptSent},
	}},
	"12": {receipts: delivered, toReply: "That did not answer my question."},
}

// textScenarioOf finds a text's scenario. What a customer writes has none: they have
// written it.
func textScenarioOf(t dynamo.SimulatorText) textScenario {
	if s, ok := textScenarios[digits(t.To)]; ok && !t.Inbound {
		return s
	}
	return otherText
}

// stepsOfText are what happens to a text, with the customer's answer.
func stepsOfText(t dynamo.SimulatorText) []textStep {
	if t.Inbound {
		return []textStep{{}}
	}
	s := textScenarioOf(t)
	steps := s.receipts[:len(s.receipts):len(s.receipts)]
	switch {
	case t.Source == conversation.SourceEvaluationFollowUp && s.toFollowUp != "":
		return append(steps, textStep{after: answerDelay, says: s.toFollowUp})
	case isReply(t) && s.toReply != "":
		return append(steps, textStep{after: answerDelay, says: s.toReply, once: true})
	default:
		return steps
	}
}

// isReply tells whether a text answers what a customer wrote. All that a test conversation
// says may have the source of tests.
func isReply(t dynamo.SimulatorText) bool {
	return t.Source == conversation.SourceInbound || t.Source == conversation.SourceTest
}
