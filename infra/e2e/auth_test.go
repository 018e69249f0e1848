package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/shared/conversation"
	"parley/shared/httpapi"
	"parley/shared/settings"
)

// pathOf is a route's path with ids of nothing.
func pathOf(route httpapi.Route) string {
	segments := strings.Split(route.Path, "/")
	for i, segment := range segments {
		if strings.HasPrefix(segment, "{") {
			segments[i] = nowhereID
		}
	}
	return strings.Join(segments, "/")
}

// Whatever is wrong with a key, every endpoint gives the same answer.
func TestUnauthorized(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	revoked, revokedID := createKey(t, n.ws)
	if err := settings.RevokeAPIKey(t.Context(), deployed(t).store, n.ws, revokedID, time.Now()); err != nil {
		t.Fatal(err)
	}
	text := string(n.key)
	unknown := conversation.APIKey{APIKeyID: nowhereID}.Text("SECRET")
	headers := map[string]string{
		"none":               "",
		"no scheme":          text,
		"another scheme":     "Basic " + text,
		"scheme alone":       "Bearer",
		"no key of ours":     "Bearer secret",
		"unknown key":        "Bearer " + unknown,
		"revoked key":        revoked.header(),
		"wrong secret":       "Bearer " + text[:len(text)-1] + "!",
		"cut":                "Bearer " + text[:len(text)-1],
		"twice":              "Bearer " + text + ", Bearer " + text,
		"somebody's, joined": "Bearer " + text + " " + string(revoked),
	}
	const body = `{"detail":["the API key is missing or invalid: send the header Authorization: Bearer <API_KEY>"],"code":"unauthorized"}` + "\n"
	for _, route := range endpoints() {
		t.Run(route.Function, func(t *testing.T) {
			t.Parallel()
			for name, header := range headers {
				got := ask(t, usualClient, route.Method, pathOf(route)+"?limit=0", header) // 401 before 400
				if got.status != http.StatusUnauthorized || string(got.body) != body || got.header.Get("WWW-Authenticate") != "Bearer" {
					t.Errorf("%s: %d %v %s, want 401 %s", name, got.status, got.header, got.body, body)
				}
				if got.header.Get("RateLimit") != "" {
					t.Errorf("%s: RateLimit %s, of nobody", name, got.header.Get("RateLimit"))
				}
			}
		})
	}
}

func TestAuthorized(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	for _, header := range []string{n.key.header(), "bearer " + string(n.key), "BEARER  " + string(n.key)} {
		if got := ask(t, usualClient, http.MethodGet, "/v1/calls", header); got.status != http.StatusOK {
			t.Errorf("%.8q…: status %d, want 200", header, got.status)
		}
	}
}

// A key remembers that it was used.
func TestLastUsed(t *testing.T) {
	t.Parallel()
	began := time.Now().Truncate(time.Millisecond)
	k, keyID := createKey(t, newTenant(t).ws)
	want[record](t, k.get(t, "/v1/assistants"), http.StatusOK)
	got, err := deployed(t).store.APIKey(t.Context(), keyID)
	if err != nil || got.LastUsedAt.Before(began) {
		t.Errorf("last used at %v, %v; want after %v", got.LastUsedAt, err, began)
	}
}

// A block that the key may not read is refused, whether or not there is such a record,
// and the answer has nothing of it.
func TestForbidden(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	n.fill(t)
	k := newKey(t, n.ws, conversation.BlockCall, conversation.BlockCustomer)
	tests := map[string]string{
		"/v1/calls?fields=transcript":                                      "transcript",
		"/v1/calls?fields=customer,config_snapshot&fields=costs":           "costs, config_snapshot",
		"/v1/calls/" + string(callID) + "?fields=performance_metrics":      "performance_metrics",
		"/v1/calls/" + string(callID) + "/recording":                       "recording",
		"/v1/calls/" + nowhereID + "?fields=analysis":                      "analysis",
		"/v1/calls/" + nowhereID + "/recording":                            "recording",
		"/v1/messages?fields=recording":                                    "recording", // although no message has one
		"/v1/messages/" + string(messageID) + "?fields=costs":              "costs",
		"/v1/threads?fields=follow_ups":                                    "follow_ups",
		"/v1/threads/" + string(threadID) + "?fields=call,evaluations":     "evaluations",
		"/v1/threads?close_reason=graded&limit=5&fields=customer,analysis": "analysis",
	}
	for target, blocks := range tests {
		got := k.get(t, target)
		expected := `{"detail":["the API key may not read the block ` + blocks + `"],"code":"forbidden"}` + "\n"
		if got.status != http.StatusForbidden || string(got.body) != expected || got.header.Get("Location") != "" {
			t.Errorf("%s: %d %v %s, want 403 %s", target, got.status, got.header, got.body, expected)
		}
	}
	allowed := want[struct{ Call record }](t, k.get(t, "/v1/calls/"+string(callID)), http.StatusOK).Call
	checkFields(t, []record{allowed}, strings.Fields(resources["calls"].always), strings.Fields(resources["calls"].sometimes), []string{"customer"})
}
