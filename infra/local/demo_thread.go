package main

import (
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"parley/shared/conversation"
)

// closing is how a thread comes to its close reason.
type closing struct {
	opener      conversation.Source // who begins; none: the customer
	silent      bool                // the customer never writes
	fails       failing
	optsOut     bool
	followUp    conversation.FollowUpStatus // none: nothing to follow up
	answered    bool                        // the follow-up was
	ungraded    bool                        // so there is no analysis either
	evaluations func([]conversation.Evaluation) []conversation.Evaluation
}

// closings has for each reason the ways that lead to it, which take turns.
var closings = map[conversation.CloseReason][]closing{
	conversation.Graded: {
		{evaluations: all},
		{evaluations: all, opener: conversation.SourceVoiceTool},
		{evaluations: all, fails: failsRecoverable, followUp: conversation.FollowUpDelivered, answered: true},
		{evaluations: all, opener: conversation.SourceEvaluationFollowUp},
	},
	conversation.NoReplyAfterFollowUp: {
		{evaluations: all, fails: failsRecoverable, followUp: conversation.FollowUpDelivered},
		{evaluations: all, fails: failsRecoverable, followUp: conversation.FollowUpSent},
	},
	conversation.CustomerOptedOut:           {{evaluations: decided, optsOut: true}},
	conversation.NoEnabledEvaluations:       {{evaluations: none}},
	conversation.EmptyTranscript:            {{evaluations: none, opener: conversation.SourceVoiceTool, silent: true, ungraded: true}},
	conversation.GradingFailed:              {{evaluations: none, ungraded: true}},
	conversation.FollowUpFailedReason:       {{evaluations: none, fails: failsRecoverable, followUp: conversation.FollowUpFailed}},
	conversation.FollowUpDailyCap:           {{evaluations: none, fails: failsRecoverable, followUp: conversation.FollowUpSkipped}},
	conversation.FollowUpNoCriteria:         {{evaluations: decided, fails: failsOthers}},
	conversation.FollowUpNoCustomerPhone:    {{evaluations: none, fails: failsRecoverable, followUp: conversation.FollowUpSkipped}},
	conversation.FollowUpMissingProviderKey: {{evaluations: none, fails: failsRecoverable, followUp: conversation.FollowUpSkipped}},
	conversation.FollowUpSendAmbiguous:      {{evaluations: none, fails: failsRecoverable, followUp: conversation.FollowUpAmbiguous}},
	conversation.SkippedOutside24hWindow:    {{evaluations: none, fails: failsRecoverable, followUp: conversation.FollowUpSkipped}},
	conversation.SkippedQuietHours:          {{evaluations: none, fails: failsRecoverable, followUp: conversation.FollowUpSkipped}},
	conversation.SkippedAssistantDisabled:   {{evaluations: none, fails: failsRecoverable, followUp: conversation.FollowUpSkipped}},
}

// What a thread carries of its evaluations (spec: Graded yes, partly, no).
func all(es []conversation.Evaluation) []conversation.Evaluation { return es }

func decided(es []conversation.Evaluation) []conversation.Evaluation {
	return slices.DeleteFunc(es, func(e conversation.Evaluation) bool {
		return e.Result != conversation.Pass && e.Result != conversation.Fail
	})
}

func none([]conversation.Evaluation) []conversation.Evaluation { return nil }

// addThread adds a thread that began at a moment and closed for a reason.
func (h *historian) addThread(reason conversation.CloseReason, at time.Time) {
	nth := h.closed[reason]
	h.closed[reason]++
	c := closings[reason][nth%len(closings[reason])]
	a, customer := h.assistant(), h.customer()
	channel := []conversation.Channel{conversation.SMS, conversation.WhatsApp}[len(h.threads)%2]
	quiet := time.Duration(h.definition.Workspace.InactivitySeconds) * time.Second

	var repairs *conversation.Call
	switch {
	case reason == conversation.FollowUpNoCustomerPhone:
		channel, customer.Phone = conversation.WhatsApp, ""
	case reason == conversation.SkippedOutside24hWindow:
		channel, quiet, at = conversation.WhatsApp, 25*time.Hour, at.Add(-25*time.Hour)
	case reason == conversation.SkippedQuietHours:
		at = h.lateEvening(at)
	case c.opener == conversation.SourceEvaluationFollowUp && len(h.failed) > 0:
		repairs, h.failed = h.failed[0], h.failed[1:]
		a, customer, at = h.assistantOf(repairs), *repairs.Customer, repairs.EndedAt.Add(20*time.Second)
		channel = h.definition.Workspace.FollowUps.Channel
	}
	t := &texting{historian: h, at: at, thread: conversation.Thread{
		ThreadID:    conversation.ThreadID(h.id(at)),
		WorkspaceID: h.definition.Workspace.WorkspaceID, AssistantID: a.AssistantID, AssistantName: a.AssistantName,
		Channel: channel, CloseReason: reason, StartedAt: conversation.At(at), Customer: &customer,
	}}
	s := t.converse(c)
	if !c.ungraded {
		t.thread.Analysis = s.analysis()
		t.thread.Evaluations = c.evaluations(s.evaluations(a))
	}
	if c.followUp != "" {
		t.followUp(c)
	}
	if repairs != nil {
		repairs.FollowUps = []conversation.FollowUp{{Status: conversation.FollowUpDelivered, Channel: channel, SentAt: t.thread.StartedAt}}
		repairs.Evaluations = afterFollowUp(repairs.Evaluations, true)
	}
	if c.followUp == conversation.FollowUpDelivered && !c.answered || c.followUp == conversation.FollowUpSent || c.followUp == conversation.FollowUpAmbiguous {
		quiet = time.Duration(h.definition.Workspace.FollowUps.WaitSeconds) * time.Second
	}
	t.complete(quiet)
}

// lateEvening is the evening before a moment, in the workspace's quiet hours.
func (h *historian) lateEvening(at time.Time) time.Time {
	zone, err := time.LoadLocation(h.definition.Workspace.Timezone)
	if err != nil {
		zone = time.UTC
	}
	year, month, day := at.In(zone).Date()
	return time.Date(year, month, day-1, 22, h.IntN(30), h.IntN(60), 0, zone).UTC()
}

func (h *historian) assistantOf(call *conversation.Call) conversation.AssistantConfig {
	i := slices.IndexFunc(h.definition.Assistants, func(a conversation.AssistantConfig) bool { return a.AssistantID == call.AssistantID })
	return h.definition.Assistants[i]
}

// texting is a thread on its way.
type texting struct {
	*historian
	thread conversation.Thread
	at     time.Time // of the next message
}

// converse says what leads to the closing, and returns the script that it follows.
func (t *texting) converse(c closing) script {
	s := textScripts[t.IntN(len(textScripts))]
	if c.fails != failsNone {
		s = failingText
		s.fails = c.fails
	}
	switch {
	case c.opener == conversation.SourceEvaluationFollowUp:
		t.say(conversation.Outbound, c.opener, followUpText)
		t.say(conversation.Inbound, conversation.SourceInbound, followUpAnswer)
	case c.opener == conversation.SourceVoiceTool:
		t.say(conversation.Outbound, c.opener, voiceToolText)
		if !c.silent {
			t.say(conversation.Inbound, conversation.SourceInbound, voiceToolAnswer)
		}
	default:
		for _, turn := range dialogue(conversation.RoleUser, s.lines...) {
			t.say(directionOf(turn.Role), conversation.SourceInbound, turn.Content)
		}
	}
	if c.optsOut {
		t.say(conversation.Inbound, conversation.SourceInbound, optOutText)
	}
	return s
}

func directionOf(role conversation.Role) conversation.Direction {
	if role == conversation.RoleUser {
		return conversation.Inbound
	}
	return conversation.Outbound
}

// say adds a message, and some time to think.
func (t *texting) say(direction conversation.Direction, source conversation.Source, content string) {
	role := conversation.RoleAssistant
	if direction == conversation.Inbound {
		role = conversation.RoleUser
	}
	messageID := conversation.MessageID(t.id(t.at))
	t.thread.Transcript = append(t.thread.Transcript, conversation.Turn{Role: role, Content: content})
	t.thread.LastMessageAt, t.thread.AnchorMessageID = conversation.At(t.at), messageID
	t.messages = append(t.messages, conversation.Message{
		MessageID: messageID, WorkspaceID: t.thread.WorkspaceID,
		AssistantID: t.thread.AssistantID, AssistantName: t.thread.AssistantName,
		Channel: t.thread.Channel, Direction: direction, ThreadID: t.thread.ThreadID, Source: source,
		OccurredAt: t.thread.LastMessageAt, Content: content, ProviderMessageID: "SIM" + t.id(t.at),
		Customer: t.thread.Customer,
		Costs:    &conversation.MessageCosts{Currency: t.definition.Workspace.Currency, Total: t.price()},
	})
	t.at = t.at.Add(time.Duration(16+t.IntN(90)) * time.Second)
}

func (t *texting) price() string {
	if t.thread.Channel == conversation.WhatsApp {
		return t.definition.Workspace.Prices.WhatsApp
	}
	return t.definition.Workspace.Prices.SMS
}

// followUp sends, or doesn't send, the follow-up of the closing.
func (t *texting) followUp(c closing) {
	f := conversation.FollowUp{Status: c.followUp, Channel: t.thread.Channel}
	if c.followUp != conversation.FollowUpSkipped && c.followUp != conversation.FollowUpFailed {
		t.at = t.at.Add(time.Duration(t.definition.Workspace.InactivitySeconds) * time.Second)
		f.SentAt = conversation.At(t.at)
		t.say(conversation.Outbound, conversation.SourceEvaluationFollowUp, followUpText)
		t.thread.Evaluations = afterFollowUp(t.thread.Evaluations, c.answered)
	}
	if c.followUp == conversation.FollowUpAmbiguous { // the carrier never said that it took the message
		t.messages[len(t.messages)-1].ProviderMessageID = ""
	}
	if c.answered {
		t.say(conversation.Inbound, conversation.SourceInbound, followUpAnswer)
	}
	t.thread.FollowUps = []conversation.FollowUp{f}
}

// complete closes the thread after a time without messages.
func (t *texting) complete(quiet time.Duration) {
	count := len(t.thread.Transcript)
	t.thread.MessageCount = count
	t.thread.CompletedAt = conversation.At(t.thread.LastMessageAt.Add(quiet + 3*time.Second))
	t.thread.Costs = &conversation.ThreadCosts{
		Currency: t.definition.Workspace.Currency,
		Total:    amountOf(t.price(), decimal.NewFromInt(int64(count))).String(), ChargedMessageCount: count,
	}
	if t.thread.Analysis == nil {
		t.thread.AnchorMessageID = ""
	}
	t.threads = append(t.threads, t.thread)
}

// addTestMessages adds what somebody wrote to try an assistant: a thread of its own,
// which no list shows.
func (h *historian) addTestMessages() {
	a, customer := h.assistant(), h.compatriot()
	at := h.now.Add(-5 * time.Hour)
	t := &texting{historian: h, at: at, thread: conversation.Thread{
		ThreadID:    conversation.ThreadID(h.id(at)),
		WorkspaceID: h.definition.Workspace.WorkspaceID, AssistantID: a.AssistantID, AssistantName: a.AssistantName,
		Channel: conversation.SMS, Customer: &customer,
	}}
	t.say(conversation.Inbound, conversation.SourceTest, "Does this work?")
	t.say(conversation.Outbound, conversation.SourceTest, "It does.")
}
