package lifecycle

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"parley/shared/carrier"
	"parley/shared/conversation"
)

// What customers say to their carrier is none of the agent's business: a STOP must not be
// judged as the customer's last word. Nor are pictures. The transcript has all of them.
func TestAgentHearsWords(t *testing.T) {
	p := Parts{
		Carriers: map[string]carrier.Carrier{carrier.SimulatorName: carrier.NewSimulator(aws.Config{}, "", nil)},
		Now:      time.Now,
	}
	var messages []conversation.MessageRecord
	for _, m := range []conversation.Message{
		{Direction: conversation.Inbound, Content: "That did not answer my question."},
		{Direction: conversation.Inbound, Content: " Help "},
		{Direction: conversation.Outbound, Content: "STOP"}, // if an assistant ever says so
		{Direction: conversation.Inbound, MediaCount: 1},
		{Direction: conversation.Inbound, Content: "please stop by tomorrow"},
		{Direction: conversation.Inbound, Content: "stop"},
	} {
		messages = append(messages, conversation.MessageRecord{Message: m, Carrier: carrier.SimulatorName})
	}
	said := func(turns []conversation.Turn) (texts []string) {
		for _, turn := range turns {
			texts = append(texts, string(turn.Role)+": "+turn.Content)
		}
		return texts
	}
	heard := said(p.conversationOf(conversation.Workspace{}, conversation.AssistantConfig{}, conversation.ThreadRecord{}, messages).Turns)
	if want := []string{"user: That did not answer my question.", "assistant: STOP", "user: please stop by tomorrow"}; !slices.Equal(heard, want) {
		t.Errorf("the agent hears %q, want %q", heard, want)
	}
	if got := said(turnsOf(messages)); len(got) != len(messages) || got[3] != "user: " || got[5] != "user: stop" {
		t.Errorf("the transcript is %q, want a turn for each message", got)
	}
}
