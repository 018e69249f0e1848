package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley/shared/conversation"
)

func TestEmptyWorkspace(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	handler := api(store)
	for _, name := range []string{"calls", "messages", "threads", "assistants"} {
		for _, query := range []string{"", "?limit=100", "?assistant_id=" + someID, "?to=2026-01-01"} {
			if name == "assistants" && strings.Contains(query, "_") || name == "assistants" && strings.Contains(query, "to") {
				continue
			}
			got := k.get(t, handler, "/v1/"+name+query)
			if expected := `{"` + name + `":[],"has_more":false}` + "\n"; got.status != http.StatusOK || got.body != expected {
				t.Errorf("%s%s: %d %s, want 200 %s", name, query, got.status, got.body, expected)
			}
		}
	}
}

// pages walks a list to its end, and returns how many items each page has and all of them.
func pages[L any](t testing.TB, k tenant, handler http.Handler, target string, items func(L) (Paging, []string)) (sizes []int, all []string) {
	t.Helper()
	next := target
	for range 500 {
		paging, ids := items(want[L](t, anotherSecond(t, handler, k, next), http.StatusOK))
		sizes, all = append(sizes, len(ids)), append(all, ids...)
		if paging.HasMore != (paging.NextCursor != "") {
			t.Fatalf("%s: has_more %v, next_cursor %q", next, paging.HasMore, paging.NextCursor)
		}
		if !paging.HasMore {
			return sizes, all
		}
		next = target + "&cursor=" + paging.NextCursor
	}
	t.Fatalf("%s doesn't end", target)
	return nil, nil
}

func idsOfCalls(l callList) (Paging, []string) {
	var ids []string
	for _, call := range l.Calls {
		ids = append(ids, string(call.CallID))
	}
	return l.Paging, ids
}

func idsOfMessages(l messageList) (Paging, []string) {
	var ids []string
	for _, message := range l.Messages {
		ids = append(ids, string(message.MessageID))
	}
	return l.Paging, ids
}

func idsOfThreads(l threadList) (Paging, []string) {
	var ids []string
	for _, thread := range l.Threads {
		ids = append(ids, string(thread.ThreadID))
	}
	return l.Paging, ids
}

func idsOfAssistants(l assistantList) (Paging, []string) {
	var ids []string
	for _, assistant := range l.Assistants {
		ids = append(ids, string(assistant.AssistantID))
	}
	return l.Paging, ids
}

func TestPagesExactlyAtTheEnd(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	for n := range 30 {
		insertCalls(t, store, conversation.Call{CallID: idAt[conversation.CallID](t0, n), WorkspaceID: k.ws, StartedAt: conversation.At(t0)})
	}
	handler := api(store)
	for query, sizes := range map[string][]int{
		"limit=10": {10, 10, 10}, "limit=15": {15, 15}, "limit=30": {30}, "limit=29": {29, 1}, "limit=100": {30}, "fields=call": {25, 5},
	} {
		got, ids := pages(t, k, handler, "/v1/calls?"+query, idsOfCalls)
		newestFirst := slices.IsSortedFunc(ids, func(a, b string) int { return strings.Compare(b, a) })
		if !slices.Equal(got, sizes) || !newestFirst || len(slices.Compact(ids)) != 30 {
			t.Errorf("%s: pages of %v, newest first: %v; want %v", query, got, newestFirst, sizes)
		}
	}
}

func TestAssistants(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	var expected []conversation.Assistant
	definition, err := store.Definition(t.Context(), k.ws)
	if err != nil {
		t.Fatal(err)
	}
	changed := definition
	for n := range 30 {
		assistant := conversation.Assistant{
			AssistantID: idAt[conversation.AssistantID](t0, n), AssistantName: fmt.Sprint("Assistant ", n), WorkspaceID: k.ws,
			PhoneNumbers: []conversation.PhoneNumber{}, CallVariables: []string{},
		}
		config := conversation.AssistantConfig{Assistant: assistant, Enabled: true, Prompt: "PROMPT", Greeting: "GREETING"}
		switch n {
		case 0:
			config.PhoneNumbers, config.CallVariables = nil, nil // an empty list all the same
		case 1:
			config.PhoneNumbers = []conversation.PhoneNumber{{PhoneNumber: "+12025550111", Country: "US", OutboundEnabled: true}}
			config.CallVariables = []string{"room", "name"}
			assistant = config.Assistant
		}
		changed.Assistants = append(changed.Assistants, config)
		expected = append(expected, assistant)
	}
	changed.Workspace.Carrier = "test-" + string(k.ws) // numbers belong to one workspace per carrier
	if err := store.Define(t.Context(), definition, changed, "0"); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(expected)
	handler := api(store)
	k = anotherKey(t, store, k.ws, conversation.BlockCall) // a normal read key is enough
	got := k.get(t, handler, "/v1/assistants")
	if list := want[assistantList](t, got, http.StatusOK); list.HasMore || !cmp.Equal(list.Assistants, expected) {
		t.Errorf("assistants (-want +got):\n%s", cmp.Diff(expected, list.Assistants))
	}
	if strings.Contains(got.body, "null") || strings.Contains(got.body, "PROMPT") || strings.Contains(got.body, "GREETING") {
		t.Errorf("null or what is nobody's business: %s", got.body)
	}
	if sizes, all := pages(t, k, handler, "/v1/assistants?limit=20", idsOfAssistants); !slices.Equal(sizes, []int{20, 10}) || len(slices.Compact(all)) != 30 {
		t.Errorf("pages of %v, want 20 and 10", sizes)
	}
}

func TestTestCalls(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	for n := range 4 {
		call := callOf(k.ws, n)
		call.IsTest = n%2 == 0
		insertCalls(t, store, call)
	}
	handler := api(store)
	for query, expected := range map[string]int{"": 2, "?include_test=false": 2, "?include_test=true": 4} {
		if got := want[callList](t, k.get(t, handler, "/v1/calls"+query), http.StatusOK); len(got.Calls) != expected {
			t.Errorf("%s: %d calls, want %d", query, len(got.Calls), expected)
		}
	}
	if got := want[oneCall](t, k.get(t, handler, "/v1/calls/"+string(callOf(k.ws, 0).CallID)), http.StatusOK); !got.Call.IsTest {
		t.Error("the test call itself doesn't say so")
	}
}

// A call that is not over has no time by which from and to could choose it.
func TestCallsThatAreNotOver(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	over, queued := callOf(k.ws, 0), callOf(k.ws, 1)
	queued.Status, queued.EndedAt, queued.EndReason = conversation.CallQueued, conversation.Time{}, ""
	insertCalls(t, store, over, queued)
	handler := api(store)
	for query, expected := range map[string]int{"": 2, "?from=2026-01-01": 1, "?to=2027-01-01": 1, "?from=2026-01-01&to=2027-01-01": 1} {
		if got := want[callList](t, k.get(t, handler, "/v1/calls"+query), http.StatusOK); len(got.Calls) != expected {
			t.Errorf("%s: %d calls, want %d", query, len(got.Calls), expected)
		}
	}
}

func TestFields(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	call := callOf(k.ws, 0).WithDownloadURL(baseURL)
	insertCalls(t, store, call)
	handler := api(store)
	b := conversation.Blocks{conversation.BlockCall}
	tests := map[string]conversation.Blocks{
		"":                                      conversation.AllBlocks(),
		"fields=call":                           b,
		"fields=costs":                          append(b, conversation.BlockCosts),
		"fields=costs,analysis":                 append(b, conversation.BlockCosts, conversation.BlockAnalysis),
		"fields=costs&fields=analysis":          append(b, conversation.BlockCosts, conversation.BlockAnalysis),
		"fields=costs%2Canalysis,costs":         append(b, conversation.BlockCosts, conversation.BlockAnalysis),
		"fields=recording,call&fields=customer": append(b, conversation.BlockRecording, conversation.BlockCustomer),
	}
	for query, blocks := range tests {
		expected := conversation.Only(call, blocks)
		one := want[oneCall](t, k.get(t, handler, "/v1/calls/"+string(call.CallID)+"?"+query), http.StatusOK).Call
		list := want[callList](t, k.get(t, handler, "/v1/calls?"+query), http.StatusOK).Calls
		if !cmp.Equal(one, expected) || !cmp.Equal(list, []conversation.Call{expected}) {
			t.Errorf("%s (-want +got):\n%s", query, cmp.Diff(expected, one))
		}
	}
}

// from is inclusive, to is exclusive, to the millisecond in which things happen, in every
// form that people write.
func TestFromAndTo(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	insertThreads(t, store, threadOf(k.ws, 0)) // at 12:00:00.000
	handler := api(store)
	tests := map[string]bool{ // whether it is listed
		"from=2026-03-01T12:00:00Z":                             true,
		"from=2026-03-01T12:00:00.000Z":                         true,
		"from=2026-03-01T12:00:00.001Z":                         false,
		"from=2026-03-01T12:00:00.0001Z":                        false,
		"from=2026-03-01T11:59:59.9999Z":                        true,
		"to=2026-03-01T12:00:00Z":                               false,
		"to=2026-03-01T12:00:00.001Z":                           true,
		"to=2026-03-01T12:00:00.0001Z":                          true,
		"to=2026-03-01T11:59:59.9999Z":                          false,
		"from=2026-03-01T12:00:00":                              true,
		"from=2026-03-01T12:00":                                 true,
		"from=2026-03-01T12:00Z":                                true,
		"from=2026-03-01T12:00:01":                              false,
		"from=2026-03-01":                                       true,
		"to=2026-03-01":                                         false,
		"to=2026-03-02":                                         true,
		"from=2026-03-01T14:00:00%2B02:00":                      true,
		"from=2026-03-01T14:00:00+02:00":                        true, // reads as a space
		"from=2026-03-01T14:00:00%2B0200":                       true,
		"from=2026-03-01T14:00:00%2B02":                         true,
		"from=2026-03-01T14:00+02:00":                           true,
		"from=2026-03-01T14:00:00.001+02:00":                    false,
		"to=2026-03-01T14:00:00+02:00":                          false,
		"from=2026-03-01T07:00:00-05:00":                        true,
		"from=2026-03-01T07:00:01-05:00":                        false,
		"from=2026-03-01T12:00:00Z&to=2026-03-01T12:00:00.001Z": true,
		"from=2026-03-01T12:00:00Z&to=2026-03-01T12:00:00Z":     false,
		"from=0001-01-01&to=9999-12-31T23:59:59Z":               true,
		"to=9999-12-31T23:59:59.9999-14:00":                     true,
		"from=9999-12-31T23:59:59.9999-14:00":                   false,
		"from=0000-01-01T00:00:00%2B14:00":                      true,
	}
	for query, listed := range tests {
		got := want[threadList](t, anotherSecond(t, handler, k, "/v1/threads?"+query), http.StatusOK)
		if (len(got.Threads) == 1) != listed {
			t.Errorf("%s: %d threads, want it listed: %v", query, len(got.Threads), listed)
		}
	}
}

func TestIDsInAnyCase(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	call, thread, message := callOf(k.ws, 0), threadOf(k.ws, 0), messageOf(k.ws, 0)
	insertCalls(t, store, call)
	insertThreads(t, store, thread)
	insertMessages(t, store, message)
	handler := api(store)
	for _, target := range []string{
		"/v1/calls/" + strings.ToUpper(string(call.CallID)),
		"/v1/threads/" + strings.ToUpper(string(thread.ThreadID)),
		"/v1/messages/" + strings.ToUpper(string(message.MessageID)),
		"/v1/calls?assistant_id=" + strings.ToUpper(string(frontDesk)),
		"/v1/messages?thread_id=" + strings.ToUpper(string(message.ThreadID)),
	} {
		if got := k.get(t, handler, target); got.status != http.StatusOK || !strings.Contains(got.body, `"Front desk"`) {
			t.Errorf("%s: %d %s", target, got.status, got.body)
		}
	}
}

// Large items make short pages under 4 MiB, also as Lambda hands them on, and nothing is
// lost. One that is larger alone comes alone.
func TestLargeItems(t *testing.T) {
	store := newStore(t)
	handler := api(store)
	tests := map[string]struct {
		content func(n int) string
		calls   int
		pages   []int
	}{
		"300 KB each":        {func(int) string { return strings.Repeat("x", 300_000) }, 20, []int{13, 7}},
		"in S3":              {func(int) string { return strings.Repeat("x", 1_500_000) }, 5, []int{2, 2, 1}},
		"one over 4 MiB":     {func(n int) string { return strings.Repeat("x", 10+5_000_000*(n%2)) }, 5, []int{1, 1, 1, 1, 1}},
		"of quotes":          {func(int) string { return strings.Repeat(`"`, 300_000) }, 10, []int{4, 4, 2}},
		"of control letters": {func(int) string { return strings.Repeat("\x01", 300_000) }, 5, []int{2, 2, 1}},
		"of angle brackets":  {func(int) string { return strings.Repeat("<", 300_000) }, 14, []int{13, 1}},
		"in other alphabets": {func(int) string { return strings.Repeat("字", 100_000) }, 14, []int{13, 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTenant(t, store)
			expected := map[string]string{}
			for n := range tt.calls {
				call := conversation.Call{
					CallID: idAt[conversation.CallID](t0, n), WorkspaceID: k.ws, StartedAt: conversation.At(t0),
					Transcript: []conversation.Turn{{Role: conversation.RoleUser, Content: tt.content(n)}},
				}
				insertCalls(t, store, call)
				expected[string(call.CallID)] = tt.content(n)
			}
			largest := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got := k.get(t, handler, r.URL.String())
				if envelope := lambdaAnswer(t, got); len(envelope) > 6_000_000 {
					t.Errorf("Lambda's answer has %d bytes", len(envelope))
				}
				maps.Copy(w.Header(), got.header)
				w.WriteHeader(got.status)
				_, _ = w.Write([]byte(got.body))
			})
			sizes, all := pages(t, k, largest, "/v1/calls?limit=100", func(l callList) (Paging, []string) {
				total := 0
				for _, call := range l.Calls {
					if call.Transcript[0].Content != expected[string(call.CallID)] {
						t.Errorf("call %s has another transcript", call.CallID)
					}
					total += len(call.Transcript[0].Content)
				}
				if total > 4<<20 && len(l.Calls) > 1 {
					t.Errorf("a page has %d bytes of transcripts", total)
				}
				return idsOfCalls(l)
			})
			if !slices.Equal(sizes, tt.pages) || len(all) != tt.calls {
				t.Errorf("pages of %v, want %v", sizes, tt.pages)
			}
			// Who doesn't ask for the transcripts gets all calls at once.
			if sizes, _ := pages(t, k, handler, "/v1/calls?limit=100&fields=analysis", idsOfCalls); tt.calls*300_000 < 5<<20 && len(sizes) > 1 {
				t.Errorf("without transcripts: pages of %v, want one", sizes)
			}
		})
	}
}

// lambdaAnswer is what the function hands to Lambda for an answer.
func lambdaAnswer(t testing.TB, got answered) []byte {
	t.Helper()
	var envelope strings.Builder
	encoder := json.NewEncoder(&envelope)
	encoder.SetEscapeHTML(false) // as aws-lambda-go does
	if err := encoder.Encode(events.APIGatewayV2HTTPResponse{StatusCode: got.status, Body: got.body}); err != nil {
		t.Fatal(err)
	}
	return []byte(envelope.String())
}

// For random records and random filters, walking the pages by their cursors gives exactly
// the records that match, newest first.
func TestListsByProperty(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	routes := Routes()
	for i := range routes {
		routes[i].Limit = Limit{}
	}
	handler := Handler(Service{Store: store.Store, BaseURL: baseURL}, routes...)
	calls := rapid.Custom(func(rt *rapid.T) []conversation.Call { return drawCalls(rt, k.ws) }).Example(1)
	messages := rapid.Custom(func(rt *rapid.T) []conversation.Message { return drawMessages(rt, k.ws) }).Example(2)
	threads := rapid.Custom(func(rt *rapid.T) []conversation.Thread { return drawThreads(rt, k.ws) }).Example(3)
	insertCalls(t, store, calls...)
	insertMessages(t, store, messages...)
	insertThreads(t, store, threads...)

	rapid.Check(t, func(rt *rapid.T) {
		filters := drawFilters(rt)
		query := url.Values{"limit": {strconv.Itoa(rapid.IntRange(3, 40).Draw(rt, "limit"))}}
		maps.Copy(query, filters)
		var expected, got []string
		switch list := rapid.SampledFrom([]string{"calls", "messages", "threads"}).Draw(rt, "list"); list {
		case "calls":
			for _, name := range []string{"channel", "direction", "thread_id", "close_reason"} {
				query.Del(name)
				filters.Del(name)
			}
			for _, call := range calls {
				if (!call.IsTest || filters.Has("include_test")) && within(filters, call.EndedAt) && is(filters, "assistant_id", call.AssistantID) {
					expected = append(expected, string(call.CallID))
				}
			}
			_, got = pages(t, k, handler, "/v1/calls?"+query.Encode(), idsOfCalls)
		case "messages":
			query.Del("include_test")
			query.Del("close_reason")
			for _, m := range messages {
				if within(filters, m.OccurredAt) && is(filters, "assistant_id", m.AssistantID) && is(filters, "channel", m.Channel) &&
					is(filters, "direction", m.Direction) && is(filters, "thread_id", m.ThreadID) {
					expected = append(expected, string(m.MessageID))
				}
			}
			_, got = pages(t, k, handler, "/v1/messages?"+query.Encode(), idsOfMessages)
		case "threads":
			for _, name := range []string{"direction", "thread_id", "include_test"} {
				query.Del(name)
			}
			for _, th := range threads {
				skipped := filters.Get("close_reason") == "follow_up_skipped" && strings.HasPrefix(string(th.CloseReason), "follow_up_skipped:")
				if within(filters, th.CompletedAt) && is(filters, "assistant_id", th.AssistantID) && is(filters, "channel", th.Channel) &&
					(skipped || is(filters, "close_reason", th.CloseReason)) {
					expected = append(expected, string(th.ThreadID))
				}
			}
			_, got = pages(t, k, handler, "/v1/threads?"+query.Encode(), idsOfThreads)
		}
		slices.Sort(expected) // ids are made in the order of time here
		slices.Reverse(expected)
		if diff := cmp.Diff(expected, got); diff != "" {
			rt.Errorf("%s (-want +got):\n%s", query.Encode(), diff)
		}
	})
}

// within tells whether from and to choose a moment; no moment is chosen by neither.
func within(filters url.Values, at conversation.Time) bool {
	var from, to Instant
	_ = from.UnmarshalText([]byte(filters.Get("from")))
	_ = to.UnmarshalText([]byte(filters.Get("to")))
	return (from.IsZero() || !at.IsZero() && !at.Before(from.Time)) && (to.IsZero() || !at.IsZero() && at.Before(to.Time))
}

func is[V ~string](filters url.Values, name string, value V) bool {
	return !filters.Has(name) || filters.Get(name) == string(value)
}

var (
	assistants = []conversation.AssistantID{frontDesk, billing}
	channels   = []conversation.Channel{conversation.SMS, conversation.WhatsApp}
	reasons    = []conversation.CloseReason{conversation.Graded, conversation.SkippedQuietHours, conversation.SkippedOutside24hWindow, conversation.GradingFailed}
)

func drawFilters(rt *rapid.T) url.Values {
	filters := url.Values{}
	draw := func(name string, values ...string) {
		if rapid.IntRange(0, 2).Draw(rt, "by "+name) == 0 {
			filters.Set(name, rapid.SampledFrom(values).Draw(rt, name))
		}
	}
	minute := func(name string) string {
		return conversation.At(t0.Add(time.Duration(rapid.IntRange(-10, 90).Draw(rt, name)) * time.Minute)).String()
	}
	draw("assistant_id", string(frontDesk), string(billing))
	draw("channel", "sms", "whatsapp")
	draw("direction", "inbound", "outbound")
	draw("thread_id", string(frontDesk), string(billing)) // any two ids
	draw("close_reason", "graded", "follow_up_skipped", "follow_up_skipped:quiet_hours")
	draw("include_test", "true")
	draw("from", minute("from"))
	draw("to", minute("to"))
	if filters.Has("from") && filters.Has("to") && filters.Get("from") > filters.Get("to") {
		filters.Del("to")
	}
	return filters
}

func drawCalls(rt *rapid.T, ws conversation.WorkspaceID) []conversation.Call {
	calls := make([]conversation.Call, 60)
	for n := range calls {
		at := t0.Add(time.Duration(n) * time.Minute)
		calls[n] = conversation.Call{
			CallID: idAt[conversation.CallID](at, n), WorkspaceID: ws, StartedAt: conversation.At(at),
			AssistantID: rapid.SampledFrom(assistants).Draw(rt, "assistant"), IsTest: rapid.IntRange(0, 3).Draw(rt, "test") == 0,
		}
		if rapid.IntRange(0, 5).Draw(rt, "over") > 0 {
			calls[n].EndedAt = conversation.At(at.Add(time.Duration(rapid.IntRange(0, 30).Draw(rt, "minutes")) * time.Minute))
		}
	}
	return calls
}

func drawMessages(rt *rapid.T, ws conversation.WorkspaceID) []conversation.Message {
	messages := make([]conversation.Message, 60)
	for n := range messages {
		at := t0.Add(time.Duration(n) * time.Minute)
		messages[n] = conversation.Message{
			MessageID: idAt[conversation.MessageID](at, n), WorkspaceID: ws, OccurredAt: conversation.At(at),
			AssistantID: rapid.SampledFrom(assistants).Draw(rt, "assistant"), Channel: rapid.SampledFrom(channels).Draw(rt, "channel"),
			ThreadID:  conversation.ThreadID(rapid.SampledFrom(assistants).Draw(rt, "thread")),
			Direction: rapid.SampledFrom([]conversation.Direction{conversation.Inbound, conversation.Outbound}).Draw(rt, "direction"),
			Source:    conversation.SourceInbound,
		}
	}
	return messages
}

func drawThreads(rt *rapid.T, ws conversation.WorkspaceID) []conversation.Thread {
	threads := make([]conversation.Thread, 60)
	for n := range threads {
		at := t0.Add(time.Duration(n) * time.Minute)
		threads[n] = conversation.Thread{
			ThreadID: idAt[conversation.ThreadID](at, n), WorkspaceID: ws, CompletedAt: conversation.At(at),
			AssistantID: rapid.SampledFrom(assistants).Draw(rt, "assistant"), Channel: rapid.SampledFrom(channels).Draw(rt, "channel"),
			CloseReason: rapid.SampledFrom(reasons).Draw(rt, "reason"),
		}
	}
	return threads
}
