package e2e

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
)

const (
	callDone = conversation.CallCompleted
	followUp = conversation.SourceEvaluationFollowUp
)

// A conversation that failed is followed up, and what the customer then answers repairs it.
func TestRecovery(t *testing.T) {
	t.Parallel()
	d := newTextDesk(t, patient)
	u := newUser(t, d.ws)
	s := u.subscribe(t, anything{"blocks": conversation.AllBlocks()}, received, sent, threadDone)
	asked := d.arrivedAs(t, d.write(t, conversation.SMS, customerOf("05"), complaint, 0))
	got := d.closed(t, asked.ThreadID)
	messages := d.checkClosed(t, got)
	if len(messages) != 5 {
		t.Fatalf("it was said:\n%s", said(got.Transcript))
	}
	expected := []conversation.Source{"inbound", "inbound", followUp, "inbound", "inbound"}
	for i, m := range messages {
		if m.Source != expected[i] {
			t.Errorf("the source of %q is %s, want %s", m.Content, m.Source, expected[i])
		}
	}
	followed := messages[2]
	if got.CloseReason != conversation.Graded || results(got.Evaluations) != "fail>pass+ pass>pass" || got.AnchorMessageID != messages[4].MessageID {
		t.Errorf("thread %+v", got)
	}
	checkFollowUps(t, got.FollowUps, followed)
	events := s.awaitEvents(t, 4)
	if heard := about(t, events, received); heard[complaint].Reply == nil || heard[thanks].Reply == nil {
		t.Errorf("message.received: %+v", heard)
	}
	checkSent(t, d, events, followed)
	for _, h := range events {
		if h.Event == threadDone {
			d.key.checkShown(t, h.Thread, "threads", h.EventID)
		}
	}
}

// checkFollowUps wants one, that has arrived.
func checkFollowUps(t *testing.T, got []conversation.FollowUp, m conversation.Message) {
	t.Helper()
	expected := []conversation.FollowUp{{Status: conversation.FollowUpDelivered, Channel: m.Channel}}
	if len(got) == 1 {
		expected[0].SentAt = got[0].SentAt
	}
	if diff := cmp.Diff(expected, got); diff != "" || got[0].SentAt.Before(m.OccurredAt.Time) {
		t.Errorf("follow-ups (-want +got):\n%s", diff)
	}
}

// checkSent wants message.sent of this message and of no other.
func checkSent(t *testing.T, d desk, events []heard, m conversation.Message) {
	t.Helper()
	if m.ProviderMessageID != "sim-"+string(m.MessageID) || m.Direction != conversation.Outbound {
		t.Errorf("%s, sent as %q: %s", m.MessageID, m.ProviderMessageID, m.Direction)
	}
	all := only(events, func(h heard) bool { return h.Event == sent })
	if len(all) != 1 || all[0].EventID != string(m.MessageID) {
		t.Fatalf("message.sent: %+v, want %s", all, m.MessageID)
	}
	all[0].checkTimely(t, d.messageRecord(t, m.MessageID).SentAt)
	d.key.checkShown(t, all[0].Message, "messages", string(m.MessageID))
}

// A call's assistant texts what the customer asks for (13). A call that failed (12) is
// followed up by a text, whether or not the customer answers that; what they answer repairs
// the call.
func TestTextsOfCalls(t *testing.T) {
	t.Parallel()
	type side struct {
		desk
		subscriber
		call   conversation.CallID
		source conversation.Source
	}
	sides := map[string]*side{}
	for name, digits := range map[string]string{"asked for": "13", "unanswered": "12", "answered": "12"} {
		change := patience(60, 240)
		if name == "answered" {
			change = patience(360, 1200)
		}
		d := newTextDesk(t, change)
		u := newUser(t, d.ws)
		s := u.subscribe(t, anything{"blocks": conversation.AllBlocks()}, callDone, received, sent, threadDone)
		sides[name] = &side{d, s, d.place(t, digits).CallID, followUp}
	}
	sides["asked for"].source = conversation.SourceVoiceTool

	texts := map[string]conversation.Message{}
	for name, s := range sides {
		texts[name] = s.awaitMessage(t, "the source "+string(s.source), func(m conversation.Message) bool { return m.Source == s.source })
	}
	s := sides["answered"]
	s.write(t, conversation.SMS, customerOf("12"), "Hello.", 0)
	s.says(t, complaint) // by themselves
	s.says(t, regret)
	s.write(t, conversation.SMS, customerOf("12"), thanks, 0)

	expected := map[string]struct {
		reason        conversation.CloseReason
		thread, call  string // results
		texts, events int
	}{
		"asked for":  {conversation.EmptyTranscript, "", "pass pass", 1, 3},
		"unanswered": {conversation.NoReplyAfterFollowUp, "not_applicable not_applicable", "fail>fail pass>pass", 1, 3},
		"answered":   {conversation.Graded, "pass pass", "fail>pass+ pass>pass", 7, 6},
	}
	for name, s := range sides {
		t.Run(name, func(t *testing.T) {
			e, text := expected[name], texts[name]
			got := s.closed(t, text.ThreadID)
			messages := s.checkClosed(t, got)
			if got.CloseReason != e.reason || results(got.Evaluations) != e.thread || len(messages) != e.texts {
				t.Errorf("%s with %q, want %s with %q:\n%s", got.CloseReason, results(got.Evaluations), e.reason, e.thread, said(got.Transcript))
			}
			call := s.get(t, s.call)
			if results(call.Evaluations) != e.call {
				t.Errorf("the call's evaluations are %q, want %q", results(call.Evaluations), e.call)
			}
			first := messages[0]
			if first.MessageID != text.MessageID || first.Customer.Phone != call.Customer.Phone {
				t.Errorf("the text is %+v, to %+v", first, call.Customer)
			}
			if s.source == followUp {
				checkFollowUps(t, call.FollowUps, first)
				checkFollowUps(t, got.FollowUps, first)
			} else if call.FollowUps != nil || got.FollowUps != nil {
				t.Errorf("follow-ups: %v, %v", call.FollowUps, got.FollowUps)
			}
			events := s.awaitEvents(t, e.events)
			checkSent(t, s.desk, events, first)
			names := map[conversation.EventName]int{}
			for _, h := range events {
				names[h.Event]++
				if h.Event == threadDone {
					s.key.checkShown(t, h.Thread, "threads", h.EventID)
				}
			}
			if want := (map[conversation.EventName]int{callDone: 1, sent: 1, threadDone: 1, received: e.events - 3}); !cmp.Equal(want, nonZero(names, want)) {
				t.Errorf("events %v, want %v", names, want)
			}
			if status := fmt.Sprint(execution(t, s.call)); status != "SUCCEEDED" {
				t.Errorf("the call's execution is %s", status)
			}
		})
	}
}

// nonZero has an entry for each of those names.
func nonZero[K comparable](counts, names map[K]int) map[K]int {
	for name := range names {
		counts[name] += 0
	}
	return counts
}
