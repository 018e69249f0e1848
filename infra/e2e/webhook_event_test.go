package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
)

// A subscriber is an endpoint with the receiver behind it.
type subscriber struct {
	*receiver
	oneEndpoint
}

// subscribe makes an endpoint for the events at a receiver that answers 200.
func (u user) subscribe(t testing.TB, more anything, events ...conversation.EventName) subscriber {
	t.Helper()
	r := newReceiver(t, answers(http.StatusOK))
	return subscriber{r, u.createEndpoint(t, r.url, events, more)}
}

const (
	started   = conversation.CallStarted
	completed = conversation.CallCompleted
	failed    = conversation.CallFailed
)

// Each endpoint gets the events that it has enabled, of its own workspace and since it is
// there, once, signed with its secret and cut to its blocks. A finished call is in them as
// the API shows it.
func TestCallEvents(t *testing.T) {
	d, other := newDesk(t), newDesk(t)
	u, stranger := newUser(t, d.ws), newUser(t, other.ws)
	custom := map[string]string{"X-Api-Key": "a secret of theirs", "x-hotel": "Harbour"}
	subscribers := map[string]subscriber{
		"usual":    u.subscribe(t, anything{"headers": custom}, started, completed),
		"whole":    u.subscribe(t, anything{"blocks": conversation.AllBlocks()}, started, completed, failed),
		"bare":     u.subscribe(t, anything{"blocks": []string{}}, started, completed),
		"failures": u.subscribe(t, nil, failed),
		"disabled": u.subscribe(t, anything{"enabled": false}, started, completed, failed),
		"tests":    u.subscribe(t, nil),
		"stranger": stranger.subscribe(t, nil, started, completed, failed),
	}
	late, made := newReceiver(t, answers(http.StatusOK)), new(atomic.Pointer[answer])
	early := newReceiver(t, func(_ http.ResponseWriter, n int) {
		if n == 2 { // both calls have started
			got := u.ask(t, http.MethodPost, "/webhook-endpoints", anything{"url": late.url, "events": []conversation.EventName{started, completed}})
			made.Store(&got)
		}
	})
	u.createEndpoint(t, early.url, []conversation.EventName{started}, nil)
	talk, busy, theirs := d.place(t, "50"), d.place(t, "01"), other.place(t, "50")
	t.Parallel() // while the calls last

	early.await(t, 2)
	await(t, func() error {
		if made.Load() == nil {
			return errors.New("no endpoint has been made")
		}
		return nil
	})
	subscribers["late"] = subscriber{late, want[oneEndpoint](t, *made.Load(), http.StatusCreated)}
	expected := map[string][]string{
		"usual":    {"call.completed talk", "call.started busy", "call.started talk"},
		"whole":    {"call.completed talk", "call.failed busy", "call.started busy", "call.started talk"},
		"bare":     {"call.completed talk", "call.started busy", "call.started talk"},
		"failures": {"call.failed busy"},
		"disabled": {}, "tests": {},
		"late":     {"call.completed talk"},
		"stranger": {"call.completed theirs", "call.started theirs"},
	}
	names := map[string]string{string(talk.CallID): "talk", string(busy.CallID): "busy", string(theirs.CallID): "theirs"}
	got := map[string]map[string]envelope{} // by subscriber and event
	for name, s := range subscribers {
		got[name] = map[string]envelope{}
		for _, a := range s.await(t, len(expected[name])) {
			e := a.open(t, s.Secret)
			event := string(e.Event) + " " + names[e.EventID]
			got[name][event] = e
			for header, value := range custom {
				if has := a.header.Get(header) == value; has != (name == "usual") {
					t.Errorf("%s, %s: header %s is %q", name, event, header, a.header.Get(header))
				}
			}
		}
		if events := slices.Sorted(maps.Keys(got[name])); !slices.Equal(events, expected[name]) {
			t.Errorf("%s got %v, want %v", name, events, expected[name])
		}
	}
	whole := got["whole"]
	first, last, ended := whole["call.started talk"].OccurredAt, whole["call.completed talk"].OccurredAt, d.finished(t, talk.CallID).EndedAt
	if first.Before(talk.StartedAt.Time) || !first.Before(ended.Time) || last.Before(ended.Time) {
		t.Errorf("the call, from %v to %v, has events of %v and %v", talk.StartedAt, ended, first, last)
	}
	d.checkStarted(t, got["usual"]["call.started talk"].Call, talk, true)
	d.checkStarted(t, whole["call.started busy"].Call, busy, true)
	d.checkStarted(t, got["bare"]["call.started talk"].Call, talk, false)
	d.checkShown(t, got["usual"]["call.completed talk"].Call, talk.CallID, "?fields=customer,transcript,analysis,evaluations,recording")
	d.checkShown(t, whole["call.completed talk"].Call, talk.CallID, "")
	d.checkShown(t, got["bare"]["call.completed talk"].Call, talk.CallID, "?fields=call")
	d.checkShown(t, whole["call.failed busy"].Call, busy.CallID, "")
	for name, s := range subscribers { // now that all is over
		s.await(t, len(expected[name]))
	}
	await(t, func() error { // two at early, the others at the subscribers
		if got := u.deliveries(t, "status=delivered"); len(got) != 14 || len(u.deliveries(t, "")) != 14 {
			return fmt.Errorf("the log has %d deliveries that were delivered, want 14 and no others", len(got))
		}
		return nil
	})
}

// checkStarted wants a call in call.started to tell who is called, and no more.
func (d desk) checkStarted(t *testing.T, got json.RawMessage, placed conversation.Call, customer bool) {
	t.Helper()
	expected := map[string]json.RawMessage{}
	for field, value := range map[string]any{
		"call_id": placed.CallID, "workspace_id": d.ws, "assistant_id": assistantID, "assistant_name": "Reception",
		"direction": "outbound", "status": "in_progress", "started_at": placed.StartedAt.WithOffset(), "is_test": false,
		"call_variables": json.RawMessage(variables), "metadata": json.RawMessage(metadata), "customer": placed.Customer,
	} {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		expected[field] = text
	}
	expected["call_variables"], expected["metadata"] = json.RawMessage(variables), json.RawMessage(metadata) // byte by byte
	if !customer {
		delete(expected, "customer")
	}
	var call map[string]json.RawMessage
	if err := json.Unmarshal(got, &call); err != nil {
		t.Fatalf("call.started: %v: %s", err, got)
	}
	if diff := cmp.Diff(texts(expected), texts(call)); diff != "" {
		t.Errorf("call.started (-want +got):\n%s", diff)
	}
}

func texts(fields map[string]json.RawMessage) map[string]string {
	shown := map[string]string{}
	for name, text := range fields {
		shown[name] = string(text)
	}
	return shown
}

var zuluTime = regexp.MustCompile(`("\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})Z"`)

// checkShown wants a payload's call to be the one that the API shows.
func (d desk) checkShown(t *testing.T, got json.RawMessage, callID conversation.CallID, query string) {
	t.Helper()
	d.key.checkShown(t, got, "calls", string(callID)+query)
}

// checkShown wants a payload's subject to be the record that the API shows, but for the form
// of its times. target is the record's id, and the query.
func (k key) checkShown(t *testing.T, got json.RawMessage, list, target string) {
	t.Helper()
	one := resources[list].one
	body := want[map[string]json.RawMessage](t, k.get(t, "/v1/"+list+"/"+target), http.StatusOK)
	shown := strings.TrimSpace(zuluTime.ReplaceAllString(string(body[one]), `$1+00:00"`))
	if diff := cmp.Diff(shown, string(got)); diff != "" {
		t.Errorf("%s %s in an event, and by GET (-shown +got):\n%s", one, target, diff)
	}
}
