package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"parley/shared/conversation"
)

const (
	kindSimulatorCall = "simulator-call"
	// simulatorCallLife is how long the simulator remembers a call, after it was placed.
	simulatorCallLife = 24 * time.Hour
)

// SimulatorCall is what the simulator knows of one of its calls.
type SimulatorCall struct {
	CarrierID   string                   `json:"carrier_id"`
	WorkspaceID conversation.WorkspaceID `json:"workspace_id"`
	CallID      conversation.CallID      `json:"call_id"`
	Inbound     bool                     `json:"inbound"`
	IsTest      bool                     `json:"is_test"`
	From        string                   `json:"from"`
	To          string                   `json:"to"`
	CallbackURL string                   `json:"callback_url"`
	MaxDuration time.Duration            `json:"max_duration"`
	PlacedAt    conversation.Time        `json:"placed_at"`
	Placements  int                      `json:"placements"` // how often it was asked for
	Phase       string                   `json:"phase"`
	Reason      conversation.EndReason   `json:"reason,omitzero"`
	AnsweredAt  conversation.Time        `json:"answered_at,omitzero"`
	HungUpAt    conversation.Time        `json:"hung_up_at,omitzero"`
	TalkTime    time.Duration            `json:"talk_time"` // from answer to hang-up, as planned, then as it was
	Transcript  []conversation.Turn      `json:"transcript,omitzero"`
	Forgotten   bool                     `json:"forgotten"` // the simulator denies that it knows it
	Version     int                      `json:"version"`   // how often it was written
}

// InsertSimulatorCall writes a new call, and tells whether it was new. It lives for a day.
func (s *Store) InsertSimulatorCall(ctx context.Context, call SimulatorCall) (bool, error) {
	call.Version = 1
	it, err := s.simulatorItem(ctx, call)
	if err != nil {
		return false, wrap(err, "insert simulator call %s", call.CarrierID)
	}
	isNew, err := s.create(ctx, Counters, it)
	return isNew, wrap(err, "insert simulator call %s", call.CarrierID)
}

// SimulatorCall reads a call, strongly consistent, with its transcript.
func (s *Store) SimulatorCall(ctx context.Context, ws conversation.WorkspaceID, carrierID string) (SimulatorCall, error) {
	call, err := s.simulatorCall(ctx, ws, carrierID)
	return call, wrap(err, "get simulator call %s", carrierID)
}

func (s *Store) simulatorCall(ctx context.Context, ws conversation.WorkspaceID, carrierID string) (SimulatorCall, error) {
	it, err := s.read(ctx, Counters, id(ws, kindSimulatorCall, carrierID))
	if err != nil {
		return SimulatorCall{}, err
	}
	large, err := largeOf(it, conversation.AllBlocks())
	if err != nil {
		return SimulatorCall{}, err
	}
	if err := s.fill(ctx, it, large); err != nil {
		return SimulatorCall{}, err
	}
	return decode[SimulatorCall](it)
}

// ChangeSimulatorCall lets change work on the call as it stands, and writes it, unless
// change says that there is nothing to write. When somebody else was faster it does so
// again with what they wrote. It returns the call as it then is.
func (s *Store) ChangeSimulatorCall(ctx context.Context, ws conversation.WorkspaceID, carrierID string, change func(*SimulatorCall) bool) (SimulatorCall, error) {
	for range 16 {
		call, err := s.simulatorCall(ctx, ws, carrierID)
		if err != nil || !change(&call) {
			return call, wrap(err, "change simulator call %s", carrierID)
		}
		call.Version++
		err = s.replaceSimulatorCall(ctx, call)
		if !isConditionFailed(err) {
			return call, wrap(err, "change simulator call %s", carrierID)
		}
	}
	return SimulatorCall{}, fmt.Errorf("change simulator call %s: others were faster each time", carrierID)
}

// replaceSimulatorCall writes the call if it still is in the version before.
func (s *Store) replaceSimulatorCall(ctx context.Context, call SimulatorCall) error {
	it, err := s.simulatorItem(ctx, call)
	if err != nil {
		return err
	}
	expr, err := expression.NewBuilder().
		WithCondition(expression.Name(versionAttribute).Equal(expression.Value(call.Version - 1))).Build()
	if err != nil {
		return err
	}
	_, err = s.db.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: s.table(Counters), Item: it, ConditionExpression: expr.Condition(),
		ExpressionAttributeNames: expr.Names(), ExpressionAttributeValues: expr.Values(),
	})
	return err
}

func (s *Store) simulatorItem(ctx context.Context, call SimulatorCall) (item, error) {
	it, err := encode(call)
	if err != nil {
		return nil, err
	}
	it[PartitionKey] = text(id(call.WorkspaceID, kindSimulatorCall, call.CarrierID))
	it[TTL] = number(call.PlacedAt.Add(simulatorCallLife).Unix())
	return it, s.offload(ctx, it)
}
