package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// limitedTo is the row with other limits.
func limitedTo(route Route, limit Limit) Route {
	route.Limit = limit
	return route
}

// The limits of the spec for the read API.
func TestLimitsOfRoutes(t *testing.T) {
	for _, route := range Routes() {
		if route.Method == http.MethodGet && route.Limit != (Limit{PerHour: 1000, PerSecond: 100}) {
			t.Errorf("%s: %+v, want 1000 an hour and 100 a second", route.Function, route.Limit)
		}
	}
}

// Two functions with the same clock, as on two machines, admit as many requests as one.
func TestLimitsAreExactOverFunctions(t *testing.T) {
	hour := "\"hour\";q=5;w=3600, \"second\";q=100;w=1"
	second := "\"hour\";q=1000;w=3600, \"second\";q=5;w=1"
	tests := map[string]struct {
		limit             Limit
		policy, remaining string
		retryAfter        string
		detail            string
	}{
		"hour":   {Limit{PerHour: 5, PerSecond: 100}, hour, `"hour";r=0;t=1800, "second";r=95;t=1`, "1800", "rate limit exceeded: 5 requests per hour"},
		"second": {Limit{PerHour: 1000, PerSecond: 5}, second, `"hour";r=995;t=1800, "second";r=0;t=1`, "1", "rate limit exceeded: 5 requests per second"},
		"both": {
			Limit{PerHour: 5, PerSecond: 5}, "\"hour\";q=5;w=3600, \"second\";q=5;w=1", `"hour";r=0;t=1800, "second";r=0;t=1`, "1800",
			"rate limit exceeded: 5 requests per hour, 5 requests per second",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			k, other := newTenant(t, store), newTenant(t, store)
			sibling := anotherKey(t, store, k.ws)
			now := time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)
			routes := []Route{limitedTo(ListCalls, tt.limit), limitedTo(ListThreads, tt.limit)}
			functions := []http.Handler{apiAt(store, &now, routes...), apiAt(store, &now, routes...)}
			for n := range 5 {
				got := k.get(t, functions[n%2], "/v1/calls")
				if got.status != http.StatusOK || got.header.Get("RateLimit-Policy") != tt.policy || got.header.Get("Retry-After") != "" {
					t.Fatalf("request %d: status %d, %v; want 200", n, got.status, got.header)
				}
			}
			for n, function := range functions {
				got := k.get(t, function, "/v1/calls?limit=0") // 429 before 400
				problem := want[Problem](t, got, http.StatusTooManyRequests)
				if problem.Code != "rate_limit_exceeded" || !slices.Equal(problem.Detail, []string{tt.detail}) {
					t.Errorf("function %d: %+v, want %q", n, problem, tt.detail)
				}
				for name, value := range map[string]string{"Retry-After": tt.retryAfter, "RateLimit": tt.remaining, "RateLimit-Policy": tt.policy} {
					if got.header.Get(name) != value {
						t.Errorf("function %d: %s is %s, want %s", n, name, got.header.Get(name), value)
					}
				}
				store.taken()
				for range 10 {
					if got := k.get(t, function, "/v1/calls"); got.status != http.StatusTooManyRequests {
						t.Errorf("status %d, want 429", got.status)
					}
				}
				if asked := store.taken(); asked != nil {
					t.Errorf("a function that remembers its 429 asked AWS %v", asked)
				}
			}
			for name, got := range map[string]answered{
				"another endpoint":        k.get(t, functions[0], "/v1/threads"),
				"another key":             sibling.get(t, functions[0], "/v1/calls"),
				"another workspace's key": other.get(t, functions[1], "/v1/calls"),
			} {
				if got.status != http.StatusOK {
					t.Errorf("%s: status %d, want 200", name, got.status)
				}
			}
			wait, err := time.ParseDuration(tt.retryAfter + "s")
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(wait - time.Millisecond)
			if got := k.get(t, functions[0], "/v1/calls"); got.status != http.StatusTooManyRequests {
				t.Errorf("just before Retry-After: status %d, want 429", got.status)
			}
			now = now.Add(time.Millisecond)
			for n, function := range functions {
				if got := k.get(t, function, "/v1/calls"); got.status != http.StatusOK {
					t.Errorf("function %d after Retry-After: status %d, want 200", n, got.status)
				}
			}
		})
	}
}

// What is refused for another reason counts all the same: a client that guesses ids or
// parameters has no more tries.
func TestEveryKnownCallerCounts(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store, conversation.BlockCall)
	now := time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)
	handler := apiAt(store, &now, limitedTo(GetCall, Limit{PerHour: 3, PerSecond: 100}))
	for target, status := range map[string]int{
		"/v1/calls/1":                           http.StatusBadRequest,
		"/v1/calls/" + someID:                   http.StatusNotFound,
		"/v1/calls/" + someID + "?fields=costs": http.StatusForbidden,
	} {
		got := k.get(t, handler, target)
		if got.status != status || !strings.HasPrefix(got.header.Get("RateLimit"), `"hour";r=`) {
			t.Errorf("%s: status %d, RateLimit %s; want %d", target, got.status, got.header.Get("RateLimit"), status)
		}
	}
	if got := k.get(t, handler, "/v1/calls/"+someID); got.status != http.StatusTooManyRequests {
		t.Errorf("status %d, want 429", got.status)
	}
}

func TestNoLimit(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	for name, limit := range map[string]Limit{"none": {}, "per hour": {PerHour: 1000}, "per second": {PerSecond: 100}} {
		handler := Handler(Service{Store: store.Store, BaseURL: baseURL}, limitedTo(ListCalls, limit))
		for range 3 {
			got := k.get(t, handler, "/v1/calls")
			policy := got.header.Get("RateLimit-Policy")
			if got.status != http.StatusOK || strings.Count(policy, "q=") != len(limit.windows(dynamo.Requests{}, t0)) {
				t.Errorf("%s: status %d, policy %q", name, got.status, policy)
			}
		}
	}
}
