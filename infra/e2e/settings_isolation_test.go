package e2e

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley/shared/conversation"
	"parley/shared/httpapi"
	"parley/shared/settings"
)

// What is another workspace's is like what isn't there, by every route that takes an id;
// no list shows it, and nothing becomes of what was asked.
func TestSettingsOfAnother(t *testing.T) {
	t.Parallel()
	mine, theirs := newUser(t, newTenant(t).ws), newUser(t, newTenant(t).ws)
	s := mine.subscribe(t, nil, conversation.CallStarted)
	k := want[oneKey](t, mine.ask(t, http.MethodPost, "/api-keys", anything{"label": "CRM"}), http.StatusCreated)
	d := mine.awaitLogged(t, "delivery_id="+string(mine.sendTest(t, s.oneEndpoint).ID), conversation.DeliveryDelivered)
	ids := map[string]string{"api_key_id": string(k.APIKey.APIKeyID), "endpoint_id": string(s.EndpointID), "delivery_id": string(d.ID)}
	before := everything(t, mine)

	routes := only(settings.Routes(), func(r httpapi.Route) bool { return strings.Contains(r.Path, "{") })
	if len(routes) != 9 {
		t.Errorf("%d routes take an id, want 9", len(routes))
	}
	for _, route := range routes {
		var body any
		if route.Method == http.MethodPatch {
			body = anything{}
		}
		for name, id := range ids {
			target := strings.TrimPrefix(strings.ReplaceAll(route.Path, "{"+name+"}", id), "/settings")
			if !strings.Contains(target, "{") {
				checkAbsent(t, theirs.ask(t, route.Method, target, body))
			}
		}
	}
	checkAbsent(t, theirs.ask(t, http.MethodPost, "/deliveries/retry", anything{"endpoint_id": s.EndpointID, "since": "2026-01-01"}))

	for _, query := range []string{"endpoint_id=" + string(s.EndpointID), "delivery_id=" + string(d.ID), "event_id=" + d.EventID, ""} {
		if got := theirs.deliveries(t, query); len(got) > 0 {
			t.Errorf("deliveries?%s: %+v, want none", query, got)
		}
	}
	seen := everything(t, theirs)
	for _, id := range append(slices.Collect(maps.Values(ids)), mine.id, d.EventID) {
		if strings.Contains(seen, id) || !strings.Contains(before, id) {
			t.Errorf("%s shows in another workspace, or not in its own", id)
		}
	}
	if after := everything(t, mine); after != before {
		t.Errorf("before, its settings were\n%s\nand after\n%s", before, after)
	}
	s.await(t, 1)
}

// checkAbsent wants the answer that every record gets which there isn't.
func checkAbsent(t *testing.T, got answer) {
	t.Helper()
	const nothing = `{"detail":["there is no such record"],"code":"not_found"}` + "\n"
	if got.status != http.StatusNotFound || string(got.body) != nothing {
		t.Errorf("%s %v: %d %s, want 404 %s", got.request.Method, got.request.URL, got.status, got.body, nothing)
	}
}

// everything is what the lists show a user.
func everything(t *testing.T, u user) string {
	t.Helper()
	var all strings.Builder
	for _, list := range []string{"/api-keys", "/webhook-endpoints", "/deliveries", "/audit"} {
		got := u.ask(t, http.MethodGet, list, nil)
		want[record](t, got, http.StatusOK)
		all.Write(got.body)
	}
	return all.String()
}

// Nobody comes to the settings who has not signed in to a workspace, nor with an ID token
// to the API.
func TestSettingsUnauthorized(t *testing.T) {
	t.Parallel()
	n, other := newTenant(t), newTenant(t)
	u := newUser(t, n.ws)
	head, claims, signature := cutToken(t, u.token)
	_, othersClaims, _ := cutToken(t, newUser(t, other.ws).token)
	refused := map[string]string{
		"nothing":          "",
		"an API key":       n.key.header(),
		"another's claims": "Bearer " + head + "." + othersClaims + "." + signature,
		"no signature":     "Bearer " + head + "." + claims + ".",
		"unsigned":         "Bearer eyJhbGciOiJub25lIn0." + claims + ".",
		"a cut signature":  "Bearer " + u.token[:len(u.token)-4],
		"no token of ours": "Bearer secret",
		"two parts":        "Bearer " + head + "." + claims,
	}
	for _, route := range settings.Routes() {
		target := pathOf(route)
		for name, authorization := range refused {
			if status, body := knock(t, route.Method, target, authorization); status != http.StatusUnauthorized || strings.ReplaceAll(body, " ", "") != `{"message":"Unauthorized"}` {
				t.Errorf("%s %s with %s: %d %s, want 401 of the gateway's", route.Method, target, name, status, body)
			}
		}
		// It is a valid token of the same client, but says nothing of a workspace.
		got := want[problem](t, ask(t, usualClient, route.Method, target, "Bearer "+u.access), http.StatusUnauthorized)
		if got.Code != "unauthorized" {
			t.Errorf("%s %s with an access token: %+v, want unauthorized", route.Method, target, got)
		}
	}
	for _, route := range endpoints() {
		if got := ask(t, usualClient, route.Method, pathOf(route), "Bearer "+u.token); got.status != http.StatusUnauthorized {
			t.Errorf("%s with an ID token: status %d, want 401", route.Path, got.status)
		}
	}
}

// cutToken returns the parts of a token.
func cutToken(t *testing.T, token string) (head, claims, signature string) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("a token of %d parts, want 3", len(parts))
	}
	return parts[0], parts[1], parts[2]
}

// knock asks where the gateway answers by itself, so without an X-Request-Id.
func knock(t *testing.T, method, target, authorization string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, deployed(t).BaseURL+target, bytes.NewReader(nil))
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	res, err := usualClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}
