package lifecycle_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"parley/shared/agent"
	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/lifecycle"
)

// in is a span from a moment, for what happens at about that time: whoever meets another on
// the way waits for some milliseconds.
func in(got conversation.Time, from time.Time, at time.Duration) bool {
	d := got.Sub(from)
	return d >= at && d < at+600*time.Millisecond
}

// A message is answered 15 s after it came, and its event happens then.
func TestTurn(t *testing.T) {
	w, a := newStage(t).newTextWorld(t, nil)
	began := w.now()
	m := w.writes(t, w.message("Is there a room with a view?"))
	w.elapse(t, 14900*time.Millisecond)
	if got := w.sent(); len(got) != 0 {
		t.Errorf("sent %q after 14.9 s, want nothing", got)
	}
	w.elapse(t, time.Minute)
	messages := w.messages(t)
	if got := w.sent(); len(got) != 1 || len(messages) != 2 {
		t.Fatalf("sent %q, messages %+v; want one reply", got, messages)
	}
	at := conversation.At(began.Add(15 * time.Second))
	reply := conversation.MessageRecord{
		Message: conversation.Message{
			WorkspaceID: w.workspace, AssistantID: w.assistant, AssistantName: "Reception", Channel: conversation.SMS,
			Direction: conversation.Outbound, Source: conversation.SourceInbound, OccurredAt: at, Content: "Reply to 1 turns.",
			ProviderMessageID: "text-" + string(messages[1].MessageID), Customer: m.Customer, Costs: m.Costs,
		},
		Carrier: w.carrier, Number: ours, Address: m.Address, ArrivedAt: at, SentAt: at,
	}
	if diff := cmp.Diff(reply, messages[1], recordOptions); diff != "" || messages[1].ThreadID != m.ThreadID {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
	m.MarkedAt, m.Reply = at, &conversation.Reply{Content: reply.Content, ProviderMessageID: reply.ProviderMessageID, Timestamp: at}
	if diff := cmp.Diff(m, messages[0]); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	thread := w.readThread(t, m.ThreadID)
	if thread.MessageCount != 2 || thread.LastMessageAt != at || thread.LastArrivalAt != at || thread.LastCustomerAt != m.OccurredAt ||
		len(thread.Unanswered)+len(thread.Unmarked) != 0 || thread.Claim != nil || thread.Turns != 1 {
		t.Errorf("thread %+v, want nothing open and two messages", thread)
	}
	want := carrier.Text{
		WorkspaceID: w.workspace, MessageID: messages[1].MessageID, Channel: conversation.SMS, From: ours, To: m.Address,
		Content: reply.Content, Source: conversation.SourceInbound, CallbackURL: baseURL + w.messagePath(),
	}
	if got := w.line.texts[0].Text; got != want {
		t.Errorf("sent %+v, want %+v", got, want)
	}
	told := agent.Conversation{Prompt: "Help .", Turns: []conversation.Turn{{Role: conversation.RoleUser, Content: "Is there a room with a view?"}}}
	if diff := cmp.Diff([]agent.Conversation{told}, a.told); diff != "" {
		t.Errorf("the agent was told (-want +got):\n%s", diff)
	}

	// The next turn is told what was said.
	w.writes(t, w.message("And with breakfast?"))
	w.elapse(t, time.Minute)
	if got := w.sent(); len(got) != 2 || got[1] != "Reply to 3 turns." {
		t.Errorf("sent %q, want another reply", got)
	}
	for _, item := range w.turns.queued {
		if item.failures != 0 || len(item.ended) != 1 {
			t.Errorf("item %+v, want it taken once", item)
		}
	}
}

// Several messages have one reply, which the last one's event carries: 15 s after the last,
// 20 s after the first at the latest.
func TestTurnOfSeveralMessages(t *testing.T) {
	stage := newStage(t)
	for name, tt := range map[string]struct {
		scale lifecycle.Scale
		after []time.Duration // of each message, from the first
		want  []time.Duration // when the replies are sent
		last  []int           // the messages that carry them
		marks []time.Duration
	}{
		"two":             {1, seconds(0, 3), seconds(18), []int{1}, seconds(18, 18)},
		"three in 20 s":   {1, seconds(0, 10, 19), seconds(20), []int{2}, seconds(20, 25, 34)},
		"one too late":    {1, seconds(0, 16), seconds(15, 31), []int{0, 1}, seconds(15, 31)},
		"many":            {1, seconds(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12), seconds(20), []int{12}, seconds(20, 20, 20, 20, 20, 20, 21, 22, 23, 24, 25, 26, 27)},
		"60 times faster": {60, seconds(0, 3), seconds(1, 4), []int{0, 1}, seconds(1, 4)},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := stage.newTextWorld(t, nil)
			w.calls.Scale, w.turns.threads.Scale = tt.scale, tt.scale
			began := w.now()
			var written []conversation.MessageRecord
			for _, after := range tt.after {
				w.elapse(t, began.Add(after).Sub(w.now()))
				written = append(written, w.writes(t, w.message("Hello")))
			}
			w.elapse(t, 2*time.Minute)
			replies := map[string]conversation.MessageRecord{}
			for _, m := range w.messages(t) {
				if m.Direction == conversation.Outbound {
					replies[m.ProviderMessageID] = m
				}
			}
			if len(replies) != len(tt.want) || len(w.sent()) != len(tt.want) {
				t.Fatalf("sent %q, listed %v; want %d replies", w.sent(), replies, len(tt.want))
			}
			for i, m := range written {
				m = w.readMessage(t, m.MessageID)
				if !in(m.MarkedAt, began, max(tt.marks[i], tt.after[i])) {
					t.Errorf("message %d is marked %s after the first, want %s", i, m.MarkedAt.Sub(began), tt.marks[i])
				}
				n := slices.Index(tt.last, i)
				if (m.Reply != nil) != (n >= 0) {
					t.Errorf("message %d has the reply %+v; want one: %t", i, m.Reply, n >= 0)
					continue
				}
				if n >= 0 {
					if reply := replies[m.Reply.ProviderMessageID]; !in(reply.OccurredAt, began, tt.want[n]) || m.Reply.Timestamp != reply.OccurredAt || m.Reply.Content != reply.Content {
						t.Errorf("message %d has the reply %+v, listed is %+v, want it at %s", i, m.Reply, reply, tt.want[n])
					}
				}
			}
			w.settled(t)
		})
	}
}

func seconds(n ...int) []time.Duration {
	var all []time.Duration
	for _, s := range n {
		all = append(all, time.Duration(s)*time.Second)
	}
	return all
}

// settled checks that nothing is left to do in any conversation, that the counts are right,
// and that no reply went out twice.
func (w *world) settled(t fatal) {
	t.Helper()
	counts := map[conversation.ThreadID]int{}
	for _, m := range w.messages(t) {
		counts[m.ThreadID]++
		if m.Direction == conversation.Inbound && m.MarkedAt.IsZero() {
			t.Fatalf("message %s has no mark", m.MessageID)
		}
	}
	for _, thread := range w.allThreads(t) {
		if thread.Claim != nil || len(thread.Unanswered)+len(thread.Unmarked) != 0 || thread.MessageCount != counts[thread.ThreadID] {
			t.Fatalf("thread %+v has something left to do, or not %d messages", thread, counts[thread.ThreadID])
		}
	}
	for _, text := range w.line.texts {
		if text.asked > 1+text.refused {
			t.Fatalf("the carrier was asked %d times to send %+v, and refused it %d times", text.asked, text.Text, text.refused)
		}
	}
}

// What the agent says decides whether there is a reply, and never whether there is an event.
func TestTurnOfTheAgent(t *testing.T) {
	stage := newStage(t)
	says := func(text string) func(agent.Conversation) (string, error) {
		return func(agent.Conversation) (string, error) { return text, nil }
	}
	for name, tt := range map[string]struct {
		says    func(agent.Conversation) (string, error)
		takes   time.Duration
		define  func(*dynamo.Definition)
		content string
		want    []string
		marked  time.Duration
		event   bool // the reply is in the event: it was there when it happened
	}{
		"nothing":           {says: says(""), marked: 15 * time.Second},
		"white space":       {says: says(" \n"), marked: 15 * time.Second},
		"an error":          {says: func(agent.Conversation) (string, error) { return "half", errors.New("out of order") }, marked: 15 * time.Second},
		"20,000 characters": {says: says(strings.Repeat("𝄞", 20000)), want: []string{strings.Repeat("𝄞", 1600)}, marked: 15 * time.Second, event: true},
		"after 10 s":        {takes: 10 * time.Second, want: []string{"Reply to 1 turns."}, marked: 25 * time.Second, event: true},
		"after 25 s":        {takes: 25 * time.Second, want: []string{"Reply to 1 turns."}, marked: 28 * time.Second},
		"never":             {takes: time.Hour, marked: 28 * time.Second},
		"no such model":     {define: func(d *dynamo.Definition) { d.Assistants[0].Model = "another" }, marked: 15 * time.Second},
		"disabled":          {define: func(d *dynamo.Definition) { d.Assistants[0].Enabled = false }, marked: 15 * time.Second},
		"disabled, help": {
			define: func(d *dynamo.Definition) { d.Assistants[0].Enabled = false }, content: "Help",
			want: []string{"Harbour Hotel: write STOP to hear no more from us."}, marked: 15 * time.Second, event: true,
		},
		"help, no text": {define: func(d *dynamo.Definition) { d.Workspace.HelpText = "" }, content: "HELP", marked: 15 * time.Second},
		"stop":          {content: "  stop ", marked: 15 * time.Second},
		"start":         {content: "START", marked: 15 * time.Second},
		"a long text":   {content: strings.Repeat("ä", 4000), want: []string{"Reply to 1 turns."}, marked: 15 * time.Second, event: true},
		"stop in a text": {
			content: "please stop by tomorrow", want: []string{"Reply to 1 turns."}, marked: 15 * time.Second, event: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, a := stage.newTextWorld(t, nil)
			a.says, a.takes = tt.says, tt.takes
			if tt.define != nil {
				w.define(t, tt.define)
			}
			if tt.content == "" {
				tt.content = "Hello"
			}
			began := w.now()
			m := w.writes(t, w.message(tt.content))
			w.elapse(t, tt.marked+600*time.Millisecond)
			event := w.readMessage(t, m.MessageID)
			if !in(event.MarkedAt, began, tt.marked) || (event.Reply != nil) != tt.event {
				t.Errorf("marked after %s with the reply %+v; want %s, a reply: %t", event.MarkedAt.Sub(began), event.Reply, tt.marked, tt.event)
			}
			w.elapse(t, 5*time.Minute)
			if got := w.sent(); !slices.Equal(got, tt.want) {
				t.Errorf("sent %.80q, want %.80q", got, tt.want)
			}
			var listed []string
			for _, other := range w.messages(t) {
				if other.Direction == conversation.Outbound {
					listed = append(listed, other.Content)
				}
			}
			if !slices.Equal(listed, tt.want) {
				t.Errorf("listed %.80q, want %.80q", listed, tt.want)
			}
			if now := w.readMessage(t, m.MessageID); now.MarkedAt != event.MarkedAt || (now.Reply != nil) != (tt.want != nil) {
				t.Errorf("marked at %s, the reply %+v; want the mark to stay", now.MarkedAt, now.Reply)
			}
			w.settled(t)
		})
	}
}

// Media alone say nothing, and are no reason to speak; nor does the clock of the customer's
// phone decide what is answered.
func TestTurnOfWhatWasSaid(t *testing.T) {
	w, a := newStage(t).newTextWorld(t, nil)
	a.says = func(c agent.Conversation) (string, error) {
		if len(c.Turns) == 0 || c.Turns[len(c.Turns)-1].Role != conversation.RoleUser {
			return "", nil
		}
		return "Reply to: " + c.Turns[len(c.Turns)-1].Content, nil
	}
	photo := w.message("")
	photo.MediaCount = 1
	w.writes(t, photo)
	w.elapse(t, time.Minute)
	w.writes(t, w.message("Hello"))
	w.elapse(t, time.Minute)
	late := w.message("An hour ago")
	late.At = w.now().Add(-time.Hour)
	w.writes(t, late)
	w.elapse(t, time.Minute)
	if got, want := w.sent(), []string{"Reply to: Hello", "Reply to: An hour ago"}; !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
	w.settled(t)
}

// The carrier's answer decides what is listed.
func TestTurnOfTheCarrier(t *testing.T) {
	stage := newStage(t)
	for name, tt := range map[string]struct {
		fate   fate
		listed bool
		known  bool // the carrier's id
	}{
		"sent":                {textSent, true, true},
		"refused":             {textRefused, false, false},
		"no answer":           {textMute, true, false},
		"no answer, not sent": {textLost, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := stage.newTextWorld(t, nil)
			w.line.fate = func(carrier.Text) fate { return tt.fate }
			m := w.writes(t, w.message("Hello"))
			w.elapse(t, 5*time.Minute)
			messages, m := w.messages(t), w.readMessage(t, m.MessageID)
			if len(w.sent()) != 1 || (len(messages) == 2) != tt.listed || (m.Reply != nil) != tt.listed {
				t.Fatalf("sent %q, reply %+v, messages %+v; want one, listed: %t", w.sent(), m.Reply, messages, tt.listed)
			}
			if tt.listed && ((m.Reply.ProviderMessageID != "") != tt.known || (messages[1].ProviderMessageID != "") != tt.known || messages[1].SentAt.IsZero()) {
				t.Errorf("reply %+v, listed %+v; want the carrier's id: %t", m.Reply, messages[1], tt.known)
			}
			w.settled(t)
			w.deliverReceipts(t)
			if tt.fate == textMute {
				if got := w.messages(t)[1]; got.ProviderMessageID == "" {
					t.Errorf("%+v, want the carrier's id of its receipt", got)
				}
			}
		})
	}
}

// Who opts out while the assistant thinks hears no more; who did it before isn't thought about.
func TestTurnAfterAnOptOut(t *testing.T) {
	w, a := newStage(t).newTextWorld(t, nil)
	a.takes = 10 * time.Second
	first := w.writes(t, w.message("Hello"))
	w.elapse(t, 16*time.Second)
	w.writes(t, w.message("STOP"))
	w.elapse(t, 2*time.Minute)
	w.writes(t, w.message("Hello?"))
	w.elapse(t, 2*time.Minute)
	if got := w.sent(); len(got) != 0 || len(a.told) != 1 {
		t.Errorf("sent %q, thought %d times; want nothing, once", got, len(a.told))
	}
	w.settled(t)
	w.writes(t, w.message("start"))
	w.elapse(t, 2*time.Minute)
	w.writes(t, w.message("Hello again"))
	w.elapse(t, 2*time.Minute)
	if got := w.sent(); len(got) != 1 {
		t.Errorf("sent %q, want a reply to who has opted in again", got)
	}
	if thread := w.readThread(t, first.ThreadID); thread.MessageCount != 6 {
		t.Errorf("%d messages, want 6", thread.MessageCount)
	}
	w.settled(t)
}

// While the agent thinks, the customer has more to say: within 20 s of the first message it
// thinks again, later that is another turn.
func TestTurnThatChanges(t *testing.T) {
	w, a := newStage(t).newTextWorld(t, nil)
	a.takes = 3 * time.Second
	w.writes(t, w.message("Hello"))
	w.elapse(t, 16*time.Second)
	w.writes(t, w.message("Still there?"))
	w.elapse(t, time.Minute)
	if got := w.sent(); !slices.Equal(got, []string{"Reply to 2 turns."}) {
		t.Errorf("sent %q, want one reply to both", got)
	}
	a.takes = 10 * time.Second
	w.writes(t, w.message("Hello"))
	w.elapse(t, 16*time.Second)
	w.writes(t, w.message("Still there?"))
	w.elapse(t, 2*time.Minute)
	if got := w.sent(); !slices.Equal(got, []string{"Reply to 2 turns.", "Reply to 4 turns.", "Reply to 6 turns."}) {
		t.Errorf("sent %q, want a reply to each", got)
	}
	w.settled(t)
}

// Items come late, twice and at once; each message has one reply and one mark all the same.
func TestTurnItemsAtOnce(t *testing.T) {
	w, _ := newStage(t).newTextWorld(t, nil)
	m := w.writes(t, w.message("Hello"))
	w.turns.queued = slices.Concat(w.turns.queued, again(w.turns.queued), again(w.turns.queued))
	w.elapse(t, 10*time.Minute)
	if got := w.sent(); len(got) != 1 {
		t.Errorf("sent %q, want one reply", got)
	}
	marked := w.readMessage(t, m.MessageID).MarkedAt
	w.turns.queued = again(w.turns.queued)
	w.elapse(t, 10*time.Minute)
	if got := w.sent(); len(got) != 1 || w.readMessage(t, m.MessageID).MarkedAt != marked {
		t.Errorf("sent %q, marked again at %s; want nothing done", got, w.readMessage(t, m.MessageID).MarkedAt)
	}
	w.settled(t)

	// Nobody has looked at the queue for an hour.
	w.writes(t, w.message("Hello again"))
	for _, item := range w.turns.queued {
		item.due = item.due.Add(time.Hour)
	}
	w.elapse(t, 2*time.Hour)
	if got := w.sent(); len(got) != 2 {
		t.Errorf("sent %q, want another reply", got)
	}
	w.settled(t)
}

// While a reply is being sent, whoever else is at the turn waits for it: a reply that is
// refused in the end is listed by nobody.
func TestTurnWhileSending(t *testing.T) {
	stage := newStage(t)
	for _, does := range []fate{textSent, textRefused} {
		w, a := stage.newTextWorld(t, nil)
		w.line.fate = func(carrier.Text) fate { return does }
		w.line.received = func(ctx context.Context, _ carrier.Text) { _ = w.turns.sleep(ctx, 7*time.Second) }
		a.takes = 5 * time.Second // so two think at once
		began := w.now()
		m := w.writes(t, w.message("Hello"))
		w.turns.queued = slices.Concat(w.turns.queued, again(w.turns.queued))
		w.elapse(t, time.Minute)
		m = w.readMessage(t, m.MessageID)
		if sent := does == textSent; len(w.sent()) != 1 || (len(w.messages(t)) == 2) != sent || (m.Reply != nil) != sent || sent && m.Reply.ProviderMessageID == "" {
			t.Errorf("%q: sent %q, messages %+v; want it listed: %t", does, w.sent(), w.messages(t), sent)
		}
		if !in(m.MarkedAt, began, 27*time.Second) {
			t.Errorf("%q: marked after %s, want 27 s", does, m.MarkedAt.Sub(began))
		}
		w.settled(t)
	}
}

// A function that was frozen while it sent finds its claim closed, and the reply listed, when
// it goes on. Then the carrier's id is known after all.
func TestTurnOfAFrozenFunction(t *testing.T) {
	w, _ := newStage(t).newTextWorld(t, nil)
	w.line.received = func(ctx context.Context, _ carrier.Text) { _ = w.turns.sleep(ctx, 150*time.Second) }
	m := w.writes(t, w.message("Hello"))
	late := again(w.turns.queued)
	for _, item := range late {
		item.due = w.now().Add(80 * time.Second)
	}
	w.turns.queued = slices.Concat(w.turns.queued, again(w.turns.queued), late)
	w.elapse(t, 110*time.Second)
	if listed := w.messages(t); len(listed) != 1 {
		t.Fatalf("messages %+v after 110 s, want none listed while the function may live", listed)
	}
	w.elapse(t, 50*time.Second)
	listed := w.messages(t)
	if m = w.readMessage(t, m.MessageID); m.Reply == nil || m.Reply.ProviderMessageID != "" || len(listed) != 2 || listed[1].ProviderMessageID != "" {
		t.Fatalf("messages %+v, want the reply listed without the carrier's id", listed)
	}
	w.elapse(t, 5*time.Minute)
	if got := w.messages(t); len(w.sent()) != 1 || len(got) != 2 || got[1].ProviderMessageID == "" {
		t.Errorf("sent %q, messages %+v; want one, with the carrier's id", w.sent(), got)
	}
	for _, item := range w.turns.queued {
		if len(item.ended) != 1 {
			t.Errorf("item %+v, want it acknowledged", item)
		}
	}
	w.settled(t)
}

// The item of a turn marks its message in time, also where the one that only marks is lost.
func TestTurnMarksBesideTheThinking(t *testing.T) {
	w, a := newStage(t).newTextWorld(t, nil)
	a.takes = 25 * time.Second
	began := w.now()
	m := w.writes(t, w.message("Hello"))
	w.turns.queued = slices.DeleteFunc(w.turns.queued, func(item *turnItem) bool { return item.MarkOnly })
	w.elapse(t, time.Minute)
	if m = w.readMessage(t, m.MessageID); m.MarkedAt != conversation.At(began.Add(28*time.Second)) || m.Reply == nil {
		t.Errorf("marked after %s, the reply %+v; want 28 s and one", m.MarkedAt.Sub(began), m.Reply)
	}
	w.settled(t)
}

// Items that come early wait.
func TestTurnOfEarlyItems(t *testing.T) {
	w, _ := newStage(t).newTextWorld(t, nil)
	began := w.now()
	var written []conversation.MessageRecord
	for range 2 {
		written = append(written, w.writes(t, w.message("Hello")))
		for _, item := range w.turns.queued {
			if !item.MarkOnly && !item.due.IsZero() {
				item.due = w.now()
			}
		}
		w.elapse(t, 12*time.Second)
	}
	w.elapse(t, time.Minute)
	for i, want := range seconds(20, 27) {
		if m := w.readMessage(t, written[i].MessageID); !in(m.MarkedAt, began, want) {
			t.Errorf("message %d is marked %s after the first, want %s", i, m.MarkedAt.Sub(began), want)
		}
	}
	if len(w.sent()) != 1 {
		t.Errorf("sent %q, want one reply", w.sent())
	}
	w.settled(t)
}

// Where the leader's item is lost, another message's leads, when the turn has been due for
// longer than anybody thinks and sends, and not before.
func TestTurnWithoutItsLeader(t *testing.T) {
	stage := newStage(t)
	for name, tt := range map[string]struct{ comes, want time.Duration }{ // the item, and the reply
		"when it has waited": {18 * time.Second, 52 * time.Second},
		"when it comes late": {40 * time.Second, 52 * time.Second},
		"at once, that late": {time.Minute, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := stage.newTextWorld(t, nil)
			began := w.now()
			first := w.writes(t, w.message("Hello"))
			w.elapse(t, 3*time.Second)
			second := w.writes(t, w.message("Is anybody there?"))
			w.turns.queued = slices.DeleteFunc(w.turns.queued, func(item *turnItem) bool {
				if item.MessageID == second.MessageID && !item.MarkOnly {
					item.due = began.Add(tt.comes)
				}
				return item.MessageID == first.MessageID && !item.MarkOnly
			})
			w.elapse(t, 5*time.Minute)
			messages := w.messages(t)
			if got := w.sent(); !slices.Equal(got, []string{"Reply to 2 turns."}) || len(messages) != 3 {
				t.Fatalf("sent %q, messages %+v; want one reply to both", got, messages)
			}
			reply, carries := messages[2], w.readMessage(t, second.MessageID).Reply
			if !in(reply.OccurredAt, began, tt.want) || carries == nil || carries.Timestamp != reply.OccurredAt || w.readMessage(t, first.MessageID).Reply != nil {
				t.Errorf("replied after %s, the last message carries %+v; want it to, %s after the first", reply.OccurredAt.Sub(began), carries, tt.want)
			}
			w.settled(t)
		})
	}
}

func again(items []*turnItem) []*turnItem {
	var all []*turnItem
	for _, item := range items {
		due := item.due
		if due.IsZero() {
			due = item.ended[0]
		}
		all = append(all, &turnItem{TurnItem: item.TurnItem, due: due})
	}
	return all
}

// A batch answers with those of its items that failed.
func TestTurnsReportFailures(t *testing.T) {
	w, _ := newStage(t).newTextWorld(t, nil)
	m := w.writes(t, w.message("Hello"))
	w.pass(time.Hour)
	mark := `{"workspace_id":"` + string(w.workspace) + `","thread_id":"` + string(m.ThreadID) + `","message_id":"` + string(m.MessageID) + `","mark_only":true}`
	batch := events.SQSEvent{Records: []events.SQSMessage{
		{MessageId: "1", Body: mark}, {MessageId: "2", Body: "{"}, {MessageId: "3", Body: strings.Replace(mark, string(m.ThreadID), "nobody", 1)}, {MessageId: "4", Body: mark},
	}}
	threads := lifecycle.Threads{Parts: w.calls.Parts}
	got, err := threads.Turns(w.ctx, batch)
	want := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{{ItemIdentifier: "2"}, {ItemIdentifier: "3"}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Turns = %v (-want +got):\n%s", err, diff)
	}
	if got, err := threads.Turns(w.ctx, events.SQSEvent{}); got.BatchItemFailures == nil || err != nil {
		t.Errorf("Turns of nothing = %+v, %v; want an empty list", got, err)
	}
	if m := w.readMessage(t, m.MessageID); !in(m.MarkedAt, m.ArrivedAt.Time, time.Hour) || m.Reply != nil {
		t.Errorf("message %+v, want it marked", m)
	}
}

// A test conversation goes the same way.
func TestTurnOfATest(t *testing.T) {
	w, _ := newStage(t).newTextWorld(t, nil)
	report := w.message("Hello")
	report.Test = true
	w.writes(t, report)
	w.elapse(t, time.Minute)
	if got := w.sent(); len(got) != 1 || !w.line.texts[0].Test {
		t.Errorf("sent %q, test %t; want a test's reply", got, w.line.texts[0].Test)
	}
	for _, m := range w.messages(t) {
		if m.Source != conversation.SourceTest || !m.IsTest {
			t.Errorf("message %+v, want a test's", m)
		}
	}
	w.settled(t)
}

// Whichever request of a turn fails, before or after its effect, and wherever its functions
// crash: redelivered items lead on, to one reply, listed once and carried by one message, and
// one mark for each message. A crash between claim and send costs the reply, which is never
// sent twice.
func TestTurnFaults(t *testing.T) {
	stage := newStage(t)
	saboteur := &saboteur{HTTPClient: stage.cfg.HTTPClient}
	sabotaged := stage.cfg
	sabotaged.HTTPClient = saboteur
	store := dynamo.New(sabotaged, stage.names)
	for _, kind := range []faultKind{notDone, doneUnanswered, crashBefore, crashAfter} {
		t.Run(string(kind), func(t *testing.T) {
			unsent := 0
			after := 0
			for ; ; after++ {
				w, _ := stage.newTextWorld(t, store)
				saboteur.crash = w.turns.crashAll
				first := w.writes(t, w.message("Hello"))
				w.elapse(t, 3*time.Second)
				w.writes(t, w.message("Is anybody there?"))
				saboteur.arm(kind, after)
				w.elapse(t, 15*time.Minute)
				if !saboteur.disarm() {
					break
				}
				w.settled(t)
				listed, carried := 0, 0
				for _, m := range w.messages(t) {
					if m.Direction == conversation.Outbound {
						listed++
					}
					if m.Reply != nil {
						carried++
					}
					if m.Direction == conversation.Inbound && m.MarkedAt.Before(m.ArrivedAt.Add(15*time.Second)) {
						t.Errorf("request %d: marked %s after its arrival", after, m.MarkedAt.Sub(m.ArrivedAt.Time))
					}
				}
				sent := w.sent()
				if len(sent) == 0 {
					unsent++
				}
				if listed != 1 || carried != 1 || len(sent) > 1 {
					t.Errorf("request %d: sent %q, listed %d, carried by %d messages; want one", after, sent, listed, carried)
				}
				if turns := w.readThread(t, first.ThreadID).Turns; turns != 1 {
					t.Errorf("request %d: %d turns, want 1", after, turns)
				}
			}
			if after < 12 {
				t.Errorf("%d requests, want a whole turn's", after)
			}
			switch crashes := kind == crashBefore || kind == crashAfter; {
			case crashes && unsent > 1:
				t.Errorf("%d replies unsent, want that of a crash right after the claim alone", unsent)
			case !crashes && unsent > 0:
				t.Errorf("%d replies unsent, want none", unsent)
			}
			t.Logf("%d requests, %d unsent", after, unsent)
		})
	}
}

// However many messages a turn has, it has one reply, and they all are marked in time.
func TestTurnOfSixtyMessages(t *testing.T) {
	w, _ := newStage(t).newTextWorld(t, nil)
	var thread conversation.ThreadID
	for range 60 {
		thread = w.writes(t, w.message("Hello")).ThreadID
	}
	w.elapse(t, 29*time.Second)
	w.settled(t)
	if got := w.readThread(t, thread); len(w.sent()) != 1 || got.Turns != 1 || got.MessageCount != 61 {
		t.Errorf("sent %q, thread %+v; want one reply", w.sent(), got)
	}
}
