package dynamo_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/dynamo/dynamotest"
)

func newDelivery(t *testing.T, s *dynamo.Store, ws conversation.WorkspaceID, at time.Time) dynamo.StoredDelivery {
	t.Helper()
	endpoint, eventID := conversation.EndpointID(conversation.NewID()), conversation.NewID()
	d := dynamo.StoredDelivery{Delivery: conversation.Delivery{
		ID: conversation.NewDeliveryID(endpoint, conversation.CallStarted, eventID), WorkspaceID: ws, EndpointID: endpoint,
		Event: conversation.CallStarted, EventID: eventID, Status: conversation.DeliveryPending, CreatedAt: conversation.At(at),
	}}
	var err error
	if d.Body, err = s.PackBody(t.Context(), ws, d.ID, []byte(`{"event":"call.started"}`)); err != nil {
		t.Fatal(err)
	}
	return d
}

func attempt(d dynamo.StoredDelivery, round, number, status int) conversation.Attempt {
	return conversation.Attempt{
		ID: d.ID.Attempt(round, number), Round: round, Number: number, At: conversation.At(t0),
		StatusCode: status, LatencyMS: 12, ResponseBody: "said",
	}
}

func notPosted(d dynamo.StoredDelivery, round, number int, why conversation.AttemptError) conversation.Attempt {
	a := attempt(d, round, number, 0)
	a.Error, a.ResponseBody = why, ""
	return a
}

// The first record writes the delivery with its body; later ones only what has changed.
func TestRecordAttempt(t *testing.T) {
	s := clockAt(dynamotest.Store(t), t0)
	ctx, ws := t.Context(), newWorkspace()
	fresh := newDelivery(t, s, ws, t0)
	if _, err := s.Delivery(ctx, ws, fresh.ID); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("before the first record: %v, want ErrNotFound", err)
	}
	want := fresh
	want.Round, want.Status, want.Version = 1, conversation.DeliveryPending, 1
	want.Attempts = []conversation.Attempt{attempt(fresh, 1, 1, 500)}
	got, err := s.RecordAttempt(ctx, fresh, attempt(fresh, 1, 1, 500))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v; recorded (-want +got):\n%s", err, diff)
	}
	want.Attempts = append(want.Attempts, attempt(fresh, 1, 2, 200))
	want.Status, want.Version = conversation.DeliveryDelivered, 2
	if _, err := s.RecordAttempt(ctx, got, attempt(fresh, 1, 2, 200)); err != nil {
		t.Fatal(err)
	}
	stored, err := s.Delivery(ctx, ws, fresh.ID)
	if diff := cmp.Diff(want, stored); err != nil || diff != "" {
		t.Errorf("%v; stored (-want +got):\n%s", err, diff)
	}
	if _, err := s.Delivery(ctx, newWorkspace(), fresh.ID); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("of another workspace: %v, want ErrNotFound", err)
	}
	if payload, err := s.UnpackBody(ctx, stored.Body); err != nil || string(payload) != `{"event":"call.started"}` {
		t.Errorf("body %q, %v", payload, err)
	}
}

// A record that was decided on an old state is decided anew on what stands: the rows of
// webhook deliveries' life that a race would break.
func TestRecordsThatMeet(t *testing.T) {
	canceled, skipped := conversation.AttemptCanceled, conversation.AttemptSkipped
	type record = func(dynamo.StoredDelivery) conversation.Attempt
	answer := func(round, number, status int) record {
		return func(d dynamo.StoredDelivery) conversation.Attempt { return attempt(d, round, number, status) }
	}
	none := func(round, number int, why conversation.AttemptError) record {
		return func(d dynamo.StoredDelivery) conversation.Attempt { return notPosted(d, round, number, why) }
	}
	s := clockAt(dynamotest.Store(t), t0)
	for name, tt := range map[string]struct {
		before []record // recorded before the two meet
		first  record
		second record // decided on the state before the first
		want   string
	}{
		"two copies fail":                         {nil, answer(1, 1, 500), answer(1, 1, 400), "1 pending 1.1=500"},
		"a copy succeeds later":                   {nil, answer(1, 1, 500), answer(1, 1, 200), "1 delivered 1.1=200"},
		"a copy fails later":                      {nil, answer(1, 1, 200), answer(1, 1, 500), "1 delivered 1.1=200"},
		"canceled by one copy, posted by another": {nil, none(1, 1, canceled), answer(1, 1, 500), "1 canceled 1.1=500"},
		"posted by one copy, canceled by another": {nil, answer(1, 1, 500), none(1, 1, canceled), "1 pending 1.1=500"},
		"delivered, then canceled":                {[]record{answer(1, 1, 500)}, answer(1, 2, 200), none(1, 2, canceled), "1 delivered 1.1=500 1.2=200"},
		"the sixth, twice": {
			[]record{answer(1, 1, 500), answer(1, 2, 500), answer(1, 3, 500), answer(1, 4, 500), answer(1, 5, 500)},
			answer(1, 6, 500), answer(1, 6, 200), "1 delivered 1.1=500 1.2=500 1.3=500 1.4=500 1.5=500 1.6=200",
		},
		"the next round begins": {[]record{none(1, 1, canceled)}, answer(2, 1, 500), answer(1, 1, 200), "2 delivered 1.1=200 2.1=500"},
		"an old round cancels":  {[]record{none(1, 1, canceled)}, answer(2, 1, 500), none(1, 2, canceled), "2 pending 1.1=canceled 1.2=canceled 2.1=500"},
		"skipped, then posted":  {[]record{none(1, 1, canceled)}, none(1, 2, skipped), answer(1, 2, 500), "1 canceled 1.1=canceled 1.2=500"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDelivery(t, s, newWorkspace(), t0)
			var err error
			for _, r := range tt.before {
				if d, err = s.RecordAttempt(t.Context(), d, r(d)); err != nil {
					t.Fatal(err)
				}
			}
			for _, r := range []record{tt.first, tt.second} {
				if _, err := s.RecordAttempt(t.Context(), d, r(d)); err != nil {
					t.Fatal(err)
				}
			}
			stored, err := s.Delivery(t.Context(), d.WorkspaceID, d.ID)
			if got := inShort(stored.Delivery); err != nil || got != tt.want {
				t.Errorf("%v\n got %s\nwant %s", err, got, tt.want)
			}
		})
	}
}

func inShort(d conversation.Delivery) string {
	text := fmt.Sprintf("%d %s", d.Round, d.Status)
	for _, a := range d.Attempts {
		if a.Error != "" {
			text += fmt.Sprintf(" %d.%d=%s", a.Round, a.Number, a.Error)
		} else {
			text += fmt.Sprintf(" %d.%d=%d", a.Round, a.Number, a.StatusCode)
		}
	}
	return text
}

// Whoever records at once, nothing is lost.
func TestRecordAttemptsAtOnce(t *testing.T) {
	s := clockAt(dynamotest.Store(t), t0)
	d := newDelivery(t, s, newWorkspace(), t0)
	var group sync.WaitGroup
	for n := 1; n <= conversation.MaxAttempts; n++ {
		group.Go(func() {
			if _, err := s.RecordAttempt(t.Context(), d, attempt(d, 1, n, 500)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	stored, err := s.Delivery(t.Context(), d.WorkspaceID, d.ID)
	if err != nil || len(stored.Attempts) != conversation.MaxAttempts || stored.Version != conversation.MaxAttempts {
		t.Errorf("version %d, %s, %v; want all six", stored.Version, inShort(stored.Delivery), err)
	}
}

// An answer of DynamoDB that is lost makes the SDK write again: the attempt is recorded
// once. A failure that lasts is an error, after which the record may come again.
func TestRecordAttemptWhenAnswersAreLost(t *testing.T) {
	s, f := faultyStore(t)
	d := newDelivery(t, s, newWorkspace(), time.Now())
	writes := 0
	f.answer = func(operation string, body []byte, forward forward) (int, string) {
		status, answer := forward(body)
		if operation == "PutItem" || operation == "UpdateItem" {
			if writes++; writes%2 == 1 {
				return 500, serverFault
			}
		}
		return status, answer
	}
	for n := 1; n <= 2; n++ {
		var err error
		if d, err = s.RecordAttempt(t.Context(), d, attempt(d, 1, n, 500)); err != nil {
			t.Fatal(err)
		}
	}
	if got := inShort(d.Delivery); got != "1 pending 1.1=500 1.2=500" || writes != 4 || d.Version != 2 {
		t.Errorf("%s in version %d after %d writes; want both attempts once", got, d.Version, writes)
	}
	f.answer = func(string, []byte, forward) (int, string) { return 400, throttled }
	if _, err := s.RecordAttempt(t.Context(), d, attempt(d, 1, 3, 500)); err == nil {
		t.Error("no error while DynamoDB throttles")
	}
}

func TestTarget(t *testing.T) {
	s, ws := withWorkspace(t, t0)
	ctx := t.Context()
	e := newEndpoint(ws)
	d := newDelivery(t, s, ws, t0)
	d.EndpointID = e.EndpointID
	target, err := s.Target(ctx, ws, d.ID, e.EndpointID)
	if err != nil || target.Delivery.Version != 0 || target.Endpoint.Version != 0 {
		t.Errorf("of nothing: %+v, %v", target, err)
	}
	if err := s.InsertWebhookEndpoint(ctx, e); err != nil {
		t.Fatal(err)
	}
	if d, err = s.RecordAttempt(ctx, d, attempt(d, 1, 1, 500)); err != nil {
		t.Fatal(err)
	}
	target, err = s.Target(ctx, ws, d.ID, e.EndpointID)
	want := dynamo.Target{Delivery: d, Endpoint: dynamo.StoredEndpoint{WebhookEndpoint: e, Version: 1}}
	if diff := cmp.Diff(want, target); err != nil || diff != "" {
		t.Errorf("%v; target (-want +got):\n%s", err, diff)
	}
	if target, err := s.Target(ctx, newWorkspace(), d.ID, e.EndpointID); err != nil || target.Delivery.Version != 0 || target.Endpoint.Version != 0 {
		t.Errorf("of another workspace: %+v, %v", target, err)
	}
}

// A delivery lives for 30 days. Then it is absent, and may be written anew.
func TestDeliveryExpires(t *testing.T) {
	s := clockAt(dynamotest.Store(t), t0)
	ws := newWorkspace()
	fresh := newDelivery(t, s, ws, t0)
	if _, err := s.RecordAttempt(t.Context(), fresh, attempt(fresh, 1, 1, 500)); err != nil {
		t.Fatal(err)
	}
	later := clockAt(s, t0.Add(conversation.DeliveryLife))
	if _, err := later.Delivery(t.Context(), ws, fresh.ID); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("after 30 days: %v, want ErrNotFound", err)
	}
	if target, err := later.Target(t.Context(), ws, fresh.ID, fresh.EndpointID); err != nil || target.Delivery.Version != 0 {
		t.Errorf("after 30 days: %+v, %v; want nothing", target, err)
	}
	fresh.CreatedAt = conversation.At(t0.Add(conversation.DeliveryLife))
	if _, err := later.RecordAttempt(t.Context(), fresh, attempt(fresh, 1, 1, 200)); err != nil {
		t.Fatal(err)
	}
	if d, err := later.Delivery(t.Context(), ws, fresh.ID); err != nil || inShort(d.Delivery) != "1 delivered 1.1=200" {
		t.Errorf("written anew: %s, %v", inShort(d.Delivery), err)
	}
}

// Bodies come back byte for byte, large ones from S3.
func TestDeliveryBodies(t *testing.T) {
	s := dynamotest.Store(t)
	random := make([]byte, 100_000)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	for name, tt := range map[string]struct {
		payload string
		inS3    bool
	}{
		"small":        {`{"metadata":"<&> 日本 👋"}`, false},
		"compressible": {strings.Repeat("the same again ", 200_000), false},
		"large":        {string(random), true},
	} {
		body, err := s.PackBody(t.Context(), newWorkspace(), "d", []byte(tt.payload))
		if err != nil || (body.Key != "") != tt.inS3 || (body.Zip == nil) != tt.inS3 {
			t.Errorf("%s: %d bytes here, key %q, %v; want it in S3: %t", name, len(body.Zip), body.Key, err, tt.inS3)
		}
		if got, err := s.UnpackBody(t.Context(), body); err != nil || string(got) != tt.payload {
			t.Errorf("%s: %d bytes read of %d, %v", name, len(got), len(tt.payload), err)
		}
	}
}

// However often a delivery is tried, its item takes the record.
func TestManyRounds(t *testing.T) {
	s := clockAt(dynamotest.Store(t), t0)
	d := newDelivery(t, s, newWorkspace(), t0)
	for n := range conversation.MaxRounds*conversation.MaxAttempts - 1 {
		a := attempt(d, 1+n/conversation.MaxAttempts, 1+n%conversation.MaxAttempts, 500)
		a.ResponseBody = strings.Repeat("x", 4<<10)
		d.Delivery, _ = d.Report(a)
		if n > 61 {
			d.Attempts[n].ResponseBody = "" // as the store does, which would take long here
		}
	}
	last := attempt(d, conversation.MaxRounds, conversation.MaxAttempts, 500)
	last.ResponseBody = strings.Repeat("x", 4<<10)
	if _, err := s.RecordAttempt(t.Context(), d, last); err != nil {
		t.Fatal(err)
	}
	stored, err := s.Delivery(t.Context(), d.WorkspaceID, d.ID)
	got, _ := stored.Attempt(conversation.MaxRounds, conversation.MaxAttempts)
	if err != nil || len(stored.Attempts) != 300 || stored.Status != conversation.DeliveryFailed || got.ResponseBody != "" || got.StatusCode != 500 {
		t.Errorf("%d attempts, %s, the last with status %d and an answer of %d bytes, %v; want it without", len(stored.Attempts), stored.Status, got.StatusCode, len(got.ResponseBody), err)
	}
}

func TestDeliveries(t *testing.T) {
	s := clockAt(dynamotest.Store(t), t0)
	ctx, ws := t.Context(), newWorkspace()
	var all []dynamo.StoredDelivery // newest first
	for n := range 6 {
		d := newDelivery(t, s, ws, t0.Add(time.Duration(n)*time.Minute))
		d.EndpointID = conversation.EndpointID(fmt.Sprint("endpoint-", n%2))
		d.Event = []conversation.EventName{conversation.CallStarted, conversation.CallCompleted, conversation.CallFailed}[n%3]
		d, err := s.RecordAttempt(ctx, d, attempt(d, 1, 1, []int{200, 500}[n/3]))
		if err != nil {
			t.Fatal(err)
		}
		all = append([]dynamo.StoredDelivery{d}, all...)
	}
	for name, tt := range map[string]struct {
		query dynamo.DeliveryQuery
		want  []int
	}{
		"all":            {dynamo.DeliveryQuery{}, []int{0, 1, 2, 3, 4, 5}},
		"of an endpoint": {dynamo.DeliveryQuery{EndpointID: "endpoint-1"}, []int{0, 2, 4}},
		"of a status":    {dynamo.DeliveryQuery{Status: conversation.DeliveryPending}, []int{0, 1, 2}},
		"of an event":    {dynamo.DeliveryQuery{Event: conversation.CallStarted}, []int{2, 5}},
		"of an event id": {dynamo.DeliveryQuery{EventID: all[3].EventID}, []int{3}},
		"of a time":      {dynamo.DeliveryQuery{From: t0.Add(time.Minute), To: t0.Add(3 * time.Minute)}, []int{3, 4}},
		"of all of it":   {dynamo.DeliveryQuery{EndpointID: "endpoint-1", Status: conversation.DeliveryPending, Event: conversation.CallFailed}, []int{0}},
	} {
		want := []string{}
		for _, i := range tt.want {
			want = append(want, string(all[i].ID))
		}
		got := walk(t, 2, func(p dynamo.PageRequest) (dynamo.Page[conversation.Delivery], error) {
			return s.Deliveries(ctx, ws, tt.query, p)
		}, func(d conversation.Delivery) string { return string(d.ID) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	page, err := s.Deliveries(ctx, ws, dynamo.DeliveryQuery{}, dynamo.PageRequest{Limit: 1})
	if err != nil || !cmp.Equal(page.Items[0], all[0].Delivery) {
		t.Errorf("first of the list: %+v, %v; want %+v", page.Items, err, all[0].Delivery)
	}
}
