package httpapi

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

const refusedCall = "the telephony provider refused the call"

// A refusal undoes the call: its slot is back, its key is free, and it stays readable.
func TestCarrierRefuses(t *testing.T) {
	tests := map[string]placing{
		"the carrier": refuses,
		"a bad call":  says(http.StatusOK, `{"status":400,"error":"CAUSE"}`),
		"throttled":   says(http.StatusTooManyRequests, `{"Reason":"CAUSE"}`, "X-Amzn-ErrorType", "TooManyRequestsException"),
		"forbidden":   says(http.StatusForbidden, `{"Message":"CAUSE"}`, "X-Amzn-ErrorType", "AccessDeniedException"),
		"no function": says(http.StatusNotFound, `{"Message":"CAUSE"}`, "X-Amzn-ErrorType", "ResourceNotFoundException"),
	}
	store := newStore(t)
	for name, answer := range tests {
		o := newOffice(t, store)
		handler := o.unlimited(store)
		o.exchange.answer = answer
		got := o.post(t, handler, bodyWith(), withKey("one")...)
		isRefused(t, name, got, http.StatusBadGateway, "provider_refused", refusedCall)
		if line := logged.of(got.header.Get(requestIDHeader)); !strings.Contains(line, "carrier refused") {
			t.Errorf("%s: the log has %q", name, line)
		}
		o.checkRefused(t, name, conversation.EndProviderRefused)
		o.exchange.answer = accepts
		again := o.post(t, handler, bodyWith(), withKey("one")...)
		if call := isAccepted(t, again); again.header.Get("Idempotent-Replay") != "" || o.keyNames(t, "one") != call.CallID || o.slots(t, oneNumber) != 1 || o.placedIn(t, time.Now()) != 2 {
			t.Errorf("%s: again: %v, %d slots, %d in the hour; want a new call", name, again.header, o.slots(t, oneNumber), o.placedIn(t, time.Now()))
		}
	}
}

// checkRefused wants the office's only call in error, with nothing left of it but its row.
func (o office) checkRefused(t *testing.T, name string, reason conversation.EndReason) {
	t.Helper()
	calls := o.calls(t)
	if len(calls) != 1 {
		t.Fatalf("%s: %d calls, want 1", name, len(calls))
	}
	call := calls[0]
	if call.Status != conversation.CallError || call.EndReason != reason || call.EndedAt.IsZero() {
		t.Errorf("%s: the call is %s, %s, ended at %s; want error, %s", name, call.Status, call.EndReason, call.EndedAt, reason)
	}
	if len(o.exchange.placed) != 1 || o.slots(t, oneNumber) != 0 || o.placedIn(t, time.Now()) != 1 || o.keyNames(t, "one") != "" {
		t.Errorf("%s: %d placements, %d slots, %d in the hour, the key names %q; want 1, 0, 1 and nothing",
			name, len(o.exchange.placed), o.slots(t, oneNumber), o.placedIn(t, time.Now()), o.keyNames(t, "one"))
	}
	overdue, err := o.store.OverdueCalls(t.Context(), time.Now().Add(24*time.Hour), 1000)
	if err != nil || slices.Contains(overdue, dynamo.OverdueCall{WorkspaceID: o.ws, CallID: call.CallID}) {
		t.Errorf("%s: the sweep still has the call, %v", name, err)
	}
}

// Nobody listens: the request provably never left.
func TestCarrierIsNotThere(t *testing.T) {
	store := newStore(t)
	o := newOffice(t, store)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	o.exchange.client = carrier.NewSimulator(aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String("http://" + listener.Addr().String()),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}, "simulate-carrier", nil)
	isRefused(t, "nobody listens", o.post(t, o.unlimited(store), bodyWith(), withKey("one")...), http.StatusBadGateway, "provider_refused", refusedCall)
	if o.keyNames(t, "one") != "" || o.slots(t, oneNumber) != 0 {
		t.Errorf("the key names %q, %d slots; want neither", o.keyNames(t, "one"), o.slots(t, oneNumber))
	}
}

func hang(_ http.ResponseWriter, r *http.Request, _ carrier.Placement) { <-r.Context().Done() }

// drop breaks the connection off after the request was read.
func drop(w http.ResponseWriter, _ *http.Request, _ carrier.Placement) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

func cutMidway(w http.ResponseWriter, _ *http.Request, _ carrier.Placement) {
	w.Header().Set("Content-Length", "100")
	_, _ = w.Write([]byte(`{"status":200,`))
}

// Without an answer the phone may ring: the call is accepted and stays queued, and no
// request ever dials it again.
func TestCarrierDoesNotAnswer(t *testing.T) {
	tests := map[string]placing{
		"it hangs":            hang,
		"the connection ends": drop,
		"it ends midway":      cutMidway,
		"Lambda fails":        says(http.StatusInternalServerError, `{"Message":"oops"}`, "X-Amzn-ErrorType", "ServiceException"),
		"a gateway fails":     says(http.StatusBadGateway, "<html>"),
		"it is busy":          says(http.StatusServiceUnavailable, ""),
		"the function fails":  says(http.StatusOK, `{"errorMessage":"oops"}`, "X-Amz-Function-Error", "Unhandled"),
		"it answers 500":      says(http.StatusOK, `{"status":500}`),
		"it answers 503":      says(http.StatusOK, `{"status":503,"carrier_id":"x"}`),
		"no id":               says(http.StatusOK, `{"status":200}`),
		"nothing":             says(http.StatusOK, ""),
		"no JSON":             says(http.StatusOK, "<html>"),
		"of another type":     says(http.StatusOK, `{"status":"403"}`),
	}
	for name, answer := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newStore(t)
			o := newOffice(t, store)
			o.exchange.answer = answer
			o.exchange.client.PlaceTimeout = 300 * time.Millisecond
			handler := o.unlimited(store)
			first := o.post(t, handler, bodyWith(), withKey("one")...)
			call := isAccepted(t, first)
			checkReplay(t, "again", o.post(t, handler, bodyWith(), withKey("one")...), first)
			record := o.record(t, call.CallID)
			if record.Status != conversation.CallQueued || record.CarrierID != "" || o.keyNames(t, "one") != call.CallID || o.slots(t, oneNumber) != 1 {
				t.Errorf("the call is %s with the carrier's id %q, its key names %q, %d slots; want it queued", record.Status, record.CarrierID, o.keyNames(t, "one"), o.slots(t, oneNumber))
			}
			if placed := o.exchange.placements()[call.CallID]; placed != 1 || len(o.exchange.placed) != 1 {
				t.Errorf("placed %d times, want once", placed)
			}
			line := logged.of(first.header.Get(requestIDHeader))
			if !strings.Contains(line, "no answer from the carrier") || !strings.Contains(line, string(call.CallID)) {
				t.Errorf("the log has %q", line)
			}
		})
	}
}

// meanwhile answers a placement when something has happened to its call.
func meanwhile(t *testing.T, store aLine, answer placing, happen func(conversation.CallRecord) error) placing {
	return func(w http.ResponseWriter, r *http.Request, p carrier.Placement) {
		call, err := store.CallRecord(t.Context(), p.WorkspaceID, p.CallID)
		if err == nil {
			err = happen(call.CallRecord)
		}
		if err != nil {
			t.Error(err)
		}
		answer(w, r, p)
	}
}

// What others may have done to a call before its carrier's answer is in.
func (o office) stall(t *testing.T) func(conversation.CallRecord) error {
	return func(call conversation.CallRecord) error {
		return o.store.StallQueuedCall(t.Context(), call, time.Now())
	}
}

func (o office) pickUp(t *testing.T) func(conversation.CallRecord) error {
	return func(call conversation.CallRecord) error {
		return o.store.PickUpCall(t.Context(), call, "sim-"+string(call.CallID), time.Now(), time.Now().Add(time.Hour))
	}
}

// A call that was given up before its carrier accepted it is hung up, and is an answer all
// the same: its key keeps naming it.
func TestAcceptedTooLate(t *testing.T) {
	store := newStore(t)
	o := newOffice(t, store)
	o.exchange.answer = meanwhile(t, store, accepts, o.stall(t))
	call := isAccepted(t, o.post(t, o.unlimited(store), bodyWith(), withKey("one")...))
	if ended := o.exchange.ended; len(ended) != 1 || ended[0].CallID != call.CallID || ended[0].CarrierID != "sim-"+string(call.CallID) || ended[0].Reason != conversation.EndCanceled {
		t.Errorf("hung up %+v, want the call, canceled", ended)
	}
	record := o.record(t, call.CallID)
	if record.Status != conversation.CallError || record.EndReason != conversation.EndStalled || record.CarrierID != "" || o.slots(t, oneNumber) != 0 || o.keyNames(t, "one") != call.CallID {
		t.Errorf("the call is %s, %s, with the carrier's id %q, %d slots, its key names %q", record.Status, record.EndReason, record.CarrierID, o.slots(t, oneNumber), o.keyNames(t, "one"))
	}
}

// A call whose first callback is faster than the carrier's answer is left in peace.
func TestCallbackIsFaster(t *testing.T) {
	store := newStore(t)
	o := newOffice(t, store)
	o.exchange.answer = meanwhile(t, store, accepts, o.pickUp(t))
	first := o.post(t, o.unlimited(store), bodyWith(), withKey("one")...)
	call := isAccepted(t, first)
	if record := o.record(t, call.CallID); record.Status != conversation.CallInProgress || record.CarrierID != "sim-"+string(call.CallID) || len(o.exchange.ended) != 0 || o.slots(t, oneNumber) != 1 {
		t.Errorf("the call is %s with the carrier's id %q, hung up %v, %d slots", record.Status, record.CarrierID, o.exchange.ended, o.slots(t, oneNumber))
	}
	if call.Status != conversation.CallQueued {
		t.Errorf("the answer says %s, want queued", call.Status)
	}
	checkReplay(t, "again", o.post(t, o.unlimited(store), bodyWith(), withKey("one")...), first)
}

// A refusal of a call that was given up meanwhile frees its key, and gives no slot back again.
func TestRefusedTooLate(t *testing.T) {
	store := newStore(t)
	for name, key := range map[string][]string{"with a key": withKey("one"), "without": nil} {
		o := newOffice(t, store)
		isAccepted(t, o.post(t, o.unlimited(store), bodyWith("assistant_id", quoted(string(twoNumbers)), "from", quoted(firstNumber))))
		o.exchange.placed = nil
		o.exchange.answer = meanwhile(t, store, refuses, o.stall(t))
		isRefused(t, name, o.post(t, o.unlimited(store), bodyWith(), key...), http.StatusBadGateway, "provider_refused", refusedCall)
		if o.slots(t, oneNumber) != 0 || o.slots(t, twoNumbers) != 1 || o.keyNames(t, "one") != "" || len(o.exchange.placed) != 1 {
			t.Errorf("%s: %d and %d slots, the key names %q; want 0, 1 and nothing", name, o.slots(t, oneNumber), o.slots(t, twoNumbers), o.keyNames(t, "one"))
		}
	}
}

// A refusal of a call that is under way contradicts itself: the phone may have rung, so it
// is a 500, and the key keeps naming the call.
func TestRefusedInProgress(t *testing.T) {
	store := newStore(t)
	o := newOffice(t, store)
	o.exchange.answer = meanwhile(t, store, refuses, o.pickUp(t))
	got := o.post(t, o.unlimited(store), bodyWith(), withKey("one")...)
	want[Problem](t, got, http.StatusInternalServerError)
	call := o.exchange.placed[0].CallID
	if o.record(t, call).Status != conversation.CallInProgress || o.keyNames(t, "one") != call || o.slots(t, oneNumber) != 1 {
		t.Errorf("the call is %s, its key names %q, %d slots; want it as it was", o.record(t, call).Status, o.keyNames(t, "one"), o.slots(t, oneNumber))
	}
	if line := logged.of(got.header.Get(requestIDHeader)); !strings.Contains(line, "although its carrier refused it") {
		t.Errorf("the log has %q", line)
	}
	again := o.post(t, o.unlimited(store), bodyWith(), withKey("one")...)
	if replayed := isAccepted(t, again); replayed.CallID != call || len(o.exchange.placed) != 1 {
		t.Errorf("the key leads to %s after %d placements, want the call", replayed.CallID, len(o.exchange.placed))
	}
}

// A refusal while the call's slot is gone already, or its key names another, stays a 500:
// something is wrong that no answer may hide.
func TestRefusalThatCannotBeUndone(t *testing.T) {
	store := newStore(t)
	for name, spoil := range map[string]func(o office, t *testing.T){
		"no slot": func(o office, t *testing.T) {
			set(t, shared.stage.WorkspacesTable, o.slotsID(oneNumber), "active_calls", "0")
		},
		"another's key": func(o office, t *testing.T) {
			set(t, shared.stage.ConversationsTable, fmt.Sprintf("%s#idempotency#%s", o.ws, dynamo.HashIdempotencyKey("one")), "call_id", "0")
		},
	} {
		o := newOffice(t, store)
		o.exchange.answer = meanwhile(t, store, refuses, func(conversation.CallRecord) error {
			spoil(o, t)
			return nil
		})
		want[Problem](t, o.post(t, o.unlimited(store), bodyWith(), withKey("one")...), http.StatusInternalServerError)
		if call := o.calls(t)[0]; call.Status != conversation.CallQueued {
			t.Errorf("%s: the call is %s, want it queued for its lifecycle", name, call.Status)
		}
	}
}

// The hang-up of a call that was accepted too late may fail: whoever answers makes the
// carrier ask, and it is told then.
func TestHangUpFails(t *testing.T) {
	store := newStore(t)
	o := newOffice(t, store)
	o.exchange.answer = meanwhile(t, store, accepts, o.stall(t))
	asked := 0
	inner := o.exchange
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked > 1 {
			w.WriteHeader(http.StatusForbidden) // which nobody tries again
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	o.exchange.client = carrier.NewSimulator(aws.Config{
		Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}, "simulate-carrier", nil)
	got := o.post(t, o.unlimited(store), bodyWith())
	isAccepted(t, got)
	if line := logged.of(got.header.Get(requestIDHeader)); asked != 2 || !strings.Contains(line, "hang up a call that was given up") {
		t.Errorf("asked %d times, the log has %q", asked, line)
	}
}
