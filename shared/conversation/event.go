package conversation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// EventName is a kind of event (spec: Event kinds).
type EventName string

const (
	CallStarted   EventName = "call.started"
	CallCompleted EventName = "call.completed"
	CallFailed    EventName = "call.failed" // an addition within version 1
	WebhookTest   EventName = "webhook.test"
)

// PayloadVersion is the version of the payloads: of the envelope and of what is in it.
const PayloadVersion = 1

// EventNames returns the events that an endpoint may choose. webhook.test is none of them:
// it is sent to one endpoint, on request.
func EventNames() []EventName { return []EventName{CallStarted, CallCompleted, CallFailed} }

// Event is something that happened to its subject: to a call, or for webhook.test to an
// endpoint.
type Event struct {
	Name       EventName
	ID         string // stable across retries; of a call's events, the call's id
	OccurredAt Time
	Call       *Call
	Endpoint   *WebhookEndpoint
}

// CallEvents says what a change of a call's record means. It is a pure function of the two
// images, so a change that is seen again makes the same events. before is the zero value
// for a call that is new. A call that is inserted when it is over is history from
// elsewhere and makes none; a call that arrives starts with its arrival.
func CallEvents(before, after CallRecord) []Event {
	isNew := before.CallID == ""
	if after.CallID == "" || isNew && !after.Active() {
		return nil
	}
	var events []Event
	happened := func(name EventName, at Time) {
		events = append(events, Event{Name: name, ID: string(after.CallID), OccurredAt: at, Call: &after.Call})
	}
	if before.DiallingAt.IsZero() && !after.DiallingAt.IsZero() {
		happened(CallStarted, after.DiallingAt)
	}
	if before.CompletedAt.IsZero() && !after.CompletedAt.IsZero() {
		happened(CallCompleted, after.CompletedAt)
	}
	if before.Status != CallError && after.Status == CallError {
		happened(CallFailed, after.EndedAt)
	}
	return events
}

// TestEvent is the webhook.test of an endpoint. eventID is new for each request.
func TestEvent(endpoint WebhookEndpoint, eventID string, at Time) Event {
	return Event{Name: WebhookTest, ID: eventID, OccurredAt: at, Endpoint: &endpoint}
}

// Payload writes the event as an endpoint gets it (spec: Envelope): cut to the blocks, its
// times with the offset +00:00, its text without HTML escapes. baseURL is the API's public
// address, without a trailing slash.
func (e Event) Payload(blocks Blocks, baseURL string) ([]byte, error) {
	envelope := struct {
		Event      EventName    `json:"event"`
		EventID    string       `json:"event_id"`
		Version    int          `json:"version"`
		OccurredAt Time         `json:"occurred_at"`
		Call       any          `json:"call,omitzero"`
		Webhook    *testWebhook `json:"webhook,omitzero"`
	}{e.Name, e.ID, PayloadVersion, e.OccurredAt.WithOffset(), nil, nil}
	switch {
	case e.Endpoint != nil:
		envelope.Webhook = &testWebhook{
			e.Endpoint.EndpointID, e.Endpoint.WorkspaceID, e.Endpoint.URL,
			append([]EventName{}, e.Endpoint.Events...), append(Blocks{}, e.Endpoint.Blocks...),
		}
	case e.Name == CallStarted:
		envelope.Call = startedOf(Only(*e.Call, blocks).withOffsets())
	default:
		envelope.Call = Only(e.Call.WithDownloadURL(baseURL), blocks).withOffsets()
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(envelope); err != nil {
		return nil, fmt.Errorf("write %s of %s: %w", e.Name, e.ID, err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// testWebhook is the subject of a webhook.test.
type testWebhook struct {
	EndpointID  EndpointID  `json:"endpoint_id"`
	WorkspaceID WorkspaceID `json:"workspace_id"`
	URL         string      `json:"url"`
	Events      []EventName `json:"events"`
	Blocks      Blocks      `json:"blocks"`
}

// startedCall is what call.started tells of a call: who is being called, and nothing that
// only a conversation brings.
type startedCall struct {
	CallID        CallID      `json:"call_id"`
	WorkspaceID   WorkspaceID `json:"workspace_id"`
	AssistantID   AssistantID `json:"assistant_id"`
	AssistantName string      `json:"assistant_name"`
	Direction     Direction   `json:"direction"`
	Status        CallStatus  `json:"status"`
	StartedAt     Time        `json:"started_at"`
	IsTest        bool        `json:"is_test"`
	CallVariables JSON        `json:"call_variables,omitzero"`
	Metadata      JSON        `json:"metadata,omitzero"`
	Customer      *Customer   `json:"customer,omitzero"`
}

func startedOf(c Call) startedCall {
	return startedCall{
		c.CallID, c.WorkspaceID, c.AssistantID, c.AssistantName, c.Direction, c.Status, c.StartedAt, c.IsTest,
		c.CallVariables, c.Metadata, c.Customer,
	}
}

// withOffsets is the call with all of its times written as webhook payloads do.
func (c Call) withOffsets() Call {
	c.StartedAt, c.EndedAt = c.StartedAt.WithOffset(), c.EndedAt.WithOffset()
	c.FollowUps = slices.Clone(c.FollowUps)
	for i := range c.FollowUps {
		c.FollowUps[i].SentAt = c.FollowUps[i].SentAt.WithOffset()
	}
	return c
}
