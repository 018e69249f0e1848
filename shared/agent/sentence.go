package agent

import (
	"cmp"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/shared/conversation"
)

const (
	maxPrompt   = conversation.MaxPromptBytes // that are looked at: variables may make megabytes of it
	maxSentence = 200                         // characters that the assistant says in one breath
	maxIntent   = 100                         // characters
	maxTitle    = 100                         // characters of a criterion's title in a message
	maxTitles   = 3                           // that a message names
	minWord     = 4                           // letters: shorter words say nothing of the subject
)

var (
	// sentenceEnd is a mark and the space after it: "3.30" and "e.g.," go on.
	sentenceEnd = regexp.MustCompile(`[.!?]+\s+`)
	// A sentence for customers states something and doesn't speak to the assistant, as
	// "You are the front desk" and "Confirm the price" do.
	statement   = regexp.MustCompile(`(?i)\b(is|are|has|have|costs?|opens?|closes?|starts?|ends?|includes?)\b`)
	toAssistant = regexp.MustCompile(`(?i)\byour?\b`)
)

// bestSentence is the sentence of the prompt that shares most words with what was said, the
// first of equals; "" if none shares any.
func bestSentence(prompt, said string) string {
	wanted := map[string]bool{}
	for _, word := range subjects(said) {
		wanted[word] = true
	}
	prompt = strings.ToValidUTF8(prompt[:min(len(prompt), maxPrompt)], "")
	best, most := "", 0
	for _, sentence := range sentenceEnd.Split(prompt, -1) {
		if !forCustomers(sentence) {
			continue
		}
		shared := 0
		for _, word := range subjects(sentence) {
			if wanted[word] {
				shared++
			}
		}
		if shared > most {
			best, most = sentence, shared
		}
	}
	if best == "" {
		return ""
	}
	return strings.TrimRight(oneLine(best), ".!?") + "."
}

func forCustomers(sentence string) bool {
	return utf8.RuneCountInString(sentence) <= maxSentence &&
		statement.MatchString(sentence) && !toAssistant.MatchString(sentence)
}

// subjects are the words of a text that say what it is about.
func subjects(text string) []string {
	var long []string
	for _, word := range strings.FieldsFunc(strings.ToLower(text), betweenWords) {
		if utf8.RuneCountInString(word) >= minWord {
			long = append(long, word)
		}
	}
	return long
}

// betweenWords leaves "check-in" one word.
func betweenWords(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' }

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// intentOf is the customer's first question, or else what was said first, in a line.
func intentOf(said []string) string {
	return shorten(oneLine(cmp.Or(firstQuestion(said), said[0])), maxIntent)
}

// shorten cuts a line to so many characters.
func shorten(line string, most int) string {
	if characters := []rune(line); len(characters) > most {
		return string(characters[:most-1]) + "…"
	}
	return line
}

func firstQuestion(said []string) string {
	for _, text := range said {
		before, _, asked := strings.Cut(text, "?")
		if asked {
			sentences := sentenceEnd.Split(before, -1)
			return sentences[len(sentences)-1] + "?"
		}
	}
	return ""
}
