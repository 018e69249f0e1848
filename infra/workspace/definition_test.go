package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
)

// example is the smallest file that says something of everything; what it leaves out has
// its default.
const example = `workspace_id: 01990000-0000-7000-8000-000000000001
name: Harbour Hotel
timezone: Europe/London
country: GB
currency: GBP
opening_balance: 100.50
variables:
  check_in: 3 pm
prices: {telephony_per_minute: 0.0120, assistant_per_minute: "0.05", sms: "0.04", whatsapp: "0.03"}
carrier: simulator
model: scripted
quiet_hours: {from: 21:00, to: 08:00}
help_text: Call reception.
follow_ups:
  enabled: true
  channel: sms
  number: +442079460001
  model: scripted
assistants:
  - assistant_id: 01990000-0000-7000-8000-000000000002
    name: Reception
    language: en-GB
    voice: calm
    greeting: Good day {{participant_name}}, this is {{hotel_name}}.
    prompt: |
      You answer for {{hotel_name}}.
      Check-in is from {{check_in}}; the room is {{room}}.
    evaluations:
      - evaluation_id: 01990000-0000-7000-8000-000000000003
        title: Question answered
        instructions: The question was answered.
        recoverable: true
  - assistant_id: 01990000-0000-7000-8000-000000000004
    name: Bar
    enabled: false
    language: en
    voice: bright
    greeting: Hello.
    prompt: You answer for the bar.
numbers:
  - number: +442079460001
    assistant: Reception
    outbound_enabled: true
  - {number: "+12025550101", assistant: Reception}
`

func TestParse(t *testing.T) {
	got, err := parse("example.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	if got.openingBalance != "100.5" {
		t.Errorf("opening balance = %q, want 100.5", got.openingBalance)
	}
	ws := conversation.Workspace{
		WorkspaceID: "01990000-0000-7000-8000-000000000001", Name: "Harbour Hotel", Timezone: "Europe/London",
		Country: "GB", Variables: map[string]string{"check_in": "3 pm"}, Currency: "GBP",
		Prices:            conversation.Prices{TelephonyPerMinute: "0.012", AssistantPerMinute: "0.05", SMS: "0.04", WhatsApp: "0.03"},
		Limits:            conversation.Limits{ConcurrentCalls: 10, CallsPerHour: 200, LongestCallSeconds: 3600},
		InactivitySeconds: 1800, QuietHours: conversation.QuietHours{From: "21:00", To: "08:00"},
		HelpText: "Call reception.", Carrier: "simulator", Model: "scripted",
		FollowUps: conversation.FollowUpPolicy{
			Enabled: true, Channel: conversation.SMS, Number: "+442079460001", Model: "scripted",
			WaitSeconds: 24 * 3600, DailyCap: 100,
		},
	}
	assistants := []conversation.AssistantConfig{
		{
			Assistant: conversation.Assistant{
				AssistantID: "01990000-0000-7000-8000-000000000002", AssistantName: "Reception", WorkspaceID: ws.WorkspaceID,
				PhoneNumbers: []conversation.PhoneNumber{
					{PhoneNumber: "+442079460001", Country: "GB", OutboundEnabled: true},
					{PhoneNumber: "+12025550101", Country: "US"},
				},
				CallVariables: []string{"room"},
			},
			Enabled: true, Voice: "calm", Model: "scripted", Language: "en-GB",
			Prompt:   "You answer for {{hotel_name}}.\nCheck-in is from {{check_in}}; the room is {{room}}.",
			Greeting: "Good day {{participant_name}}, this is {{hotel_name}}.",
			Criteria: []conversation.Criterion{{
				EvaluationID: "01990000-0000-7000-8000-000000000003", Title: "Question answered",
				Instructions: "The question was answered.", Enabled: true, Recoverable: true,
			}},
		},
		{
			Assistant: conversation.Assistant{
				AssistantID: "01990000-0000-7000-8000-000000000004", AssistantName: "Bar", WorkspaceID: ws.WorkspaceID,
				PhoneNumbers: []conversation.PhoneNumber{}, CallVariables: []string{},
			},
			Voice: "bright", Model: "scripted", Language: "en", Prompt: "You answer for the bar.", Greeting: "Hello.",
			Criteria: []conversation.Criterion{},
		},
	}
	if diff := cmp.Diff(ws, got.definition.Workspace); diff != "" {
		t.Errorf("workspace differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(assistants, got.definition.Assistants); diff != "" {
		t.Errorf("assistants differ (-want +got):\n%s", diff)
	}
}

// TestParseRefuses changes one line of the example, and wants that line's number with
// what is wrong with it, and nothing else.
func TestParseRefuses(t *testing.T) {
	tests := map[string]struct {
		old, new string
		line     int
		want     string
	}{
		"no workspace id":            {"workspace_id: 01990000-0000-7000-8000-000000000001\n", "", 1, "workspace_id is missing; a new one is 0"},
		"an id that is no UUID":      {"-000000000002", "-2", 20, "assistants 1: assistant_id must be a UUID of version 7"},
		"an id of another version":   {"7000-8000-000000000002", "4000-8000-000000000002", 20, "assistants 1: assistant_id must be a UUID of version 7"},
		"an assistant id twice":      {"-000000000004", "-000000000002", 33, "assistants 2: assistant_id 01990000-0000-7000-8000-000000000002 is in line 20 already"},
		"an assistant name twice":    {"name: Bar", "name: Reception", 34, "assistants 2: name Reception is in line 21 already"},
		"an empty name":              {"name: Harbour Hotel", `name: " "`, 2, "name must not be empty"},
		"a field twice":              {"country: GB", "country: GB\nname: Twice", 5, "name is given twice, first in line 2"},
		"a long name":                {"name: Harbour Hotel", "name: " + strings.Repeat("x", 201), 2, "name must have at most 200 characters, and has 201"},
		"a misspelt field":           {"help_text:", "helptext:", 13, "helptext is no field; those here are opening_balance, "},
		"a misspelt nested field":    {"  model: scripted\n", "  modell: scripted\n", 18, "follow_ups.modell is no field; those here are enabled, "},
		"no such timezone":           {"Europe/London", "Europe/Atlantis", 3, "timezone must be a timezone of the IANA database"},
		"the machine's timezone":     {"Europe/London", "Local", 3, "timezone must be a timezone"},
		"no such country":            {"country: GB", "country: UK", 4, "country must be a country of two letters"},
		"no such currency":           {"currency: GBP", "currency: pounds", 5, "currency must be a currency of three letters"},
		"an amount with a comma":     {"100.50", "'100,50'", 6, "opening_balance must be an amount"},
		"a negative amount":          {"100.50", "-1", 6, "opening_balance must be an amount"},
		"an amount with an exponent": {`sms: "0.04"`, "sms: 1e-2", 9, "prices.sms must be an amount"},
		"a missing price":            {`sms: "0.04", `, "", 9, "prices.sms is missing"},
		"a reserved variable":        {"check_in: 3 pm", "system__time: noon", 8, "variables.system__time is a name that the service fills in itself"},
		"a variable's bad name":      {"check_in: 3 pm", "check-in: 3 pm", 8, "variables.check-in must be a name of letters"},
		"a carrier that isn't there": {"carrier: simulator", "carrier: pigeon", 10, `carrier must be one of [simulator], and is "pigeon"`},
		"a list for a value":         {"carrier: simulator", "carrier: [simulator]", 10, "carrier must be a plain value"},
		"no time of day":             {"21:00", "9 pm", 12, "quiet_hours.from must be a time of day"},
		"half of the quiet hours":    {", to: 08:00", "", 12, "quiet_hours.to is missing"},
		"follow-ups by no channel":   {"  channel: sms\n", "", 14, "follow_ups.channel is missing, and follow-ups are enabled"},
		"follow-ups by a pigeon":     {"channel: sms", "channel: pigeon", 16, "follow_ups.channel must be one of [sms whatsapp]"},
		"follow-ups from elsewhere":  {"  number: +442079460001\n  model", "  number: +442079460009\n  model", 17, "follow_ups.number +442079460009 is not among the file's numbers"},
		"neither true nor false":     {"enabled: false", "enabled: off", 35, `assistants 2: enabled must be true or false, and is "off"`},
		"no such language":           {"language: en-GB", "language: english language", 22, "assistants 1: language must be a language"},
		"no prompt":                  {"    prompt: You answer for the bar.\n", "", 33, "assistants 2: prompt is missing"},
		"a prompt that is too large": {"You answer for the bar.", strings.Repeat("x", conversation.MaxPromptBytes+1), 39, "assistants 2: prompt must have at most 65536 bytes, and has 65537"},
		"a bad placeholder":          {"{{participant_name}}", "{{ participant_name }}", 24, "assistants 1: greeting has the placeholder {{ participant_name }}"},
		"an evaluation id twice":     {"-000000000003\n", "-000000000003\n        title: Twice\n        instructions: Twice.\n      - evaluation_id: 01990000-0000-7000-8000-000000000003\n", 32, "assistants 1: evaluations 2: evaluation_id 01990000-0000-7000-8000-000000000003 is in line 29 already"},
		"a number that nobody has":   {`"+12025550101"`, `"+1202555"`, 44, "numbers 2: number must be a valid phone number in E.164"},
		"a number not in E.164":      {`"+12025550101"`, `"+1 (202) 555-0101"`, 44, "numbers 2: number must be a valid phone number in E.164"},
		"a number twice":             {`"+12025550101"`, `"+442079460001"`, 44, "numbers 2: number +442079460001 is in line 41 already"},
		"a number of no assistant":   {`assistant: Reception}`, `assistant: Porter}`, 44, `numbers 2: assistant "Porter" is not the name of an assistant in the file`},
		"a number alone":             {`{number: "+12025550101", assistant: Reception}`, `+12025550101`, 44, "numbers 2 must be made of fields"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			content := strings.Replace(example, tt.old, tt.new, 1)
			if content == example {
				t.Fatalf("the example has no %q", tt.old)
			}
			_, err := parse("f.yaml", []byte(content))
			if want := fmt.Sprintf("f.yaml:%d: %s", tt.line, tt.want); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("parse = %v\nwant %s", err, want)
			}
		})
	}
}

func TestParseRefusesBounds(t *testing.T) {
	tests := map[string]struct {
		line string
		want string
	}{
		"no concurrent calls":       {"limits: {concurrent_calls: 0}", "limits.concurrent_calls must be a whole number from 1 to 1000"},
		"half a call":               {"limits: {calls_per_hour: 0.5}", "limits.calls_per_hour must be a whole number from 1 to 10000"},
		"the longest call too long": {"limits: {longest_call: 4h1s}", "limits.longest_call must be whole seconds from 1m0s to 4h0m0s"},
		"a duration without unit":   {"inactivity: 30", "inactivity must be whole seconds from 1m0s to 24h0m0s"},
		"a broken second":           {"inactivity: 90.5s", "inactivity must be whole seconds"},
		"limits that are a value":   {"limits: 10", "limits must be made of fields"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parse("f.yaml", []byte(tt.line+"\n"+example))
			if want := "f.yaml:1: " + tt.want; err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("parse = %v\nwant %s", err, want)
			}
		})
	}
}

func TestParseTakesWhatIsAtTheBounds(t *testing.T) {
	const lines = "limits: {concurrent_calls: 1000, calls_per_hour: 1, longest_call: 4h}\ninactivity: 1m\n"
	got, err := parse("f.yaml", []byte(lines+example))
	want := conversation.Limits{ConcurrentCalls: 1000, CallsPerHour: 1, LongestCallSeconds: 4 * 3600}
	if err != nil || got.definition.Workspace.Limits != want || got.definition.Workspace.InactivitySeconds != 60 {
		t.Errorf("parse = %+v, %v; want %+v and 60 s", got.definition.Workspace, err, want)
	}
}

func TestParseNamesEverythingAtOnce(t *testing.T) {
	broken := example
	for _, change := range [][2]string{
		{"Europe/London", "Mars"}, {"country: GB", "country: XX"}, {"0.0120", "free"},
		{"  channel: sms\n", "  channel: fax\n"}, {"name: Bar", "name: Reception"}, {"{{room}}", "{{1room}}"},
		{"title: Question answered", "titel: Question answered"}, {"assistant: Reception}", "assistant: Porter}"},
	} {
		broken = strings.Replace(broken, change[0], change[1], 1)
	}
	_, err := parse("f.yaml", []byte(broken))
	if err == nil {
		t.Fatal("parse = nil, want errors")
	}
	var lines []string
	for line := range strings.Lines(err.Error()) {
		lines = append(lines, strings.Split(line, ":")[1])
	}
	if want := []string{"3", "4", "9", "16", "25", "29", "30", "34", "44"}; !slices.Equal(lines, want) {
		t.Errorf("lines = %v, want %v:\n%v", lines, want, err)
	}
}

func TestParseRefusesWhatIsNoWorkspace(t *testing.T) {
	tests := map[string]struct {
		content string
		want    string
	}{
		"nothing":          {"", "f.yaml:1: holds no workspace, or more than one"},
		"a comment":        {"# nothing\n", "f.yaml:1: holds no workspace, or more than one"},
		"two documents":    {"name: a\n---\nname: b\n", "f.yaml:1: holds no workspace, or more than one"},
		"a list":           {"- name: a\n", "f.yaml:1: the file must be made of fields"},
		"text":             {"workspace", "f.yaml:1: the file must be made of fields"},
		"a brace too few":  {"name: a\nprices: {sms: 1\n", "f.yaml:2: no YAML: "},
		"a tab":            {"name: a\nprices:\n\tsms: 1\n", "f.yaml:3: no YAML: "},
		"a wrong indent":   {"name: a\n  country: GB\n", "f.yaml:"},
		"too large a file": {strings.Repeat("#", maxFileBytes+1), "f.yaml: has 3145729 bytes, 3145728 at most are allowed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := parse("f.yaml", []byte(tt.content)); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("parse = %v, want %s", err, tt.want)
			}
		})
	}
}

func TestReadFileThatIsNotThere(t *testing.T) {
	if _, err := readFile("nowhere.yaml"); err == nil || !strings.Contains(err.Error(), "nowhere.yaml") {
		t.Errorf("readFile = %v, want an error that names the file", err)
	}
}

func TestDemoFilesAreValid(t *testing.T) {
	names, err := filepath.Glob("../local/demo*.yaml")
	if err != nil || len(names) != 2 {
		t.Fatalf("demo files = %v, %v; want two", names, err)
	}
	for _, name := range names {
		if _, err := readFile(name); err != nil {
			t.Error(err)
		}
	}
}
