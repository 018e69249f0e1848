package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"parley/shared/conversation"
)

// Whatever is wrong with a key, the answer is the same, and so is what it takes.
func TestUnauthorized(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	revoked := anotherKey(t, store, k.ws)
	revoke(t, store, revoked)
	handler := api(store)
	k.get(t, handler, "/v1/calls") // the function is warm
	store.taken()

	_, secret, _ := conversation.ParseAPIKey(strings.TrimPrefix(k.auth, "Bearer "))
	unknown := conversation.APIKey{APIKeyID: conversation.APIKeyID(conversation.NewID())}
	headers := map[string]string{
		"no header":          "",
		"not Bearer":         "Basic " + strings.TrimPrefix(k.auth, "Bearer "),
		"no scheme":          strings.TrimPrefix(k.auth, "Bearer "),
		"no key":             "Bearer",
		"no key at all":      "Bearer nonsense",
		"unknown key":        "Bearer " + unknown.Text(secret),
		"nil key":            "Bearer " + conversation.APIKey{APIKeyID: conversation.APIKeyID(uuid.Nil.String())}.Text(secret),
		"revoked key":        revoked.auth,
		"wrong secret":       "Bearer " + k.key.Text("WRONG"),
		"secret of another":  "Bearer " + revoked.key.Text(secret),
		"something appended": k.auth + "x",
		"two keys":           k.auth + "," + k.auth,
	}
	var first answered
	for name, header := range headers {
		t.Run(name, func(t *testing.T) {
			got := ask(t, handler, http.MethodGet, "/v1/calls?limit=0", header)
			if got.status != http.StatusUnauthorized || got.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("status %d, WWW-Authenticate %q; want 401 and Bearer", got.status, got.header.Get("WWW-Authenticate"))
			}
			if first.body == "" {
				first = got
			}
			if got.body != first.body || len(got.header) != len(first.header) {
				t.Errorf("answer %v %s differs from another's %v %s", got.header, got.body, first.header, first.body)
			}
			if asked := store.taken(); !slices.Equal(asked, []string{"dynamodb:GetItem"}) {
				t.Errorf("asked AWS %v, want one GetItem", asked)
			}
		})
	}
}

func TestSchemeInAnyCase(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	k.auth = "bearer " + strings.TrimPrefix(k.auth, "Bearer ")
	want[callList](t, k.get(t, api(store), "/v1/calls"), http.StatusOK)
}

// A function trusts a key for keyTTL, and not longer.
func TestRevokedKeyInWarmFunction(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	now := time.Now()
	a := apiAt(store, &now)
	for _, step := range []struct {
		after  time.Duration
		revoke bool
		want   int
	}{
		{0, false, http.StatusOK},
		{0, true, http.StatusOK},
		{keyTTL - time.Millisecond, false, http.StatusOK},
		{time.Millisecond, false, http.StatusUnauthorized},
		{0, false, http.StatusUnauthorized},
	} {
		if step.revoke {
			revoke(t, store, k)
		}
		now = now.Add(step.after)
		if got := k.get(t, a, "/v1/calls"); got.status != step.want {
			t.Errorf("%+v: status %d", step, got.status)
		}
	}
	if keyTTL > 30*time.Second {
		t.Errorf("a key is trusted for %s, want 30 s at most", keyTTL)
	}
}

// That a key was refused is never remembered.
func TestKeyWorksAtOnceAfterRefusal(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	handler := api(store)
	if got := ask(t, handler, http.MethodGet, "/v1/calls", "Bearer "+k.key.Text("WRONG")); got.status != http.StatusUnauthorized {
		t.Errorf("wrong secret: status %d", got.status)
	}
	if got := k.get(t, handler, "/v1/calls"); got.status != http.StatusOK {
		t.Errorf("right secret: status %d", got.status)
	}
}

// A block that a key may not read is denied by what the table says now.
func TestForbiddenReadsTheKeyAgain(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store, conversation.BlockCall)
	call := callOf(k.ws, 0)
	insertCalls(t, store, call)
	handler := api(store)
	target := "/v1/calls/" + string(call.CallID) + "?fields=costs"
	if got := k.get(t, handler, target); got.status != http.StatusForbidden {
		t.Fatalf("status %d, want 403", got.status)
	}
	store.taken()
	if got := k.get(t, handler, target); got.status != http.StatusForbidden {
		t.Fatalf("status %d, want 403", got.status)
	}
	if asked := store.taken(); !slices.Equal(asked, []string{"dynamodb:UpdateItem", "dynamodb:GetItem"}) {
		t.Errorf("asked AWS %v, want the count and the key", asked)
	}
	allow(t, store, k, conversation.BlockCall, conversation.BlockCosts)
	if got := want[oneCall](t, k.get(t, handler, target), http.StatusOK); got.Call.Costs == nil {
		t.Error("allowed, but the costs are missing")
	}
}

// An hour's first request notes that the key is in use, others don't.
func TestLastUsed(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	now := time.Now().Add(2 * time.Hour)
	a := apiAt(store, &now)
	for _, step := range []struct {
		after   time.Duration
		touched bool
	}{{0, true}, {keyTTL, false}, {time.Hour - 2*keyTTL, false}, {keyTTL + time.Millisecond, true}} {
		now = now.Add(step.after)
		k.get(t, a, "/v1/calls")
		key, err := store.APIKey(t.Context(), k.key.APIKeyID)
		if err != nil {
			t.Fatal(err)
		}
		if touched := key.LastUsedAt == conversation.At(now); touched != step.touched {
			t.Errorf("%+v: last used at %s, now it is %s", step, key.LastUsedAt, conversation.At(now))
		}
	}
}
