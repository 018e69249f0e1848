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
	CallStarted     EventName = "call.started"
	CallCompleted   EventName = "call.completed"
	CallFailed      EventName = "call.failed" // an addition within version 1
	MessageReceived EventName = "message.received"
	MessageSent     EventName = "message.sent"
	ThreadCompleted EventName = "thread.completed"
	WebhookTest     EventName = "webhook.test"
)

// PayloadVersion is the version of the payloads: of the envelope and of what is in it.
const PayloadVersion = 1

// EventNames returns the events that an endpoint may choose. webhook.test is none of them:
// it is sent to one endpoint, on request.
func EventNames() []EventName {
	return []EventName{CallStarted, CallCompleted, CallFailed, MessageReceived, MessageSent, ThreadCompleted}
}

// Event is something that happened to its subject, which is the one that is set: a call, a
// message, a thread, or for webhook.test an endpoint.
type Event struct {
	Name        EventName
	ID          string // stable across retries: the subject's id, but for webhook.test
	WorkspaceID WorkspaceID
	OccurredAt  Time
	Call        *Call
	Message     *Message
	Thread      *Thread
	Endpoint    *WebhookEndpoint
}

// CallEvents says what a change of a call's record means. It is a pure function of the two
// images, so a change that is seen again makes the same events. before is the zero value
// for a call that is new. One of history, which has no carrier, makes none; a call that
// arrives starts with its arrival.
func CallEvents(before, after CallRecord) []Event {
	if after.Carrier == "" {
		return nil
	}
	var events []Event
	happened := func(name EventName, at Time) {
		events = append(events, Event{Name: name, ID: string(after.CallID), WorkspaceID: after.WorkspaceID, OccurredAt: at, Call: &after.Call})
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

// MessageEvents says what a change of a message's record means, as CallEvents does. A test
// message and one of history, which has no carrier, make no event. A reply makes none
// either: message.received carries it.
func MessageEvents(before, after MessageRecord) []Event {
	if after.Carrier == "" || after.IsTest || after.Source == SourceTest {
		return nil
	}
	happened := Event{ID: string(after.MessageID), WorkspaceID: after.WorkspaceID, OccurredAt: after.OccurredAt, Message: &after.Message}
	unprompted := after.Source == SourceVoiceTool || after.Source == SourceEvaluationFollowUp
	switch {
	case after.Direction == Inbound && before.MarkedAt.IsZero() && !after.MarkedAt.IsZero():
		happened.Name = MessageReceived
	case after.Direction == Outbound && unprompted && before.SentAt.IsZero() && !after.SentAt.IsZero():
		happened.Name = MessageSent
	default:
		return nil
	}
	return []Event{happened}
}

// ThreadEvents says what a change of a thread's record means, as MessageEvents does.
func ThreadEvents(before, after ThreadRecord) []Event {
	if after.Carrier == "" || after.IsTest || !before.Open() || after.Open() {
		return nil
	}
	return []Event{{
		Name: ThreadCompleted, ID: string(after.ThreadID), WorkspaceID: after.WorkspaceID, OccurredAt: after.CompletedAt, Thread: &after.Thread,
	}}
}

// TestEvent is the webhook.test of an endpoint. eventID is new for each request.
func TestEvent(endpoint WebhookEndpoint, eventID string, at Time) Event {
	return Event{Name: WebhookTest, ID: eventID, WorkspaceID: endpoint.WorkspaceID, OccurredAt: at, Endpoint: &endpoint}
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
		Message    any          `json:"message,omitzero"`
		Thread     any          `json:"thread,omitzero"`
		Webhook    *testWebhook `json:"webhook,omitzero"`
	}{Event: e.Name, EventID: e.ID, Version: PayloadVersion, OccurredAt: e.OccurredAt.WithOffset()}
	switch {
	case e.Endpoint != nil:
		envelope.Webhook = &testWebhook{
			e.Endpoint.EndpointID, e.Endpoint.WorkspaceID, e.Endpoint.URL,
			append([]EventName{}, e.Endpoint.Events...), append(Blocks{}, e.Endpoint.Blocks...),
		}
	case e.Message != nil:
		envelope.Message = Only(*e.Message, blocks).withOffsets()
	case e.Thread != nil:
		envelope.Thread = Only(*e.Thread, blocks).withOffsets()
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
	c.FollowUps = followUpsWithOffsets(c.FollowUps)
	return c
}

func followUpsWithOffsets(followUps []FollowUp) []FollowUp {
	followUps = slices.Clone(followUps)
	for i := range followUps {
		followUps[i].SentAt = followUps[i].SentAt.WithOffset()
	}
	return followUps
}
