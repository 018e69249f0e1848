package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
)

const someID = "0191d1c0-0000-7000-8000-000000000001"

// Every problem of a request is named, once, in order.
func TestBadRequests(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	handler := api(store)

	const (
		limit    = "limit: "
		instant  = "invalid value: must be an ISO 8601 time, such as 2026-01-31T08:00:00Z"
		blocks   = "the blocks are call, customer, costs, transcript, analysis, evaluations, follow_ups, recording, performance_metrics, config_snapshot"
		uuid     = "expected string to be a UUID"
		channels = "channel: expected value to be one of \"sms, whatsapp\""
	)
	tests := map[string][]string{
		"/v1/calls?limit=0":                    {limit + "expected number >= 1"},
		"/v1/calls?limit=101":                  {limit + "expected number <= 100"},
		"/v1/calls?limit=-1":                   {limit + "expected number >= 1"},
		"/v1/calls?limit=abc":                  {limit + "invalid integer"},
		"/v1/calls?limit=1.5":                  {limit + "invalid integer"},
		"/v1/calls?limit=99999999999999999999": {limit + "invalid integer"},
		"/v1/calls?limit=":                     {limit + "must not be empty"},
		"/v1/calls?limit=5&limit=6":            {limit + "must be given once"},
		"/v1/assistants?limit=0":               {limit + "expected number >= 1"},
		"/v1/assistants?limit=101":             {limit + "expected number <= 100"},
		"/v1/assistants?limit=":                {limit + "must not be empty"},

		"/v1/calls?from=yesterday":                              {"from: " + instant},
		"/v1/calls?to=1772366400":                               {"to: " + instant},
		"/v1/messages?from=2026-02-30":                          {"from: " + instant},
		"/v1/threads?to=2026-01-31T25:00:00Z":                   {"to: " + instant},
		"/v1/threads?from=":                                     {"from: must not be empty"},
		"/v1/threads?from=2026-01-02&to=2026-01-01":             {"from: must not be after to"},
		"/v1/calls?from=2026-01-01T00:00:00.001Z&to=2026-01-01": {"from: must not be after to"},

		"/v1/calls?assistant_id=me":                                     {"assistant_id: " + uuid},
		"/v1/calls?assistant_id=" + someID + "0":                        {"assistant_id: " + uuid},
		"/v1/calls?assistant_id={" + someID + "}":                       {"assistant_id: " + uuid},
		"/v1/calls?assistant_id=urn:uuid:" + someID:                     {"assistant_id: " + uuid},
		"/v1/calls?assistant_id=" + strings.ReplaceAll(someID, "-", ""): {"assistant_id: " + uuid},
		"/v1/messages?thread_id=1":                                      {"thread_id: " + uuid},
		"/v1/calls/1":                                                   {"call_id: " + uuid},
		"/v1/calls/1/recording":                                         {"call_id: " + uuid},
		"/v1/messages/1":                                                {"message_id: " + uuid},
		"/v1/threads/1":                                                 {"thread_id: " + uuid},
		"/v1/calls/" + someID + "%2Frecording":                          {"call_id: " + uuid},

		"/v1/messages?channel=fax":                            {channels},
		"/v1/messages?channel=SMS":                            {channels},
		"/v1/threads?channel=voice":                           {channels},
		"/v1/messages?direction=up":                           {"direction: expected value to be one of \"inbound, outbound\""},
		"/v1/threads?close_reason=bored":                      {"close_reason: expected string to be one of the close_reason values"},
		"/v1/threads?close_reason=follow_up_skipped:":         {"close_reason: expected string to be one of the close_reason values"},
		"/v1/threads?close_reason=graded:well":                {"close_reason: expected string to be one of the close_reason values"},
		"/v1/threads?close_reason=graded&close_reason=graded": {"close_reason: must be given once"},

		"/v1/calls?include_test=maybe":                    {"include_test: invalid boolean"},
		"/v1/calls?fields=salary":                         {`fields: unknown block "salary": ` + blocks},
		"/v1/calls?fields=costs,Transcript&fields=salary": {`fields: unknown block "Transcript", "salary": ` + blocks},
		"/v1/calls/" + someID + "?fields=salary":          {`fields: unknown block "salary": ` + blocks},
		"/v1/calls?fields=costs,,analysis":                {`fields: unknown block "": ` + blocks},
		"/v1/calls?fields=costs,%20analysis":              {`fields: unknown block " analysis": ` + blocks},

		"/v1/calls?assistent_id=" + someID:                    {"assistent_id: unknown query parameter"},
		"/v1/calls?Limit=5":                                   {"Limit: unknown query parameter"},
		"/v1/calls?channel=sms":                               {"channel: unknown query parameter"},
		"/v1/threads?direction=inbound":                       {"direction: unknown query parameter"},
		"/v1/assistants?fields=call":                          {"fields: unknown query parameter"},
		"/v1/calls/" + someID + "?limit=5":                    {"limit: unknown query parameter"},
		"/v1/calls/" + someID + "/recording?fields=recording": {"fields: unknown query parameter"},
		"/open-api?x":                                         {"x: unknown query parameter"},
		"/v1/calls?%zz":                                       {"the query string is malformed"},
		"/v1/calls?limit=5;from=2026-01-01":                   {limit + "invalid integer", "the query string is malformed"},

		"/v1/calls?cursor=":     {"cursor: must not be empty"},
		"/v1/calls?cursor=abc":  {badCursor},
		"/v1/calls?cursor=%00":  {badCursor},
		"/v1/calls?cursor=MQ==": {badCursor},

		"/v1/messages?limit=0&from=x&to=y&assistant_id=1&channel=fax&direction=up&thread_id=2&fields=a,b&cursor=c&colour=red": {
			"assistant_id: " + uuid, channels, "colour: unknown query parameter", badCursor,
			"direction: expected value to be one of \"inbound, outbound\"", `fields: unknown block "a", "b": ` + blocks,
			"from: " + instant, limit + "expected number >= 1", "thread_id: " + uuid, "to: " + instant,
		},
		"/v1/calls/1?fields=a&x=y": {"call_id: " + uuid, `fields: unknown block "a": ` + blocks, "x: unknown query parameter"},
	}
	for target, details := range tests {
		t.Run(target, func(t *testing.T) {
			store.taken()
			got := want[Problem](t, anotherSecond(t, handler, k, target), http.StatusBadRequest)
			if diff := cmp.Diff(details, got.Detail); diff != "" || got.Code != "invalid_request" {
				t.Errorf("code %s, detail (-want +got):\n%s", got.Code, diff)
			}
			for _, operation := range store.taken() {
				if operation != "dynamodb:UpdateItem" && operation != "dynamodb:GetItem" {
					t.Errorf("asked AWS for %s", operation)
				}
			}
		})
	}
}

// A cursor works in its own list with its own filters, unchanged; limit and fields may change.
func TestCursors(t *testing.T) {
	store := newStore(t)
	k, other := newTenant(t, store), newTenant(t, store)
	for n := range 4 {
		insertCalls(t, store, callOf(k.ws, n), callOf(other.ws, n))
		insertThreads(t, store, threadOf(k.ws, n))
	}
	handler := api(store)
	filters := "assistant_id=" + string(frontDesk) + "&from=2026-01-01"
	cursor := want[callList](t, k.get(t, handler, "/v1/calls?limit=2&"+filters), http.StatusOK).NextCursor
	if cursor == "" || cursor != url.QueryEscape(cursor) {
		t.Fatalf("cursor %q, want one that needs no escaping", cursor)
	}

	for _, target := range []string{
		"/v1/calls?" + filters + "&cursor=" + cursor,
		"/v1/calls?" + filters + "&limit=2&cursor=" + cursor,
		"/v1/calls?from=2026-01-01&fields=analysis&limit=5&assistant_id=" + string(frontDesk) + "&cursor=" + cursor,
	} {
		got := want[callList](t, k.get(t, handler, target), http.StatusOK)
		if len(got.Calls) != 2 || got.HasMore || got.Calls[0].CallID != callOf(k.ws, 1).CallID {
			t.Errorf("%s: %d calls, has_more %v; want the last two", target, len(got.Calls), got.HasMore)
		}
	}
	// A cursor names no workspace: with another's key it lists that one's own.
	for _, call := range want[callList](t, other.get(t, handler, "/v1/calls?"+filters+"&cursor="+cursor), http.StatusOK).Calls {
		if call.WorkspaceID != other.ws {
			t.Errorf("call %s of workspace %s shows in %s", call.CallID, call.WorkspaceID, other.ws)
		}
	}

	list := "list-calls?" + url.Values{"assistant_id": {string(frontDesk)}, "from": {"2026-01-01"}}.Encode()
	position, ok := readCursor(list, cursor)
	if !ok {
		t.Fatalf("the cursor isn't of %s", list)
	}
	refused := map[string]string{
		"other filters":     "/v1/calls?from=2026-01-01&cursor=" + cursor,
		"another filter":    "/v1/calls?" + filters + "&include_test=true&cursor=" + cursor,
		"another value":     "/v1/calls?assistant_id=" + string(frontDesk) + "&from=2026-01-02&cursor=" + cursor,
		"another list":      "/v1/threads?" + filters + "&cursor=" + cursor,
		"a third list":      "/v1/messages?" + filters + "&cursor=" + cursor,
		"padded":            "/v1/calls?" + filters + "&cursor=" + cursor + "%3D",
		"doubled":           "/v1/calls?" + filters + "&cursor=" + cursor + cursor,
		"another case":      "/v1/calls?" + filters + "&cursor=" + strings.ToLower(cursor),
		"a line end":        "/v1/calls?" + filters + "&cursor=" + cursor + "%0A",
		"the bare position": "/v1/calls?" + filters + "&cursor=" + position,
	}
	for _, n := range []int{1, 8, len(cursor) / 2, len(cursor) - 1} {
		refused["cut to "+cursor[:n]] = "/v1/calls?" + filters + "&cursor=" + cursor[:n]
	}
	for i := 0; i < len(cursor); i += 5 {
		edited := []byte(cursor)
		edited[i] = map[bool]byte{true: 'B', false: 'A'}[edited[i] == 'A']
		refused["edited to "+string(edited)] = "/v1/calls?" + filters + "&cursor=" + string(edited)
	}
	// The checksum is no secret. Who makes a cursor of his own gets no more than a 400.
	for _, position := range []string{"x", "#", " ", "~", "zzzz", someID + "#", strings.Repeat("1", 5000), "\xff" + someID, "9" + someID, conversation.FirstID(t0.AddDate(9, 0, 0)) + "#" + someID} {
		refused["made of "+position[:1]+position[len(position)-1:]] = "/v1/calls?" + filters + "&cursor=" + writeCursor(list, position)
	}
	for name, target := range refused {
		t.Run(name, func(t *testing.T) {
			got := want[Problem](t, anotherSecond(t, handler, k, target), http.StatusBadRequest)
			if !slices.Equal(got.Detail, []string{badCursor}) {
				t.Errorf("detail %q", got.Detail)
			}
		})
	}
}

// A block that the key may not read is refused, whether or not there is such a record,
// and the answer has nothing of it.
func TestForbiddenBlocks(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store, conversation.BlockCall, conversation.BlockCustomer)
	call, thread, message := callOf(k.ws, 0), threadOf(k.ws, 0), messageOf(k.ws, 0)
	insertCalls(t, store, call)
	insertThreads(t, store, thread)
	insertMessages(t, store, message)
	handler := api(store)
	tests := map[string]string{
		"/v1/calls?fields=transcript":                                    "transcript",
		"/v1/calls?fields=customer,config_snapshot&fields=costs":         "costs, config_snapshot",
		"/v1/calls/" + string(call.CallID) + "?fields=analysis":          "analysis",
		"/v1/calls/" + string(call.CallID) + "?fields=call,costs":        "costs",
		"/v1/calls/" + string(call.CallID) + "/recording":                "recording",
		"/v1/calls/" + someID + "?fields=analysis":                       "analysis",
		"/v1/calls/" + someID + "/recording":                             "recording",
		"/v1/messages?fields=costs":                                      "costs",
		"/v1/messages?fields=recording":                                  "recording", // although no message has one
		"/v1/messages/" + string(message.MessageID) + "?fields=costs":    "costs",
		"/v1/threads?fields=follow_ups":                                  "follow_ups",
		"/v1/threads/" + string(thread.ThreadID) + "?fields=evaluations": "evaluations",
	}
	for target, blocks := range tests {
		t.Run(target, func(t *testing.T) {
			got := k.get(t, handler, target)
			problem := want[Problem](t, got, http.StatusForbidden)
			if expected := []string{"the API key may not read the block " + blocks}; !slices.Equal(problem.Detail, expected) || problem.Code != "forbidden" {
				t.Errorf("%+v, want detail %q", problem, expected)
			}
			if got.header.Get("Location") != "" || strings.Contains(got.body, "Front desk") {
				t.Errorf("the answer has something of the record: %v %s", got.header, got.body)
			}
		})
	}
}

// Without fields, a record has the blocks that the key may read.
func TestBlocksOfTheKey(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store, conversation.BlockCall, conversation.BlockAnalysis)
	call := callOf(k.ws, 0)
	insertCalls(t, store, call)
	handler := api(store)
	expected := conversation.Only(call, k.key.Blocks)
	if got := want[oneCall](t, k.get(t, handler, "/v1/calls/"+string(call.CallID)), http.StatusOK); !cmp.Equal(got.Call, expected) {
		t.Errorf("call (-want +got):\n%s", cmp.Diff(expected, got.Call))
	}
	if got := want[callList](t, k.get(t, handler, "/v1/calls"), http.StatusOK); !cmp.Equal(got.Calls, []conversation.Call{expected}) {
		t.Errorf("calls (-want +got):\n%s", cmp.Diff([]conversation.Call{expected}, got.Calls))
	}
}

// A record of another workspace is as absent as one that never was.
func TestNotFound(t *testing.T) {
	store := newStore(t)
	k, other := newTenant(t, store), newTenant(t, store)
	call, thread, message := callOf(other.ws, 0), threadOf(other.ws, 0), messageOf(other.ws, 0)
	insertCalls(t, store, call)
	insertThreads(t, store, thread)
	insertMessages(t, store, message)
	test := messageOf(k.ws, 1)
	test.Source = conversation.SourceTest
	insertMessages(t, store, test)
	handler := api(store)
	tests := map[string]string{
		"none":                 "/v1/calls/" + someID,
		"another's call":       "/v1/calls/" + string(call.CallID),
		"no recording":         "/v1/calls/" + someID + "/recording",
		"another's recording":  "/v1/calls/" + string(call.CallID) + "/recording",
		"no thread":            "/v1/threads/" + someID,
		"another's thread":     "/v1/threads/" + string(thread.ThreadID),
		"no message":           "/v1/messages/" + someID,
		"another's message":    "/v1/messages/" + string(message.MessageID),
		"a test message":       "/v1/messages/" + string(test.MessageID),
		"a message is no call": "/v1/calls/" + string(test.MessageID),
		"with a field":         "/v1/calls/" + string(call.CallID) + "?fields=costs",
	}
	const body = `{"detail":["there is no such record"],"code":"not_found"}` + "\n"
	for name, target := range tests {
		t.Run(name, func(t *testing.T) {
			if got := k.get(t, handler, target); got.status != http.StatusNotFound || got.body != body {
				t.Errorf("%d %s, want 404 %s", got.status, got.body, body)
			}
		})
	}
	for _, target := range []string{"/v1/calls", "/v1/messages", "/v1/threads"} {
		if got := k.get(t, handler, target); !strings.Contains(got.body, `:[],"has_more":false}`) {
			t.Errorf("%s shows what is another's or a test: %s", target, got.body)
		}
	}
}

// A conversation that is still open is no record yet.
func TestOpenThreadIsNotFound(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	open := threadOf(k.ws, 1)
	open.CompletedAt, open.CloseReason = conversation.Time{}, ""
	insertThreads(t, store, open)
	want[Problem](t, k.get(t, api(store), "/v1/threads/"+string(open.ThreadID)), http.StatusNotFound)
}

func TestUnknownPathsAndMethods(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	all := api(store)
	fallback := DefaultHandler(Service{Store: store.Store, BaseURL: baseURL}, Routes())
	one := Handler(Service{Store: store.Store, BaseURL: baseURL}, ListCalls)
	call := "/v1/calls/" + someID
	tests := []struct {
		name           string
		handler        http.Handler
		method, target string
		status         int
		allow          string
	}{
		{"wrong method", all, "POST", "/v1/threads", 405, "GET"},
		{"wrong method", all, "DELETE", call, 405, "GET"},
		{"wrong method", all, "PATCH", call + "/recording", 405, "GET"},
		{"wrong method", all, "PUT", "/v1/calls", 405, "GET, POST"},
		{"OPTIONS", all, "OPTIONS", "/v1/messages", 405, "GET"},
		{"HEAD", all, "HEAD", "/v1/messages", 405, "GET"},
		{"a method of its own", all, "BREW", "/open-api", 405, "GET"},
		{"unknown path", all, "GET", "/v1/agents", 404, ""},
		{"unknown path, wrong method", all, "POST", "/v2/calls", 404, ""},
		{"the root", all, "GET", "/", 404, ""},
		{"no version", all, "GET", "/calls", 404, ""},
		{"another case", all, "GET", "/v1/Calls", 404, ""},
		{"two slashes", all, "GET", "//v1/calls", 404, ""},
		{"two slashes, wrong method", all, "POST", "/v1//calls", 404, ""},
		{"trailing slash", all, "GET", "/v1/calls/", 404, ""},
		{"trailing slash", all, "GET", call + "/", 404, ""},
		{"no id", all, "GET", "/v1/calls//recording", 404, ""},
		{"dots", all, "GET", "/v1/./calls", 404, ""},
		{"dots", all, "GET", "/v1/calls/../threads", 404, ""},
		{"encoded dots", all, "GET", "/v1/calls/%2e%2e/threads", 404, ""},
		{"below a record", all, "GET", call + "/transcript", 404, ""},

		{"not its own path", one, "GET", "/v1/threads", 404, ""},
		{"not its own method", one, "POST", "/v1/calls", 405, "GET"},

		{"unknown path", fallback, "GET", "/v1/agents", 404, ""},
		{"known path, wrong method", fallback, "POST", "/v1/threads", 405, "GET"},
		{"known path, wrong method", fallback, "PUT", call, 405, "GET"},
		{"HEAD of another function", fallback, "HEAD", "/v1/messages", 405, "GET"},
		{"HEAD of its own", fallback, "HEAD", "/open-api", 405, "GET"},
		{"what the gateway would send elsewhere", fallback, "GET", "/v1/messages", 405, "GET"},
		{"two slashes", fallback, "GET", "//v1/calls", 404, ""},
		{"trailing slash", fallback, "GET", "/v1/calls/", 404, ""},
		{"the stage's root", fallback, "GET", "/", 404, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name+" "+tt.method+" "+tt.target, func(t *testing.T) {
			store.taken()
			got := ask(t, tt.handler, tt.method, tt.target, k.auth)
			problem := want[Problem](t, got, tt.status)
			if problem.Code != codes[tt.status] || len(problem.Detail) != 1 || got.header.Get("Allow") != tt.allow {
				t.Errorf("Allow %q, body %s; want %q", got.header.Get("Allow"), got.body, tt.allow)
			}
			if asked := store.taken(); asked != nil {
				t.Errorf("asked AWS %v", asked)
			}
		})
	}
	if got := k.get(t, fallback, "/open-api"); got.status != http.StatusOK {
		t.Errorf("GET /open-api: status %d", got.status)
	}
}
