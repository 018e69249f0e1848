package lifecycle_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"parley/shared/agent"
	"parley/shared/carrier"
	"parley/shared/config"
	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/dynamo/dynamotest"
	"parley/shared/emulator"
	"parley/shared/lifecycle"
)

const (
	ours     = "+12025550150"
	customer = "+120255501" // and two digits
	baseURL  = "https://api.example.com"
)

// fatal is what tests and rapid's draws have in common.
type fatal interface {
	Helper()
	Fatalf(string, ...any)
}

// stage is what all worlds of a test share: the emulated AWS, with a client that sees the
// items as they are.
type stage struct {
	names config.Config
	cfg   aws.Config
	db    *dynamodb.Client
}

func newStage(t *testing.T) stage {
	t.Helper()
	cfg := emulator.Config(t)
	return stage{dynamotest.Stage(t, cfg), cfg, dynamodb.NewFromConfig(cfg)}
}

// world is a workspace with one assistant on a line of its own, whose clock stands still
// until a test lets time pass.
type world struct {
	stage
	ctx   context.Context
	store *dynamo.Store
	calls *lifecycle.Calls
	line  *line
	turns *turns
	url   string // where the callbacks are served; "": they reach the handler directly

	carrier    string // the name of its line, which no other world has
	definition dynamo.Definition
	workspace  conversation.WorkspaceID
	assistant  conversation.AssistantID

	mu     sync.Mutex
	time   time.Time
	waited time.Duration // by calls.Wait
}

// newWorld makes a world. store may be nil, for one that talks to the emulator directly.
func (s stage) newWorld(t testing.TB, store *dynamo.Store) *world {
	t.Helper()
	w := &world{stage: s, ctx: context.WithoutCancel(t.Context()), time: time.Date(2030, 5, 6, 7, 8, 9, 0, time.UTC), store: store}
	if store == nil {
		w.store = dynamo.New(s.cfg, s.names)
	}
	w.line = newLine(w.now)
	w.calls = &lifecycle.Calls{Parts: lifecycle.Parts{
		Store: w.store, Carriers: map[string]carrier.Carrier{}, Agent: agent.For,
		BaseURL: baseURL, Now: w.now, Wait: func(_ context.Context, d time.Duration) error { w.waited += d; w.pass(d); return nil },
	}}
	w.definition = newDefinition()
	w.workspace, w.assistant = w.definition.Workspace.WorkspaceID, w.definition.Assistants[0].AssistantID
	w.carrier = "line-" + string(w.workspace)
	w.calls.Carriers[w.carrier] = w.line
	w.definition.Workspace.Carrier = w.carrier
	w.define(t, func(*dynamo.Definition) {})
	w.turns = newTurns(t, w)
	return w
}

// newWorld makes a world whose callbacks come over HTTP.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := newStage(t).newWorld(t, nil)
	server := httptest.NewServer(lifecycle.Callbacks(w.calls, baseURL))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func newDefinition() dynamo.Definition {
	ws := conversation.WorkspaceID(conversation.NewID())
	criterion := func(title string, enabled bool) conversation.Criterion {
		return conversation.Criterion{
			EvaluationID: conversation.EvaluationID(conversation.NewID()), Title: title, Instructions: "It was answered.", Enabled: enabled,
		}
	}
	return dynamo.Definition{
		Workspace: conversation.Workspace{
			WorkspaceID: ws, Name: "Harbour Hotel", Timezone: "Asia/Tokyo", Country: "US", Variables: map[string]string{}, Currency: "USD",
			Prices: conversation.Prices{TelephonyPerMinute: "0.02", AssistantPerMinute: "0.10", SMS: "0.0075", WhatsApp: "0.005"},
			Limits: conversation.Limits{ConcurrentCalls: 100, CallsPerHour: 1000, LongestCallSeconds: 3600},
			Model:  agent.ScriptedModel, InactivitySeconds: 1800, HelpText: "Harbour Hotel: write STOP to hear no more from us.",
		},
		Assistants: []conversation.AssistantConfig{{
			Assistant: conversation.Assistant{
				AssistantID: conversation.AssistantID(conversation.NewID()), AssistantName: "Reception", WorkspaceID: ws,
				PhoneNumbers: []conversation.PhoneNumber{{PhoneNumber: ours, Country: "US", OutboundEnabled: true}}, CallVariables: []string{},
			},
			Enabled: true, Prompt: "Help {{participant_name}}.", Greeting: "This is {{hotel_name}}.", Voice: "calm", Language: "en",
			Criteria: []conversation.Criterion{criterion("Answered", true), criterion("Sold", false)},
		}},
	}
}

// define changes the workspace's definition.
func (w *world) define(t testing.TB, change func(*dynamo.Definition)) {
	t.Helper()
	have, err := w.store.Definition(w.ctx, w.workspace)
	want := w.definition
	if err == nil {
		want = have
	}
	want.Assistants = slices.Clone(want.Assistants)
	change(&want)
	if err := w.store.Define(w.ctx, have, want, "25.5"); err != nil {
		t.Fatal(err)
	}
	w.definition = want
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.time
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.time = w.time.Add(d)
}

// newCall is a call as POST /v1/calls makes it.
func (w *world) newCall(to string) conversation.CallRecord {
	return conversation.CallRecord{
		Call: conversation.Call{
			CallID: conversation.CallID(conversation.NewID()), WorkspaceID: w.workspace,
			AssistantID: w.assistant, AssistantName: "Reception",
			CallType: conversation.Outbound, Direction: conversation.Outbound, Status: conversation.CallQueued,
			StartedAt: conversation.At(w.now()), Customer: &conversation.Customer{Name: "Ada", Phone: to},
		},
		CalledName: "Ada", Carrier: w.carrier, Number: ours, HoldsSlot: true, LongestSeconds: 3600,
	}
}

func (w *world) accept(t fatal, call conversation.CallRecord) conversation.CallRecord {
	t.Helper()
	replay, err := w.store.AcceptCall(w.ctx, dynamo.Acceptance{
		Call: call, ConcurrentCalls: 100, CallsPerHour: 1000, Until: call.StartedAt.Add(w.calls.Scale.Pickup() + time.Minute),
	})
	if err != nil || replay != "" {
		t.Fatalf("AcceptCall = %q, %v", replay, err)
	}
	return call
}

func placement(call conversation.CallRecord) carrier.Placement {
	return carrier.Placement{
		Ref:  carrier.Ref{WorkspaceID: call.WorkspaceID, CallID: call.CallID},
		From: call.Number, To: call.Customer.Phone, CallbackURL: baseURL, MaxDuration: time.Hour,
	}
}

// place accepts a call and lets its phone ring.
func (w *world) place(t fatal, call conversation.CallRecord) *phone {
	t.Helper()
	w.accept(t, call)
	if _, err := w.line.PlaceCall(w.ctx, placement(call)); err != nil {
		t.Fatalf("PlaceCall = %v", err)
	}
	return w.line.phones[call.CallID]
}

// reached is how far a call is, from queued to hung up. Its callbacks have been delivered.
type reached int

const (
	queued reached = iota
	inProgress
	talking
	hungUp
)

// bring places a call and brings it so far.
func (w *world) bring(t fatal, to reached) *phone {
	t.Helper()
	return w.bringCall(t, to, w.newCall(customer+"99"))
}

func (w *world) bringCall(t fatal, to reached, call conversation.CallRecord) *phone {
	t.Helper()
	ph := w.place(t, call)
	for _, step := range []func(){
		func() { w.line.ring(ph) },
		func() { w.line.answer(ph) },
		func() { w.pass(time.Minute); w.line.hangUp(ph, conversation.EndCustomerHungUp) },
	}[:to] {
		step()
		w.deliverAll(t, ph)
	}
	return ph
}

// deliverAll delivers what the phone has to report, in order.
func (w *world) deliverAll(t fatal, ph *phone) {
	t.Helper()
	for {
		report, ok := w.line.take(ph)
		if !ok {
			return
		}
		if status := w.deliver(t, ph, report); status != http.StatusOK {
			t.Fatalf("%s: status %d, want 200", report.Event, status)
		}
	}
}

// deliver delivers a report; the phone does what the answer says.
func (w *world) deliver(t fatal, ph *phone, report carrier.Callback) (status int) {
	t.Helper()
	status, instruction := w.callback(t, ph.WorkspaceID, ph.CallID, report)
	if status == http.StatusOK {
		w.line.told(ph, instruction)
	}
	return status
}

func (w *world) path(ws conversation.WorkspaceID, callID conversation.CallID) string {
	return "/carriers/" + w.carrier + "/" + string(ws) + "/" + string(callID)
}

// callback posts a report as the carrier does.
func (w *world) callback(t fatal, ws conversation.WorkspaceID, callID conversation.CallID, report carrier.Callback) (int, carrier.Instruction) {
	t.Helper()
	body, path := bodyOf(report), w.path(ws, callID)
	status, answer := w.post(t, path, carrier.Sign(secret, w.now(), baseURL+path, body), body)
	var instruction carrier.Instruction
	if status == http.StatusOK {
		if err := json.Unmarshal(answer, &instruction); err != nil {
			t.Fatalf("answer %q: %v", answer, err)
		}
	}
	return status, instruction
}

func (w *world) post(t fatal, path, signature string, body []byte) (int, []byte) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, w.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%v", err)
	}
	if signature != "" {
		request.Header.Set(carrier.SignatureHeader, signature)
	}
	if w.url == "" {
		recorder := httptest.NewRecorder()
		lifecycle.Callbacks(w.calls, baseURL).ServeHTTP(recorder, request)
		return recorder.Code, recorder.Body.Bytes()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("POST %s: %v", path, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("POST %s: %v", path, err)
	}
	return response.StatusCode, answer
}

func (w *world) read(t fatal, callID conversation.CallID) dynamo.StoredCall {
	t.Helper()
	call, err := w.store.CallRecord(w.ctx, w.workspace, callID)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return call
}

// item is an item as it is.
func (w *world) item(t fatal, table string, key ...string) map[string]types.AttributeValue {
	t.Helper()
	pk := strings.Join(append([]string{string(w.workspace)}, key...), "#")
	out, err := w.db.GetItem(w.ctx, &dynamodb.GetItemInput{
		TableName: &table, Key: map[string]types.AttributeValue{dynamo.PartitionKey: &types.AttributeValueMemberS{Value: pk}},
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return out.Item
}

func (w *world) callItem(t fatal, callID conversation.CallID) map[string]types.AttributeValue {
	t.Helper()
	return w.item(t, w.names.ConversationsTable, "call", string(callID))
}

func (w *world) slots(t fatal) string {
	t.Helper()
	return numberOf(w.item(t, w.names.WorkspacesTable, "slots", string(w.assistant)), "active_calls")
}

func (w *world) balance(t fatal) string {
	t.Helper()
	return numberOf(w.item(t, w.names.WorkspacesTable, "workspace", string(w.workspace)), "balance")
}

func numberOf(it map[string]types.AttributeValue, name string) string {
	n, _ := it[name].(*types.AttributeValueMemberN)
	if n == nil {
		return ""
	}
	if strings.Contains(n.Value, ".") { // AWS keeps no zeros at the end
		return strings.TrimRight(strings.TrimRight(n.Value, "0"), ".")
	}
	return n.Value
}

func textOf(it map[string]types.AttributeValue, name string) string {
	s, _ := it[name].(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}
