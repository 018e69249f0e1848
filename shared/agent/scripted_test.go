package agent_test

import (
	"errors"
	"strings"
	"testing"

	"parley/shared/agent"
	"parley/shared/agent/agenttest"
	"parley/shared/conversation"
)

func TestScripted(t *testing.T) {
	agenttest.Test(t, func() agent.Agent { return agent.Scripted{} })
}

func TestFor(t *testing.T) {
	if got, err := agent.For(agent.ScriptedModel); got != (agent.Scripted{}) || err != nil {
		t.Errorf("For(scripted) = %v, %v; want Scripted", got, err)
	}
	if _, err := agent.For("none"); !errors.Is(err, agent.ErrNoModel) {
		t.Errorf("For(none) = %v, want ErrNoModel", err)
	}
}

// said makes a conversation after the greeting: the customer begins, and both take turns.
func said(lines ...string) agent.Conversation {
	turns := []conversation.Turn{{Role: conversation.RoleAssistant, Content: "Good day, how may I help you?"}}
	for i, line := range lines {
		role := conversation.RoleUser
		if i%2 == 1 {
			role = conversation.RoleAssistant
		}
		turns = append(turns, conversation.Turn{Role: role, Content: line})
	}
	return agent.Conversation{Turns: turns}
}

func TestScriptedReply(t *testing.T) {
	const prompt = `You are the front desk of Harbour Hotel. Check-in is from 3 pm, check-out
		until 11 am. Breakfast is served from 7 to 10! Confirm the price of a room. A taxi
		costs 3.50 per mile. Your shift starts at noon. ` + "Parking is "
	tests := map[string]struct{ prompt, said, want string }{
		"the prompt's sentence":   {prompt, "When is breakfast?", "Breakfast is served from 7 to 10."},
		"over two lines":          {prompt, "And Check-In?", "Check-in is from 3 pm, check-out until 11 am."},
		"a number's point":        {prompt, "What does a taxi cost per mile?", "A taxi costs 3.50 per mile."},
		"not to the assistant":    {prompt, "When does the shift end?", "I will find that out for you. Is there anything else?"},
		"not an instruction":      {prompt, "What is the price?", "I will find that out for you. Is there anything else?"},
		"nothing about it":        {prompt, "I have lost my umbrella.", "I understand. What else can I do for you?"},
		"not a very long one":     {"Parking is " + strings.Repeat("far ", 100), "Where is parking?", "I will find that out for you. Is there anything else?"},
		"thanks":                  {prompt, "Thank you for breakfast.", "You are welcome. Goodbye."},
		"not answered":            {prompt, "That did not answer my question.", "I am sorry for that. A colleague will look into it."},
		"a voicemail box":         {prompt, "Please LEAVE A MESSAGE.", "We called you, and will try again later. Goodbye."},
		"the caller's own prompt": {"The table is booked for Ms Ito.", "Is my table booked?", "The table is booked for Ms Ito."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := said(tt.said)
			c.Prompt = tt.prompt
			got, err := agent.Scripted{}.Reply(t.Context(), c)
			if err != nil || got != tt.want {
				t.Errorf("Reply = %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestScriptedTextMessage(t *testing.T) {
	const prompt = "You are the front desk. Check-in is from 3 pm. The address is 12 Quay Road."
	const polite = "Hello! This is the text message that you asked for. Just reply to it if there is anything we can do for you."
	tests := map[string]struct {
		lines []string
		want  string
	}{
		"the prompt's sentence": {[]string{"Can you text me the address?"}, "The address is 12 Quay Road."},
		"nothing in the prompt": {[]string{"Could you send me a text message with the price?"}, polite},
		"in capitals":           {[]string{"TEXT ME."}, polite},
		"by SMS":                {[]string{"The address by SMS, please."}, "The address is 12 Quay Road."},
		"it":                    {[]string{"When is check-in?", "From 3 pm.", "Please text it to me."}, polite},
		"as a text":             {[]string{"May I have that as a text?"}, polite},
		"asked before":          {[]string{"Please text me.", "I will.", "Thank you."}, ""},
		"the assistant's turn":  {[]string{"Please text me.", "I will."}, ""},
		"the assistant's words": {[]string{"Hello.", "Shall I text me?"}, ""},
		"got one":               {[]string{"I got your text message. What is the address?"}, ""},
		"another word":          {[]string{"The context means nothing to me."}, ""},
		"rather not":            {[]string{"Please don't text me."}, ""},
		"rather not, typeset":   {[]string{"Don’t send me an SMS."}, ""},
		"a voicemail box":       {[]string{"Text me, or leave a message after the tone."}, ""},
		"nobody spoke":          {nil, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := said(tt.lines...)
			c.Prompt = prompt
			got, err := agent.Scripted{}.TextMessage(t.Context(), c)
			if err != nil || got != tt.want {
				t.Errorf("TextMessage = %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestScriptedFollowUp(t *testing.T) {
	titled := func(titles ...string) (failed []conversation.Criterion) {
		for _, title := range titles {
			failed = append(failed, conversation.Criterion{Title: title})
		}
		return failed
	}
	tests := map[string]struct {
		failed []conversation.Criterion
		want   string
	}{
		"one":           {titled("Question answered"), "Hello! We would like to put something right for you: “Question answered”. What can we still do?"},
		"two":           {titled("Polite", "Brief"), "Hello! We would like to put something right for you: “Polite”, “Brief”. What can we still do?"},
		"many":          {titled("A", "B", "C", "D"), "Hello! We would like to put something right for you: “A”, “B”, “C”. What can we still do?"},
		"a placeholder": {titled("Greeted {{participant_name}}\nby name"), "Hello! We would like to put something right for you: “Greeted by name”. What can we still do?"},
		"a long title":  {titled(strings.Repeat("é", 101)), "Hello! We would like to put something right for you: “" + strings.Repeat("é", 99) + "…”. What can we still do?"},
		"no title":      {titled("", "{{x}}"), "Hello! We would like to put something right for you. What can we still do?"},
		"none":          {nil, "Hello! We would like to put something right for you. What can we still do?"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := agent.Scripted{}.FollowUp(t.Context(), said("When?", "Soon.", "That did not answer my question."), tt.failed)
			if err != nil || got != tt.want {
				t.Errorf("FollowUp = %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestScriptedAnalyse(t *testing.T) {
	tests := map[string]struct {
		conversation agent.Conversation
		want         conversation.Analysis
	}{
		"nobody spoke": {said(), conversation.Analysis{
			Summary: "The customer said nothing.",
			Intent:  "unknown", Outcome: conversation.OutcomeUnknown, Sentiment: conversation.SentimentUnknown,
		}},
		"a voicemail box": {said("Leave a message after the tone."), conversation.Analysis{
			Summary: "The call reached a voicemail box.",
			Intent:  "unknown", Outcome: conversation.OutcomeVoicemail, Sentiment: conversation.SentimentUnknown,
		}},
		"a person picks up after the box": {said("Leave a message after the tone.", "Hello.", "Oh, I am here."), conversation.Analysis{
			Summary: "The customer said: “Oh, I am here.” It was answered.",
			Intent:  "Oh, I am here.", Outcome: conversation.OutcomeResolved, Sentiment: conversation.SentimentNeutral,
		}},
		"content": {said("Hello. When is check-in? I come by train.", "At 3 pm.", "Great."), conversation.Analysis{
			Summary: "The customer said: “When is check-in?” It was answered, and the customer was content.",
			Intent:  "When is check-in?", Outcome: conversation.OutcomeResolved, Sentiment: conversation.SentimentPositive,
		}},
		"not answered": {said("When is check-in?", "Soon.", "That did not answer my question."), conversation.Analysis{
			Summary: "The customer said: “When is check-in?” It was not answered.",
			Intent:  "When is check-in?", Outcome: conversation.OutcomeUnresolved, Sentiment: conversation.SentimentNegative,
		}},
		"answered after all": {said("That did not answer my question.", "At 3 pm.", "Fine."), conversation.Analysis{
			Summary: "The customer said: “That did not answer my question.” It was answered.",
			Intent:  "That did not answer my question.", Outcome: conversation.OutcomeResolved, Sentiment: conversation.SentimentNeutral,
		}},
		"angry": {said("This is unacceptable."), conversation.Analysis{
			Summary: "The customer said: “This is unacceptable.” The customer was not content.",
			Intent:  "This is unacceptable.", Outcome: conversation.OutcomeUnresolved, Sentiment: conversation.SentimentNegative,
		}},
		"wants a call": {said("Please call me back."), conversation.Analysis{
			Summary: "The customer said: “Please call me back.” The customer wants to hear from us again.",
			Intent:  "Please call me back.", Outcome: conversation.OutcomeFollowUpRequired, Sentiment: conversation.SentimentNeutral,
		}},
		"a long story": {said(strings.Repeat("é", 101)), conversation.Analysis{
			Summary: "The customer said: “" + strings.Repeat("é", 99) + "…” It was answered.",
			Intent:  strings.Repeat("é", 99) + "…", Outcome: conversation.OutcomeResolved, Sentiment: conversation.SentimentNeutral,
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := agent.Scripted{}.Analyse(t.Context(), tt.conversation)
			if err != nil || got != tt.want {
				t.Errorf("Analyse = %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

func TestScriptedEvaluate(t *testing.T) {
	recoverable := conversation.Criterion{EvaluationID: "e", Title: "t", Instructions: "i", Enabled: true, Recoverable: true}
	final := conversation.Criterion{EvaluationID: "e", Title: "t", Instructions: "i", Enabled: true}
	vague := conversation.Criterion{EvaluationID: "e", Title: "t", Enabled: true, Recoverable: true}
	answered, open := said("When?", "At 3 pm.", "Fine."), said("When?", "Soon.", "That did not answer my question.")
	tests := map[string]struct {
		conversation agent.Conversation
		criterion    conversation.Criterion
		want         conversation.Verdict
	}{
		"answered":                  {answered, recoverable, conversation.Pass},
		"answered after all":        {said("That did not answer my question.", "At 3 pm.", "Thank you, that answers it. Perfect."), recoverable, conversation.Pass},
		"not answered, recoverable": {open, recoverable, conversation.Fail},
		"not answered, final":       {open, final, conversation.Pass},
		"no instructions":           {open, vague, conversation.Undecided},
		"angry":                     {said("This is unacceptable."), final, conversation.Fail},
		"angry, recoverable":        {said("This is unacceptable."), recoverable, conversation.Pass},
		"nobody spoke":              {said(), recoverable, conversation.NotApplicable},
		"a voicemail box":           {said("Leave a message."), vague, conversation.NotApplicable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := agent.Scripted{}.Evaluate(t.Context(), tt.conversation, []conversation.Criterion{tt.criterion})
			if err != nil || len(got) != 1 || got[0].Result != tt.want {
				t.Errorf("Evaluate = %+v, %v; want %s", got, err, tt.want)
			}
		})
	}
}
