package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
	"parley/shared/settings"
)

// Every change is in the audit trail, with who made it. Secrets are shown when they are
// made, and then neither in the settings, nor in the log of deliveries, nor in what the
// functions log.
func TestChangesAndSecrets(t *testing.T) {
	t.Parallel()
	since := time.Now().Add(-time.Second)
	n := newTenant(t)
	ada, bob := newUser(t, n.ws), newUser(t, n.ws)
	const header, next = "a-header-of-theirs-5e1f", "another-header-of-theirs-77aa"

	r := newReceiver(t, answers(http.StatusInternalServerError, http.StatusOK)) // failures are logged, too
	e := ada.createEndpoint(t, r.url, nil, anything{"headers": anything{"X-Api-Key": header}})
	endpoint := "/webhook-endpoints/" + string(e.EndpointID)
	shown := want[oneEndpoint](t, bob.ask(t, http.MethodPatch, endpoint, anything{"headers": anything{"X-Api-Key": next}, "timeout_seconds": 9}), http.StatusOK)
	rotated := want[struct{ Secret string }](t, bob.ask(t, http.MethodPost, endpoint+"/secret", nil), http.StatusOK)
	k := want[oneKey](t, bob.ask(t, http.MethodPost, "/api-keys", anything{"label": "CRM"}), http.StatusCreated)
	apiKey := "/api-keys/" + string(k.APIKey.APIKeyID)
	want[record](t, key(k.Secret).get(t, "/v1/calls"), http.StatusOK)
	want[oneKey](t, ada.ask(t, http.MethodPatch, apiKey, anything{"label": "ERP"}), http.StatusOK)
	want[oneKey](t, ada.ask(t, http.MethodPatch, apiKey, anything{"label": "ERP"}), http.StatusOK) // changes nothing
	d := ada.awaitLogged(t, "delivery_id="+string(ada.sendTest(t, e).ID), conversation.DeliveryDelivered)
	for _, a := range r.await(t, 2) {
		a.open(t, rotated.Secret)
		if got := a.header.Get("X-Api-Key"); got != next {
			t.Errorf("X-Api-Key is %q, want %q", got, next)
		}
	}
	if !slices.Equal(shown.Headers, []string{"X-Api-Key"}) || shown.TimeoutSeconds != 9 {
		t.Errorf("shown: %+v, want the header's name and the new timeout", shown)
	}

	secrets := map[string]string{
		"the signing secret": e.Secret, "the new signing secret": rotated.Secret, "a header": header, "the new header": next,
		"the API key": k.Secret[strings.LastIndex(k.Secret, "_")+1:], "a token": ada.token,
	}
	texts := map[string]string{"the lists": everything(t, ada)}
	for _, target := range []string{endpoint, "/deliveries/" + string(d.ID)} {
		texts[target] = string(ada.ask(t, http.MethodGet, target, nil).body)
	}
	for _, target := range []string{endpoint, apiKey} {
		if got := bob.ask(t, http.MethodDelete, target, nil); got.status != http.StatusNoContent {
			t.Errorf("deleted: %d %s, want 204", got.status, got.body)
		}
	}
	ada.checkTrail(t, []string{
		"bob api_key.revoked: revoked_at", "bob webhook_endpoint.deleted: blocks created_at enabled endpoint_id events headers timeout_seconds url",
		"ada api_key.updated: label", "bob api_key.created: api_key_id blocks created_at label place_calls",
		"bob webhook_endpoint.secret_rotated:", "bob webhook_endpoint.updated: timeout_seconds headers",
		"ada webhook_endpoint.created: blocks created_at enabled endpoint_id events headers timeout_seconds url",
		"operator api_key.created: api_key_id blocks created_at label place_calls", // the tenant's first
	}, map[string]string{ada.id: "ada", bob.id: "bob", "operator": "operator"}, map[string]string{"api_key": string(k.APIKey.APIKeyID), "webhook_endpoint": string(e.EndpointID)})

	lines := logged(t, since)
	for _, function := range []string{"settings", "deliver-webhook", "list-calls"} {
		if len(lines["/aws/lambda/parley-local-"+function]) == 0 {
			t.Errorf("%s has logged nothing", function)
		}
	}
	for group, messages := range lines {
		texts[group] = strings.Join(messages, "\n")
	}
	for name, secret := range secrets {
		for where, text := range texts {
			if secret == "" || strings.Contains(text, secret) {
				t.Errorf("%s, %q, is in %s", name, secret, where)
			}
		}
	}
}

// checkTrail wants these entries, newest first: who did what to which fields.
func (u user) checkTrail(t *testing.T, expected []string, users, subjects map[string]string) {
	t.Helper()
	trail := want[struct{ Audit []settings.AuditEntry }](t, u.ask(t, http.MethodGet, "/audit", nil), http.StatusOK).Audit
	got := []string{}
	for i, entry := range trail {
		text := users[entry.UserID] + " " + string(entry.Action) + ":"
		for _, change := range entry.Changes {
			text += " " + change.Field
		}
		got = append(got, text)
		subject, _, _ := strings.Cut(string(entry.Action), ".")
		if entry.UserID != "operator" && entry.SubjectID != subjects[subject] || entry.At.After(time.Now()) || i > 0 && entry.At.After(trail[i-1].At.Time) {
			t.Errorf("entry %+v: of another subject than %s, or not in time", entry, subjects[subject])
		}
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("the audit trail (-want +got):\n%s", diff)
	}
}
