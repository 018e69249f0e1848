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

// WebhookEndpoint is an endpoint as it is shown: without its secret, and of its headers
// the names alone.
type WebhookEndpoint struct {
	EndpointID     conversation.EndpointID  `json:"endpoint_id"`
	URL            string                   `json:"url"`
	Events         []conversation.EventName `json:"events" doc:"The events that it is sent: call.started, call.completed, call.failed, message.received, message.sent, thread.completed."`
	Blocks         conversation.Blocks      `json:"blocks" doc:"The data blocks that its payloads have."`
	Headers        []string                 `json:"headers" doc:"The names of its custom headers."`
	TimeoutSeconds int                      `json:"timeout_seconds" doc:"For the whole answer."`
	Enabled        bool                     `json:"enabled"`
	CreatedAt      conversation.Time        `json:"created_at"`
}

func showEndpoint(e conversation.WebhookEndpoint) WebhookEndpoint {
	names := make([]string, len(e.Headers))
	for i, header := range e.Headers {
		names[i] = header.Name
	}
	return WebhookEndpoint{
		e.EndpointID, e.URL, append([]conversation.EventName{}, e.Events...), append(conversation.Blocks{}, e.Blocks...), names,
		e.TimeoutSeconds, e.Enabled, e.CreatedAt,
	}
}

type listEndpointsRequest struct {
	httpapi.Strict
	httpapi.Cursor
	httpapi.PageSize
}

type listEndpointsResponse struct {
	Body struct {
		WebhookEndpoints []httpapi.Resource[WebhookEndpoint] `json:"webhook_endpoints"`
		httpapi.Paging
	}
}

func (s Settings) listEndpointsRoute() httpapi.Route {
	return httpapi.Operation(row(http.MethodGet, "/webhook-endpoints", listWorkspaces...), huma.Operation{
		OperationID: "list-webhook-endpoints", Tags: tag,
		Summary: "List webhook endpoints", Description: "Newest first.",
	}, s.listEndpoints)
}

func (s Settings) listEndpoints(ctx context.Context, in *listEndpointsRequest) (*listEndpointsResponse, error) {
	var out listEndpointsResponse
	var err error
	out.Body.WebhookEndpoints, out.Body.Paging, err = httpapi.Answer(in.Cursor, in.Limit, func(p dynamo.PageRequest) (dynamo.Page[conversation.WebhookEndpoint], error) {
		return s.Store.WebhookEndpoints(ctx, httpapi.UserOf(ctx).WorkspaceID, p)
	}, showEndpoint)
	return &out, err
}

type createEndpointRequest struct {
	httpapi.Strict
	httpapi.StrictBody
	Body createEndpointRequestBody
}

// createEndpointRequestBody is checked beside its schema by Resolve, so that every problem is named.
type createEndpointRequestBody struct {
	_              struct{} `additionalProperties:"false"`
	URL            string   `json:"url" minLength:"1" doc:"Where deliveries are posted to: https, a public host, port 443 or one from 1024 up. At most 2048 characters."`
	Events         []event  `json:"events" doc:"The events to send. They are not sent of what happened before."`
	Blocks         *[]block `json:"blocks,omitempty" doc:"The data blocks that payloads have. Without it: the usual ones. call is always among them."`
	Headers        Headers  `json:"headers,omitempty"`
	TimeoutSeconds timeout  `json:"timeout_seconds,omitempty" doc:"For the whole answer; without it 10."`
	Enabled        *bool    `json:"enabled,omitempty" doc:"Without it: yes."`
}

func (b *createEndpointRequestBody) Resolve(ctx huma.Context, _ *huma.PathBuffer) []error {
	problems := b.Headers.problems()
	if _, err := b.TimeoutSeconds.seconds(); err != nil {
		problems = append(problems, err)
	}
	for name, value := range b.Headers {
		if value == nil {
			problems = append(problems, fmt.Errorf("headers: %s must have a value: there is none to remove", name))
		}
	}
	if b.URL != "" {
		problems = append(problems, urlProblems(ctx, b.URL)...)
	}
	return problems
}

// urlProblems are the guard's, in the words of the API.
func urlProblems(ctx huma.Context, url string) []error {
	var problems []error
	for _, problem := range webhook.CheckURL(url, settingsOf(ctx.Context()).Loopback) {
		problems = append(problems, errors.New("url: "+strings.TrimPrefix(problem, "url ")))
	}
	return problems
}

type createEndpointResponse struct {
	CacheControl string `header:"Cache-Control"`
	Body         struct {
		WebhookEndpoint WebhookEndpoint `json:"webhook_endpoint"`
		Secret          string          `json:"secret" doc:"Signs the deliveries. It is shown this once."`
	}
}

func (s Settings) createEndpointRoute() httpapi.Route {
	return httpapi.Operation(row(http.MethodPost, "/webhook-endpoints", writeWorkspaces, seal), huma.Operation{
		OperationID: "create-webhook-endpoint", Tags: tag, DefaultStatus: http.StatusCreated,
		Errors: append([]int{http.StatusConflict}, bodyErrors...), Middlewares: huma.Middlewares{s.addTo},
		Summary:     "Create a webhook endpoint",
		Description: fmt.Sprintf("The answer alone has the signing secret. A workspace has at most %d endpoints; beyond that: 409.", conversation.MaxWebhookEndpoints),
	}, s.createEndpoint)
}

func (s Settings) createEndpoint(ctx context.Context, in *createEndpointRequest) (*createEndpointResponse, error) {
	e := conversation.WebhookEndpoint{
		EndpointID:  conversation.EndpointID(conversation.NewID()),
		WorkspaceID: httpapi.UserOf(ctx).WorkspaceID,
		CreatedAt:   conversation.At(s.Now()),
		URL:         in.Body.URL, Events: eventsOf(in.Body.Events), Blocks: blocksOf(in.Body.Blocks),
		TimeoutSeconds: conversation.DefaultWebhookTimeout, Enabled: true,
	}
	set(&e.Enabled, in.Body.Enabled)
	if seconds, _ := in.Body.TimeoutSeconds.seconds(); seconds != 0 {
		e.TimeoutSeconds = seconds
	}
	secret := webhook.NewSecret()
	var err error
	if e.SealedSecret, err = s.Sealer.Seal(ctx, e, secret); err != nil {
		return nil, err
	}
	if e.Headers, err = s.headers(ctx, e, in.Body.Headers); err != nil {
		return nil, err
	}
	shown := showEndpoint(e)
	entry, err := s.entry(ctx, conversation.WebhookEndpointCreated, string(e.EndpointID), nil, shown)
	if err != nil {
		return nil, err
	}
	err = s.Store.InsertWebhookEndpoint(ctx, e, entry)
	if errors.Is(err, dynamo.ErrTooManyEndpoints) {
		return nil, httpapi.Refuse(http.StatusConflict, "too_many_webhook_endpoints",
			fmt.Sprintf("the workspace has %d webhook endpoints, and may have no more", conversation.MaxWebhookEndpoints))
	}
	if err != nil {
		return nil, err
	}
	out := createEndpointResponse{CacheControl: "no-store"}
	out.Body.WebhookEndpoint, out.Body.Secret = shown, secret
	return &out, nil
}

// set changes a value if another is given.
func set[V any](value, given *V) {
	if given != nil {
		*value = *given
	}
}

// eventsOf are the events chosen, each once, in the order in which they happen.
func eventsOf(chosen []event) []conversation.EventName {
	return slices.DeleteFunc(conversation.EventNames(), func(name conversation.EventName) bool {
		return !slices.Contains(chosen, event(name))
	})
}

type endpointRequest struct {
	httpapi.Strict
	EndpointID httpapi.UUID `path:"endpoint_id"`
}

type endpointResponse struct {
	Body struct {
		WebhookEndpoint WebhookEndpoint `json:"webhook_endpoint"`
	}
}

func (s Settings) getEndpointRoute() httpapi.Route {
	return httpapi.Operation(row(http.MethodGet, "/webhook-endpoints/{endpoint_id}", getWorkspaces), huma.Operation{
		OperationID: "get-webhook-endpoint", Tags: tag, Summary: "Get a webhook endpoint",
	}, s.getEndpoint)
}

func (s Settings) getEndpoint(ctx context.Context, in *endpointRequest) (*endpointResponse, error) {
	e, err := s.Store.WebhookEndpoint(ctx, httpapi.UserOf(ctx).WorkspaceID, endpointID(in.EndpointID))
	var out endpointResponse
	out.Body.WebhookEndpoint = showEndpoint(e.WebhookEndpoint)
	return &out, err
}

func endpointID(id httpapi.UUID) conversation.EndpointID {
	return conversation.EndpointID(strings.ToLower(string(id)))
}

type updateEndpointRequest struct {
	httpapi.Strict
	httpapi.StrictBody
	EndpointID httpapi.UUID `path:"endpoint_id"`
	Body       updateEndpointRequestBody
}

type updateEndpointRequestBody struct {
	_              struct{} `additionalProperties:"false"`
	URL            *string  `json:"url,omitempty"`
	Events         *[]event `json:"events,omitempty" doc:"One that is new is sent from now on."`
	Blocks         *[]block `json:"blocks,omitempty"`
	Headers        Headers  `json:"headers,omitempty"`
	TimeoutSeconds timeout  `json:"timeout_seconds,omitempty" doc:"For the whole answer."`
	Enabled        *bool    `json:"enabled,omitempty" doc:"What is on its way to an endpoint that is disabled ends as canceled."`
}

func (b *updateEndpointRequestBody) Resolve(ctx huma.Context, _ *huma.PathBuffer) []error {
	problems := b.Headers.problems()
	if _, err := b.TimeoutSeconds.seconds(); err != nil {
		problems = append(problems, err)
	}
	if b.URL != nil {
		problems = append(problems, urlProblems(ctx, *b.URL)...)
	}
	return problems
}

func (s Settings) updateEndpointRoute() httpapi.Route {
	return httpapi.Operation(row(http.MethodPatch, "/webhook-endpoints/{endpoint_id}", getWorkspaces, writeWorkspaces, seal), huma.Operation{
		OperationID: "update-webhook-endpoint", Tags: tag, Errors: bodyErrors, Middlewares: huma.Middlewares{s.addTo},
		Summary:     "Change a webhook endpoint",
		Description: "What isn't given stays. Deliveries that are on their way follow the endpoint as it is at each attempt.",
	}, s.updateEndpoint)
}

func (s Settings) updateEndpoint(ctx context.Context, in *updateEndpointRequest) (*endpointResponse, error) {
	changed, err := s.changeEndpoint(ctx, in.EndpointID, func(e *conversation.WebhookEndpoint) (*conversation.AuditEntry, error) {
		before := showEndpoint(*e)
		set(&e.URL, in.Body.URL)
		set(&e.Enabled, in.Body.Enabled)
		if seconds, _ := in.Body.TimeoutSeconds.seconds(); seconds != 0 {
			e.TimeoutSeconds = seconds
		}
		if in.Body.Events != nil {
			e.Events = eventsOf(*in.Body.Events)
		}
		if in.Body.Blocks != nil {
			e.Blocks = blocksOf(in.Body.Blocks)
		}
		var err error
		if e.Headers, err = s.headers(ctx, *e, in.Body.Headers); err != nil {
			return nil, err
		}
		entry, err := s.entry(ctx, conversation.WebhookEndpointUpdated, string(e.EndpointID), before, showEndpoint(*e))
		if err != nil {
			return nil, err
		}
		if in.Body.Headers.setsAny() && !slices.ContainsFunc(entry.Changes, func(c conversation.AuditChange) bool { return c.Field == "headers" }) {
			names, err := json.Marshal(before.Headers) // the same as after: only values differ
			if err != nil {
				return nil, err
			}
			entry.Changes = append(entry.Changes, conversation.AuditChange{Field: "headers", Before: names, After: names})
		}
		if len(entry.Changes) == 0 {
			return nil, nil
		}
		return &entry, nil
	})
	var out endpointResponse
	out.Body.WebhookEndpoint = showEndpoint(changed)
	return &out, err
}

// changeEndpoint lets change work on an endpoint as it stands, and writes it with the audit
// entry that change returns; with none, nothing is written. When somebody else was faster
// it does so again with what they wrote.
func (s Settings) changeEndpoint(ctx context.Context, id httpapi.UUID, change func(*conversation.WebhookEndpoint) (*conversation.AuditEntry, error)) (conversation.WebhookEndpoint, error) {
	for range 16 {
		e, err := s.Store.WebhookEndpoint(ctx, httpapi.UserOf(ctx).WorkspaceID, endpointID(id))
		if err != nil {
			return conversation.WebhookEndpoint{}, err
		}
		entry, err := change(&e.WebhookEndpoint)
		if err != nil || entry == nil {
			return e.WebhookEndpoint, err
		}
		err = s.Store.ReplaceWebhookEndpoint(ctx, e, *entry)
		if !errors.Is(err, dynamo.ErrStale) {
			return e.WebhookEndpoint, err
		}
	}
	return conversation.WebhookEndpoint{}, fmt.Errorf("change webhook endpoint %s: others were faster each time", id)
}

func (s Settings) deleteEndpointRoute() httpapi.Route {
	return httpapi.Operation(row(http.MethodDelete, "/webhook-endpoints/{endpoint_id}", getWorkspaces, writeWorkspaces, deleteWorkspaces), huma.Operation{
		OperationID: "delete-webhook-endpoint", Tags: tag, DefaultStatus: http.StatusNoContent,
		Summary:     "Delete a webhook endpoint",
		Description: "What is on its way to it ends as canceled. The log of its deliveries stays.",
	}, s.deleteEndpoint)
}

func (s Settings) deleteEndpoint(ctx context.Context, in *endpointRequest) (*struct{}, error) {
	ws := httpapi.UserOf(ctx).WorkspaceID
	e, err := s.Store.WebhookEndpoint(ctx, ws, endpointID(in.EndpointID))
	if err != nil {
		return nil, err
	}
	entry, err := s.entry(ctx, conversation.WebhookEndpointDeleted, string(e.EndpointID), showEndpoint(e.WebhookEndpoint), nil)
	if err != nil {
		return nil, err
	}
	return nil, s.Store.DeleteWebhookEndpoint(ctx, ws, e.EndpointID, entry)
}

type rotateSecretResponse struct {
	CacheControl string `header:"Cache-Control"`
	Body         struct {
		Secret string `json:"secret" doc:"Signs the deliveries from now on. It is shown this once."`
	}
}

func (s Settings) rotateSecretRoute() httpapi.Route {
	return httpapi.Operation(row(http.MethodPost, "/webhook-endpoints/{endpoint_id}/secret", getWorkspaces, writeWorkspaces, seal), huma.Operation{
		OperationID: "rotate-webhook-secret", Tags: tag,
		Summary:     "Replace a webhook endpoint's signing secret",
		Description: "The old secret is invalid at once: the next attempt of every delivery is signed with the new one.",
	}, s.rotateSecret)
}

func (s Settings) rotateSecret(ctx context.Context, in *endpointRequest) (*rotateSecretResponse, error) {
	secret := webhook.NewSecret()
	_, err := s.changeEndpoint(ctx, in.EndpointID, func(e *conversation.WebhookEndpoint) (_ *conversation.AuditEntry, err error) {
		if e.SealedSecret, err = s.Sealer.Seal(ctx, *e, secret); err != nil {
			return nil, err
		}
		entry, err := s.entry(ctx, conversation.WebhookEndpointSecretRotated, string(e.EndpointID), nil, nil)
		return &entry, err
	})
	if err != nil {
		return nil, err
	}
	out := rotateSecretResponse{CacheControl: "no-store"}
	out.Body.Secret = secret
	return &out, nil
}

type deliveryResponse struct {
	Body struct {
		Delivery Delivery `json:"delivery"`
	}
}

func (s Settings) testEndpointRoute() httpapi.Route {
	return httpapi.Operation(row(http.MethodPost, "/webhook-endpoints/{endpoint_id}/test", append(sendDeliveries, getWorkspaces)...), huma.Operation{
		OperationID: "test-webhook-endpoint", Tags: tag, DefaultStatus: http.StatusAccepted, Errors: []int{http.StatusConflict},
		Summary: "Send a test event",
		Description: "Sends webhook.test to the endpoint, whatever events it has chosen, by the very path of every event. " +
			"The log shows the delivery after its first attempt. 409 while the endpoint is disabled.",
	}, s.testEndpoint)
}

func (s Settings) testEndpoint(ctx context.Context, in *endpointRequest) (*deliveryResponse, error) {
	e, err := s.Store.WebhookEndpoint(ctx, httpapi.UserOf(ctx).WorkspaceID, endpointID(in.EndpointID))
	if err != nil {
		return nil, err
	}
	if !e.Enabled {
		return nil, httpapi.Refuse(http.StatusConflict, "webhook_endpoint_disabled", "the webhook endpoint is disabled")
	}
	sent, err := s.Publisher.SendTest(ctx, e.WebhookEndpoint)
	if err != nil {
		return nil, err
	}
	var out deliveryResponse
	out.Body.Delivery = showDelivery(sent)
	return &out, nil
}
