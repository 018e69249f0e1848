package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
		To            string            `json:"to" doc:"The number to call, E.164."`
		From          string            `json:"from,omitempty" doc:"The number to call from, E.164. Optional when the assistant has exactly one number enabled for outbound calls."`
		CustomerName  string            `json:"customer_name,omitempty" maxLength:"5000" doc:"Who is being called; {{participant_name}} in the prompt."`
		CallVariables CallVariables     `json:"call_variables,omitempty" doc:"Values for the placeholders of prompt and greeting."`
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
	return &huma.Schema{
		Type: huma.TypeObject,
		// Resolve checks these itself, with the spec's words.
		AdditionalProperties: &huma.Schema{Extensions: map[string]any{"type": []string{"string", "number", "boolean"}}},
		Extensions:           map[string]any{"maxProperties": maxVariables},
	}
}

// Resolve checks what no schema says.
func (b *CallBody) Resolve(ctx huma.Context) []error {
	if !utf8.Valid(b.RawBody) {
		return []error{errors.New("the body must be UTF-8")}
	}
	if !json.Valid(b.RawBody) || !isObject(b.RawBody) {
		return nil // the library says so
	}
	problems := repeatedKeys(b.RawBody)
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

// repeatedKeys names the keys that stand twice in one object, but for those of metadata,
// which is nobody's business.
func repeatedKeys(raw []byte) []error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	var problems []error
	var objects []map[string]bool // the keys seen, of the objects around; nil for an array
	key := true                   // a key comes next, if this is an object
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return problems
		}
		if err != nil {
			return append(problems, err)
		}
		inObject := len(objects) > 0 && objects[len(objects)-1] != nil
		switch token {
		case json.Delim('{'):
			objects, key = append(objects, map[string]bool{}), true
			continue
		case json.Delim('['):
			objects = append(objects, nil)
			continue
		case json.Delim('}'), json.Delim(']'):
			objects, key = objects[:len(objects)-1], true
			continue
		}
		if !inObject || !key {
			key = true
			continue
		}
		name := token.(string)
		seen := objects[len(objects)-1]
		if seen[name] {
			problems = append(problems, fmt.Errorf("%s: the key stands twice", name))
		}
		seen[name], key = true, false
		if len(objects) == 1 && name == "metadata" {
			var skipped json.RawMessage
			if err := decoder.Decode(&skipped); err != nil {
				return append(problems, err)
			}
			key = true
		}
	}
}
