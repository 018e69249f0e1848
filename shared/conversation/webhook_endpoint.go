package conversation

import "slices"

// Bounds of what an endpoint may be.
const (
	MaxWebhookEndpoints    = 20 // per workspace
	MaxWebhookURL          = 2048
	MaxWebhookHeaders      = 100
	MinWebhookTimeout      = 1 // seconds
	MaxWebhookTimeout      = 10
	DefaultWebhookTimeout  = 10
	MaxWebhookHeaderLength = 1024 // of a name and of a value
)

// EndpointID names a webhook endpoint.
type EndpointID string

// WebhookEndpoint is where a workspace wants its events, and how. Secrets in it are
// sealed: package webhook opens them.
type WebhookEndpoint struct {
	EndpointID     EndpointID     `json:"endpoint_id"`
	WorkspaceID    WorkspaceID    `json:"workspace_id"`
	URL            string         `json:"url"`
	Events         []EventName    `json:"events"`
	Blocks         Blocks         `json:"blocks"`
	TimeoutSeconds int            `json:"timeout_seconds"` // for the whole answer
	Enabled        bool           `json:"enabled"`
	CreatedAt      Time           `json:"created_at"`
	SealedSecret   []byte         `json:"sealed_secret"` // signs the payloads
	Headers        []SealedHeader `json:"headers"`
}

// SealedHeader is a header that the customer has chosen for every delivery.
type SealedHeader struct {
	Name        string `json:"name"`
	SealedValue []byte `json:"sealed_value"`
}

// Wants tells whether the endpoint is sent the event. webhook.test needs no choosing.
func (e WebhookEndpoint) Wants(event EventName) bool {
	return e.Enabled && (event == WebhookTest || slices.Contains(e.Events, event))
}

// Subscription is what publishing an event needs to know of an endpoint.
type Subscription struct {
	EndpointID EndpointID         `json:"endpoint_id"`
	Blocks     Blocks             `json:"blocks"`
	Since      map[EventName]Time `json:"since"` // the events it wants, each since when
}

// Subscription follows the endpoint's settings. An event that the endpoint wanted before
// keeps its time; one that it wants anew, and every one when it is enabled again, is not
// retroactive (spec: What the service does, 6).
func (e WebhookEndpoint) Subscription(before Subscription, now Time) Subscription {
	since := map[EventName]Time{}
	for _, event := range e.Events {
		if !e.Wants(event) {
			continue
		}
		since[event] = now
		if earlier, ok := before.Since[event]; ok {
			since[event] = earlier
		}
	}
	return Subscription{e.EndpointID, e.Blocks, since}
}
