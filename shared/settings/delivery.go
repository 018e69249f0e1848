package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/httpapi"
	"parley/shared/webhook"
)

// Delivery is an event for an endpoint as the log shows it.
type Delivery struct {
	ID          conversation.DeliveryID     `json:"id"`
	EndpointID  conversation.EndpointID     `json:"endpoint_id"`
	Event       conversation.EventName      `json:"event"`
	EventID     string                      `json:"event_id" format:"uuid"`
	Status      conversation.DeliveryStatus `json:"status" doc:"pending, delivered, failed or canceled."`
	CreatedAt   conversation.Time           `json:"created_at"`
	Attempts    []conversation.Attempt      `json:"attempts,omitempty" doc:"By round and number. A round has up to six; each later round was begun by hand. Absent where many deliveries are retried."`
	RequestBody json.RawMessage             `json:"request_body,omitempty" doc:"What was posted; only where one delivery is asked for."`
}

func showDelivery(d conversation.Delivery) Delivery {
	return Delivery{
		ID: d.ID, EndpointID: d.EndpointID, Event: d.Event, EventID: d.EventID, Status: d.Status, CreatedAt: d.CreatedAt,
		Attempts: d.Attempts,
	}
}

// showRetried shows a delivery whose next round is on its way.
func showRetried(d conversation.Delivery) Delivery {
	d.Status = conversation.DeliveryPending
	return showDelivery(d)
}

// deliveryStatus is a status to filter by.
type deliveryStatus string

func (deliveryStatus) Schema(huma.Registry) *huma.Schema {
	return oneOf([]conversation.DeliveryStatus{
		conversation.DeliveryPending, conversation.DeliveryDelivered, conversation.DeliveryFailed, conversation.DeliveryCanceled,
	})
}

// sentEvent is an event to filter by.
type sentEvent string

func (sentEvent) Schema(huma.Registry) *huma.Schema {
	return oneOf(append(conversation.EventNames(), conversation.WebhookTest))
}

type listDeliveriesRequest struct {
	httpapi.Strict
	httpapi.Cursor
	httpapi.PageSize
	httpapi.Span
	EndpointID httpapi.UUID   `query:"endpoint_id" doc:"Only those for this endpoint."`
	Status     deliveryStatus `query:"status" doc:"Only those with this status."`
	Event      sentEvent      `query:"event" doc:"Only those of this event."`
	EventID    httpapi.UUID   `query:"event_id" doc:"Only those of this event_id."`
	DeliveryID httpapi.UUID   `query:"delivery_id" doc:"Only the one with this id, or with this X-Service-Delivery-Id among its attempts."`
}

type listDeliveriesResponse struct {
	Body struct {
		Deliveries []httpapi.Resource[Delivery] `json:"deliveries"`
		httpapi.Paging
	}
}

func (s Settings) listDeliveriesRoute() httpapi.Route {
	return httpapi.Operation(row(http.MethodGet, "/deliveries", append(listDeliveries, getDeliveries)...), huma.Operation{
		OperationID: "list-deliveries", Tags: tag,
		Summary:     "List deliveries",
		Description: "The log of the last 30 days, newest first by created_at, which from (inclusive) and to (exclusive) bound. A delivery appears after its first attempt.",
	}, s.listDeliveries)
}

func (s Settings) listDeliveries(ctx context.Context, in *listDeliveriesRequest) (*listDeliveriesResponse, error) {
	ws := httpapi.UserOf(ctx).WorkspaceID
	query := dynamo.DeliveryQuery{
		EndpointID: endpointID(in.EndpointID), Status: conversation.DeliveryStatus(in.Status),
		Event: conversation.EventName(in.Event), EventID: strings.ToLower(string(in.EventID)),
		From: in.From.Time, To: in.To.Time,
	}
	var out listDeliveriesResponse
	var err error
	out.Body.Deliveries, out.Body.Paging, err = httpapi.Answer(in.Cursor, in.Limit, func(p dynamo.PageRequest) (dynamo.Page[conversation.Delivery], error) {
		if in.DeliveryID != "" {
			return s.deliveryAlone(ctx, ws, in.DeliveryID, query)
		}
		return s.Store.Deliveries(ctx, ws, query, p)
	}, showDelivery)
	return &out, err
}

// deliveryAlone is a page of the one delivery that an id leads to, if it matches.
func (s Settings) deliveryAlone(ctx context.Context, ws conversation.WorkspaceID, id httpapi.UUID, q dynamo.DeliveryQuery) (dynamo.Page[conversation.Delivery], error) {
	page := dynamo.Page[conversation.Delivery]{}
	attempt := conversation.AttemptID(strings.ToLower(string(id)))
	deliveryID, err := attempt.Delivery()
	if err != nil {
		return page, nil // the id of nothing
	}
	d, err := s.Store.Delivery(ctx, ws, deliveryID)
	if errors.Is(err, conversation.ErrNotFound) {
		return page, nil
	}
	if err != nil {
		return page, err
	}
	named := string(attempt) == string(d.ID) ||
		slices.ContainsFunc(d.Attempts, func(a conversation.Attempt) bool { return a.ID == attempt })
	if named && matches(d.Delivery, q) {
		page.Items = append(page.Items, d.Delivery)
	}
	return page, nil
}

func matches(d conversation.Delivery, q dynamo.DeliveryQuery) bool {
	return (q.EndpointID == "" || q.EndpointID == d.EndpointID) &&
		(q.Status == "" || q.Status == d.Status) &&
		(q.Event == "" || q.Event == d.Event) &&
		(q.EventID == "" || q.EventID == d.EventID) &&
		(q.From.IsZero() || !d.CreatedAt.Before(q.From)) &&
		(q.To.IsZero() || d.CreatedAt.Before(q.To))
}

type deliveryRequest struct {
	httpapi.Strict
	DeliveryID httpapi.UUID `path:"delivery_id"`
}

func deliveryID(id httpapi.UUID) conversation.DeliveryID {
	return conversation.DeliveryID(strings.ToLower(string(id)))
}

func (s Settings) getDeliveryRoute() httpapi.Route {
	return httpapi.Operation(row(http.MethodGet, "/deliveries/{delivery_id}", getDeliveries, readBodies), huma.Operation{
		OperationID: "get-delivery", Tags: tag, Summary: "Get a delivery, with what was posted",
	}, s.getDelivery)
}

func (s Settings) getDelivery(ctx context.Context, in *deliveryRequest) (*deliveryResponse, error) {
	d, err := s.Store.Delivery(ctx, httpapi.UserOf(ctx).WorkspaceID, deliveryID(in.DeliveryID))
	if err != nil {
		return nil, err
	}
	var out deliveryResponse
	out.Body.Delivery = showDelivery(d.Delivery)
	out.Body.Delivery.RequestBody, err = s.Store.UnpackBody(ctx, d.Body)
	return &out, err
}

func (s Settings) retryDeliveryRoute() httpapi.Route {
	return httpapi.Operation(row(http.MethodPost, "/deliveries/{delivery_id}/retry", append(sendDeliveries, getDeliveries, getWorkspaces)...), huma.Operation{
		OperationID: "retry-delivery", Tags: tag, DefaultStatus: http.StatusAccepted, Errors: []int{http.StatusConflict},
		Summary: "Retry a delivery",
		Description: "Begins another round of up to six attempts under the same event_id. The log shows it after its first attempt. " +
			"409 for a delivery that is neither failed nor canceled, or whose endpoint doesn't want the event any more.",
	}, s.retryDelivery)
}

func (s Settings) retryDelivery(ctx context.Context, in *deliveryRequest) (*deliveryResponse, error) {
	ws := httpapi.UserOf(ctx).WorkspaceID
	d, err := s.Store.Delivery(ctx, ws, deliveryID(in.DeliveryID))
	if err != nil {
		return nil, err
	}
	e, err := s.Store.WebhookEndpoint(ctx, ws, d.EndpointID)
	if errors.Is(err, conversation.ErrNotFound) || err == nil && !e.Wants(d.Event) {
		return nil, unwanted()
	}
	if err != nil {
		return nil, err
	}
	err = s.Queue.Retry(ctx, d.Delivery)
	if errors.Is(err, webhook.ErrNotRetryable) {
		return nil, httpapi.Refuse(http.StatusConflict, "delivery_not_retryable",
			"only a delivery that is failed or canceled can be retried, and not more often than 49 times; this one is "+string(d.Status))
	}
	var out deliveryResponse
	out.Body.Delivery = showRetried(d.Delivery)
	return &out, err
}

// unwanted refuses to retry what would end at once.
func unwanted() error {
	return httpapi.Refuse(http.StatusConflict, "endpoint_not_listening", "the endpoint is deleted or disabled, or has no such event enabled")
}

// maxRetried is how many deliveries one request retries.
const maxRetried = 100

type retryDeliveriesRequest struct {
	httpapi.Strict
	httpapi.StrictBody
	Body retryDeliveriesRequestBody
}

type retryDeliveriesRequestBody struct {
	_          struct{}     `additionalProperties:"false"`
	EndpointID httpapi.UUID `json:"endpoint_id"`
	Since      string       `json:"since" minLength:"1" doc:"Created at or after this ISO 8601 time."`
	since      httpapi.Instant
}

func (b *retryDeliveriesRequestBody) Resolve(huma.Context, *huma.PathBuffer) []error {
	if err := b.since.UnmarshalText([]byte(b.Since)); err != nil && b.Since != "" {
		return []error{fmt.Errorf("since: %w", err)}
	}
	return nil
}

func (s Settings) retryDeliveriesRoute() httpapi.Route {
	return httpapi.Operation(row(http.MethodPost, "/deliveries/retry", append(append(sendDeliveries, listDeliveries...), getWorkspaces)...), huma.Operation{
		OperationID: "retry-deliveries", Tags: tag, DefaultStatus: http.StatusAccepted, Errors: append([]int{http.StatusNotFound, http.StatusConflict}, bodyErrors...),
		Summary: "Retry an endpoint's failed deliveries",
		Description: "Begins another round for up to 100 failed deliveries of an endpoint, the newest first, and answers with them. " +
			"While has_more is true there are more: ask again when these have had their first attempt, as the log then shows.",
	}, s.retryDeliveries)
}

type retryDeliveriesResponse struct {
	Body struct {
		Deliveries []httpapi.Resource[Delivery] `json:"deliveries"`
		HasMore    bool                         `json:"has_more" doc:"Whether there are more failed deliveries."`
	}
}

func (s Settings) retryDeliveries(ctx context.Context, in *retryDeliveriesRequest) (*retryDeliveriesResponse, error) {
	ws := httpapi.UserOf(ctx).WorkspaceID
	e, err := s.Store.WebhookEndpoint(ctx, ws, endpointID(in.Body.EndpointID))
	if err != nil {
		return nil, err
	}
	if !e.Enabled {
		return nil, unwanted()
	}
	query := dynamo.DeliveryQuery{EndpointID: e.EndpointID, Status: conversation.DeliveryFailed, From: in.Body.since.Time}
	failed, more, err := s.failed(ctx, ws, query)
	if err != nil {
		return nil, err
	}
	if err := s.Queue.Retry(ctx, failed...); err != nil {
		return nil, err
	}
	var out retryDeliveriesResponse
	out.Body.HasMore = more
	out.Body.Deliveries, _, err = httpapi.Answer(httpapi.Cursor{}, maxRetried, func(dynamo.PageRequest) (dynamo.Page[conversation.Delivery], error) {
		return dynamo.Page[conversation.Delivery]{Items: failed}, nil
	}, func(d conversation.Delivery) Delivery {
		d.Attempts = nil // a page of all of them may be too large
		return showRetried(d)
	})
	return &out, err
}

// failed reads the newest failed deliveries that can be retried, and whether there are more.
func (s Settings) failed(ctx context.Context, ws conversation.WorkspaceID, q dynamo.DeliveryQuery) (failed []conversation.Delivery, more bool, err error) {
	p := dynamo.PageRequest{Limit: maxRetried}
	for {
		page, err := s.Store.Deliveries(ctx, ws, q, p)
		if err != nil {
			return nil, false, err
		}
		for _, d := range page.Items {
			if !d.Retryable() { // it has changed since the index was read
				continue
			}
			if len(failed) == maxRetried {
				return failed, true, nil
			}
			failed = append(failed, d)
		}
		if page.Next == "" {
			return failed, false, nil
		}
		if len(failed) == maxRetried {
			return failed, true, nil
		}
		p.After = page.Next
	}
}
