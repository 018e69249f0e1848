package httpapi

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// The answer has the spec's fields and no others; the carrier is asked once; the call is
// there to be read at once, holds a slot and counts towards the hour.
func TestCreateCall(t *testing.T) {
	store := newStore(t)
	o := newOffice(t, store)
	handler := o.unlimited(store)
	body := bodyWith("assistant_id", quoted(strings.ToUpper(string(twoNumbers))), "from", quoted(secondNumber), "customer_name", `"Ada <Lovelace>"`,
		"call_variables", `{"room":"12","nights":2.50,"vip":true}`, "metadata", `{"b":1.10,"a":[1,2]}`)
	got := o.post(t, handler, body, withKey("one")...)
	call := isAccepted(t, got)
	expected := fmt.Sprintf(`{"call":{"call_id":%q,"workspace_id":%q,"assistant_id":%q,"assistant_name":"Reservations","direction":"outbound",`+
		`"status":"queued","duration_seconds":0,"started_at":%q,"customer":{"name":"Ada <Lovelace>","phone":"+12025550199"},`+
		`"call_variables":{"room":"12","nights":2.50,"vip":true},"metadata":{"b":1.10,"a":[1,2]}}}`+"\n",
		call.CallID, o.ws, twoNumbers, call.StartedAt)
	if got.body != expected || got.header.Get("Idempotent-Replay") != "" {
		t.Errorf("%v %s\nwant %s", got.header, got.body, expected)
	}
	if !regexp.MustCompile(`"started_at":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`).MatchString(got.body) || time.Since(call.StartedAt.Time) > time.Minute {
		t.Errorf("started_at %s, want now with Z", call.StartedAt)
	}

	if diff := cmp.Diff([]carrier.Placement{{
		Ref:  carrier.Ref{WorkspaceID: o.ws, CallID: call.CallID},
		From: secondNumber, To: customer, MaxDuration: time.Hour + time.Minute,
		CallbackURL: fmt.Sprintf("%s/carriers/%s/%s/%s", baseURL, o.carrier, o.ws, call.CallID),
	}}, o.exchange.placed); diff != "" {
		t.Errorf("placements (-want +got):\n%s", diff)
	}
	shown := want[oneCall](t, o.get(t, handler, "/v1/calls/"+string(call.CallID)), http.StatusOK).Call
	call.CallType = conversation.Outbound
	if diff := cmp.Diff(call, shown); diff != "" {
		t.Errorf("GET (-POST +GET):\n%s", diff)
	}
	record := o.record(t, call.CallID)
	if record.CarrierID != "sim-"+string(call.CallID) || record.Number != secondNumber || record.Carrier != o.carrier || !record.HoldsSlot ||
		record.LongestSeconds != 3600 || record.IdempotencyKey != dynamo.HashIdempotencyKey("one") {
		t.Errorf("record %+v", record)
	}
	if slots, placed := o.slots(t, twoNumbers), o.placedIn(t, time.Now()); slots != 1 || placed != 1 || o.keyNames(t, "one") != call.CallID {
		t.Errorf("%d slots, %d in the hour, the key names %s; want 1, 1 and the call", slots, placed, o.keyNames(t, "one"))
	}
	overdue, err := store.OverdueCalls(t.Context(), call.StartedAt.Add(2*time.Minute+time.Millisecond), 1000)
	if err != nil || !slices.Contains(overdue, dynamo.OverdueCall{WorkspaceID: o.ws, CallID: call.CallID}) {
		t.Errorf("the sweep doesn't find the call a minute after its pickup: %v", err)
	}

	least := isAccepted(t, o.post(t, handler, bodyWith("call_variables", "null", "metadata", "null", "customer_name", "null", "from", "null")))
	if diff := cmp.Diff(conversation.Call{
		CallID: least.CallID, WorkspaceID: o.ws, AssistantID: oneNumber, AssistantName: "Front desk", Direction: conversation.Outbound,
		Status: conversation.CallQueued, StartedAt: least.StartedAt, Customer: &conversation.Customer{Phone: customer},
	}, least); diff != "" {
		t.Errorf("without options (-want +got):\n%s", diff)
	}
}

// Which number is called from, and what is said when there is none.
func TestNumbers(t *testing.T) {
	store := newStore(t)
	o, other := newOfficeWithin(t, store, plenty), newOffice(t, store)
	handler := o.unlimited(store)
	elsewhere := quoted(conversation.NewID())
	const (
		noSuch    = "assistant_id: there is no such assistant in this workspace"
		noNumber_ = "from: there is no such number in this workspace"
		canada    = `"+14165550123"`
		london    = `"+442079460123"`
	)
	two, none := quoted(string(twoNumbers)), quoted(string(noNumber))
	refused := []struct {
		name, body   string
		status       int
		code, detail string
	}{
		{"unknown assistant", bodyWith("assistant_id", elsewhere), 404, "not_found", noSuch},
		{"and unknown number", bodyWith("assistant_id", elsewhere, "from", `"+12025550111"`), 404, "not_found", noSuch},
		{"unknown number", bodyWith("from", `"+12025550111"`), 404, "not_found", noNumber_},
		{"unknown number, other country", bodyWith("from", `"+12025550111"`, "to", london), 404, "not_found", noNumber_},
		{"another assistant's number", bodyWith("from", quoted(firstNumber)), 400, "invalid_request", "from: the number belongs to another assistant"},
		{"a number for incoming calls", bodyWith("assistant_id", two, "from", quoted(inboundOnly)), 400, "invalid_request", "from: the number is not enabled for outbound calls"},
		{"two numbers and no from", bodyWith("assistant_id", two), 400, "invalid_request",
			"from: required, as the assistant has more than one number enabled for outbound calls"},
		{"no number", bodyWith("assistant_id", none), 400, "invalid_request", "assistant_id: the assistant has no number that is enabled for outbound calls"},
		{"no number, but another's", bodyWith("assistant_id", none, "from", quoted(onlyNumber)), 400, "invalid_request", "from: the number belongs to another assistant"},
		{"another country", bodyWith("to", london), 403, "country_not_allowed", "to: calls from +12025550150 are allowed within US only"},
		{"the same calling code", bodyWith("to", canada), 403, "country_not_allowed", "to: calls from +12025550150 are allowed within US only"},
		{"home, from abroad", bodyWith("assistant_id", two, "from", quoted(londonNumber)), 403, "country_not_allowed", "to: calls from +442079460150 are allowed within GB only"},
		{"disabled", bodyWith("assistant_id", quoted(string(disabled))), 409, "assistant_disabled", "assistant_id: the assistant is disabled"},
	}
	for _, tt := range refused {
		isRefused(t, tt.name, o.post(t, handler, tt.body, withKey(tt.name)...), tt.status, tt.code, tt.detail)
		if o.keyNames(t, tt.name) != "" {
			t.Errorf("%s: the key is taken", tt.name)
		}
	}
	if len(o.exchange.placed) != 0 || o.placedIn(t, time.Now()) != 0 {
		t.Errorf("placed %v, %d in the hour; want none", o.exchange.placed, o.placedIn(t, time.Now()))
	}

	// Another workspace on the same carrier: its assistants and numbers are as absent.
	neighbour := other
	neighbour.carrier, neighbour.exchange = o.carrier, o.exchange
	onCarrier(t, store, other, o.carrier)
	isRefused(t, "another workspace's number", other.post(t, neighbour.unlimited(store), bodyWith("from", quoted(secondNumber))), 404, "not_found", noNumber_)

	for name, tt := range map[string]struct{ body, from string }{
		"the only one":        {bodyWith(), onlyNumber},
		"the only one, named": {bodyWith("from", quoted(onlyNumber)), onlyNumber},
		"one of two":          {bodyWith("assistant_id", two, "from", quoted(firstNumber)), firstNumber},
		"the other":           {bodyWith("assistant_id", two, "from", quoted(secondNumber)), secondNumber},
		"abroad, from abroad": {bodyWith("assistant_id", two, "from", quoted(londonNumber), "to", london), londonNumber},
	} {
		call := isAccepted(t, o.post(t, handler, tt.body))
		if got := o.record(t, call.CallID).Number; got != tt.from {
			t.Errorf("%s: called from %s, want %s", name, got, tt.from)
		}
	}
}

// onCarrier moves a workspace to another carrier, without its numbers, which that has already.
func onCarrier(t testing.TB, store aLine, o office, name string) {
	t.Helper()
	definition, err := store.Definition(t.Context(), o.ws)
	if err != nil {
		t.Fatal(err)
	}
	changed := definition
	changed.Workspace.Carrier = name
	changed.Assistants = slices.Clone(definition.Assistants)
	for i := range changed.Assistants {
		changed.Assistants[i].PhoneNumbers = nil
	}
	if err := store.Define(t.Context(), definition, changed, "0"); err != nil {
		t.Fatal(err)
	}
}

// A key that may not place calls is refused before anything else is looked at, by what the
// table says now.
func TestMayPlaceCalls(t *testing.T) {
	store := newStore(t)
	o := newOffice(t, store)
	reader := anotherKey(t, store, o.ws)
	handler := Handler(o.service(store), CreateCall)
	for _, body := range []string{bodyWith(), "", bodyWith("assistant_id", quoted(conversation.NewID()))} {
		store.taken()
		isRefused(t, body, reader.post(t, handler, body), http.StatusForbidden, "forbidden", "the API key may not place calls")
		for _, operation := range store.taken() {
			if operation != "dynamodb:GetItem" { // of the key
				t.Errorf("asked AWS for %s", operation)
			}
		}
	}
	got := tenant{}.post(t, handler, bodyWith())
	want[Problem](t, got, http.StatusUnauthorized)

	_, err := dynamodb.NewFromConfig(shared.aws).UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName:                 &shared.stage.WorkspacesTable,
		Key:                       map[string]types.AttributeValue{dynamo.PartitionKey: textValue("key#" + string(reader.key.APIKeyID))},
		UpdateExpression:          aws.String("SET place_calls = :yes"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":yes": &types.AttributeValueMemberBOOL{Value: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	isAccepted(t, reader.post(t, handler, bodyWith()))
}

// A key places one call, whatever the later requests say and however the workspace stands.
func TestIdempotencyKey(t *testing.T) {
	store := newStore(t)
	o, other := newOffice(t, store), newOffice(t, store)
	handler := o.unlimited(store)
	key := strings.Repeat("~", 254) + " "
	first := o.post(t, handler, bodyWith("customer_name", `"Ada"`, "metadata", `{"b":1,"a":1.10}`), withKey(key)...)
	call := isAccepted(t, first)
	checkReplay(t, "the same again", o.post(t, handler, bodyWith(), withKey(key)...), first)
	sibling := insertKey(t, store, conversation.APIKey{WorkspaceID: o.ws, PlaceCalls: true})
	checkReplay(t, "by another API key", sibling.post(t, handler, bodyWith(), withKey(key)...), first)
	checkReplay(t, "by another function", o.post(t, o.unlimited(newStore(t)), bodyWith(), withKey(key)...), first)

	set(t, shared.stage.WorkspacesTable, o.workspaceID(), "balance", "0")
	set(t, shared.stage.WorkspacesTable, o.slotsID(oneNumber), "active_calls", "10")
	set(t, shared.stage.CountersTable, o.hourID(time.Now()), "placed", "200")
	for name, body := range map[string]string{
		"no balance, no slot, no room in the hour": bodyWith(),
		"unknown assistant":                        bodyWith("assistant_id", quoted(conversation.NewID())),
		"unknown number":                           bodyWith("from", `"+12025550111"`),
		"no number chosen":                         bodyWith("assistant_id", quoted(string(twoNumbers))),
		"another country":                          bodyWith("to", `"+442079460123"`),
		"a disabled assistant":                     bodyWith("assistant_id", quoted(string(disabled))),
	} {
		checkReplay(t, name, o.post(t, handler, body, withKey(key)...), first)
	}
	isRefused(t, "a body in disorder", o.post(t, handler, "[]", withKey(key)...), http.StatusBadRequest, "invalid_request", notObject)
	if placed := o.placedIn(t, time.Now()); placed != 200 || len(o.exchange.placed) != 1 {
		t.Errorf("%d in the hour, %d placements; want no more than before and 1", placed, len(o.exchange.placed))
	}

	if theirs := isAccepted(t, other.post(t, other.unlimited(store), bodyWith(), withKey(key)...)); theirs.CallID == call.CallID {
		t.Error("a key reaches into another workspace")
	}

	// The call goes on, and its customer turns out to have another name.
	stored, err := store.CallRecord(t.Context(), o.ws, call.CallID)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, err := range []error{
		store.PickUpCall(t.Context(), stored.CallRecord, stored.CarrierID, now, now),
		store.EndCall(t.Context(), stored, dynamo.Ending{
			At: conversation.At(now), Reason: conversation.EndCustomerHungUp, DurationSeconds: 9, Transcript: []conversation.Turn{{Role: "user", Content: "Hello"}},
		}, now),
		store.CompleteCall(t.Context(), stored, dynamo.Completion{
			At: conversation.At(now), Customer: &conversation.Customer{CustomerID: "c", Name: "Countess Lovelace", Phone: customer, Country: "US"},
		}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := o.get(t, handler, "/v1/calls/"+string(call.CallID)).body; !strings.Contains(got, "Countess Lovelace") || !strings.Contains(got, `"status":"ended"`) {
		t.Errorf("the call is %s", got)
	}
	checkReplay(t, "when it is over", o.post(t, handler, bodyWith(), withKey(key)...), first)

	got := o.post(t, handler, bodyWith(), withKey(strings.Repeat("x", 256))...)
	isRefused(t, "256 characters", got, http.StatusBadRequest, "invalid_request", "Idempotency-Key: expected length <= 255")
	for _, text := range []string{"é", "名", "a\tb", "\x7f", "a\xffb"} {
		isRefused(t, text, o.post(t, handler, bodyWith(), withKey(text)...), http.StatusBadRequest, "invalid_request", "Idempotency-Key: expected string to be printable ASCII")
	}
	isRefused(t, "empty", o.post(t, handler, bodyWith(), withKey("")...), http.StatusBadRequest, "invalid_request", "Idempotency-Key: must not be empty")
}

// A request that was refused leaves its key free.
func TestIdempotencyKeyAfterErrors(t *testing.T) {
	store := newStore(t)
	o := newOffice(t, store)
	handler := o.unlimited(store)
	workspace, hour := o.workspaceID(), o.hourID(time.Now())
	slots := o.slotsID(oneNumber)
	reset := func() {
		set(t, shared.stage.WorkspacesTable, workspace, "balance", "1")
		set(t, shared.stage.WorkspacesTable, slots, "active_calls", "0")
		set(t, shared.stage.CountersTable, hour, "placed", "0")
		o.exchange.answer = accepts
	}
	tests := map[string]struct {
		body   string
		before func()
		status int
		code   string
	}{
		"400":              {body: bodyWith("to", "1"), status: 400, code: "invalid_request"},
		"400, a number":    {body: bodyWith("from", quoted(firstNumber)), status: 400, code: "invalid_request"},
		"404":              {body: bodyWith("assistant_id", quoted(conversation.NewID())), status: 404, code: "not_found"},
		"403, the country": {body: bodyWith("to", `"+442079460123"`), status: 403, code: "country_not_allowed"},
		"409, the wallet":  {before: func() { set(t, shared.stage.WorkspacesTable, workspace, "balance", "0") }, status: 409, code: "wallet_empty"},
		"409, the debt":    {before: func() { set(t, shared.stage.WorkspacesTable, workspace, "balance", "-0.01") }, status: 409, code: "wallet_empty"},
		"409, the slots":   {before: func() { set(t, shared.stage.WorkspacesTable, slots, "active_calls", "10") }, status: 409, code: "agent_busy"},
		"429":              {before: func() { set(t, shared.stage.CountersTable, hour, "placed", "200") }, status: 429, code: "rate_limit_exceeded"},
		"502":              {before: func() { o.exchange.answer = refuses }, status: 502, code: "provider_refused"},
	}
	for name, tt := range tests {
		reset()
		if tt.before != nil {
			tt.before()
		}
		if tt.body == "" {
			tt.body = bodyWith()
		}
		got := want[Problem](t, o.post(t, handler, tt.body, withKey(name)...), tt.status)
		if got.Code != tt.code || len(got.Detail) != 1 {
			t.Errorf("%s: %+v, want one problem, %s", name, got, tt.code)
		}
		if o.keyNames(t, name) != "" || o.slots(t, oneNumber)%10 != 0 {
			t.Errorf("%s: the key names %s, %d slots are taken; want it free", name, o.keyNames(t, name), o.slots(t, oneNumber))
		}
		reset()
		again := o.post(t, handler, bodyWith(), withKey(name)...)
		call := isAccepted(t, again)
		if again.header.Get("Idempotent-Replay") != "" {
			t.Errorf("%s: the same key is a replay afterwards", name)
		}
		checkReplay(t, name, o.post(t, handler, bodyWith(), withKey(name)...), again)
		if o.keyNames(t, name) != call.CallID {
			t.Errorf("%s: the key names %s, want %s", name, o.keyNames(t, name), call.CallID)
		}
	}
	if got := want[Problem](t, tenant{}.post(t, handler, bodyWith(), withKey("401")...), http.StatusUnauthorized); o.keyNames(t, "401") != "" {
		t.Errorf("%+v takes the key", got)
	}
}

// atOnce asks n times at once, by two functions in turn, and counts the answers by status.
func (o office) atOnce(t *testing.T, n int, handlers []http.Handler, key func(int) string) (map[int]int, []answered) {
	t.Helper()
	answers := make([]answered, n)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-start
			answers[i] = o.post(t, handlers[i%len(handlers)], bodyWith(), withKey(key(i))...)
		})
	}
	close(start)
	group.Wait()
	statuses := map[int]int{}
	for _, got := range answers {
		statuses[got.status]++
	}
	return statuses, answers
}

func eachItsOwn(n int) string { return fmt.Sprint("key ", n) }

func TestOneKeyAtOnce(t *testing.T) {
	store := newStore(t)
	o := newOffice(t, store)
	functions := []http.Handler{o.unlimited(store), o.unlimited(newStore(t))}
	statuses, answers := o.atOnce(t, 50, functions, func(int) string { return "one" })
	calls, replays := o.calls(t), 0
	for _, got := range answers {
		if got.header.Get("Idempotent-Replay") == "true" {
			replays++
		}
		if got.body != answers[0].body {
			t.Errorf("%s\nand %s", got.body, answers[0].body)
		}
	}
	if statuses[http.StatusCreated] != 50 || replays != 49 || len(calls) != 1 || len(o.exchange.placed) != 1 || o.slots(t, oneNumber) != 1 || o.placedIn(t, time.Now()) != 1 {
		t.Errorf("statuses %v, %d replays, %d calls, %d placements, %d slots, %d in the hour; want 50 with 201, 49 and 1 of all else",
			statuses, replays, len(calls), len(o.exchange.placed), o.slots(t, oneNumber), o.placedIn(t, time.Now()))
	}
}

func TestConcurrencyLimit(t *testing.T) {
	store := newStore(t)
	o, other := newOffice(t, store), newOffice(t, store)
	functions := []http.Handler{o.unlimited(store), o.unlimited(newStore(t))}
	statuses, answers := o.atOnce(t, 50, functions, eachItsOwn)
	if statuses[http.StatusCreated] != 10 || statuses[http.StatusConflict] != 40 || len(o.calls(t)) != 10 || len(o.exchange.placed) != 10 ||
		o.slots(t, oneNumber) != 10 || o.placedIn(t, time.Now()) != 10 {
		t.Errorf("statuses %v, %d calls, %d placements, %d slots, %d in the hour; want 10 with 201 and 40 with 409",
			statuses, len(o.calls(t)), len(o.exchange.placed), o.slots(t, oneNumber), o.placedIn(t, time.Now()))
	}
	for i, got := range answers {
		if got.status == http.StatusConflict {
			isRefused(t, "busy", got, http.StatusConflict, "agent_busy", "the assistant has as many calls as it may have at once; try again later")
		}
		if (got.status == http.StatusCreated) != (o.keyNames(t, eachItsOwn(i)) != "") {
			t.Errorf("%d, and the key names %q", got.status, o.keyNames(t, eachItsOwn(i)))
		}
	}
	isAccepted(t, o.post(t, functions[0], bodyWith("assistant_id", quoted(string(twoNumbers)), "from", quoted(firstNumber))))
	isAccepted(t, other.post(t, other.unlimited(store), bodyWith()))

	// The eleventh goes through when one of the ten is over.
	call := o.calls(t)[0]
	if call.AssistantID != oneNumber {
		call = o.calls(t)[1]
	}
	if err := store.FailCall(t.Context(), call, conversation.EndBusy, time.Now()); err != nil {
		t.Fatal(err)
	}
	isAccepted(t, o.post(t, functions[1], bodyWith()))
	isRefused(t, "the next", o.post(t, functions[1], bodyWith()), http.StatusConflict, "agent_busy", "the assistant has as many calls as it may have at once; try again later")
}

func TestWallet(t *testing.T) {
	store := newStore(t)
	o := newOffice(t, store)
	handler := o.unlimited(store)
	workspace := o.workspaceID()
	for balance, ok := range map[string]bool{"0": false, "0.00": false, "-1": false, "0.01": true, "1e-9": true} {
		set(t, shared.stage.WorkspacesTable, workspace, "balance", balance)
		before := len(o.calls(t))
		got := o.post(t, handler, bodyWith(), withKey(balance)...)
		if ok {
			isAccepted(t, got)
			continue
		}
		isRefused(t, balance, got, http.StatusConflict, "wallet_empty", "the workspace's balance is used up; try again after a top-up")
		if len(o.calls(t)) != before || o.slots(t, oneNumber) != before || o.placedIn(t, time.Now()) != before || len(o.exchange.placed) != before {
			t.Errorf("balance %s: something was written or placed", balance)
		}
	}
}

// The 201st call of the hour is refused until the next one begins, also when many come at once.
func TestCallsPerHour(t *testing.T) {
	store := newStore(t)
	o, other := newOfficeWithin(t, store, conversation.Limits{ConcurrentCalls: 1000, CallsPerHour: 200, LongestCallSeconds: 60}), newOffice(t, store)
	now := time.Date(2026, 3, 1, 12, 40, 0, 0, time.UTC)
	route := limitedTo(CreateCall, Limit{})
	functions := []http.Handler{o.at(store, now, route), o.at(newStore(t), now.Add(time.Second), route)}
	isAccepted(t, o.post(t, functions[0], bodyWith()))
	set(t, shared.stage.CountersTable, o.hourID(now), "placed", "195")
	statuses, answers := o.atOnce(t, 20, functions, eachItsOwn)
	if statuses[http.StatusCreated] != 5 || statuses[http.StatusTooManyRequests] != 15 || o.placedIn(t, now) != 200 || len(o.exchange.placed) != 6 || o.slots(t, oneNumber) != 6 {
		t.Errorf("statuses %v, %d in the hour, %d placements; want 5 more with 201, the others with 429", statuses, o.placedIn(t, now), len(o.exchange.placed))
	}
	for _, got := range answers {
		if got.status != http.StatusTooManyRequests {
			continue
		}
		isRefused(t, "beyond the hour", got, http.StatusTooManyRequests, "rate_limit_exceeded", "the workspace has placed as many calls as an hour may have")
		if after := got.header.Get("Retry-After"); after != "1200" && after != "1199" {
			t.Errorf("Retry-After %s, want until the hour is over", after)
		}
	}
	set(t, shared.stage.WorkspacesTable, o.workspaceID(), "balance", "0")
	got := o.post(t, functions[0], bodyWith())
	isRefused(t, "429 before 409", got, http.StatusTooManyRequests, "rate_limit_exceeded", "the workspace has placed as many calls as an hour may have")
	set(t, shared.stage.WorkspacesTable, o.workspaceID(), "balance", "1")

	isAccepted(t, o.post(t, o.at(store, now.Add(20*time.Minute), route), bodyWith()))
	isAccepted(t, other.post(t, other.at(store, now, route), bodyWith()))
}

// Ten requests a second for all keys of a workspace together, answered or refused; no
// other workspace and no other endpoint feels it.
func TestPlacingRequestsPerSecond(t *testing.T) {
	store := newStore(t)
	o, other := newOfficeWithin(t, store, plenty), newOffice(t, store)
	sibling := insertKey(t, store, conversation.APIKey{WorkspaceID: o.ws, Blocks: conversation.AllBlocks(), PlaceCalls: true})
	now := time.Date(2026, 3, 1, 12, 40, 0, 0, time.UTC)
	functions := []http.Handler{o.at(store, now, CreateCall, ListCalls), o.at(newStore(t), now, CreateCall, ListCalls)}
	statuses := map[int]int{}
	var refused []answered
	var mu sync.Mutex
	var group sync.WaitGroup
	for n := range 30 {
		group.Go(func() {
			k := []tenant{o.tenant, sibling}[n/2%2]
			got := k.post(t, functions[n%2], []string{bodyWith(), "[]"}[n%3/2])
			mu.Lock()
			defer mu.Unlock()
			if statuses[got.status]++; got.status == http.StatusTooManyRequests {
				refused = append(refused, got)
			}
		})
	}
	group.Wait()
	if statuses[http.StatusCreated]+statuses[http.StatusBadRequest] != 10 || statuses[http.StatusTooManyRequests] != 20 || len(o.exchange.placed) != statuses[http.StatusCreated] {
		t.Errorf("statuses %v with %d placements, want 10 that are answered and 20 with 429", statuses, len(o.exchange.placed))
	}
	for _, got := range refused {
		isRefused(t, "beyond the second", got, http.StatusTooManyRequests, "rate_limit_exceeded", "rate limit exceeded: 10 requests per second")
		if got.header.Get("Retry-After") != "1" || got.header.Get("RateLimit-Policy") != `"second";q=10;w=1` || got.header.Get("RateLimit") != `"second";r=0;t=1` {
			t.Errorf("headers %v", got.header)
		}
	}
	store.taken()
	want[Problem](t, sibling.post(t, functions[0], bodyWith()), http.StatusTooManyRequests)
	if asked := store.taken(); asked != nil {
		t.Errorf("a function that remembers its 429 asked AWS %v", asked)
	}
	isAccepted(t, other.post(t, other.at(store, now, CreateCall), bodyWith()))
	want[callList](t, o.get(t, functions[0], "/v1/calls"), http.StatusOK)
	isAccepted(t, o.post(t, o.at(store, now.Add(time.Second), CreateCall), bodyWith()))
}

// What can be told from the request alone comes before what the table knows, in design's order.
func TestOrderOfChecks(t *testing.T) {
	store := newStore(t)
	o := newOffice(t, store)
	reader := anotherKey(t, store, o.ws)
	now := time.Date(2026, 3, 1, 12, 40, 0, 0, time.UTC)
	handler := o.at(store, now, limitedTo(CreateCall, Limit{PerHour: 2, PerWorkspace: true}))
	want[Problem](t, reader.post(t, handler, "[]"), http.StatusForbidden)
	isAccepted(t, o.post(t, handler, bodyWith(), withKey("one")...))
	want[Problem](t, o.post(t, handler, "[]", withKey("one")...), http.StatusBadRequest)
	want[Problem](t, o.post(t, handler, "[]"), http.StatusTooManyRequests)
	want[Problem](t, o.post(t, handler, bodyWith(), withKey("one")...), http.StatusTooManyRequests)
	want[Problem](t, reader.post(t, handler, "[]"), http.StatusForbidden)
	want[Problem](t, tenant{}.post(t, handler, "[]"), http.StatusUnauthorized)
}

// A workspace on a carrier that the stage doesn't have is the service's failure, and
// nothing is written.
func TestUnknownCarrier(t *testing.T) {
	store := newStore(t)
	o := newOffice(t, store)
	service := o.service(store)
	service.Calling.Carriers = map[string]carrier.Carrier{"another": o.exchange.client}
	got := o.post(t, Handler(service, CreateCall), bodyWith(), withKey("one")...)
	want[Problem](t, got, http.StatusInternalServerError)
	if len(o.calls(t)) != 0 || o.keyNames(t, "one") != "" || !strings.Contains(logged.of(got.header.Get(requestIDHeader)), o.carrier) {
		t.Errorf("%d calls, the key names %q; want none, and the carrier's name in the log", len(o.calls(t)), o.keyNames(t, "one"))
	}
}

// Neither an idempotency key nor what a customer sends gets into the log.
func TestLogOfPlacing(t *testing.T) {
	store := newStore(t)
	o := newOffice(t, store)
	handler := o.unlimited(store)
	secret := "IDEMPOTENCY" + conversation.NewID()
	for n, answer := range []placing{refuses, says(http.StatusInternalServerError, "{}"), accepts} {
		o.exchange.answer = answer
		got := o.post(t, handler, bodyWith("metadata", quoted(secret), "customer_name", quoted(secret), "call_variables", `{"a":`+quoted(secret)+`}`),
			withKey(fmt.Sprint(secret, n))...)
		line, callID := logged.of(got.header.Get(requestIDHeader)), o.exchange.placed[n].CallID
		if wanted := n < 2; strings.Contains(line, string(callID)) != wanted {
			t.Errorf("answer %d: %d, and the log has %q of it; want the call there: %t", n, got.status, line, wanted)
		}
	}
	if logged.contains(secret) {
		t.Error("the log has what the customer sent")
	}
}
