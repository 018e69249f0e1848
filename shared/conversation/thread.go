package conversation

import (
	"slices"
	"strings"
)

// CloseReason says how a thread completed (spec: close_reason values).
type CloseReason string

const (
	Graded                     CloseReason = "graded"
	NoReplyAfterFollowUp       CloseReason = "no_reply_after_follow_up"
	CustomerOptedOut           CloseReason = "customer_opted_out"
	NoEnabledEvaluations       CloseReason = "no_enabled_evaluations"
	EmptyTranscript            CloseReason = "empty_transcript"
	GradingFailed              CloseReason = "grading_failed"
	FollowUpFailedReason       CloseReason = "follow_up_failed"
	FollowUpDailyCap           CloseReason = "follow_up_daily_cap"
	FollowUpNoCriteria         CloseReason = "follow_up_no_criteria"
	FollowUpNoCustomerPhone    CloseReason = "follow_up_no_customer_phone"
	FollowUpMissingProviderKey CloseReason = "follow_up_missing_provider_key"
	FollowUpSendAmbiguous      CloseReason = "follow_up_send_ambiguous"

	// FollowUpSkippedReason stands for every "follow_up_skipped:<reason>".
	FollowUpSkippedReason CloseReason = "follow_up_skipped"
)

// Why a follow-up was skipped.
const (
	SkippedOutside24hWindow  CloseReason = "follow_up_skipped:outside_24h_window"
	SkippedQuietHours        CloseReason = "follow_up_skipped:quiet_hours"
	SkippedAssistantDisabled CloseReason = "follow_up_skipped:assistant_disabled"
)

// CloseReasons returns the values of the spec's table in its order.
func CloseReasons() []CloseReason {
	return []CloseReason{
		Graded, NoReplyAfterFollowUp, CustomerOptedOut, NoEnabledEvaluations, EmptyTranscript, GradingFailed,
		FollowUpFailedReason, FollowUpDailyCap, FollowUpNoCriteria, FollowUpNoCustomerPhone,
		FollowUpMissingProviderKey, FollowUpSendAmbiguous, FollowUpSkippedReason,
	}
}

// Known tells whether the reason is one of the spec's table. Any suffix of
// follow_up_skipped counts, as the set of suffixes is open.
func (r CloseReason) Known() bool {
	kind, suffix, hasSuffix := strings.Cut(string(r), ":")
	if hasSuffix {
		return CloseReason(kind) == FollowUpSkippedReason && suffix != ""
	}
	return slices.Contains(CloseReasons(), r)
}

// Thread is a completed text conversation as customers see it (spec: Thread).
type Thread struct {
	ThreadID        ThreadID    `json:"thread_id"`
	WorkspaceID     WorkspaceID `json:"workspace_id"`
	AssistantID     AssistantID `json:"assistant_id"`
	AssistantName   string      `json:"assistant_name"`
	Channel         Channel     `json:"channel"`
	CloseReason     CloseReason `json:"close_reason,omitzero" doc:"How the conversation completed: graded, no_reply_after_follow_up, customer_opted_out, no_enabled_evaluations, empty_transcript, grading_failed, follow_up_failed, follow_up_daily_cap, follow_up_no_criteria, follow_up_no_customer_phone, follow_up_missing_provider_key, follow_up_send_ambiguous or follow_up_skipped:<reason>."`
	MessageCount    int         `json:"message_count"`
	StartedAt       Time        `json:"started_at"`
	LastMessageAt   Time        `json:"last_message_at"`
	CompletedAt     Time        `json:"completed_at,omitzero"`
	AnchorMessageID MessageID   `json:"anchor_message_id,omitzero" format:"uuid" doc:"The last message that was graded."`

	Customer    *Customer    `json:"customer,omitzero" block:"customer"`
	Costs       *ThreadCosts `json:"costs,omitzero" block:"costs"`
	Transcript  []Turn       `json:"transcript,omitzero" block:"transcript" doc:"A turn for each message. Its content is empty where a message has media alone."`
	Analysis    *Analysis    `json:"analysis,omitzero" block:"analysis"`
	Evaluations []Evaluation `json:"evaluations,omitzero" block:"evaluations"`
	FollowUps   []FollowUp   `json:"follow_ups,omitzero" block:"follow_ups"`
}

// withOffsets is the thread with all of its times written as webhook payloads do.
func (t Thread) withOffsets() Thread {
	t.StartedAt, t.LastMessageAt, t.CompletedAt = t.StartedAt.WithOffset(), t.LastMessageAt.WithOffset(), t.CompletedAt.WithOffset()
	t.FollowUps = followUpsWithOffsets(t.FollowUps)
	return t
}

// ThreadCosts is indicative, not the invoiced amount.
type ThreadCosts struct {
	Currency            string `json:"currency" doc:"ISO 4217."`
	Total               string `json:"total"`
	ChargedMessageCount int    `json:"charged_message_count"`
}
