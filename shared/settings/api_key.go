package settings

import (
	"context"
	"crypto/rand"
	"time"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/httpapi"
)

// NewAPIKey says what a key to be made may do.
type NewAPIKey struct {
	WorkspaceID conversation.WorkspaceID
	Label       string
	Blocks      conversation.Blocks
	PlaceCalls  bool
}

// CreateAPIKey makes a key, as the operator, and returns it with the text that its user sends, which is
// shown this once: the table holds a hash of it. Without the workspace the error is
// conversation.ErrNotFound.
func CreateAPIKey(ctx context.Context, store *dynamo.Store, wanted NewAPIKey, now time.Time) (conversation.APIKey, string, error) {
	k, text := newAPIKey(wanted, now)
	entry, err := entryOf(operator(k.WorkspaceID), now, conversation.APIKeyCreated, string(k.APIKeyID), nil, showAPIKey(k))
	if err != nil {
		return conversation.APIKey{}, "", err
	}
	if err := store.InsertAPIKey(ctx, k, entry); err != nil {
		return conversation.APIKey{}, "", err
	}
	return k, text, nil
}

// operator is who runs the service, for the audit trail of a workspace.
func operator(ws conversation.WorkspaceID) httpapi.User {
	return httpapi.User{WorkspaceID: ws, UserID: "operator"}
}

// RevokeAPIKey ends a key of this workspace for good, as the operator. One that is revoked
// already stays revoked as of then.
func RevokeAPIKey(ctx context.Context, store *dynamo.Store, ws conversation.WorkspaceID, keyID conversation.APIKeyID, now time.Time) error {
	return revokeAPIKey(ctx, store, operator(ws), keyID, now)
}

func revokeAPIKey(ctx context.Context, store *dynamo.Store, user httpapi.User, keyID conversation.APIKeyID, now time.Time) error {
	_, err := changeAPIKey(ctx, store, user, keyID, now, conversation.APIKeyRevoked, func(k *conversation.APIKey) error {
		if k.RevokedAt.IsZero() {
			k.RevokedAt = conversation.At(now)
		}
		return nil
	})
	return err
}

// changeAPIKey changes a key of the user's workspace and tells the audit trail, unless
// nothing changes.
func changeAPIKey(ctx context.Context, store *dynamo.Store, user httpapi.User, keyID conversation.APIKeyID, now time.Time,
	action conversation.AuditAction, change func(*conversation.APIKey) error) (conversation.APIKey, error) {
	return store.ChangeAPIKey(ctx, user.WorkspaceID, keyID, func(k *conversation.APIKey) ([]conversation.AuditEntry, error) {
		before := showAPIKey(*k)
		if err := change(k); err != nil {
			return nil, err
		}
		entry, err := entryOf(user, now, action, string(keyID), before, showAPIKey(*k))
		if err != nil || len(entry.Changes) == 0 {
			return nil, err
		}
		return []conversation.AuditEntry{entry}, nil
	})
}

// newAPIKey is a key, and the text that its user sends.
func newAPIKey(wanted NewAPIKey, now time.Time) (conversation.APIKey, string) {
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
	return k, k.Text(secret)
}

// newSecret makes 260 random bits in 52 letters and digits.
func newSecret() string { return rand.Text() + rand.Text() }
