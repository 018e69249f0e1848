// Package agenttest is the suite that every agent.Agent passes: what its contract says of
// any model, clever or not.
package agenttest

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"parley/shared/agent"
	"parley/shared/conversation"
)

var (
	question = []conversation.Turn{
		{Role: conversation.RoleAssistant, Content: "Good day, how may I help you?"},
		{Role: conversation.RoleUser, Content: "When is breakfast?"},
	}
	answered = append(slices.Clip(question),
		conversation.Turn{Role: conversation.RoleAssistant, Content: "From seven to ten."})
	voicemail = []conversation.Turn{
		{Role: conversation.RoleAssistant, Content: "Good day, how may I help you?"},
		{Role: conversation.RoleUser, Content: "I can't take your call. Please leave a message after the tone."},
	}
	asksForText = []conversation.Turn{
		{Role: conversation.RoleAssistant, Content: "Good day, how may I help you?"},
		{Role: conversation.RoleUser, Content: "Could you please text me when breakfast is?"},
	}
	askedForText = append(slices.Clip(asksForText),
		conversation.Turn{Role: conversation.RoleAssistant, Content: "Of course, I will."})
	conversations = map[string][]conversation.Turn{
		"nobody spoke":        nil,
		"the assistant alone": question[:1],
		"a question":          question,
		"an answer":           answered,
		"a voicemail box":     voicemail,
		"asks for a text":     asksForText,
		"asked for a text":    askedForText,
		"said thanks for it":  append(slices.Clip(askedForText), conversation.Turn{Role: conversation.RoleUser, Content: "Thank you. Goodbye."}),
		"the customer alone":  question[1:],
		"an empty turn":       {{Role: conversation.RoleUser}},
		"an emoji":            {{Role: conversation.RoleUser, Content: "👍"}},
		"white space":         {{Role: conversation.RoleUser, Content: " \n\t"}},
		"a very long turn":    {{Role: conversation.RoleUser, Content: strings.Repeat("Wann? 早餐 ", 10_000)}},
		"bytes of no meaning": {{Role: conversation.RoleUser, Content: "\xff\x00{{x}}%s"}},
	}
	prompts = map[string]string{
		"a prompt":      "You are the front desk. Breakfast is served from 7 to 10.",
		"no prompt":     "",
		"a huge prompt": strings.Repeat("Breakfast is served. ", 100_000),
	}
	criteria = []conversation.Criterion{
		{EvaluationID: "01980000-0000-7000-8000-000000000001", Title: "Answered", Instructions: "The question was answered.", Enabled: true, Recoverable: true},
		{EvaluationID: "01980000-0000-7000-8000-000000000002", Title: "Off", Instructions: "Not to be judged."},
		{EvaluationID: "01980000-0000-7000-8000-000000000003", Title: "Polite", Instructions: "The assistant was polite.", Enabled: true},
	}
	// failures are what a follow-up is to repair.
	failures = map[string][]conversation.Criterion{
		"one":           criteria[:1],
		"two":           {criteria[0], criteria[2]},
		"a placeholder": {{EvaluationID: "01980000-0000-7000-8000-000000000004", Title: "Greeted {{participant_name}}", Instructions: "Say {{x}}.", Enabled: true, Recoverable: true}},
		"a long title":  {{EvaluationID: "01980000-0000-7000-8000-000000000005", Title: strings.Repeat("早餐 ", 100), Instructions: "i", Enabled: true, Recoverable: true}},
		"no title":      {{EvaluationID: "01980000-0000-7000-8000-000000000006", Enabled: true, Recoverable: true}},
		"none":          nil,
	}
	placeholder = regexp.MustCompile(`\{\{\w*\}\}`)

	outcomes = []conversation.Outcome{
		conversation.OutcomeResolved, conversation.OutcomeUnresolved, conversation.OutcomeFollowUpRequired,
		conversation.OutcomeVoicemail, conversation.OutcomeUnknown,
	}
	sentiments = []conversation.Sentiment{
		conversation.SentimentPositive, conversation.SentimentNeutral, conversation.SentimentNegative, conversation.SentimentUnknown,
	}
	verdicts = []conversation.Verdict{conversation.Pass, conversation.Fail, conversation.Undecided, conversation.NotApplicable}
)

// Test runs the suite on the agents that newAgent makes.
func Test(t *testing.T, newAgent func() agent.Agent) {
	for name, turns := range conversations {
		for kind, prompt := range prompts {
			t.Run(name+", "+kind, func(t *testing.T) {
				before := slices.Clone(turns)
				testConversation(t, newAgent(), agent.Conversation{Prompt: prompt, Turns: turns})
				if !slices.Equal(turns, before) {
					t.Error("the agent changed the conversation it was given")
				}
			})
		}
	}
	t.Run("without criteria", func(t *testing.T) {
		got, err := newAgent().Evaluate(t.Context(), agent.Conversation{Turns: answered}, nil)
		if err != nil || len(got) != 0 {
			t.Errorf("Evaluate = %v, %v; want none", got, err)
		}
	})
	t.Run("voicemail", func(t *testing.T) {
		got, err := newAgent().Analyse(t.Context(), agent.Conversation{Turns: voicemail})
		if err != nil || got.Outcome != conversation.OutcomeVoicemail {
			t.Errorf("Analyse = %+v, %v; want outcome voicemail", got, err)
		}
	})
	t.Run("many at once", func(t *testing.T) {
		a := newAgent()
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() { testConversation(t, a, agent.Conversation{Turns: question}) })
		}
		group.Wait()
	})
}

func testConversation(t *testing.T, a agent.Agent, c agent.Conversation) {
	t.Helper()
	testReply(t, a, c)
	testTextMessage(t, a, c)
	testFollowUp(t, a, c)
	testAnalysis(t, a, c)
	testEvaluations(t, a, c)
}

func testReply(t *testing.T, a agent.Agent, c agent.Conversation) {
	t.Helper()
	got, err := a.Reply(t.Context(), c)
	if err != nil {
		t.Fatalf("Reply: %v", err)
	}
	if len(c.Turns) == 0 {
		return
	}
	spokeLast := c.Turns[len(c.Turns)-1].Role
	if hasReply := strings.TrimSpace(got) != ""; hasReply != (spokeLast == conversation.RoleUser) {
		t.Errorf("Reply = %q after the %s's turn", got, spokeLast)
	}
}

func testTextMessage(t *testing.T, a agent.Agent, c agent.Conversation) {
	t.Helper()
	got, err := a.TextMessage(t.Context(), c)
	if err != nil {
		t.Fatalf("TextMessage: %v", err)
	}
	if wanted := slices.Equal(c.Turns, asksForText); (strings.TrimSpace(got) != "") != wanted || !wanted && got != "" {
		t.Errorf("TextMessage = %q; asked for: %t", got, wanted)
	}
	if !utf8.ValidString(got) {
		t.Errorf("TextMessage = %q, want text", got)
	}
}

func testFollowUp(t *testing.T, a agent.Agent, c agent.Conversation) {
	t.Helper()
	for name, failed := range failures {
		before := slices.Clone(failed)
		got, err := a.FollowUp(t.Context(), c, failed)
		if err != nil {
			t.Fatalf("FollowUp on %s: %v", name, err)
		}
		if strings.TrimSpace(got) == "" || placeholder.MatchString(got) || !utf8.ValidString(got) {
			t.Errorf("FollowUp on %s = %q, want text without placeholders", name, got)
		}
		if !slices.Equal(failed, before) {
			t.Errorf("FollowUp on %s changed the criteria it was given", name)
		}
	}
}

func testAnalysis(t *testing.T, a agent.Agent, c agent.Conversation) {
	t.Helper()
	got, err := a.Analyse(t.Context(), c)
	if err != nil {
		t.Fatalf("Analyse: %v", err)
	}
	if got.Summary == "" || got.Intent == "" || !slices.Contains(outcomes, got.Outcome) || !slices.Contains(sentiments, got.Sentiment) {
		t.Errorf("Analyse = %+v, want every field, of the known values", got)
	}
	if len(c.Turns) == 0 && (got.Outcome != conversation.OutcomeUnknown || got.Sentiment != conversation.SentimentUnknown) {
		t.Errorf("Analyse = %+v of silence, want unknown", got)
	}
}

func testEvaluations(t *testing.T, a agent.Agent, c agent.Conversation) {
	t.Helper()
	got, err := a.Evaluate(t.Context(), c, criteria)
	if err != nil {
		t.Fatalf("Evaluate: %v", err)
	}
	var enabled []conversation.Criterion
	for _, criterion := range criteria {
		if criterion.Enabled {
			enabled = append(enabled, criterion)
		}
	}
	if len(got) != len(enabled) {
		t.Fatalf("Evaluate = %d evaluations, want %d, one for each enabled criterion", len(got), len(enabled))
	}
	for i, e := range got {
		if e.EvaluationID != enabled[i].EvaluationID || e.Title != enabled[i].Title {
			t.Errorf("evaluation %d is of %s %q, want %s %q", i, e.EvaluationID, e.Title, enabled[i].EvaluationID, enabled[i].Title)
		}
		if !slices.Contains(verdicts, e.Result) || e.Rationale == "" {
			t.Errorf("evaluation %q = %q, %q; want a known result and a rationale", e.Title, e.Result, e.Rationale)
		}
		if e.Recovered || e.InitialResult != "" {
			t.Errorf("evaluation %q is recovered or has an initial result, before any follow-up", e.Title)
		}
		if len(c.Turns) == 0 && e.Result != conversation.NotApplicable {
			t.Errorf("evaluation %q of silence = %q, want not_applicable", e.Title, e.Result)
		}
	}
}
