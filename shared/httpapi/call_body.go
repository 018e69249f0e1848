package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"parley/shared/conversation"
)

// Limits of a request to place a call (spec: Limits).
const (
	maxBodyBytes      = 4 << 20
	maxVariables      = 50
	maxVariableName   = 64
	maxVariableLength = 5000 // characters, of a value and of customer_name
	maxMetadataBytes  = 8 << 10
)

// CallBody is the body of a request to place a call. Everything wrong in it is named at
// once: what the library finds by the schema, and what Resolve finds beside it.
type CallBody struct {
	RawBody []byte
	Body    struct {
		_             struct{}          `additionalProperties:"false"`
		AssistantID   UUID              `json:"assistant_id" doc:"The assistant that handles the call."`
		To            string            `json:"to" minLength:"1" doc:"The number to call, E.164."`
		From          string            `json:"from,omitempty" minLength:"1" doc:"The number to call from, E.164. Optional when the assistant has exactly one number enabled for outbound calls."`
		CustomerName  string            `json:"customer_name,omitempty" maxLength:"5000" doc:"Who is being called; {{participant_name}} in the prompt."`
		CallVariables CallVariables     `json:"call_variables,omitempty" doc:"Values for the placeholders of prompt and greeting. Names that begin with system__ or secret__ are reserved, and so are phone_number, caller_phone_number and participant_name."`
		Metadata      conversation.JSON `json:"metadata,omitempty" doc:"Your own JSON, at most 8 KB; given back unchanged, and never shown to the assistant."`
	}
	call newCall
}

// newCall is a request to place a call that is in order, but for what only the table knows.
type newCall struct {
	AssistantID   conversation.AssistantID
	To, From      string
	CustomerName  string
	CallVariables conversation.JSON
	Metadata      conversation.JSON
	country       string // of To
}

// CallVariables is a JSON object of texts, numbers and booleans, as it was sent.
type CallVariables struct{ conversation.JSON }

func (CallVariables) Schema(huma.Registry) *huma.Schema {
	// Resolve checks these itself, with the spec's words.
	return &huma.Schema{
		Type: huma.TypeObject,
		AdditionalProperties: &huma.Schema{Extensions: map[string]any{
			"type": []string{"string", "number", "boolean"}, "maxLength": maxVariableLength,
		}},
		Extensions: map[string]any{
			"maxProperties": maxVariables,
			"propertyNames": map[string]any{"pattern": variableName.String(), "maxLength": maxVariableName},
		},
	}
}

// Resolve checks what no schema says.
func (b *CallBody) Resolve(ctx huma.Context) []error {
	problems, isWhole := checkBody(ctx.Context(), b.RawBody)
	if !isWhole {
		return problems
	}
	country, err := calling(ctx.Context()).Country(b.Body.To)
	if err != nil && b.Body.To != "" {
		problems = append(problems, fmt.Errorf("to: %w", err))
	}
	if _, err := calling(ctx.Context()).Country(b.Body.From); err != nil && b.Body.From != "" {
		problems = append(problems, fmt.Errorf("from: %w", err))
	}
	if len(b.Body.Metadata) > maxMetadataBytes {
		problems = append(problems, fmt.Errorf("metadata: %d bytes, at most %d are allowed", len(b.Body.Metadata), maxMetadataBytes))
	}
	problems = append(problems, checkVariables(b.Body.CallVariables.JSON)...)
	b.call = newCall{
		AssistantID: canonical[conversation.AssistantID](b.Body.AssistantID),
		To:          b.Body.To, From: b.Body.From, country: country,
		CustomerName:  b.Body.CustomerName,
		CallVariables: given(b.Body.CallVariables.JSON), Metadata: given(b.Body.Metadata),
	}
	return problems
}

// given is a JSON value, unless it is null, which is none.
func given(value conversation.JSON) conversation.JSON {
	if string(value) == "null" {
		return nil
	}
	return value
}

func isObject(raw []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) }

var variableName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// checkVariables holds call_variables to the spec's rules and names every breach.
func checkVariables(variables conversation.JSON) []error {
	var values map[string]json.RawMessage
	if !isObject(variables) || json.Unmarshal(variables, &values) != nil {
		return nil // the schema says so, or there are none
	}
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if len(values) > maxVariables {
		add("call_variables has %d keys, at most %d are allowed", len(values), maxVariables)
	}
	for _, name := range repeatedKeys(variables) {
		add("call_variables key '%s' stands twice", name)
	}
	for name, value := range values {
		switch {
		case !variableName.MatchString(name):
			add("call_variables key '%s' must start with a letter and contain only letters, digits and underscores", name)
		case conversation.ReservedVariable(name):
			add("call_variables key '%s' is reserved%s", name, insteadOf[name])
		}
		if utf8.RuneCountInString(name) > maxVariableName {
			add("call_variables key '%s' must have at most %d characters", name, maxVariableName)
		}
		text, ok := variableText(value)
		if !ok {
			add("call_variables key '%s' must be a string, a number or a boolean", name)
		}
		if utf8.RuneCountInString(text) > maxVariableLength {
			add("call_variables key '%s' must have a value of at most %d characters", name, maxVariableLength)
		}
	}
	return problems
}

// insteadOf names the request field that does what a reserved variable would.
var insteadOf = map[string]string{
	"phone_number":     ": use the request field to",
	"participant_name": ": use the request field customer_name",
}

// variableText is a variable's value as it reaches the prompt.
func variableText(value json.RawMessage) (string, bool) {
	switch value[0] {
	case '"':
		var text string
		return text, json.Unmarshal(value, &text) == nil
	case '{', '[', 'n':
		return "", false
	default:
		return string(value), true
	}
}

// repeatedKeys names the keys that stand twice in an object, each once. What is inside
// their values is another matter: nobody's, in metadata.
func repeatedKeys(object []byte) []string {
	decoder := json.NewDecoder(bytes.NewReader(object))
	_, _ = decoder.Token() // the brace
	var repeated []string
	times := map[string]int{}
	for decoder.More() {
		name, _ := decoder.Token()
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			break // can't be: it is valid JSON
		}
		key, _ := name.(string)
		if times[key]++; times[key] == 2 {
			repeated = append(repeated, key)
		}
	}
	return repeated
}
