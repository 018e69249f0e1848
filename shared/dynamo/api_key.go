package dynamo

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"parley/shared/conversation"
)

// A key names its workspace, so it is found by its own id alone.
func apiKeyID(keyID conversation.APIKeyID) string { return "key#" + string(keyID) }

// APIKey reads a key by its id, strongly consistent: a revoked key is refused at once.
func (s *Store) APIKey(ctx context.Context, keyID conversation.APIKeyID) (conversation.APIKey, error) {
	it, err := s.read(ctx, Workspaces, apiKeyID(keyID))
	if err != nil {
		return conversation.APIKey{}, wrap(err, "get API key %s", keyID)
	}
	k, err := decode[conversation.APIKey](it)
	return k, wrap(err, "get API key %s", keyID)
}

// TouchAPIKey records that a key is in use, at most once an hour. It tells nobody when
// somebody else has just done so, or when the key is gone.
func (s *Store) TouchAPIKey(ctx context.Context, keyID conversation.APIKeyID, now time.Time) error {
	lastUsed := expression.Name("last_used_at")
	stale := lastUsed.AttributeNotExists().
		Or(lastUsed.LessThan(expression.Value(conversation.At(now.Add(-time.Hour)).String())))
	_, err := s.update(ctx, Workspaces, apiKeyID(keyID),
		expression.Set(lastUsed, expression.Value(conversation.At(now).String())),
		expression.Name(PartitionKey).AttributeExists().And(stale))
	if isConditionFailed(err) {
		return nil
	}
	return wrap(err, "touch API key %s", keyID)
}
