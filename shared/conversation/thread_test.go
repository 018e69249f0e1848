package conversation

import (
	"slices"
	"testing"
)

// The spec's close_reason values, in its order.
func TestCloseReasons(t *testing.T) {
	want := []CloseReason{
		"graded", "no_reply_after_follow_up", "customer_opted_out", "no_enabled_evaluations", "empty_transcript", "grading_failed",
		"follow_up_failed", "follow_up_daily_cap", "follow_up_no_criteria", "follow_up_no_customer_phone", "follow_up_missing_provider_key",
		"follow_up_send_ambiguous", "follow_up_skipped",
	}
	if got := CloseReasons(); !slices.Equal(got, want) {
		t.Errorf("CloseReasons = %q, want %q", got, want)
	}
}

func TestCloseReasonKnown(t *testing.T) {
	tests := map[CloseReason]bool{
		"bored": false, "": false, "Graded": false, "graded:well": false, ":": false, "follow_up_skipped:": false, "follow_up_failed:x": false,
		"follow_up_skipped:a_new_reason": true, "follow_up_skipped:with:colon": true,
		SkippedQuietHours: true, SkippedOutside24hWindow: true, SkippedAssistantDisabled: true,
	}
	for _, reason := range CloseReasons() {
		tests[reason] = true
	}
	for reason, want := range tests {
		if got := reason.Known(); got != want {
			t.Errorf("%q is known: %v, want %v", reason, got, want)
		}
	}
}
