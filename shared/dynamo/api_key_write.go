package dynamo

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"parley/shared/conversation"
)

const apiKeysList = "keys"

// InsertAPIKey writes a new key of a workspace that exists.
func (s *Store) InsertAPIKey(ctx context.Context, k conversation.APIKey) error {
	var t transaction
	it := t.encode(k)
	it[PartitionKey] = text(apiKeyID(k.APIKeyID))
	it["workspace_list"] = text(list(k.WorkspaceID, apiKeysList))
	it["listed_at"] = text(timed(k.CreatedAt, k.APIKeyID))
	t.check(s.table(Workspaces), workspaceID(k.WorkspaceID), exists,
		wrap(conversation.ErrNotFound, "get workspace %s", k.WorkspaceID))
	t.put(s.table(Workspaces), it, absent, errors.New("it exists already"))
	return wrap(t.commit(ctx, s.db), "insert API key %s", k.APIKeyID)
}

// RevokeAPIKey ends a key of this workspace. One that is revoked already stays revoked as
// of then.
func (s *Store) RevokeAPIKey(ctx context.Context, ws conversation.WorkspaceID, keyID conversation.APIKeyID, now time.Time) error {
	revokedAt := expression.Name("revoked_at")
	err := s.update(ctx, Workspaces, apiKeyID(keyID),
		expression.Set(revokedAt, expression.IfNotExists(revokedAt, expression.Value(conversation.At(now).String()))),
		expression.Name("workspace_id").Equal(expression.Value(ws)))
	if isConditionFailed(err) {
		err = conversation.ErrNotFound
	}
	return wrap(err, "revoke API key %s", keyID)
}
