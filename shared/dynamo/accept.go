package dynamo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"parley/shared/conversation"
)

// Why a call is not accepted.
var (
	ErrHourlyLimit = errors.New("the workspace has placed as many calls as an hour may have")
	ErrNoSlot      = errors.New("the assistant has as many calls as it may have at once")
	ErrNoBalance   = errors.New("the workspace's balance is used up")
)

var (
	errCallExists = errors.New("the call exists")
	errKeyExists  = errors.New("the idempotency key exists")
)

// HashIdempotencyKey is what is kept of an Idempotency-Key.
func HashIdempotencyKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

func idempotencyID(ws conversation.WorkspaceID, hash string) string {
	return id(ws, "idempotency", hash)
}

// slotsID is an item of its own, as its writes would else cost as much as the assistant's
// prompt is long.
func slotsID(ws conversation.WorkspaceID, assistant conversation.AssistantID) string {
	return id(ws, "slots", assistant)
}

func placedID(ws conversation.WorkspaceID, hour time.Time) string {
	return id(ws, "placed", hour.UTC().Format("2006-01-02T15"))
}

// Request is what POST /v1/calls needs to know before it decides. What isn't there is the
// zero value.
type Request struct {
	Replay    conversation.CallID // the call that the idempotency key names
	Workspace conversation.Workspace
	Assistant conversation.AssistantConfig
}

// CallRequest reads, strongly consistent and at once, what a request to place a call is
// about. keyHash may be empty.
func (s *Store) CallRequest(ctx context.Context, ws conversation.WorkspaceID, assistant conversation.AssistantID, keyHash string) (Request, error) {
	keys := map[string][]item{s.tables[Workspaces]: {key(workspaceID(ws)), key(id(ws, kindAssistant, assistant))}}
	if keyHash != "" {
		keys[s.tables[Conversations]] = []item{key(idempotencyID(ws, keyHash))}
	}
	found, err := s.readAll(ctx, keys)
	if err != nil {
		return Request{}, wrap(err, "read what a call needs")
	}
	var r Request
	r.Replay = conversation.CallID(stringOf(found[idempotencyID(ws, keyHash)], "call_id"))
	if r.Workspace, err = decode[conversation.Workspace](found[workspaceID(ws)]); err != nil {
		return Request{}, wrap(err, "read workspace %s", ws)
	}
	r.Assistant, err = decode[conversation.AssistantConfig](found[id(ws, kindAssistant, assistant)])
	return r, wrap(err, "read assistant %s", assistant)
}

// readAll reads a few items of several tables at once, strongly consistent.
func (s *Store) readAll(ctx context.Context, keys map[string][]item) (map[string]item, error) {
	request := map[string]types.KeysAndAttributes{}
	consistent := true
	for table, pks := range keys {
		request[table] = types.KeysAndAttributes{Keys: pks, ConsistentRead: &consistent}
	}
	found := map[string]item{}
	for attempt := 0; len(request) > 0; attempt++ {
		if attempt > 0 {
			if err := pause(ctx, attempt); err != nil {
				return nil, wrap(err, "items stayed unread")
			}
		}
		out, err := s.db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: request})
		if err != nil {
			return nil, err
		}
		for _, items := range out.Responses {
			for _, it := range items {
				found[stringOf(it, PartitionKey)] = it
			}
		}
		request = out.UnprocessedKeys
	}
	return found, nil
}

// Acceptance is a call to be accepted within the workspace's limits.
type Acceptance struct {
	Call            conversation.CallRecord // queued, holding a slot
	ConcurrentCalls int
	CallsPerHour    int
	Until           time.Time // the pickup's deadline, for the sweep
}

// AcceptCall writes a call if its idempotency key is new, the hour has room, the assistant
// has a slot and the balance is above zero; all of it at once. If the key names a call
// already, that call's id is returned, whatever else stands against this one. The errors
// are ErrHourlyLimit, then ErrNoSlot, ErrNoBalance.
func (s *Store) AcceptCall(ctx context.Context, a Acceptance) (replay conversation.CallID, err error) {
	call := a.Call
	it, err := s.newCall(ctx, call, a.Until)
	if err != nil {
		return "", wrap(err, "accept call %s", call.CallID)
	}
	one := expression.Value(1)
	placed := expression.Name("placed")
	var t transaction
	t.put(s.table(Conversations), it, absent, errCallExists)
	if call.IdempotencyKey != "" {
		t.put(s.table(Conversations), item{
			PartitionKey: text(idempotencyID(call.WorkspaceID, call.IdempotencyKey)),
			"call_id":    text(string(call.CallID)),
		}, absent, errKeyExists)
	}
	t.update(s.table(Counters), placedID(call.WorkspaceID, call.StartedAt.Time),
		expression.Add(placed, one).Set(expression.Name(TTL), expression.Value(call.StartedAt.Add(2*time.Hour).Unix())),
		placed.AttributeNotExists().Or(placed.LessThan(expression.Value(a.CallsPerHour))), ErrHourlyLimit)
	t.update(s.table(Workspaces), slotsID(call.WorkspaceID, call.AssistantID), expression.Add(activeCalls, one),
		activeCalls.AttributeNotExists().Or(activeCalls.LessThan(expression.Value(a.ConcurrentCalls))), ErrNoSlot)
	t.check(s.table(Workspaces), workspaceID(call.WorkspaceID),
		expression.Name(balanceAttribute).GreaterThan(expression.Value(0)), ErrNoBalance)

	err = t.commit(ctx, s.db)
	for attempt := 1; errors.Is(err, errKeyExists); attempt++ {
		replay, readErr := s.keyOwner(ctx, call)
		switch {
		case readErr == nil && replay == call.CallID:
			return "", nil // this very call: the answer to its write was lost
		case readErr == nil:
			return replay, nil
		case !errors.Is(readErr, conversation.ErrNotFound):
			return "", wrap(readErr, "accept call %s", call.CallID)
		}
		// The call that had the key was refused meanwhile, and the key is free again.
		if err := pause(ctx, attempt); err != nil {
			return "", wrap(err, "accept call %s", call.CallID)
		}
		err = t.commit(ctx, s.db)
	}
	if errors.Is(err, errCallExists) {
		return "", nil
	}
	return "", wrap(firstOf(err, ErrHourlyLimit, ErrNoSlot, ErrNoBalance), "accept call %s", call.CallID)
}

// keyOwner reads which call an idempotency key names.
func (s *Store) keyOwner(ctx context.Context, call conversation.CallRecord) (conversation.CallID, error) {
	it, err := s.read(ctx, Conversations, idempotencyID(call.WorkspaceID, call.IdempotencyKey))
	return conversation.CallID(stringOf(it, "call_id")), err
}

// newCall makes the item of a call that begins, its large fields stored.
func (s *Store) newCall(ctx context.Context, call conversation.CallRecord, until time.Time) (item, error) {
	it, err := encode(call)
	if err != nil {
		return nil, err
	}
	it[PartitionKey] = text(id(call.WorkspaceID, kindCall, call.CallID))
	listAs(it, call.WorkspaceID, call.AssistantID, callsList, string(call.CallID))
	if call.Active() {
		openAs(it, kindCall, call.CallID, until)
	}
	return it, s.offload(ctx, it)
}
