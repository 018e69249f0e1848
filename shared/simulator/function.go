package simulator

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"parley/shared/batch"
	"parley/shared/carrier"
)

// Invoke is the function's handler: a batch of SQS is played by Step, the messages at once,
// and answered with those to be repeated; anything else is handed to Handle.
func (s *Simulator) Invoke(ctx context.Context, event json.RawMessage) (any, error) {
	var steps events.SQSEvent
	if err := json.Unmarshal(event, &steps); err == nil && len(steps.Records) > 0 {
		return batch.Each(ctx, "a step will be repeated", steps, s.Step), nil
	}
	var request carrier.SimulatorRequest
	if err := json.Unmarshal(event, &request); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	return s.Handle(ctx, request)
}
