package agent

import (
	"regexp"
	"strings"

	"parley/shared/conversation"
)

// phrases are words in lower case that mean the same.
type phrases []string

// in tells whether any of the phrases is in the text, in whatever case.
func (p phrases) in(text string) bool {
	text = strings.ToLower(text)
	for _, phrase := range p {
		if strings.Contains(text, phrase) {
			return true
		}
	}
	return false
}

// What customers and voicemail boxes say.
var (
	voicemail = phrases{"leave a message", "after the tone", "after the beep", "voicemail", "voice mail"}

	unanswered = phrases{
		"did not answer", "didn't answer", "not an answer", "not answered", "wasn't answered",
		"still don't know", "still do not know", "not what i asked", "doesn't help", "does not help",
	}
	later   = phrases{"call me back", "call me again", "get back to me", "write to me"}
	anger   = phrases{"unacceptable", "disappoint", "terrible", "angry"}
	content = phrases{"thank", "great", "perfect", "wonderful", "lovely"}
)

// textMe are the words that ask for a text message, and noText those that ask for none.
// A phrase won't do for the former: "I got your text message" holds "text me".
var (
	textMe = regexp.MustCompile(`(?i)\btext (me|us|(it|that|this|them) to (me|us))\b|\bsend (me |us )?an? (text|sms)\b|\b(by|via|as an?) (text|sms)\b`)
	noText = phrases{
		"n't text", "n’t text", "not text", "never text", "stop text",
		"n't send", "n’t send", "not send", "never send", "stop send",
	}
)

// asksForText tells whether the words ask for a text message. A voicemail box may, but
// nobody there reads it.
func asksForText(said string) bool {
	return textMe.MatchString(said) && !noText.in(said) && !voicemail.in(said)
}

// replies are what the assistant says to phrases. The first that fits counts.
var replies = []struct {
	to   phrases
	text string
}{
	{voicemail, "We called you, and will try again later. Goodbye."},
	{unanswered, "I am sorry for that. A colleague will look into it."},
	{later, "Of course. We will come back to you."},
	{anger, "I am sorry to hear that. I will tell my colleagues."},
	{content, "You are welcome. Goodbye."},
}

// What the assistant says when neither a phrase nor the prompt has a reply.
const (
	replyToQuestion  = "I will find that out for you. Is there anything else?"
	replyToStatement = "I understand. What else can I do for you?"
)

// What the assistant writes.
const (
	textOnRequest = "Hello! This is the text message that you asked for. Just reply to it if there is anything we can do for you."
	followUp      = "Hello! We would like to put something right for you%s. What can we still do?"
)

// endings are what the customer's last words make of the conversation. The first that
// fits counts.
var endings = []struct {
	words     phrases
	outcome   conversation.Outcome
	sentiment conversation.Sentiment
	summary   string
}{
	{unanswered, conversation.OutcomeUnresolved, conversation.SentimentNegative, "It was not answered."},
	{anger, conversation.OutcomeUnresolved, conversation.SentimentNegative, "The customer was not content."},
	{later, conversation.OutcomeFollowUpRequired, conversation.SentimentNeutral, "The customer wants to hear from us again."},
	{content, conversation.OutcomeResolved, conversation.SentimentPositive, "It was answered, and the customer was content."},
}

const unknownIntent = "unknown"
