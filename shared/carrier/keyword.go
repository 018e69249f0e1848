package carrier

import (
	"strings"
	"unicode"
)

// keywords are Twilio's words, without YES, which opts in there: it is an everyday answer
// to an assistant's question, and who has opted out can say START.
var keywords = map[string]Keyword{
	"STOP": OptOutWord, "STOPALL": OptOutWord, "UNSUBSCRIBE": OptOutWord, "CANCEL": OptOutWord,
	"END": OptOutWord, "QUIT": OptOutWord, "REVOKE": OptOutWord, "OPTOUT": OptOutWord,
	"START": OptInWord, "UNSTOP": OptInWord,
	"HELP": HelpWord, "INFO": HelpWord,
}

// keywordOf is the keyword that a text consists of, but for white space and punctuation around
// it, or "".
func keywordOf(text string) Keyword {
	return keywords[strings.ToUpper(strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsPunct(r) }))]
}
