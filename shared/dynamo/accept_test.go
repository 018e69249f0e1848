package dynamo_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

func TestAcceptCall(t *testing.T) {
	stage := newWard(t)
	tests := map[string]struct {
		balance string
		before  int // calls accepted before, of the limits below
		slots   int
		hour    int
		want    error
	}{
		"the first":                         {balance: "0.0001", slots: 1, hour: 1},
		"the last slot":                     {balance: "1", before: 2, slots: 3, hour: 9},
		"one slot too few":                  {balance: "1", before: 3, slots: 3, hour: 9, want: dynamo.ErrNoSlot},
		"the hour's last":                   {balance: "1", before: 2, slots: 9, hour: 3},
		"one too many for the hour":         {balance: "1", before: 3, slots: 9, hour: 3, want: dynamo.ErrHourlyLimit},
		"the hour before the slot":          {balance: "1", before: 3, slots: 3, hour: 3, want: dynamo.ErrHourlyLimit},
		"no balance":                        {balance: "0.00", slots: 1, hour: 1, want: dynamo.ErrNoBalance},
		"less than none":                    {balance: "-3", slots: 1, hour: 1, want: dynamo.ErrNoBalance},
		"less than ten, which sorts higher": {balance: "10", slots: 1, hour: 1},
		"the slot before the balance":       {balance: "-1", before: 1, slots: 1, hour: 9, want: dynamo.ErrNoSlot},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := stage.workspace(t)
			for range tt.before {
				w.accept(t, w.newCall())
			}
			w.setBalance(t, tt.balance)
			call, slots := w.newCall(), w.slots(t)
			limits := dynamo.Acceptance{Call: call, ConcurrentCalls: tt.slots, CallsPerHour: tt.hour, Until: now.Add(time.Minute)}

			replay, err := w.AcceptCall(t.Context(), limits)

			if !errors.Is(err, tt.want) || replay != "" {
				t.Fatalf("AcceptCall = %q, %v; want %v", replay, err, tt.want)
			}
			it, key := w.item(t, w.conversations, callPK(call)), w.item(t, w.conversations, keyPK(call))
			if tt.want != nil {
				if it != nil || key != nil || w.slots(t) != slots {
					t.Errorf("refused, yet call %t, key %t, %s active calls; want neither, %s", it != nil, key != nil, w.slots(t), slots)
				}
				return
			}
			if stringOf(it, "open_until") != conversation.At(now.Add(time.Minute)).String() || stringOf(it, "open_shard") == "" || stringOf(key, "call_id") != string(call.CallID) {
				t.Errorf("call %v, key %v; want it open, and the key to name it", it, key)
			}
			// Again, as its answer was lost: the same call, counted once.
			taken := w.slots(t)
			if replay, err := w.AcceptCall(t.Context(), limits); err != nil || replay != "" || w.slots(t) != taken {
				t.Errorf("again: %q, %v, %s active calls; want its own, %s", replay, err, w.slots(t), taken)
			}
			// Another call under its key: a replay, whatever else stands against it.
			w.setBalance(t, "-1")
			limits.Call = w.newCall()
			limits.Call.IdempotencyKey, limits.ConcurrentCalls, limits.CallsPerHour = call.IdempotencyKey, 0, 0
			if replay, err := w.AcceptCall(t.Context(), limits); err != nil || replay != call.CallID || w.slots(t) != taken {
				t.Errorf("under the same key: %q, %v; want a replay of %s", replay, err, call.CallID)
			}
			if w.item(t, w.conversations, callPK(limits.Call)) != nil {
				t.Error("the replay wrote a call, want none")
			}
		})
	}
}

// A key of one workspace is no key of another.
func TestIdempotencyKeysAreAWorkspacesOwn(t *testing.T) {
	w := newWard(t)
	call := w.accept(t, w.newCall())
	other := w.workspace(t)
	theirs := other.newCall()
	theirs.IdempotencyKey = call.IdempotencyKey
	other.accept(t, theirs)
}

// The next hour has room again.
func TestHourIsTheCallsOwn(t *testing.T) {
	w := newWard(t)
	for n, want := range []error{nil, dynamo.ErrHourlyLimit, nil} {
		call := w.newCall()
		call.StartedAt = conversation.At(now.Truncate(time.Hour).Add(time.Duration(n) * 59 * time.Minute))
		_, err := w.AcceptCall(t.Context(), dynamo.Acceptance{Call: call, ConcurrentCalls: 10, CallsPerHour: 1, Until: deadline})
		if !errors.Is(err, want) {
			t.Errorf("call at %s: %v, want %v", call.StartedAt, err, want)
		}
	}
}

// Fifty at once under one key make one call; fifty at the last slots fill them.
func TestAcceptAtOnce(t *testing.T) {
	w := newWard(t)
	shared := w.newCall()
	replays := atOnce(50, func(int) bool {
		call := w.newCall()
		call.IdempotencyKey = shared.IdempotencyKey
		replay, err := w.AcceptCall(t.Context(), dynamo.Acceptance{Call: call, ConcurrentCalls: 10, CallsPerHour: 200, Until: deadline})
		if err != nil {
			t.Errorf("AcceptCall = %v, want nil", err)
		}
		return replay != ""
	})
	if replays != 49 || w.slots(t) != "1" {
		t.Errorf("%d replays, %s active calls; want 49, 1", replays, w.slots(t))
	}
	accepted := atOnce(50, func(int) bool {
		_, err := w.AcceptCall(t.Context(), dynamo.Acceptance{Call: w.newCall(), ConcurrentCalls: 10, CallsPerHour: 200, Until: deadline})
		return err == nil
	})
	if accepted != 9 || w.slots(t) != "10" {
		t.Errorf("%d accepted, %s active calls; want 9, 10", accepted, w.slots(t))
	}
}

func (w ward) setBalance(t *testing.T, balance string) {
	t.Helper()
	_, err := w.db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &w.workspaces, Key: keyOf(workspacePK(w.definition)), UpdateExpression: aws.String("SET balance = :b"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":b": &types.AttributeValueMemberN{Value: balance}},
	})
	if err != nil {
		t.Fatal(err)
	}
}
