package e2e

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
)

func TestMessages(t *testing.T) {
	t.Parallel()
	s, k := deployed(t), demoKey(t)
	all := walk[conversation.Message](t, k, "messages", "limit=9")
	checkNewestFirst(t, all, messageIDOf, func(m conversation.Message) conversation.Time { return m.OccurredAt })
	sources := map[conversation.Source]bool{}
	for _, m := range all {
		sources[m.Source] = true
		if m.Reply != nil {
			t.Errorf("message %s has a reply, which webhooks alone carry", m.MessageID)
		}
	}
	expected := map[conversation.Source]bool{ // and no test
		conversation.SourceInbound: true, conversation.SourceVoiceTool: true, conversation.SourceEvaluationFollowUp: true,
	}
	if diff := cmp.Diff(expected, sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	at := all[len(all)/2].OccurredAt
	busy := s.Assistants["two_numbers"]
	inbound := only(all, func(m conversation.Message) bool { return m.Direction == conversation.Inbound })
	tests := map[string][]conversation.Message{
		"limit=100":                       all,
		"limit=50&direction=inbound":      inbound,
		"limit=50&direction=outbound":     only(all, func(m conversation.Message) bool { return m.Direction == conversation.Outbound }),
		"limit=50&channel=sms":            only(all, func(m conversation.Message) bool { return m.Channel == conversation.SMS }),
		"limit=50&channel=whatsapp":       only(all, func(m conversation.Message) bool { return m.Channel == conversation.WhatsApp }),
		"limit=50&thread_id=" + nowhereID: nil,
		"limit=50&from=" + at.String():    only(all, func(m conversation.Message) bool { return !m.OccurredAt.Before(at.Time) }),
		"limit=50&to=" + at.String():      only(all, func(m conversation.Message) bool { return m.OccurredAt.Before(at.Time) }),
		"limit=5&channel=sms&direction=inbound&assistant_id=" + string(busy): only(inbound, func(m conversation.Message) bool {
			return m.Channel == conversation.SMS && m.AssistantID == busy
		}),
	}
	checkLists(t, k, "messages", messageIDOf, tests)
}

// A thread's transcript is its messages.
func TestMessagesOfThreads(t *testing.T) {
	t.Parallel()
	k := demoKey(t)
	total := 0
	for _, thread := range walk[conversation.Thread](t, k, "threads", "limit=100") {
		messages := walk[conversation.Message](t, k, "messages", "limit=100&thread_id="+string(thread.ThreadID))
		slices.Reverse(messages)
		var turns []conversation.Turn
		for _, m := range messages {
			role := conversation.RoleAssistant
			if m.Direction == conversation.Inbound {
				role = conversation.RoleUser
			}
			turns = append(turns, conversation.Turn{Role: role, Content: m.Content})
		}
		if diff := cmp.Diff(thread.Transcript, turns); diff != "" || len(turns) != thread.MessageCount {
			t.Errorf("thread %s counts %d messages (-transcript +messages):\n%s", thread.ThreadID, thread.MessageCount, diff)
		}
		total += len(turns)
	}
	if all := walk[conversation.Message](t, k, "messages", "limit=100"); len(all) != total {
		t.Errorf("%d messages, want the %d of all threads", len(all), total)
	}
}
