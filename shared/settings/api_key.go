// Package settings holds the operations of Settings → Developers.
package settings

import (
	"context"
	"crypto/rand"
	"time"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// NewAPIKey says what a key to be made may do.
type NewAPIKey struct {
	WorkspaceID conversation.WorkspaceID
	Label       string
	Blocks      conversation.Blocks
	PlaceCalls  bool
}

// CreateAPIKey makes a key and returns it with the text that its user sends, which is
// shown this once: the table holds a hash of it. Without the workspace the error is
// conversation.ErrNotFound.
func CreateAPIKey(ctx context.Context, store *dynamo.Store, wanted NewAPIKey, now time.Time) (conversation.APIKey, string, error) {
	secret := newSecret()
	k := conversation.APIKey{
		APIKeyID:    conversation.APIKeyID(conversation.NewID()),
		WorkspaceID: wanted.WorkspaceID,
		SecretHash:  conversation.HashSecret(secret),
		Label:       wanted.Label,
		Blocks:      wanted.Blocks,
		PlaceCalls:  wanted.PlaceCalls,
		CreatedAt:   conversation.At(now),
	}
	if err := store.InsertAPIKey(ctx, k); err != nil {
		return conversation.APIKey{}, "", err
	}
	return k, k.Text(secret), nil
}

// newSecret makes 260 random bits in 52 letters and digits.
func newSecret() string { return rand.Text() + rand.Text() }
