package lifecycle

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
)

// at is a moment of 6 May 2030, which is summer in New York and standard time in Tokyo.
func at(clock string) time.Time {
	moment, err := time.Parse("2006-01-02 15:04:05", "2030-05-06 "+clock)
	if err != nil {
		panic(err)
	}
	return moment
}

// Each row changes the facts of a conversation that failed an evaluation which a follow-up
// may repair, and for which nothing stands in the way of one.
func TestDecide(t *testing.T) {
	attempt := func(status conversation.FollowUpStatus) func(*Facts) {
		return func(f *Facts) {
			f.Attempt = &conversation.FollowUpAttempt{FollowUp: conversation.FollowUp{Status: status}}
		}
	}
	answered := func(f *Facts) { f.Answered = true }
	silent := func(f *Facts) { f.CustomerSpoke, f.Failed, f.Recoverable = false, false, false }
	passed := func(f *Facts) { f.Failed, f.Recoverable = false, false }
	ungraded := func(f *Facts) { f.GradingFailed = true }
	const (
		sent, delivered, failed, ambiguous = conversation.FollowUpSent, conversation.FollowUpDelivered, conversation.FollowUpFailed, conversation.FollowUpAmbiguous
		followUp                           = conversation.CloseReason("")
	)
	all := func(f *Facts) { // what closes it, all at once but for what comes first in Decide
		f.Evaluated, f.GradingFailed = false, true
		f.Sending = Sending{Policy: conversation.FollowUpPolicy{Enabled: true}, Quiet: conversation.QuietHours{From: "00:00", To: "23:59"}}
	}
	tests := map[string]struct {
		change []func(*Facts)
		want   conversation.CloseReason
	}{
		"nothing stands in the way": {nil, followUp},

		"opted out":                        {[]func(*Facts){func(f *Facts) { f.OptedOut = true }}, conversation.CustomerOptedOut},
		"opted out, before all else":       {[]func(*Facts){all, silent, attempt(failed), func(f *Facts) { f.OptedOut = true }}, conversation.CustomerOptedOut},
		"opted out in answer to follow-up": {[]func(*Facts){attempt(sent), answered, func(f *Facts) { f.OptedOut = true }}, conversation.CustomerOptedOut},

		"nobody spoke": {[]func(*Facts){silent}, conversation.EmptyTranscript},
		"nobody spoke, before all that is about it":           {[]func(*Facts){all, silent}, conversation.EmptyTranscript},
		"a call's follow-up alone, sent":                      {[]func(*Facts){silent, attempt(sent)}, conversation.NoReplyAfterFollowUp},
		"a call's follow-up alone, delivered":                 {[]func(*Facts){silent, attempt(delivered)}, conversation.NoReplyAfterFollowUp},
		"a call's follow-up alone, not evaluated":             {[]func(*Facts){all, silent, attempt(sent)}, conversation.NoEnabledEvaluations},
		"a call's follow-up alone, not graded":                {[]func(*Facts){silent, attempt(sent), ungraded}, conversation.GradingFailed},
		"a call's follow-up alone, failed":                    {[]func(*Facts){all, silent, attempt(failed)}, conversation.FollowUpFailedReason},
		"a call's follow-up alone, ambiguous":                 {[]func(*Facts){all, silent, attempt(ambiguous)}, conversation.FollowUpSendAmbiguous},
		"a call's follow-up, answered by pictures":            {[]func(*Facts){silent, attempt(sent), answered}, conversation.EmptyTranscript},
		"a call's follow-up, no answer, and it passes":        {[]func(*Facts){attempt(delivered), passed}, conversation.NoReplyAfterFollowUp},
		"a call's follow-up, failed, and it passes":           {[]func(*Facts){attempt(failed), passed}, conversation.Graded},
		"a call's follow-up, perhaps not sent, and it passes": {[]func(*Facts){attempt(ambiguous), passed}, conversation.Graded},
		"a call's follow-up, answered, and it passes":         {[]func(*Facts){attempt(sent), answered, passed}, conversation.Graded},

		"no evaluations": {[]func(*Facts){func(f *Facts) { f.Evaluated = false }}, conversation.NoEnabledEvaluations},
		"no evaluations, before a failed grading": {[]func(*Facts){all}, conversation.NoEnabledEvaluations},
		"grading failed":                  {[]func(*Facts){all, func(f *Facts) { f.Evaluated = true }}, conversation.GradingFailed},
		"grading failed after the answer": {[]func(*Facts){attempt(sent), answered, ungraded}, conversation.GradingFailed},

		"all passed":                         {[]func(*Facts){passed}, conversation.Graded},
		"follow-ups off":                     {[]func(*Facts){func(f *Facts) { f.Sending = Sending{} }}, conversation.Graded},
		"follow-ups off, before no criteria": {[]func(*Facts){func(f *Facts) { f.Sending, f.Recoverable = Sending{}, false }}, conversation.Graded},
		"follow-ups off since one was sent":  {[]func(*Facts){attempt(sent), func(f *Facts) { f.Sending = Sending{} }}, conversation.NoReplyAfterFollowUp},

		"follow-up sent, no answer":       {[]func(*Facts){attempt(sent)}, conversation.NoReplyAfterFollowUp},
		"follow-up delivered, no answer":  {[]func(*Facts){attempt(delivered)}, conversation.NoReplyAfterFollowUp},
		"follow-up ambiguous, no answer":  {[]func(*Facts){attempt(ambiguous)}, conversation.FollowUpSendAmbiguous},
		"follow-up failed":                {[]func(*Facts){attempt(failed)}, conversation.FollowUpFailedReason},
		"follow-up failed, and an answer": {[]func(*Facts){attempt(failed), answered}, conversation.FollowUpFailedReason},
		"follow-up answered, fails still": {[]func(*Facts){attempt(sent), answered}, conversation.Graded},
		"follow-up ambiguous, answered":   {[]func(*Facts){attempt(ambiguous), answered}, conversation.Graded},
		"follow-up answered, passes":      {[]func(*Facts){attempt(delivered), answered, passed}, conversation.Graded},
		"a second one is never sent":      {[]func(*Facts){attempt(sent), answered, func(f *Facts) { f.Recoverable = true }}, conversation.Graded},

		"nothing to recover":          {[]func(*Facts){func(f *Facts) { f.Recoverable = false }}, conversation.FollowUpNoCriteria},
		"no model":                    {[]func(*Facts){func(f *Facts) { f.Sending.Policy.Model = "" }}, conversation.FollowUpMissingProviderKey},
		"no phone":                    {[]func(*Facts){func(f *Facts) { f.Sending.Phone = false }}, conversation.FollowUpNoCustomerPhone},
		"disabled":                    {[]func(*Facts){func(f *Facts) { f.Sending.Enabled = false }}, conversation.SkippedAssistantDisabled},
		"outside the window":          {[]func(*Facts){func(f *Facts) { f.Sending.Window = false }}, conversation.SkippedOutside24hWindow},
		"quiet hours":                 {[]func(*Facts){func(f *Facts) { f.Sending.Now = at("23:30:00") }}, conversation.SkippedQuietHours},
		"no criteria before no model": {[]func(*Facts){func(f *Facts) { f.Recoverable, f.Sending.Policy.Model = false, "" }}, conversation.FollowUpNoCriteria},
		"no model before no phone":    {[]func(*Facts){func(f *Facts) { f.Sending.Policy.Model, f.Sending.Phone = "", false }}, conversation.FollowUpMissingProviderKey},
		"no phone before disabled":    {[]func(*Facts){func(f *Facts) { f.Sending.Phone, f.Sending.Enabled = false, false }}, conversation.FollowUpNoCustomerPhone},
		"disabled before the window":  {[]func(*Facts){func(f *Facts) { f.Sending.Enabled, f.Sending.Window = false, false }}, conversation.SkippedAssistantDisabled},
		"the window before the hours": {[]func(*Facts){func(f *Facts) { f.Sending.Window, f.Sending.Now = false, at("23:30:00") }}, conversation.SkippedOutside24hWindow},
	}
	reached := map[conversation.CloseReason]bool{conversation.FollowUpDailyCap: true} // the claim tells: TestFollowUpCaps
	for name, tt := range tests {
		facts := Facts{
			CustomerSpoke: true, Evaluated: true, Failed: true, Recoverable: true,
			Sending: Sending{
				Policy: conversation.FollowUpPolicy{Enabled: true, Model: "scripted"}, Phone: true, Enabled: true, Window: true,
				Quiet: conversation.QuietHours{From: "21:00", To: "08:00"}, Timezone: "UTC", Now: at("12:00:00"),
			},
		}
		for _, change := range tt.change {
			change(&facts)
		}
		got, due := Decide(facts)
		if got != tt.want || due != (tt.want == followUp) {
			t.Errorf("%s: Decide = %q, follow-up %t; want %q", name, got, due, tt.want)
		}
		if !due && !got.Known() {
			t.Errorf("%s: %q is not in the spec's table", name, got)
		}
		reached[got] = true
		if kind := conversation.FollowUpSkippedReason; len(got) > len(kind) && got[:len(kind)] == kind {
			reached[kind] = true
		}
	}
	for _, reason := range append(conversation.CloseReasons(), conversation.SkippedOutside24hWindow, conversation.SkippedQuietHours, conversation.SkippedAssistantDisabled) {
		if !reached[reason] {
			t.Errorf("no row reaches %s", reason)
		}
	}
}

func TestQuietHours(t *testing.T) {
	night, lunch := conversation.QuietHours{From: "21:00", To: "08:00"}, conversation.QuietHours{From: "12:00", To: "13:30"}
	for _, tt := range []struct {
		hours    conversation.QuietHours
		timezone string
		now      string // UTC
		want     bool
	}{
		{night, "UTC", "20:59:59", false}, {night, "UTC", "21:00:00", true}, {night, "UTC", "23:59:59", true},
		{night, "UTC", "00:00:00", true}, {night, "UTC", "07:59:59", true}, {night, "UTC", "08:00:00", false},
		{lunch, "UTC", "11:59:59", false}, {lunch, "UTC", "12:00:00", true}, {lunch, "UTC", "13:29:59", true}, {lunch, "UTC", "13:30:00", false},
		{night, "Asia/Tokyo", "12:00:00", true}, {night, "Asia/Tokyo", "11:59:59", false}, {night, "Asia/Tokyo", "22:59:00", true}, {night, "Asia/Tokyo", "23:00:00", false},
		{night, "America/New_York", "01:00:00", true}, {night, "America/New_York", "00:59:59", false}, // summer: four hours behind
		{night, "Nowhere/Land", "21:00:00", true}, {night, "", "12:00:00", false}, // as in UTC
		{conversation.QuietHours{}, "UTC", "00:00:00", false}, {conversation.QuietHours{From: "09:00", To: "09:00"}, "UTC", "09:00:00", false},
	} {
		if got := isQuiet(tt.hours, tt.timezone, at(tt.now)); got != tt.want {
			t.Errorf("%v in %q at %s UTC: quiet %t, want %t", tt.hours, tt.timezone, tt.now, got, tt.want)
		}
	}
}

func TestWindow(t *testing.T) {
	now := at("12:00:00")
	for _, tt := range []struct {
		channel conversation.Channel
		ago     time.Duration
		want    bool
	}{
		{conversation.WhatsApp, time.Hour, true}, {conversation.WhatsApp, 24*time.Hour - time.Millisecond, true},
		{conversation.WhatsApp, 24 * time.Hour, false}, {conversation.WhatsApp, 48 * time.Hour, false},
		{conversation.SMS, 48 * time.Hour, true},
	} {
		if got := inWindow(tt.channel, now.Add(-tt.ago), now); got != tt.want {
			t.Errorf("%s, %s after the customer's last message: %t, want %t", tt.channel, tt.ago, got, tt.want)
		}
	}
}

// What a completed thread shows of its evaluations and its follow-up, by the spec's column
// "graded": yes, partly, no.
func TestShown(t *testing.T) {
	evaluations := []conversation.Evaluation{{Result: conversation.Pass}, {Result: conversation.Undecided}, {Result: conversation.Fail}, {Result: conversation.NotApplicable}}
	const yes, partly, no = "yes", "partly", "no"
	for reason, want := range map[conversation.CloseReason]struct {
		graded   string
		followUp conversation.FollowUpStatus // without one that was tried
	}{
		conversation.Graded:                     {yes, ""},
		conversation.NoReplyAfterFollowUp:       {yes, ""},
		conversation.CustomerOptedOut:           {partly, ""},
		conversation.FollowUpNoCriteria:         {partly, ""},
		conversation.NoEnabledEvaluations:       {no, ""},
		conversation.EmptyTranscript:            {no, ""},
		conversation.GradingFailed:              {no, ""},
		conversation.FollowUpSendAmbiguous:      {no, ""},
		conversation.FollowUpFailedReason:       {no, conversation.FollowUpFailed},
		conversation.FollowUpDailyCap:           {no, conversation.FollowUpSkipped},
		conversation.FollowUpNoCustomerPhone:    {no, conversation.FollowUpSkipped},
		conversation.FollowUpMissingProviderKey: {no, conversation.FollowUpSkipped},
		conversation.SkippedOutside24hWindow:    {no, conversation.FollowUpSkipped},
		conversation.SkippedQuietHours:          {no, conversation.FollowUpSkipped},
		conversation.SkippedAssistantDisabled:   {no, conversation.FollowUpSkipped},
	} {
		wantShown := map[string][]conversation.Evaluation{yes: evaluations, partly: {evaluations[0], evaluations[2]}, no: nil}[want.graded]
		if diff := cmp.Diff(wantShown, shown(reason, evaluations)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
		thread := conversation.ThreadRecord{Thread: conversation.Thread{Channel: conversation.SMS}}
		var wantFollowUps []conversation.FollowUp
		if want.followUp != "" {
			wantFollowUps = []conversation.FollowUp{{Status: want.followUp, Channel: conversation.SMS}}
		}
		if got := followUpsOf(thread, reason); !slices.Equal(got, wantFollowUps) {
			t.Errorf("%s: follow-ups %v, want %v", reason, got, wantFollowUps)
		}
		tried := conversation.FollowUp{Status: conversation.FollowUpDelivered, Channel: conversation.SMS, SentAt: conversation.At(at("12:00:00"))}
		thread.Attempt = &conversation.FollowUpAttempt{FollowUp: tried, Text: "internal"}
		if got := followUpsOf(thread, reason); !slices.Equal(got, []conversation.FollowUp{tried}) {
			t.Errorf("%s: follow-ups %v, want the one that was tried", reason, got)
		}
	}
	if got := shown(conversation.FollowUpNoCriteria, evaluations[1:2]); got != nil {
		t.Errorf("without a verdict: %v, want none", got)
	}
}

// What a follow-up made of the evaluations before it.
func TestSinceFollowUp(t *testing.T) {
	evaluation := func(id string, result conversation.Verdict) conversation.Evaluation {
		return conversation.Evaluation{EvaluationID: conversation.EvaluationID(id), Result: result}
	}
	before := []conversation.Evaluation{
		evaluation("repaired", conversation.Fail), evaluation("not", conversation.Fail), evaluation("worse", conversation.Pass),
		evaluation("unknown", conversation.Undecided), evaluation("gone", conversation.Fail),
	}
	now := []conversation.Evaluation{
		evaluation("repaired", conversation.Pass), evaluation("not", conversation.Fail), evaluation("worse", conversation.Fail),
		evaluation("unknown", conversation.Pass), evaluation("new", conversation.Pass),
	}
	want := slices.Clone(now)
	want[0].InitialResult, want[0].Recovered = conversation.Fail, true
	want[1].InitialResult, want[2].InitialResult, want[3].InitialResult = conversation.Fail, conversation.Pass, conversation.Undecided
	if diff := cmp.Diff(want, sinceFollowUp(now, before)); diff != "" {
		t.Errorf("evaluations (-want +got):\n%s", diff)
	}
	if now[0].InitialResult != "" {
		t.Error("the evaluations that were given have changed")
	}
	if diff := cmp.Diff(now, sinceFollowUp(now, nil)); diff != "" {
		t.Errorf("without a follow-up (-want +got):\n%s", diff)
	}
}

// Waits are whole seconds, and over when they end.
func TestStepIn(t *testing.T) {
	for d, want := range map[time.Duration]int{time.Nanosecond: 1, time.Second: 1, time.Second + 1: 2, 90 * time.Minute: 5400, -time.Second: 1} {
		if got := StepWait.in(d); got != (Step{StepWait, want}) {
			t.Errorf("in %s: %+v, want %d s", d, got, want)
		}
	}
}
