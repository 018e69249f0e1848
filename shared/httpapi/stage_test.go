package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"parley/shared/config"
	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/dynamo/dynamotest"
	"parley/shared/emulator"
)

const baseURL = "https://api.example.com"

// All tests share one stage; each has workspaces and keys of its own.
var shared struct {
	sync.Once
	aws   aws.Config
	stage config.Config
}

// logged and secrets are what all tests together wrote, and what must not be in it.
var (
	logged  journal
	secrets sync.Map
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.NewJSONHandler(&logged, nil)))
	status := m.Run()
	secrets.Range(func(secret, _ any) bool {
		if logged.contains(secret.(string)) {
			fmt.Println("FAIL: the log has an API key's secret in it")
			status = 1
		}
		return true
	})
	os.Exit(status)
}

// journal keeps what was logged.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func (j *journal) contains(text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return bytes.Contains(j.text.Bytes(), []byte(text))
}

// of returns the lines that name a request.
func (j *journal) of(requestID string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var lines []string
	for line := range strings.Lines(j.text.String()) {
		if strings.Contains(line, `"request_id":"`+requestID+`"`) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// aLine is the store, and what stands between it and AWS.
type aLine struct {
	*dynamo.Store
	*wire
}

// newStore opens the shared stage by a wire of its own.
func newStore(t testing.TB) aLine {
	t.Helper()
	if testing.Short() {
		emulator.Config(t) // skips the test
	}
	shared.Do(func() {
		shared.aws = emulator.Config(t)
		shared.stage = dynamotest.Stage(t, shared.aws)
	})
	if shared.stage.Bucket == "" {
		t.Fatal("there is no stage")
	}
	return wired(shared.aws, shared.stage)
}

func wired(cfg aws.Config, stage config.Config) aLine {
	w := &wire{HTTPClient: cfg.HTTPClient}
	cfg.HTTPClient = w
	return aLine{dynamo.New(cfg, stage), w}
}

// wire counts what the store asks AWS, and lets a test answer in AWS's place.
type wire struct {
	aws.HTTPClient
	mu    sync.Mutex
	asked []string
	// meddle answers instead of AWS, unless it returns nil twice.
	meddle func(operation string, r *http.Request) (*http.Response, error)
}

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	operation := "s3:" + r.Method
	if _, name, ok := strings.Cut(r.Header.Get("X-Amz-Target"), "."); ok {
		operation = "dynamodb:" + name
	}
	w.mu.Lock()
	w.asked = append(w.asked, operation)
	w.mu.Unlock()
	if w.meddle != nil {
		if response, err := w.meddle(operation, r); response != nil || err != nil {
			return response, err
		}
	}
	return w.HTTPClient.Do(r)
}

// taken returns what was asked since it was last called.
func (w *wire) taken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = nil
	return asked
}

// tenant is a workspace with one key.
type tenant struct {
	ws  conversation.WorkspaceID
	key conversation.APIKey
	// auth is the header that the key's user sends.
	auth string
}

// newTenant makes a workspace and a key that may read these blocks, by default all.
func newTenant(t testing.TB, store aLine, blocks ...conversation.Block) tenant {
	t.Helper()
	ws := conversation.WorkspaceID(conversation.NewID())
	definition := dynamo.Definition{Workspace: conversation.Workspace{WorkspaceID: ws, Name: "Test"}}
	if err := store.Define(t.Context(), dynamo.Definition{}, definition, "0"); err != nil {
		t.Fatal(err)
	}
	return anotherKey(t, store, ws, blocks...)
}

func anotherKey(t testing.TB, store aLine, ws conversation.WorkspaceID, blocks ...conversation.Block) tenant {
	t.Helper()
	if len(blocks) == 0 {
		blocks = conversation.AllBlocks()
	}
	return insertKey(t, store, conversation.APIKey{WorkspaceID: ws, Blocks: blocks})
}

// insertKey makes a key that may do what it says.
func insertKey(t testing.TB, store aLine, key conversation.APIKey) tenant {
	t.Helper()
	secret := "SECRET" + strings.ReplaceAll(conversation.NewID(), "-", "")
	secrets.Store(secret, true)
	now := conversation.At(time.Now())
	key.APIKeyID = conversation.APIKeyID(conversation.NewID())
	key.SecretHash, key.CreatedAt, key.LastUsedAt = conversation.HashSecret(secret), now, now
	if err := store.InsertAPIKey(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	return tenant{key.WorkspaceID, key, "Bearer " + key.Text(secret)}
}

func revoke(t testing.TB, store aLine, key tenant) {
	t.Helper()
	_, err := store.ChangeAPIKey(t.Context(), key.ws, key.key.APIKeyID, func(k *conversation.APIKey) ([]conversation.AuditEntry, error) {
		k.RevokedAt = conversation.At(time.Now())
		return []conversation.AuditEntry{{AuditID: conversation.AuditID(conversation.NewID()), WorkspaceID: key.ws, At: k.RevokedAt}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// api serves all routes.
func api(store aLine) http.Handler {
	return Handler(Service{Store: store.Store, BaseURL: baseURL}, Routes()...)
}

// apiAt serves routes, by default all, by a clock that the test moves.
func apiAt(store aLine, now *time.Time, routes ...Route) http.Handler {
	if routes == nil {
		routes = Routes()
	}
	clock := func() time.Time { return *now }
	a := newAPI(Service{Store: store.WithClock(clock), BaseURL: baseURL}, routes)
	a.now, a.keys.now, a.limits.now = clock, clock, clock
	return a.handler(func(string) bool { return true })
}

// allow changes what a key may read.
func allow(t testing.TB, store aLine, k tenant, blocks ...conversation.Block) {
	t.Helper()
	names, err := attributevalue.Marshal(blocks)
	if err != nil {
		t.Fatal(err)
	}
	_, err = dynamodb.NewFromConfig(shared.aws).UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName:        &shared.stage.WorkspacesTable,
		Key:              map[string]types.AttributeValue{dynamo.PartitionKey: &types.AttributeValueMemberS{Value: "key#" + string(k.key.APIKeyID)}},
		UpdateExpression: aws.String("SET blocks = :blocks"), ConditionExpression: aws.String("attribute_exists(pk)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":blocks": names},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// answered is the answer to a request.
type answered struct {
	status int
	header http.Header
	body   string
}

// get asks as the tenant does, and checks what every answer has in common.
func (k tenant) get(t testing.TB, handler http.Handler, target string) answered {
	t.Helper()
	return ask(t, handler, http.MethodGet, target, k.auth)
}

func ask(t testing.TB, handler http.Handler, method, target, auth string) answered {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
	if auth != "" {
		r.Header.Set("Authorization", auth)
	}
	return send(t, handler, r)
}

// send hands a request over, and checks what every answer has in common.
func send(t testing.TB, handler http.Handler, r *http.Request) answered {
	t.Helper()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	got := answered{w.Code, w.Header(), w.Body.String()}
	if got.header.Get(requestIDHeader) == "" {
		t.Errorf("%s %s has no %s", r.Method, r.URL, requestIDHeader)
	}
	if got.body != "" {
		if kind := got.header.Get("Content-Type"); kind != "application/json" || !json.Valid([]byte(got.body)) {
			t.Errorf("%s %s answers %q, want JSON: %.200s", r.Method, r.URL, kind, got.body)
		}
	}
	return got
}

// want checks the status, and decodes the body.
func want[T any](t testing.TB, got answered, status int) T {
	t.Helper()
	var value T
	if got.status != status {
		t.Fatalf("status %d, want %d: %.400s", got.status, status, got.body)
	}
	if err := json.Unmarshal([]byte(got.body), &value); err != nil {
		t.Fatalf("%v: %.400s", err, got.body)
	}
	return value
}

// Bodies as a client decodes them.
type (
	oneCall  struct{ Call conversation.Call }
	callList struct {
		Paging
		Calls []conversation.Call
	}
	messageList struct {
		Paging
		Messages []conversation.Message
	}
	threadList struct {
		Paging
		Threads []conversation.Thread
	}
	assistantList struct {
		Paging
		Assistants []conversation.Assistant
	}
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// idAt is the id of the nth record made at a time.
func idAt[I ~string](at time.Time, n int) I {
	first := conversation.FirstID(at)
	return I(first[:len(first)-4] + fmt.Sprintf("%04x", n))
}

const (
	frontDesk conversation.AssistantID = "0191d1c0-0000-7000-8000-0000000000aa"
	billing   conversation.AssistantID = "0191d1c0-0000-7000-8000-0000000000bb"
)

// callOf is a finished call with a value in every field: the nth, at t0 and n minutes.
func callOf(ws conversation.WorkspaceID, n int) conversation.Call {
	at := t0.Add(time.Duration(n) * time.Minute)
	return conversation.Call{
		CallID: idAt[conversation.CallID](at, n), WorkspaceID: ws, AssistantID: frontDesk, AssistantName: "Front desk",
		CallType: conversation.Outbound, Direction: conversation.Outbound, Status: conversation.CallEnded, EndReason: conversation.EndCustomerHungUp,
		DurationSeconds: 42, StartedAt: conversation.At(at), EndedAt: conversation.At(at.Add(time.Minute)),
		CallVariables: conversation.JSON(`{"room":"12"}`), Metadata: conversation.JSON(`{"a":1}`),
		Customer: &conversation.Customer{
			CustomerID: "0191d1c0-0000-7000-8000-0000000000cc", Name: "Ada Lovelace", Phone: "+12025550123",
			Email: "ada@example.com", Language: "en", Country: "US",
		},
		Costs: &conversation.CallCosts{
			Currency: "USD", Total: "0.10", Components: []conversation.CostComponent{{Type: "telephony", Amount: "0.10"}},
		},
		Transcript: []conversation.Turn{{Role: conversation.RoleAssistant, Content: "Hello 👋"}},
		Analysis: &conversation.Analysis{
			Summary: "A call.", Intent: "booking", Outcome: conversation.OutcomeResolved, Sentiment: conversation.SentimentPositive,
		},
		Evaluations: []conversation.Evaluation{{
			EvaluationID: "0191d1c0-0000-7000-8000-0000000000ee", Title: "Polite", Result: conversation.Pass, InitialResult: conversation.Fail,
			Rationale: "Yes.", Recovered: true,
		}},
		FollowUps:          []conversation.FollowUp{{Status: conversation.FollowUpSent, Channel: conversation.SMS, SentAt: conversation.At(at)}},
		Recording:          &conversation.Recording{Status: conversation.RecordingComplete, Available: true},
		PerformanceMetrics: &conversation.PerformanceMetrics{Speech: conversation.Latency{P50: 1, P95: 2, Max: 3, Count: 4}},
		ConfigSnapshot:     &conversation.ConfigSnapshot{Version: 3, Model: "m", Voice: "v", Language: "en", Greeting: "Hi", Prompt: "Be kind"},
	}
}

func messageOf(ws conversation.WorkspaceID, n int) conversation.Message {
	at := t0.Add(time.Duration(n) * time.Minute)
	return conversation.Message{
		MessageID: idAt[conversation.MessageID](at, n), WorkspaceID: ws, AssistantID: frontDesk, AssistantName: "Front desk",
		Channel: conversation.SMS, Direction: conversation.Outbound, ThreadID: idAt[conversation.ThreadID](t0, 0),
		Source: conversation.SourceVoiceTool, OccurredAt: conversation.At(at), Content: "Hello", ProviderMessageID: "SM1",
		Customer: &conversation.Customer{CustomerID: "0191d1c0-0000-7000-8000-0000000000cc", Phone: "+12025550123"},
		Costs:    &conversation.MessageCosts{Currency: "USD", Total: "0.01"},
	}
}

func threadOf(ws conversation.WorkspaceID, n int) conversation.Thread {
	at := t0.Add(time.Duration(n) * time.Minute)
	call := callOf(ws, n)
	return conversation.Thread{
		ThreadID: idAt[conversation.ThreadID](at, n), WorkspaceID: ws, AssistantID: frontDesk, AssistantName: "Front desk",
		Channel: conversation.SMS, CloseReason: conversation.Graded, MessageCount: 1, StartedAt: conversation.At(at),
		LastMessageAt: conversation.At(at), CompletedAt: conversation.At(at), AnchorMessageID: idAt[conversation.MessageID](at, n),
		Customer: call.Customer, Transcript: call.Transcript, Analysis: call.Analysis, Evaluations: call.Evaluations, FollowUps: call.FollowUps,
		Costs: &conversation.ThreadCosts{Currency: "USD", Total: "0.02", ChargedMessageCount: 2},
	}
}

func insertCalls(t testing.TB, store aLine, calls ...conversation.Call) {
	t.Helper()
	for _, call := range calls {
		if err := store.InsertCall(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
}

func insertMessages(t testing.TB, store aLine, messages ...conversation.Message) {
	t.Helper()
	for _, message := range messages {
		if err := store.InsertMessage(t.Context(), message); err != nil {
			t.Fatal(err)
		}
	}
}

func insertThreads(t testing.TB, store aLine, threads ...conversation.Thread) {
	t.Helper()
	for _, thread := range threads {
		if err := store.InsertThread(t.Context(), thread); err != nil {
			t.Fatal(err)
		}
	}
}

// anotherSecond asks again when a test that asks much is over its limit.
func anotherSecond(t testing.TB, handler http.Handler, k tenant, target string) answered {
	t.Helper()
	for {
		got := k.get(t, handler, target)
		if got.status != http.StatusTooManyRequests {
			return got
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// defineAssistants gives a workspace two assistants, one without a number.
func defineAssistants(t testing.TB, store aLine, ws conversation.WorkspaceID) {
	t.Helper()
	definition, err := store.Definition(t.Context(), ws)
	if err != nil {
		t.Fatal(err)
	}
	changed := definition
	changed.Workspace.Carrier = "test-" + string(ws) // a number belongs to one workspace of its carrier
	changed.Assistants = []conversation.AssistantConfig{
		{Assistant: conversation.Assistant{
			AssistantID: frontDesk, AssistantName: "Front desk", WorkspaceID: ws, CallVariables: []string{"room"},
			PhoneNumbers: []conversation.PhoneNumber{{PhoneNumber: "+12025550111", Country: "US", OutboundEnabled: true}},
		}},
		{Assistant: conversation.Assistant{AssistantID: billing, AssistantName: "Billing", WorkspaceID: ws}},
	}
	if err := store.Define(t.Context(), definition, changed, "0"); err != nil {
		t.Fatal(err)
	}
}
