package carrier

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
)

// decodeCallback reads a callback of the simulator's form: one JSON object with the fields
// that its event has, and no others.
func decodeCallback(body []byte) (Callback, error) {
	var c Callback
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return Callback{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Callback{}, fmt.Errorf("%w: something follows it", ErrMalformed)
	}
	if problem := c.problem(); problem != "" {
		return Callback{}, fmt.Errorf("%w: %s", ErrMalformed, problem)
	}
	return c, nil
}

// problem says what is wrong with the callback; "" is nothing.
func (c Callback) problem() string {
	fields, known := fieldsOf[c.Event]
	switch {
	case !known:
		return fmt.Sprintf("there is no event %q", c.Event)
	case c.CarrierID == "":
		return "carrier_id is missing"
	case c.At.IsZero():
		return "at is missing"
	case fields.reason != (c.Reason != ""):
		return fmt.Sprintf("reason is %q", c.Reason)
	case !fields.numbers && (c.From != "" || c.To != "" || c.Test):
		return "from, to and test are for incoming calls"
	case fields.numbers && !(IsE164(c.From) && IsE164(c.To)):
		return "from and to must be numbers in E.164"
	default:
		return ""
	}
}

// fieldsOf says what the callbacks of each event have beside carrier_id and at.
var fieldsOf = map[Event]struct{ reason, numbers bool }{
	EventIncoming: {numbers: true},
	EventProgress: {},
	EventAnswered: {},
	EventHungUp:   {reason: true},
	EventFailed:   {reason: true},
}

var e164 = regexp.MustCompile(`^\+[1-9][0-9]{1,14}$`)

// IsE164 tells whether a text has the form of a phone number in E.164; package phone tells
// whether there can be such a number.
func IsE164(number string) bool { return e164.MatchString(number) }
