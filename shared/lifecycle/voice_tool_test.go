package lifecycle_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/lifecycle"
)

// tool is the report that the assistant wants a text to be sent.
func (w *world) tool(text string) carrier.Callback {
	report := w.report(carrier.EventTool, "")
	report.Text, report.ToolID = text, "tool-"+conversation.NewID()
	return report
}

// A text that the assistant wants to be sent is a message of the customer's conversation,
// and is sent once, however often it is reported.
func TestVoiceTool(t *testing.T) {
	w := newWorld(t)
	ph := w.bring(t, talking)
	report := w.tool("Check-in is from 3 pm.")
	at := conversation.At(w.now())
	var statuses [5]int
	var reports sync.WaitGroup
	for n := range statuses {
		reports.Go(func() { statuses[n], _ = w.callback(t, ph.WorkspaceID, ph.CallID, report) })
	}
	reports.Wait()
	w.pass(time.Minute)
	if status, told := w.callback(t, ph.WorkspaceID, ph.CallID, report); status != http.StatusOK || told != (carrier.Instruction{}) {
		t.Errorf("reported again: status %d, told %+v; want 200, nothing", status, told)
	}
	if !slices.Contains(statuses[:], http.StatusOK) {
		t.Errorf("statuses %v, want 200 of the one that sends", statuses)
	}
	messages, threads := w.messages(t), w.allThreads(t)
	if len(messages) != 1 || len(threads) != 1 {
		t.Fatalf("messages %+v in threads %+v, want one in one", messages, threads)
	}
	customer := &conversation.Customer{Name: "Ada", Phone: customer + "99"}
	want := conversation.MessageRecord{
		Message: conversation.Message{
			WorkspaceID: w.workspace, AssistantID: w.assistant, AssistantName: "Reception", Channel: conversation.SMS,
			Direction: conversation.Outbound, Source: conversation.SourceVoiceTool, OccurredAt: at, Content: "Check-in is from 3 pm.",
			ProviderMessageID: "text-" + string(messages[0].MessageID), Customer: customer,
			Costs: &conversation.MessageCosts{Currency: "USD", Total: "0.0075"},
		},
		Carrier: w.carrier, Number: ours, Address: customer.Phone, CallID: ph.CallID, ArrivedAt: at, SentAt: at,
	}
	if diff := cmp.Diff(want, messages[0], recordOptions); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if got := threads[0]; got.MessageCount != 1 || got.Unanswered != nil || got.Unmarked != nil || !got.LastCustomerAt.IsZero() {
		t.Errorf("thread %+v, want nothing to be answered", got)
	}
	text := w.line.texts[0]
	wantText := carrier.Text{
		WorkspaceID: w.workspace, MessageID: messages[0].MessageID, Channel: conversation.SMS, From: ours, To: customer.Phone,
		Content: "Check-in is from 3 pm.", Source: conversation.SourceVoiceTool, CallbackURL: baseURL + w.messagePath(),
	}
	if text.asked != 1 || text.Text != wantText {
		t.Errorf("the carrier was asked %d times to send %+v; want once, %+v", text.asked, text.Text, wantText)
	}

	// The next one, and the customer's answer, are of the same conversation.
	if status, _ := w.callback(t, ph.WorkspaceID, ph.CallID, w.tool("Check-out is until noon.")); status != http.StatusOK {
		t.Errorf("another: status %d, want 200", status)
	}
	if m := w.writes(t, w.message("Thank you")); m.ThreadID != threads[0].ThreadID || w.readThread(t, m.ThreadID).MessageCount != 3 {
		t.Errorf("the answer is in thread %s, want %s with three messages", m.ThreadID, threads[0].ThreadID)
	}
}

// What becomes of the text decides what is kept of it.
func TestVoiceToolOutcomes(t *testing.T) {
	stage := newStage(t)
	for name, tt := range map[string]struct {
		fate    fate
		optOut  bool
		asked   int
		stored  bool
		carrier bool // it has the carrier's id
	}{
		"sent":                {textSent, false, 1, true, true},
		"refused":             {textRefused, false, 1, false, false},
		"no answer":           {textMute, false, 1, true, false},
		"no answer, not sent": {textLost, false, 1, true, false},
		"opted out":           {textSent, true, 0, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := stage.newWorld(t, nil)
			w.line.fate = func(carrier.Text) fate { return tt.fate }
			count := 0
			if tt.optOut {
				w.writes(t, w.message("STOP"))
				count = 1
			}
			ph := w.bring(t, talking)
			report := w.tool("Check-in is from 3 pm.")
			if status, _ := w.callback(t, ph.WorkspaceID, ph.CallID, report); status != http.StatusOK {
				t.Errorf("status %d, want 200", status)
			}
			if got := len(w.sent()); got != tt.asked {
				t.Errorf("the carrier was asked %d times, want %d", got, tt.asked)
			}
			if tt.stored {
				count++
			}
			messages := w.messages(t)
			if len(messages) != count {
				t.Fatalf("messages %+v, want %d", messages, count)
			}
			threads := w.allThreads(t)
			if len(threads) != min(1, count) || count > 0 && threads[0].MessageCount != count {
				t.Errorf("threads %+v, want one of %d messages, or none", threads, count)
			}
			if tt.stored {
				if m := messages[0]; m.SentAt.IsZero() || (m.ProviderMessageID != "") != tt.carrier {
					t.Errorf("message sent at %q with the carrier's id %q; want it sent, with an id: %t", m.SentAt, m.ProviderMessageID, tt.carrier)
				}
			}
		})
	}
}

// With a text that is refused goes its conversation, if that has nothing else.
func TestRefusedTextAlone(t *testing.T) {
	stage := newStage(t)
	for name, tt := range map[string]struct {
		before, meanwhile func(*testing.T, *world)
		messages, threads int
	}{
		"alone":                         {},
		"the customer wrote before":     {before: func(t *testing.T, w *world) { w.says(t, "Hello") }, messages: 2, threads: 1},
		"the customer writes meanwhile": {meanwhile: func(t *testing.T, w *world) { w.writes(t, w.message("Hello")) }, messages: 1, threads: 1},
		"a follow-up was refused before": {before: func(t *testing.T, w *world) {
			w.line.fate = func(carrier.Text) fate { return textRefused }
			w.followedUpCall(t)
		}, threads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := stage.newExamined(t, nil)
			if tt.before != nil {
				tt.before(t, w)
			}
			var begun map[string]types.AttributeValue
			w.line.fate = func(carrier.Text) fate { return textRefused }
			w.line.received = func(context.Context, carrier.Text) {
				begun = w.threadItem(t, conversation.ThreadID(w.pointer(t)))
				if tt.meanwhile != nil {
					tt.meanwhile(t, w)
				}
			}
			ph := w.bring(t, talking)
			if status, _ := w.callback(t, ph.WorkspaceID, ph.CallID, w.tool("Check-in is from 3 pm.")); status != http.StatusOK {
				t.Errorf("status %d, want 200", status)
			}
			messages, threads, pointer := w.messages(t), w.allThreads(t), w.pointer(t)
			if len(messages) != tt.messages || len(threads) != tt.threads || (pointer != "") != (tt.threads == 1) {
				t.Errorf("messages %+v, threads %+v, pointer %q; want %d, %d", messages, threads, pointer, tt.messages, tt.threads)
			}
			if tt.threads == 1 {
				w.line.received = nil
				w.elapse(t, 30*time.Second)
				w.toItsEnd(t, threads[0].ThreadID)
				w.checkThread(t, w.readThread(t, threads[0].ThreadID))
				return
			}
			// Its state machine begins, and has nothing to do; nor has the sweep.
			m := newSteps(t)
			if failed := w.follow(t, m, record(t, "1", nil, begun), record(t, "2", begun, nil)); len(failed) != 0 || len(m.started) != 1 {
				t.Errorf("failed %v, started %v; want the one machine", failed, m.started)
			}
			if step := w.advance(t, conversation.ThreadID(textOf(begun, "thread_id"))); step.Next != lifecycle.StepDone {
				t.Errorf("its machine: %+v, want done", step)
			}
			w.pass(time.Hour)
			if err := w.look().Sweep(w.ctx); err != nil || len(w.allThreads(t)) != 0 {
				t.Errorf("Sweep = %v, threads %+v; want none", err, w.allThreads(t))
			}
			if written := w.writes(t, w.message("Hello")); w.pointer(t) != string(written.ThreadID) {
				t.Errorf("the customer's message is in thread %s, want the open one", written.ThreadID)
			}
		})
	}
}

// A text that somebody has stored, and perhaps sent, is never sent again. It counts as sent
// when nobody can be at it any more.
func TestVoiceToolAfterACrash(t *testing.T) {
	w := newWorld(t)
	ph := w.bring(t, talking)
	report := w.tool(strings.Repeat("𝄞", 2000))
	report.At = w.now()
	crash := make(chan struct{})
	w.line.received = func(ctx context.Context, _ carrier.Text) { <-crash } // while it sends
	first := make(chan int)
	go func() { status, _ := w.callback(t, ph.WorkspaceID, ph.CallID, report); first <- status }()
	for len(w.messages(t)) == 0 {
		time.Sleep(time.Millisecond)
	}
	if status, _ := w.callback(t, ph.WorkspaceID, ph.CallID, report); status != http.StatusInternalServerError {
		t.Errorf("while it is being sent: status %d, want 500, so that it is reported again", status)
	}
	w.pass(time.Minute)
	if status, _ := w.callback(t, ph.WorkspaceID, ph.CallID, report); status != http.StatusOK {
		t.Errorf("a minute later: status %d, want 200", status)
	}
	m := w.messages(t)[0]
	if m.SentAt != conversation.At(w.now()) || m.ProviderMessageID != "" || len(w.sent()) != 0 {
		t.Errorf("message sent at %s, sent %v; want it to count as sent", m.SentAt, w.sent())
	}
	if characters := len([]rune(m.Content)); characters != 1600 {
		t.Errorf("%d characters, want 1600", characters)
	}
	close(crash)
	if status := <-first; status != http.StatusOK {
		t.Errorf("the first: status %d, want 200", status)
	}
	if got := w.messages(t)[0]; got.ProviderMessageID == "" || got.SentAt != m.SentAt || len(w.sent()) != 1 {
		t.Errorf("message %+v, sent %v; want the carrier's id", got, w.sent())
	}
}
