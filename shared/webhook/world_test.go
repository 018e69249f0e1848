package webhook_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"parley/shared/config"
	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/dynamo/dynamotest"
	"parley/shared/emulator"
	"parley/shared/webhook"
)

// world is a stage with one workspace: the emulator's DynamoDB, S3, SQS and KMS, a state
// machine that only notes what is started, and receivers on this machine.
type world struct {
	*testing.T
	store     *dynamo.Store
	sealer    *webhook.Sealer
	publisher *webhook.Publisher
	deliverer *webhook.Deliverer
	fresh     func() *webhook.Deliverer // one that has opened nothing yet
	queue     webhook.Queue
	sqs       *sqs.Client
	db        *dynamodb.Client
	stage     config.Config
	queueURL  string
	workspace conversation.WorkspaceID

	mu      sync.Mutex
	fail    func(operation string) fault
	answer  func(operation string, body []byte) string // in AWS's place; "" leaves it to AWS
	started map[string]string                          // executions: name and input
}

// lookupHere says that every name is this machine, but for some.
func lookupHere(_ context.Context, host string) ([]netip.Addr, error) {
	switch host {
	case "private.example.com":
		return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
	case "unknown.example.com":
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, started: map[string]string{}}
	cfg := emulator.Config(t)
	stage := dynamotest.Stage(t, cfg)
	key, err := kms.NewFromConfig(cfg).CreateKey(t.Context(), &kms.CreateKeyInput{})
	if err != nil {
		t.Fatal(err)
	}
	w.sqs, w.db, w.stage = sqs.NewFromConfig(cfg), dynamodb.NewFromConfig(cfg), stage
	made, err := w.sqs.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("test-" + conversation.NewID())})
	if err != nil {
		t.Fatal(err)
	}
	w.queueURL = aws.ToString(made.QueueUrl)
	cfg.HTTPClient = &line{cfg.HTTPClient, w}
	w.store = dynamo.New(cfg, stage)
	w.sealer = webhook.NewSealer(kms.NewFromConfig(cfg), aws.ToString(key.KeyMetadata.KeyId))
	w.queue = webhook.NewQueue(sqs.NewFromConfig(cfg), w.queueURL)
	w.publisher = webhook.NewPublisher(webhook.PublisherOptions{Store: w.store, Queue: w.queue, BaseURL: "https://api.example.com"})
	keyID := aws.ToString(key.KeyMetadata.KeyId)
	w.fresh = func() *webhook.Deliverer {
		return webhook.NewDeliverer(webhook.DelivererOptions{
			Store: w.store, Sealer: webhook.NewSealer(kms.NewFromConfig(cfg), keyID),
			Machine: webhook.NewRetryMachine(sfn.NewFromConfig(cfg), "arn:aws:states:us-east-1:000000000000:stateMachine:webhook-retry"),
			Guard:   webhook.GuardOptions{AllowLoopback: true, Lookup: lookupHere, RootCAs: authority().pool},
		})
	}
	w.deliverer = w.fresh()
	w.moveIn()
	return w
}

// moveIn makes a workspace and goes on in it: one has room for 20 endpoints.
func (w *world) moveIn() {
	w.Helper()
	w.workspace = conversation.WorkspaceID(conversation.NewID())
	definition := dynamo.Definition{Workspace: conversation.Workspace{WorkspaceID: w.workspace}}
	if err := w.store.Define(w.Context(), dynamo.Definition{}, definition, "0"); err != nil {
		w.Fatal(err)
	}
}

// fault is what becomes of a call of AWS.
type fault int

const (
	none fault = iota
	refused
	lost // it takes effect, but the answer says otherwise
)

// line is the line to AWS. It plays the state machine, and may fail.
type line struct {
	aws.HTTPClient
	w *world
}

func (l *line) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	l.w.mu.Lock()
	what := none
	if l.w.fail != nil {
		what = l.w.fail(operation)
	}
	l.w.mu.Unlock()
	no := reply(r, http.StatusBadRequest, `{"__type":"AccessDeniedException","message":"not now"}`)
	if what == refused {
		return no, nil
	}
	answer, err := l.ask(operation, r)
	if what == lost && err == nil {
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		return no, nil
	}
	return answer, err
}

func (l *line) ask(operation string, r *http.Request) (*http.Response, error) {
	if l.w.answer != nil && r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if answer := l.w.answer(operation, body); answer != "" {
			return reply(r, http.StatusOK, answer), nil
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if operation != "StartExecution" {
		return l.HTTPClient.Do(r)
	}
	var execution struct{ Name, Input string }
	if err := json.NewDecoder(r.Body).Decode(&execution); err != nil {
		return nil, err
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if _, exists := l.w.started[execution.Name]; exists {
		return reply(r, http.StatusBadRequest, `{"__type":"ExecutionAlreadyExists","message":"it exists"}`), nil
	}
	l.w.started[execution.Name] = execution.Input
	return reply(r, http.StatusOK, `{"executionArn":"arn","startDate":1}`), nil
}

func reply(r *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{
			"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Crc32": {strconv.Itoa(int(crc32.ChecksumIEEE([]byte(body))))},
		},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

// failing makes AWS refuse operations until the next call of failing.
func (w *world) failing(operations ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail = func(operation string) fault {
		if slices.Contains(operations, operation) {
			return refused
		}
		return none
	}
}

// endpoint makes an endpoint with a secret, and stores it.
func (w *world) endpoint(url string, change func(*conversation.WebhookEndpoint)) (conversation.WebhookEndpoint, string) {
	w.Helper()
	e := conversation.WebhookEndpoint{
		EndpointID: conversation.EndpointID(conversation.NewID()), WorkspaceID: w.workspace, URL: url,
		Events: conversation.EventNames(), Blocks: conversation.AllBlocks(), TimeoutSeconds: 5, Enabled: true,
		CreatedAt: conversation.At(time.Now()),
	}
	secret := webhook.NewSecret()
	e.SealedSecret = w.seal(e, secret)
	if change != nil {
		change(&e)
	}
	if err := w.store.InsertWebhookEndpoint(w.Context(), e); err != nil {
		w.Fatal(err)
	}
	return e, secret
}

func (w *world) seal(e conversation.WebhookEndpoint, secret string) []byte {
	w.Helper()
	sealed, err := w.sealer.Seal(w.Context(), e, secret)
	if err != nil {
		w.Fatal(err)
	}
	return sealed
}

// change changes a stored endpoint.
func (w *world) change(e conversation.WebhookEndpoint, change func(*conversation.WebhookEndpoint)) {
	w.Helper()
	stored, err := w.store.WebhookEndpoint(w.Context(), w.workspace, e.EndpointID)
	if err != nil {
		w.Fatal(err)
	}
	change(&stored.WebhookEndpoint)
	if err := w.store.ReplaceWebhookEndpoint(w.Context(), stored); err != nil {
		w.Fatal(err)
	}
}

// test queues a webhook.test and returns its message.
func (w *world) test(e conversation.WebhookEndpoint) (conversation.DeliveryID, events.SQSMessage) {
	w.Helper()
	d, err := w.publisher.SendTest(w.Context(), e)
	if err != nil {
		w.Fatal(err)
	}
	return d.ID, w.receive(1)[0]
}

// receive takes messages from the queue.
func (w *world) receive(n int) (messages []events.SQSMessage) {
	w.Helper()
	for len(messages) < n {
		out, err := w.sqs.ReceiveMessage(w.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: &w.queueURL, MaxNumberOfMessages: 10, WaitTimeSeconds: 1,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameMessageGroupId},
		})
		if err != nil {
			w.Fatal(err)
		}
		if len(out.Messages) == 0 {
			w.Fatalf("%d messages in the queue, want %d", len(messages), n)
		}
		for _, m := range out.Messages {
			messages = append(messages, events.SQSMessage{
				MessageId: aws.ToString(m.MessageId), Body: aws.ToString(m.Body), Attributes: m.Attributes,
			})
			if _, err := w.sqs.DeleteMessage(w.Context(), &sqs.DeleteMessageInput{QueueUrl: &w.queueURL, ReceiptHandle: m.ReceiptHandle}); err != nil {
				w.Fatal(err)
			}
		}
	}
	return messages
}

// deliver has a batch delivered and returns how many of it failed.
func (w *world) deliver(messages ...events.SQSMessage) int {
	w.Helper()
	response, err := w.deliverer.DeliverBatch(w.Context(), events.SQSEvent{Records: messages})
	if err != nil || response.BatchItemFailures == nil {
		w.Fatalf("failures %v, %v; want a list", response.BatchItemFailures, err)
	}
	return len(response.BatchItemFailures)
}

// retry runs one task of the machine of a round.
func (w *world) retry(id conversation.DeliveryID, round, attempt int) (webhook.RetryResult, error) {
	return w.deliverer.Retry(w.Context(), webhook.RetryTask{
		RetryInput: webhook.RetryInput{WorkspaceID: w.workspace, DeliveryID: id, Round: round}, Attempt: attempt,
	})
}

// execution is the name of that of a delivery's round.
func (w *world) execution(id conversation.DeliveryID, round int) string {
	w.Helper()
	return fmt.Sprintf("%s-%d-%d", id, round, w.delivery(id).CreatedAt.Unix())
}

func (w *world) delivery(id conversation.DeliveryID) dynamo.StoredDelivery {
	w.Helper()
	d, err := w.store.Delivery(w.Context(), w.workspace, id)
	if err != nil && !errors.Is(err, conversation.ErrNotFound) {
		w.Fatal(err)
	}
	return d
}

// receiver is an endpoint's server. It keeps what it was sent, and answers as it is told.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	requests []received
	answer   http.HandlerFunc
}

type received struct {
	header http.Header
	body   []byte
}

func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewUnstartedServer(r)
	r.Config.ErrorLog = nolog
	r.TLS = &tls.Config{Certificates: []tls.Certificate{authority().certificate(t, "hooks.example.com", time.Now().Add(time.Hour), true)}}
	r.StartTLS()
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.mu.Lock()
	r.requests = append(r.requests, received{request.Header.Clone(), body})
	answer := r.answer
	r.mu.Unlock()
	answer(w, request)
}

func (r *receiver) answers(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answering(status)
}

func (r *receiver) received() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// at is a URL of a server on this machine, under a name.
func at(name, address string) string {
	_, port, _ := net.SplitHostPort(address)
	return "https://" + name + ":" + port
}

func (r *receiver) url() string { return at("hooks.example.com", r.Listener.Addr().String()) }

func answering(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// ca is an authority that the tests' guard trusts.
type ca struct {
	pool        *x509.CertPool
	certificate func(t *testing.T, name string, until time.Time, signed bool) tls.Certificate
}

var authority = sync.OnceValue(func() ca {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	parsed, _ := x509.ParseCertificate(der)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return ca{pool, func(t *testing.T, name string, until time.Time, signed bool) tls.Certificate {
		t.Helper()
		own, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		leaf := &x509.Certificate{
			SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
			NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
		}
		issuer, signer := parsed, key
		if !signed {
			issuer, signer = leaf, own
		}
		der, err := x509.CreateCertificate(rand.Reader, leaf, issuer, &own.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: own}
	}}
})
