package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// reportAll posts callbacks at the same time.
func (d desk) reportAll(t testing.TB, texts ...carrier.MessageCallback) {
	t.Helper()
	secret := carrierSecret(t)
	var group sync.WaitGroup
	for _, c := range texts {
		group.Go(func() { d.report(t, secret, c) })
	}
	group.Wait()
}

// What a customer writes within seconds gets one reply, and each message an event, of which
// one of the last to arrive has the reply. What the carrier reports five times at once is one
// message. A test is answered, and is in no list and no event.
func TestTurns(t *testing.T) {
	t.Parallel()
	d := newTextDesk(t)
	u := newUser(t, d.ws)
	s := u.subscribe(t, nil, received, sent, threadDone)
	test := d.written(customerOf("52"), question)
	test.Test = true
	d.reportAll(t, test)
	tried, ok := d.openThread(t, dynamo.ThreadKey{Number: d.number, Address: test.From, Channel: conversation.SMS, Test: true})
	if !ok {
		t.Fatal("the test has no conversation")
	}
	repeated := d.written(customerOf("51"), question)
	d.reportAll(t, slices.Repeat([]carrier.MessageCallback{repeated}, 5)...)
	words := []string{question, "Hello?", "Are you there?"}
	var burst []carrier.MessageCallback
	for i, content := range words {
		burst = append(burst, d.written(customerOf("50"), content))
		burst[i].At = burst[0].At.Add(time.Duration(i) * 10 * time.Millisecond)
	}
	began := time.Now()
	d.reportAll(t, burst[0])
	d.reportAll(t, burst[1:]...) // in any order
	took := time.Since(began)

	once := d.closed(t, d.arrivedAs(t, repeated.CarrierID).ThreadID)
	if d.checkClosed(t, once); said(once.Transcript) != "user: "+question+"\nassistant: "+answered {
		t.Errorf("what is reported five times makes\n%s", said(once.Transcript))
	}
	whole := d.closed(t, d.arrivedAs(t, burst[0].CarrierID).ThreadID)
	d.checkClosed(t, whole)
	users := "user: " + strings.Join(words, "\nuser: ") + "\nassistant: "
	switch rest, ordered := strings.CutPrefix(said(whole.Transcript), users); {
	case took > 700*time.Millisecond: // a second after the first, the assistant replies
		t.Logf("on a slow machine, three messages at once take %v", took)
	case !ordered || strings.Contains(rest, "\n"):
		t.Errorf("three messages at once make\n%s", said(whole.Transcript))
	}

	events := s.awaitEvents(t, 6) // each of the four messages, two threads
	with := map[string]int{}
	for _, h := range events {
		if h.Event != received {
			continue
		}
		m := d.messageRecord(t, conversation.MessageID(h.EventID))
		h.checkTimely(t, m.ArrivedAt)
		if strings.Contains(string(h.Message), `"reply":{`) {
			with[m.ProviderMessageID]++
		}
	}
	if with[repeated.CarrierID] != 1 || with[burst[0].CarrierID]+with[burst[1].CarrierID]+with[burst[2].CarrierID] != whole.MessageCount-3 ||
		whole.MessageCount == 4 && with[burst[0].CarrierID] > 0 {
		t.Errorf("the events with a reply, by message: %v, of %v and %v", with, repeated, burst)
	}

	await(t, func() error {
		if tried = d.threadRecord(t, tried.ThreadID); tried.Open() {
			return fmt.Errorf("the test's thread is open: %+v", tried)
		}
		return nil
	})
	if tried.CloseReason != conversation.Graded || said(tried.Transcript) != "user: "+question+"\nassistant: "+answered {
		t.Errorf("the test is %s:\n%s", tried.CloseReason, said(tried.Transcript))
	}
	if got := string(d.key.all(t)); strings.Contains(got, string(tried.ThreadID)) || !strings.Contains(got, string(whole.ThreadID)) {
		t.Errorf("the test shows, or the rest doesn't: %s", got)
	}
	for _, target := range []string{"/v1/threads/" + string(tried.ThreadID), "/v1/messages/" + string(tried.AnchorMessageID)} {
		if got := d.key.get(t, target); got.status != http.StatusNotFound {
			t.Errorf("%s of the test: %d %s, want 404", target, got.status, got.body)
		}
	}
	s.await(t, 6) // still
}

// After STOP a customer is heard and gets no answer, until START. HELP gets the workspace's
// help text. A word means that alone; and whatever is written comes back as it was.
func TestOptOut(t *testing.T) {
	t.Parallel()
	d := newTextDesk(t)
	u := newUser(t, d.ws)
	s := u.subscribe(t, nil, received)
	out, other := customerOf("60"), customerOf("61")
	odd := "please stop by tomorrow 👋 שלום " + strings.Repeat("é", 3900)
	stop, asked := d.written(out, " stop\n"), d.written(out, question)
	asked.At = stop.At.Add(time.Millisecond)
	d.reportAll(t, d.written(other, "Help"), stop)
	d.reportAll(t, asked, d.written(customerOf("62"), odd))
	d.write(t, conversation.WhatsApp, out, "And by WhatsApp?", 0) // another channel
	s.awaitEvents(t, 5)
	d.reportAll(t, d.written(out, "Start"))
	await(t, func() error {
		if out, err := deployed(t).store.OptedOut(t.Context(), d.ws, dynamo.ThreadKey{Number: d.number, Address: out, Channel: conversation.SMS}); out || err != nil {
			return fmt.Errorf("opted out: %v, %v", out, err)
		}
		return nil
	})
	s.awaitEvents(t, 6)
	d.reportAll(t, d.written(out, "And when is check-in?"))
	got := about(t, s.awaitEvents(t, 7), received)
	for content, reply := range map[string]string{
		"Help": "Ring 1 for help.", " stop\n": "", question: "", "Start": "", "And when is check-in?": answered,
		odd: "I understand. What else can I do for you?", "And by WhatsApp?": "I will find that out for you. Is there anything else?",
	} {
		m, ok := got[content]
		if m.Reply == nil {
			m.Reply = new(conversation.Reply)
		}
		if !ok || m.Reply.Content != reply {
			t.Errorf("%q: %v, reply %q, want %q", content, ok, m.Reply.Content, reply)
		}
		shown := want[struct{ Message conversation.Message }](t, d.key.get(t, "/v1/messages/"+string(m.MessageID)), http.StatusOK).Message
		if shown.Content != content {
			t.Errorf("%q is shown as %q", content, shown.Content)
		}
	}
	all := d.messagesOf(t, got[" stop\n"].ThreadID)
	for _, m := range all {
		if m.Direction == conversation.Outbound && m.Content != answered {
			t.Errorf("who has opted out got %q", m.Content)
		}
	}
}
