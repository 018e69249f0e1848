package lifecycle_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

func (w *world) report(event carrier.Event, reason conversation.EndReason) carrier.Callback {
	return carrier.Callback{Event: event, CarrierID: "line-1", At: w.now(), Reason: reason}
}

// What isn't a carrier's report about a call of its own changes nothing.
func TestCallbacksAreVerified(t *testing.T) {
	w := newWorld(t)
	other := w.newWorld(t, nil)
	call := w.accept(t, w.newCall(customer+"99"))
	path := w.path(call.WorkspaceID, call.CallID)
	good := bodyOf(w.report(carrier.EventProgress, ""))
	sign := func(path string, body []byte) string { return carrier.Sign(secret, w.now(), baseURL+path, body) }
	// A report of another carrier, which this stage has too, of a call that isn't its own.
	w.calls.Carriers["another"] = w.line
	large := append(bytes.Repeat([]byte(" "), 256<<10), good...)
	barely := append(bytes.Repeat([]byte(" "), 256<<10-len(good)), good...)

	tests := map[string]struct {
		path, signature string
		body            []byte
		want            int
	}{
		"no signature":           {path, "", good, 401},
		"another's signature":    {path, carrier.Sign([]byte("another"), w.now(), baseURL+path, good), good, 401},
		"another body":           {path, sign(path, []byte("{}")), good, 401},
		"another call's":         {path, sign(w.path(call.WorkspaceID, "x"), good), good, 401},
		"older than 5 minutes":   {path, carrier.Sign(secret, w.now().Add(-301*time.Second), baseURL+path, good), good, 401},
		"from the future":        {path, carrier.Sign(secret, w.now().Add(301*time.Second), baseURL+path, good), good, 401},
		"no such call":           {w.path(call.WorkspaceID, "nobody"), sign(w.path(call.WorkspaceID, "nobody"), good), good, 404},
		"another workspace's":    {w.path(other.workspace, call.CallID), sign(w.path(other.workspace, call.CallID), good), good, 404},
		"no such carrier":        {"/carriers/nobody/w/c", sign("/carriers/nobody/w/c", good), good, 404},
		"another carrier's call": {strings.Replace(path, w.carrier, "another", 1), sign(strings.Replace(path, w.carrier, "another", 1), good), good, 404},
		"no such path":           {path + "/more", sign(path+"/more", good), good, 404},
		"too large":              {path, sign(path, large), large, 413},
		"not JSON":               {path, sign(path, []byte("{")), []byte("{"), 400},
		"empty":                  {path, sign(path, nil), nil, 400},
		"unknown event":          {path, sign(path, bytes.Replace(good, []byte("progress"), []byte("regress"), 1)), bytes.Replace(good, []byte("progress"), []byte("regress"), 1), 400},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before := w.callItem(t, call.CallID)
			status, answer := w.post(t, tt.path, tt.signature, tt.body)
			if status != tt.want {
				t.Errorf("status %d, want %d", status, tt.want)
			}
			if strings.Contains(string(answer), "dynamo") || strings.Contains(string(answer), "signature") {
				t.Errorf("answer %s, want no causes", answer)
			}
			if diff := cmp.Diff(before, w.callItem(t, call.CallID), values); diff != "" {
				t.Errorf("the call changed (-before +after):\n%s", diff)
			}
		})
	}
	request, _ := http.NewRequest(http.MethodGet, w.url+path, nil)
	if response, err := http.DefaultClient.Do(request); err != nil || response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET = %v, %v; want 405", response, err)
	}
	if status, _ := w.post(t, path, carrier.Sign(secret, w.now().Add(-299*time.Second), baseURL+path, barely), barely); status != http.StatusOK {
		t.Errorf("the largest and oldest one: status %d, want 200", status)
	}
	if got := w.read(t, call.CallID).Status; got != conversation.CallInProgress {
		t.Errorf("the call is %s, want in_progress", got)
	}
}

var values = cmpopts.IgnoreUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberBOOL{},
	types.AttributeValueMemberL{}, types.AttributeValueMemberM{}, types.AttributeValueMemberNULL{})

// Each report moves the call as far as it says.
func TestCallbacksMoveTheCall(t *testing.T) {
	stage := newStage(t)
	tests := map[string]struct {
		report carrier.Callback
		want   conversation.CallRecord
		slots  string
	}{
		"progress": {
			carrier.Callback{Event: carrier.EventProgress},
			conversation.CallRecord{Call: conversation.Call{Status: conversation.CallInProgress}}, "1",
		},
		"answered": {
			carrier.Callback{Event: carrier.EventAnswered},
			conversation.CallRecord{Call: conversation.Call{Status: conversation.CallInProgress}}, "1",
		},
		"hung up": {
			carrier.Callback{Event: carrier.EventHungUp, Reason: conversation.EndCustomerHungUp},
			conversation.CallRecord{Call: conversation.Call{Status: conversation.CallInProgress}, HungUpReason: conversation.EndCustomerHungUp}, "1",
		},
		"failed": {
			carrier.Callback{Event: carrier.EventFailed, Reason: conversation.EndBusy},
			conversation.CallRecord{Call: conversation.Call{Status: conversation.CallError, EndReason: conversation.EndBusy}}, "0",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := stage.newWorld(t, nil)
			call := w.accept(t, w.newCall(customer+"99"))
			w.pass(3 * time.Second)
			tt.report.CarrierID, tt.report.At = "line-1", w.now()
			at := conversation.At(w.now())
			w.pass(time.Second)
			if status, _ := w.callback(t, call.WorkspaceID, call.CallID, tt.report); status != http.StatusOK {
				t.Fatalf("status %d, want 200", status)
			}
			got := w.read(t, call.CallID)
			if got.Status != tt.want.Status || got.EndReason != tt.want.EndReason || got.HungUpReason != tt.want.HungUpReason || w.slots(t) != tt.slots {
				t.Errorf("got %s, %s, %s, %s active calls; want %s, %s, %s, %s", got.Status, got.EndReason, got.HungUpReason, w.slots(t),
					tt.want.Status, tt.want.EndReason, tt.want.HungUpReason, tt.slots)
			}
			// Moments are the carrier's, not ours.
			if got.Active() && (got.DiallingAt != at || got.CarrierID != "line-1") || !got.Active() && got.EndedAt != at {
				t.Errorf("dialling at %s by %q, ended at %s; want %s", got.DiallingAt, got.CarrierID, got.EndedAt, at)
			}
			if (got.HungUpAt == at) != (tt.report.Event == carrier.EventHungUp) {
				t.Errorf("hung up at %s, want it only after a hang-up", got.HungUpAt)
			}
		})
	}
}

// Reports that are lost, doubled, late and out of order: each is accepted, and the call
// moves forward only.
func TestCallbacksInAnyOrder(t *testing.T) {
	stage := newStage(t)
	rank := func(c conversation.CallRecord) int {
		switch {
		case c.Status == conversation.CallQueued:
			return 0
		case c.Status == conversation.CallInProgress && c.HungUpAt.IsZero():
			return 1
		case c.Status == conversation.CallInProgress:
			return 2
		}
		return 3
	}
	rapid.Check(t, func(rt *rapid.T) {
		w := stage.newWorld(t, nil)
		call := w.accept(rt, w.newCall(customer+"99"))
		events := []carrier.Callback{
			w.report(carrier.EventProgress, ""), w.report(carrier.EventAnswered, ""),
			w.report(carrier.EventHungUp, conversation.EndCustomerHungUp), w.report(carrier.EventFailed, conversation.EndBusy),
		}
		before := w.read(rt, call.CallID)
		for range rapid.IntRange(1, 8).Draw(rt, "reports") {
			report := rapid.SampledFrom(events).Draw(rt, "report")
			w.pass(time.Second)
			status, told := w.callback(rt, call.WorkspaceID, call.CallID, report)
			after := w.read(rt, call.CallID)
			if status != http.StatusOK {
				rt.Fatalf("%s: status %d, want 200", report.Event, status)
			}
			if rank(after.CallRecord) < rank(before.CallRecord) {
				rt.Fatalf("%s moved the call back: %+v to %+v", report.Event, before.CallRecord, after.CallRecord)
			}
			if rank(before.CallRecord) >= 2 || rank(before.CallRecord) == 1 && report.Event == carrier.EventProgress {
				if diff := cmp.Diff(before, after, cmpopts.IgnoreUnexported(dynamo.StoredCall{})); diff != "" {
					rt.Fatalf("%s changed the call (-before +after):\n%s", report.Event, diff)
				}
			}
			wanted := after.Active() && after.HungUpAt.IsZero()
			switch {
			case report.Event == carrier.EventAnswered && told.HangUp == wanted:
				rt.Fatalf("answered while %s: told %+v", after.Status, told)
			case report.Event == carrier.EventProgress && told.HangUp != (after.Status == conversation.CallError):
				rt.Fatalf("progress while %s: told %+v", after.Status, told)
			}
			before = after
		}
		if slots := map[bool]string{true: "1", false: "0"}[before.Active()]; w.slots(rt) != slots {
			rt.Fatalf("%s active calls while %s, want %s", w.slots(rt), before.Status, slots)
		}
	})
}

// A phone that rings after its call was given up falls silent: at once where the carrier can
// be told, else when somebody answers.
func TestPhoneOfACallThatWasGivenUp(t *testing.T) {
	w := newWorld(t)
	ph := w.place(t, w.newCall(customer+"99"))
	if err := w.store.FailCall(w.ctx, w.read(t, ph.CallID).CallRecord, conversation.EndStalled, w.now()); err != nil {
		t.Fatal(err)
	}
	before := w.callItem(t, ph.CallID)

	w.line.out = errOutOfOrder
	w.line.ring(ph)
	report, _ := w.line.take(ph)
	if status := w.deliver(t, ph, report); status != http.StatusInternalServerError {
		t.Errorf("progress while the carrier can't be told: status %d, want 500, so that it reports again", status)
	}
	w.line.out = nil
	status, told := w.callback(t, ph.WorkspaceID, ph.CallID, report)
	if status != http.StatusOK || !told.HangUp || ph.state.Phase != carrier.Failed {
		t.Errorf("progress: status %d, told %+v, phone %s; want 200, to hang up, failed", status, told, ph.state.Phase)
	}

	ph.state.Phase, ph.reports = carrier.Dialling, nil // it wasn't told in time
	w.line.answer(ph)
	report, _ = w.line.take(ph)
	for range 2 {
		if status, told := w.callback(t, ph.WorkspaceID, ph.CallID, report); status != http.StatusOK || told != (carrier.Instruction{HangUp: true}) {
			t.Errorf("answered: status %d, told %+v; want 200, to hang up", status, told)
		}
	}
	if diff := cmp.Diff(before, w.callItem(t, ph.CallID), values); diff != "" {
		t.Errorf("the call changed (-before +after):\n%s", diff)
	}
}

// An answered call is spoken to as the assistant was when it was answered first, and that is
// kept.
func TestAnsweredCallKeepsItsConfiguration(t *testing.T) {
	w := newWorld(t)
	ph := w.bring(t, inProgress)
	answered := w.report(carrier.EventAnswered, "")
	_, first := w.callback(t, ph.WorkspaceID, ph.CallID, answered)
	if first.Script.Greeting != "This is Harbour Hotel." || first.Script.CallID != ph.CallID || first.Script.Model != "scripted" || first.Script.Voice != "calm" {
		t.Errorf("told %+v, want the assistant's words", first)
	}
	w.define(t, func(d *dynamo.Definition) { d.Assistants[0].Greeting = "Go away, {{participant_name}}." })
	if status, _ := w.callback(t, ph.WorkspaceID, ph.CallID, answered); status != http.StatusOK {
		t.Errorf("asked again: status %d, want 200", status)
	}
	want := conversation.ConfigSnapshot{
		Version: 1, Model: "scripted", Voice: "calm", Language: "en", Greeting: "This is {{hotel_name}}.", Prompt: "Help {{participant_name}}.",
	}
	if got := w.read(t, ph.CallID).ConfigSnapshot; got == nil || *got != want {
		t.Errorf("config_snapshot = %+v, want %+v", got, want)
	}
}

func TestScript(t *testing.T) {
	stage := newStage(t)
	tests := map[string]struct {
		greeting  string
		variables string            // of the call
		settings  map[string]string // of the workspace
		customer  string
		want      string
	}{
		"the call's":                  {"{{room}}, {{nights}}, {{late}}", `{"room":"12","nights":2.50,"late":true}`, nil, "", "12, 2.50, true"},
		"nothing to fill in":          {"Hello.", "", nil, "", "Hello."},
		"no value":                    {"Dear {{title}}{{participant_name}}!", `{}`, nil, "", "Dear !"},
		"customer_name":               {"Dear {{participant_name}}", "", nil, "Ada Lovelace", "Dear Ada Lovelace"},
		"hotel_name":                  {"{{hotel_name}}", "", nil, "", "Harbour Hotel"},
		"hotel_name of the settings":  {"{{hotel_name}}", "", map[string]string{"hotel_name": "The Harbour"}, "", "The Harbour"},
		"hotel_name of the call":      {"{{hotel_name}}", `{"hotel_name":"Mine"}`, map[string]string{"hotel_name": "The Harbour"}, "", "Mine"},
		"the settings'":               {"{{check_in}} {{spa}}", `{"spa":"6 pm"}`, map[string]string{"check_in": "3 pm", "spa": "noon"}, "", "3 pm 6 pm"},
		"overridden by nothing":       {"<{{spa}}>", `{"spa":""}`, map[string]string{"spa": "noon"}, "", "<>"},
		"reserved":                    {"{{phone_number}} {{caller_phone_number}}", `{"phone_number":"x","caller_phone_number":"y"}`, nil, "", ours + " " + customer + "99"},
		"reserved, unknown":           {"<{{system__secret}}{{secret__key}}>", "", nil, "", "<>"},
		"one pass":                    {"{{a}} {{b}}", `{"a":"{{b}}","b":"{{participant_name}}"}`, nil, "Ada", "{{b}} {{participant_name}}"},
		"one pass, the customer's":    {"{{participant_name}}", `{"a":"x"}`, nil, "{{a}}", "{{a}}"},
		"what is no placeholder":      {"{{ a }} {a} {{1a}} {{}} $1 \\{{a}}", `{"a":"x"}`, nil, "", "{{ a }} {a} {{1a}} {{}} $1 \\x"},
		"system__time in Asia/Tokyo":  {"{{system__time}}", "", nil, "", "Monday, 6 May 2030, 16:08 JST"},
		"text that JSON has to quote": {"{{a}}", `{"a":"\"<&>\"\nüöä𝄞\\"}`, nil, "", "\"<&>\"\nüöä𝄞\\"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := stage.newWorld(t, nil)
			w.define(t, func(d *dynamo.Definition) {
				d.Assistants[0].Greeting, d.Assistants[0].Prompt = tt.greeting, "Say: "+tt.greeting
				d.Workspace.Variables = tt.settings
			})
			call := w.newCall(customer + "99")
			call.Customer.Name, call.CallVariables = tt.customer, conversation.JSON(tt.variables)
			ph := w.bringCall(t, talking, call)
			if ph.script == nil || ph.script.Greeting != tt.want || ph.script.Prompt != "Say: "+tt.want {
				t.Errorf("told %+v, want %q", ph.script, tt.want)
			}
		})
	}
}

func TestTimeOfAnUnknownZone(t *testing.T) {
	w := newWorld(t)
	w.define(t, func(d *dynamo.Definition) {
		d.Workspace.Timezone, d.Assistants[0].Greeting = "Nowhere/Land", "{{system__time}}"
	})
	if ph := w.bring(t, talking); ph.script.Greeting != "Monday, 6 May 2030, 07:08 UTC" {
		t.Errorf("told %q, want UTC", ph.script.Greeting)
	}
}

// incoming is the report of a customer who rings.
func (w *world) incoming(test bool) carrier.Callback {
	r := w.report(carrier.EventIncoming, "")
	r.From, r.To, r.Test = customer+"42", ours, test
	return r
}

func TestIncoming(t *testing.T) {
	w := newWorld(t)
	for _, test := range []bool{false, true} {
		callID := conversation.CallID(conversation.NewID())
		report := w.incoming(test)
		began := conversation.At(w.now())
		var first dynamo.StoredCall
		for n := range 3 { // it is reported again, and later
			status, told := w.callback(t, w.workspace, callID, report)
			if status != http.StatusOK || told.Script.Greeting != "This is Harbour Hotel." {
				t.Errorf("status %d, told %+v; want 200, the assistant's words", status, told)
			}
			got := w.read(t, callID)
			if n == 0 {
				first = got
			} else if diff := cmp.Diff(first.CallRecord, got.CallRecord, cmpopts.IgnoreFields(conversation.Call{}, "ConfigSnapshot")); diff != "" {
				t.Errorf("it changed when it was reported again (-before +after):\n%s", diff)
			}
			w.pass(time.Minute)
			report.At = w.now()
		}
		got := first.CallRecord
		if got.Direction != conversation.Inbound || got.CallType != conversation.Inbound || got.Status != conversation.CallInProgress || got.IsTest != test ||
			got.StartedAt != began || got.DiallingAt != began || got.AssistantID != w.assistant || got.AssistantName != "Reception" ||
			got.Number != report.To || got.CarrierID != "line-1" || got.LongestSeconds != 3600 || got.HoldsSlot ||
			got.Customer == nil || got.Customer.Phone != report.From || got.Customer.CustomerID == "" {
			t.Errorf("call %+v (customer %+v), want the customer's, in progress", got, got.Customer)
		}
		if w.slots(t) != "" {
			t.Errorf("%s active calls, want none", w.slots(t))
		}
		if it := w.callItem(t, callID); it["open_shard"] == nil || it["open_until"] == nil {
			t.Error("the call is not open, want the sweep to see it")
		}
	}
}

func TestIncomingThatNobodyTakes(t *testing.T) {
	w := newWorld(t)
	other := w.newWorld(t, nil)

	callID := conversation.CallID(conversation.NewID())
	if status, _ := w.callback(t, other.workspace, callID, w.incoming(false)); status != http.StatusNotFound {
		t.Errorf("another workspace's number: status %d, want 404", status)
	}
	stranger := w.incoming(false)
	stranger.To = "+12025550199"
	if status, _ := w.callback(t, w.workspace, callID, stranger); status != http.StatusNotFound {
		t.Errorf("nobody's number: status %d, want 404", status)
	}
	if it := w.callItem(t, callID); it != nil {
		t.Errorf("call %v, want none", it)
	}

	w.define(t, func(d *dynamo.Definition) { d.Assistants[0].Enabled = false })
	for range 2 {
		if status, told := w.callback(t, w.workspace, callID, w.incoming(false)); status != http.StatusOK || !told.HangUp {
			t.Errorf("a disabled assistant: status %d, told %+v; want 200, to hang up", status, told)
		}
	}
	got := w.read(t, callID)
	if got.Status != conversation.CallError || got.EndReason != conversation.EndAgentUnavailable || got.EndedAt.IsZero() {
		t.Errorf("call %s, %s at %s; want error, agent_unavailable", got.Status, got.EndReason, got.EndedAt)
	}
	if it := w.callItem(t, callID); it["open_shard"] != nil {
		t.Error("the call is open, want it resolved")
	}
	// What it was, it stays.
	w.define(t, func(d *dynamo.Definition) { d.Assistants[0].Enabled = true })
	if _, told := w.callback(t, w.workspace, callID, w.incoming(false)); !told.HangUp {
		t.Errorf("reported again, enabled meanwhile: told %+v, want to hang up", told)
	}
}
