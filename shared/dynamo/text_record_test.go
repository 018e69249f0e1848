package dynamo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

func imageOf(t *testing.T, it map[string]types.AttributeValue) json.RawMessage {
	t.Helper()
	image, err := attributevalue.MarshalMapJSON(it)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// What the API shows of a conversation: messages at once, the thread when it has completed,
// and nothing of a test.
func TestWhatTheAPIShows(t *testing.T) {
	w := newWard(t)
	for name, tt := range map[string]struct {
		key   dynamo.ThreadKey
		shown bool
	}{
		"a customer's": {bySMS, true}, "a test": {asTest, false},
	} {
		in, out := w.written(tt.key, "Hello."), w.sent(tt.key, "Welcome.")
		thread := w.write(t, joining(w.newThread(tt.key), in, out))
		for _, m := range []conversation.MessageRecord{in, out} {
			got, err := w.Message(t.Context(), w.ws(), m.MessageID, nil)
			if errors.Is(err, conversation.ErrNotFound) == tt.shown || tt.shown && (err != nil || got.ThreadID != thread.ThreadID) {
				t.Errorf("%s: Message = %+v, %v; want it shown: %t", name, got, err, tt.shown)
			}
			if stored := w.message(t, m.MessageID); (stored.Source == conversation.SourceTest) == tt.shown {
				t.Errorf("%s: source %s; want it to be a test: %t", name, stored.Source, !tt.shown)
			}
		}
		lists := func(when string, messages, threads int) {
			t.Helper()
			for _, q := range []dynamo.MessageQuery{{}, {ThreadID: thread.ThreadID}, {AssistantID: thread.AssistantID}} {
				page, err := w.Messages(t.Context(), w.ws(), q, dynamo.PageRequest{Limit: 100})
				n := 0
				for _, m := range page.Items {
					if m.ThreadID == thread.ThreadID {
						n++
					}
				}
				if err != nil || n != messages {
					t.Errorf("%s, %s: %d messages of it by %+v, %v; want %d", name, when, n, q, err, messages)
				}
			}
			page, err := w.Threads(t.Context(), w.ws(), dynamo.ThreadQuery{}, dynamo.PageRequest{Limit: 100})
			n := 0
			for _, one := range page.Items {
				if one.ThreadID == thread.ThreadID {
					n++
				}
			}
			if err != nil || n != threads {
				t.Errorf("%s, %s: it is listed %d times, %v; want %d", name, when, n, err, threads)
			}
			_, err = w.Thread(t.Context(), w.ws(), thread.ThreadID, nil)
			if (err == nil) != (threads == 1) || err != nil && !errors.Is(err, conversation.ErrNotFound) {
				t.Errorf("%s, %s: Thread = %v; want it shown: %t", name, when, err, threads == 1)
			}
		}
		shown := map[bool]int{true: 1}[tt.shown]
		lists("open", 2*shown, 0)
		w.write(t, completing(thread))
		lists("completed", 2*shown, shown)
	}
}

// All messages of a thread in their order, tests too, and none of another's.
func TestThreadMessages(t *testing.T) {
	w := newWard(t)
	for _, k := range []dynamo.ThreadKey{bySMS, asTest} {
		w.talk(t, dynamo.ThreadKey{Number: otherNumber, Address: k.Address, Channel: k.Channel, Test: k.Test})
		thread := w.newThread(k)
		var want []conversation.MessageID
		for n := range 130 { // more than are read at once
			m := w.written(k, fmt.Sprint(n))
			m.OccurredAt = after(time.Duration(n/2) * time.Second)
			want = append(want, m.MessageID)
			thread = w.write(t, joining(thread, m))
		}
		outsider := w.sent(k, "Not in the index yet.")
		outsider.OccurredAt = after(-time.Second)
		thread = w.write(t, joining(thread, outsider))
		w.unlist(t, outsider.MessageID)
		for name, tt := range map[string]struct {
			also []conversation.MessageID
			want []conversation.MessageID
		}{
			"as the index shows": {nil, want},
			"and what is known":  {[]conversation.MessageID{want[7], outsider.MessageID, outsider.MessageID, "none"}, append([]conversation.MessageID{outsider.MessageID}, want...)},
		} {
			messages, err := w.ThreadMessages(t.Context(), thread, tt.also...)
			if err != nil {
				t.Fatal(err)
			}
			got := []conversation.MessageID{}
			for _, m := range messages {
				got = append(got, m.MessageID)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

func TestTextImages(t *testing.T) {
	w := newWard(t)
	m := w.written(bySMS, "Hello.")
	thread := w.write(t, joining(w.newThread(bySMS), m))
	past := conversation.Message{MessageID: conversation.MessageID(conversation.NewID()), WorkspaceID: w.ws(), OccurredAt: after(0)}
	if err := w.InsertMessage(t.Context(), past); err != nil {
		t.Fatal(err)
	}
	pastThread := conversation.Thread{ThreadID: conversation.ThreadID(conversation.NewID()), WorkspaceID: w.ws(), CompletedAt: after(0)}
	if err := w.InsertThread(t.Context(), pastThread); err != nil {
		t.Fatal(err)
	}
	call := w.bring(t, queued, false)
	ws := string(w.ws())
	for name, tt := range map[string]struct {
		pk                     string
		call, message, threads bool
	}{
		"a message":             {pk: ws + "#message#" + string(m.MessageID), message: true},
		"a thread":              {pk: ws + "#thread#" + string(thread.ThreadID), threads: true},
		"a call":                {pk: callPK(call.CallRecord), call: true},
		"a message of the past": {pk: ws + "#message#" + string(past.MessageID)},
		"a thread of the past":  {pk: ws + "#thread#" + string(pastThread.ThreadID)},
		"a carrier's id":        {pk: ws + "#carrier_message#simulator#" + m.ProviderMessageID},
		"a pointer":             {pk: ws + "#open_thread#" + bySMS.Number + "#" + bySMS.Address + "#sms"},
	} {
		it := w.item(t, w.conversations, tt.pk)
		if it == nil {
			t.Errorf("%s: there is no item %s", name, tt.pk)
		}
		image := imageOf(t, it)
		gotMessage, isMessage, err := dynamo.MessageImage(image)
		if err != nil || isMessage != tt.message || isMessage && gotMessage.MessageID != m.MessageID {
			t.Errorf("%s: MessageImage = %+v, %t, %v; want %t", name, gotMessage, isMessage, err, tt.message)
		}
		gotThread, isThread, err := dynamo.ThreadImage(image)
		if err != nil || isThread != tt.threads || isThread && !cmp.Equal(gotThread, thread) {
			t.Errorf("%s: ThreadImage = %+v, %t, %v; want %t", name, gotThread, isThread, err, tt.threads)
		}
		if _, isCall, err := dynamo.CallImage(image); err != nil || isCall != tt.call {
			t.Errorf("%s: CallImage = %t, %v; want %t", name, isCall, err, tt.call)
		}
		if _, filtered := it["carrier"]; filtered != (tt.call || tt.message || tt.threads) {
			t.Errorf("%s: it has a carrier: %t, want %t", name, filtered, !filtered)
		}
	}
	for _, none := range []string{"", "null"} {
		_, isMessage, err := dynamo.MessageImage(json.RawMessage(none))
		_, isThread, err2 := dynamo.ThreadImage(json.RawMessage(none))
		if isMessage || isThread || err != nil || err2 != nil {
			t.Errorf("image %q: %t, %t, %v, %v; want neither", none, isMessage, isThread, err, err2)
		}
	}
}
