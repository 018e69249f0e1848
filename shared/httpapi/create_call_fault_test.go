package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/shared/conversation"
)

// What DynamoDB answers when items are in another transaction's hands.
const (
	conflict = `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionConflictException","message":"CAUSE: busy"}`
	canceled = `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","message":"CAUSE: busy","CancellationReasons":[%s]}`
)

// canceledFor is a transaction's answer with a reason for each of its items.
func canceledFor(reasons ...string) string {
	var list []string
	for _, reason := range reasons {
		list = append(list, fmt.Sprintf(`{"Code":%q}`, reason))
	}
	return fmt.Sprintf(canceled, strings.Join(list, ","))
}

// conflicts answers as DynamoDB does, for the form of the write.
func conflicts(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), "TransactWriteItems") {
		return fails(http.StatusBadRequest, conflict)(r)
	}
	var transaction struct{ TransactItems []json.RawMessage }
	if err := json.Unmarshal(peek(r), &transaction); err != nil {
		return nil, err
	}
	reasons := make([]string, len(transaction.TransactItems))
	for i := range reasons {
		reasons[i] = "None"
	}
	reasons[len(reasons)-1] = "TransactionConflict"
	return fails(http.StatusBadRequest, canceledFor(reasons...))(r)
}

// peek reads a request's body and leaves it to be read again.
func peek(r *http.Request) []byte {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body
}

// strike is a fault at one of a request's AWS calls, which are counted from 0 with their
// repetitions.
type strike struct {
	from, to int   // the calls that it strikes
	takes    bool  // the first of them takes effect, and only its answer is lost
	answer   fault // in AWS's place
	harmless bool  // the client sees nothing of it
}

const attempts = 8 // of one call

// strikes are all ways in which the nth call can fail.
func strikes(n int) map[string]strike {
	denied := fails(http.StatusBadRequest, forbidden) // which is never repeated
	return map[string]strike{
		"once":                                {n, n, false, cutOff, true},
		"once, after taking effect":           {n, n, true, cutOff, true},
		"conflict":                            {n, n, false, conflicts, true},
		"for good":                            {n, n, false, denied, false},
		"for good, after taking effect":       {n, n, true, denied, false},
		"always":                              {n, n + attempts - 1, false, cutOff, false},
		"always, after taking effect":         {n, n + attempts - 1, true, cutOff, false},
		"all from there":                      {n, forEver, false, denied, false},
		"all from there, after taking effect": {n, forEver, true, denied, false},
	}
}

// under is a store whose AWS calls are struck so. With forgets, DynamoDB doesn't recognise
// a transaction that comes again, as it does for ten minutes.
func under(t testing.TB, s strike, forgets bool) aLine {
	store := newStore(t)
	forward := store.HTTPClient
	asked := atomic.Int64{}
	store.meddle = func(operation string, r *http.Request) (*http.Response, error) {
		n := int(asked.Add(1)) - 1
		if forgets && operation == "dynamodb:TransactWriteItems" {
			if err := forgetToken(r); err != nil {
				return nil, err
			}
		}
		if n < s.from || n > s.to {
			return nil, nil
		}
		if s.takes && (n == s.from || s.to < forEver) {
			if response, err := forward.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
		}
		return s.answer(r)
	}
	return store
}

// forgetToken takes from a transaction the token by which it is recognised.
func forgetToken(r *http.Request) error {
	var transaction map[string]json.RawMessage
	if err := json.Unmarshal(peek(r), &transaction); err != nil {
		return err
	}
	delete(transaction, "ClientRequestToken")
	body, err := json.Marshal(transaction)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return err
}

// outcome is what the carrier makes of a placement, and what others do meanwhile.
type outcome struct {
	answer placing
	happen func(office, *testing.T) func(conversation.CallRecord) error
	known  bool // the key has been seen before
	status int  // without a fault
	rings  bool // the phone may ring
}

var outcomes = map[string]outcome{
	"accepted":          {answer: accepts, status: 201, rings: true},
	"accepted too late": {answer: accepts, happen: office.stall, status: 201, rings: true},
	"called back":       {answer: accepts, happen: office.pickUp, status: 201, rings: true},
	"no answer":         {answer: says(http.StatusInternalServerError, ""), status: 201, rings: true},
	"refused":           {answer: refuses, status: 502},
	"refused too late":  {answer: refuses, happen: office.stall, status: 502},
	"refused, but rang": {answer: refuses, happen: office.pickUp, status: 500, rings: true},
	"replayed":          {answer: accepts, known: true, status: 201, rings: true},
}

// Whichever call to AWS fails, in whichever way: a call is placed once at most, its slot
// is held exactly as long as it is under way, its key names it or is free, no 502 is given
// while the phone may ring, and no 201 without a call. A failure that passes isn't seen.
func TestFaultsOfPlacing(t *testing.T) {
	slots := make(chan struct{}, 32) // most of the time they wait
	var group sync.WaitGroup
	tried := 0
	for name, o := range outcomes {
		for n, operation := range tryPlacing(t, name, o, strike{from: forEver}, false) {
			if n < 3 && name != "accepted" { // the key, the limit, the reading: before any outcome
				continue
			}
			for kind, s := range strikes(n) {
				for _, forgets := range []bool{false, true} {
					if forgets && !(s.takes && operation == "dynamodb:TransactWriteItems") {
						continue
					}
					tried++
					group.Go(func() {
						slots <- struct{}{}
						defer func() { <-slots }()
						tryPlacing(t, fmt.Sprintf("%s, %s (%d) fails %s, forgets %t", name, operation, n, kind, forgets), o, s, forgets)
					})
				}
			}
		}
	}
	group.Wait()
	t.Logf("%d faults", tried)
}

// tryPlacing places a call under a fault, checks what is left, and repeats the request
// when the fault is over. It returns the calls that the request made.
func tryPlacing(t *testing.T, name string, c outcome, s strike, forgets bool) []string {
	clean := newStore(t)
	o := newOffice(t, clean)
	route := limitedTo(CreateCall, Limit{PerSecond: 1000, PerWorkspace: true})
	healed := Handler(o.service(clean), route)
	if c.known {
		isAccepted(t, o.post(t, healed, bodyWith(), withKey("one")...))
	}
	o.exchange.answer = c.answer
	if c.happen != nil {
		o.exchange.answer = meanwhile(t, clean, c.answer, c.happen(o, t))
	}
	struck := under(t, s, forgets)
	got := o.post(t, Handler(o.service(struck), route), bodyWith(), withKey("one")...)
	asked := struck.taken()
	if got.status != c.status && (s.harmless || s.from == forEver || got.status != http.StatusInternalServerError && got.status != http.StatusCreated) {
		t.Errorf("%s: %d %s, want %d", name, got.status, got.body, c.status)
	}
	if s.harmless && (len(o.exchange.placed) != 1 || (got.header.Get("Idempotent-Replay") != "") != c.known) {
		t.Errorf("%s: %v after %d placements, want 1, and a replay: %t", name, got.header, len(o.exchange.placed), c.known)
	}
	if strings.Contains(got.body, "CAUSE") {
		t.Errorf("%s: the answer tells the cause: %s", name, got.body)
	}
	o.checkPlacing(t, name, c, got)

	o.exchange.answer = c.answer
	again := o.post(t, healed, bodyWith(), withKey("one")...)
	if again.status != http.StatusCreated && again.status != http.StatusBadGateway || again.status == http.StatusBadGateway && c.rings && c.happen == nil {
		t.Errorf("%s: repeated: %d %s, want 201, or 502 of a carrier that refuses", name, again.status, again.body)
	}
	if got.status == http.StatusCreated {
		checkReplay(t, name, again, answered{body: got.body})
	}
	o.checkPlacing(t, name+", repeated", c, again)
	return asked
}

// checkPlacing holds what is stored, and what the carrier was asked, to what was answered.
func (o office) checkPlacing(t *testing.T, name string, c outcome, got answered) {
	calls, owner := o.calls(t), o.keyNames(t, "one")
	active, owned := 0, false
	for _, call := range calls {
		if call.Active() {
			active++
		}
		owned = owned || call.CallID == owner
		if call.Active() && owner != call.CallID {
			t.Errorf("%s: call %s is %s and its key names %q", name, call.CallID, call.Status, owner)
		}
		if call.Status == conversation.CallError && (call.EndReason == "" || call.EndedAt.IsZero()) {
			t.Errorf("%s: call %s is in error for %q since %s", name, call.CallID, call.EndReason, call.EndedAt)
		}
	}
	if slots := o.slots(t, oneNumber); slots != active {
		t.Errorf("%s: %d slots are held by %d active calls", name, slots, active)
	}
	if placed := o.placedIn(t, time.Now()); placed != len(calls) {
		t.Errorf("%s: %d in the hour of %d calls", name, placed, len(calls))
	}
	if owner != "" && !owned {
		t.Errorf("%s: the key names %s, which is no call", name, owner)
	}
	for callID, placed := range o.exchange.placements() {
		if placed > 1 {
			t.Errorf("%s: call %s was placed %d times", name, callID, placed)
		}
		if _, err := o.store.CallRecord(t.Context(), o.ws, callID); err != nil {
			t.Errorf("%s: call %s was placed without a row: %v", name, callID, err)
		}
	}
	switch got.status {
	case http.StatusCreated:
		var body acceptedCall
		if err := json.Unmarshal([]byte(got.body), &body); err != nil || body.Call.CallID != owner {
			t.Errorf("%s: 201 of %s, %v; the key names %s", name, body.Call.CallID, err, owner)
		}
	case http.StatusBadGateway:
		if owner != "" || active != 0 || c.rings && c.happen == nil {
			t.Errorf("%s: 502 with %d active calls, and the key names %q", name, active, owner)
		}
	}
}

// A request without a key, too, knows its own write when the answer to it was lost.
func TestLostAnswerWithoutKey(t *testing.T) {
	clean := newStore(t)
	o := newOffice(t, clean)
	for _, forgets := range []bool{false, true} {
		before := len(o.exchange.placed)
		struck := under(t, strike{2, 2, true, cutOff, true}, forgets)
		call := isAccepted(t, o.post(t, o.unlimited(struck), bodyWith()))
		if asked := struck.taken()[2]; asked != "dynamodb:TransactWriteItems" {
			t.Fatalf("the answer to %s was lost", asked)
		}
		if len(o.exchange.placed) != before+1 || o.exchange.placements()[call.CallID] != 1 || o.slots(t, oneNumber) != before+1 || len(o.calls(t)) != before+1 {
			t.Errorf("%d placements, %d slots, %d calls; want %d of each", len(o.exchange.placed), o.slots(t, oneNumber), len(o.calls(t)), before+1)
		}
	}
}

// Two requests at once that meet at the counters: DynamoDB cancels one or both, the SDK
// leaves that to its caller, and both succeed.
func TestConflictsAtTheCounters(t *testing.T) {
	o := newOffice(t, newStore(t))
	const none = "None"
	for name, answers := range map[string][]string{
		"the slots":     {canceledFor(none, none, none, "TransactionConflict", none)},
		"all counters":  {canceledFor(none, none, "TransactionConflict", "TransactionConflict", "TransactionConflict")},
		"several times": {conflict, canceledFor(none, none, "TransactionConflict", none, none), conflict},
		"throttled too": {canceledFor(none, none, "ThrottlingError", "TransactionConflict", none), canceledFor(none, none, "ProvisionedThroughputExceeded", none, none)},
	} {
		before := o.slots(t, oneNumber)
		var group sync.WaitGroup
		for n := range 2 {
			group.Go(func() {
				store := newStore(t)
				turn := atomic.Int64{}
				store.meddle = func(operation string, r *http.Request) (*http.Response, error) {
					if operation != "dynamodb:TransactWriteItems" {
						return nil, nil
					}
					if i := int(turn.Add(1)); i <= len(answers) {
						return fails(http.StatusBadRequest, answers[i-1])(r)
					}
					return nil, nil
				}
				got := o.post(t, o.unlimited(store), bodyWith(), withKey(fmt.Sprint(name, n))...)
				if got.status != http.StatusCreated || got.header.Get("Idempotent-Replay") != "" {
					t.Errorf("%s: %d %v %s, want 201", name, got.status, got.header, got.body)
				}
			})
		}
		group.Wait()
		if slots := o.slots(t, oneNumber); slots != before+2 {
			t.Errorf("%s: %d slots more, want 2", name, slots-before)
		}
	}
}

// A conflict that lasts is the service's failure, in time, and nothing is written.
func TestLastingConflict(t *testing.T) {
	store := newStore(t)
	o := newOffice(t, store)
	store.meddle = times(forEver, "dynamodb:TransactWriteItems", conflicts)
	start := time.Now()
	got := o.post(t, o.unlimited(store), bodyWith(), withKey("one")...)
	want[Problem](t, got, http.StatusInternalServerError)
	if took := time.Since(start); took > 3*time.Second || len(o.calls(t)) != 0 || len(o.exchange.placed) != 0 || o.keyNames(t, "one") != "" {
		t.Errorf("after %s: %d calls, %d placements, the key names %q; want none", took, len(o.calls(t)), len(o.exchange.placed), o.keyNames(t, "one"))
	}
}

// A condition that failed beside a conflict is no answer yet: the other transaction may be
// the same request, writing the key and taking the last call of the hour.
func TestConflictBesideACondition(t *testing.T) {
	store := newStore(t)
	o := newOfficeWithin(t, store, conversation.Limits{ConcurrentCalls: 1, CallsPerHour: 1, LongestCallSeconds: 60})
	var first answered
	once := sync.Once{}
	second := newStore(t)
	second.meddle = func(operation string, r *http.Request) (response *http.Response, err error) {
		if operation == "dynamodb:TransactWriteItems" {
			once.Do(func() {
				first = o.post(t, o.unlimited(store), bodyWith(), withKey("one")...)
				response, err = fails(http.StatusBadRequest, canceledFor("None", "TransactionConflict", "ConditionalCheckFailed", "ConditionalCheckFailed", "None"))(r)
			})
		}
		return response, err
	}
	got := o.post(t, o.unlimited(second), bodyWith(), withKey("one")...)
	isAccepted(t, first)
	checkReplay(t, "the second", got, first)
	if len(o.exchange.placed) != 1 {
		t.Errorf("%d placements, want 1", len(o.exchange.placed))
	}
}

// A request that meets a key whose call is refused before it can read it: the key is free
// again, so the request places a call of its own.
func TestKeyIsFreedMeanwhile(t *testing.T) {
	o := newOffice(t, newStore(t))
	store := newStore(t)
	met := fails(http.StatusBadRequest, canceledFor("None", "ConditionalCheckFailed", "None", "None", "None"))
	store.meddle = times(1, "dynamodb:TransactWriteItems", met)
	got := o.post(t, o.unlimited(store), bodyWith(), withKey("one")...)
	call := isAccepted(t, got)
	if got.header.Get("Idempotent-Replay") != "" || o.keyNames(t, "one") != call.CallID || o.exchange.placements()[call.CallID] != 1 {
		t.Errorf("%v, the key names %s, placed %v; want a call of its own", got.header, o.keyNames(t, "one"), o.exchange.placements())
	}
	store.meddle = times(forEver, "dynamodb:TransactWriteItems", met)
	want[Problem](t, o.post(t, o.unlimited(store), bodyWith(), withKey("two")...), http.StatusInternalServerError)
}

// Large variables are stored before the call: without them there is none.
func TestVariablesCannotBeStored(t *testing.T) {
	body := bodyWith("call_variables", variables(50, longName(8), quoted(strings.Repeat("😀", 5000))))
	for name, answer := range map[string]fault{
		"forbidden": fails(http.StatusForbidden, "<Error><Code>AccessDenied</Code><Message>CAUSE</Message></Error>"),
		"lost":      cutOff,
	} {
		store := newStore(t)
		o := newOffice(t, store)
		store.meddle = times(forEver, "s3:PUT", answer)
		want[Problem](t, o.post(t, o.unlimited(store), body, withKey("one")...), http.StatusInternalServerError)
		if len(o.calls(t)) != 0 || o.slots(t, oneNumber) != 0 || len(o.exchange.placed) != 0 {
			t.Errorf("%s: there is something of the call", name)
		}
		store.meddle = times(3, "s3:PUT", cutOff)
		got := o.post(t, o.unlimited(store), body, withKey("one")...)
		isAccepted(t, got)
		checkReplay(t, name, o.post(t, o.unlimited(newStore(t)), body, withKey("one")...), got)
	}
}
