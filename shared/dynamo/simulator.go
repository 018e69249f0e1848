package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"parley/shared/conversation"
)

const (
	kindSimulatorCall  = "simulator-call"
	kindSimulatorText  = "simulator-text"
	kindSimulatorFirst = "simulator-first"
	// simulatorLife is how long the simulator remembers something, after it began.
	simulatorLife = 24 * time.Hour
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
	Tools       []SimulatorTool          `json:"tools,omitzero"` // in their order
	Forgotten   bool                     `json:"forgotten"`      // the simulator denies that it knows it
	Version     int                      `json:"version"`        // how often it was written
}

// SimulatorTool is a text that the assistant wants to be sent to the customer.
type SimulatorTool struct {
	After time.Duration `json:"after"` // the answer
	Text  string        `json:"text"`
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
	return whole[SimulatorCall](ctx, s, it, conversation.AllBlocks())
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
	return s.putIf(ctx, it, expression.Name(versionAttribute).Equal(expression.Value(call.Version-1)))
}

// putIf writes one of the simulator's items if the condition holds.
func (s *Store) putIf(ctx context.Context, it item, condition expression.ConditionBuilder) error {
	expr, err := expression.NewBuilder().WithCondition(condition).Build()
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
	it[TTL] = number(call.PlacedAt.Add(simulatorLife).Unix())
	return it, s.offload(ctx, it)
}

// SimulatorText is what the simulator knows of a text: of one to a customer, or of one that
// a customer has written.
type SimulatorText struct {
	CarrierID   string                   `json:"carrier_id"`
	WorkspaceID conversation.WorkspaceID `json:"workspace_id"`
	MessageID   conversation.MessageID   `json:"message_id"`
	Inbound     bool                     `json:"inbound"` // a customer has written it
	IsTest      bool                     `json:"is_test"`
	Channel     conversation.Channel     `json:"channel"`
	From        string                   `json:"from"`
	To          string                   `json:"to"`
	Content     string                   `json:"content"`
	MediaCount  int                      `json:"media_count"`
	Source      conversation.Source      `json:"source"`
	CallbackURL string                   `json:"callback_url"`
	SentAt      conversation.Time        `json:"sent_at"`
	Sends       int                      `json:"sends"` // how often it was asked for
}

// SendSimulatorText writes a text that is new, or counts that it was asked for again, and
// returns what is stored. It lives for a day.
func (s *Store) SendSimulatorText(ctx context.Context, t SimulatorText) (SimulatorText, error) {
	for range 16 {
		sent, err := s.sendSimulatorText(ctx, t)
		if !isConditionFailed(err) {
			return sent, wrap(err, "send simulator text %s", t.CarrierID)
		}
	}
	return SimulatorText{}, fmt.Errorf("send simulator text %s: others were faster each time", t.CarrierID)
}

// sendSimulatorText fails if somebody else has written the text since it was read.
func (s *Store) sendSimulatorText(ctx context.Context, t SimulatorText) (SimulatorText, error) {
	condition := s.absentOrExpired()
	switch stored, err := s.SimulatorText(ctx, t.WorkspaceID, t.CarrierID); {
	case err == nil:
		t, condition = stored, expression.Name("sends").Equal(expression.Value(stored.Sends))
	case errors.Is(err, conversation.ErrNotFound):
		t.Sends = 0
	default:
		return SimulatorText{}, err
	}
	t.Sends++
	it, err := encode(t)
	if err != nil {
		return SimulatorText{}, err
	}
	it[PartitionKey] = text(id(t.WorkspaceID, kindSimulatorText, t.CarrierID))
	it[TTL] = number(t.SentAt.Add(simulatorLife).Unix())
	return t, s.putIf(ctx, it, condition)
}

// SimulatorText reads a text, strongly consistent.
func (s *Store) SimulatorText(ctx context.Context, ws conversation.WorkspaceID, carrierID string) (SimulatorText, error) {
	it, err := s.read(ctx, Counters, id(ws, kindSimulatorText, carrierID))
	if err != nil {
		return SimulatorText{}, wrap(err, "get simulator text %s", carrierID)
	}
	t, err := decode[SimulatorText](it)
	return t, wrap(err, "get simulator text %s", carrierID)
}

// SimulatorFirst tells whether who is the first within a day to do what, and is told the
// same whenever they ask again on that day.
func (s *Store) SimulatorFirst(ctx context.Context, ws conversation.WorkspaceID, what, who string) (bool, error) {
	err := s.putIf(ctx, item{
		PartitionKey: text(id(ws, kindSimulatorFirst, what)), "first": text(who),
		TTL: number(s.now().Add(simulatorLife).Unix()),
	}, s.absentOrExpired().Or(expression.Name("first").Equal(expression.Value(who))))
	if isConditionFailed(err) {
		return false, nil
	}
	return err == nil, wrap(err, "first %s", what)
}

func (s *Store) absentOrExpired() expression.ConditionBuilder {
	return absent.Or(expression.Name(TTL).LessThanEqual(expression.Value(s.now().Unix())))
}
