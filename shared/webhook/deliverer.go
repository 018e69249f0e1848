package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"golang.org/x/sync/errgroup"

	"parley/shared/batch"
	"parley/shared/config"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// Deliverer makes the attempts of deliveries: the first of each round for the queue, the
// others for the state machine. An attempt is recorded after it was posted, so it may be
// posted twice, and is never lost; who does what under which condition is model-checked.
// What may fail by itself, AWS, is an error, and comes again: the message, or the task.
type Deliverer struct {
	store     *dynamo.Store
	transport http.RoundTripper
	sealer    *Sealer
	machine   RetryMachine
	loopback  bool
	now       func() time.Time
}

// DelivererOptions are what a Deliverer works with.
type DelivererOptions struct {
	Store   *dynamo.Store
	Sealer  *Sealer
	Machine RetryMachine
	Guard   GuardOptions
	Now     func() time.Time // nil: the system's
}

// NewDeliverer makes a Deliverer.
func NewDeliverer(o DelivererOptions) *Deliverer {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Deliverer{o.Store, NewGuard(o.Guard), o.Sealer, o.Machine, o.Guard.AllowLoopback, o.Now}
}

// DelivererForStage makes the Deliverer of a stage.
func DelivererForStage(aws aws.Config, cfg config.Config) *Deliverer {
	return NewDeliverer(DelivererOptions{
		Store:   dynamo.New(aws, cfg),
		Sealer:  NewSealer(kms.NewFromConfig(aws), cfg.WebhookKey),
		Machine: NewRetryMachine(sfn.NewFromConfig(aws), cfg.WebhookRetry),
		Guard:   GuardOptions{AllowLoopback: cfg.LoopbackWebhooks},
	})
}

// DeliverBatch makes the first attempts that a batch asks for, all at once, so that one
// endpoint that hangs holds nobody up. A message that fails is reported, and comes again.
func (d *Deliverer) DeliverBatch(ctx context.Context, messages events.SQSEvent) (events.SQSEventResponse, error) {
	return batch.Each(ctx, "delivery", messages, d.deliver), nil
}

// deliver makes the first attempt of a round, and has the state machine go on if it
// failed, now or when the message was here before.
func (d *Deliverer) deliver(ctx context.Context, text string) error {
	var m Message
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return fmt.Errorf("read message: %w", err)
	}
	if m.DeliveryID == "" || m.Round < 1 {
		return fmt.Errorf("read message: it names no delivery and round")
	}
	target, err := d.store.Target(ctx, m.WorkspaceID, m.DeliveryID, m.EndpointID)
	if err != nil {
		return err
	}
	delivery := target.Delivery
	if delivery.Version == 0 {
		if m.Round > 1 {
			slog.WarnContext(ctx, "the delivery to retry is older than the log", "delivery_id", m.DeliveryID)
			return nil
		}
		delivery = m.delivery()
	}
	if delivery, err = d.attempt(ctx, delivery, target.Endpoint, m.Round, 1); err != nil {
		return err
	}
	if !delivery.Open(m.Round) {
		return nil
	}
	return d.machine.start(ctx, RetryInput{m.WorkspaceID, m.DeliveryID, m.Round}, delivery.CreatedAt)
}

// Retry makes one of the later attempts of a round. It may be called again.
func (d *Deliverer) Retry(ctx context.Context, t RetryTask) (RetryResult, error) {
	if t.DeliveryID == "" || t.Round < 1 || t.Attempt < 2 || t.Attempt > conversation.MaxAttempts {
		return RetryResult{}, fmt.Errorf("read task: %+v names no later attempt", t)
	}
	delivery, err := d.store.Delivery(ctx, t.WorkspaceID, t.DeliveryID)
	if errors.Is(err, conversation.ErrNotFound) {
		return RetryResult{Done: true}, nil // older than the log
	}
	if err != nil {
		return RetryResult{}, err
	}
	endpoint, err := d.store.WebhookEndpoint(ctx, t.WorkspaceID, delivery.EndpointID)
	if err != nil && !errors.Is(err, conversation.ErrNotFound) {
		return RetryResult{}, err
	}
	delivery, err = d.attempt(ctx, delivery, endpoint, t.Round, t.Attempt)
	return RetryResult{Done: !delivery.Open(t.Round)}, err
}

// attempt makes an attempt and records it, unless it is recorded already. It returns the
// delivery as it then stands. An attempt of a round that is over is recorded as skipped;
// one that the endpoint doesn't want any more ends the delivery as canceled.
func (d *Deliverer) attempt(ctx context.Context, delivery dynamo.StoredDelivery, endpoint dynamo.StoredEndpoint, round, number int) (dynamo.StoredDelivery, error) {
	if _, recorded := delivery.Attempt(round, number); recorded {
		return delivery, nil
	}
	at := conversation.At(d.now())
	var outcome conversation.Attempt
	switch {
	case !delivery.Open(round):
		outcome.Error = conversation.AttemptSkipped
	case !endpoint.Wants(delivery.Event): // as one that is gone doesn't
		outcome.Error = conversation.AttemptCanceled
	default:
		var err error
		if outcome, err = d.post(ctx, delivery, endpoint.WebhookEndpoint, delivery.ID.Attempt(round, number)); err != nil {
			return dynamo.StoredDelivery{}, fmt.Errorf("attempt %d.%d of delivery %s: %w", round, number, delivery.ID, err)
		}
	}
	outcome.ID, outcome.Round, outcome.Number, outcome.At = delivery.ID.Attempt(round, number), round, number, at
	return d.store.RecordAttempt(ctx, delivery, outcome)
}

// post posts a delivery, signed at this moment with the endpoint's secret of this moment.
func (d *Deliverer) post(ctx context.Context, delivery dynamo.StoredDelivery, e conversation.WebhookEndpoint, attempt conversation.AttemptID) (conversation.Attempt, error) {
	if CheckURL(e.URL, d.loopback) != nil {
		return conversation.Attempt{Error: conversation.AttemptBlockedURL}, nil
	}
	payload, err := d.store.UnpackBody(ctx, delivery.Body)
	if err != nil {
		return conversation.Attempt{}, err
	}
	secret, custom, err := d.open(ctx, e)
	if err != nil {
		return conversation.Attempt{}, err
	}
	return post(ctx, d.transport, letter{
		url:     e.URL,
		headers: headersOf(custom, delivery.Event, attempt, Sign(payload, secret, d.now())),
		payload: payload,
		timeout: time.Duration(e.TimeoutSeconds) * time.Second,
	}, d.now)
}

// open opens an endpoint's secret and the values of its headers.
func (d *Deliverer) open(ctx context.Context, e conversation.WebhookEndpoint) (secret string, headers map[string]string, err error) {
	values := make([]string, len(e.Headers))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	group.Go(func() (err error) {
		secret, err = d.sealer.Open(ctx, e, e.SealedSecret)
		return err
	})
	for i, h := range e.Headers {
		group.Go(func() (err error) {
			values[i], err = d.sealer.Open(ctx, e, h.SealedValue)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return "", nil, err
	}
	headers = map[string]string{}
	for i, h := range e.Headers {
		headers[h.Name] = values[i]
	}
	return secret, headers, nil
}
