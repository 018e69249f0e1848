package conversation

import (
	"bytes"
	"encoding/json"
)

// JSON is a customer's own JSON text. It is kept and given back as it was sent: number
// formats, key order, repeated keys and escapes included.
type JSON []byte

// MarshalText is the text itself.
func (j JSON) MarshalText() ([]byte, error) { return j, nil }

// UnmarshalText takes the text as it is.
func (j *JSON) UnmarshalText(text []byte) error {
	*j = bytes.Clone(text)
	return nil
}

// MarshalJSON is the text itself; the encoder drops white space between its tokens.
func (j JSON) MarshalJSON() ([]byte, error) { return json.RawMessage(j).MarshalJSON() }

// UnmarshalJSON takes the text as it is.
func (j *JSON) UnmarshalJSON(text []byte) error { return j.UnmarshalText(text) }
