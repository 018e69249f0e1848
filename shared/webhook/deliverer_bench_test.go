package webhook_test

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"parley/shared/config"
	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/webhook"
)

const (
	// longest is how long an endpoint may keep a post waiting.
	longest = conversation.MaxWebhookTimeout * time.Second
	// batchSize and functions are infra's: what the queue gives at once, and to how many
	// functions at once, unless a stage says otherwise.
	batchSize = 10
	functions = 5
)

// track is nearAWS, receivers over TLS, and the functions that deliver.
type track struct {
	*testing.B
	aws   *nearAWS
	url   string // of aws
	roots *x509.CertPool
	store *dynamo.Store
}

func newTrack(b *testing.B) *track {
	b.Helper()
	t := &track{B: b, aws: new(nearAWS), roots: x509.NewCertPool()}
	server := httptest.NewServer(t.aws)
	b.Cleanup(server.Close)
	t.url = server.URL
	t.store = dynamo.New(t.config(), nearStage)
	return t
}

var nearStage = config.Config{WorkspacesTable: "workspaces", DeliveriesTable: "deliveries"}

// config has connections of its own, as each function has.
func (t *track) config() aws.Config {
	t.Helper()
	cfg, err := config.AWS(t.Context(),
		awsconfig.WithRegion("us-east-1"),
		awsconfig.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("test", "test", "")))
	if err != nil {
		t.Fatal(err)
	}
	cfg.BaseEndpoint = aws.String(t.url)
	return cfg
}

// function is one more instance of the function. It takes batches one after another.
func (t *track) function() func([]events.SQSMessage) {
	t.Helper()
	cfg := t.config()
	d := webhook.NewDeliverer(webhook.DelivererOptions{
		Store: dynamo.New(cfg, nearStage), Sealer: webhook.NewSealer(kms.NewFromConfig(cfg), "key"),
		Machine: webhook.NewRetryMachine(sfn.NewFromConfig(cfg), "arn:aws:states:us-east-1:000000000000:stateMachine:webhook-retry"),
		Guard:   webhook.GuardOptions{AllowLoopback: true, RootCAs: t.roots},
	})
	return func(batch []events.SQSMessage) {
		answer, err := d.DeliverBatch(t.Context(), events.SQSEvent{Records: batch})
		if err != nil || len(answer.BatchItemFailures) != 0 {
			t.Errorf("%d messages of %d failed, %v", len(answer.BatchItemFailures), len(batch), err)
		}
	}
}

// endpoint is one whose receiver answers so, after it has read the request.
func (t *track) endpoint(answer http.HandlerFunc) conversation.WebhookEndpoint {
	t.Helper()
	receiver := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answer(w, r)
	}))
	receiver.Config.ErrorLog = nolog
	receiver.StartTLS()
	t.Cleanup(receiver.Close)
	t.roots.AddCert(receiver.Certificate())
	e := conversation.WebhookEndpoint{
		EndpointID: conversation.EndpointID(conversation.NewID()), WorkspaceID: "workspace", URL: receiver.URL,
		Events: conversation.EventNames(), Blocks: conversation.AllBlocks(), Enabled: true,
		TimeoutSeconds: conversation.MaxWebhookTimeout, CreatedAt: conversation.At(time.Now()),
		SealedSecret: []byte(webhook.NewSecret()),
	}
	if err := t.store.InsertWebhookEndpoint(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return e
}

// messages are those of n calls that were completed.
func (t *track) messages(e conversation.WebhookEndpoint, n int) (messages []events.SQSMessage) {
	t.Helper()
	payload, err := os.ReadFile(filepath.Join(forReceivers, "call.completed.json"))
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		m := webhook.Message{
			WorkspaceID: e.WorkspaceID, EndpointID: e.EndpointID, Event: conversation.CallCompleted, EventID: conversation.NewID(),
			Round: 1, CreatedAt: conversation.At(time.Now()),
		}
		m.DeliveryID = conversation.NewDeliveryID(m.EndpointID, m.Event, m.EventID)
		if m.Body, err = t.store.PackBody(t.Context(), m.WorkspaceID, m.DeliveryID, payload); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, events.SQSMessage{MessageId: string(m.DeliveryID), Body: string(text)})
	}
	return messages
}

// Ten receivers that hang hold a batch up no longer than one does.
func BenchmarkHangingBatch(b *testing.B) {
	const budget = longest + 500*time.Millisecond
	t := newTrack(b)
	var batch []events.SQSMessage
	for range batchSize {
		e := t.endpoint(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		batch = append(batch, t.messages(e, 1)...)
	}
	deliver := t.function()
	for b.Loop() { // once, as it takes longer than -benchtime
		deliver(batch)
	}
	took := b.Elapsed() / time.Duration(b.N)
	b.ReportMetric(took.Seconds(), "s/batch")
	if took > budget {
		b.Errorf("a batch took %s, want at most %s", took, budget)
	}
	if got, want := t.aws.started.Load(), int64(b.N*batchSize); got != want {
		b.Errorf("%d state machines go on, want %d", got, want)
	}
}

// Full batches, one after another. One function alone mostly waits, so it has no budget.
func BenchmarkDeliveries(b *testing.B) {
	const budget = 600.0 // a second
	for _, n := range []int{1, functions} {
		b.Run(fmt.Sprintf("functions=%d", n), func(b *testing.B) {
			t := newTrack(b)
			var posts atomic.Int64
			batch := t.messages(t.endpoint(func(http.ResponseWriter, *http.Request) { posts.Add(1) }), batchSize)
			var all []func([]events.SQSMessage)
			for range n {
				all = append(all, t.function())
			}
			for b.Loop() {
				var group sync.WaitGroup
				for _, deliver := range all {
					group.Go(func() { deliver(batch) })
				}
				group.Wait()
			}
			want := int64(b.N * n * batchSize)
			rate := float64(want) / b.Elapsed().Seconds()
			b.ReportMetric(rate, "deliveries/s")
			if n == functions && rate < budget {
				b.Errorf("%.0f deliveries a second, want at least %.0f", rate, budget)
			}
			if got := t.aws.recorded.Load(); got != want || posts.Load() != want {
				b.Errorf("%d posts and %d records, want %d of both", posts.Load(), got, want)
			}
		})
	}
}

// fairQueue is a model of SQS and Lambda, which are not measured: messages of an endpoint
// with few of them on their way are handed out before those of one with many, and a function
// that is free gets ten at once. What polling adds, and what a poller holds, isn't in it.
type fairQueue struct{ few, many chan events.SQSMessage }

func (q fairQueue) receive() (batch []events.SQSMessage) {
	for len(batch) < batchSize {
		select {
		case m := <-q.few:
			batch = append(batch, m)
			continue
		default:
		}
		select {
		case m := <-q.many:
			batch = append(batch, m)
		default:
			return batch
		}
	}
	return batch
}

// A healthy endpoint behind 600 deliveries to one that hangs waits at the worst, when all
// functions have just begun to wait themselves, as long as one of them hangs.
func BenchmarkHealthyEndpoint(b *testing.B) {
	const budget = longest + 500*time.Millisecond
	var took time.Duration
	for b.Loop() { // once, as it takes longer than -benchtime
		took = waitBehind(newTrack(b), 600)
	}
	b.ReportMetric(took.Seconds(), "s-to-delivery")
	if took > budget {
		b.Errorf("the delivery took %s, want at most %s", took, budget)
	}
}

// waitBehind is how long a healthy endpoint's delivery takes behind so many others.
func waitBehind(t *track, others int) time.Duration {
	t.Helper()
	hung, delivered, release := make(chan bool, others), make(chan bool), make(chan bool)
	hanging := t.endpoint(func(_ http.ResponseWriter, r *http.Request) {
		hung <- true
		select {
		case <-r.Context().Done():
		case <-release:
		}
	})
	healthy := t.endpoint(func(http.ResponseWriter, *http.Request) { close(delivered) })
	q := fairQueue{make(chan events.SQSMessage, 1), make(chan events.SQSMessage, others)}
	for _, m := range t.messages(hanging, others) {
		q.many <- m
	}
	var group sync.WaitGroup
	for range functions {
		deliver := t.function()
		group.Go(func() {
			for batch := q.receive(); len(batch) > 0; batch = q.receive() {
				deliver(batch)
			}
		})
	}
	for range functions * batchSize {
		<-hung
	}
	sent := time.Now()
	q.few <- t.messages(healthy, 1)[0]
	<-delivered
	took := time.Since(sent)
	close(release)
	group.Wait()
	if got, want := t.aws.recorded.Load(), int64(others+1); got != want {
		t.Errorf("%d records, want %d", got, want)
	}
	return took
}
