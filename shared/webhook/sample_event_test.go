package webhook_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/webhook"
)

func sampleEvent(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile("../../events/" + file + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// The sample events are what the functions are sent: dialling begins, and its event is
// delivered.
func TestSampleEvents(t *testing.T) {
	var change dynamo.StreamEvent
	sampleEvent(t, "publish-events", &change)
	before, _, err := dynamo.CallImage(change.Records[0].Change.OldImage)
	if err != nil {
		t.Fatal(err)
	}
	after, _, err := dynamo.CallImage(change.Records[0].Change.NewImage)
	if err != nil {
		t.Fatal(err)
	}
	happened := conversation.CallEvents(before, after)
	if len(change.Records) != 1 || len(happened) != 1 || happened[0].Name != conversation.CallStarted {
		t.Errorf("publish-events: %+v, want call.started", happened)
	}

	var batch events.SQSEvent
	sampleEvent(t, "deliver-webhook", &batch)
	var m webhook.Message
	if err := json.Unmarshal([]byte(batch.Records[0].Body), &m); err != nil {
		t.Fatal(err)
	}
	if want := conversation.NewDeliveryID(m.EndpointID, m.Event, m.EventID); m.DeliveryID != want || m.Round != 1 || m.WorkspaceID == "" {
		t.Errorf("deliver-webhook: %+v, want the first round of delivery %s", m, want)
	}
	var task webhook.RetryTask
	sampleEvent(t, "retry-webhook", &task)
	if want := (webhook.RetryTask{RetryInput: webhook.RetryInput{WorkspaceID: m.WorkspaceID, DeliveryID: m.DeliveryID, Round: 1}, Attempt: 2}); task != want {
		t.Errorf("retry-webhook: %+v, want %+v", task, want)
	}
	payload, err := (&dynamo.Store{}).UnpackBody(t.Context(), m.Body)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	text, err := os.ReadFile("../../events/webhooks/call.started.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Compact(&want, text); err != nil || string(payload) != want.String() {
		t.Errorf("deliver-webhook: %s, %v; want %s", payload, err, want.String())
	}
}
