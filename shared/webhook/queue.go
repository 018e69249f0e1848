package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// Message asks for the first attempt of a delivery's round. The first round's carries the
// body; a later one finds it in the delivery's record.
type Message struct {
	WorkspaceID conversation.WorkspaceID `json:"workspace_id"`
	DeliveryID  conversation.DeliveryID  `json:"delivery_id"`
	EndpointID  conversation.EndpointID  `json:"endpoint_id"`
	Event       conversation.EventName   `json:"event"`
	EventID     string                   `json:"event_id"`
	Round       int                      `json:"round"`
	CreatedAt   conversation.Time        `json:"created_at"`
	Body        dynamo.DeliveryBody      `json:"body,omitzero"`

	delaySeconds int // that it stays in the queue before anyone gets it
}

// delivery is the delivery that the message's first record writes.
func (m Message) delivery() dynamo.StoredDelivery {
	return dynamo.StoredDelivery{
		Delivery: conversation.Delivery{
			ID: m.DeliveryID, WorkspaceID: m.WorkspaceID, EndpointID: m.EndpointID, Event: m.Event, EventID: m.EventID,
			Status: conversation.DeliveryPending, CreatedAt: m.CreatedAt,
		},
		Body: m.Body,
	}
}

// Queue is the queue of deliveries. It is a fair one: messages are grouped by endpoint, so
// that one with many doesn't keep the others waiting. A fair queue is a standard one, where
// a message may have both a group and a delay of its own; only FIFO queues refuse the latter.
type Queue struct {
	client *sqs.Client
	url    string
}

// NewQueue is the queue at an address of SQS.
func NewQueue(client *sqs.Client, url string) Queue { return Queue{client, url} }

// SQS takes ten messages at once, and 256 KB everywhere.
const (
	maxBatch      = 10
	maxBatchBytes = 250 << 10
)

// ErrNotRetryable says that a delivery is pending, delivered, or has had all its rounds.
var ErrNotRetryable = errors.New("the delivery can't be retried")

// Retry begins the next round of failed or canceled deliveries, and writes nothing: their
// record shows it after its first attempt. Its error is ErrNotRetryable if one of them is
// neither; nothing is sent then.
func (q Queue) Retry(ctx context.Context, deliveries ...conversation.Delivery) error {
	var messages []Message
	for _, d := range deliveries {
		if !d.Retryable() {
			return fmt.Errorf("retry delivery %s, %s in round %d: %w", d.ID, d.Status, d.Round, ErrNotRetryable)
		}
		messages = append(messages, Message{
			WorkspaceID: d.WorkspaceID, DeliveryID: d.ID, EndpointID: d.EndpointID, Event: d.Event, EventID: d.EventID,
			Round: d.Round + 1, CreatedAt: d.CreatedAt,
		})
	}
	return errors.Join(q.send(ctx, messages)...)
}

// send queues messages. The errors are those of the messages, nil where one is queued.
func (q Queue) send(ctx context.Context, messages []Message) []error {
	errs := make([]error, len(messages))
	texts := make([]string, len(messages))
	var batches [][]int
	size := 0
	for i, m := range messages {
		text, err := json.Marshal(m)
		if err != nil {
			errs[i] = fmt.Errorf("queue delivery %s: %w", m.DeliveryID, err)
			continue
		}
		texts[i] = string(text)
		if last := len(batches) - 1; last >= 0 && len(batches[last]) < maxBatch && size+len(text) <= maxBatchBytes {
			batches[last] = append(batches[last], i)
			size += len(text)
			continue
		}
		batches, size = append(batches, []int{i}), len(text)
	}
	var group errgroup.Group
	group.SetLimit(8)
	for _, batch := range batches {
		group.Go(func() error {
			q.sendBatch(ctx, messages, texts, batch, errs)
			return nil
		})
	}
	_ = group.Wait() // its errors are in errs
	return errs
}

func (q Queue) sendBatch(ctx context.Context, messages []Message, texts []string, batch []int, errs []error) {
	input := &sqs.SendMessageBatchInput{QueueUrl: &q.url}
	for _, i := range batch {
		input.Entries = append(input.Entries, types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), MessageBody: &texts[i], MessageGroupId: aws.String(string(messages[i].EndpointID)),
			DelaySeconds: int32(messages[i].delaySeconds),
		})
	}
	out, err := q.client.SendMessageBatch(ctx, input)
	if err != nil {
		for _, i := range batch {
			errs[i] = fmt.Errorf("queue delivery %s: %w", messages[i].DeliveryID, err)
		}
		return
	}
	for _, failed := range out.Failed {
		i, err := strconv.Atoi(aws.ToString(failed.Id))
		if err != nil || i >= len(errs) {
			continue
		}
		errs[i] = fmt.Errorf("queue delivery %s: %s: %s", messages[i].DeliveryID, aws.ToString(failed.Code), aws.ToString(failed.Message))
	}
}
