package conversation

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestNewID(t *testing.T) {
	before := FirstID(time.Now())
	id := NewID()
	after := FirstID(time.Now().Add(time.Millisecond))
	parsed, err := uuid.Parse(id)
	if err != nil || parsed.Version() != 7 || parsed.String() != id || id < before || id >= after {
		t.Errorf("NewID = %s, %v; want a UUIDv7 from %s to %s", id, err, before, after)
	}
}

func TestFirstID(t *testing.T) {
	for _, tt := range []struct {
		at   time.Time
		want string
	}{
		{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), "019ca945-0a00-7000-8000-000000000000"},
		{time.Date(2026, 3, 1, 13, 0, 0, 999_999, time.FixedZone("", 3600)), "019ca945-0a00-7000-8000-000000000000"},
		{time.Unix(0, 0), "00000000-0000-7000-8000-000000000000"},
		{time.Time{}, "00000000-0000-7000-8000-000000000000"}, // before the epoch
	} {
		if got := FirstID(tt.at); got != tt.want {
			t.Errorf("FirstID(%s) = %s, want %s", tt.at, got, tt.want)
		}
	}
	if earlier, later := FirstID(time.UnixMilli(255)), FirstID(time.UnixMilli(256)); earlier >= later {
		t.Errorf("%s and %s are not in the order of time", earlier, later)
	}
}
