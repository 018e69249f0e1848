package simulator

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"

	"github.com/aws/aws-lambda-go/events"

	"parley/shared/carrier"
)

// Invoke is the function's handler: a batch of SQS is played by Step, the messages at once,
// and answered with those to be repeated; anything else is handed to Handle.
func (s *Simulator) Invoke(ctx context.Context, event json.RawMessage) (any, error) {
	var batch events.SQSEvent
	if err := json.Unmarshal(event, &batch); err == nil && len(batch.Records) > 0 {
		return s.steps(ctx, batch), nil
	}
	var request carrier.SimulatorRequest
	if err := json.Unmarshal(event, &request); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	return s.Handle(ctx, request)
}

func (s *Simulator) steps(ctx context.Context, batch events.SQSEvent) events.SQSEventResponse {
	errs := make([]error, len(batch.Records))
	var group sync.WaitGroup
	for i, record := range batch.Records {
		group.Go(func() { errs[i] = s.Step(ctx, record.Body) })
	}
	group.Wait()
	failures := []events.SQSBatchItemFailure{}
	for i, err := range errs {
		if err != nil {
			slog.ErrorContext(ctx, "a step will be repeated", "error", err)
			failures = append(failures, events.SQSBatchItemFailure{ItemIdentifier: batch.Records[i].MessageId})
		}
	}
	return events.SQSEventResponse{BatchItemFailures: failures}
}
