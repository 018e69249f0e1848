package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// history is a workspace's past: conversations that are over. The recordings of its calls
// are made of their transcripts.
type history struct {
	calls    []conversation.Call
	threads  []conversation.Thread
	messages []conversation.Message
}

// historyDays is how far a history reaches back.
const historyDays = 40

// newHistory makes so many calls and a thread for each of the reasons. It is the same
// each time for the same seed, now and definition, and over before now.
func newHistory(seed uint64, now time.Time, d dynamo.Definition, calls int, reasons []conversation.CloseReason) history {
	h := &historian{
		Rand: rand.New(rand.NewPCG(seed, 0)), now: now.UTC().Truncate(time.Millisecond), definition: d,
		closed: map[conversation.CloseReason]int{},
	}
	h.calls = make([]conversation.Call, calls)
	for i := range customerNames {
		h.customers = append(h.customers, h.newCustomer(i))
	}
	for i := range h.calls {
		h.fillCall(i, h.momentOf(i, calls))
	}
	for i, reason := range reasons {
		h.addThread(reason, h.momentOf(i, len(reasons)))
	}
	h.addTestMessages()
	return h.history
}

// historian makes a history, with its own dice.
type historian struct {
	history
	*rand.Rand
	now        time.Time
	definition dynamo.Definition
	customers  []conversation.Customer
	outbound   int                              // calls so far
	failed     []*conversation.Call             // whose failure a follow-up may repair
	closed     map[conversation.CloseReason]int // threads so far
}

// momentOf spreads n conversations over the days of the history, the newest first. None
// begins in the last three hours, so that each is over by now.
func (h *historian) momentOf(i, n int) time.Time {
	const reach = historyDays*24*time.Hour - 3*time.Hour
	slot := reach / time.Duration(n)
	ago := 3*time.Hour + time.Duration(i)*slot + time.Duration(h.Int64N(int64(slot)))
	return h.now.Add(-ago).Truncate(time.Millisecond)
}

// id makes a UUIDv7 of a moment with the history's dice.
func (h *historian) id(at time.Time) string {
	id := uuid.MustParse(conversation.FirstID(at))
	bits := h.Uint64()
	id[6] |= byte(bits>>56) & 0x0f
	id[7] = byte(bits >> 48)
	id[8] |= byte(bits>>40) & 0x3f
	for i := range 5 {
		id[9+i] = byte(bits >> (8 * i))
	}
	id[14], id[15] = byte(h.Uint64()), byte(h.Uint64())
	return id.String()
}

// assistant picks one that has a number: nobody reaches the others.
func (h *historian) assistant() conversation.AssistantConfig {
	for {
		if a := h.definition.Assistants[h.IntN(len(h.definition.Assistants))]; len(a.PhoneNumbers) > 0 {
			return a
		}
	}
}

// customerNames are those of a history, each with a phone number of a fiction range.
var customerNames = []string{
	"Ada Novak", "Ben Carter", "Chloé Laurent", "Daniel Osei", "Emma Lindqvist", "Farid Haddad",
	"Grace Kim", "Hugo Martins", "Ines Moreau", "Jonas Weber", "Kaya Demir", "Liam Walsh",
	"Mina Sato", "Noah Fischer", "Olga Petrova", "Priya Nair", "Quentin Roy", "Rosa Jiménez",
	"Sam Okafor", "Tara Singh", "Ugo Conti", "Vera Kovač", "William Brown", "Yara Costa",
}

// newCustomer makes a customer. Every other one lives in the workspace's country, and may
// be called; none has a number by which the simulator plays a scenario of its own.
func (h *historian) newCustomer(i int) conversation.Customer {
	country, phone, language := "US", fmt.Sprintf("+120255501%02d", 20+i), "en"
	switch {
	case i%2 == 0 && h.definition.Workspace.Country == "GB", i%6 == 1:
		country, phone = "GB", fmt.Sprintf("+442079460%03d", 120+i)
	case i%6 == 3:
		country, phone, language = "FR", fmt.Sprintf("+331990001%02d", 20+i), "fr"
	case i == 5:
		country, phone = "AU", "+61491570156"
	}
	c := conversation.Customer{
		CustomerID: conversation.CustomerID(h.id(h.now.AddDate(0, 0, -historyDays-1))),
		Name:       customerNames[i], Phone: phone, Language: language, Country: country,
	}
	if i%3 == 0 {
		c.Email = fmt.Sprintf("guest%d@example.com", i+1)
	}
	return c
}

func (h *historian) customer() conversation.Customer { return h.customers[h.IntN(len(h.customers))] }

// compatriot is a customer of the workspace's own country.
func (h *historian) compatriot() conversation.Customer {
	for {
		if c := h.customer(); c.Country == h.definition.Workspace.Country {
			return c
		}
	}
}

// analysis is what the agent made of a conversation that went by the script.
func (s script) analysis() *conversation.Analysis {
	return &conversation.Analysis{Summary: s.summary, Intent: s.intent, Outcome: s.outcome, Sentiment: s.sentiment}
}

// evaluations judge a conversation by every enabled criterion of the assistant.
func (s script) evaluations(a conversation.AssistantConfig) []conversation.Evaluation {
	evaluations := []conversation.Evaluation{}
	for _, c := range a.Criteria {
		if !c.Enabled {
			continue
		}
		e := conversation.Evaluation{EvaluationID: c.EvaluationID, Title: c.Title, Result: conversation.Pass, Rationale: "It was: " + c.Instructions}
		switch {
		case s.outcome == conversation.OutcomeVoicemail:
			e.Result, e.Rationale = conversation.NotApplicable, "Nobody was there to talk to."
		case s.outcome == conversation.OutcomeUnknown:
			e.Result, e.Rationale = conversation.Undecided, "Too little was said."
		case s.fails == failsRecoverable && c.Recoverable, s.fails == failsOthers && !c.Recoverable:
			e.Result, e.Rationale = conversation.Fail, "It was not: "+c.Instructions
		}
		evaluations = append(evaluations, e)
	}
	return evaluations
}

// afterFollowUp is what a follow-up made of the evaluations that failed.
func afterFollowUp(evaluations []conversation.Evaluation, recovered bool) []conversation.Evaluation {
	for i, e := range evaluations {
		if e.Result != conversation.Fail {
			continue
		}
		evaluations[i].InitialResult = conversation.Fail
		if recovered {
			evaluations[i].Result, evaluations[i].Recovered = conversation.Pass, true
			evaluations[i].Rationale = "The follow-up repaired it."
		}
	}
	return evaluations
}

// amountOf multiplies a price, which the workspace's definition holds as a decimal.
func amountOf(price string, quantity decimal.Decimal) decimal.Decimal {
	return decimal.RequireFromString(price).Mul(quantity)
}
