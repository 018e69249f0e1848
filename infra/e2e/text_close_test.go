package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// A closing is how a conversation ends, and what is then shown of it.
type closing struct {
	from     string // the customer's address, or the last two digits of their number
	channel  conversation.Channel
	says     string // if not the complaint; "-" is nothing, with a picture
	change   func(*dynamo.Definition)
	messages string                      // whose: i for the customer's, o for ours, f for the follow-up
	results  string                      // of recoverable and polite
	followUp conversation.FollowUpStatus // "": none
}

func cap0(d *dynamo.Definition)     { d.Workspace.FollowUps.DailyCap = 0 }
func noModel(d *dynamo.Definition)  { d.Workspace.FollowUps.Model = "" }
func badModel(d *dynamo.Definition) { d.Assistants[0].Model = "none" }
func disabled(d *dynamo.Definition) { d.Assistants[0].Enabled = false }
func quietNow(d *dynamo.Definition) {
	zone, err := time.LoadLocation(d.Workspace.Timezone)
	if err != nil {
		panic(err)
	}
	now := time.Now().In(zone)
	d.Workspace.QuietHours = conversation.QuietHours{
		From: now.Add(-2 * time.Hour).Format("15:04"), To: now.Add(2 * time.Hour).Format("15:04"),
	}
}

func noCriteria(d *dynamo.Definition) {
	for i := range d.Assistants[0].Criteria {
		d.Assistants[0].Criteria[i].Enabled = false
	}
}

// patient leaves a follow-up's receipts and its answer the time that they take.
var patient = patience(60, 1200)

// closings are by their close_reason, and what tells those of one reason apart.
var closings = map[string]closing{
	"graded":                               {from: "50", says: question, messages: "io", results: "pass pass"},
	"graded without follow-ups":            {from: "50", change: func(d *dynamo.Definition) { d.Workspace.FollowUps.Enabled = false }, messages: "io", results: "fail pass"},
	"graded on user id":                    {from: "US.13491208655302741951", channel: "whatsapp", says: question, messages: "io", results: "pass pass"},
	"no_reply_after_follow_up":             {from: "01", change: patience(60, 240), messages: "iof", results: "fail>fail pass>pass", followUp: "delivered"},
	"no_reply_after_follow_up by itself":   {from: "12", says: "Hello.", change: patience(360, 240), messages: "ioiof", results: "fail>fail pass>pass", followUp: "delivered"},
	"customer_opted_out":                   {from: "50", says: "STOP", messages: "i"},
	"customer_opted_out after follow-up":   {from: "06", change: patient, messages: "iofi", results: "fail>fail pass>pass", followUp: "delivered"},
	"no_enabled_evaluations":               {from: "50", change: noCriteria, messages: "io"},
	"empty_transcript":                     {from: "50", says: "-", messages: "i"},
	"grading_failed":                       {from: "50", change: badModel, messages: "i"},
	"follow_up_failed":                     {from: "02", change: patient, messages: "iof", followUp: "failed"},
	"follow_up_failed at once":             {from: "04", messages: "i", followUp: "failed"},
	"follow_up_daily_cap":                  {from: "50", change: cap0, messages: "io", followUp: "skipped"},
	"follow_up_no_criteria":                {from: "50", says: "This is unacceptable.", messages: "io", results: "pass fail"},
	"follow_up_no_customer_phone":          {from: "US.13491208655302741950", channel: "whatsapp", messages: "io", followUp: "skipped"},
	"follow_up_missing_provider_key":       {from: "50", change: noModel, messages: "io", followUp: "skipped"},
	"follow_up_send_ambiguous":             {from: "03", messages: "iof", followUp: "ambiguous"},
	"follow_up_skipped:quiet_hours":        {from: "50", change: quietNow, messages: "io", followUp: "skipped"},
	"follow_up_skipped:assistant_disabled": {from: "50", change: disabled, messages: "i", followUp: "skipped"},
	"follow_up_skipped:outside_24h_window": {from: "50", channel: "whatsapp", messages: "io", followUp: "skipped"},
}

// Every close_reason comes of its real cause, and finds its conversations. They all begin at
// once: the slowest, to whose customer the carrier sends without an answer (03), takes as
// long as all of them.
func TestCloseReasons(t *testing.T) {
	desks, ids, secret := map[string]desk{}, map[string]string{}, carrierSecret(t)
	for name, c := range closings {
		change := c.change
		if change == nil {
			change = patience(60, 60)
		}
		d := newTextDesk(t, change)
		desks[name] = d
		m := d.written(c.address(), cmp.Or(c.says, complaint))
		m.Channel = cmp.Or(c.channel, conversation.SMS)
		if m.Content == "-" {
			m.Content, m.MediaCount = "", 1
		}
		if strings.HasSuffix(name, "24h_window") {
			m.At = m.At.Add(-25 * time.Hour)
		}
		d.report(t, secret, m)
		ids[name] = m.CarrierID
	}
	t.Parallel() // while the conversations last
	for _, name := range slices.Sorted(maps.Keys(closings)) {
		t.Run(name, func(t *testing.T) {
			d := desks[name]
			closings[name].check(t, d, name, d.closed(t, d.arrivedAs(t, ids[name]).ThreadID))
		})
	}
}

func (c closing) address() string {
	if len(c.from) == 2 {
		return customerOf(c.from)
	}
	return c.from
}

func (c closing) check(t *testing.T, d desk, name string, got conversation.Thread) {
	t.Helper()
	reason, _, _ := strings.Cut(name, " ")
	if string(got.CloseReason) != reason {
		t.Errorf("close_reason %s, want %s", got.CloseReason, reason)
	}
	listed := pageOf[conversation.Thread](t, d.key, "threads", "close_reason="+url.QueryEscape(reason)).Items
	if len(listed) != 1 || listed[0].ThreadID != got.ThreadID {
		t.Errorf("with close_reason %s: %+v, want thread %s", reason, listed, got.ThreadID)
	}
	messages, anchor := d.checkClosed(t, got), conversation.MessageID("")
	whose := ""
	for _, m := range messages {
		switch {
		case m.Direction == conversation.Inbound:
			whose += "i"
		case m.Source == conversation.SourceEvaluationFollowUp:
			whose += "f"
		default:
			whose += "o"
		}
		if m.Content != "" {
			anchor = m.MessageID
		}
	}
	if whose != c.messages {
		t.Errorf("its messages are %s, want %s:\n%s", whose, c.messages, said(got.Transcript))
	}
	if results(got.Evaluations) != c.results {
		t.Errorf("evaluations %q, want %q", results(got.Evaluations), c.results)
	}
	if ungraded := reason == "empty_transcript" || reason == "grading_failed" || c.says == "STOP"; ungraded != (got.Analysis == nil) {
		t.Errorf("analysis %+v", got.Analysis)
	}
	if c.results != "" && got.AnchorMessageID != anchor && c.followUp == "" {
		t.Errorf("the anchor is %s, want the last message with words, %s", got.AnchorMessageID, anchor)
	}
	followUps := ""
	for _, f := range got.FollowUps {
		followUps += fmt.Sprintf("%s by %s, %v", f.Status, f.Channel, !f.SentAt.IsZero())
	}
	expected := ""
	if c.followUp != "" {
		isSent := c.followUp == conversation.FollowUpDelivered || c.messages == "iof" && c.followUp == conversation.FollowUpFailed
		expected = fmt.Sprintf("%s by %s, %v", c.followUp, got.Channel, isSent)
	}
	if followUps != expected {
		t.Errorf("follow-ups: %q, want %q", followUps, expected)
	}
}
