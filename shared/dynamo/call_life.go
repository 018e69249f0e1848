package dynamo

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"parley/shared/conversation"
)

// Every write of a call's life has its condition, so that whoever comes late, twice or out
// of order changes nothing: the call moves forward, is dialled once, gives its slot back
// once and is charged once. A write whose condition fails returns ErrStale: the call has
// moved on, and the writer reads it again.
var ErrStale = errors.New("the record has moved on")

var (
	status     = expression.Name("status")
	hungUpAt   = expression.Name("hung_up_at")
	carrierID  = expression.Name("carrier_id")
	isQueued   = status.Equal(expression.Value(conversation.CallQueued))
	inProgress = status.Equal(expression.Value(conversation.CallInProgress))
	isActive   = status.In(expression.Value(conversation.CallQueued), expression.Value(conversation.CallInProgress))
	notHungUp  = hungUpAt.AttributeNotExists()

	activeCalls = expression.Name("active_calls") // of an assistant's slots
)

// StoredCall is a call as it was read, for the writes that build on it.
type StoredCall struct {
	conversation.CallRecord
	bytes int // of the item, without the large fields that are in S3
}

// CallRecord reads a call with all that the service knows of it, strongly consistent.
func (s *Store) CallRecord(ctx context.Context, ws conversation.WorkspaceID, callID conversation.CallID) (StoredCall, error) {
	it, err := s.read(ctx, Conversations, id(ws, kindCall, callID))
	if err != nil {
		return StoredCall{}, wrap(err, "get call %s", callID)
	}
	call, err := s.storedCall(ctx, it)
	return call, wrap(err, "get call %s", callID)
}

func (s *Store) storedCall(ctx context.Context, it item) (StoredCall, error) {
	bytes := itemSize(it)
	record, err := whole[conversation.CallRecord](ctx, s, it, conversation.AllBlocks())
	return StoredCall{record, bytes}, err
}

// SetCarrierID notes the carrier's id of a call that it has accepted.
func (s *Store) SetCarrierID(ctx context.Context, call conversation.CallRecord, carriers string) error {
	return s.change(ctx, call, "note the carrier's id of",
		expression.Set(carrierID, expression.Value(carriers)),
		carrierID.AttributeNotExists().And(isActive))
}

// PickUpCall moves a queued call to in_progress: dialling has begun.
func (s *Store) PickUpCall(ctx context.Context, call conversation.CallRecord, carriers string, at, until time.Time) error {
	return s.change(ctx, call, "pick up",
		setOpen(until).
			Set(status, expression.Value(conversation.CallInProgress)).
			Set(expression.Name("dialling_at"), expression.Value(conversation.At(at).String())).
			Set(carrierID, expression.Value(carriers)),
		isQueued)
}

// HangUpCall notes that a call is over, for which reason and after how long.
func (s *Store) HangUpCall(ctx context.Context, call conversation.CallRecord, carriers string, at time.Time, reason conversation.EndReason, until time.Time) error {
	moment := expression.Value(conversation.At(at).String())
	change := setOpen(until).
		Set(status, expression.Value(conversation.CallInProgress)).
		Set(hungUpAt, moment).
		Set(expression.Name("dialling_at"), expression.Name("dialling_at").IfNotExists(moment))
	if reason != "" {
		change = change.Set(expression.Name("hung_up_reason"), expression.Value(reason))
	}
	if carriers != "" {
		change = change.Set(carrierID, carrierID.IfNotExists(expression.Value(carriers)))
	}
	return s.change(ctx, call, "hang up", change, isActive.And(notHungUp))
}

// SnapshotCall keeps the assistant's configuration that an answered call speaks by. The
// first one stays.
func (s *Store) SnapshotCall(ctx context.Context, call StoredCall, snapshot conversation.ConfigSnapshot) error {
	parts, err := s.parts(ctx, call, struct {
		ConfigSnapshot conversation.ConfigSnapshot `json:"config_snapshot"`
	}{snapshot})
	if err != nil {
		return wrap(err, "snapshot call %s", call.CallID)
	}
	return s.change(ctx, call.CallRecord, "snapshot", parts,
		isActive.And(expression.Name("config_snapshot").AttributeNotExists(),
			expression.Name(largePrefix+"config_snapshot").AttributeNotExists()))
}

// PostponeCall gives an unfinished call until then before the sweep looks again.
func (s *Store) PostponeCall(ctx context.Context, ws conversation.WorkspaceID, callID conversation.CallID, until time.Time) error {
	return wrap(s.postpone(ctx, id(ws, kindCall, callID), until), "postpone call %s", callID)
}

// StoreToken notes the token of the task that waits for the call's next change, unless a
// later attempt's is there, and returns the call. attempt sorts by when it began. The same
// attempt may come again: the SDK repeats a write whose answer was lost.
func (s *Store) StoreToken(ctx context.Context, ws conversation.WorkspaceID, callID conversation.CallID, token, attempt string) (conversation.CallRecord, error) {
	it, err := s.update(ctx, Conversations, id(ws, kindCall, callID), setToken(token, attempt), noLaterToken(attempt))
	if isConditionFailed(err) {
		err = ErrStale
	}
	if err != nil {
		return conversation.CallRecord{}, wrap(err, "store token of call %s", callID)
	}
	record, err := decode[conversation.CallRecord](it)
	return record, wrap(err, "store token of call %s", callID)
}

var tokenAt = expression.Name("token_at")

func setToken(token, attempt string) expression.UpdateBuilder {
	return expression.Set(expression.Name("token"), expression.Value(token)).Set(tokenAt, expression.Value(attempt))
}

func noLaterToken(attempt string) expression.ConditionBuilder {
	return exists.And(tokenAt.AttributeNotExists().Or(tokenAt.LessThanEqual(expression.Value(attempt))))
}

// FailCall ends a call that did not happen, and gives its slot back.
func (s *Store) FailCall(ctx context.Context, call conversation.CallRecord, reason conversation.EndReason, at time.Time) error {
	return s.fail(ctx, call, reason, at, isActive.And(notHungUp))
}

// StallQueuedCall fails a call that the carrier doesn't know, if nobody has picked it up.
func (s *Store) StallQueuedCall(ctx context.Context, call conversation.CallRecord, at time.Time) error {
	return s.fail(ctx, call, conversation.EndStalled, at, isQueued)
}

// StallCall fails a call in progress of which no transcript can be had, if nothing has
// happened to it since it was read.
func (s *Store) StallCall(ctx context.Context, call conversation.CallRecord, at time.Time) error {
	return s.fail(ctx, call, conversation.EndStalled, at, inProgress.And(same("hung_up_at", call.HungUpAt)))
}

// RefuseCall fails a queued call that its carrier refused, gives its slot back and frees
// its idempotency key, all at once.
func (s *Store) RefuseCall(ctx context.Context, call conversation.CallRecord, at time.Time) error {
	t := s.failure(call, conversation.EndProviderRefused, at, isQueued)
	if call.IdempotencyKey != "" {
		s.deleteKey(t, call)
	}
	return wrap(t.commit(ctx, s.db), "refuse call %s", call.CallID)
}

// FreeKey forgets the idempotency key of a call that its carrier refused when the call
// itself is in error already. A key that is free, or another call's by now, stays so.
func (s *Store) FreeKey(ctx context.Context, call conversation.CallRecord) error {
	var t transaction
	s.deleteKey(&t, call)
	err := t.commit(ctx, s.db)
	if errors.Is(err, errNotMyKey) {
		return nil
	}
	return wrap(err, "free the idempotency key of call %s", call.CallID)
}

var errNotMyKey = errors.New("the idempotency key names another call, or none")

func (s *Store) deleteKey(t *transaction, call conversation.CallRecord) {
	t.delete(s.table(Conversations), idempotencyID(call.WorkspaceID, call.IdempotencyKey),
		expression.Name("call_id").Equal(expression.Value(call.CallID)), errNotMyKey)
}

func (s *Store) fail(ctx context.Context, call conversation.CallRecord, reason conversation.EndReason, at time.Time, condition expression.ConditionBuilder) error {
	return wrap(s.failure(call, reason, at, condition).commit(ctx, s.db), "fail call %s", call.CallID)
}

func (s *Store) failure(call conversation.CallRecord, reason conversation.EndReason, at time.Time, condition expression.ConditionBuilder) *transaction {
	var t transaction
	t.update(s.table(Conversations), id(call.WorkspaceID, kindCall, call.CallID),
		removeOpen(expression.
			Set(status, expression.Value(conversation.CallError)).
			Set(expression.Name("end_reason"), expression.Value(reason)).
			Set(expression.Name("ended_at"), expression.Value(conversation.At(at).String()))),
		condition, ErrStale)
	s.giveSlotBack(&t, call)
	return &t
}

var errNoSlot = errors.New("the assistant has no active call to give back")

func (s *Store) giveSlotBack(t *transaction, call conversation.CallRecord) {
	if call.HoldsSlot {
		t.update(s.table(Workspaces), slotsID(call.WorkspaceID, call.AssistantID),
			expression.Add(activeCalls, expression.Value(-1)), activeCalls.GreaterThan(expression.Value(0)), errNoSlot)
	}
}

// Ending is what ends a call that happened.
type Ending struct {
	At              conversation.Time      `json:"ended_at"`
	Reason          conversation.EndReason `json:"end_reason"`
	DurationSeconds int                    `json:"duration_seconds"`
	Transcript      []conversation.Turn    `json:"transcript"`
}

// EndCall saves a call's transcript, with which it is ended, and gives its slot back.
func (s *Store) EndCall(ctx context.Context, call StoredCall, e Ending, until time.Time) error {
	change, err := s.parts(ctx, call, e)
	if err != nil {
		return wrap(err, "end call %s", call.CallID)
	}
	var t transaction
	t.update(s.table(Conversations), id(call.WorkspaceID, kindCall, call.CallID),
		withOpen(change, until).Set(status, expression.Value(conversation.CallEnded)), inProgress, ErrStale)
	s.giveSlotBack(&t, call.CallRecord)
	return wrap(t.commit(ctx, s.db), "end call %s", call.CallID)
}

// Completion is what the work after a call adds to it. A part that failed is left out.
type Completion struct {
	At                 conversation.Time                `json:"completed_at"`
	Customer           *conversation.Customer           `json:"customer,omitzero"`
	Analysis           *conversation.Analysis           `json:"analysis,omitzero"`
	Evaluations        []conversation.Evaluation        `json:"evaluations,omitzero"`
	Recording          *conversation.Recording          `json:"recording,omitzero"`
	Costs              *conversation.CallCosts          `json:"costs,omitzero"`
	PerformanceMetrics *conversation.PerformanceMetrics `json:"performance_metrics,omitzero"`
	FollowUps          []conversation.FollowUp          `json:"follow_ups,omitzero"`

	Until time.Time `json:"-"` // when the sweep looks at the call again, if a follow-up is pending
}

// CompleteCall adds what the work after a call made, and charges the workspace, once. A
// call that has a pending follow-up is still to be resolved: ResolveFollowUp, or a receipt.
func (s *Store) CompleteCall(ctx context.Context, call StoredCall, c Completion) error {
	change, err := s.parts(ctx, call, c)
	if err != nil {
		return wrap(err, "complete call %s", call.CallID)
	}
	if slices.ContainsFunc(c.FollowUps, isPending) {
		change = withOpen(change, c.Until)
	} else {
		change = removeOpen(change)
	}
	var t transaction
	t.update(s.table(Conversations), id(call.WorkspaceID, kindCall, call.CallID), change,
		status.Equal(expression.Value(conversation.CallEnded)).And(expression.Name("completed_at").AttributeNotExists()), ErrStale)
	if c.Costs != nil {
		t.update(s.table(Workspaces), workspaceID(call.WorkspaceID),
			expression.Add(expression.Name(balanceAttribute), expression.Value(attributevalue.Number("-"+c.Costs.Total))),
			exists, wrap(conversation.ErrNotFound, "charge workspace %s", call.WorkspaceID))
	}
	return wrap(t.commit(ctx, s.db), "complete call %s", call.CallID)
}

// parts makes an update that sets the fields of a struct that have a value. A field that
// would make the call's item too large goes to S3.
func (s *Store) parts(ctx context.Context, call StoredCall, fields any) (expression.UpdateBuilder, error) {
	added, err := encode(fields)
	if err != nil {
		return expression.UpdateBuilder{}, err
	}
	pk := id(call.WorkspaceID, kindCall, call.CallID)
	for name := range bySize(added) {
		if call.bytes+itemSize(added) <= maxItemBytes {
			break
		}
		if err := s.move(ctx, pk, name, added); err != nil {
			return expression.UpdateBuilder{}, err
		}
	}
	return setAll(added), nil
}

// change updates a call if the condition holds.
func (s *Store) change(ctx context.Context, call conversation.CallRecord, doing string, change expression.UpdateBuilder, condition expression.ConditionBuilder) error {
	_, err := s.update(ctx, Conversations, id(call.WorkspaceID, kindCall, call.CallID), change, condition)
	if isConditionFailed(err) {
		err = ErrStale
	}
	return wrap(err, "%s call %s", doing, call.CallID)
}

// same is that an attribute has the value that was read; the zero time is no value.
func same(attribute string, read conversation.Time) expression.ConditionBuilder {
	name := expression.Name(attribute)
	if read.IsZero() {
		return name.AttributeNotExists()
	}
	return name.Equal(expression.Value(read.String()))
}

// OverdueCall names a call past its deadline.
type OverdueCall struct {
	WorkspaceID conversation.WorkspaceID
	CallID      conversation.CallID
}

// OverdueCalls lists calls past their deadline, the longest overdue first, up to limit a
// shard.
func (s *Store) OverdueCalls(ctx context.Context, now time.Time, limit int) ([]OverdueCall, error) {
	overdue, err := s.overdue(ctx, kindCall, now, limit)
	var calls []OverdueCall
	for _, pk := range overdue {
		ws, callID := ownerOf[conversation.CallID](pk)
		calls = append(calls, OverdueCall{ws, callID})
	}
	return calls, wrap(err, "list overdue calls")
}
