package agent

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"parley/shared/conversation"
)

// ScriptedModel is the model of the scripted agent.
const ScriptedModel = "scripted"

// Scripted is an agent that needs no model: it goes by the words of phrases.go and by the
// prompt's own sentences. The same conversation makes the same answers.
type Scripted struct{}

// Reply answers the customer's last words: with the reply to what they say, else with the
// sentence of the prompt that shares most words with them, else with a polite phrase.
func (Scripted) Reply(_ context.Context, c Conversation) (string, error) {
	said, customerSpokeLast := lastWords(c.Turns)
	if !customerSpokeLast {
		return "", nil
	}
	for _, reply := range replies {
		if reply.to.in(said) {
			return reply.text, nil
		}
	}
	if sentence := bestSentence(c.Prompt, said); sentence != "" {
		return sentence, nil
	}
	if strings.Contains(said, "?") {
		return replyToQuestion, nil
	}
	return replyToStatement, nil
}

// TextMessage goes by the customer's last words: to those that ask for a text it is the
// sentence of the prompt that shares most words with them, or else a polite one.
func (Scripted) TextMessage(_ context.Context, c Conversation) (string, error) {
	said, customerSpokeLast := lastWords(c.Turns)
	if !customerSpokeLast || !asksForText(said) {
		return "", nil
	}
	return cmp.Or(bestSentence(c.Prompt, said), textOnRequest), nil
}

// FollowUp names the first of the failed criteria by their titles and asks back.
func (Scripted) FollowUp(_ context.Context, _ Conversation, failed []conversation.Criterion) (string, error) {
	var titles []string
	for _, criterion := range failed[:min(len(failed), maxTitles)] {
		if title := oneLine(conversation.Render(criterion.Title, nil)); title != "" {
			titles = append(titles, "“"+shorten(title, maxTitle)+"”")
		}
	}
	named := strings.Join(titles, ", ")
	if named != "" {
		named = ": " + named
	}
	return fmt.Sprintf(followUp, named), nil
}

// Analyse goes by who spoke and by the customer's last words. A voicemail box is not a
// customer.
func (Scripted) Analyse(_ context.Context, c Conversation) (conversation.Analysis, error) {
	voices := customerTurns(c.Turns)
	customers := people(voices)
	switch {
	case len(voices) == 0:
		return conversation.Analysis{
			Summary: "The customer said nothing.", Intent: unknownIntent,
			Outcome: conversation.OutcomeUnknown, Sentiment: conversation.SentimentUnknown,
		}, nil
	case len(customers) == 0:
		return conversation.Analysis{
			Summary: "The call reached a voicemail box.", Intent: unknownIntent,
			Outcome: conversation.OutcomeVoicemail, Sentiment: conversation.SentimentUnknown,
		}, nil
	}
	intent := intentOf(customers)
	analysis := conversation.Analysis{
		Intent: intent, Outcome: conversation.OutcomeResolved, Sentiment: conversation.SentimentNeutral,
		Summary: fmt.Sprintf("The customer said: “%s” It was answered.", intent),
	}
	for _, ending := range endings {
		if ending.words.in(customers[len(customers)-1]) {
			analysis.Outcome, analysis.Sentiment = ending.outcome, ending.sentiment
			analysis.Summary = fmt.Sprintf("The customer said: “%s” %s", intent, ending.summary)
			break
		}
	}
	return analysis, nil
}

// Evaluate judges each enabled criterion by these rules, of which the first that fits
// counts:
//
//   - no customer spoke (a voicemail box is none): not_applicable;
//   - the criterion has no instructions: unknown;
//   - it is recoverable, and the customer's last words say that the question was not
//     answered: fail;
//   - it isn't, and they are angry: fail;
//   - else: pass.
func (Scripted) Evaluate(_ context.Context, c Conversation, criteria []conversation.Criterion) ([]conversation.Evaluation, error) {
	customers := people(customerTurns(c.Turns))
	evaluations := []conversation.Evaluation{}
	for _, criterion := range criteria {
		if criterion.Enabled {
			result, rationale := judge(customers, criterion)
			evaluations = append(evaluations, conversation.Evaluation{
				EvaluationID: criterion.EvaluationID, Title: criterion.Title, Result: result, Rationale: rationale,
			})
		}
	}
	return evaluations, nil
}

func judge(customers []string, criterion conversation.Criterion) (result conversation.Verdict, rationale string) {
	switch {
	case len(customers) == 0:
		return conversation.NotApplicable, "No customer spoke."
	case strings.TrimSpace(criterion.Instructions) == "":
		return conversation.Undecided, "The criterion does not say what to judge by."
	case criterion.Recoverable && unanswered.in(customers[len(customers)-1]):
		return conversation.Fail, "The customer's last words say that the question was not answered."
	case !criterion.Recoverable && anger.in(customers[len(customers)-1]):
		return conversation.Fail, "The customer's last words are angry."
	default:
		return conversation.Pass, "Nothing that the customer said stands against it."
	}
}

// lastWords are those of the last turn, and whether they are the customer's.
func lastWords(turns []conversation.Turn) (said string, byCustomer bool) {
	if len(turns) == 0 {
		return "", false
	}
	last := turns[len(turns)-1]
	return last.Content, last.Role == conversation.RoleUser
}

// customerTurns is what everybody but the assistant said.
func customerTurns(turns []conversation.Turn) []string {
	var said []string
	for _, turn := range turns {
		if turn.Role == conversation.RoleUser && strings.TrimSpace(turn.Content) != "" {
			said = append(said, turn.Content)
		}
	}
	return said
}

// people leaves out what a voicemail box said.
func people(said []string) []string {
	var customers []string
	for _, words := range said {
		if !voicemail.in(words) {
			customers = append(customers, words)
		}
	}
	return customers
}
