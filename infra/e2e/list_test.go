package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley/shared/conversation"
)

// checkLists walks a list by each query, and wants the items that are named beside it.
func checkLists[R any](t *testing.T, k key, list string, id func(R) string, tests map[string][]R) {
	t.Helper()
	for query, want := range tests {
		got := walk[R](t, k, list, query)
		if diff := cmp.Diff(idsOf(want, id), idsOf(got, id), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s?%s: %d items, want %d (-want +got):\n%s", list, query, len(got), len(want), diff)
		}
	}
}

func idsOf[R any](items []R, id func(R) string) []string {
	var ids []string
	for _, item := range items {
		ids = append(ids, id(item))
	}
	return ids
}

func only[R any](items []R, is func(R) bool) []R {
	return slices.DeleteFunc(slices.Clone(items), func(item R) bool { return !is(item) })
}

// checkNewestFirst wants each item once, by falling times.
func checkNewestFirst[R any](t *testing.T, items []R, id func(R) string, at func(R) conversation.Time) {
	t.Helper()
	seen := map[string]bool{}
	for i, item := range items {
		if seen[id(item)] {
			t.Errorf("%s comes twice", id(item))
		}
		seen[id(item)] = true
		if i > 0 && at(item).After(at(items[i-1]).Time) {
			t.Errorf("%s of %v comes after one of %v", id(item), at(item), at(items[i-1]))
		}
	}
}

func callIDOf(c conversation.Call) string       { return string(c.CallID) }
func threadIDOf(c conversation.Thread) string   { return string(c.ThreadID) }
func messageIDOf(m conversation.Message) string { return string(m.MessageID) }

// A moment may be written as people do.
func TestTimes(t *testing.T) {
	t.Parallel()
	k := demoKey(t)
	all := walk[conversation.Message](t, k, "messages", "limit=100")
	at := all[len(all)/2].OccurredAt
	later := only(all, func(m conversation.Message) bool { return !m.OccurredAt.Before(at.Time) })
	east := at.In(time.FixedZone("", 2*60*60)).Format("2006-01-02T15:04:05.000-07:00")
	tests := map[string][]conversation.Message{}
	for _, moment := range []string{
		at.String(),
		at.UTC().Format("2006-01-02T15:04:05.000"),
		at.UTC().Format("2006-01-02T15:04:05.000000000Z"),
		east, // the gateway, or the client, takes its + for a space
		url.QueryEscape(east),
		strings.Replace(url.QueryEscape(east), "00%3A00", "", 1),
		strings.Replace(url.QueryEscape(east), "02%3A00", "0200", 1),
		strings.Replace(url.QueryEscape(east), "02%3A00", "02", 1),
	} {
		tests["limit=100&from="+moment] = later
	}
	day := at.UTC().Format(time.DateOnly)
	tests["limit=100&from="+day] = only(all, func(m conversation.Message) bool { return m.OccurredAt.String() >= day })
	checkLists(t, k, "messages", messageIDOf, tests)
}

// A walk goes on where it was, whatever is new.
func TestCallsDuringAWalk(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	insert := func(i int) string {
		call := read[conversation.Call](t, n, queuedCall)
		call.CallID = conversation.CallID(fmt.Sprintf("0199b111-0000-7000-8000-%012d", i))
		insertCall(t, call)
		return string(call.CallID)
	}
	expected := []string{insert(3), insert(2), insert(1), insert(0)}
	first := pageOf[conversation.Call](t, n.key, "calls", "limit=2")
	insert(4)
	second := pageOf[conversation.Call](t, n.key, "calls", "limit=2&cursor="+first.NextCursor)
	got := idsOf(append(first.Items, second.Items...), callIDOf)
	if diff := cmp.Diff(expected, got); diff != "" || second.HasMore {
		t.Errorf("has_more %v (-want +got):\n%s", second.HasMore, diff)
	}
}

func TestEmptyWorkspace(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	for list := range resources {
		got := n.key.get(t, "/v1/"+list)
		if want := fmt.Sprintf("{%q:[],\"has_more\":false}\n", list); got.status != http.StatusOK || string(got.body) != want {
			t.Errorf("%s: %d %s, want 200 %s", list, got.status, got.body, want)
		}
	}
}

// A transcript that is too large for its item is read from the bucket. A page of such
// items stays small enough for the gateway by carrying fewer, and loses none.
func TestLargeCalls(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	const count, size = 14, 400 << 10
	var expected []string
	for i := range count {
		call := read[conversation.Call](t, n, queuedCall)
		call.CallID = conversation.CallID(fmt.Sprintf("0199b111-0000-7000-8000-%012d", count-i))
		call.Transcript = []conversation.Turn{{Role: conversation.RoleUser, Content: strings.Repeat("a", size)}}
		insertCall(t, call)
		expected = append(expected, string(call.CallID))
	}
	var got []string
	cursor, pages := "", 0
	for more := true; more && pages < count; pages++ {
		p := pageOf[conversation.Call](t, n.key, "calls", "limit=100"+cursor)
		for _, call := range p.Items {
			got = append(got, string(call.CallID))
			if len(call.Transcript) != 1 || len(call.Transcript[0].Content) != size {
				t.Errorf("call %s has lost its transcript", call.CallID)
			}
		}
		if len(p.Items)*size > 4<<20 {
			t.Errorf("a page of %d large calls, want less than 4 MiB", len(p.Items))
		}
		more, cursor = p.HasMore, "&cursor="+p.NextCursor
	}
	if diff := cmp.Diff(expected, got); diff != "" || pages != 2 {
		t.Errorf("in %d pages, want 2 (-want +got):\n%s", pages, diff)
	}
	got = nil
	for _, call := range pageOf[conversation.Call](t, n.key, "calls", "limit=100&fields=analysis").Items {
		got = append(got, string(call.CallID))
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("without the transcripts, want one page (-want +got):\n%s", diff)
	}
	one := want[struct{ Call conversation.Call }](t, n.key.get(t, "/v1/calls/"+expected[0]), http.StatusOK).Call
	if len(one.Transcript) != 1 || len(one.Transcript[0].Content) != size {
		t.Error("by its id, a call has lost its transcript")
	}
}
