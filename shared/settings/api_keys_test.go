package settings_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
	"parley/shared/httpapi"
)

func TestAPIKeysLife(t *testing.T) {
	u := newDesk(t).newUser(t)
	created := u.createKey(t, "CRM")
	if created.APIKey.PlaceCalls || !cmp.Equal(created.APIKey.Blocks, conversation.DefaultBlocks()) || created.APIKey.Label != "CRM" {
		t.Errorf("created %+v, want the usual blocks and no calls", created.APIKey)
	}
	id, secret, _ := conversation.ParseAPIKey(created.Secret)
	stored, err := u.d.Store.APIKey(t.Context(), id)
	if err != nil || stored.WorkspaceID != u.ws || stored.SecretHash != conversation.HashSecret(secret) {
		t.Errorf("stored %+v, %v", stored, err)
	}

	path := "/api-keys/" + strings.ToUpper(string(id))
	changed := want[oneAPIKey](t, u.ask(t, "PATCH", path, anything{"place_calls": true, "blocks": []string{"costs"}}), http.StatusOK)
	expected := created.APIKey
	expected.PlaceCalls, expected.Blocks = true, conversation.Blocks{conversation.BlockCall, conversation.BlockCosts}
	if diff := cmp.Diff(expected, changed.APIKey); diff != "" || changed.Secret != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	want[oneAPIKey](t, u.ask(t, "PATCH", path, anything{"place_calls": true}), http.StatusOK) // as it is
	for range 2 {
		want[anything](t, u.ask(t, "DELETE", path, nil), http.StatusNoContent)
	}
	if refused := want[httpapi.Problem](t, u.ask(t, "PATCH", path, anything{"label": "x"}), http.StatusConflict); refused.Code != "api_key_revoked" {
		t.Errorf("a revoked key: %+v", refused)
	}
	listed := u.ask(t, "GET", "/api-keys", nil)
	all := want[apiKeyList](t, listed, http.StatusOK)
	if len(all.APIKeys) != 1 || all.APIKeys[0].RevokedAt.IsZero() || all.APIKeys[0].Label != "CRM" {
		t.Errorf("listed %+v, want one key, revoked", all)
	}
	if strings.Contains(listed.body, secret) || strings.Contains(listed.body, "hash") {
		t.Errorf("the list has the secret: %s", listed.body)
	}

	trail := u.audit(t)
	var actions []conversation.AuditAction
	for _, entry := range trail {
		actions = append(actions, entry.Action)
		if entry.UserID != u.sub || entry.SubjectID != string(id) || entry.At.IsZero() {
			t.Errorf("entry %+v, want it by %s about %s", entry, u.sub, id)
		}
	}
	if !slices.Equal(actions, []conversation.AuditAction{conversation.APIKeyRevoked, conversation.APIKeyUpdated, conversation.APIKeyCreated}) {
		t.Errorf("trail %v, want one entry for each change", actions)
	}
	wanted := []conversation.AuditChange{
		{Field: "blocks", Before: conversation.JSON(`["call","customer","transcript","analysis","evaluations","recording"]`), After: conversation.JSON(`["call","costs"]`)},
		{Field: "place_calls", Before: conversation.JSON(`false`), After: conversation.JSON(`true`)},
	}
	if diff := cmp.Diff(wanted, trail[1].Changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestAPIKeyPages(t *testing.T) {
	u := newDesk(t).newUser(t)
	for _, label := range []string{"a", "b", "c"} {
		u.createKey(t, label)
	}
	var labels []string
	target := "/api-keys?limit=2"
	for range 3 {
		page := want[apiKeyList](t, u.ask(t, "GET", target, nil), http.StatusOK)
		for _, k := range page.APIKeys {
			labels = append(labels, k.Label)
		}
		if !page.HasMore {
			break
		}
		target = "/api-keys?limit=2&cursor=" + page.NextCursor
	}
	if !slices.Equal(labels, []string{"c", "b", "a"}) {
		t.Errorf("pages have %v, want c, b, a", labels)
	}
	want[httpapi.Problem](t, u.ask(t, "GET", strings.Replace(target, "/api-keys", "/audit", 1), nil), http.StatusBadRequest)
}
