package lifecycle_test

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// What isn't a carrier's report about a text of its own stores nothing.
func TestMessageCallbacksAreVerified(t *testing.T) {
	w := newWorld(t)
	other := w.newWorld(t, nil)
	path := w.messagePath()
	good := w.message("Hello")
	body := bodyOf(good)
	stranger := good
	stranger.To = "+12025550199"
	sign := func(path string, body []byte) string { return carrier.Sign(secret, w.now(), baseURL+path, body) }
	large := append(bytes.Repeat([]byte(" "), 1<<20-len(body)), body...)
	othersPath := "/carriers/" + w.carrier + "/" + string(other.workspace)
	tests := map[string]struct {
		path, signature string
		body            []byte
		want            int
	}{
		"no signature":         {path, "", body, 401},
		"another's signature":  {path, carrier.Sign([]byte("another"), w.now(), baseURL+path, body), body, 401},
		"another body":         {path, sign(path, []byte("{}")), body, 401},
		"another address":      {path, sign(othersPath, body), body, 401},
		"older than 5 minutes": {path, carrier.Sign(secret, w.now().Add(-301*time.Second), baseURL+path, body), body, 401},
		"nobody's number":      {path, sign(path, bodyOf(stranger)), bodyOf(stranger), 404},
		"another workspace's":  {othersPath, sign(othersPath, body), body, 404},
		"no such carrier":      {"/carriers/nobody/w", sign("/carriers/nobody/w", body), body, 404},
		"too large":            {path, sign(path, large), large, 413},
		"not JSON":             {path, sign(path, []byte("{")), []byte("{"), 400},
		"empty":                {path, sign(path, nil), nil, 400},
		"about a call":         {path, sign(path, bodyOf(w.report(carrier.EventProgress, ""))), bodyOf(w.report(carrier.EventProgress, "")), 400},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			status, answer := w.post(t, tt.path, tt.signature, tt.body)
			if status != tt.want {
				t.Errorf("status %d, want %d", status, tt.want)
			}
			if strings.Contains(string(answer), "dynamo") || strings.Contains(string(answer), "signature") {
				t.Errorf("answer %s, want no causes", answer)
			}
		})
	}
	if messages, threads := w.messages(t), w.allThreads(t); len(messages)+len(threads)+len(other.messages(t)) != 0 {
		t.Errorf("stored %v and %v, want nothing", messages, threads)
	}
	if status, _ := w.post(t, path, carrier.Sign(secret, w.now().Add(-299*time.Second), baseURL+path, body), body); status != http.StatusOK {
		t.Errorf("the oldest one: status %d, want 200", status)
	}
	if messages := w.messages(t); len(messages) != 1 {
		t.Errorf("stored %v, want one", messages)
	}
}

var recordOptions = cmp.Options{
	cmpopts.IgnoreFields(conversation.Message{}, "MessageID", "ThreadID"),
	cmpopts.IgnoreFields(conversation.Thread{}, "ThreadID"),
	cmpopts.IgnoreFields(conversation.Customer{}, "CustomerID"),
}

// What a customer writes is stored as it is, in a conversation that begins with it.
func TestMessageContent(t *testing.T) {
	stage := newStage(t)
	tests := map[string]struct {
		content string
		media   int
		from    string
		channel conversation.Channel
		optOut  bool
	}{
		"a text":           {content: "Is there a room with a view?"},
		"empty":            {},
		"media only":       {media: 3},
		"media and text":   {content: "My passport", media: 1},
		"4,000 characters": {content: strings.Repeat("äß𝄞", 1333) + "!"},
		"emoji":            {content: "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301 \u200b"},
		"right to left":    {content: "שלום, יש חדר? \u202eabc"},
		"white space":      {content: " \n\t "},
		"stop":             {content: "  stop ", optOut: true},
		"stop in a text":   {content: "please stop by tomorrow"},
		"WhatsApp":         {content: "Hello", channel: conversation.WhatsApp},
		"a user id":        {content: "Hello", channel: conversation.WhatsApp, from: "US.13491208655302741918"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := stage.newWorld(t, nil)
			report := w.message(tt.content)
			report.MediaCount = tt.media
			customer := &conversation.Customer{Phone: report.From}
			costs := &conversation.MessageCosts{Currency: "USD", Total: "0.0075"}
			if tt.channel != "" {
				report.Channel, costs.Total = tt.channel, "0.0050"
			}
			if tt.from != "" {
				report.From, customer.Phone = tt.from, ""
			}
			wrote := conversation.At(w.now())
			w.pass(3 * time.Second)
			arrived := conversation.At(w.now())
			if status := w.postText(t, report); status != http.StatusOK {
				t.Fatalf("status %d, want 200", status)
			}
			m := w.byCarrierID(t, report.CarrierID)
			want := conversation.MessageRecord{
				Message: conversation.Message{
					WorkspaceID: w.workspace, AssistantID: w.assistant, AssistantName: "Reception", Channel: report.Channel,
					Direction: conversation.Inbound, Source: conversation.SourceInbound, OccurredAt: wrote, Content: tt.content,
					MediaCount: tt.media, ProviderMessageID: report.CarrierID, Customer: customer, Costs: costs,
				},
				Carrier: w.carrier, Number: ours, Address: report.From, ArrivedAt: arrived,
			}
			if diff := cmp.Diff(want, m, recordOptions); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			waiting := []conversation.Unanswered{{MessageID: m.MessageID, ArrivedAt: arrived}}
			wantThread := conversation.ThreadRecord{
				Thread: conversation.Thread{
					WorkspaceID: w.workspace, AssistantID: w.assistant, AssistantName: "Reception", Channel: report.Channel,
					MessageCount: 1, StartedAt: wrote, LastMessageAt: wrote, Customer: customer,
				},
				Carrier: w.carrier, Number: ours, Address: report.From, Version: 1, TextBytes: len(report.Content),
				LastArrivalAt: arrived, LastCustomerAt: wrote, Unanswered: waiting, Unmarked: waiting,
			}
			thread := w.readThread(t, m.ThreadID)
			if diff := cmp.Diff(wantThread, thread, recordOptions); diff != "" {
				t.Errorf("thread (-want +got):\n%s", diff)
			}
			if m.Customer.CustomerID == "" || m.Customer.CustomerID != thread.Customer.CustomerID {
				t.Errorf("customer %q of the message, %q of the thread; want the same", m.Customer.CustomerID, thread.Customer.CustomerID)
			}
			if it := w.threadItem(t, m.ThreadID); it["open_shard"] == nil || it["open_until"] == nil {
				t.Error("the thread is not open, want the sweep to see it")
			}
			optedOut, err := w.store.OptedOut(w.ctx, w.workspace, keyOf(thread))
			if err != nil || optedOut != tt.optOut {
				t.Errorf("opted out: %t, %v; want %t", optedOut, err, tt.optOut)
			}
		})
	}
}

func keyOf(t conversation.ThreadRecord) dynamo.ThreadKey {
	return dynamo.ThreadKey{Number: t.Number, Address: t.Address, Channel: t.Channel, Test: t.IsTest}
}

// Messages of one customer, number and channel join one conversation; a test is apart from
// all others.
func TestMessagesJoin(t *testing.T) {
	w := newWorld(t)
	first := w.message("Hello")
	another := func(change func(*carrier.MessageCallback)) conversation.MessageRecord {
		t.Helper()
		report := w.message("Hello again")
		change(&report)
		if status := w.postText(t, report); status != http.StatusOK {
			t.Fatalf("status %d, want 200", status)
		}
		return w.byCarrierID(t, report.CarrierID)
	}
	w.postText(t, first)
	thread := w.byCarrierID(t, first.CarrierID).ThreadID
	w.pass(time.Minute)
	same := another(func(r *carrier.MessageCallback) { r.At = r.At.Add(-2 * time.Minute) }) // it was long on its way
	if got := w.readThread(t, thread); same.ThreadID != thread || got.MessageCount != 2 || got.LastMessageAt != conversation.At(first.At) ||
		got.LastArrivalAt != conversation.At(w.now()) || got.LastCustomerAt != conversation.At(first.At) || len(got.Unanswered) != 2 || len(got.Unmarked) != 2 {
		t.Errorf("thread %+v, want both messages in it", got)
	}
	apart := map[conversation.ThreadID]string{thread: "the first"}
	for name, change := range map[string]func(*carrier.MessageCallback){
		"another customer": func(r *carrier.MessageCallback) { r.From = customer + "98" },
		"another channel":  func(r *carrier.MessageCallback) { r.Channel = conversation.WhatsApp },
		"a test":           func(r *carrier.MessageCallback) { r.Test = true },
	} {
		m := another(change)
		if apart[m.ThreadID] != "" {
			t.Errorf("%s is in the thread of %s", name, apart[m.ThreadID])
		}
		apart[m.ThreadID] = name
		if test := name == "a test"; m.IsTest != test || (m.Source == conversation.SourceTest) != test {
			t.Errorf("%s: is_test %t, source %s", name, m.IsTest, m.Source)
		}
	}

	// A conversation that is full makes room for another.
	for name, fill := range map[string]func(*conversation.ThreadRecord){
		"by messages": func(full *conversation.ThreadRecord) { full.MessageCount = conversation.MaxThreadMessages - 1 },
		"by bytes":    func(full *conversation.ThreadRecord) { full.TextBytes = conversation.MaxThreadBytes - 1 },
	} {
		full := w.readThread(t, thread)
		fill(&full)
		if err := w.store.WriteThread(w.ctx, dynamo.ThreadWrite{Thread: full, Until: w.now()}); err != nil {
			t.Fatal(err)
		}
		last, next := another(func(*carrier.MessageCallback) {}), another(func(*carrier.MessageCallback) {})
		if got := w.readThread(t, thread); last.ThreadID != thread || !got.Superseded || !got.Full() {
			t.Errorf("%s: the last message is in %s; thread %+v; want it full and superseded", name, last.ThreadID, got)
		}
		thread = next.ThreadID
		if got := w.readThread(t, thread); thread == last.ThreadID || got.MessageCount != 1 || got.TextBytes != len(next.Content) {
			t.Errorf("%s: the next message is in %s of %d messages, %d bytes; want a new one", name, thread, got.MessageCount, got.TextBytes)
		}
	}
}

// One message reported five times at once is stored once; five at once are all stored, in
// one conversation.
func TestMessagesAtOnce(t *testing.T) {
	stage := newStage(t)
	for name, tt := range map[string]struct {
		report func(*world, int) carrier.MessageCallback
		want   int
	}{
		"the same": {func(w *world, _ int) carrier.MessageCallback {
			report := w.message("Hello")
			report.CarrierID = "the same"
			return report
		}, 1},
		"five": {func(w *world, n int) carrier.MessageCallback { return w.message(strings.Repeat("x", n)) }, 5},
	} {
		t.Run(name, func(t *testing.T) {
			w := stage.newWorld(t, nil)
			var at sync.WaitGroup
			statuses := make([]int, 5)
			for n := range statuses {
				report := tt.report(w, n)
				at.Go(func() { statuses[n] = w.postText(t, report) })
			}
			at.Wait()
			if slices.ContainsFunc(statuses, func(status int) bool { return status != http.StatusOK }) {
				t.Errorf("statuses %v, want 200", statuses)
			}
			messages, threads := w.messages(t), w.allThreads(t)
			if len(messages) != tt.want || len(threads) != 1 || threads[0].MessageCount != tt.want || len(threads[0].Unanswered) != tt.want {
				t.Errorf("%d messages in threads %+v; want %d in one", len(messages), threads, tt.want)
			}
			// And once more, when all is stored.
			if status := w.postText(t, tt.report(w, 0)); status != http.StatusOK {
				t.Errorf("status %d, want 200", status)
			}
		})
	}
}

// The customer's latest word counts, in whichever order they arrive, and for its channel.
func TestOptOut(t *testing.T) {
	stage := newStage(t)
	for name, tt := range map[string]struct {
		words []string // by arrival; the number says when they were written
		want  bool
	}{
		"stop":                {[]string{"1STOP"}, true},
		"start":               {[]string{"1START"}, false},
		"stop, start":         {[]string{"1stop", "2start"}, false},
		"stop, start, late":   {[]string{"2start", "1stop"}, false},
		"start, stop, late":   {[]string{"2Stop", "1Start"}, true},
		"stop, other words":   {[]string{"1STOP", "2start now"}, true},
		"of the same moment":  {[]string{"1STOP", "1START"}, true},
		"stop, start, stop":   {[]string{"3STOP", "2START", "1STOP"}, true},
		"help is not consent": {[]string{"1STOP", "2HELP"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := stage.newWorld(t, nil)
			began := w.now()
			for _, word := range tt.words {
				report := w.message(word[1:])
				report.At = began.Add(time.Duration(word[0]-'0') * time.Minute)
				for range 2 {
					if status := w.postText(t, report); status != http.StatusOK {
						t.Fatalf("%s: status %d, want 200", word, status)
					}
				}
			}
			thread := w.allThreads(t)[0]
			if got, err := w.store.OptedOut(w.ctx, w.workspace, keyOf(thread)); err != nil || got != tt.want {
				t.Errorf("opted out: %t, %v; want %t", got, err, tt.want)
			}
			if thread.MessageCount != len(tt.words) {
				t.Errorf("%d messages are stored, want %d", thread.MessageCount, len(tt.words))
			}
			for channel, test := range map[conversation.Channel]bool{conversation.WhatsApp: false, conversation.SMS: true} {
				key := keyOf(thread)
				key.Channel, key.Test = channel, test
				if got, err := w.store.OptedOut(w.ctx, w.workspace, key); err != nil || got {
					t.Errorf("%s, test %t: opted out %t, %v; want the others untouched", channel, test, got, err)
				}
			}
		})
	}
}

// A message to an assistant that is disabled is stored all the same.
func TestMessageToNobody(t *testing.T) {
	w := newWorld(t)
	w.define(t, func(d *dynamo.Definition) { d.Assistants[0].Enabled = false })
	if m := w.writes(t, w.message("Hello")); m.AssistantID != w.assistant {
		t.Errorf("message %+v, want the assistant's", m)
	}
}

// A receipt adds the carrier's id where it isn't known, and moves a follow-up on. What it is
// not about is ignored.
func TestReceipts(t *testing.T) {
	w := newWorld(t)
	inbound := w.writes(t, w.message("Hello"))
	receipt := func(messageID conversation.MessageID, status carrier.ReceiptStatus) carrier.MessageCallback {
		return carrier.MessageCallback{Event: carrier.EventReceipt, CarrierID: "theirs", At: w.now(), MessageID: messageID, Status: status}
	}
	before := w.messages(t)
	for _, of := range []conversation.MessageID{"nobody", inbound.MessageID} {
		if status := w.postText(t, receipt(of, carrier.ReceiptDelivered)); status != http.StatusOK {
			t.Errorf("of %s: status %d, want 200", of, status)
		}
	}
	if diff := cmp.Diff(before, w.messages(t)); diff != "" {
		t.Errorf("messages changed (-before +after):\n%s", diff)
	}

	// A follow-up whose sending nobody could confirm.
	thread := w.readThread(t, inbound.ThreadID)
	followUp := conversation.MessageRecord{
		Message: conversation.Message{
			MessageID: conversation.MessageID(conversation.NewID()), Direction: conversation.Outbound, Source: conversation.SourceEvaluationFollowUp,
			OccurredAt: conversation.At(w.now()), Content: "Was it of help?",
		},
		Carrier: w.carrier,
	}
	attempt := conversation.FollowUpAttempt{FollowUp: conversation.FollowUp{Status: conversation.FollowUpPending, Channel: conversation.SMS}, MessageID: followUp.MessageID}
	thread.Attempt = &attempt
	thread.MessageCount++
	if err := w.store.WriteThread(w.ctx, dynamo.ThreadWrite{Thread: thread, Until: w.now(), New: []conversation.MessageRecord{followUp}}); err != nil {
		t.Fatal(err)
	}
	sentAt := conversation.At(w.now())
	for _, step := range []struct {
		says, want string
		sent       bool
	}{
		{"sent", "sent", true}, {"sent", "sent", true}, {"delivered", "delivered", true}, {"failed", "delivered", true}, {"sent", "delivered", true},
	} {
		if status := w.postText(t, receipt(followUp.MessageID, carrier.ReceiptStatus(step.says))); status != http.StatusOK {
			t.Errorf("%s: status %d, want 200", step.says, status)
		}
		got, m := w.readThread(t, thread.ThreadID).Attempt, w.readMessage(t, followUp.MessageID)
		if string(got.Status) != step.want || got.SentAt != sentAt || m.SentAt != sentAt || m.ProviderMessageID != "theirs" {
			t.Errorf("after %s: attempt %+v, message sent at %s with id %q; want %s at %s", step.says, got, m.SentAt, m.ProviderMessageID, step.want, sentAt)
		}
		w.pass(time.Second)
	}
	if m := w.readMessage(t, inbound.MessageID); m.Content != "Hello" || w.readThread(t, thread.ThreadID).MessageCount != 2 {
		t.Errorf("message %+v, want it untouched", m)
	}
}

// The receipt of a text that isn't listed is to come again, as long as the text may be on its
// way. What was never ours, or no id, is ignored.
func TestReceiptOfUnlisted(t *testing.T) {
	w := newWorld(t)
	madeAgo := func(age time.Duration) conversation.MessageID {
		return conversation.MessageID(conversation.FirstID(w.now().Add(-age)))
	}
	for name, tt := range map[string]struct {
		of   conversation.MessageID
		want int
	}{
		"of this moment":         {madeAgo(0), 500},
		"a minute old":           {madeAgo(time.Minute), 500},
		"older":                  {madeAgo(time.Minute + time.Millisecond), 200},
		"of the next moment":     {madeAgo(-time.Millisecond), 200},
		"of a year later":        {madeAgo(-365 * 24 * time.Hour), 200},
		"no id":                  {"0", 200},
		"no id, of many letters": {conversation.MessageID(strings.Repeat("z", 128)), 200},
	} {
		report := carrier.MessageCallback{Event: carrier.EventReceipt, CarrierID: "theirs", At: w.now(), MessageID: tt.of, Status: carrier.ReceiptFailed}
		if status := w.postText(t, report); status != tt.want {
			t.Errorf("%s: status %d, want %d", name, status, tt.want)
		}
	}
}

// A receipt that comes before its text is listed isn't lost: it counts when it comes again.
func TestReceiptBeforeItsText(t *testing.T) {
	w, _ := newStage(t).newExamined(t, nil)
	threadID := w.says(t, "Hello")
	w.pass(30 * time.Minute)
	var early int
	var report carrier.MessageCallback
	w.line.received = func(_ context.Context, text carrier.Text) {
		report = carrier.MessageCallback{Event: carrier.EventReceipt, CarrierID: "theirs", At: w.now(), MessageID: text.MessageID, Status: carrier.ReceiptFailed}
		early = w.postText(t, report)
	}
	w.advance(t, threadID)
	if got := w.readThread(t, threadID).Attempt; early != http.StatusInternalServerError || got.Status != conversation.FollowUpSent {
		t.Errorf("before it is listed: status %d, then %q; want 500, sent", early, got.Status)
	}
	status := w.postText(t, report)
	if got := w.readThread(t, threadID).Attempt; status != http.StatusOK || got.Status != conversation.FollowUpFailed {
		t.Errorf("again: status %d, then %q; want 200, failed", status, got.Status)
	}
}

// Whichever request of a callback fails, before or after its effect: the carrier repeats it,
// and in the end all is stored once, in one conversation, and sent once at most.
func TestMessageCallbackFaults(t *testing.T) {
	stage := newStage(t)
	saboteur := &saboteur{HTTPClient: stage.cfg.HTTPClient, crash: func() {}}
	sabotaged := stage.cfg
	sabotaged.HTTPClient = saboteur
	store := dynamo.New(sabotaged, stage.names)
	for name, report := range map[string]func(*world) func() int{
		"a message": func(w *world) func() int {
			report := w.message("Hello")
			return func() int { return w.postText(t, report) }
		},
		"an opt-out": func(w *world) func() int {
			report := w.message("STOP")
			return func() int { return w.postText(t, report) }
		},
		"the voice tool": func(w *world) func() int {
			ph := w.bring(t, talking)
			report := w.tool("Check-in is from 3 pm.")
			return func() int { status, _ := w.callback(t, ph.WorkspaceID, ph.CallID, report); return status }
		},
	} {
		t.Run(name, func(t *testing.T) {
			after := 0
			for _, kind := range []faultKind{notDone, doneUnanswered, crashBefore, crashAfter} {
				for after = 0; ; after++ {
					w := stage.newWorld(t, store)
					deliver := report(w)
					saboteur.arm(kind, after)
					status := deliver()
					if !saboteur.disarm() {
						break
					}
					for n := 0; status != http.StatusOK && n < 5; n++ {
						w.pass(20 * time.Second)
						status = deliver()
					}
					messages, threads := w.messages(t), w.allThreads(t)
					if status != http.StatusOK || len(messages) != 1 || len(threads) != 1 || threads[0].MessageCount != 1 || len(w.sent()) > 1 {
						t.Errorf("request %d, %s: status %d, messages %+v, threads %+v, sent %q; want one, sent once at most", after, kind, status, messages, threads, w.sent())
					}
					if message := messages[0]; message.Direction == conversation.Outbound && message.SentAt.IsZero() {
						t.Errorf("request %d, %s: %+v isn't taken to be sent", after, kind, message)
					}
				}
			}
			if after < 5 {
				t.Errorf("%d requests, want a whole callback's", after)
			}
		})
	}
}
