package webhook_test

import (
	"crypto/md5"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/webhook"
)

// record is a change of a call's, a message's or a thread's record, at a moment. The zero
// record has no image.
func (w *world) record(number string, at time.Time, before, after any) dynamo.StreamRecord {
	w.Helper()
	var r dynamo.StreamRecord
	r.Change.SequenceNumber, r.Change.CreatedAt = number, float64(at.Unix())
	if !reflect.ValueOf(before).IsZero() {
		r.Change.OldImage = w.image(before)
	}
	if !reflect.ValueOf(after).IsZero() {
		r.Change.NewImage = w.image(after)
	}
	return r
}

// image writes a record as the stream does.
func (w *world) image(record any) json.RawMessage {
	w.Helper()
	item, err := attributevalue.MarshalMapWithOptions(record, func(o *attributevalue.EncoderOptions) {
		o.TagKey = "json"
		o.UseEncodingMarshalers = true
	})
	if err != nil {
		w.Fatal(err)
	}
	item["pk"] = pkOf(record)
	return w.write(item)
}

func pkOf(record any) *dynamotypes.AttributeValueMemberS {
	pk := func(ws conversation.WorkspaceID, kind, id string) *dynamotypes.AttributeValueMemberS {
		return &dynamotypes.AttributeValueMemberS{Value: string(ws) + "#" + kind + "#" + id}
	}
	switch r := record.(type) {
	case conversation.CallRecord:
		return pk(r.WorkspaceID, "call", string(r.CallID))
	case conversation.MessageRecord:
		return pk(r.WorkspaceID, "message", string(r.MessageID))
	case conversation.ThreadRecord:
		return pk(r.WorkspaceID, "thread", string(r.ThreadID))
	default:
		panic(fmt.Sprintf("%T has no stream", record))
	}
}

// stored is the image of a record that is in the table, with attributes that it lacks there.
func (w *world) stored(record any, more map[string]string) json.RawMessage {
	w.Helper()
	out, err := w.db.GetItem(w.Context(), &dynamodb.GetItemInput{
		TableName: &w.stage.ConversationsTable, Key: map[string]dynamotypes.AttributeValue{"pk": pkOf(record)},
	})
	if err != nil {
		w.Fatal(err)
	}
	for name, value := range more {
		out.Item[name] = &dynamotypes.AttributeValueMemberS{Value: value}
	}
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
	}, Carrier: "simulator"}
	dialling = queued
	dialling.Status, dialling.DiallingAt = conversation.CallInProgress, now
	completed = dialling
	completed.Status, completed.EndedAt, completed.CompletedAt = conversation.CallEnded, now, now
	completed.Transcript = []conversation.Turn{{Role: conversation.RoleUser, Content: "Hello"}}
	return
}

// publish publishes records and returns the numbers of those that failed.
func (w *world) publish(records ...dynamo.StreamRecord) []string {
	w.Helper()
	response, err := w.publisher.Publish(w.Context(), dynamo.StreamEvent{Records: records})
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
	batch := []dynamo.StreamRecord{
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

// texts are a customer's message, before and after its mark, one that a call sends, before
// and after, and a thread, open and completed.
func (w *world) texts() (arrived, marked, stored, sent conversation.MessageRecord, open, completed conversation.ThreadRecord) {
	now := conversation.At(time.Now())
	thread := conversation.ThreadID(conversation.NewID())
	customer := &conversation.Customer{CustomerID: "c", Name: "Ada", Phone: "+12025550123"}
	arrived = conversation.MessageRecord{
		Message: conversation.Message{
			MessageID: conversation.MessageID(conversation.NewID()), WorkspaceID: w.workspace, AssistantID: "a", AssistantName: "Desk",
			Channel: conversation.SMS, Direction: conversation.Inbound, ThreadID: thread, Source: conversation.SourceInbound,
			OccurredAt: now, Content: "Is it <open>?", ProviderMessageID: "sim-1", Customer: customer,
		},
		Carrier: "simulator", Number: "+12025550100", Address: "+12025550123", ArrivedAt: now,
	}
	marked = arrived
	marked.MarkedAt, marked.Reply = now, &conversation.Reply{Content: "Yes & no.", ProviderMessageID: "sim-2", Timestamp: now}
	stored = arrived
	stored.MessageID, stored.Direction, stored.Source = conversation.MessageID(conversation.NewID()), conversation.Outbound, conversation.SourceVoiceTool
	stored.ProviderMessageID = ""
	sent = stored
	sent.SentAt, sent.ProviderMessageID = now, "sim-3"
	open = conversation.ThreadRecord{
		Thread: conversation.Thread{
			ThreadID: thread, WorkspaceID: w.workspace, AssistantID: "a", AssistantName: "Desk", Channel: conversation.SMS,
			MessageCount: 3, StartedAt: now, LastMessageAt: now, Customer: customer,
		},
		Carrier: "simulator", Number: "+12025550100", Address: "+12025550123", Version: 5, LastArrivalAt: now,
		Claim: &conversation.Claim{Messages: []conversation.MessageID{arrived.MessageID}, ReplyID: "r", Text: "Yes & no.", At: now},
	}
	completed = open
	completed.Claim, completed.CompletedAt, completed.CloseReason = nil, now, conversation.Graded
	completed.Transcript = []conversation.Turn{{Role: conversation.RoleUser, Content: "Is it <open>?"}}
	return
}

// Messages and threads have the events of the real ones, each with its own payload.
func TestPublishTexts(t *testing.T) {
	w := newWorld(t)
	w.faster(15)
	all, _ := w.endpoint("https://a.example.com", nil)
	bare, _ := w.endpoint("https://b.example.com", func(e *conversation.WebhookEndpoint) {
		e.Events, e.Blocks = []conversation.EventName{conversation.MessageReceived, conversation.ThreadCompleted}, nil
	})
	w.endpoint("https://c.example.com", func(e *conversation.WebhookEndpoint) { e.Events = []conversation.EventName{conversation.CallStarted} })
	arrived, marked, stored, sent, open, completed := w.texts()
	testMessage, testSent, testThread, testOpen := marked, sent, completed, open
	testMessage.IsTest, testMessage.Source, testSent.IsTest, testThread.IsTest, testOpen.IsTest = true, conversation.SourceTest, true, true, true
	oldMessage, oldThread := marked, completed
	oldMessage.Carrier, oldThread.Carrier = "", ""
	now := time.Now()
	batch := []dynamo.StreamRecord{
		w.record("1", now, conversation.MessageRecord{}, arrived),
		w.record("2", now, arrived, marked),
		w.record("3", now, conversation.MessageRecord{}, stored),
		w.record("4", now, stored, sent),
		w.record("5", now, conversation.ThreadRecord{}, open),
		w.record("6", now, open, completed),
		w.record("7", now, conversation.MessageRecord{}, testMessage),
		w.record("8", now, conversation.MessageRecord{}, testSent),
		w.record("9", now, testOpen, testThread),
		w.record("10", now, conversation.MessageRecord{}, oldMessage),
		w.record("11", now, conversation.ThreadRecord{}, oldThread),
		w.record("12", now, completed, conversation.ThreadRecord{}),
		w.record("13", now, open, conversation.ThreadRecord{}),
	}
	if failed := w.publish(batch...); len(failed) != 0 {
		t.Errorf("failed: %v", failed)
	}
	type row struct {
		endpoint conversation.EndpointID
		event    conversation.EventName
	}
	got := map[row]webhook.Message{}
	for _, m := range append(w.queued(4), w.later(2*time.Second)) {
		got[row{m.EndpointID, m.Event}] = m
	}
	if len(got) != 5 {
		t.Errorf("messages %v, want five", got)
	}
	for want, tt := range map[row]struct {
		id           string
		parts, lacks []string
	}{
		{all.EndpointID, conversation.MessageReceived}: {string(marked.MessageID), []string{
			`"event":"message.received"`, `"message":{"message_id":"` + string(marked.MessageID), `"content":"Is it <open>?"`, `"reply":{"content":"Yes & no.",`,
			`"customer":{"customer_id":"c","name":"Ada","phone":"+12025550123"}`,
		}, []string{"marked_at", "arrived_at", "address", "simulator"}},
		{all.EndpointID, conversation.MessageSent}: {string(sent.MessageID), []string{
			`"event":"message.sent"`, `"source":"voice_tool"`, `"provider_message_id":"sim-3"`,
		}, []string{"reply", "sent_at", "simulator"}},
		{all.EndpointID, conversation.ThreadCompleted}: {string(completed.ThreadID), []string{
			`"event":"thread.completed"`, `"thread":{"thread_id":"` + string(completed.ThreadID), `"close_reason":"graded"`, `"transcript":[{"role":"user","content":"Is it <open>?"}]`,
		}, []string{"version\":5", "claim", "simulator"}},
		{bare.EndpointID, conversation.MessageReceived}: {string(marked.MessageID), []string{`"reply":{`}, []string{"customer"}},
		{bare.EndpointID, conversation.ThreadCompleted}: {string(completed.ThreadID), []string{`"message_count":3`}, []string{"customer", "transcript"}},
	} {
		m := got[want]
		if m.DeliveryID != conversation.NewDeliveryID(want.endpoint, want.event, tt.id) || m.WorkspaceID != w.workspace || m.EventID != tt.id {
			t.Errorf("%v: message %+v", want, m)
			continue
		}
		payload := w.payload(m)
		for _, part := range tt.parts {
			if !strings.Contains(payload, part) {
				t.Errorf("%v: %s lacks %s", want, payload, part)
			}
		}
		for _, part := range tt.lacks {
			if strings.Contains(payload, part) {
				t.Errorf("%v: %s has %s", want, payload, part)
			}
		}
	}
}

// faster makes the stage's long durations shorter.
func (w *world) faster(timeScale int) {
	w.publisher = webhook.NewPublisher(webhook.PublisherOptions{Store: w.store, Queue: w.queue, BaseURL: "https://api.example.com", TimeScale: timeScale})
}

// later is the one message that comes within a while, but isn't in the queue yet.
func (w *world) later(within time.Duration) webhook.Message {
	w.Helper()
	if n := w.waiting(); n != 0 {
		w.Errorf("%d messages in the queue, want them to come later", n)
	}
	time.Sleep(within)
	return w.queued(1)[0]
}

// message.sent alone is delayed, and only by who publishes it, not by who sends it again.
func TestMessageSentIsDelayed(t *testing.T) {
	w := newWorld(t)
	w.endpoint("https://a.example.com", nil)
	var mu sync.Mutex
	delays := map[string]int{}
	w.mu.Lock()
	w.answer = func(operation string, body []byte) string {
		if operation != "SendMessageBatch" {
			return ""
		}
		var request struct {
			Entries []struct {
				ID           string `json:"Id"`
				MessageBody  string
				DelaySeconds int
			}
		}
		if err := json.Unmarshal(body, &request); err != nil {
			t.Error(err)
		}
		answer := map[string][]map[string]any{"Successful": {}, "Failed": {}}
		mu.Lock()
		defer mu.Unlock()
		for _, entry := range request.Entries {
			var m webhook.Message
			if err := json.Unmarshal([]byte(entry.MessageBody), &m); err != nil {
				t.Error(err)
			}
			delays[fmt.Sprint(m.Event, " ", m.Round)] = entry.DelaySeconds
			answer["Successful"] = append(answer["Successful"], map[string]any{"Id": entry.ID, "MessageId": entry.ID, "MD5OfMessageBody": fmt.Sprintf("%x", md5.Sum([]byte(entry.MessageBody)))})
		}
		text, _ := json.Marshal(answer)
		return string(text)
	}
	w.mu.Unlock()
	arrived, marked, stored, sent, open, completed := w.texts()
	now := time.Now()
	for scale, want := range map[int]int{0: 15, 1: 15, 2: 8, 15: 1, 60: 1, 3600: 1} {
		w.faster(scale)
		clear(delays)
		if failed := w.publish(w.record("1", now, arrived, marked), w.record("2", now, stored, sent), w.record("3", now, open, completed)); len(failed) != 0 {
			t.Fatalf("failed: %v", failed)
		}
		if got, want := delays, map[string]int{"message.received 1": 0, "message.sent 1": want, "thread.completed 1": 0}; !maps.Equal(got, want) {
			t.Errorf("scale %d: delays %v, want %v", scale, got, want)
		}
	}
	clear(delays)
	err := w.queue.Retry(t.Context(), conversation.Delivery{
		ID: conversation.NewDeliveryID("e", conversation.MessageSent, string(sent.MessageID)), WorkspaceID: w.workspace, EndpointID: "e",
		Event: conversation.MessageSent, EventID: string(sent.MessageID), Status: conversation.DeliveryFailed, Round: 1,
	})
	if want := map[string]int{"message.sent 2": 0}; err != nil || !maps.Equal(delays, want) {
		t.Errorf("again: delays %v, %v; want %v", delays, err, want)
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
	image := func(number, image string) dynamo.StreamRecord {
		r := w.record(number, now, queued, dialling)
		r.Change.NewImage = json.RawMessage(image)
		return r
	}
	batch := []dynamo.StreamRecord{
		quiet, starts,
		image("4", `{"pk":{"S":"w#call#1"},"started_at":{"S":"yesterday"}}`),
		image("5", `{"pk":{"S":"w#message#1"},"occurred_at":{"S":"yesterday"}}`),
		image("6", `{"pk":{"S":"w#thread#1"},"started_at":{"S":"yesterday"}}`),
		image("7", `{"pk":`),
		// Of each kind, but broken for the others alone; and of none.
		image("8", `{"pk":{"S":"w#call#1"},"occurred_at":{"S":"yesterday"},"last_message_at":{"S":"yesterday"}}`),
		image("9", `{"pk":{"S":"w#message#1"},"started_at":{"S":"yesterday"}}`),
		image("10", `{"pk":{"S":"w#thread#1"},"occurred_at":{"S":"yesterday"},"dialling_at":{"S":"yesterday"}}`),
		image("11", `{"pk":{"S":"w#open_thread#+12025550100#+12025550123#sms"},"started_at":{"S":"yesterday"},"occurred_at":{"S":"yesterday"}}`),
		image("12", `{"pk":{"S":"w#carrier_message#simulator#1"},"started_at":{"S":"yesterday"},"occurred_at":{"S":"yesterday"}}`),
		completes,
	}
	// The images before those two are of a call.
	batch[7].Change.OldImage, batch[8].Change.OldImage = nil, nil
	if failed := w.publish(batch...); !slices.Equal(failed, []string{"4", "5", "6", "7"}) {
		t.Errorf("failed %v, want the broken ones", failed)
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
	var batch []dynamo.StreamRecord
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
	record.Change.NewImage = w.stored(completed, map[string]string{"completed_at": completed.CompletedAt.String(), "carrier": completed.Carrier})
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

// A thread's transcript that is in S3 is whole in its payload, if the endpoint wants it.
func TestLargeThread(t *testing.T) {
	w := newWorld(t)
	all, _ := w.endpoint("https://a.example.com", nil)
	bare, _ := w.endpoint("https://b.example.com", func(e *conversation.WebhookEndpoint) { e.Blocks = nil })
	_, _, _, _, open, completed := w.texts()
	var text strings.Builder
	for n := range 40_000 {
		fmt.Fprintf(&text, "%x grüße 👋 ", n*n*7919)
	}
	completed.Transcript[0].Content = text.String()
	if err := w.store.InsertThread(t.Context(), completed.Thread); err != nil {
		t.Fatal(err)
	}
	record := w.record("1", time.Now(), open, conversation.ThreadRecord{})
	record.Change.NewImage = w.stored(completed, map[string]string{"carrier": completed.Carrier})
	if strings.Contains(string(record.Change.NewImage), "grüße") {
		t.Fatal("the transcript is in the item, want it in S3")
	}
	if failed := w.publish(record); len(failed) != 0 {
		t.Fatalf("failed: %v", failed)
	}
	for _, m := range w.queued(2) {
		payload, want := w.payload(m), m.EndpointID == all.EndpointID
		if got := strings.Contains(payload, text.String()); got != want || !want && m.EndpointID != bare.EndpointID {
			t.Errorf("endpoint %s: a payload of %d bytes, with the transcript: %t, want %t", m.EndpointID, len(payload), got, want)
		}
	}
}

// That one workspace's endpoints can't be read holds up no other's.
func TestPublishIsolatesWorkspaces(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	w.endpoint("https://a.example.com", nil)
	unlucky := w.workspace
	queued, dialling, _ := w.calls()
	first := w.record("1", now, queued, dialling)
	w.moveIn()
	e, _ := w.endpoint("https://b.example.com", nil)
	queued, dialling, _ = w.calls()
	second := w.record("2", now, queued, dialling)
	w.mu.Lock()
	w.answer = func(operation string, body []byte) string {
		if operation == "GetItem" && strings.Contains(string(body), string(unlucky)) {
			return `{"Item":{"pk":{"S":"x"},"endpoint_1":{"M":{"endpoint_id":{"L":[]}}}}}`
		}
		return ""
	}
	w.mu.Unlock()
	if failed := w.publish(first, second); !slices.Equal(failed, []string{"1"}) {
		t.Errorf("failed %v, want that of the unlucky workspace", failed)
	}
	if m := w.queued(1)[0]; m.EndpointID != e.EndpointID {
		t.Errorf("queued %+v, want the other workspace's", m)
	}
}
