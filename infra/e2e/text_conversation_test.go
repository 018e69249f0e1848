package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
)

// texts sends what a customer writes by the settings' sandbox.
func (u user) texts(t testing.TB, body anything) string {
	t.Helper()
	got := u.ask(t, http.MethodPost, "/sandbox/messages", body)
	return want[struct {
		ID string `json:"provider_message_id"`
	}](t, got, http.StatusAccepted).ID
}

// A message gets one reply, and then the conversation ends: webhooks and the API tell the
// same. Another workspace, whose customer has the same number and writes at the same time,
// has a conversation of its own.
func TestTextConversation(t *testing.T) {
	t.Parallel()
	type side struct {
		desk
		user  user
		whole subscriber
		usual subscriber
		id    string
	}
	sides := map[conversation.Channel]*side{}
	for _, channel := range []conversation.Channel{conversation.SMS, conversation.WhatsApp} {
		d := newTextDesk(t, patience(240, 60))
		u := newUser(t, d.ws)
		sides[channel] = &side{
			desk: d, user: u,
			whole: u.subscribe(t, anything{"blocks": conversation.AllBlocks()}, received, sent, threadDone),
			usual: u.subscribe(t, nil, received, sent, threadDone),
		}
	}
	stranger := newTextDesk(t)
	for channel, s := range sides {
		s.id = s.user.texts(t, anything{"channel": channel, "from": customerOf("50"), "to": s.number, "content": question})
	}
	theirs := stranger.write(t, conversation.SMS, customerOf("50"), question, 0)
	for channel, s := range sides {
		t.Run(string(channel), func(t *testing.T) {
			m := s.arrivedAs(t, s.id)
			target := "/v1/threads/" + string(m.ThreadID)
			if got := s.key.get(t, target); s.threadRecord(t, m.ThreadID).Open() && got.status != http.StatusNotFound {
				t.Errorf("an open thread: %d %s, want 404", got.status, got.body)
			}
			got := s.closed(t, m.ThreadID)
			messages := s.checkClosed(t, got)
			if said(got.Transcript) != "user: "+question+"\nassistant: "+answered {
				t.Fatalf("it was said:\n%s", said(got.Transcript))
			}
			reply := messages[1]
			expected := []conversation.Message{messages[0], reply}
			for i, direction := range []conversation.Direction{conversation.Inbound, conversation.Outbound} {
				expected[i].Direction, expected[i].Source = direction, conversation.SourceInbound
			}
			expected[0].ProviderMessageID, expected[0].Reply, expected[1].Reply = s.id, nil, nil
			expected[1].ProviderMessageID = "sim-" + string(reply.MessageID)
			if diff := cmp.Diff(expected, messages); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			if got.Channel != channel || got.CloseReason != conversation.Graded || got.AnchorMessageID != reply.MessageID ||
				got.Analysis == nil || got.Analysis.Outcome != conversation.OutcomeResolved || results(got.Evaluations) != "pass pass" || got.FollowUps != nil {
				t.Errorf("thread %+v", got)
			}
			for _, sub := range []subscriber{s.whole, s.usual} {
				blocks := ""
				if sub.url == s.usual.url {
					blocks = "?fields=customer,transcript,analysis,evaluations"
				}
				events := sub.awaitEvents(t, 2)
				for _, h := range events {
					if h.Event == threadDone {
						s.key.checkShown(t, h.Thread, "threads", h.EventID+blocks)
						continue
					}
					h.checkTimely(t, s.messageRecord(t, m.MessageID).ArrivedAt)
					checkReply(t, h.Message, conversation.Reply{
						Content: answered, ProviderMessageID: reply.ProviderMessageID, Timestamp: reply.OccurredAt,
					})
					s.key.checkShown(t, withoutReply(t, h.Message), "messages", h.EventID+strings.Replace(blocks, ",transcript,analysis,evaluations", "", 1))
				}
			}
			if n := transitions(t, m.ThreadID); n > 6 {
				t.Errorf("the state machine entered %d states, want 6 at most", n)
			}
		})
	}
	other := stranger.closed(t, stranger.arrivedAs(t, theirs).ThreadID)
	stranger.checkClosed(t, other)
	mine := sides[conversation.SMS]
	seen := string(mine.key.all(t))
	for _, id := range []string{string(stranger.ws), string(other.ThreadID), string(other.Customer.CustomerID)} {
		if strings.Contains(seen, id) {
			t.Errorf("%s shows in another workspace", id)
		}
	}
	checkAbsent(t, mine.key.get(t, "/v1/threads/"+string(other.ThreadID)))
	if got := pageOf[record](t, mine.key, "messages", "thread_id="+string(other.ThreadID)).Items; len(got) > 0 {
		t.Errorf("messages of another's thread: %v", got)
	}
}

// checkReply wants a message of an event to have this reply.
func checkReply(t *testing.T, message json.RawMessage, expected conversation.Reply) {
	t.Helper()
	var got conversation.Message
	if err := json.Unmarshal(message, &got); err != nil || got.Reply == nil {
		t.Fatalf("no reply, %v: %s", err, message)
	}
	if diff := cmp.Diff(expected, *got.Reply); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
	if offset := `"timestamp":"` + expected.Timestamp.WithOffset().String() + `"`; !strings.Contains(string(message), offset) {
		t.Errorf("no %s in %s", offset, message)
	}
}

// withoutReply is an event's message as the API has it, which never shows replies.
func withoutReply(t *testing.T, message json.RawMessage) json.RawMessage {
	t.Helper()
	var fields struct{ Reply json.RawMessage }
	if err := json.Unmarshal(message, &fields); err != nil {
		t.Fatal(err)
	}
	return json.RawMessage(strings.Replace(string(message), `"reply":`+string(fields.Reply)+",", "", 1))
}
