// Package conversation holds the domain: what the service knows about calls, messages,
// threads, assistants and the workspaces that own them, and the rules that need nothing
// but those values. It imports the standard library and google/uuid only.
package conversation

import (
	"time"

	"github.com/google/uuid"
)

// Ids are UUID version 7 in their canonical lower-case form, so that ids of one kind
// sort by the moment they were made.
type (
	WorkspaceID  string
	AssistantID  string
	CallID       string
	MessageID    string
	ThreadID     string
	CustomerID   string
	EvaluationID string
	APIKeyID     string
)

// NewID makes an id of this moment.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// FirstID returns the smallest UUIDv7 that an id made at t can be. Ids of one kind and
// FirstID compare as strings in the order of time.
func FirstID(t time.Time) string {
	var id uuid.UUID
	ms := max(0, t.UnixMilli())
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	id[6] = 0x70
	id[8] = 0x80
	return id.String()
}
