package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// What customers write, and what the scripted assistant of a desk replies.
const (
	question  = "When is check-in?"
	answered  = "Check-in is from 3 pm."
	complaint = "That did not answer my question."
	regret    = "I am sorry for that. A colleague will look into it."
	thanks    = "Thank you, that answers it. Perfect."
)

const (
	received   = conversation.MessageReceived
	sent       = conversation.MessageSent
	threadDone = conversation.ThreadCompleted
)

// newTextDesk opens a desk for texts. Conversations are over after a minute, and follow-ups
// wait as long for an answer, which the stack divides by its time scale.
func newTextDesk(t testing.TB, changes ...func(*dynamo.Definition)) desk {
	t.Helper()
	return newDesk(t, append([]func(*dynamo.Definition){func(d *dynamo.Definition) {
		d.Workspace.HelpText, d.Workspace.Prices.SMS, d.Workspace.Prices.WhatsApp = "Ring 1 for help.", "0.0075", "0.005"
		d.Workspace.FollowUps = conversation.FollowUpPolicy{Enabled: true, Channel: conversation.SMS, Model: "scripted", DailyCap: 10}
		patience(60, 60)(d)
	}}, changes...)...)
}

// patience lets conversations be over after so many seconds, and a follow-up wait so many for
// its answer.
func patience(inactivity, answer int) func(*dynamo.Definition) {
	return func(d *dynamo.Definition) {
		d.Workspace.InactivitySeconds, d.Workspace.FollowUps.WaitSeconds = inactivity, answer
	}
}

// textsURL is where the carrier reports what customers write, and what becomes of our texts.
func (d desk) textsURL(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("%s/carriers/%s/%s", deployed(t).BaseURL, carrier.SimulatorName, d.ws)
}

// written is a text of a customer to the desk, as the carrier reports it.
func (d desk) written(from, content string) carrier.MessageCallback {
	return carrier.MessageCallback{
		Event: carrier.EventMessage, CarrierID: "in-" + conversation.NewID(), At: time.Now(),
		Channel: conversation.SMS, From: from, To: d.number, Content: content,
	}
}

// report posts a text's callback, which the desk accepts. It may be called from any
// goroutine.
func (d desk) report(t testing.TB, secret []byte, c carrier.MessageCallback) {
	t.Helper()
	body, err := json.Marshal(c)
	if err != nil {
		t.Error(err)
	}
	status, answer := callBack(t, d.textsURL(t), body, carrier.Sign(secret, time.Now(), d.textsURL(t), body))
	if status != http.StatusOK {
		t.Errorf("%s of %s: %d %s, want 200", c.Event, c.CarrierID, status, answer)
	}
}

// write lets a customer write by the simulator, and returns the carrier's id of the text.
func (d desk) write(t testing.TB, channel conversation.Channel, from, content string, media int) string {
	t.Helper()
	carrierID, err := carrier.NewSimulator(deployed(t).aws, "parley-local-simulate-carrier", nil).Write(t.Context(), carrier.Text{
		WorkspaceID: d.ws, Channel: channel, From: from, To: d.number, Content: content, CallbackURL: d.textsURL(t),
	}, media, false)
	if err != nil {
		t.Fatal(err)
	}
	return carrierID
}

// listed are the desk's messages, newest first. Waiting reads them from the store, as that
// costs less than a request to the API.
func (d desk) listed(t testing.TB) []conversation.Message {
	t.Helper()
	page, err := deployed(t).store.Messages(t.Context(), d.ws, dynamo.MessageQuery{}, dynamo.PageRequest{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return page.Items
}

// awaitMessage waits until one of the desk's messages is as it says.
func (d desk) awaitMessage(t testing.TB, what string, is func(conversation.Message) bool) conversation.Message {
	t.Helper()
	var found conversation.Message
	await(t, func() error {
		messages := d.listed(t)
		i := slices.IndexFunc(messages, is)
		if i < 0 {
			return fmt.Errorf("workspace %s has no message with %s, of %d", d.ws, what, len(messages))
		}
		found = messages[i]
		return nil
	})
	return found
}

// arrivedAs waits for the customer's message with the carrier's id.
func (d desk) arrivedAs(t testing.TB, carrierID string) conversation.Message {
	t.Helper()
	return d.awaitMessage(t, "the id "+carrierID, func(m conversation.Message) bool { return m.ProviderMessageID == carrierID })
}

// says waits for a message with the content.
func (d desk) says(t testing.TB, content string) conversation.Message {
	t.Helper()
	return d.awaitMessage(t, "the content "+content, func(m conversation.Message) bool { return m.Content == content })
}

// threadRecord is all that the service knows of a conversation.
func (d desk) threadRecord(t testing.TB, threadID conversation.ThreadID) conversation.ThreadRecord {
	t.Helper()
	thread, err := deployed(t).store.ThreadRecord(t.Context(), d.ws, threadID)
	if err != nil {
		t.Fatal(err)
	}
	return thread
}

// closed waits until a conversation is completed, and returns it as the API shows it.
func (d desk) closed(t testing.TB, threadID conversation.ThreadID) conversation.Thread {
	t.Helper()
	await(t, func() error {
		if thread := d.threadRecord(t, threadID); thread.Open() {
			return fmt.Errorf("thread %s is open: %+v", threadID, thread)
		}
		return nil
	})
	return want[struct{ Thread conversation.Thread }](t, d.key.get(t, "/v1/threads/"+string(threadID)), http.StatusOK).Thread
}

// openThread is the customer's, or false.
func (d desk) openThread(t testing.TB, k dynamo.ThreadKey) (conversation.ThreadRecord, bool) {
	t.Helper()
	thread, err := deployed(t).store.OpenThread(t.Context(), d.ws, k)
	if err != nil && !errors.Is(err, conversation.ErrNotFound) {
		t.Fatal(err)
	}
	return thread, err == nil
}

// messagesOf are a conversation's messages as the API lists them, oldest first.
func (d desk) messagesOf(t testing.TB, threadID conversation.ThreadID) []conversation.Message {
	t.Helper()
	messages := walk[conversation.Message](t, d.key, "messages", "limit=100&thread_id="+string(threadID))
	slices.Reverse(messages)
	return messages
}

// checkClosed wants what is true of every completed conversation: it is what its messages
// are. It returns these, oldest first.
func (d desk) checkClosed(t *testing.T, got conversation.Thread) []conversation.Message {
	t.Helper()
	messages := d.messagesOf(t, got.ThreadID)
	if len(messages) == 0 {
		t.Fatalf("thread %s has no messages", got.ThreadID)
	}
	prices := map[conversation.Channel]int{conversation.SMS: 75, conversation.WhatsApp: 50}
	price := func(n int) string {
		return fmt.Sprintf("%d.%04d", n*prices[got.Channel]/10000, n*prices[got.Channel]%10000)
	}
	customer := messages[0].Customer
	if customer == nil || customer.CustomerID == "" {
		t.Errorf("message %s has the customer %+v", messages[0].MessageID, customer)
	}
	expected := got
	expected.WorkspaceID, expected.AssistantID, expected.AssistantName = d.ws, assistantID, "Reception"
	expected.Customer, expected.MessageCount = customer, len(messages)
	expected.StartedAt, expected.LastMessageAt = messages[0].OccurredAt, messages[len(messages)-1].OccurredAt
	expected.Costs = &conversation.ThreadCosts{Currency: "USD", Total: price(len(messages)), ChargedMessageCount: len(messages)}
	expected.Transcript, expected.AnchorMessageID = nil, ""
	for _, m := range messages {
		role := conversation.RoleAssistant
		if m.Direction == conversation.Inbound {
			role = conversation.RoleUser
		}
		expected.Transcript = append(expected.Transcript, conversation.Turn{Role: role, Content: m.Content})
		whole := m
		whole.WorkspaceID, whole.AssistantID, whole.AssistantName = d.ws, assistantID, "Reception"
		whole.Channel, whole.ThreadID, whole.Customer = got.Channel, got.ThreadID, customer
		whole.Costs = &conversation.MessageCosts{Currency: "USD", Total: price(1)}
		if diff := cmp.Diff(whole, m); diff != "" {
			t.Errorf("message (-want +got):\n%s", diff)
		}
	}
	expected.AnchorMessageID = got.AnchorMessageID // a matter of the grading
	if diff := cmp.Diff(expected, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("thread (-want +got):\n%s", diff)
	}
	if !got.CompletedAt.After(got.LastMessageAt.Time) {
		t.Errorf("thread %s, last written at %v, was completed at %v", got.ThreadID, got.LastMessageAt, got.CompletedAt)
	}
	return messages
}

// said is a transcript in one line for each turn.
func said(turns []conversation.Turn) string {
	var lines []string
	for _, turn := range turns {
		lines = append(lines, string(turn.Role)+": "+turn.Content)
	}
	return strings.Join(lines, "\n")
}

// results are the evaluations in short: what each was, and is, and a + if it has recovered.
func results(evaluations []conversation.Evaluation) string {
	var all []string
	for _, e := range evaluations {
		result := string(e.Result)
		if e.InitialResult != "" {
			result = string(e.InitialResult) + ">" + result
		}
		if e.Recovered {
			result += "+"
		}
		all = append(all, result)
	}
	return strings.Join(all, " ")
}

// transitions counts the states that a conversation's state machine has entered.
func transitions(t testing.TB, threadID conversation.ThreadID) int {
	t.Helper()
	client := sfn.NewFromConfig(deployed(t).aws)
	arn := aws.String("arn:aws:states:us-east-1:000000000000:execution:parley-local-thread-lifecycle:" + string(threadID))
	await(t, func() error {
		if status := executionStatus(t, arn); status != "SUCCEEDED" {
			return fmt.Errorf("the execution of thread %s is %q", threadID, status)
		}
		return nil
	})
	entered := 0
	pages := sfn.NewGetExecutionHistoryPaginator(client, &sfn.GetExecutionHistoryInput{ExecutionArn: arn})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range page.Events {
			if strings.HasSuffix(string(event.Type), "StateEntered") {
				entered++
			}
		}
	}
	return entered
}

// heard is a webhook that has arrived and was verified.
type heard struct {
	envelope
	at time.Time
}

// awaitEvents waits for so many webhooks, and wants no more.
func (s subscriber) awaitEvents(t testing.TB, n int) []heard {
	t.Helper()
	var all []heard
	for _, a := range s.await(t, n) {
		all = append(all, heard{a.open(t, s.Secret), a.at})
	}
	return all
}

// about are the events of this name, by the content of their message.
func about(t testing.TB, all []heard, name conversation.EventName) map[string]conversation.Message {
	t.Helper()
	messages := map[string]conversation.Message{}
	for _, h := range all {
		if h.Event != name {
			continue
		}
		var m conversation.Message
		if err := json.Unmarshal(h.Message, &m); err != nil {
			t.Fatalf("%s: %v", h.Message, err)
		}
		if string(m.MessageID) != h.EventID || !m.OccurredAt.Equal(h.OccurredAt.Time) {
			t.Errorf("%s %s of %v is about %s of %v", h.Event, h.EventID, h.OccurredAt, m.MessageID, m.OccurredAt)
		}
		messages[m.Content] = m
	}
	return messages
}

// checkTimely wants an event 15 to 30 s after what it tells of, the former by the stack's
// time scale.
func (h heard) checkTimely(t testing.TB, since conversation.Time) {
	t.Helper()
	earliest := 15 * time.Second / time.Duration(deployed(t).TimeScale)
	if after := h.at.Sub(since.Time); after < earliest || after > 30*time.Second {
		t.Errorf("%s of %s arrived after %v, want %v to 30 s", h.Event, h.EventID, after, earliest)
	}
}

// messageRecord is all that the service knows of a message.
func (d desk) messageRecord(t testing.TB, messageID conversation.MessageID) conversation.MessageRecord {
	t.Helper()
	m, err := deployed(t).store.MessageRecord(t.Context(), d.ws, messageID)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
