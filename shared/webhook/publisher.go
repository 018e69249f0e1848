package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
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
	Change struct {
		SequenceNumber string          `json:"SequenceNumber"`
		CreatedAt      float64         `json:"ApproximateCreationDateTime"` // Unix seconds
		OldImage       json.RawMessage `json:"OldImage"`
		NewImage       json.RawMessage `json:"NewImage"`
	} `json:"dynamodb"`
}

// writtenBy is when the record was written at the latest: DynamoDB rounds the time down to
// the second.
func (r StreamRecord) writtenBy() time.Time {
	return time.Unix(int64(r.Change.CreatedAt)+1, 0)
}

// Publisher turns what happens into messages of the queue, one for each endpoint that
// wants the event, with the payload as it is at that moment. A change that is seen again
// makes messages for the same deliveries.
type Publisher struct {
	store   *dynamo.Store
	queue   Queue
	baseURL string
	now     func() time.Time
}

// NewPublisher makes a Publisher. baseURL is the API's public address, without a trailing
// slash; now may be nil for the system's clock.
func NewPublisher(store *dynamo.Store, queue Queue, baseURL string, now func() time.Time) *Publisher {
	if now == nil {
		now = time.Now
	}
	return &Publisher{store, queue, baseURL, now}
}

// Publish publishes the events of a batch of the stream. A record whose messages are not
// all queued is reported, and comes again. An endpoint gets no event that it has enabled
// after the record was written, so a replay reaches nobody who wasn't there.
func (p *Publisher) Publish(ctx context.Context, batch StreamEvent) (events.DynamoDBEventResponse, error) {
	failed := make([]bool, len(batch.Records))
	fail := func(i int, err error) {
		if err != nil {
			slog.ErrorContext(ctx, "stream record", "sequence_number", batch.Records[i].Change.SequenceNumber, "error", err)
			failed[i] = true
		}
	}
	happened := make([][]conversation.Event, len(batch.Records))
	for i, record := range batch.Records {
		var err error
		happened[i], err = eventsOf(record)
		fail(i, err)
	}
	subscriptions, err := p.subscriptions(ctx, happened)
	messages := make([][]Message, len(batch.Records))
	var group errgroup.Group
	group.SetLimit(8)
	for i, record := range batch.Records {
		if len(happened[i]) == 0 {
			continue
		}
		group.Go(func() error {
			if err != nil {
				fail(i, err)
				return nil
			}
			var failure error
			messages[i], failure = p.messages(ctx, record, happened[i], subscriptions)
			fail(i, failure)
			return nil
		})
	}
	_ = group.Wait() // its errors are in failed
	var all []Message
	var owner []int
	for i := range messages {
		for _, m := range messages[i] {
			all, owner = append(all, m), append(owner, i)
		}
	}
	for n, err := range p.queue.send(ctx, all) {
		fail(owner[n], err)
	}
	response := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
	for i, record := range batch.Records {
		if failed[i] {
			response.BatchItemFailures = append(response.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: record.Change.SequenceNumber})
		}
	}
	return response, nil
}

// eventsOf says what a record means. Its calls lack the fields that are in S3.
func eventsOf(record StreamRecord) ([]conversation.Event, error) {
	after, isCall, err := dynamo.CallImage(record.Change.NewImage)
	if err != nil || !isCall {
		return nil, err
	}
	before, _, err := dynamo.CallImage(record.Change.OldImage)
	if err != nil {
		return nil, err
	}
	return conversation.CallEvents(before, after), nil
}

// subscriptions reads those of every workspace that something happened in.
func (p *Publisher) subscriptions(ctx context.Context, happened [][]conversation.Event) (map[conversation.WorkspaceID][]conversation.Subscription, error) {
	found := map[conversation.WorkspaceID][]conversation.Subscription{}
	for _, list := range happened {
		for _, e := range list {
			found[e.Call.WorkspaceID] = nil
		}
	}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(8)
	for _, ws := range slices.Collect(maps.Keys(found)) {
		group.Go(func() error {
			subscriptions, err := p.store.Subscriptions(ctx, ws)
			mu.Lock()
			defer mu.Unlock()
			found[ws] = subscriptions
			return err
		})
	}
	return found, group.Wait()
}

// messages makes the messages of a record's events.
func (p *Publisher) messages(ctx context.Context, record StreamRecord, happened []conversation.Event, subscriptions map[conversation.WorkspaceID][]conversation.Subscription) ([]Message, error) {
	var messages []Message
	for _, e := range happened {
		for _, s := range subscriptions[e.Call.WorkspaceID] {
			since, wanted := s.Since[e.Name]
			if !wanted || !since.Before(record.writtenBy()) {
				continue
			}
			whole, err := p.store.WholeCallImage(ctx, record.Change.NewImage, s.Blocks)
			if err != nil {
				return nil, err
			}
			e.Call = &whole.Call
			m, err := p.message(ctx, e, whole.WorkspaceID, s.EndpointID, s.Blocks)
			if err != nil {
				return nil, err
			}
			messages = append(messages, m)
		}
	}
	return messages, nil
}

func (p *Publisher) message(ctx context.Context, e conversation.Event, ws conversation.WorkspaceID, endpoint conversation.EndpointID, blocks conversation.Blocks) (Message, error) {
	payload, err := e.Payload(blocks, p.baseURL)
	if err != nil {
		return Message{}, err
	}
	m := Message{
		WorkspaceID: ws, DeliveryID: conversation.NewDeliveryID(endpoint, e.Name, e.ID), EndpointID: endpoint,
		Event: e.Name, EventID: e.ID, Round: 1, CreatedAt: conversation.At(p.now()),
	}
	m.Body, err = p.store.PackBody(ctx, ws, m.DeliveryID, payload)
	return m, err
}

// SendTest queues a webhook.test for an endpoint, a new one each time, and returns its
// delivery as it will be: the log shows it after its first attempt.
func (p *Publisher) SendTest(ctx context.Context, endpoint conversation.WebhookEndpoint) (conversation.Delivery, error) {
	e := conversation.TestEvent(endpoint, conversation.NewID(), conversation.At(p.now()))
	m, err := p.message(ctx, e, endpoint.WorkspaceID, endpoint.EndpointID, endpoint.Blocks)
	if err == nil {
		err = p.queue.send(ctx, []Message{m})[0]
	}
	if err != nil {
		return conversation.Delivery{}, fmt.Errorf("send a test to webhook endpoint %s: %w", endpoint.EndpointID, err)
	}
	delivery := m.delivery().Delivery
	delivery.Round, delivery.Attempts = 1, []conversation.Attempt{}
	return delivery, nil
}
