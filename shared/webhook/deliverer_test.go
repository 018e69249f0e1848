package webhook_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"parley/shared/conversation"
	"parley/shared/webhook"
)

// told is a delivery in one line: round, status, attempts.
func told(d conversation.Delivery) string {
	text := fmt.Sprintf("%d %s", d.Round, d.Status)
	for _, a := range d.Attempts {
		if a.Error != "" {
			text += fmt.Sprintf(" %d.%d=%s", a.Round, a.Number, a.Error)
		} else {
			text += fmt.Sprintf(" %d.%d=%d", a.Round, a.Number, a.StatusCode)
		}
	}
	return text
}

func (w *world) expect(id conversation.DeliveryID, want string) {
	w.Helper()
	if got := told(w.delivery(id).Delivery); got != want {
		w.Errorf("\n got %s\nwant %s", got, want)
	}
}

// A delivery has its headers, those of the endpoint, and a signature over the very bytes.
func TestDelivery(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(202)
		_, _ = w.Write([]byte("queued"))
	})
	e, secret := w.endpoint(r.url()+"/hooks?tenant=1", func(e *conversation.WebhookEndpoint) {
		for name, value := range map[string]string{
			"X-Api-Key": "chosen by the customer", "Authorization": "Basic abc",
			// Nothing of ours can be overridden, even if it were stored.
			"x-service-signature": "forged", "User-Agent": "other", "content-type": "text/plain", "Host": "other.example.com",
		} {
			e.Headers = append(e.Headers, conversation.SealedHeader{Name: name, SealedValue: w.seal(*e, value)})
		}
	})
	id, message := w.test(e)
	if got := message.Attributes["MessageGroupId"]; got != string(e.EndpointID) {
		t.Errorf("message group %q, want the endpoint %s", got, e.EndpointID)
	}
	if failed := w.deliver(message); failed != 0 {
		t.Fatal("the message failed")
	}
	d := w.delivery(id)
	a := d.Attempts[0]
	if told(d.Delivery) != "1 delivered 1.1=202" || a.ResponseBody != "queued" || a.ID != id.Attempt(1, 1) || time.Since(a.At.Time) > time.Minute {
		t.Errorf("delivery %s, attempt %+v", told(d.Delivery), a)
	}
	all := r.received()
	if len(all) != 1 {
		t.Fatalf("%d requests, want 1", len(all))
	}
	got := all[0]
	if err := webhook.Verify(got.body, got.header.Get("X-Service-Signature"), secret, 5*time.Minute, time.Now()); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"X-Service-Event": "webhook.test", "X-Service-Delivery-Id": string(id.Attempt(1, 1)), "X-Service-Payload-Version": "1",
		"Content-Type": "application/json", "User-Agent": "Parley-Webhooks/1", "X-Api-Key": "chosen by the customer", "Authorization": "Basic abc",
	} {
		if values := got.header.Values(name); len(values) != 1 || values[0] != want {
			t.Errorf("%s: %q, want %q", name, values, want)
		}
	}
	if payload, err := w.store.UnpackBody(t.Context(), d.Body); err != nil || string(payload) != string(got.body) {
		t.Errorf("the log has %s, %v; sent was %s", payload, err, got.body)
	}
	var envelope struct {
		Event   string
		EventID string `json:"event_id"`
		Webhook struct {
			EndpointID conversation.EndpointID `json:"endpoint_id"`
		}
	}
	if err := json.Unmarshal(got.body, &envelope); err != nil || envelope.Event != "webhook.test" || envelope.EventID != d.EventID || envelope.Webhook.EndpointID != e.EndpointID {
		t.Errorf("envelope %+v, %v", envelope, err)
	}
	if another, _ := w.test(e); another == id {
		t.Error("two tests are one delivery")
	}
}

// A round: six attempts, each with an id of its own, one state machine; a second round by
// hand, under the same event id.
func TestRounds(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, answering(500))
	e, _ := w.endpoint(r.url(), nil)
	id, message := w.test(e)
	if failed := w.deliver(message); failed != 0 {
		t.Fatal("the message failed")
	}
	w.expect(id, "1 pending 1.1=500")
	if err := w.queue.Retry(t.Context(), w.delivery(id).Delivery); err == nil {
		t.Error("a pending delivery is retried")
	}
	for n := 2; n <= 6; n++ {
		if result, err := w.retry(id, 1, n); err != nil || result.Done != (n == 6) {
			t.Fatalf("attempt %d: %+v, %v", n, result, err)
		}
	}
	w.expect(id, "1 failed 1.1=500 1.2=500 1.3=500 1.4=500 1.5=500 1.6=500")

	if err := w.queue.Retry(t.Context(), w.delivery(id).Delivery); err != nil {
		t.Fatal(err)
	}
	w.expect(id, "1 failed 1.1=500 1.2=500 1.3=500 1.4=500 1.5=500 1.6=500") // until the attempt reports
	if failed := w.deliver(w.receive(1)...); failed != 0 {
		t.Fatal("the message failed")
	}
	r.answers(200)
	if result, err := w.retry(id, 2, 2); err != nil || !result.Done {
		t.Fatalf("%+v, %v; want it done", result, err)
	}
	w.expect(id, "2 delivered 1.1=500 1.2=500 1.3=500 1.4=500 1.5=500 1.6=500 2.1=500 2.2=200")
	if err := w.queue.Retry(t.Context(), w.delivery(id).Delivery); err == nil {
		t.Error("a delivered one is retried")
	}
	if len(w.started) != 2 || w.started[w.execution(id, 2)] != fmt.Sprintf(`{"workspace_id":"%s","delivery_id":"%s","round":2}`, w.workspace, id) {
		t.Errorf("executions %v, want one of each round", w.started)
	}
	ids, bodies := map[string]bool{}, map[string]bool{}
	for _, got := range r.received() {
		attempt := conversation.AttemptID(got.header.Get("X-Service-Delivery-Id"))
		if d, err := attempt.Delivery(); d != id || err != nil {
			t.Errorf("%s leads to delivery %s, %v; want %s", attempt, d, err, id)
		}
		ids[string(attempt)], bodies[string(got.body)] = true, true
	}
	if len(ids) != 8 || len(bodies) != 1 {
		t.Errorf("%d ids and %d bodies in eight attempts, want 8 and 1", len(ids), len(bodies))
	}
}

// What is settled between two attempts counts for the next one.
func TestSettingsBetweenAttempts(t *testing.T) {
	w := newWorld(t)
	first, second := newReceiver(t, answering(500)), newReceiver(t, answering(200))
	begin := func(change func(*conversation.WebhookEndpoint)) (conversation.WebhookEndpoint, conversation.DeliveryID, string) {
		e, secret := w.endpoint(first.url(), change)
		id, message := w.test(e)
		if failed := w.deliver(message); failed != 0 {
			t.Fatal("the message failed")
		}
		return e, id, secret
	}
	t.Run("address, secret and header", func(t *testing.T) {
		e, id, old := begin(nil)
		rotated := webhook.NewSecret()
		w.change(e, func(e *conversation.WebhookEndpoint) {
			e.URL, e.SealedSecret = second.url(), w.seal(*e, rotated)
			e.Headers = []conversation.SealedHeader{{Name: "X-Api-Key", SealedValue: w.seal(*e, "new")}}
		})
		if result, err := w.retry(id, 1, 2); err != nil || !result.Done {
			t.Fatalf("%+v, %v; want it done", result, err)
		}
		got := second.received()[0]
		signature := got.header.Get("X-Service-Signature")
		if err := webhook.Verify(got.body, signature, rotated, time.Minute, time.Now()); err != nil || got.header.Get("X-Api-Key") != "new" {
			t.Errorf("by the new secret: %v, header %q", err, got.header.Get("X-Api-Key"))
		}
		if webhook.Verify(got.body, signature, old, time.Minute, time.Now()) == nil {
			t.Error("the old secret still verifies")
		}
		w.expect(id, "1 delivered 1.1=500 1.2=200")
	})
	posts := len(first.received())
	for name, change := range map[string]func(*conversation.WebhookEndpoint, conversation.WebhookEndpoint){
		"disabled": func(*conversation.WebhookEndpoint, conversation.WebhookEndpoint) {},
		"deleted":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			e, id, _ := begin(nil)
			posts++
			if change == nil {
				if err := w.store.DeleteWebhookEndpoint(t.Context(), w.workspace, e.EndpointID); err != nil {
					t.Fatal(err)
				}
			} else {
				w.change(e, func(e *conversation.WebhookEndpoint) { e.Enabled = false })
			}
			for range 2 { // the task is done again
				if result, err := w.retry(id, 1, 2); err != nil || !result.Done {
					t.Fatalf("%+v, %v; want it done", result, err)
				}
			}
			w.expect(id, "1 canceled 1.1=500 1.2=canceled")
		})
	}
	t.Run("the event is no longer wanted", func(t *testing.T) {
		e, _ := w.endpoint(first.url(), func(e *conversation.WebhookEndpoint) { e.Events = []conversation.EventName{conversation.CallCompleted} })
		id, message := w.callStarted(e)
		if failed := w.deliver(message); failed != 0 {
			t.Fatal("the message failed")
		}
		w.expect(id, "1 canceled 1.1=canceled")
		if err := w.queue.Retry(t.Context(), w.delivery(id).Delivery); err != nil {
			t.Fatal(err)
		}
		w.change(e, func(e *conversation.WebhookEndpoint) { e.Events = conversation.EventNames() })
		if failed := w.deliver(w.receive(1)...); failed != 0 {
			t.Fatal("the message failed")
		}
		posts++
		w.expect(id, "2 pending 1.1=canceled 2.1=500")
	})
	if n := len(first.received()); n != posts || len(second.received()) != 1 {
		t.Errorf("%d and %d requests, want %d and 1", n, len(second.received()), posts)
	}
}

// callStarted makes a message as the publisher does, whatever the endpoint wants now.
func (w *world) callStarted(e conversation.WebhookEndpoint) (conversation.DeliveryID, events.SQSMessage) {
	w.Helper()
	m := webhook.Message{
		WorkspaceID: w.workspace, EndpointID: e.EndpointID, Event: conversation.CallStarted, EventID: conversation.NewID(),
		Round: 1, CreatedAt: conversation.At(time.Now()),
	}
	m.DeliveryID = conversation.NewDeliveryID(m.EndpointID, m.Event, m.EventID)
	body, err := w.store.PackBody(w.Context(), w.workspace, m.DeliveryID, []byte(`{"event":"call.started"}`))
	if err != nil {
		w.Fatal(err)
	}
	m.Body = body
	text, err := json.Marshal(m)
	if err != nil {
		w.Fatal(err)
	}
	return m.DeliveryID, events.SQSMessage{MessageId: "1", Body: string(text)}
}

// A message or a task that comes again posts nothing again once its attempt is recorded.
func TestAgain(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, answering(500))
	e, _ := w.endpoint(r.url(), nil)
	id, message := w.callStarted(e)
	for range 3 {
		if failed := w.deliver(message); failed != 0 {
			t.Fatal("the message failed")
		}
	}
	for range 2 {
		if result, err := w.retry(id, 1, 2); err != nil || result.Done {
			t.Fatalf("%+v, %v; want it to go on", result, err)
		}
	}
	r.answers(200)
	for range 2 {
		if result, err := w.retry(id, 1, 3); err != nil || !result.Done {
			t.Fatalf("%+v, %v; want it done", result, err)
		}
	}
	for n := 4; n <= 5; n++ { // of a machine that didn't hear of it
		if result, err := w.retry(id, 1, n); err != nil || !result.Done {
			t.Fatalf("%+v, %v; want it done", result, err)
		}
	}
	if failed := w.deliver(message); failed != 0 {
		t.Fatal("the message failed")
	}
	w.expect(id, "1 delivered 1.1=500 1.2=500 1.3=200 1.4=skipped 1.5=skipped")
	if n := len(r.received()); n != 3 || len(w.started) != 1 {
		t.Errorf("%d requests and %d executions, want 3 and 1", n, len(w.started))
	}
}

// What AWS refuses comes again, and loses nothing: an attempt that isn't recorded is posted
// again, one that is recorded isn't, and the state machine starts in the end.
func TestFaultsOfAWS(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, answering(500))
	e, _ := w.endpoint(r.url(), nil)
	id, message := w.callStarted(e)
	for _, step := range []struct {
		fails string
		posts int
		want  string
	}{
		{"BatchGetItem", 0, "0 "},                      // nothing is known
		{"Decrypt", 0, "0 "},                           // unless the secret is known already
		{"PutItem", 1, "0 "},                           // posted, not recorded
		{"StartExecution", 2, "1 pending 1.1=500"},     // posted again, recorded
		{"StartExecution", 2, "1 pending 1.1=500"},     // straight on
		{"", 2, "1 pending 1.1=500"},                   // at last
		{"GetItem", 2, "1 pending 1.1=500"},            // now the tasks
		{"UpdateItem", 3, "1 pending 1.1=500"},         // posted, not recorded
		{"", 4, "1 pending 1.1=500 1.2=500"},           // posted again
		{"UpdateItem", 4, "1 pending 1.1=500 1.2=500"}, // recorded already: nothing to write
	} {
		if step.fails == "Decrypt" {
			w.deliverer = w.fresh()
		}
		w.failing(step.fails)
		machine := len(w.started) > 0
		var failed bool
		if machine {
			_, err := w.retry(id, 1, 2)
			failed = err != nil
		} else {
			failed = w.deliver(message) == 1
		}
		w.failing()
		want := step.fails != "" && !(machine && step.posts == 4)
		if failed != want || len(r.received()) != step.posts || told(w.delivery(id).Delivery) != step.want {
			t.Fatalf("%s fails: reported %t, %d posts, %q; want %t, %d, %q",
				step.fails, failed, len(r.received()), told(w.delivery(id).Delivery), want, step.posts, step.want)
		}
	}
	if len(w.started) != 1 {
		t.Errorf("%d executions, want 1", len(w.started))
	}
}

// A batch is posted at once, and fails message by message.
func TestBatch(t *testing.T) {
	w := newWorld(t)
	slow := newReceiver(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	quick := newReceiver(t, answering(200))
	hanging, _ := w.endpoint(slow.url(), func(e *conversation.WebhookEndpoint) { e.TimeoutSeconds = 1 })
	healthy, _ := w.endpoint(quick.url(), nil)
	var batch []events.SQSMessage
	var hung []conversation.DeliveryID
	for n := range 9 {
		id, m := w.callStarted(hanging)
		m.MessageId = fmt.Sprint("hanging-", n)
		batch, hung = append(batch, m), append(hung, id)
	}
	id, m := w.callStarted(healthy)
	batch = append(batch, m, events.SQSMessage{MessageId: "no JSON", Body: "{"}, events.SQSMessage{MessageId: "no message", Body: "{}"})
	start := time.Now()
	answer, err := w.deliverer.DeliverBatch(t.Context(), events.SQSEvent{Records: batch})
	failures := answer.BatchItemFailures
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("the batch took %s, want hardly more than a second", took)
	}
	if err != nil || len(failures) != 2 || failures[0].ItemIdentifier != "no JSON" || failures[1].ItemIdentifier != "no message" {
		t.Errorf("failures %+v, want those of the two that can't be read", failures)
	}
	w.expect(id, "1 delivered 1.1=200")
	for _, id := range hung {
		w.expect(id, "1 pending 1.1=timeout")
	}
	if a := w.delivery(hung[0]).Attempts[0]; a.LatencyMS < 900 || a.LatencyMS > 2000 {
		t.Errorf("latency %d ms, want about 1000", a.LatencyMS)
	}
}

// What Lambda and Step Functions read and write.
func TestWireForms(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, answering(500))
	e, _ := w.endpoint(r.url(), nil)
	id, message := w.callStarted(e)
	written := func(answer any, err error) string {
		if err != nil {
			return err.Error()
		}
		text, _ := json.Marshal(answer)
		return string(text)
	}
	if got := written(w.deliverer.DeliverBatch(t.Context(), events.SQSEvent{Records: []events.SQSMessage{message}})); got != `{"batchItemFailures":[]}` {
		t.Errorf("a batch: %s", got)
	}
	for _, tt := range []struct {
		name    string
		id      conversation.DeliveryID
		attempt int
		want    string
	}{
		{"a task", id, 2, `{"done":false}`},
		{"a task of a delivery older than the log", conversation.NewDeliveryID("none", "", ""), 2, `{"done":true}`},
		{"a task of a seventh attempt", id, 7, "no later attempt"},
	} {
		var task webhook.RetryTask
		text := fmt.Sprintf(`{"workspace_id":"%s","delivery_id":"%s","round":1,"attempt":%d}`, w.workspace, tt.id, tt.attempt)
		if err := json.Unmarshal([]byte(text), &task); err != nil {
			t.Fatal(err)
		}
		if got := written(w.deliverer.Retry(t.Context(), task)); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	w.expect(id, "1 pending 1.1=500 1.2=500")
}

// A manual retry of a delivery that the log has forgotten ends there.
func TestRetryOlderThanTheLog(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, answering(200))
	e, _ := w.endpoint(r.url(), nil)
	err := w.queue.Retry(t.Context(), conversation.Delivery{
		ID: conversation.NewDeliveryID(e.EndpointID, conversation.CallStarted, "1"), WorkspaceID: w.workspace, EndpointID: e.EndpointID,
		Event: conversation.CallStarted, EventID: "1", Status: conversation.DeliveryFailed, Round: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if failed := w.deliver(w.receive(1)...); failed != 0 || len(r.received()) != 0 {
		t.Errorf("%d failed, %d requests; want neither", failed, len(r.received()))
	}
}

// At least once, under faults: AWS fails at any call, messages and tasks come twice and in
// any order, the endpoint is switched off and on, retries are begun by hand. When all is
// quiet again the delivery has been posted or says that it failed or was canceled, its
// rounds have no holes, and every post is in the log.
func TestAtLeastOnce(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, nil)
	r.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }
	for seed := range uint64(40) {
		w.moveIn()
		w.started = map[string]string{}
		random := rand.New(rand.NewPCG(seed, 1))
		e, _ := w.endpoint(r.url(), nil)
		id, message := w.callStarted(e)
		queue := []events.SQSMessage{message}
		next := map[int]int{} // the attempt that each round's machine is at
		before := len(r.received())
		step := func(calm bool) {
			w.mu.Lock()
			w.fail = func(string) fault {
				if calm {
					return none
				}
				return []fault{none, none, none, none, none, none, none, none, refused, lost}[random.IntN(10)]
			}
			w.mu.Unlock()
			r.answers([]int{500, 500, 500, 200}[random.IntN(4)])
			switch what := random.IntN(10); {
			case what < 5 && len(queue) > 0:
				i := random.IntN(len(queue))
				if w.deliver(queue[i]) == 0 && random.IntN(3) > 0 { // else it comes again
					queue = append(queue[:i:i], queue[i+1:]...)
				}
			case what < 9:
				for _, input := range w.started {
					var execution webhook.RetryInput
					if err := json.Unmarshal([]byte(input), &execution); err != nil {
						t.Fatal(err)
					}
					round := execution.Round
					n := max(2, next[round])
					if n > conversation.MaxAttempts {
						continue
					}
					if result, err := w.retry(id, round, n); err == nil && random.IntN(3) > 0 { // else it is done again
						next[round] = n + 1
						if result.Done {
							next[round] = conversation.MaxAttempts + 1
						}
					}
				}
			case !calm:
				w.mu.Lock()
				w.fail = nil
				w.mu.Unlock()
				w.change(e, func(e *conversation.WebhookEndpoint) { e.Enabled = random.IntN(3) > 0 })
				if d := w.delivery(id); d.Retryable() && d.Round < 3 {
					if err := w.queue.Retry(t.Context(), d.Delivery); err != nil {
						t.Fatal(err)
					}
					queue = append(queue, w.receive(1)...)
				}
			}
		}
		for range 25 {
			step(false)
		}
		for range 400 {
			w.failing()
			d := w.delivery(id)
			if len(queue) == 0 && d.Version > 0 && d.Status != conversation.DeliveryPending {
				break
			}
			step(true)
		}
		w.failing()
		d := w.delivery(id)
		posted, recorded := map[conversation.AttemptID]int{}, map[conversation.AttemptID]bool{}
		for _, got := range r.received()[before:] {
			posted[conversation.AttemptID(got.header.Get("X-Service-Delivery-Id"))]++
		}
		perRound := map[int]int{}
		succeeded := false
		for _, a := range d.Attempts {
			recorded[a.ID] = true
			perRound[a.Round]++
			succeeded = succeeded || a.Succeeded()
			if a.Number != perRound[a.Round] || a.Number > conversation.MaxAttempts {
				t.Errorf("seed %d: a hole in round %d: %s", seed, a.Round, told(d.Delivery))
			}
			if a.Posted() && posted[a.ID] == 0 {
				t.Errorf("seed %d: attempt %d.%d is in the log, but was not posted", seed, a.Round, a.Number)
			}
		}
		for attempt := range posted {
			if !recorded[attempt] {
				t.Errorf("seed %d: %s was posted, but is not in the log: %s", seed, attempt, told(d.Delivery))
			}
		}
		if d.Status == conversation.DeliveryPending || (d.Status == conversation.DeliveryDelivered) != succeeded ||
			d.Status == conversation.DeliveryFailed && perRound[d.Round] != conversation.MaxAttempts {
			t.Errorf("seed %d: it ends as %s", seed, told(d.Delivery))
		}
	}
}
