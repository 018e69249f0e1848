package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	badCursor = "cursor: must be the next_cursor of a page of this list with the same filters, unchanged"
	badLimit  = "limit: expected number >= 1"
	badTime   = "invalid value: must be an ISO 8601 time, such as 2026-01-31T08:00:00Z"
	badID     = "expected string to be a UUID"
	badReason = "close_reason: expected string to be one of the close_reason values"
	theBlocks = ": the blocks are call, customer, costs, transcript, analysis, evaluations, follow_ups, recording, performance_metrics, config_snapshot"
)

// Every problem of a request is named, once, in order, however the gateway hands it over.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"/v1/calls?limit=0":               {badLimit},
		"/v1/threads?limit=-1":            {badLimit},
		"/v1/messages?limit=101":          {"limit: expected number <= 100"},
		"/v1/assistants?limit=101":        {"limit: expected number <= 100"},
		"/v1/calls?limit=abc":             {"limit: invalid integer"},
		"/v1/calls?limit=":                {"limit: must not be empty"},
		"/v1/calls?limit=5&limit=6":       {"limit: must be given once"},
		"/v1/calls?limit=5,6":             {"limit: invalid integer"},
		"/v1/calls?limit=5;to=2026-01-01": {"limit: invalid integer", "the query string is malformed"},
		"/v1/calls?%zz":                   {"the query string is malformed"},

		"/v1/calls?from=yesterday":                   {"from: " + badTime},
		"/v1/calls?to=1772366400":                    {"to: " + badTime},
		"/v1/messages?from=2026-02-30":               {"from: " + badTime},
		"/v1/threads?to=2026-01-31T25:00:00Z":        {"to: " + badTime},
		"/v1/threads?from=":                          {"from: must not be empty"},
		"/v1/threads?from=2026-01-02&to=2026-01-01":  {"from: must not be after to"},
		"/v1/messages?from=2026-01-02&to=2026-01-01": {"from: must not be after to"},

		"/v1/calls?assistant_id=me":              {"assistant_id: " + badID},
		"/v1/threads?assistant_id={" + nowhereID: {"assistant_id: " + badID},
		"/v1/messages?thread_id=1":               {"thread_id: " + badID},
		"/v1/calls/1":                            {"call_id: " + badID},
		"/v1/calls/%00":                          {"the request's path or body can't be read"},
		"/v1/calls/1/recording":                  {"call_id: " + badID},
		"/v1/messages/1":                         {"message_id: " + badID},
		"/v1/threads/1":                          {"thread_id: " + badID},

		"/v1/messages?channel=fax":                    {`channel: expected value to be one of "sms, whatsapp"`},
		"/v1/threads?channel=SMS":                     {`channel: expected value to be one of "sms, whatsapp"`},
		"/v1/messages?direction=up":                   {`direction: expected value to be one of "inbound, outbound"`},
		"/v1/threads?close_reason=bored":              {badReason},
		"/v1/threads?close_reason=follow_up_skipped:": {badReason},
		"/v1/calls?include_test=maybe":                {"include_test: invalid boolean"},

		"/v1/calls?fields=salary":                         {`fields: unknown block "salary"` + theBlocks},
		"/v1/calls?fields=costs,Transcript&fields=salary": {`fields: unknown block "Transcript", "salary"` + theBlocks},
		"/v1/messages/" + nowhereID + "?fields=a":         {`fields: unknown block "a"` + theBlocks},

		"/v1/calls?assistent_id=" + nowhereID:               {"assistent_id: unknown query parameter"},
		"/v1/calls?channel=sms":                             {"channel: unknown query parameter"},
		"/v1/threads?direction=inbound":                     {"direction: unknown query parameter"},
		"/v1/assistants?fields=call":                        {"fields: unknown query parameter"},
		"/v1/calls/" + nowhereID + "?limit=5":               {"limit: unknown query parameter"},
		"/v1/calls/" + nowhereID + "/recording?fields=call": {"fields: unknown query parameter"},
		"/open-api?x=1":                                     {"x: unknown query parameter"},

		"/v1/calls?cursor=":                               {"cursor: must not be empty"},
		"/v1/messages?cursor=abc":                         {badCursor},
		"/v1/threads?cursor=" + strings.Repeat("a", 5000): {badCursor},
		"/v1/assistants?cursor=%ff":                       {badCursor},

		"/v1/messages?limit=0&from=x&to=y&assistant_id=1&channel=fax&direction=up&thread_id=2&fields=a,b&cursor=c&colour=red": {
			"assistant_id: " + badID, `channel: expected value to be one of "sms, whatsapp"`, "colour: unknown query parameter", badCursor,
			`direction: expected value to be one of "inbound, outbound"`, `fields: unknown block "a", "b"` + theBlocks,
			"from: " + badTime, badLimit, "thread_id: " + badID, "to: " + badTime,
		},
		"/v1/calls/1?fields=a&x=y":               {"call_id: " + badID, `fields: unknown block "a"` + theBlocks, "x: unknown query parameter"},
		"/v1/calls/" + strings.Repeat("a", 5000): {"call_id: " + badID},
	}
	k := newTenant(t).key
	for target, details := range tests {
		got := want[problem](t, k.get(t, target), http.StatusBadRequest)
		if diff := cmp.Diff(problem{details, "invalid_request"}, got); diff != "" {
			t.Errorf("%.200s (-want +got):\n%s", target, diff)
		}
	}
}

// A cursor works in its own list with its own filters, unchanged; limit and fields may
// change on the way.
func TestCursors(t *testing.T) {
	t.Parallel()
	k := demoKey(t)
	const filters = "channel=sms&from=2020-01-01"
	cursor := pageOf[record](t, k, "threads", "limit=2&"+filters).NextCursor
	expected := walk[record](t, k, "threads", "limit=100&"+filters+"&fields=analysis")[2:]
	got := pageOf[record](t, k, "threads", "limit=50&fields=analysis&from=2020-01-01&channel=sms&cursor="+cursor)
	if diff := cmp.Diff(expected, got.Items); diff != "" {
		t.Errorf("by another limit, other fields and in another order (-want +got):\n%s", diff)
	}

	refused := map[string]string{
		"fewer filters":       "/v1/threads?channel=sms&cursor=" + cursor,
		"another filter":      "/v1/threads?" + filters + "&to=2999-01-01&cursor=" + cursor,
		"another value":       "/v1/threads?channel=whatsapp&from=2020-01-01&cursor=" + cursor,
		"another list":        "/v1/messages?" + filters + "&cursor=" + cursor,
		"a list without any":  "/v1/assistants?cursor=" + cursor,
		"cut":                 "/v1/threads?" + filters + "&cursor=" + cursor[:len(cursor)-1],
		"cut at its start":    "/v1/threads?" + filters + "&cursor=" + cursor[1:],
		"doubled":             "/v1/threads?" + filters + "&cursor=" + cursor + cursor,
		"padded":              "/v1/threads?" + filters + "&cursor=" + cursor + "%3D",
		"in capital letters":  "/v1/threads?" + filters + "&cursor=" + strings.ToUpper(cursor),
		"of the next version": "/v1/threads?" + filters + "&cursor=Mg" + cursor[2:],
	}
	for i := 0; i < len(cursor); i += 7 {
		edited := []byte(cursor)
		edited[i] ^= 1 // still of base64's alphabet, but for a few
		refused["edited to "+string(edited)] = "/v1/threads?" + filters + "&cursor=" + string(edited)
	}
	for name, target := range refused {
		got := want[problem](t, k.get(t, target), http.StatusBadRequest)
		if diff := cmp.Diff(problem{[]string{badCursor}, "invalid_request"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A path answers the methods of its routes, and names them to others.
func TestMethodNotAllowed(t *testing.T) {
	t.Parallel()
	methods := map[string][]string{}
	for _, route := range endpoints() {
		methods[pathOf(route)] = append(methods[pathOf(route)], route.Method)
	}
	for path, allowed := range methods {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead} {
				if slices.Contains(allowed, method) {
					continue
				}
				got := ask(t, usualClient, method, path, "") // whether or not somebody is known
				allow := strings.Join(allowed, ", ")
				body := `{"detail":["this path answers ` + allow + `"],"code":"method_not_allowed"}` + "\n"
				if method == http.MethodHead {
					body = ""
				}
				if got.status != http.StatusMethodNotAllowed || string(got.body) != body || got.header.Get("Allow") != allow {
					t.Errorf("%s: %d, Allow %q, %s; want 405, %q, %s", method, got.status, got.header.Get("Allow"), got.body, allow, body)
				}
			}
		})
	}
}

func TestUnknownPaths(t *testing.T) {
	t.Parallel()
	k := newTenant(t).key
	const body = `{"detail":["there is no such path"],"code":"not_found"}` + "\n"
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v2/calls", "/V1/calls", "/v1/Calls", "/v1/call", "/v1/calls/", "/v1/calls/" + nowhereID + "/",
		"/v1/calls/" + nowhereID + "/transcript", "/v1/messages/" + nowhereID + "/recording", "/v1/assistants/" + nowhereID,
		"/openapi.json", "/favicon.ico", "/v1/x/../calls", "/v1/calls/../calls", "/v1/%63alls/x/y", "/" + strings.Repeat("a/", 2000),
	} {
		for _, header := range []string{"", k.header()} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				got := ask(t, usualClient, method, path, header)
				if got.status != http.StatusNotFound || string(got.body) != body {
					t.Errorf("%s %.80s: %d %.200s, want 404 %s", method, path, got.status, got.body, body)
				}
			}
		}
	}
}
