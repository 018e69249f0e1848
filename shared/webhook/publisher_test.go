package webhook_test

import (
	"crypto/md5"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"parley/shared/conversation"
	"parley/shared/webhook"
)

// record is a change of a call's record, at a moment.
func (w *world) record(number string, at time.Time, before, after conversation.CallRecord) webhook.StreamRecord {
	w.Helper()
	var r webhook.StreamRecord
	r.Change.SequenceNumber, r.Change.CreatedAt = number, float64(at.Unix())
	for _, image := range []struct {
		record conversation.CallRecord
		to     *json.RawMessage
	}{{before, &r.Change.OldImage}, {after, &r.Change.NewImage}} {
		if image.record.CallID != "" {
			*image.to = w.image(image.record)
		}
	}
	return r
}

// image writes a record as the stream does.
func (w *world) image(record conversation.CallRecord) json.RawMessage {
	w.Helper()
	item, err := attributevalue.MarshalMapWithOptions(record, func(o *attributevalue.EncoderOptions) {
		o.TagKey = "json"
		o.UseEncodingMarshalers = true
	})
	if err != nil {
		w.Fatal(err)
	}
	item["pk"] = &dynamotypes.AttributeValueMemberS{Value: string(record.WorkspaceID) + "#call#" + string(record.CallID)}
	return w.write(item)
}

// stored is the image of a call that is in the table, with what completes it.
func (w *world) stored(call conversation.CallRecord) json.RawMessage {
	w.Helper()
	pk := &dynamotypes.AttributeValueMemberS{Value: string(call.WorkspaceID) + "#call#" + string(call.CallID)}
	out, err := w.db.GetItem(w.Context(), &dynamodb.GetItemInput{
		TableName: &w.stage.ConversationsTable, Key: map[string]dynamotypes.AttributeValue{"pk": pk},
	})
	if err != nil {
		w.Fatal(err)
	}
	out.Item["completed_at"] = &dynamotypes.AttributeValueMemberS{Value: call.CompletedAt.String()}
	return w.write(out.Item)
}

func (w *world) write(item map[string]dynamotypes.AttributeValue) json.RawMessage {
	w.Helper()
	for name, value := range item { // what has no value is left out, as the store does
		_, isNull := value.(*dynamotypes.AttributeValueMemberNULL)
		text, isText := value.(*dynamotypes.AttributeValueMemberS)
		if isNull || isText && text.Value == "" {
			delete(item, name)
		}
	}
	text, err := attributevalue.MarshalMapJSON(item)
	if err != nil {
		w.Fatal(err)
	}
	return text
}

// calls are a new call's record, queued, dialling and completed.
func (w *world) calls() (queued, dialling, completed conversation.CallRecord) {
	now := conversation.At(time.Now())
	queued = conversation.CallRecord{Call: conversation.Call{
		CallID: conversation.CallID(conversation.NewID()), WorkspaceID: w.workspace, AssistantID: "a", AssistantName: "Desk",
		CallType: conversation.Outbound, Direction: conversation.Outbound, Status: conversation.CallQueued, StartedAt: now,
		Customer: &conversation.Customer{Name: "Ada", Phone: "+12025550123"}, Metadata: conversation.JSON(`{"a":"<&>"}`),
	}}
	dialling = queued
	dialling.Status, dialling.DiallingAt = conversation.CallInProgress, now
	completed = dialling
	completed.Status, completed.EndedAt, completed.CompletedAt = conversation.CallEnded, now, now
	completed.Transcript = []conversation.Turn{{Role: conversation.RoleUser, Content: "Hello"}}
	return
}

// publish publishes records and returns the numbers of those that failed.
func (w *world) publish(records ...webhook.StreamRecord) []string {
	w.Helper()
	response, err := w.publisher.Publish(w.Context(), webhook.StreamEvent{Records: records})
	if err != nil || response.BatchItemFailures == nil {
		w.Fatalf("failures %v, %v; want a list", response.BatchItemFailures, err)
	}
	failed := []string{}
	for _, f := range response.BatchItemFailures {
		failed = append(failed, f.ItemIdentifier)
	}
	return failed
}

// queued reads the messages that are in the queue now.
func (w *world) queued(n int) (messages []webhook.Message) {
	w.Helper()
	for _, text := range w.receive(n) {
		var m webhook.Message
		if err := json.Unmarshal([]byte(text.Body), &m); err != nil || text.Attributes["MessageGroupId"] != string(m.EndpointID) {
			w.Fatalf("message %s in group %s: %v", text.Body, text.Attributes["MessageGroupId"], err)
		}
		messages = append(messages, m)
	}
	return messages
}

func (w *world) payload(m webhook.Message) string {
	w.Helper()
	payload, err := w.store.UnpackBody(w.Context(), m.Body)
	if err != nil {
		w.Fatal(err)
	}
	return string(payload)
}

// Each endpoint that wants an event gets one message, with its blocks.
func TestPublish(t *testing.T) {
	w := newWorld(t)
	all, _ := w.endpoint("https://a.example.com", nil)
	some, _ := w.endpoint("https://b.example.com", func(e *conversation.WebhookEndpoint) {
		e.Events, e.Blocks = []conversation.EventName{conversation.CallCompleted}, nil
	})
	w.endpoint("https://c.example.com", func(e *conversation.WebhookEndpoint) { e.Enabled = false })
	w.endpoint("https://d.example.com", func(e *conversation.WebhookEndpoint) { e.Events = []conversation.EventName{conversation.CallFailed} })
	queued, dialling, completed := w.calls()
	now := time.Now()
	batch := []webhook.StreamRecord{
		w.record("1", now, conversation.CallRecord{}, queued),
		w.record("2", now, queued, dialling),
		w.record("3", now, dialling, completed),
		{}, // no images
	}
	if failed := w.publish(batch...); len(failed) != 0 {
		t.Errorf("failed: %v", failed)
	}
	type row struct {
		endpoint conversation.EndpointID
		event    conversation.EventName
	}
	got := map[row]webhook.Message{}
	for _, m := range w.queued(3) {
		got[row{m.EndpointID, m.Event}] = m
		if m.DeliveryID != conversation.NewDeliveryID(m.EndpointID, m.Event, string(queued.CallID)) || m.Round != 1 ||
			m.WorkspaceID != w.workspace || m.EventID != string(queued.CallID) || time.Since(m.CreatedAt.Time) > time.Minute {
			t.Errorf("message %+v", m)
		}
	}
	for want, parts := range map[row][]string{
		{all.EndpointID, conversation.CallStarted}:    {`"event":"call.started"`, `"status":"in_progress"`, `"metadata":{"a":"<&>"}`, `"phone":"+12025550123"`},
		{all.EndpointID, conversation.CallCompleted}:  {`"event":"call.completed"`, `"status":"ended"`, `"transcript":[`},
		{some.EndpointID, conversation.CallCompleted}: {`"event":"call.completed"`, `"metadata":{"a":"<&>"}`},
	} {
		payload := w.payload(got[want])
		for _, part := range parts {
			if !strings.Contains(payload, part) {
				t.Errorf("%v: %s lacks %s", want, payload, part)
			}
		}
	}
	if payload := w.payload(got[row{some.EndpointID, conversation.CallCompleted}]); strings.Contains(payload, "transcript") || strings.Contains(payload, "customer") {
		t.Errorf("blocks that are off are sent: %s", payload)
	}
	// The same records again make messages of the same deliveries.
	if failed := w.publish(batch...); len(failed) != 0 {
		t.Errorf("failed: %v", failed)
	}
	for _, m := range w.queued(3) {
		if first := got[row{m.EndpointID, m.Event}]; first.DeliveryID != m.DeliveryID || w.payload(first) != w.payload(m) {
			t.Errorf("again: %+v, at first %+v", m, first)
		}
	}
}

// A record reaches no endpoint that enabled its event after it was written.
func TestPublishIsNotRetroactive(t *testing.T) {
	w := newWorld(t)
	e, _ := w.endpoint("https://a.example.com", func(e *conversation.WebhookEndpoint) { e.Events = []conversation.EventName{conversation.CallStarted} })
	w.change(e, func(e *conversation.WebhookEndpoint) { e.Events = conversation.EventNames() })
	queued, dialling, completed := w.calls()
	now := time.Now()
	for name, tt := range map[string]struct {
		at   time.Time
		want int
	}{
		"a minute ago": {now.Add(-time.Minute), 0},
		"now":          {now, 2}, // its second is all that the stream tells
		"later":        {now.Add(time.Minute), 2},
	} {
		if failed := w.publish(w.record("1", tt.at, queued, dialling), w.record("2", tt.at, dialling, completed)); len(failed) != 0 {
			t.Errorf("%s: failed: %v", name, failed)
		}
		if tt.want > 0 {
			w.queued(tt.want)
		}
	}
	w.change(e, func(e *conversation.WebhookEndpoint) { e.Enabled = false })
	w.publish(w.record("1", now.Add(time.Minute), queued, dialling))
	w.endpoint("https://b.example.com", func(e *conversation.WebhookEndpoint) { e.Events = []conversation.EventName{conversation.CallFailed} })
	w.publish(w.record("1", now.Add(time.Minute), queued, dialling))
	if n := w.waiting(); n != 0 {
		t.Errorf("%d messages, want none", n)
	}
}

// waiting is how many messages are in the queue.
func (w *world) waiting() int {
	w.Helper()
	const length = types.QueueAttributeNameApproximateNumberOfMessages
	out, err := w.sqs.GetQueueAttributes(w.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &w.queueURL, AttributeNames: []types.QueueAttributeName{length},
	})
	if err != nil {
		w.Fatal(err)
	}
	var n int
	_, _ = fmt.Sscan(out.Attributes[string(length)], &n)
	return n
}

// What fails is reported by its record, and nothing else is.
func TestPublishPartly(t *testing.T) {
	w := newWorld(t)
	w.endpoint("https://a.example.com", nil)
	queued, dialling, completed := w.calls()
	now := time.Now()
	quiet, starts, completes := w.record("1", now, conversation.CallRecord{}, queued), w.record("2", now, queued, dialling), w.record("3", now, dialling, completed)
	broken := w.record("4", now, queued, dialling)
	broken.Change.NewImage = json.RawMessage(`{"pk":{"S":"w#call#1"},"started_at":{"S":"yesterday"}}`)
	elsewhere := w.record("5", now, conversation.CallRecord{}, conversation.CallRecord{})
	elsewhere.Change.NewImage = json.RawMessage(`{"pk":{"S":"w#message#1"},"occurred_at":{"S":"yesterday"}}`)

	if failed := w.publish(quiet, starts, broken, elsewhere, completes); !slices.Equal(failed, []string{"4"}) {
		t.Errorf("failed %v, want the broken one", failed)
	}
	w.queued(2)
	w.failing("GetItem")
	if failed := w.publish(quiet, starts, completes); !slices.Equal(failed, []string{"2", "3"}) {
		t.Errorf("without DynamoDB: failed %v, want those with events", failed)
	}
	w.failing("SendMessageBatch")
	if failed := w.publish(quiet, starts, completes); !slices.Equal(failed, []string{"2", "3"}) {
		t.Errorf("without SQS: failed %v, want those with events", failed)
	}
	w.failing()
	if n := w.waiting(); n != 0 {
		t.Errorf("%d messages, want none", n)
	}
}

// A batch of SQS may fail in part: the records of those messages are reported.
func TestPublishWhenSQSTakesSome(t *testing.T) {
	w := newWorld(t)
	w.endpoint("https://a.example.com", nil)
	now := time.Now()
	var batch []webhook.StreamRecord
	for n := range 12 { // two batches of SQS
		queued, dialling, _ := w.calls()
		batch = append(batch, w.record(fmt.Sprint(n), now, queued, dialling))
	}
	w.mu.Lock()
	w.answer = func(operation string, body []byte) string {
		if operation != "SendMessageBatch" {
			return ""
		}
		var request struct {
			Entries []struct{ Id, MessageBody string }
		}
		_ = json.Unmarshal(body, &request)
		answer := map[string][]map[string]any{"Successful": {}, "Failed": {}}
		for _, entry := range request.Entries {
			if entry.Id == "3" || entry.Id == "11" {
				answer["Failed"] = append(answer["Failed"], map[string]any{"Id": entry.Id, "Code": "InternalError", "SenderFault": false})
				continue
			}
			answer["Successful"] = append(answer["Successful"], map[string]any{"Id": entry.Id, "MessageId": entry.Id, "MD5OfMessageBody": fmt.Sprintf("%x", md5.Sum([]byte(entry.MessageBody)))})
		}
		text, _ := json.Marshal(answer)
		return string(text)
	}
	w.mu.Unlock()
	if failed := w.publish(batch...); !slices.Equal(failed, []string{"3", "11"}) {
		t.Errorf("failed %v, want 3 and 11", failed)
	}
}

// Large payloads go through S3, whole and byte for byte, from the image to the endpoint.
func TestLargeCall(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	e, secret := w.endpoint(r.url(), nil)
	_, dialling, completed := w.calls()
	var text strings.Builder
	for n := range 40_000 {
		fmt.Fprintf(&text, "%x grüße 👋 ", n*n*7919)
	}
	completed.Transcript[0].Content = text.String()
	completed.CallVariables = conversation.JSON(`{"text":"` + strings.Repeat("𝄞", 250_000) + `"}`)
	// As the store keeps it, so that its large fields are in S3; the image is the item.
	if err := w.store.InsertCall(t.Context(), completed.Call); err != nil {
		t.Fatal(err)
	}
	record := w.record("1", time.Now(), dialling, conversation.CallRecord{})
	record.Change.NewImage = w.stored(completed)
	if failed := w.publish(record); len(failed) != 0 {
		t.Fatalf("failed: %v", failed)
	}
	messages := w.receive(1)
	if len(messages[0].Body) > 64<<10 {
		t.Errorf("a message of %d bytes, want at most 64 KB", len(messages[0].Body))
	}
	if failed := w.deliver(messages...); failed != 0 {
		t.Fatal("the message failed")
	}
	got := r.received()[0]
	body := got.body
	if err := webhook.Verify(body, got.header.Get("X-Service-Signature"), secret, time.Minute, time.Now()); err != nil {
		t.Error(err)
	}
	for _, part := range []string{text.String(), strings.Repeat("𝄞", 250_000)} {
		if !strings.Contains(string(body), part) {
			t.Errorf("the payload of %d bytes lacks a text of %d", len(body), len(part))
		}
	}
	d := w.delivery(conversation.NewDeliveryID(e.EndpointID, conversation.CallCompleted, string(completed.CallID)))
	if payload, err := w.store.UnpackBody(t.Context(), d.Body); err != nil || string(payload) != string(body) || d.Body.Key == "" {
		t.Errorf("the log has %d bytes at %q, %v; want what was sent, in S3", len(payload), d.Body.Key, err)
	}
}
