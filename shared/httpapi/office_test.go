package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"parley/shared/carrier"
	"parley/shared/carrier/phone"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// exchange is the far end of a carrier: a server that speaks Lambda's Invoke protocol, as
// simulate-carrier does behind Lambda, and keeps what it was asked.
type exchange struct {
	client *carrier.Simulator
	// answer answers a placement, by default with an id; it is called without the lock.
	answer func(http.ResponseWriter, *http.Request, carrier.Placement)

	mu     sync.Mutex
	placed []carrier.Placement
	ended  []carrier.SimulatorRequest
}

func newExchange(t testing.TB) *exchange {
	t.Helper()
	x := &exchange{answer: accepts}
	server := httptest.NewServer(x)
	t.Cleanup(server.Close)
	x.client = carrier.NewSimulator(aws.Config{
		Region: "us-east-1", BaseEndpoint: &server.URL,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}, "simulate-carrier", []byte("a secret of the tests"))
	return x
}

func (x *exchange) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request carrier.SimulatorRequest
	err := json.NewDecoder(r.Body).Decode(&request)
	x.mu.Lock()
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case request.Op == carrier.OpPlace:
		x.placed = append(x.placed, request.Placement)
		x.mu.Unlock()
		x.answer(w, r, request.Placement)
		return
	case request.Op == carrier.OpEnd:
		x.ended = append(x.ended, request)
		says(http.StatusOK, `{"status":200}`)(w, r, request.Placement)
	default:
		says(http.StatusOK, `{"status":404}`)(w, r, request.Placement)
	}
	x.mu.Unlock()
}

// placements are how often each call was placed.
func (x *exchange) placements() map[conversation.CallID]int {
	x.mu.Lock()
	defer x.mu.Unlock()
	counts := map[conversation.CallID]int{}
	for _, p := range x.placed {
		counts[p.CallID]++
	}
	return counts
}

type placing = func(http.ResponseWriter, *http.Request, carrier.Placement)

func accepts(w http.ResponseWriter, r *http.Request, p carrier.Placement) {
	says(http.StatusOK, `{"status":200,"carrier_id":"sim-`+string(p.CallID)+`"}`)(w, r, p)
}

var refuses = says(http.StatusOK, `{"status":403,"error":"CAUSE: no such line"}`)

func says(status int, body string, header ...string) placing {
	return func(w http.ResponseWriter, _ *http.Request, _ carrier.Placement) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// Assistants of an office, by what numbers they have.
const (
	oneNumber  conversation.AssistantID = "0191d1c0-0000-7000-8000-000000000a01"
	twoNumbers conversation.AssistantID = "0191d1c0-0000-7000-8000-000000000a02"
	noNumber   conversation.AssistantID = "0191d1c0-0000-7000-8000-000000000a03"
	disabled   conversation.AssistantID = "0191d1c0-0000-7000-8000-000000000a04"
)

const (
	onlyNumber   = "+12025550150" // of oneNumber
	firstNumber  = "+12025550151" // of twoNumbers
	secondNumber = "+12025550152"
	inboundOnly  = "+12025550153"
	londonNumber = "+442079460150"
	idleNumber   = "+12025550154" // of disabled
	customer     = "+12025550199"
)

// office is a workspace that places calls: its key, and the carrier that it alone is on.
type office struct {
	tenant
	store    aLine
	exchange *exchange
	carrier  string
}

// newOffice makes a workspace with assistants, numbers and money, and the spec's limits.
func newOffice(t testing.TB, store aLine) office {
	t.Helper()
	return newOfficeWithin(t, store, conversation.Limits{ConcurrentCalls: 10, CallsPerHour: 200, LongestCallSeconds: 3600})
}

func newOfficeWithin(t testing.TB, store aLine, limits conversation.Limits) office {
	t.Helper()
	ws := conversation.WorkspaceID(conversation.NewID())
	o := office{store: store, exchange: newExchange(t), carrier: "test-" + string(ws)}
	definition := dynamo.Definition{Workspace: conversation.Workspace{
		WorkspaceID: ws, Name: "Harbour Hotel", Country: "US", Currency: "USD", Carrier: o.carrier, Limits: limits,
	}}
	add := func(id conversation.AssistantID, name string, numbers ...conversation.PhoneNumber) {
		definition.Assistants = append(definition.Assistants, conversation.AssistantConfig{
			Assistant: conversation.Assistant{AssistantID: id, AssistantName: name, WorkspaceID: ws, PhoneNumbers: numbers},
			Enabled:   id != disabled, Prompt: "You are the front desk.", Greeting: "Hello {{participant_name}}.",
		})
	}
	number := func(number, country string, outbound bool) conversation.PhoneNumber {
		return conversation.PhoneNumber{PhoneNumber: number, Country: country, OutboundEnabled: outbound}
	}
	add(oneNumber, "Front desk", number(onlyNumber, "US", true))
	add(twoNumbers, "Reservations", number(firstNumber, "US", true), number(inboundOnly, "US", false),
		number(secondNumber, "US", true), number(londonNumber, "GB", true))
	add(noNumber, "Concierge")
	add(disabled, "Night shift", number(idleNumber, "US", true))
	if err := store.Define(t.Context(), dynamo.Definition{}, definition, "10"); err != nil {
		t.Fatal(err)
	}
	o.tenant = insertKey(t, store, conversation.APIKey{WorkspaceID: ws, Blocks: conversation.AllBlocks(), PlaceCalls: true})
	return o
}

// service is what the office's API stands on.
func (o office) service(store aLine) Service {
	return Service{Store: store.Store, BaseURL: baseURL, Calling: Calling{
		Carriers: map[string]carrier.Carrier{o.carrier: o.exchange.client}, Country: phone.Country,
		Pickup: time.Minute, Longest: func(seconds int) time.Duration { return time.Duration(seconds) * time.Second },
	}}
}

// unlimited are the office's endpoints without the limits of requests, which are told
// apart from those of calls in tests of their own.
func (o office) unlimited(store aLine) http.Handler {
	return Handler(o.service(store), limitedTo(CreateCall, Limit{}), limitedTo(GetCall, Limit{}))
}

// at is unlimited by a clock that stands still.
func (o office) at(store aLine, now time.Time, routes ...Route) http.Handler {
	service := o.service(store)
	clock := func() time.Time { return now }
	service.Store = service.Store.WithClock(clock)
	a := newAPI(service, routes)
	a.now, a.keys.now, a.limits.now = clock, clock, clock
	return a.handler(func(string) bool { return true })
}

// post asks for a call. header are names, each followed by its value.
func (k tenant) post(t testing.TB, handler http.Handler, body string, header ...string) answered {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/calls", strings.NewReader(body))
	r.Header.Set("Authorization", k.auth)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header[http.CanonicalHeaderKey(header[i])] = []string{header[i+1]}
	}
	return send(t, handler, r)
}

// bodyWith is a request in order, with fields changed or added; an empty value leaves a
// field out.
func bodyWith(fields ...string) string {
	values := map[string]string{"assistant_id": quoted(string(oneNumber)), "to": quoted(customer)}
	for i := 0; i < len(fields); i += 2 {
		values[fields[i]] = fields[i+1]
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] != "" {
			parts = append(parts, quoted(name)+":"+values[name])
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func quoted(text string) string {
	value, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(value)
}

// withKey is the header of a request that may be repeated.
func withKey(key string) []string { return []string{"Idempotency-Key", key} }

// acceptedCall is the body of a 201, as a client decodes it.
type acceptedCall struct{ Call conversation.Call }

// accepted wants a 201.
func isAccepted(t testing.TB, got answered) conversation.Call {
	t.Helper()
	return want[acceptedCall](t, got, http.StatusCreated).Call
}

// refused wants a problem with these details, in any order.
func isRefused(t testing.TB, name string, got answered, status int, code string, details ...string) {
	t.Helper()
	var problem Problem
	_ = json.Unmarshal([]byte(got.body), &problem)
	slices.Sort(details)
	if got.status != status || problem.Code != code || !slices.Equal(problem.Detail, details) {
		t.Errorf("%s: %d %.1000s\nwant %d %s %q", name, got.status, got.body, status, code, details)
	}
}

// raw is the item of a table, as it is.
func raw(t testing.TB, table, pk string) map[string]types.AttributeValue {
	t.Helper()
	out, err := dynamodb.NewFromConfig(shared.aws).GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &table, ConsistentRead: aws.Bool(true), Key: map[string]types.AttributeValue{dynamo.PartitionKey: textValue(pk)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

// set writes a number into an item.
func set(t testing.TB, table, pk, attribute, number string) {
	t.Helper()
	_, err := dynamodb.NewFromConfig(shared.aws).UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &table, Key: map[string]types.AttributeValue{dynamo.PartitionKey: textValue(pk)},
		UpdateExpression: aws.String("SET #a = :v"), ExpressionAttributeNames: map[string]string{"#a": attribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{":v": &types.AttributeValueMemberN{Value: number}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func textValue(text string) types.AttributeValue { return &types.AttributeValueMemberS{Value: text} }

func numberOf(t testing.TB, item map[string]types.AttributeValue, attribute string) int {
	t.Helper()
	value, ok := item[attribute].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(value.Value)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// slots is how many calls an assistant has at once, by its counter.
func (o office) slots(t testing.TB, assistant conversation.AssistantID) int {
	t.Helper()
	return numberOf(t, raw(t, shared.stage.WorkspacesTable, o.slotsID(assistant)), "active_calls")
}

func (o office) slotsID(assistant conversation.AssistantID) string {
	return fmt.Sprintf("%s#slots#%s", o.ws, assistant)
}

func (o office) workspaceID() string { return fmt.Sprintf("%s#workspace#%s", o.ws, o.ws) }

func (o office) hourID(at time.Time) string {
	return fmt.Sprintf("%s#placed#%s", o.ws, at.UTC().Format("2006-01-02T15"))
}

// placedIn is how many calls count towards an hour.
func (o office) placedIn(t testing.TB, at time.Time) int {
	t.Helper()
	return numberOf(t, raw(t, shared.stage.CountersTable, o.hourID(at)), "placed")
}

// keyNames is the call that an idempotency key names; "" is none.
func (o office) keyNames(t testing.TB, key string) conversation.CallID {
	t.Helper()
	item := raw(t, shared.stage.ConversationsTable, fmt.Sprintf("%s#idempotency#%s", o.ws, dynamo.HashIdempotencyKey(key)))
	name, _ := item["call_id"].(*types.AttributeValueMemberS)
	if name == nil {
		return ""
	}
	return conversation.CallID(name.Value)
}

// record is a call with all that the service knows of it.
func (o office) record(t testing.TB, callID conversation.CallID) conversation.CallRecord {
	t.Helper()
	call, err := o.store.CallRecord(t.Context(), o.ws, callID)
	if err != nil {
		t.Fatal(err)
	}
	return call.CallRecord
}

// calls are all calls of the office.
func (o office) calls(t testing.TB) []conversation.CallRecord {
	t.Helper()
	page, err := o.store.Calls(t.Context(), o.ws, dynamo.CallQuery{IncludeTest: true}, dynamo.PageRequest{Limit: 100})
	if err != nil || page.Next != "" {
		t.Fatalf("more calls than a page, or %v", err)
	}
	var records []conversation.CallRecord
	for _, call := range page.Items {
		records = append(records, o.record(t, call.CallID))
	}
	return records
}
