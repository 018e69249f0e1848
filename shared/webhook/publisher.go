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

// Publisher turns what happens into messages of the queue, one for each endpoint that
// wants the event, with the payload as it is at that moment. A change that is seen again
// makes messages for the same deliveries.
type Publisher struct {
	PublisherOptions
}

// PublisherOptions say what a Publisher works with. TimeScale and Now have defaults.
type PublisherOptions struct {
	Store     *dynamo.Store
	Queue     Queue
	BaseURL   string           // the API's public address, without a trailing slash
	TimeScale int              // message.sent's delay is divided by it; 1
	Now       func() time.Time // the system's clock
}

// NewPublisher makes a Publisher.
func NewPublisher(o PublisherOptions) *Publisher {
	o.TimeScale = max(1, o.TimeScale)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Publisher{o}
}

// sentDelay is how many seconds message.sent stays in the queue before its first attempt, as
// it arrives 15–30 s after the message was sent (spec: Event kinds).
const sentDelay = 15

// Publish publishes the events of a batch of the stream. A record whose messages are not
// all queued is reported, and comes again. An endpoint gets no event that it has enabled
// in a later second than the record was written in, so a replay reaches nobody who wasn't
// there.
func (p *Publisher) Publish(ctx context.Context, batch dynamo.StreamEvent) (events.DynamoDBEventResponse, error) {
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
	subscriptions := p.subscriptions(ctx, happened)
	messages := make([][]Message, len(batch.Records))
	var group errgroup.Group
	group.SetLimit(8)
	for i, record := range batch.Records {
		if len(happened[i]) == 0 {
			continue
		}
		group.Go(func() error {
			var err error
			messages[i], err = p.messages(ctx, record, happened[i], subscriptions)
			fail(i, err)
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
	for n, err := range p.Queue.send(ctx, all) {
		fail(owner[n], err)
	}
	return batch.Failures(failed), nil
}

// eventsOf says what a record means. Its subjects lack the fields that are in S3.
func eventsOf(record dynamo.StreamRecord) ([]conversation.Event, error) {
	for _, read := range []func(dynamo.StreamRecord) ([]conversation.Event, bool, error){
		changes(dynamo.CallImage, conversation.CallEvents),
		changes(dynamo.MessageImage, conversation.MessageEvents),
		changes(dynamo.ThreadImage, conversation.ThreadEvents),
	} {
		if happened, isKind, err := read(record); isKind || err != nil {
			return happened, err
		}
	}
	return nil, nil
}

// changes reads the records of one kind of item; it is false for those of another.
func changes[R any](read func(json.RawMessage) (R, bool, error), events func(before, after R) []conversation.Event) func(dynamo.StreamRecord) ([]conversation.Event, bool, error) {
	return func(record dynamo.StreamRecord) ([]conversation.Event, bool, error) {
		after, isKind, err := read(record.Change.NewImage)
		if err != nil || !isKind {
			return nil, false, err
		}
		before, _, err := read(record.Change.OldImage)
		if err != nil {
			return nil, false, err
		}
		return events(before, after), true, nil
	}
}

// subscribers are a workspace's subscriptions, or why they can't be read.
type subscribers struct {
	all []conversation.Subscription
	err error
}

// subscriptions reads those of every workspace that something happened in. That one can't
// be read holds up no other.
func (p *Publisher) subscriptions(ctx context.Context, happened [][]conversation.Event) map[conversation.WorkspaceID]subscribers {
	found := map[conversation.WorkspaceID]subscribers{}
	for _, list := range happened {
		for _, e := range list {
			found[e.WorkspaceID] = subscribers{}
		}
	}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(8)
	for _, ws := range slices.Collect(maps.Keys(found)) {
		group.Go(func() error {
			all, err := p.Store.Subscriptions(ctx, ws)
			mu.Lock()
			defer mu.Unlock()
			found[ws] = subscribers{all, err}
			return nil
		})
	}
	_ = group.Wait() // its errors are in found
	return found
}

// messages makes the messages of a record's events.
func (p *Publisher) messages(ctx context.Context, record dynamo.StreamRecord, happened []conversation.Event, subscriptions map[conversation.WorkspaceID]subscribers) ([]Message, error) {
	var messages []Message
	for _, e := range happened {
		wanting := subscriptions[e.WorkspaceID]
		if wanting.err != nil {
			return nil, wanting.err
		}
		for _, s := range wanting.all {
			since, wanted := s.Since[e.Name]
			if !wanted || !since.Before(record.WrittenBy()) {
				continue
			}
			whole, err := p.whole(ctx, e, record.Change.NewImage, s.Blocks)
			if err != nil {
				return nil, err
			}
			m, err := p.message(ctx, whole, s.EndpointID, s.Blocks)
			if err != nil {
				return nil, err
			}
			messages = append(messages, m)
		}
	}
	return messages, nil
}

// whole gives an event's subject its large fields of these blocks. A message has none.
func (p *Publisher) whole(ctx context.Context, e conversation.Event, image json.RawMessage, blocks conversation.Blocks) (conversation.Event, error) {
	switch {
	case e.Call != nil:
		whole, err := p.Store.WholeCallImage(ctx, image, blocks)
		e.Call = &whole.Call
		return e, err
	case e.Thread != nil:
		whole, err := p.Store.WholeThreadImage(ctx, image, blocks)
		e.Thread = &whole.Thread
		return e, err
	default:
		return e, nil
	}
}

func (p *Publisher) message(ctx context.Context, e conversation.Event, endpoint conversation.EndpointID, blocks conversation.Blocks) (Message, error) {
	payload, err := e.Payload(blocks, p.BaseURL)
	if err != nil {
		return Message{}, err
	}
	m := Message{
		WorkspaceID: e.WorkspaceID, DeliveryID: conversation.NewDeliveryID(endpoint, e.Name, e.ID), EndpointID: endpoint,
		Event: e.Name, EventID: e.ID, Round: 1, CreatedAt: conversation.At(p.Now()),
	}
	if e.Name == conversation.MessageSent {
		m.delaySeconds = (sentDelay + p.TimeScale - 1) / p.TimeScale
	}
	m.Body, err = p.Store.PackBody(ctx, e.WorkspaceID, m.DeliveryID, payload)
	return m, err
}

// SendTest queues a webhook.test for an endpoint, a new one each time, and returns its
// delivery as it will be: the log shows it after its first attempt.
func (p *Publisher) SendTest(ctx context.Context, endpoint conversation.WebhookEndpoint) (conversation.Delivery, error) {
	e := conversation.TestEvent(endpoint, conversation.NewID(), conversation.At(p.Now()))
	m, err := p.message(ctx, e, endpoint.EndpointID, endpoint.Blocks)
	if err == nil {
		err = p.Queue.send(ctx, []Message{m})[0]
	}
	if err != nil {
		return conversation.Delivery{}, fmt.Errorf("send a test to webhook endpoint %s: %w", endpoint.EndpointID, err)
	}
	delivery := m.delivery().Delivery
	delivery.Round, delivery.Attempts = 1, []conversation.Attempt{}
	return delivery, nil
}
