package httpapi

import (
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
		store.taken()
		ask(t, request.handler, http.MethodGet, request.target, request.auth)
		counts[name] = map[string]int{}
		asked := store.taken()
		for _, operation := range asked {
			counts[name][operation]++
			if !granted(request.route, operation) {
				t.Errorf("%s: %s isn't allowed to %s", name, request.route.Function, operation)
			}
		}
		if budget, ok := budgets[name]; !ok || len(asked) > budget {
			t.Errorf("%s: %d AWS calls %v, want %d at most", name, len(asked), asked, budget)
		}
	}
	text, err := json.MarshalIndent(counts, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "aws_calls.json", append(text, '\n'))
	if price := pricePerMillion(counts["GET one call"], 8); price > 2.60 {
		t.Errorf("a million GETs of 8 KB cost $%.2f, want $2.60 at most", price)
	} else {
		t.Logf("a million GETs of 8 KB cost $%.2f", price)
	}
}

// granted tells whether the row lets its function do what it did.
func granted(route Route, operation string) bool {
	return slices.ContainsFunc(route.AllGrants(), func(grant Grant) bool {
		return slices.Contains(grant.Actions, strings.Replace(operation, "s3:GET", "s3:GetObject", 1))
	})
}

// List prices of us-east-1 in dollars per million, without the free tier.
const (
	httpAPIRequest = 1.00
	lambdaRequest  = 0.20
	lambdaGBSecond = 13.3334 // arm64
	writeUnit      = 0.625   // on demand, up to 1 KB
	readUnit       = 0.125   // on demand, up to 4 KB, strongly consistent
)

// What a function has, and is assumed to take for one GET.
const (
	lambdaGB      = 0.5
	billedSeconds = 0.010
)

// pricePerMillion is what a million requests of one item cost, in dollars.
func pricePerMillion(calls map[string]int, itemKB int) float64 {
	price := httpAPIRequest + lambdaRequest + lambdaGBSecond*lambdaGB*billedSeconds
	price += float64(calls["dynamodb:UpdateItem"]) * writeUnit
	price += float64(calls["dynamodb:GetItem"]*((itemKB+3)/4)) * readUnit
	return price
}
