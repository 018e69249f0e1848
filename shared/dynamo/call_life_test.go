package dynamo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/dynamo/dynamotest"
	"parley/shared/emulator"
)

// ward is a workspace with one assistant, and a client that sees the items as they are.
type ward struct {
	*dynamo.Store
	db            *dynamodb.Client
	conversations string
	workspaces    string
	counters      string
	definition    dynamo.Definition
}

func newWard(t *testing.T) ward {
	t.Helper()
	cfg := emulator.Config(t)
	names := dynamotest.Stage(t, cfg)
	w := ward{Store: dynamo.New(cfg, names), db: dynamodb.NewFromConfig(cfg), conversations: names.ConversationsTable, workspaces: names.WorkspacesTable, counters: names.CountersTable}
	return w.workspace(t)
}

// workspace is the same stage with another workspace.
func (w ward) workspace(t *testing.T) ward {
	t.Helper()
	w.definition = newDefinition()
	w.definition.Assistants[0].PhoneNumbers = nil
	if err := w.Define(t.Context(), dynamo.Definition{}, w.definition, "25.5"); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w ward) item(t *testing.T, table, pk string) map[string]types.AttributeValue {
	t.Helper()
	out, err := w.db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: keyOf(pk)})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

func (w ward) number(t *testing.T, pk, attribute string) string {
	t.Helper()
	n, _ := w.item(t, w.workspaces, pk)[attribute].(*types.AttributeValueMemberN)
	if n == nil {
		return ""
	}
	return n.Value
}

func (w ward) slots(t *testing.T) string {
	return w.number(t, slotsPK(w.definition, 0), "active_calls")
}
func (w ward) balance(t *testing.T) string {
	return w.number(t, workspacePK(w.definition), "balance")
}

func keyPK(call conversation.CallRecord) string {
	return string(call.WorkspaceID) + "#idempotency#" + call.IdempotencyKey
}

func callPK(call conversation.CallRecord) string {
	return string(call.WorkspaceID) + "#call#" + string(call.CallID)
}

// all is everything that a write of a call's life could change.
func (w ward) all(t *testing.T, call conversation.CallRecord) []map[string]types.AttributeValue {
	t.Helper()
	return []map[string]types.AttributeValue{
		w.item(t, w.conversations, callPK(call)), w.item(t, w.conversations, keyPK(call)),
		w.item(t, w.workspaces, slotsPK(w.definition, 0)), w.item(t, w.workspaces, workspacePK(w.definition)),
	}
}

func (w ward) newCall() conversation.CallRecord {
	return conversation.CallRecord{
		Call: conversation.Call{
			CallID: conversation.CallID(conversation.NewID()), WorkspaceID: w.definition.Workspace.WorkspaceID,
			AssistantID: w.definition.Assistants[0].AssistantID, AssistantName: "Reception",
			CallType: conversation.Outbound, Direction: conversation.Outbound, Status: conversation.CallQueued,
			StartedAt: conversation.At(now), Customer: &conversation.Customer{Phone: "+12025550123"},
		},
		Carrier: "simulator", Number: mainNumber, LongestSeconds: 3600, HoldsSlot: true,
		IdempotencyKey: dynamo.HashIdempotencyKey(conversation.NewID()),
	}
}

// now is when the calls of these tests begin; deadline is the next one that a write sets.
var (
	now      = time.Date(2030, 5, 6, 7, 8, 9, 0, time.UTC)
	deadline = now.Add(time.Hour)
)

func (w ward) accept(t *testing.T, call conversation.CallRecord) conversation.CallRecord {
	t.Helper()
	replay, err := w.AcceptCall(t.Context(), dynamo.Acceptance{Call: call, ConcurrentCalls: 10, CallsPerHour: 200, Until: now.Add(time.Minute)})
	if err != nil || replay != "" {
		t.Fatalf("AcceptCall = %q, %v; want none, nil", replay, err)
	}
	return call
}

func (w ward) read(t *testing.T, call conversation.CallRecord) dynamo.StoredCall {
	t.Helper()
	stored, err := w.CallRecord(t.Context(), call.WorkspaceID, call.CallID)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// A state is one that a call can be in, and how it gets there.
type state string

const (
	queued     state = "queued"
	inProgress state = "in progress"
	hungUp     state = "hung up"
	ended      state = "ended"
	completed  state = "completed"
	failed     state = "error"
)

// bring makes a call in a state. One without a slot is a customer's own.
func (w ward) bring(t *testing.T, to state, slot bool) dynamo.StoredCall {
	t.Helper()
	call := w.newCall()
	if slot {
		w.accept(t, call)
	} else {
		call.HoldsSlot = false
		if err := w.ReceiveCall(t.Context(), call, now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("bring the call to %s: %v", to, err)
		}
	}
	path := map[state]int{queued: 0, inProgress: 1, hungUp: 2, ended: 3, completed: 4}
	if to == failed {
		must(w.FailCall(t.Context(), call, conversation.EndBusy, now))
	}
	for step := 1; step <= path[to]; step++ {
		switch step {
		case 1:
			must(w.PickUpCall(t.Context(), call, "theirs", now, now.Add(2*time.Minute)))
		case 2:
			must(w.HangUpCall(t.Context(), call, "theirs", now, conversation.EndCustomerHungUp, now.Add(3*time.Minute)))
		case 3:
			must(w.EndCall(t.Context(), w.read(t, call), ending, now.Add(4*time.Minute)))
		case 4:
			must(w.CompleteCall(t.Context(), w.read(t, call), completion))
		}
	}
	return w.read(t, call)
}

var (
	ending = dynamo.Ending{
		At: conversation.At(now), Reason: conversation.EndCustomerHungUp, DurationSeconds: 60,
		Transcript: []conversation.Turn{{Role: conversation.RoleAssistant, Content: "Hello."}},
	}
	completion = dynamo.Completion{
		At:    conversation.At(now),
		Costs: &conversation.CallCosts{Currency: "GBP", Total: "0.2500", Components: []conversation.CostComponent{}},
	}
	snapshot = conversation.ConfigSnapshot{Version: 1, Model: "scripted", Greeting: "Hello {{guest}}", Prompt: "Help."}
)

// Every write of a call's life, from every state: where its condition holds it does what it
// should, once; elsewhere it says so and nothing changes.
func TestCallLife(t *testing.T) {
	type open int
	const (
		stays open = iota
		moves
		leaves
	)
	tests := map[string]struct {
		write   func(context.Context, ward, dynamo.StoredCall) error
		from    []state
		to      conversation.CallStatus // "": as it was
		open    open
		frees   bool // the slot
		charges bool
		unkeys  bool
	}{
		"note the carrier's id": {
			write: func(ctx context.Context, w ward, c dynamo.StoredCall) error {
				return w.SetCarrierID(ctx, c.CallRecord, "theirs")
			},
			from: []state{queued},
		},
		"pick up": {
			write: func(ctx context.Context, w ward, c dynamo.StoredCall) error {
				return w.PickUpCall(ctx, c.CallRecord, "theirs", now, deadline)
			},
			from: []state{queued}, to: conversation.CallInProgress, open: moves,
		},
		"hang up": {
			write: func(ctx context.Context, w ward, c dynamo.StoredCall) error {
				return w.HangUpCall(ctx, c.CallRecord, "theirs", now, conversation.EndCustomerHungUp, deadline)
			},
			from: []state{queued, inProgress}, to: conversation.CallInProgress, open: moves,
		},
		"snapshot": {
			write: func(ctx context.Context, w ward, c dynamo.StoredCall) error { return w.SnapshotCall(ctx, c, snapshot) },
			from:  []state{queued, inProgress, hungUp},
		},
		"fail": {
			write: func(ctx context.Context, w ward, c dynamo.StoredCall) error {
				return w.FailCall(ctx, c.CallRecord, conversation.EndNoAnswer, now)
			},
			from: []state{queued, inProgress}, to: conversation.CallError, open: leaves, frees: true,
		},
		"stall one that is queued": {
			write: func(ctx context.Context, w ward, c dynamo.StoredCall) error {
				return w.StallQueuedCall(ctx, c.CallRecord, now)
			},
			from: []state{queued}, to: conversation.CallError, open: leaves, frees: true,
		},
		"stall": {
			write: func(ctx context.Context, w ward, c dynamo.StoredCall) error {
				return w.StallCall(ctx, c.CallRecord, now)
			},
			from: []state{inProgress, hungUp}, to: conversation.CallError, open: leaves, frees: true,
		},
		"stall one that has been hung up since it was read": {
			write: func(ctx context.Context, w ward, c dynamo.StoredCall) error {
				c.HungUpAt = conversation.Time{}
				return w.StallCall(ctx, c.CallRecord, now)
			},
			from: []state{inProgress}, to: conversation.CallError, open: leaves, frees: true,
		},
		"refuse": {
			write: func(ctx context.Context, w ward, c dynamo.StoredCall) error {
				return w.RefuseCall(ctx, c.CallRecord, now)
			},
			from: []state{queued}, to: conversation.CallError, open: leaves, frees: true, unkeys: true,
		},
		"end": {
			write: func(ctx context.Context, w ward, c dynamo.StoredCall) error {
				return w.EndCall(ctx, c, ending, deadline)
			},
			from: []state{inProgress, hungUp}, to: conversation.CallEnded, open: moves, frees: true,
		},
		"complete": {
			write: func(ctx context.Context, w ward, c dynamo.StoredCall) error {
				return w.CompleteCall(ctx, c, completion)
			},
			from: []state{ended}, open: leaves, charges: true,
		},
	}
	stage := newWard(t)
	for name, tt := range tests {
		for _, from := range []state{queued, inProgress, hungUp, ended, completed, failed} {
			for _, slot := range []bool{true, false} {
				if tt.unkeys && !slot {
					continue // customers' calls have no key
				}
				t.Run(fmt.Sprintf("%s/%s/slot %t", name, from, slot), func(t *testing.T) {
					w := stage.workspace(t)
					other := w.accept(t, w.newCall()) // keeps its slot throughout
					call := w.bring(t, from, slot)
					before := w.all(t, call.CallRecord)

					err := tt.write(t.Context(), w, call)

					after := w.all(t, call.CallRecord)
					if !contains(tt.from, from) {
						if !errors.Is(err, dynamo.ErrStale) {
							t.Errorf("error %v, want ErrStale", err)
						}
						if diff := cmp.Diff(before, after, ignored); diff != "" {
							t.Errorf("it changed all the same (-before +after):\n%s", diff)
						}
						return
					}
					if err != nil {
						t.Fatalf("error %v, want nil", err)
					}
					got := w.read(t, call.CallRecord)
					if tt.to != "" && got.Status != tt.to || tt.to == "" && got.Status != call.Status {
						t.Errorf("status %s, want %s", got.Status, tt.to)
					}
					until, shard := stringOf(after[0], "open_until"), stringOf(after[0], "open_shard")
					switch tt.open {
					case stays:
						if until != stringOf(before[0], "open_until") || shard == "" {
							t.Errorf("open until %q in %q, want it as it was", until, shard)
						}
					case moves:
						if until != conversation.At(deadline).String() || shard == "" {
							t.Errorf("open until %q in %q, want until %s", until, shard, deadline)
						}
					case leaves:
						if until != "" || shard != "" {
							t.Errorf("open until %q in %q, want it to leave the index", until, shard)
						}
					}
					slots := map[bool]string{true: "2", false: "1"}[slot && from != ended]
					if tt.frees {
						slots = "1"
					}
					if got := w.slots(t); got != slots {
						t.Errorf("%s active calls, want %s", got, slots)
					}
					balance := map[bool]string{true: "25.25", false: "25.5"}[tt.charges]
					if got := trimmed(w.balance(t)); got != balance {
						t.Errorf("balance %s, want %s", got, balance)
					}
					if hasKey := after[1] != nil; hasKey != (slot && !tt.unkeys) {
						t.Errorf("the key is there: %t, want %t", hasKey, slot && !tt.unkeys)
					}

					// Once more, by somebody who has read it then and by somebody who has read it since.
					for _, read := range []dynamo.StoredCall{call, got} {
						err := tt.write(t.Context(), w, read)
						again := w.all(t, call.CallRecord)
						if !errors.Is(err, dynamo.ErrStale) {
							t.Errorf("again: error %v, want ErrStale", err)
						}
						if diff := cmp.Diff(after, again, ignored); diff != "" {
							t.Errorf("again: it changed (-before +after):\n%s", diff)
						}
					}
					if err := w.FailCall(t.Context(), other, conversation.EndBusy, now); err != nil {
						t.Errorf("the other call's slot: %v", err)
					}
				})
			}
		}
	}
}

func contains(states []state, s state) bool {
	for _, one := range states {
		if one == s {
			return true
		}
	}
	return false
}

var ignored = cmpopts.IgnoreUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberBOOL{},
	types.AttributeValueMemberL{}, types.AttributeValueMemberM{}, types.AttributeValueMemberNULL{})

func stringOf(it map[string]types.AttributeValue, name string) string {
	s, _ := it[name].(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

// trimmed is a decimal without the zeros at its end, of which AWS keeps none.
func trimmed(decimal string) string {
	if strings.Contains(decimal, ".") {
		return strings.TrimRight(strings.TrimRight(decimal, "0"), ".")
	}
	return decimal
}

// What a write leaves beside the status.
func TestCallLifeFields(t *testing.T) {
	w := newWard(t)

	call := w.bring(t, queued, true)
	if err := w.HangUpCall(t.Context(), call.CallRecord, "theirs", now, conversation.EndMaxDuration, deadline); err != nil {
		t.Fatal(err)
	}
	got := w.read(t, call.CallRecord)
	if got.CarrierID != "theirs" || got.DiallingAt.Time != now || got.HungUpAt.Time != now || got.HungUpReason != conversation.EndMaxDuration {
		t.Errorf("a hang-up that overtakes all else leaves %+v, want the carrier's id, both moments and the reason", got.CallRecord)
	}

	call = w.bring(t, inProgress, true)
	later := now.Add(time.Minute)
	if err := w.HangUpCall(t.Context(), call.CallRecord, "another", later, "", deadline); err != nil {
		t.Fatal(err)
	}
	got = w.read(t, call.CallRecord)
	if got.CarrierID != "theirs" || got.DiallingAt.Time != now || got.HungUpAt.Time != later || got.HungUpReason != "" {
		t.Errorf("a hang-up leaves %+v, want the first carrier's id and moment of dialling", got.CallRecord)
	}
	if err := w.SetCarrierID(t.Context(), call.CallRecord, "another"); !errors.Is(err, dynamo.ErrStale) {
		t.Errorf("another carrier's id: error %v, want ErrStale", err)
	}

	call = w.bring(t, queued, true)
	if err := w.FailCall(t.Context(), call.CallRecord, conversation.EndRejected, later); err != nil {
		t.Fatal(err)
	}
	if got := w.read(t, call.CallRecord); got.EndReason != conversation.EndRejected || got.EndedAt.Time != later {
		t.Errorf("a failure leaves %s at %s, want rejected at %s", got.EndReason, got.EndedAt, later)
	}

	call = w.bring(t, hungUp, true)
	if err := w.SnapshotCall(t.Context(), call, snapshot); err != nil {
		t.Fatal(err)
	}
	second := snapshot
	second.Prompt = "Be rude."
	if err := w.SnapshotCall(t.Context(), w.read(t, call.CallRecord), second); !errors.Is(err, dynamo.ErrStale) {
		t.Errorf("a second snapshot: error %v, want ErrStale", err)
	}
	if got := w.read(t, call.CallRecord); got.ConfigSnapshot == nil || *got.ConfigSnapshot != snapshot {
		t.Errorf("snapshot %+v, want the first", got.ConfigSnapshot)
	}
	silent := ending
	silent.Transcript = []conversation.Turn{}
	if err := w.EndCall(t.Context(), w.read(t, call.CallRecord), silent, deadline); err != nil {
		t.Fatal(err)
	}
	if got := w.read(t, call.CallRecord); got.Transcript == nil || got.DurationSeconds != 60 || got.EndReason != ending.Reason {
		t.Errorf("ended with %+v, want an empty transcript, duration and reason", got.Call)
	}
}

func TestWritesToNoCall(t *testing.T) {
	w := newWard(t)
	nobody := dynamo.StoredCall{CallRecord: w.newCall()}
	if _, err := w.CallRecord(t.Context(), nobody.WorkspaceID, nobody.CallID); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("CallRecord = %v, want ErrNotFound", err)
	}
	for name, err := range map[string]error{
		"PickUpCall":   w.PickUpCall(t.Context(), nobody.CallRecord, "theirs", now, deadline),
		"HangUpCall":   w.HangUpCall(t.Context(), nobody.CallRecord, "theirs", now, "", deadline),
		"FailCall":     w.FailCall(t.Context(), nobody.CallRecord, conversation.EndBusy, now),
		"StallCall":    w.StallCall(t.Context(), nobody.CallRecord, now),
		"EndCall":      w.EndCall(t.Context(), nobody, ending, deadline),
		"CompleteCall": w.CompleteCall(t.Context(), nobody, completion),
		"SetCarrierID": w.SetCarrierID(t.Context(), nobody.CallRecord, "theirs"),
	} {
		if !errors.Is(err, dynamo.ErrStale) {
			t.Errorf("%s = %v, want ErrStale", name, err)
		}
	}
	if _, err := w.StoreToken(t.Context(), nobody.WorkspaceID, nobody.CallID, "t", "1"); !errors.Is(err, dynamo.ErrStale) {
		t.Errorf("StoreToken = %v, want ErrStale", err)
	}
	if err := w.PostponeCall(t.Context(), nobody.WorkspaceID, nobody.CallID, deadline); err != nil {
		t.Errorf("PostponeCall = %v, want nil", err)
	}
	if got := w.item(t, w.conversations, callPK(nobody.CallRecord)); got != nil {
		t.Errorf("the writes made %v, want nothing", got)
	}
}

// Of those who resolve a call at once, one does; the slot comes back once, and it is
// charged once.
func TestResolvedOnce(t *testing.T) {
	stage := newWard(t)
	resolve := map[string]func(context.Context, ward, dynamo.StoredCall) error{
		"fail": func(ctx context.Context, w ward, c dynamo.StoredCall) error {
			return w.FailCall(ctx, c.CallRecord, conversation.EndBusy, now)
		},
		"stall": func(ctx context.Context, w ward, c dynamo.StoredCall) error {
			return w.StallCall(ctx, c.CallRecord, now)
		},
		"end": func(ctx context.Context, w ward, c dynamo.StoredCall) error {
			return w.EndCall(ctx, c, ending, deadline)
		},
	}
	for range 10 {
		w := stage.workspace(t)
		w.accept(t, w.newCall())
		call := w.bring(t, inProgress, true)
		won := atOnce(9, func(n int) bool {
			err := resolve[[]string{"fail", "stall", "end"}[n%3]](t.Context(), w, call)
			if err != nil && !errors.Is(err, dynamo.ErrStale) {
				t.Errorf("error %v, want nil or ErrStale", err)
			}
			return err == nil
		})
		if won != 1 || w.slots(t) != "1" {
			t.Fatalf("%d resolved the call, %s active calls; want 1, 1", won, w.slots(t))
		}
		if call = w.read(t, call.CallRecord); call.Status != conversation.CallEnded {
			continue
		}
		won = atOnce(5, func(int) bool { return w.CompleteCall(t.Context(), call, completion) == nil })
		if won != 1 || trimmed(w.balance(t)) != "25.25" {
			t.Fatalf("%d completed the call, balance %s; want 1, 25.25", won, w.balance(t))
		}
	}
}

// atOnce tells how many of n at once succeed.
func atOnce(n int, do func(int) bool) int {
	var group sync.WaitGroup
	won := make([]bool, n)
	for i := range n {
		group.Go(func() { won[i] = do(i) })
	}
	group.Wait()
	count := 0
	for _, one := range won {
		if one {
			count++
		}
	}
	return count
}

// A slot that isn't there can't be given back: the writer is told, the call stays.
func TestNoSlotToGiveBack(t *testing.T) {
	w := newWard(t)
	call := w.bring(t, inProgress, false)
	call.HoldsSlot = true
	err := w.FailCall(t.Context(), call.CallRecord, conversation.EndBusy, now)
	if err == nil || errors.Is(err, dynamo.ErrStale) {
		t.Errorf("error %v, want one that is not ErrStale", err)
	}
	if got := w.read(t, call.CallRecord); got.Status != conversation.CallInProgress || w.slots(t) != "" {
		t.Errorf("status %s, %q active calls; want in_progress, none", got.Status, w.slots(t))
	}
}

func TestCompleteWithoutCosts(t *testing.T) {
	w := newWard(t)
	for _, done := range []dynamo.Completion{
		{At: conversation.At(now)},
		{At: conversation.At(now), Costs: &conversation.CallCosts{Total: "0.0000", Components: []conversation.CostComponent{}}},
	} {
		call := w.bring(t, ended, true)
		if err := w.CompleteCall(t.Context(), call, done); err != nil {
			t.Errorf("CompleteCall = %v, want nil", err)
		}
		if got := w.read(t, call.CallRecord); got.CompletedAt.IsZero() || trimmed(w.balance(t)) != "25.5" {
			t.Errorf("completed at %s, balance %s; want a moment, 25.5", got.CompletedAt, w.balance(t))
		}
	}
}

func TestStoreToken(t *testing.T) {
	w := newWard(t)
	call := w.bring(t, queued, true)
	const first, second, third = "2030-05-06T07:08:09.000Z#0000", "2030-05-06T07:08:09.000Z#0001", "2030-05-06T07:08:11.500Z#0000"
	for _, step := range []struct {
		token, attempt string
		want           string // the token that stays
		stale          bool
	}{
		{"b", second, "b", false},
		{"a", first, "b", true},   // an earlier attempt comes late
		{"b", second, "b", false}, // the same one again: its answer was lost
		{"c", third, "c", false},  // the next state
		{"b", second, "c", true},
	} {
		got, err := w.StoreToken(t.Context(), call.WorkspaceID, call.CallID, step.token, step.attempt)
		if errors.Is(err, dynamo.ErrStale) != step.stale || !step.stale && (err != nil || got.CallID != call.CallID || got.Token != step.token) {
			t.Errorf("StoreToken(%s, %s) = %+v, %v; want stale: %t", step.token, step.attempt, got, err, step.stale)
		}
		if kept := w.read(t, call.CallRecord).Token; kept != step.want {
			t.Errorf("after %s of %s the token is %s, want %s", step.token, step.attempt, kept, step.want)
		}
	}
}

func TestFreeKey(t *testing.T) {
	w := newWard(t)
	refused := w.bring(t, failed, true).CallRecord
	if err := w.FreeKey(t.Context(), refused); err != nil || w.item(t, w.conversations, keyPK(refused)) != nil {
		t.Errorf("FreeKey = %v, want the key gone", err)
	}
	if err := w.FreeKey(t.Context(), refused); err != nil {
		t.Errorf("FreeKey of a free key = %v, want nil", err)
	}
	next := w.newCall()
	next.IdempotencyKey = refused.IdempotencyKey
	w.accept(t, next)
	if err := w.FreeKey(t.Context(), refused); err != nil {
		t.Errorf("FreeKey of another call's key = %v, want nil", err)
	}
	if got := stringOf(w.item(t, w.conversations, keyPK(next)), "call_id"); got != string(next.CallID) {
		t.Errorf("the key names %q, want the other call", got)
	}
	if got := w.read(t, refused); got.Status != conversation.CallError {
		t.Errorf("the refused call is %s, want it to stay in error", got.Status)
	}
}

func TestPostponeCall(t *testing.T) {
	w := newWard(t)
	for from, postponed := range map[state]bool{queued: true, inProgress: true, hungUp: true, ended: true, completed: false, failed: false} {
		call := w.bring(t, from, true)
		err := w.PostponeCall(t.Context(), call.WorkspaceID, call.CallID, deadline)
		until := stringOf(w.item(t, w.conversations, callPK(call.CallRecord)), "open_until")
		if want := map[bool]string{true: conversation.At(deadline).String()}[postponed]; err != nil || until != want {
			t.Errorf("%s: PostponeCall = %v, open until %q; want %q", from, err, until, want)
		}
	}
}

func TestOverdueCalls(t *testing.T) {
	w := newWard(t)
	var want []conversation.CallID
	for n := range 12 {
		call := w.accept(t, func() conversation.CallRecord { c := w.newCall(); c.IdempotencyKey = ""; return c }())
		if n%4 == 3 { // resolved
			if err := w.FailCall(t.Context(), call, conversation.EndBusy, now); err != nil {
				t.Fatal(err)
			}
			continue
		}
		until := now.Add(time.Duration(n%4-1) * time.Minute) // a minute ago, now, in a minute
		if err := w.PostponeCall(t.Context(), call.WorkspaceID, call.CallID, until); err != nil {
			t.Fatal(err)
		}
		if n%4 == 0 {
			want = append(want, call.CallID)
		}
	}
	overdue, err := w.OverdueCalls(t.Context(), now, 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []conversation.CallID
	for _, call := range overdue {
		if call.WorkspaceID != w.definition.Workspace.WorkspaceID {
			t.Errorf("workspace %s, want %s", call.WorkspaceID, w.definition.Workspace.WorkspaceID)
		}
		got = append(got, call.CallID)
	}
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b conversation.CallID) bool { return a < b })); diff != "" {
		t.Errorf("overdue (-want +got):\n%s", diff)
	}
	if few, err := w.OverdueCalls(t.Context(), now.Add(time.Hour), 1); err != nil || len(few) > 4 {
		t.Errorf("%d overdue, %v; want one a shard at most", len(few), err)
	}
}

// A customer's call that is reported again stays as it is.
func TestReceiveCallOnce(t *testing.T) {
	w := newWard(t)
	call := w.newCall()
	call.HoldsSlot, call.IdempotencyKey, call.Status = false, "", conversation.CallInProgress
	for range 2 {
		if err := w.ReceiveCall(t.Context(), call, now); err != nil {
			t.Fatal(err)
		}
		call.AssistantName = "Another"
	}
	if got := w.read(t, call); got.AssistantName != "Reception" {
		t.Errorf("assistant %s, want the first report's", got.AssistantName)
	}
	if w.slots(t) != "" {
		t.Errorf("%s active calls, want none: a customer's call holds no slot", w.slots(t))
	}
	gone := w.newCall()
	gone.HoldsSlot, gone.Status = false, conversation.CallError
	if err := w.ReceiveCall(t.Context(), gone, now); err != nil {
		t.Fatal(err)
	}
	if it := w.item(t, w.conversations, callPK(gone)); it["open_shard"] != nil || it["open_until"] != nil {
		t.Error("a call that was given up as it came is open, want it not to be")
	}
}

func TestNameCustomer(t *testing.T) {
	w := newWard(t)
	ws := w.definition.Workspace.WorkspaceID
	const phone = "+12025550123"
	first, err := w.NameCustomer(t.Context(), ws, conversation.Customer{Phone: phone})
	if err != nil || first.CustomerID == "" || first.Phone != phone {
		t.Fatalf("NameCustomer = %+v, %v; want an id", first, err)
	}
	named, err := w.NameCustomer(t.Context(), ws, conversation.Customer{Phone: phone, Name: "Ada", CustomerID: "another"})
	if want := (conversation.Customer{CustomerID: first.CustomerID, Phone: phone, Name: "Ada"}); err != nil || named != want {
		t.Errorf("named: %+v, %v; want %+v", named, err, want)
	}
	again, err := w.NameCustomer(t.Context(), ws, conversation.Customer{Phone: phone, Language: "en"})
	if want := (conversation.Customer{CustomerID: first.CustomerID, Phone: phone, Name: "Ada", Language: "en"}); err != nil || again != want {
		t.Errorf("again: %+v, %v; want %+v", again, err, want)
	}
	other, err := w.NameCustomer(t.Context(), newWorkspace(), conversation.Customer{Phone: phone})
	if err != nil || other.CustomerID == first.CustomerID || other.Name != "" {
		t.Errorf("another workspace's: %+v, %v; want another customer", other, err)
	}
}

func TestCallImage(t *testing.T) {
	const image = `{"pk":{"S":"w#call#c"},"call_id":{"S":"c"},"workspace_id":{"S":"w"},"status":{"S":"in_progress"},"longest_seconds":{"N":"3600"},
		"holds_slot":{"BOOL":true},"hung_up_at":{"S":"2030-05-06T07:08:09.123Z"},"token":{"S":"t"},"open_until":{"S":"x"},
		"large_transcript":{"M":{"key":{"S":"k"},"bytes":{"N":"1"}}},"metadata":{"S":"{\"a\":1.10}"}}`
	call, isCall, err := dynamo.CallImage(json.RawMessage(image))
	if err != nil || !isCall || call.CallID != "c" || call.WorkspaceID != "w" || call.Status != conversation.CallInProgress || !call.HoldsSlot ||
		call.LongestSeconds != 3600 || call.Token != "t" || call.HungUpAt.String() != "2030-05-06T07:08:09.123Z" || string(call.Metadata) != `{"a":1.10}` {
		t.Errorf("CallImage = %+v, %t, %v", call, isCall, err)
	}
	for name, tt := range map[string]struct {
		image string
		fails bool
	}{
		"none":                {image: ""},
		"null":                {image: "null"},
		"an idempotency key":  {image: `{"pk":{"S":"w#idempotency#call"},"call_id":{"S":"c"}}`},
		"a message":           {image: `{"pk":{"S":"w#message#m"},"status":{"N":"1"}}`},
		"not an image":        {image: `[]`, fails: true},
		"a call of bad types": {image: `{"pk":{"S":"w#call#c"},"status":{"L":[]}}`, fails: true},
		"a bad moment":        {image: `{"pk":{"S":"w#call#c"},"hung_up_at":{"S":"soon"}}`, fails: true},
	} {
		if _, isCall, err := dynamo.CallImage(json.RawMessage(tt.image)); isCall && !tt.fails || (err != nil) != tt.fails {
			t.Errorf("%s: CallImage = %t, %v; want no call, fails: %t", name, isCall, err, tt.fails)
		}
	}
}

const (
	transactionConflict = `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","message":"busy",` +
		`"CancellationReasons":[{"Code":"None"},{"Code":"TransactionConflict","Message":"busy"}]}`
	conflictAndCondition = `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","message":"busy",` +
		`"CancellationReasons":[{"Code":"ConditionalCheckFailed"},{"Code":"TransactionConflict","Message":"busy"}]}`
)

// The slots are one item: two calls that end at once may meet there. That is tried again;
// if it lasts, it is no answer, and above all not that the call has moved on.
func TestConflictAtTheSlot(t *testing.T) {
	for name, tt := range map[string]struct {
		answer string
		times  int
		want   func(error) bool
	}{
		"passes":                   {transactionConflict, 3, func(err error) bool { return err == nil }},
		"lasts":                    {transactionConflict, 100, func(err error) bool { return err != nil && !errors.Is(err, dynamo.ErrStale) }},
		"beside a condition":       {conflictAndCondition, 100, func(err error) bool { return errors.Is(err, dynamo.ErrStale) }},
		"the answer alone is lost": {serverFault, 1, func(err error) bool { return err == nil || errors.Is(err, dynamo.ErrStale) }},
	} {
		t.Run(name, func(t *testing.T) {
			store, f := faultyStore(t)
			definition := newDefinition()
			if err := store.Define(t.Context(), dynamo.Definition{}, definition, "1"); err != nil {
				t.Fatal(err)
			}
			call := ward{definition: definition}.newCall()
			if _, err := store.AcceptCall(t.Context(), dynamo.Acceptance{Call: call, ConcurrentCalls: 1, CallsPerHour: 1, Until: now}); err != nil {
				t.Fatal(err)
			}
			asked := 0
			f.answer = func(operation string, body []byte, forward forward) (int, string) {
				if operation != "TransactWriteItems" {
					return forward(body)
				}
				if asked++; asked > tt.times {
					return forward(body)
				}
				if tt.answer == serverFault {
					forward(body)
					return 500, tt.answer
				}
				return 400, tt.answer
			}
			start := time.Now()
			err := store.FailCall(t.Context(), call, conversation.EndBusy, now)
			if took := time.Since(start); !tt.want(err) || took > 3*time.Second {
				t.Errorf("FailCall = %v after %s", err, took)
			}
		})
	}
}
