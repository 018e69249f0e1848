package lifecycle_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
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
	batch := lifecycle.StreamEvent{}
	for _, r := range records {
		var one lifecycle.StreamRecord
		if err := json.Unmarshal([]byte(r), &one); err != nil {
			t.Fatalf("read %s: %v", r, err)
		}
		batch.Records = append(batch.Records, one)
	}
	answer, err := w.calls.Follow(m.Machine)(w.ctx, batch)
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
	var r lifecycle.StreamRecord
	_ = json.Unmarshal([]byte(record), &r)
	return string(r.Change.NewImage)
}
