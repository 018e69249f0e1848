package conversation

import (
	"encoding/json"
	"testing"
	"time"
)

func TestTimeFormats(t *testing.T) {
	east := time.FixedZone("", 2*3600)
	for _, tt := range []struct {
		at           time.Time
		zulu, offset string
	}{
		{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), "2026-03-01T12:00:00.000Z", "2026-03-01T12:00:00.000+00:00"},
		{time.Date(2026, 3, 1, 12, 0, 0, 123_999_999, time.UTC), "2026-03-01T12:00:00.123Z", "2026-03-01T12:00:00.123+00:00"},
		{time.Date(2026, 3, 1, 1, 0, 0, 500_000_000, east), "2026-02-28T23:00:00.500Z", "2026-02-28T23:00:00.500+00:00"},
	} {
		at := At(tt.at)
		if got := at.String(); got != tt.zulu {
			t.Errorf("At(%s) is written %s, want %s", tt.at, got, tt.zulu)
		}
		if got := at.WithOffset().String(); got != tt.offset {
			t.Errorf("with offset: %s, want %s", got, tt.offset)
		}
		if direct := (Time{tt.at.Truncate(time.Millisecond)}).String(); direct != tt.zulu {
			t.Errorf("a time in another zone is written %s, want %s", direct, tt.zulu)
		}
		for _, text := range []string{tt.zulu, tt.offset} {
			var fromJSON, fromText Time
			if err := json.Unmarshal([]byte(`"`+text+`"`), &fromJSON); err != nil || fromJSON != at {
				t.Errorf("%s in JSON reads as %s, %v", text, fromJSON, err)
			}
			if err := fromText.UnmarshalText([]byte(text)); err != nil || fromText != at {
				t.Errorf("%s reads as %s, %v", text, fromText, err)
			}
		}
		written, err := json.Marshal(struct{ A, B Time }{at, at.WithOffset()})
		if want := `{"A":"` + tt.zulu + `","B":"` + tt.offset + `"}`; err != nil || string(written) != want {
			t.Errorf("JSON %s, %v; want %s", written, err, want)
		}
	}
}

func TestTimeWithoutValue(t *testing.T) {
	text, err := Time{}.MarshalText()
	if err != nil || len(text) != 0 {
		t.Errorf("MarshalText = %q, %v; want nothing", text, err)
	}
	written, err := json.Marshal(struct {
		At Time `json:"at,omitzero"`
	}{})
	if err != nil || string(written) != "{}" {
		t.Errorf("JSON %s, %v; want it left out", written, err)
	}
	var read Time
	if err := read.UnmarshalText([]byte("yesterday")); err == nil {
		t.Error("yesterday is read")
	}
	if err := json.Unmarshal([]byte(`1772366400`), &read); err == nil {
		t.Error("a number is read")
	}
}
