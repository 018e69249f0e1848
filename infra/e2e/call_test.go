package e2e

import (
	"testing"

	"parley/shared/conversation"
)

func TestCalls(t *testing.T) {
	t.Parallel()
	s, k := deployed(t), demoKey(t)
	all := walk[conversation.Call](t, k, "calls", "limit=7&include_test=true")
	if len(all) != 120 {
		t.Fatalf("%d calls, want 120", len(all))
	}
	checkNewestFirst(t, all, callIDOf, func(c conversation.Call) conversation.Time { return c.StartedAt })
	kinds := map[any]int{}
	for _, c := range all {
		kinds[c.Status]++
		kinds[c.Direction]++
		kinds[c.IsTest]++
		if c.WorkspaceID != s.WorkspaceID || c.CallType != c.Direction || c.EndReason == "" || c.EndedAt.Before(c.StartedAt.Time) {
			t.Errorf("call %+v isn't a finished one of the demo", c)
		}
		happened := c.Status == conversation.CallEnded
		if happened != (c.Transcript != nil) || happened != (c.Analysis != nil) || happened != (c.Recording != nil) || happened != (c.DurationSeconds > 0) {
			t.Errorf("%s call %s has parts of another status", c.Status, c.CallID)
		}
	}
	for _, kind := range []any{conversation.CallEnded, conversation.CallError, conversation.Inbound, conversation.Outbound, true, false} {
		if kinds[kind] == 0 {
			t.Errorf("no call is %v", kind)
		}
	}

	live := only(all, func(c conversation.Call) bool { return !c.IsTest })
	of := func(assistant conversation.AssistantID) []conversation.Call {
		return only(live, func(c conversation.Call) bool { return c.AssistantID == assistant })
	}
	// A moment at which some call ended: from includes it, to doesn't.
	at := live[len(live)/2].EndedAt
	since := func(c conversation.Call) bool { return !c.EndedAt.Before(at.Time) }
	before := func(c conversation.Call) bool { return c.EndedAt.Before(at.Time) }
	busy := s.Assistants["two_numbers"]
	checkLists(t, k, "calls", callIDOf, map[string][]conversation.Call{
		"limit=58":                              live, // two full pages
		"limit=100":                             live,
		"limit=50&include_test=false":           live,
		"limit=100&include_test=true":           all,
		"limit=60&include_test=true":            all,
		"limit=40&assistant_id=" + string(busy): of(busy),
		"limit=40&assistant_id=" + string(s.Assistants["one_number"]): of(s.Assistants["one_number"]),
		"limit=40&assistant_id=" + string(s.Assistants["no_number"]):  nil,
		"limit=40&assistant_id=" + nowhereID:                          nil,
		"limit=40&from=" + at.String():                                only(live, since),
		"limit=40&to=" + at.String():                                  only(live, before),
		"limit=40&from=" + at.String() + "&to=" + at.String():         nil,
		"limit=40&to=2000-01-01":                                      nil,
		"limit=9&include_test=true&from=" + at.String():               only(all, since),
		"limit=9&to=" + at.String() + "&assistant_id=" + string(busy): only(of(busy), before),
	})
	if first := pageOf[conversation.Call](t, k, "calls", ""); len(first.Items) != 25 || !first.HasMore {
		t.Errorf("without a limit, a page has %d calls, want 25", len(first.Items))
	}
}
