package e2e

import (
	"net/http"
	"strings"
	"testing"

	"parley/shared/settings"
)

// A key works from when it is made until it is revoked, and reads the blocks that it has
// at the moment. A function may remember for half a minute what a key could do, so each
// step asks one that hasn't seen it yet.
func TestAPIKeyLife(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	n.fill(t)
	u := newUser(t, n.ws)
	created := want[oneKey](t, u.ask(t, http.MethodPost, "/api-keys", anything{"label": "CRM", "blocks": []string{"customer"}}), http.StatusCreated)
	k, target := key(created.Secret), "/api-keys/"+string(created.APIKey.APIKeyID)

	call := want[struct{ Call record }](t, k.get(t, "/v1/calls/"+string(callID)), http.StatusOK).Call
	checkFields(t, []record{call}, strings.Fields(resources["calls"].always), strings.Fields(resources["calls"].sometimes), []string{"customer"})
	if got := want[problem](t, k.get(t, "/v1/calls/"+string(callID)+"?fields=transcript"), http.StatusForbidden); got.Code != "forbidden" {
		t.Errorf("another block: %+v, want forbidden", got)
	}

	changed := want[oneKey](t, u.ask(t, http.MethodPatch, target, anything{"blocks": []string{"transcript"}}), http.StatusOK).APIKey
	for _, thread := range pageOf[record](t, k, "threads", "").Items {
		if thread["transcript"] == nil || thread["customer"] != nil {
			t.Errorf("with other blocks: %v, want the transcript and no customer", thread)
		}
	}
	if got := k.get(t, "/v1/threads?fields=customer"); got.status != http.StatusForbidden {
		t.Errorf("the block that was taken away: status %d, want 403", got.status)
	}
	got := want[problem](t, desk{tenant: tenant{n.ws, k}}.order(t, orderTo("50"), ""), http.StatusForbidden)
	if got.Code != "forbidden" {
		t.Errorf("a call placed: %+v, want forbidden", got)
	}

	for range 2 { // the second time it is revoked already
		if got := u.ask(t, http.MethodDelete, target, nil); got.status != http.StatusNoContent || len(got.body) > 0 {
			t.Errorf("revoked: %d %s, want 204", got.status, got.body)
		}
	}
	for _, path := range []string{"/v1/messages", "/v1/assistants", "/v1/messages/" + string(messageID), "/open-api"} {
		if got := k.get(t, path); got.status != http.StatusUnauthorized {
			t.Errorf("%s with the revoked key: status %d, want 401", path, got.status)
		}
	}
	if got := want[problem](t, u.ask(t, http.MethodPatch, target, anything{"label": "x"}), http.StatusConflict); got.Code != "api_key_revoked" {
		t.Errorf("a revoked key changed: %+v, want api_key_revoked", got)
	}
	list := want[struct {
		APIKeys []settings.APIKey `json:"api_keys"`
	}](t, u.ask(t, http.MethodGet, "/api-keys", nil), http.StatusOK)
	shown := list.APIKeys[0] // the tenant's own is older
	if len(list.APIKeys) != 2 || shown.APIKeyID != changed.APIKeyID || shown.Label != "CRM" || shown.RevokedAt.IsZero() || shown.LastUsedAt.IsZero() {
		t.Errorf("listed: %+v, want the key, used and revoked", list)
	}
}
