package conversation

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// A derived id is the same however often it is made, of its moment, and another's for
// anything else.
func TestDerivedMessageID(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 123_456_789, time.UTC)
	const want = MessageID("019ca945-0a7b-72af-a617-581c4c01cdc2")
	id := DerivedMessageID("w", "tool c 1", At(at))
	if id != want {
		t.Errorf("DerivedMessageID = %s, want %s: an id that changes sends a message twice", id, want)
	}
	if again := DerivedMessageID("w", "tool c 1", At(at).WithOffset()); again != id {
		t.Errorf("the same moment in another form: %s, want %s", again, id)
	}
	if first, next := FirstID(at), FirstID(at.Add(time.Millisecond)); string(id) < first || string(id) >= next {
		t.Errorf("%s isn't of its moment: want it from %s and before %s", id, first, next)
	}
	if parsed, err := uuid.Parse(string(id)); err != nil || parsed.Version() != 7 || parsed.Variant() != uuid.RFC4122 || parsed.String() != string(id) {
		t.Errorf("%s is no UUIDv7: %v", id, err)
	}
	seen := map[MessageID]string{id: "the first"}
	for name, other := range map[string]MessageID{
		"another workspace":  DerivedMessageID("w2", "tool c 1", At(at)),
		"something else":     DerivedMessageID("w", "tool c 2", At(at)),
		"another moment":     DerivedMessageID("w", "tool c 1", At(at.Add(time.Millisecond))),
		"a line's end moved": DerivedMessageID("w\ntool", "c 1", At(at)),
		"no moment":          DerivedMessageID("w", "tool c 1", Time{}),
		"before 1970":        DerivedMessageID("w", "tool c 2", At(time.Unix(-1, 0))),
	} {
		if earlier, ok := seen[other]; ok {
			t.Errorf("%s has the id of %s", name, earlier)
		}
		seen[other] = name
	}
}

func TestThreadOpen(t *testing.T) {
	thread := sampleThread()
	if thread.Open() {
		t.Error("a completed thread is open")
	}
	thread.CompletedAt = Time{}
	if !thread.Open() {
		t.Error("a thread without completed_at isn't open")
	}
}
