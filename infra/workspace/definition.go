package main

import (
	"fmt"
	"os"
	"slices"
	"time"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// file is a workspace's definition as an operator writes it, in YAML:
//
//	workspace_id: 01990000-0000-7000-8000-000000000001
//	name: Harbour Hotel
//	timezone: Europe/London     # IANA
//	country: GB                 # ISO 3166-1
//	currency: GBP               # ISO 4217; it never changes
//	opening_balance: "100"      # paid in when the workspace is made, and never again
//	variables:                  # filled into every prompt and greeting
//	  check_in: 3 pm
//	prices:                     # amounts
//	  telephony_per_minute: "0.012"
//	  assistant_per_minute: "0.05"
//	  sms: "0.04"
//	  whatsapp: "0.03"
//	limits:                     # what is left out has these values
//	  concurrent_calls: 10      # of each assistant
//	  calls_per_hour: 200
//	  longest_call: 1h
//	inactivity: 30m             # then a text conversation is over
//	quiet_hours: {from: "21:00", to: "08:00"} # without follow-ups; none if left out
//	help_text: Call reception on 020 7946 0000. # the answer to HELP
//	carrier: simulator
//	model: scripted
//	follow_ups:                 # off if left out
//	  enabled: true
//	  channel: sms
//	  number: "+442079460001"   # one of those below
//	  model: scripted           # none: follow-ups are not configured
//	  wait: 24h
//	  daily_cap: 100
//	assistants:
//	  - assistant_id: 01990000-0000-7000-8000-000000000002
//	    name: Reception
//	    enabled: true           # if left out
//	    language: en-GB
//	    voice: calm
//	    model: scripted         # the workspace's if left out
//	    greeting: Good day {{participant_name}}, this is {{hotel_name}}.
//	    prompt: You answer for {{hotel_name}}. Check-in is from {{check_in}}.
//	    evaluations:
//	      - evaluation_id: 01990000-0000-7000-8000-000000000003
//	        title: Question answered
//	        instructions: The customer's question was answered.
//	        enabled: true       # if left out
//	        recoverable: true   # a follow-up may repair it; false if left out
//	numbers:
//	  - number: "+442079460001"
//	    assistant: Reception
//	    outbound_enabled: true  # false if left out
//
// The ids are the operator's: everything else, names too, can change without making
// something new of it, and the same file makes the same workspace on every stage. Where
// an id is missing, the error offers a new one to paste.
type file struct {
	definition     dynamo.Definition
	openingBalance string
}

// Bounds of a file. DynamoDB takes 4 MB in a transaction, and 400 KB in an item.
const (
	maxFileBytes   = 3 << 20
	maxEvaluations = 20
	maxVariables   = 50
)

// What can be named so far.
var (
	carriers = []string{"simulator"}
	models   = []string{"scripted"}
)

// readFile reads and validates a file. The error names everything that is wrong with it,
// each with its line.
func readFile(name string) (file, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return file{}, err
	}
	return parse(name, content)
}

func parse(name string, content []byte) (file, error) {
	if len(content) > maxFileBytes {
		return file{}, fmt.Errorf("%s: has %d bytes, %d at most are allowed", name, len(content), maxFileBytes)
	}
	var ps problems
	f := parseFile(content, &ps)
	parsed := file{openingBalance: read(f, "opening_balance", amount)}
	followUps := f.mapping("follow_ups")
	parsed.definition.Workspace = readWorkspace(f, followUps)
	parsed.definition.Assistants = readAssistants(f, parsed.definition.Workspace)
	numbers := readNumbers(f, parsed.definition)
	checkFollowUps(followUps, parsed.definition.Workspace.FollowUps, numbers)
	f.done()
	return parsed, ps.err(name)
}

func readWorkspace(f, followUps *fields) conversation.Workspace {
	return conversation.Workspace{
		WorkspaceID:       conversation.WorkspaceID(readID(f, "workspace_id")),
		Name:              read(f, "name", text(200)),
		Timezone:          read(f, "timezone", timezone),
		Country:           read(f, "country", country),
		Variables:         readVariables(f.mapping("variables")),
		Currency:          read(f, "currency", currencyCode),
		Prices:            readPrices(f.mapping("prices")),
		Limits:            readLimits(f.mapping("limits")),
		InactivitySeconds: readOr(f, "inactivity", int(conversation.DefaultInactivity/time.Second), seconds(time.Minute, 24*time.Hour)),
		QuietHours:        readQuietHours(f),
		HelpText:          readOr(f, "help_text", "", text(1000)),
		Carrier:           read(f, "carrier", oneOf(carriers...)),
		Model:             read(f, "model", oneOf(models...)),
		FollowUps:         readFollowUps(followUps),
	}
}

// readVariables reads names and values of the operator's own.
func readVariables(f *fields) map[string]string {
	if len(f.values) > maxVariables {
		f.problems.note(f.line, "%sthere are %d, %d at most are allowed", f.path, len(f.values), maxVariables)
	}
	variables := map[string]string{}
	for name := range f.values {
		switch {
		case !variableName.MatchString(name):
			f.note(name, "must be a name of letters, digits and underscores, a letter first, 64 at most")
		case conversation.ReservedVariable(name):
			f.note(name, "is a name that the service fills in itself")
		}
		variables[name] = read(f, name, text(5000))
	}
	return variables
}

func readPrices(f *fields) conversation.Prices {
	defer f.done()
	return conversation.Prices{
		TelephonyPerMinute: read(f, "telephony_per_minute", amount),
		AssistantPerMinute: read(f, "assistant_per_minute", amount),
		SMS:                read(f, "sms", amount),
		WhatsApp:           read(f, "whatsapp", amount),
	}
}

func readLimits(f *fields) conversation.Limits {
	defer f.done()
	return conversation.Limits{
		ConcurrentCalls:    readOr(f, "concurrent_calls", 10, whole(1, 1000)),
		CallsPerHour:       readOr(f, "calls_per_hour", 200, whole(1, 10_000)),
		LongestCallSeconds: readOr(f, "longest_call", 60*60, seconds(time.Minute, conversation.MaxCallDuration)),
	}
}

func readQuietHours(f *fields) conversation.QuietHours {
	if _, ok := f.take("quiet_hours"); !ok {
		return conversation.QuietHours{}
	}
	hours := f.mapping("quiet_hours")
	defer hours.done()
	return conversation.QuietHours{From: read(hours, "from", clock), To: read(hours, "to", clock)}
}

func readFollowUps(f *fields) conversation.FollowUpPolicy {
	defer f.done()
	return conversation.FollowUpPolicy{
		Enabled:     readOr(f, "enabled", false, yesNo),
		Channel:     readOr(f, "channel", "", oneOf(conversation.SMS, conversation.WhatsApp)),
		Number:      readOr(f, "number", conversation.PhoneNumber{}, phoneNumber).PhoneNumber,
		Model:       readOr(f, "model", "", oneOf(models...)),
		WaitSeconds: readOr(f, "wait", 24*60*60, seconds(time.Minute, 7*24*time.Hour)),
		DailyCap:    readOr(f, "daily_cap", 100, whole(0, 100_000)),
	}
}

// checkFollowUps notes follow-ups that nothing could send.
func checkFollowUps(f *fields, policy conversation.FollowUpPolicy, numbers firsts) {
	for _, name := range []string{"channel", "number"} {
		if _, ok := f.take(name); policy.Enabled && !ok {
			f.note(name, "is missing, and follow-ups are enabled")
		}
	}
	if _, ok := numbers[policy.Number]; policy.Number != "" && !ok {
		f.note("number", "%s is not among the file's numbers", policy.Number)
	}
}

func readAssistants(f *fields, ws conversation.Workspace) []conversation.AssistantConfig {
	items := f.list("assistants")
	if len(items) > conversation.MaxAssistants {
		f.note("assistants", "are %d, %d at most are allowed", len(items), conversation.MaxAssistants)
	}
	ids, names, evaluations := firsts{}, firsts{}, firsts{}
	assistants := make([]conversation.AssistantConfig, len(items))
	for i, item := range items {
		a := conversation.AssistantConfig{
			Assistant: conversation.Assistant{
				AssistantID:   conversation.AssistantID(readID(item, "assistant_id")),
				AssistantName: read(item, "name", text(200)),
				WorkspaceID:   ws.WorkspaceID,
				PhoneNumbers:  []conversation.PhoneNumber{},
			},
			Enabled:  readOr(item, "enabled", true, yesNo),
			Prompt:   read(item, "prompt", template),
			Greeting: read(item, "greeting", template),
			Voice:    read(item, "voice", text(200)),
			Model:    readOr(item, "model", ws.Model, oneOf(models...)),
			Language: read(item, "language", languageTag),
			Criteria: readCriteria(item, evaluations),
		}
		a.CallVariables = conversation.CallVariables(ws.FilledVariables(), a.Prompt, a.Greeting)
		ids.add(item, "assistant_id", string(a.AssistantID))
		names.add(item, "name", a.AssistantName)
		item.done()
		assistants[i] = a
	}
	return assistants
}

func readCriteria(f *fields, ids firsts) []conversation.Criterion {
	items := f.list("evaluations")
	if len(items) > maxEvaluations {
		f.note("evaluations", "are %d, %d at most are allowed", len(items), maxEvaluations)
	}
	criteria := make([]conversation.Criterion, len(items))
	for i, item := range items {
		criteria[i] = conversation.Criterion{
			EvaluationID: conversation.EvaluationID(readID(item, "evaluation_id")),
			Title:        read(item, "title", text(200)),
			Instructions: read(item, "instructions", text(4000)),
			Enabled:      readOr(item, "enabled", true, yesNo),
			Recoverable:  readOr(item, "recoverable", false, yesNo),
		}
		ids.add(item, "evaluation_id", string(criteria[i].EvaluationID))
		item.done()
	}
	return criteria
}

// readNumbers gives each number to the assistant that it names, and returns them all.
func readNumbers(f *fields, d dynamo.Definition) firsts {
	seen := firsts{}
	for _, item := range f.list("numbers") {
		number := read(item, "number", phoneNumber)
		number.OutboundEnabled = readOr(item, "outbound_enabled", false, yesNo)
		name := read(item, "assistant", text(200))
		seen.add(item, "number", number.PhoneNumber)
		item.done()

		i := slices.IndexFunc(d.Assistants, func(a conversation.AssistantConfig) bool { return a.AssistantName == name })
		switch {
		case i >= 0:
			d.Assistants[i].PhoneNumbers = append(d.Assistants[i].PhoneNumbers, number)
		case name != "":
			item.note("assistant", "%q is not the name of an assistant in the file", name)
		}
	}
	return seen
}

// firsts are values that may appear once in a file, each with its first line.
type firsts map[string]int

func (seen firsts) add(f *fields, name, value string) {
	if value == "" {
		return // missing or wrong, and noted as such
	}
	if line, ok := seen[value]; ok {
		f.note(name, "%s is in line %d already", value, line)
		return
	}
	seen[value] = f.lineOf(name)
}
