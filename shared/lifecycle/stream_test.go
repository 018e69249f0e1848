package lifecycle_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/lifecycle"
)

// record is a stream's record as Lambda writes it. An image may be nil.
func record(t fatal, number string, before, after map[string]types.AttributeValue) string {
	t.Helper()
	r := map[string]any{"eventName": "MODIFY"}
	change := map[string]any{"SequenceNumber": number, "StreamViewType": "NEW_AND_OLD_IMAGES"}
	for name, image := range map[string]map[string]types.AttributeValue{"OldImage": before, "NewImage": after} {
		if image == nil {
			continue
		}
		data, err := attributevalue.MarshalMapJSON(image)
		if err != nil {
			t.Fatalf("%v", err)
		}
		change[name] = json.RawMessage(data)
	}
	switch {
	case before == nil:
		r["eventName"] = "INSERT"
	case after == nil:
		r["eventName"] = "REMOVE"
	}
	r["dynamodb"] = change
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return string(data)
}

// follow gives the records to start-lifecycles, as one batch, and returns the numbers of
// those that it reports.
func (w *world) follow(t fatal, m *steps, records ...string) []string {
	t.Helper()
	batch := dynamo.StreamEvent{}
	for _, r := range records {
		var one dynamo.StreamRecord
		if err := json.Unmarshal([]byte(r), &one); err != nil {
			t.Fatalf("read %s: %v", r, err)
		}
		batch.Records = append(batch.Records, one)
	}
	answer, err := w.calls.Follow(m.Machine, m.threads(), w.turns.TurnQueues)(w.ctx, batch)
	if err != nil || answer.BatchItemFailures == nil {
		t.Fatalf("Follow = %+v, %v; want a list, nil", answer, err)
	}
	failed := []string{}
	for _, f := range answer.BatchItemFailures {
		failed = append(failed, f.ItemIdentifier)
	}
	return failed
}

// change makes a record of what do changes in a call.
func (w *world) change(t fatal, number string, callID conversation.CallID, do func()) string {
	t.Helper()
	before := w.callItem(t, callID)
	do()
	return record(t, number, before, w.callItem(t, callID))
}

func TestFollowStartsOnce(t *testing.T) {
	w, m := newWorld(t), newSteps(t)
	w.calls.Scale = 60
	call := w.newCall(customer + "99")
	accepted := w.change(t, "1", call.CallID, func() { w.accept(t, call) })
	for range 2 {
		if failed := w.follow(t, m, accepted, accepted); len(failed) != 0 {
			t.Errorf("failed %v, want none", failed)
		}
	}
	// The durations are the stage's: 2 min and 1 h, 60 times as fast, the pickup at least 20 s.
	want := map[string]string{
		string(call.CallID): `{"workspace_id":"` + string(w.workspace) + `","call_id":"` + string(call.CallID) + `","pickup_seconds":20,"call_seconds":60}`,
	}
	if diff := cmp.Diff(want, m.started); diff != "" {
		t.Errorf("executions (-want +got):\n%s", diff)
	}
}

// What begins no call's life starts nothing.
func TestFollowIgnores(t *testing.T) {
	w, m := newWorld(t), newSteps(t)
	history := w.newCall(customer + "99").Call
	history.Status = conversation.CallEnded
	inserted := w.change(t, "1", history.CallID, func() {
		if err := w.store.InsertCall(w.ctx, history); err != nil {
			t.Fatal(err)
		}
	})
	refused := w.newCall(customer + "99")
	refused.Status, refused.HoldsSlot = conversation.CallError, false
	gaveUp := w.change(t, "2", refused.CallID, func() {
		if err := w.store.ReceiveCall(w.ctx, refused, w.now()); err != nil {
			t.Fatal(err)
		}
	})
	call := w.accept(t, w.newCall(customer+"99"))
	changed := w.change(t, "3", call.CallID, func() {
		if err := w.store.SetCarrierID(w.ctx, call, "theirs"); err != nil {
			t.Fatal(err)
		}
	})
	pickedUp := w.change(t, "4", call.CallID, func() { // but nobody waits
		if err := w.store.PickUpCall(w.ctx, call, "theirs", w.now(), w.now()); err != nil {
			t.Fatal(err)
		}
	})
	removed := record(t, "5", w.callItem(t, call.CallID), nil)
	key := record(t, "6", nil, map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "w#idempotency#k"}, "call_id": &types.AttributeValueMemberS{Value: "c"},
	})
	if failed := w.follow(t, m, inserted, gaveUp, changed, pickedUp, removed, key); len(failed) != 0 || len(m.started) != 0 || len(m.woken) != 0 {
		t.Errorf("failed %v, started %v, woke %v; want nothing", failed, m.started, m.woken)
	}
	if failed := w.follow(t, m); len(failed) != 0 {
		t.Errorf("an empty batch failed %v, want nothing", failed)
	}
	data, err := json.Marshal(events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}})
	if err != nil || string(data) != `{"batchItemFailures":[]}` {
		t.Errorf("the answer is %s, %v; want an empty list, as null would be taken for a failure of all", data, err)
	}
}

// The token that is answered is the one of the record, as a later one waits for a later
// change.
func TestFollowWakes(t *testing.T) {
	w, m := newWorld(t), newSteps(t)
	token := func(callID conversation.CallID, token, attempt string) {
		t.Helper()
		m.wait(token)
		if _, err := w.store.StoreToken(w.ctx, w.workspace, callID, token, attempt); err != nil {
			t.Fatal(err)
		}
	}
	ph := w.place(t, w.newCall(customer+"99"))
	stored := w.change(t, "1", ph.CallID, func() { token(ph.CallID, "pickup", "1") })
	dialling := w.change(t, "2", ph.CallID, func() { w.line.ring(ph); w.deliverAll(t, ph) })
	next := w.change(t, "3", ph.CallID, func() { token(ph.CallID, "hang-up", "2") })
	over := w.change(t, "4", ph.CallID, func() {
		w.line.answer(ph)
		w.line.hangUp(ph, conversation.EndCustomerHungUp)
		w.deliverAll(t, ph)
	})
	for _, step := range []struct {
		record string
		woken  []string
	}{
		{stored, nil}, {next, nil}, // no change of status
		{dialling, []string{"pickup"}},
		{dialling, []string{"pickup"}}, // again: a dead token
		{over, []string{"pickup", "hang-up"}},
		{dialling, []string{"pickup", "hang-up"}}, // late
		{over, []string{"pickup", "hang-up"}},
	} {
		if failed := w.follow(t, m, step.record); len(failed) != 0 || !slices.Equal(m.woken, step.woken) {
			t.Errorf("failed %v, woke %v; want none, %v", failed, m.woken, step.woken)
		}
	}

	ph = w.place(t, w.newCall(customer+"01"))
	token(ph.CallID, "busy", "1")
	busy := w.change(t, "5", ph.CallID, func() { w.line.hangUp(ph, conversation.EndBusy); w.deliverAll(t, ph) })
	m.waiting["busy"] = false
	m.answer = func(string) string { return "TaskTimedOut" }
	if failed := w.follow(t, m, busy); len(failed) != 0 {
		t.Errorf("a token that has timed out: failed %v, want none", failed)
	}
	m.answer = func(string) string { return "" }
	m.wait("busy")
	if w.follow(t, m, busy); !slices.Contains(m.woken, "busy") {
		t.Errorf("woke %v, want busy: a call in error wakes its task too", m.woken)
	}
}

// Exactly the records that fail come again.
func TestFollowReportsFailures(t *testing.T) {
	w, m := newWorld(t), newSteps(t)
	var records, all []string
	for n := range 20 {
		call, number := w.newCall(customer+"99"), fmt.Sprint(n)
		records = append(records, w.change(t, number, call.CallID, func() { w.accept(t, call) }))
		all = append(all, number)
	}
	m.answer = func(string) string { return "ExecutionLimitExceeded" }
	if failed := w.follow(t, m, records...); !slices.Equal(failed, all) || len(m.started) != 0 {
		t.Errorf("failed %v, want every one", failed)
	}
	m.answer = func(string) string { return "" }
	poison := `{"eventName":"INSERT","dynamodb":{"SequenceNumber":"poison","NewImage":{"pk":{"S":"w#call#c"},"status":{"L":[]}}}}`
	worse := `{"eventName":"MODIFY","dynamodb":{"SequenceNumber":"worse","NewImage":` + imageOf(records[0]) + `,"OldImage":[]}}`
	batch := slices.Concat(records[:3], []string{poison}, records[3:], []string{worse})
	if failed := w.follow(t, m, batch...); !slices.Equal(failed, []string{"poison", "worse"}) || len(m.started) != 20 {
		t.Errorf("failed %v, %d started; want the poisonous ones, 20", failed, len(m.started))
	}
}

func imageOf(record string) string {
	var r dynamo.StreamRecord
	_ = json.Unmarshal([]byte(record), &r)
	return string(r.Change.NewImage)
}

// A customer's message has an item in the queue of turns, and one in that of marks, both counted
// from its arrival and grouped by workspace. No turn is early, and no mark late. What either
// queue refuses comes again.
func TestFollowQueuesTurns(t *testing.T) {
	stage := newStage(t)
	for name, tt := range map[string]struct {
		scale lifecycle.Scale
		lag   time.Duration // of the stream
		want  []time.Duration
	}{
		"at once":         {1, 0, seconds(15, 28)},
		"60 times faster": {60, 0, seconds(1, 28)},
		"5 s later":       {1, 5 * time.Second, seconds(10, 23)},
		"4.2 s later":     {1, 4200 * time.Millisecond, seconds(11, 23)},
		"a minute later":  {1, time.Minute, seconds(0, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			w, m := stage.newWorld(t, nil), newSteps(t)
			w.calls.Scale = tt.scale
			report := w.message("Hello")
			if status := w.postText(t, report); status != 200 {
				t.Fatalf("status %d", status)
			}
			message := w.byCarrierID(t, report.CarrierID)
			arrived := record(t, "1", nil, w.item(t, w.names.ConversationsTable, "message", string(message.MessageID)))
			w.pass(tt.lag)
			if failed := w.follow(t, m, arrived); len(failed) != 0 {
				t.Fatalf("failed %v, want none", failed)
			}
			item := lifecycle.TurnItem{WorkspaceID: w.workspace, ThreadID: message.ThreadID, MessageID: message.MessageID}
			mark := item
			mark.MarkOnly = true
			turn := turnItem{TurnItem: item, url: w.turns.Turns, group: string(w.workspace), due: w.now().Add(tt.want[0])}
			late := turnItem{TurnItem: mark, url: w.turns.Marks, group: string(w.workspace), due: w.now().Add(tt.want[1])}
			queued := func() (all []turnItem) {
				for _, item := range w.turns.queued {
					all = append(all, *item)
				}
				return all
			}
			options := cmp.AllowUnexported(turnItem{})
			if diff := cmp.Diff([]turnItem{turn, late}, queued(), options); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}

			for refuses, want := range map[string]turnItem{w.turns.Turns: late, w.turns.Marks: turn} {
				w.turns.queued = nil
				w.turns.answer = func(url string) string {
					if url == refuses {
						return "ThrottlingException"
					}
					return ""
				}
				failed := w.follow(t, m, arrived)
				if diff := cmp.Diff([]turnItem{want}, queued(), options); diff != "" || !slices.Equal(failed, []string{"1"}) {
					t.Errorf("%s is throttled: failed %v, want the record; items (-want +got):\n%s", refuses, failed, diff)
				}
			}
		})
	}
}

// A new conversation starts its state machine once, with the workspace's inactivity.
func TestFollowStartsThreads(t *testing.T) {
	w, m := newWorld(t), newSteps(t)
	w.calls.Scale = 60
	if status := w.postText(t, w.message("Hello")); status != 200 {
		t.Fatalf("status %d", status)
	}
	threadID := string(w.allThreads(t)[0].ThreadID)
	opened := record(t, "1", nil, w.threadItem(t, conversation.ThreadID(threadID)))
	m.answer = func(string) string { return "ExecutionLimitExceeded" }
	if failed := w.follow(t, m, opened); !slices.Equal(failed, []string{"1"}) {
		t.Errorf("throttled: failed %v, want the record", failed)
	}
	m.answer = func(string) string { return "" }
	for range 2 {
		if failed := w.follow(t, m, opened, opened); len(failed) != 0 {
			t.Errorf("failed %v, want none", failed)
		}
	}
	want := map[string]string{threadID: `{"workspace_id":"` + string(w.workspace) + `","thread_id":"` + threadID + `","wait_seconds":33}`}
	if diff := cmp.Diff(want, m.started); diff != "" {
		t.Errorf("executions (-want +got):\n%s", diff)
	}
	if len(w.turns.queued) != 0 {
		t.Errorf("items %v, want none of a thread", w.turns.queued)
	}
}

// What begins no conversation, and is no customer's message, starts and queues nothing.
func TestFollowIgnoresTexts(t *testing.T) {
	w, m := newWorld(t), newSteps(t)
	written := w.writes(t, w.message("Hello"))
	w.turns.queued = nil
	history, over := written.Message, w.readThread(t, written.ThreadID).Thread
	history.MessageID, over.ThreadID = "m", "t"
	over.CompletedAt = history.OccurredAt
	if err := errors.Join(w.store.InsertMessage(w.ctx, history), w.store.InsertThread(w.ctx, over)); err != nil {
		t.Fatal(err)
	}
	message := w.item(t, w.names.ConversationsTable, "message", string(written.MessageID))
	outbound := maps.Clone(message)
	outbound["direction"] = &types.AttributeValueMemberS{Value: "outbound"}
	if failed := w.follow(t, m,
		record(t, "1", nil, w.item(t, w.names.ConversationsTable, "message", "m")),
		record(t, "2", nil, w.threadItem(t, "t")),
		record(t, "3", message, message), // marked, perhaps
		record(t, "4", message, nil),
		record(t, "5", nil, outbound),
		record(t, "6", nil, w.item(t, w.names.ConversationsTable, "carrier_message", w.carrier, written.ProviderMessageID)),
		record(t, "7", nil, w.item(t, w.names.ConversationsTable, "open_thread", ours, written.Address, "sms")),
		record(t, "8", w.threadItem(t, written.ThreadID), nil),
	); len(failed) != 0 || len(m.started) != 0 || len(w.turns.queued) != 0 {
		t.Errorf("failed %v, started %v, queued %v; want nothing", failed, m.started, w.turns.queued)
	}
}

// The task that waits for a follow-up's answer is woken by the answer, and by the failure of
// the follow-up; by nothing else.
func TestFollowWakesThreads(t *testing.T) {
	w, m := newWorld(t), newSteps(t)
	threadID := w.writes(t, w.message("Hello")).ThreadID
	change := func(number string, change func(*conversation.ThreadRecord)) string {
		t.Helper()
		before, thread := w.threadItem(t, threadID), w.readThread(t, threadID)
		change(&thread)
		if err := w.store.WriteThread(w.ctx, dynamo.ThreadWrite{Thread: thread, Until: w.now()}); err != nil {
			t.Fatal(err)
		}
		return record(t, number, before, w.threadItem(t, threadID))
	}
	followed := change("1", func(thread *conversation.ThreadRecord) {
		thread.Attempt = &conversation.FollowUpAttempt{FollowUp: conversation.FollowUp{Status: conversation.FollowUpSent}}
		thread.LastCustomerAt = conversation.Time{} // who claims a follow-up forgets when the customer wrote
	})
	before := w.threadItem(t, threadID)
	if _, err := w.store.StoreThreadToken(w.ctx, w.workspace, threadID, "waits", "1"); err != nil {
		t.Fatal(err)
	}
	stored := record(t, "2", before, w.threadItem(t, threadID))
	delivered := change("3", func(thread *conversation.ThreadRecord) { thread.Attempt.Status = conversation.FollowUpDelivered })
	m.wait("waits")
	if failed := w.follow(t, m, followed, stored, delivered); len(failed) != 0 || len(m.woken) != 0 {
		t.Errorf("failed %v, woke %v; want nothing", failed, m.woken)
	}
	failure := change("4", func(thread *conversation.ThreadRecord) { thread.Attempt.Status = conversation.FollowUpFailed })
	change("5", func(thread *conversation.ThreadRecord) { thread.Attempt.Status = conversation.FollowUpDelivered })
	before = w.threadItem(t, threadID)
	if status := w.postText(t, w.message("Thank you")); status != 200 {
		t.Fatalf("status %d", status)
	}
	answer := record(t, "6", before, w.threadItem(t, threadID))
	for _, wakes := range []string{failure, answer, answer} {
		m.woken = nil
		m.wait("waits")
		if failed := w.follow(t, m, wakes); len(failed) != 0 || !slices.Equal(m.woken, []string{"waits"}) {
			t.Errorf("failed %v, woke %v; want it woken", failed, m.woken)
		}
	}
}
