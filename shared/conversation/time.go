package conversation

import (
	"fmt"
	"time"
)

// Time is a moment with a resolution of one millisecond. It is written with exactly three
// decimals, so that its text sorts: as UTC with "Z", or, after WithOffset, with "+00:00".
// The zero Time is no value and is left out of every payload.
type Time struct{ time.Time }

const (
	zulu   = "2006-01-02T15:04:05.000Z07:00"
	offset = "2006-01-02T15:04:05.000-07:00"
)

// zeroOffset is UTC by another name: it tells WithOffset's values from the others.
var zeroOffset = time.FixedZone("+00:00", 0)

// At is t in UTC, cut to the millisecond.
func At(t time.Time) Time { return Time{t.UTC().Truncate(time.Millisecond)} }

// WithOffset is the same moment, written with "+00:00" as webhook payloads do.
func (t Time) WithOffset() Time { return Time{t.In(zeroOffset)} }

func (t Time) String() string {
	if t.Location() == zeroOffset {
		return t.Format(offset)
	}
	return t.UTC().Format(zulu)
}

// MarshalText writes the form that the payloads and the tables use.
func (t Time) MarshalText() ([]byte, error) {
	if t.IsZero() {
		return nil, nil
	}
	return []byte(t.String()), nil
}

// MarshalJSON is MarshalText in quotes.
func (t Time) MarshalJSON() ([]byte, error) { return []byte(`"` + t.String() + `"`), nil }

// UnmarshalText reads RFC 3339.
func (t *Time) UnmarshalText(text []byte) error {
	parsed, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return fmt.Errorf("read time %q: %w", text, err)
	}
	*t = At(parsed)
	return nil
}

// UnmarshalJSON reads RFC 3339 in quotes.
func (t *Time) UnmarshalJSON(data []byte) error {
	var parsed time.Time
	if err := parsed.UnmarshalJSON(data); err != nil {
		return fmt.Errorf("read time %s: %w", data, err)
	}
	*t = At(parsed)
	return nil
}
