package dynamo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"parley/shared/conversation"
)

const apiKeysList = "keys"

// InsertAPIKey writes a new key of a workspace that exists, with what the audit trail shall
// say of it.
func (s *Store) InsertAPIKey(ctx context.Context, k conversation.APIKey, audit ...conversation.AuditEntry) error {
	var t transaction
	it := t.encode(k)
	it[PartitionKey] = text(apiKeyID(k.APIKeyID))
	it["workspace_list"] = text(list(k.WorkspaceID, apiKeysList))
	it["listed_at"] = text(timed(k.CreatedAt, k.APIKeyID))
	t.check(s.table(Workspaces), workspaceID(k.WorkspaceID), exists,
		wrap(conversation.ErrNotFound, "get workspace %s", k.WorkspaceID))
	t.put(s.table(Workspaces), it, absent, errors.New("it exists already"))
	s.record(&t, audit)
	return wrap(t.commit(ctx, s.db), "insert API key %s", k.APIKeyID)
}

// APIKeys lists a workspace's keys, newest first, those that are revoked as well.
func (s *Store) APIKeys(ctx context.Context, ws conversation.WorkspaceID, p PageRequest) (Page[conversation.APIKey], error) {
	l := listing{
		table: Workspaces, index: ByWorkspace, attribute: "workspace_list",
		partition: list(ws, apiKeysList), prefix: apiKeyID(""), from: first, to: last,
	}
	page, err := fetch[conversation.APIKey](ctx, s, l, p)
	return page, wrap(err, "list API keys")
}

// ChangeAPIKey lets change work on a key of this workspace as it stands, and writes it
// with the audit entries that change returns; with none, nothing is written. When somebody
// else was faster it does so again with what they wrote. It returns the key as it then is.
func (s *Store) ChangeAPIKey(ctx context.Context, ws conversation.WorkspaceID, keyID conversation.APIKeyID,
	change func(*conversation.APIKey) ([]conversation.AuditEntry, error)) (conversation.APIKey, error) {
	for range 16 {
		k, err := s.APIKey(ctx, keyID)
		if err == nil && k.WorkspaceID != ws {
			err = conversation.ErrNotFound
		}
		if err != nil {
			return conversation.APIKey{}, wrap(err, "change API key %s", keyID)
		}
		before := k
		audit, err := change(&k)
		if err != nil || len(audit) == 0 {
			return k, wrap(err, "change API key %s", keyID)
		}
		err = s.replaceAPIKey(ctx, before, k, audit)
		if !errors.Is(err, ErrStale) {
			return k, wrap(err, "change API key %s", keyID)
		}
	}
	return conversation.APIKey{}, fmt.Errorf("change API key %s: others were faster each time", keyID)
}

// replaceAPIKey writes the attributes that differ, if none of the key's own has been changed
// meanwhile. Its last use may have: a request writes that at any time.
func (s *Store) replaceAPIKey(ctx context.Context, before, after conversation.APIKey, audit []conversation.AuditEntry) error {
	var t transaction
	was, is := t.encode(before), t.encode(after)
	condition := expression.Name("workspace_id").Equal(expression.Value(before.WorkspaceID))
	for _, name := range []string{"label", "blocks", "place_calls", "revoked_at"} {
		unchanged := expression.Name(name).AttributeNotExists()
		if value, ok := was[name]; ok {
			unchanged = expression.Name(name).Equal(expression.Value(value))
		}
		condition = condition.And(unchanged)
	}
	maps.DeleteFunc(is, func(name string, value types.AttributeValue) bool { return reflect.DeepEqual(was[name], value) })
	t.update(s.table(Workspaces), apiKeyID(before.APIKeyID), replace(nil, is), condition, ErrStale)
	s.record(&t, audit)
	return t.commit(ctx, s.db)
}
