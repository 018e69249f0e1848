package settings_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/dynamo/dynamotest"
	"parley/shared/settings"
)

const workspace = conversation.WorkspaceID("01980000-0000-7000-8000-000000000001")

func newStore(t *testing.T) *dynamo.Store {
	t.Helper()
	store := dynamotest.Store(t)
	definition := dynamo.Definition{Workspace: conversation.Workspace{WorkspaceID: workspace}}
	if err := store.Define(t.Context(), dynamo.Definition{}, definition, "0"); err != nil {
		t.Fatal(err)
	}
	return store
}

func TestCreateAPIKey(t *testing.T) {
	store := newStore(t)
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	created, text, err := settings.CreateAPIKey(t.Context(), store, settings.NewAPIKey{
		WorkspaceID: workspace, Label: "CRM", Blocks: conversation.DefaultBlocks(), PlaceCalls: true,
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	id, secret, ok := conversation.ParseAPIKey(text)
	if !ok || id != created.APIKeyID {
		t.Errorf("ParseAPIKey(%q) = %s, %v; want %s, true", text, id, ok, created.APIKeyID)
	}
	stored, err := store.APIKey(t.Context(), id)
	want := conversation.APIKey{
		APIKeyID: id, WorkspaceID: workspace, SecretHash: conversation.HashSecret(secret), Label: "CRM",
		Blocks: conversation.DefaultBlocks(), PlaceCalls: true, CreatedAt: conversation.At(now),
	}
	if err != nil || !cmp.Equal(stored, want) || !cmp.Equal(created, want) {
		t.Errorf("APIKey = %+v, %v; created %+v; want %+v", stored, err, created, want)
	}
}

func TestCreateAPIKeyMakesAnotherEachTime(t *testing.T) {
	store := newStore(t)
	seen := map[string]bool{}
	for range 3 {
		_, text, err := settings.CreateAPIKey(t.Context(), store, settings.NewAPIKey{WorkspaceID: workspace}, time.Now())
		_, secret, _ := conversation.ParseAPIKey(text)
		if err != nil || len(secret) < 52 || seen[secret] { // 52 letters of 5 bits
			t.Errorf("secret = %q, %v; want a new one of 52 letters", secret, err)
		}
		seen[secret] = true
	}
}

func TestCreateAPIKeyOfNoWorkspace(t *testing.T) {
	store := newStore(t)
	_, text, err := settings.CreateAPIKey(t.Context(), store, settings.NewAPIKey{WorkspaceID: "nobody"}, time.Now())
	if !errors.Is(err, conversation.ErrNotFound) || text != "" {
		t.Errorf("CreateAPIKey = %q, %v; want ErrNotFound", text, err)
	}
}

func TestRevokeAPIKey(t *testing.T) {
	store := newStore(t)
	created, _, err := settings.CreateAPIKey(t.Context(), store, settings.NewAPIKey{WorkspaceID: workspace}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	first := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	for _, at := range []time.Time{first, first.Add(time.Hour)} {
		if err := settings.RevokeAPIKey(t.Context(), store, workspace, created.APIKeyID, at); err != nil {
			t.Errorf("RevokeAPIKey = %v", err)
		}
	}
	if stored, err := store.APIKey(t.Context(), created.APIKeyID); err != nil || stored.RevokedAt != conversation.At(first) {
		t.Errorf("revoked at %v, %v; want %v", stored.RevokedAt, err, first)
	}
	if err := settings.RevokeAPIKey(t.Context(), store, "another", created.APIKeyID, first); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("RevokeAPIKey for another workspace = %v, want ErrNotFound", err)
	}
}
