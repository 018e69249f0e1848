// Package batch answers the batches of SQS's queues message by message.
package batch

import (
	"context"
	"log/slog"
	"sync"

	"github.com/aws/aws-lambda-go/events"
)

// Each does the work that each message of a batch asks for, all at once, so that one that
// hangs holds nobody up. It answers with those that failed, which come again; their errors are
// logged under the name of the work.
func Each(ctx context.Context, work string, batch events.SQSEvent, do func(ctx context.Context, body string) error) events.SQSEventResponse {
	errs := make([]error, len(batch.Records))
	var group sync.WaitGroup
	for i, message := range batch.Records {
		group.Go(func() { errs[i] = do(ctx, message.Body) })
	}
	group.Wait()
	response := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}} // null is no answer
	for i, err := range errs {
		if err != nil {
			slog.ErrorContext(ctx, work, "message_id", batch.Records[i].MessageId, "error", err)
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: batch.Records[i].MessageId})
		}
	}
	return response
}
