package e2e

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"parley/shared/conversation"
)

func TestThreads(t *testing.T) {
	t.Parallel()
	s, k := deployed(t), demoKey(t)
	all := walk[conversation.Thread](t, k, "threads", "limit=7")
	if len(all) != 40 {
		t.Fatalf("%d threads, want 40", len(all))
	}
	checkNewestFirst(t, all, threadIDOf, func(c conversation.Thread) conversation.Time { return c.CompletedAt })
	at := all[len(all)/2].CompletedAt
	busy := s.Assistants["two_numbers"]
	is := func(reason conversation.CloseReason) []conversation.Thread {
		return only(all, func(c conversation.Thread) bool { return c.CloseReason == reason })
	}
	whatsApp := only(all, func(c conversation.Thread) bool { return c.Channel == conversation.WhatsApp })
	skipped := only(all, func(c conversation.Thread) bool {
		return strings.HasPrefix(string(c.CloseReason), "follow_up_skipped:")
	})
	tests := map[string][]conversation.Thread{
		"limit=20":                                       all,
		"limit=100":                                      all,
		"limit=10&channel=whatsapp":                      whatsApp,
		"limit=10&channel=sms":                           only(all, func(c conversation.Thread) bool { return c.Channel == conversation.SMS }),
		"limit=10&assistant_id=" + string(busy):          only(all, func(c conversation.Thread) bool { return c.AssistantID == busy }),
		"limit=10&assistant_id=" + nowhereID:             nil,
		"limit=10&from=" + at.String():                   only(all, func(c conversation.Thread) bool { return !c.CompletedAt.Before(at.Time) }),
		"limit=10&to=" + at.String():                     only(all, func(c conversation.Thread) bool { return c.CompletedAt.Before(at.Time) }),
		"limit=1&close_reason=follow_up_skipped":         skipped,
		"limit=1&close_reason=follow_up_skipped:made_up": nil,
		"limit=3&channel=whatsapp&close_reason=graded":   only(whatsApp, func(c conversation.Thread) bool { return c.CloseReason == conversation.Graded }),
	}
	reasons := append(conversation.CloseReasons(), conversation.SkippedOutside24hWindow, conversation.SkippedQuietHours, conversation.SkippedAssistantDisabled)
	for _, reason := range reasons {
		if reason == conversation.FollowUpSkippedReason {
			continue
		}
		tests["limit=3&close_reason="+url.QueryEscape(string(reason))] = is(reason)
		if len(is(reason)) == 0 {
			t.Errorf("no thread has the close_reason %s", reason)
		}
	}
	if len(skipped) == 0 {
		t.Error("no follow-up was skipped")
	}
	checkLists(t, k, "threads", threadIDOf, tests)

	// The spec's table of close reasons says which threads are graded.
	graded := []conversation.CloseReason{conversation.Graded, conversation.NoReplyAfterFollowUp}
	partly := []conversation.CloseReason{conversation.CustomerOptedOut, conversation.FollowUpNoCriteria}
	for _, thread := range all {
		if wanted := slices.Contains(append(graded, partly...), thread.CloseReason); wanted != (len(thread.Evaluations) > 0) {
			t.Errorf("thread %s has %d evaluations", thread.CloseReason, len(thread.Evaluations))
		}
	}
}
