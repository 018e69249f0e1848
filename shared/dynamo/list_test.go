package dynamo_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/dynamo/dynamotest"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// walk reads a list to its end and returns the ids in order.
func walk[R any](t require, limit int, read func(dynamo.PageRequest) (dynamo.Page[R], error), id func(R) string) []string {
	ids := []string{}
	after := ""
	for range 500 {
		page, err := read(dynamo.PageRequest{Limit: limit, After: after, Blocks: conversation.AllBlocks()})
		if err != nil {
			t.Fatalf("page after %q: %v", after, err)
		}
		if len(page.Items) > limit {
			t.Fatalf("a page has %d items, over its limit of %d", len(page.Items), limit)
		}
		for _, item := range page.Items {
			ids = append(ids, id(item))
		}
		if page.Next == "" {
			return ids
		}
		after = page.Next
	}
	t.Fatalf("the list doesn't end")
	return nil
}

type require interface {
	Fatalf(format string, args ...any)
}

// An assistant of a drawn value; there are three.
func assistant(n int) conversation.AssistantID {
	return conversation.AssistantID(fmt.Sprintf("0191d1c0-0000-7000-8000-00000000000%d", n))
}

// idAt is a UUIDv7 made at a time, the nth of it.
func idAt(at time.Time, n int) string {
	id := conversation.FirstID(at)
	return id[:len(id)-4] + fmt.Sprintf("%04x", n)
}

// For random calls and random filters, walking the pages gives exactly the matching
// calls, each once, newest first, also while new calls arrive.
func TestCallsByProperty(t *testing.T) {
	store := dynamotest.Store(t)
	rapid.Check(t, func(rt *rapid.T) {
		ws := newWorkspace()
		insert := func(n int) conversation.Call {
			at := t0.Add(time.Duration(rapid.IntRange(0, 600).Draw(rt, "minute")) * time.Minute)
			call := conversation.Call{
				CallID: conversation.CallID(idAt(at, n)), WorkspaceID: ws, StartedAt: conversation.At(at),
				AssistantID: assistant(rapid.IntRange(0, 2).Draw(rt, "assistant")),
				Status:      conversation.CallEnded,
				IsTest:      rapid.IntRange(0, 3).Draw(rt, "test") == 0,
			}
			if rapid.IntRange(0, 4).Draw(rt, "over") > 0 {
				call.EndedAt = conversation.At(at.Add(time.Duration(rapid.IntRange(0, 240).Draw(rt, "length")) * time.Minute))
			}
			if err := store.InsertCall(t.Context(), call); err != nil {
				rt.Fatalf("insert: %v", err)
			}
			return call
		}
		var calls []conversation.Call
		for n := range rapid.IntRange(0, 30).Draw(rt, "calls") {
			calls = append(calls, insert(n))
		}
		query := dynamo.CallQuery{IncludeTest: rapid.Bool().Draw(rt, "include tests")}
		if rapid.Bool().Draw(rt, "by assistant") {
			query.AssistantID = assistant(rapid.IntRange(0, 2).Draw(rt, "which assistant"))
		}
		if rapid.Bool().Draw(rt, "from") {
			query.From = t0.Add(time.Duration(rapid.IntRange(-60, 700).Draw(rt, "from minute")) * time.Minute)
		}
		if rapid.Bool().Draw(rt, "to") {
			query.To = t0.Add(time.Duration(rapid.IntRange(-60, 900).Draw(rt, "to minute")) * time.Minute)
		}
		matches := func(c conversation.Call) bool {
			return (query.IncludeTest || !c.IsTest) &&
				(query.AssistantID == "" || c.AssistantID == query.AssistantID) &&
				(query.From.IsZero() || !c.EndedAt.IsZero() && !c.EndedAt.Before(query.From)) &&
				(query.To.IsZero() || !c.EndedAt.IsZero() && c.EndedAt.Before(query.To))
		}
		want := []string{}
		for _, call := range calls {
			if matches(call) {
				want = append(want, string(call.CallID))
			}
		}
		slices.Sort(want)
		slices.Reverse(want)

		pages := 0
		got := walk(rt, rapid.IntRange(1, 10).Draw(rt, "limit"), func(p dynamo.PageRequest) (dynamo.Page[conversation.Call], error) {
			page, err := store.Calls(t.Context(), ws, query, p)
			if pages++; pages <= 3 { // a newer call appears while the pages are walked
				newer := t0.Add(1000*time.Hour + time.Duration(pages)*time.Minute)
				call := conversation.Call{CallID: conversation.CallID(idAt(newer, 0)), WorkspaceID: ws, StartedAt: conversation.At(newer), IsTest: true}
				if err := store.InsertCall(t.Context(), call); err != nil {
					rt.Fatalf("insert: %v", err)
				}
			}
			return page, err
		}, func(c conversation.Call) string { return string(c.CallID) })
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestMessagesByProperty(t *testing.T) {
	store := dynamotest.Store(t)
	rapid.Check(t, func(rt *rapid.T) {
		ws := newWorkspace()
		var messages []conversation.Message
		for n := range rapid.IntRange(0, 25).Draw(rt, "messages") {
			at := t0.Add(time.Duration(rapid.IntRange(0, 20).Draw(rt, "ms")) * time.Millisecond)
			m := conversation.Message{
				MessageID: conversation.MessageID(idAt(at, n)), WorkspaceID: ws, OccurredAt: conversation.At(at),
				AssistantID: assistant(rapid.IntRange(0, 1).Draw(rt, "assistant")),
				ThreadID:    conversation.ThreadID(assistant(rapid.IntRange(0, 1).Draw(rt, "thread"))),
				Channel:     rapid.SampledFrom([]conversation.Channel{conversation.SMS, conversation.WhatsApp}).Draw(rt, "channel"),
				Direction:   rapid.SampledFrom([]conversation.Direction{conversation.Inbound, conversation.Outbound}).Draw(rt, "direction"),
				Source:      rapid.SampledFrom([]conversation.Source{conversation.SourceInbound, conversation.SourceTest}).Draw(rt, "source"),
			}
			if err := store.InsertMessage(t.Context(), m); err != nil {
				rt.Fatalf("insert: %v", err)
			}
			messages = append(messages, m)
		}
		var q dynamo.MessageQuery
		if rapid.Bool().Draw(rt, "by assistant") {
			q.AssistantID = assistant(0)
		}
		if rapid.Bool().Draw(rt, "by thread") {
			q.ThreadID = conversation.ThreadID(assistant(1))
		}
		if rapid.Bool().Draw(rt, "by channel") {
			q.Channel = conversation.SMS
		}
		if rapid.Bool().Draw(rt, "by direction") {
			q.Direction = conversation.Outbound
		}
		half := 500 * time.Microsecond // bounds between the milliseconds, too
		if rapid.Bool().Draw(rt, "from") {
			q.From = t0.Add(time.Duration(rapid.IntRange(-2, 50).Draw(rt, "from half ms")) * half)
		}
		if rapid.Bool().Draw(rt, "to") {
			q.To = t0.Add(time.Duration(rapid.IntRange(-2, 50).Draw(rt, "to half ms")) * half)
		}
		want := []string{}
		for _, m := range messages {
			if m.Source != conversation.SourceTest &&
				(q.AssistantID == "" || m.AssistantID == q.AssistantID) &&
				(q.ThreadID == "" || m.ThreadID == q.ThreadID) &&
				(q.Channel == "" || m.Channel == q.Channel) &&
				(q.Direction == "" || m.Direction == q.Direction) &&
				(q.From.IsZero() || !m.OccurredAt.Before(q.From)) &&
				(q.To.IsZero() || m.OccurredAt.Before(q.To)) {
				want = append(want, m.OccurredAt.String()+"#"+string(m.MessageID))
			}
		}
		slices.Sort(want)
		slices.Reverse(want)
		got := walk(rt, rapid.IntRange(1, 7).Draw(rt, "limit"), func(p dynamo.PageRequest) (dynamo.Page[conversation.Message], error) {
			return store.Messages(t.Context(), ws, q, p)
		}, func(m conversation.Message) string { return m.OccurredAt.String() + "#" + string(m.MessageID) })
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Errorf("messages (-want +got):\n%s", diff)
		}
	})
}

func TestThreadsByCloseReason(t *testing.T) {
	store, ws := dynamotest.Store(t), newWorkspace()
	reasons := []conversation.CloseReason{
		conversation.Graded, conversation.FollowUpFailedReason, conversation.SkippedQuietHours, conversation.SkippedOutside24hWindow,
	}
	byReason := map[conversation.CloseReason]string{}
	for i, reason := range reasons {
		at := t0.Add(time.Duration(i) * time.Minute)
		thread := conversation.Thread{
			ThreadID: conversation.ThreadID(idAt(at, i)), WorkspaceID: ws, AssistantID: assistant(0), Channel: conversation.SMS,
			CloseReason: reason, CompletedAt: conversation.At(at),
		}
		byReason[reason] = string(thread.ThreadID)
		if err := store.InsertThread(t.Context(), thread); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[conversation.CloseReason][]string{
		conversation.Graded:                {byReason[conversation.Graded]},
		conversation.SkippedQuietHours:     {byReason[conversation.SkippedQuietHours]},
		conversation.FollowUpSkippedReason: {byReason[conversation.SkippedOutside24hWindow], byReason[conversation.SkippedQuietHours]},
		conversation.GradingFailed:         {},
	}
	for reason, want := range tests {
		got := walk(t, 25, func(p dynamo.PageRequest) (dynamo.Page[conversation.Thread], error) {
			return store.Threads(t.Context(), ws, dynamo.ThreadQuery{CloseReason: reason}, p)
		}, func(th conversation.Thread) string { return string(th.ThreadID) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("close_reason=%s (-want +got):\n%s", reason, diff)
		}
	}
}

// A page exactly at the end says that it is the last.
func TestPageExactlyAtTheEnd(t *testing.T) {
	store, ws := dynamotest.Store(t), newWorkspace()
	for n := range 10 {
		at := t0.Add(time.Duration(n) * time.Second)
		call := conversation.Call{CallID: conversation.CallID(idAt(at, n)), WorkspaceID: ws, StartedAt: conversation.At(at)}
		if err := store.InsertCall(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	for limit, wantPages := range map[int]int{5: 2, 10: 1, 9: 2, 100: 1} {
		pages, after := 0, ""
		for {
			page, err := store.Calls(t.Context(), ws, dynamo.CallQuery{}, dynamo.PageRequest{Limit: limit, After: after})
			if err != nil {
				t.Fatal(err)
			}
			pages++
			if after = page.Next; after == "" {
				break
			}
		}
		if pages != wantPages {
			t.Errorf("limit %d: %d pages, want %d", limit, pages, wantPages)
		}
	}
}

// Large items make short pages, and nothing is lost.
func TestPagesOfLargeItems(t *testing.T) {
	store, ws := dynamotest.Store(t), newWorkspace()
	want := []string{}
	for n := range 60 {
		at := t0.Add(time.Duration(n) * time.Second)
		call := conversation.Call{
			CallID: conversation.CallID(idAt(at, n)), WorkspaceID: ws, StartedAt: conversation.At(at),
			Transcript: []conversation.Turn{{Role: conversation.RoleUser, Content: strings.Repeat("x", 300_000)}},
		}
		want = append(want, string(call.CallID))
		if err := store.InsertCall(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	slices.Reverse(want)
	got := walk(t, 100, func(p dynamo.PageRequest) (dynamo.Page[conversation.Call], error) {
		page, err := store.Calls(t.Context(), ws, dynamo.CallQuery{}, p)
		if len(page.Items) > 20 {
			t.Errorf("a page holds %d items of 300 kB", len(page.Items))
		}
		return page, err
	}, func(c conversation.Call) string { return string(c.CallID) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}
