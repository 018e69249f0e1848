package httpapi

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley/shared/conversation"
)

// budgets is how many AWS calls a request may take in a warm function (design: Budgets).
var budgets = map[string]int{
	"GET one call": 2, "GET one call, in S3": 3, "GET one message": 2, "GET one thread": 2, "GET a recording": 2,
	"list calls": 3, "list messages": 3, "list threads": 3, "list assistants": 3,
	"list calls, filtered": 4, "list messages, filtered": 4, "list threads, filtered": 4,
	"GET the document": 1, "refused: a block": 2, "refused: a parameter": 1, "not found": 2,
	"not authenticated": 1, "over the limit": 0,

	// The carrier's own call comes on top.
	"POST": 4, "POST, in S3": 5, "POST, replayed": 3, "POST, refused by the carrier": 4, "POST, no answer": 3,
	"POST, called back before the answer": 5, "POST, given up before the answer": 5, "POST, refused too late": 6,
	"POST, another's number": 3, "POST, busy": 3, "POST, not found": 2, "POST, a bad body": 1, "POST, not allowed": 1,
}

// A request of a key that the function has seen takes as many AWS calls as the golden
// file says, which is what a request costs.
func TestAWSCalls(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	few := anotherKey(t, store, k.ws, conversation.BlockCall)
	over := anotherKey(t, store, k.ws)
	for n := range 60 { // of which the filters below choose every third
		call, message, thread := callOf(k.ws, n), messageOf(k.ws, n), threadOf(k.ws, n)
		if n%3 != 0 {
			call.IsTest, message.Channel, thread.CloseReason = true, conversation.WhatsApp, conversation.GradingFailed
		}
		call.AssistantID = billing
		insertCalls(t, store, call)
		insertMessages(t, store, message)
		insertThreads(t, store, thread)
	}
	defineAssistants(t, store, k.ws)
	handler := api(store)
	limited := Handler(Service{Store: store.Store, BaseURL: baseURL}, limitedTo(ListCalls, Limit{PerHour: 1}))

	one := string(callOf(k.ws, 0).CallID)
	large := callOf(k.ws, 60)
	large.AssistantID = frontDesk
	large.Transcript[0].Content = strings.Repeat("x", 400_000)
	insertCalls(t, store, large)
	requests := map[string]struct {
		route   Route
		handler http.Handler
		auth    string
		target  string
	}{
		"GET one call":            {GetCall, handler, k.auth, "/v1/calls/" + one},
		"GET one call, in S3":     {GetCall, handler, k.auth, "/v1/calls/" + string(large.CallID)},
		"GET one message":         {GetMessage, handler, k.auth, "/v1/messages/" + one},
		"GET one thread":          {GetThread, handler, k.auth, "/v1/threads/" + one},
		"GET a recording":         {GetCallRecording, handler, k.auth, "/v1/calls/" + one + "/recording"},
		"GET the document":        {GetOpenAPI, handler, k.auth, "/open-api"},
		"list calls":              {ListCalls, handler, k.auth, "/v1/calls?include_test=true&assistant_id=" + string(billing)},
		"list messages":           {ListMessages, handler, k.auth, "/v1/messages"},
		"list threads":            {ListThreads, handler, k.auth, "/v1/threads"},
		"list assistants":         {ListAssistants, handler, k.auth, "/v1/assistants"},
		"list calls, filtered":    {ListCalls, handler, k.auth, "/v1/calls?from=2026-01-01&assistant_id=" + string(billing)},
		"list messages, filtered": {ListMessages, handler, k.auth, "/v1/messages?channel=sms"},
		"list threads, filtered":  {ListThreads, handler, k.auth, "/v1/threads?close_reason=graded"},
		"refused: a block":        {ListCalls, handler, few.auth, "/v1/calls?fields=costs"},
		"refused: a parameter":    {ListCalls, handler, k.auth, "/v1/calls?limit=0"},
		"not found":               {GetCall, handler, k.auth, "/v1/calls/" + someID},
		"not authenticated":       {ListCalls, handler, "Bearer nonsense", "/v1/calls"},
		"over the limit":          {ListCalls, limited, over.auth, "/v1/calls"},
	}
	counts := map[string]map[string]int{}
	for name, request := range requests {
		for range 2 { // warm
			ask(t, request.handler, http.MethodGet, request.target, request.auth)
		}
		counts[name] = countCalls(t, store, name, request.route, func() {
			ask(t, request.handler, http.MethodGet, request.target, request.auth)
		})
	}
	for name, counted := range callsOfPlacing(t) {
		counts[name] = counted
	}
	text, err := json.MarshalIndent(counts, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "aws_calls.json", append(text, '\n'))
}

// callsOfPlacing counts the AWS calls of requests to place a call, by how they end.
func callsOfPlacing(t *testing.T) map[string]map[string]int {
	t.Helper()
	route := limitedTo(CreateCall, Limit{PerSecond: 1000, PerWorkspace: true})
	counts := map[string]map[string]int{}
	for name, request := range map[string]struct {
		body, key string
		answer    placing
		happen    func(office, *testing.T) func(conversation.CallRecord) error
		mayNot    bool
		busy      bool
	}{
		"POST":                                {},
		"POST, in S3":                         {body: bodyWith("call_variables", variables(50, longName(8), quoted(strings.Repeat("😀", 5000))))},
		"POST, replayed":                      {key: "warm"},
		"POST, refused by the carrier":        {answer: refuses},
		"POST, no answer":                     {answer: says(http.StatusInternalServerError, "")},
		"POST, called back before the answer": {happen: office.pickUp},
		"POST, given up before the answer":    {happen: office.stall},
		"POST, refused too late":              {answer: refuses, happen: office.stall},
		"POST, another's number":              {body: bodyWith("from", quoted(firstNumber))},
		"POST, busy":                          {busy: true},
		"POST, not found":                     {body: bodyWith("assistant_id", quoted(someID))},
		"POST, a bad body":                    {body: "[]"},
		"POST, not allowed":                   {mayNot: true},
	} {
		store, clean := newStore(t), newStore(t)
		o := newOffice(t, clean)
		handler, k := Handler(o.service(store), route), o.tenant
		isAccepted(t, o.post(t, handler, bodyWith(), withKey("warm")...))
		if request.mayNot {
			k = anotherKey(t, clean, o.ws)
			k.post(t, handler, bodyWith())
		}
		if request.busy {
			set(t, shared.stage.WorkspacesTable, o.slotsID(oneNumber), "active_calls", "10")
		}
		if request.answer != nil {
			o.exchange.answer = request.answer
		}
		if request.happen != nil {
			o.exchange.answer = meanwhile(t, clean, o.exchange.answer, request.happen(o, t))
		}
		counts[name] = countCalls(t, store, name, route, func() {
			k.post(t, handler, cmp.Or(request.body, bodyWith()), withKey(cmp.Or(request.key, "one"))...)
		})
	}
	return counts
}

// countCalls counts the AWS calls of a request, and holds them to the budget and to what
// the row lets its function do.
func countCalls(t *testing.T, store aLine, name string, route Route, do func()) map[string]int {
	t.Helper()
	counts, all := map[string]int{}, 0
	for _, asked := range record(t, store, do) {
		counts[asked.operation]++
		all++
		for _, access := range asked.accesses {
			if !granted(route, access) {
				t.Errorf("%s: %s isn't allowed to %s on %s%s%s", name, route.Function, access.action, access.table, access.index, access.object)
			}
		}
	}
	if budget, ok := budgets[name]; !ok || all > budget {
		t.Errorf("%s: %d AWS calls %v, want %d at most", name, all, counts, budget)
	}
	return counts
}

// granted tells whether the row lets its function do what it did.
func granted(route Route, a access) bool {
	return slices.ContainsFunc(route.AllGrants(), func(grant Grant) bool {
		return slices.Contains(grant.Actions, a.action) && grant.Table == a.table && grant.Index == a.index &&
			(a.object == "") == (grant.Prefix == "") && strings.HasPrefix(a.object, grant.Prefix)
	})
}

// List prices of us-east-1 in dollars per million, without the free tier.
const (
	httpAPIRequest = 1.00
	lambdaRequest  = 0.20
	lambdaGBSecond = 13.3334 // arm64
	writeUnit      = 0.625   // on demand
	readUnit       = 0.125   // on demand
)

// Sizes of units, and what a function has and is assumed to take for one request; a POST
// waits for its carrier.
const (
	lambdaGB        = 0.5
	billedForGET    = 0.010 // seconds
	billedForPOST   = 0.100
	readUnitBytes   = 4 << 10
	writeUnitBytes  = 1 << 10
	transactionally = 2 // units for each unit
)

func pricePerMillion(asked []awsCall, billed float64) float64 {
	price := httpAPIRequest + lambdaRequest + lambdaGBSecond*lambdaGB*billed
	for _, call := range asked {
		price += float64(call.reads)*readUnit + float64(call.writes)*writeUnit
	}
	return price
}

// A request costs what the units that its calls take cost: strongly consistent reads by
// 4 KB, writes by 1 KB, twice in a transaction and once more for every index that they
// change. A POST of 1 KB has that much of the customer's own in its body.
func TestPrices(t *testing.T) {
	store := newStore(t)
	o := newOffice(t, store)
	handler := Handler(o.service(store), limitedTo(CreateCall, Limit{PerSecond: 1000, PerWorkspace: true}), GetCall)
	post := func() {
		const variables, name = `{"room":"12","nights":2}`, `"Ada Lovelace"`
		metadata := quoted(strings.Repeat("x", 1<<10-len(variables)-len(name)-len(`""`)))
		body := bodyWith("call_variables", variables, "customer_name", name, "metadata", metadata)
		isAccepted(t, o.post(t, handler, body, withKey(conversation.NewID())...))
	}
	call := callOf(o.ws, 0)
	call.Transcript[0].Content = strings.Repeat("x", 6<<10)
	insertCalls(t, store, call)
	get := func() { o.get(t, handler, "/v1/calls/"+string(call.CallID)) }
	for name, request := range map[string]struct {
		do             func()
		billed, budget float64
	}{
		"GETs of 8 KB":    {get, billedForGET, 2.60},
		"POSTs with 1 KB": {post, billedForPOST, 13.50},
	} {
		request.do() // warm
		calls := record(t, store, request.do)
		price := pricePerMillion(calls, request.billed)
		t.Logf("a million %s cost $%.2f", name, price)
		if price > request.budget {
			t.Errorf("a million %s cost $%.2f, want $%.2f at most: %+v", name, price, request.budget, calls)
		}
	}
}
