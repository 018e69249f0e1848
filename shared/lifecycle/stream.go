package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"golang.org/x/sync/errgroup"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// StreamEvent is a batch of the table's stream, with its images as the store reads them.
type StreamEvent struct {
	Records []StreamRecord `json:"Records"`
}

// StreamRecord is one change of one item.
type StreamRecord struct {
	EventName string `json:"eventName"` // INSERT, MODIFY or REMOVE
	Change    struct {
		SequenceNumber string          `json:"SequenceNumber"`
		OldImage       json.RawMessage `json:"OldImage"`
		NewImage       json.RawMessage `json:"NewImage"`
	} `json:"dynamodb"`
}

// startInput is what an execution begins with: how long its tasks wait.
type startInput struct {
	WorkspaceID   conversation.WorkspaceID `json:"workspace_id"`
	CallID        conversation.CallID      `json:"call_id"`
	PickupSeconds int                      `json:"pickup_seconds"`
	CallSeconds   int                      `json:"call_seconds"`
}

// Follow starts the state machine of each new call, and answers the token that waits for
// a call's change. Both may be done again. A record that fails is reported, and comes again.
func (c *Calls) Follow(m Machine) func(context.Context, StreamEvent) (events.DynamoDBEventResponse, error) {
	return func(ctx context.Context, batch StreamEvent) (events.DynamoDBEventResponse, error) {
		return events.DynamoDBEventResponse{BatchItemFailures: c.followAll(ctx, m, batch)}, nil
	}
}

func (c *Calls) followAll(ctx context.Context, m Machine, batch StreamEvent) []events.DynamoDBBatchItemFailure {
	failed := make([]bool, len(batch.Records))
	group := errgroup.Group{}
	group.SetLimit(8)
	for i, record := range batch.Records {
		group.Go(func() error {
			if err := c.follow(ctx, m, record); err != nil {
				slog.ErrorContext(ctx, "stream record", "sequence_number", record.Change.SequenceNumber, "error", err)
				failed[i] = true
			}
			return nil
		})
	}
	_ = group.Wait() // its errors are in failed
	failures := []events.DynamoDBBatchItemFailure{}
	for i, record := range batch.Records {
		if failed[i] {
			failures = append(failures, events.DynamoDBBatchItemFailure{ItemIdentifier: record.Change.SequenceNumber})
		}
	}
	return failures
}

func (c *Calls) follow(ctx context.Context, m Machine, record StreamRecord) error {
	after, isCall, err := dynamo.CallImage(record.Change.NewImage)
	if err != nil || !isCall {
		return err
	}
	before, existed, err := dynamo.CallImage(record.Change.OldImage)
	switch {
	case err != nil:
		return err
	case !existed && after.Active():
		input, err := json.Marshal(startInput{
			WorkspaceID: after.WorkspaceID, CallID: after.CallID,
			PickupSeconds: int(c.Scale.Pickup() / time.Second),
			CallSeconds:   int(c.Scale.Longest(after.LongestSeconds) / time.Second),
		})
		if err != nil {
			return fmt.Errorf("start the lifecycle of call %s: %w", after.CallID, err)
		}
		return m.start(ctx, after, string(input))
	case existed && after.Token != "" && (before.Status != after.Status || before.HungUpAt != after.HungUpAt):
		return m.wake(ctx, after.Token)
	}
	return nil
}
