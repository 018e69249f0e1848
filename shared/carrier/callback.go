package carrier

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxID and maxContent bound what a callback holds, in bytes: an id of the carrier's, and a
// text. A customer of WhatsApp writes 4,096 characters at most.
const (
	maxID      = 256
	maxContent = 64 << 10
)

// decode reads a callback of the simulator's form: one JSON object in UTF-8, with the fields
// that its event has, and no others.
func decode[C interface {
	Callback | MessageCallback
	problem() string
}](body []byte) (C, error) {
	var c, none C
	if !utf8.Valid(body) {
		return none, fmt.Errorf("%w: it is not UTF-8", ErrMalformed)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return none, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return none, fmt.Errorf("%w: something follows it", ErrMalformed)
	}
	if problem := c.problem(); problem != "" {
		return none, fmt.Errorf("%w: %s", ErrMalformed, problem)
	}
	return c, nil
}

// problem says what is wrong with the callback; "" is nothing.
func (c Callback) problem() string {
	fields, known := fieldsOf[c.Event]
	switch {
	case !known:
		return fmt.Sprintf("there is no event %q", c.Event)
	case c.CarrierID == "" || len(c.CarrierID) > maxID:
		return "carrier_id is missing or too long"
	case c.At.IsZero():
		return "at is missing"
	case fields.reason != (c.Reason != ""):
		return fmt.Sprintf("reason is %q", c.Reason)
	case !fields.numbers && (c.From != "" || c.To != "" || c.Test):
		return "from, to and test are for incoming calls"
	case fields.numbers && !(IsE164(c.From) && IsE164(c.To)):
		return "from and to must be numbers in E.164"
	case !fields.tool && (c.Text != "" || c.ToolID != ""):
		return "text and tool_id are for tools"
	case fields.tool && (c.ToolID == "" || len(c.ToolID) > maxID):
		return "tool_id is missing or too long"
	case fields.tool && (strings.TrimSpace(c.Text) == "" || len(c.Text) > maxContent):
		return "text is missing or too long"
	default:
		return ""
	}
}

// fieldsOf says what the callbacks of each event have beside carrier_id and at.
var fieldsOf = map[Event]struct{ reason, numbers, tool bool }{
	EventIncoming: {numbers: true},
	EventProgress: {},
	EventAnswered: {},
	EventHungUp:   {reason: true},
	EventFailed:   {reason: true},
	EventTool:     {tool: true},
}

var e164 = regexp.MustCompile(`^\+[1-9][0-9]{1,14}$`)

// IsE164 tells whether a text has the form of a phone number in E.164; package phone tells
// whether there can be such a number.
func IsE164(number string) bool { return e164.MatchString(number) }
