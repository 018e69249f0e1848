package e2e

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/httpapi"
)

// Two clients at once get exactly what is left of a window, however many functions serve
// them. The store counts the requests before those: over HTTP, a thousand take as long
// as all other tests together, and a hundred don't fit into a second everywhere.
func TestRateLimits(t *testing.T) {
	tests := map[string]struct {
		quota  int
		length time.Duration
	}{
		"second": {100, time.Second},
		"hour":   {1000, time.Hour},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			const left, asked = 5, 20
			for range 20 {
				n := newTenant(t)
				k, keyID := createKey(t, n.ws)
				awaitSecond()
				use(t, n.ws, keyID, tt.quota-left)
				if name == "hour" {
					awaitSecond() // the last one may be used up
				}
				answers := hammer(t, k, asked)
				if windowEnded(answers, name, left) {
					continue // in the middle of it
				}
				checkLimited(t, answers, name, tt.quota, left, tt.length)
				checkUnhurt(t, n, k)
				if name == "second" {
					awaitSecond()
					if got := k.get(t, "/v1/calls"); got.status != http.StatusOK {
						t.Errorf("a second later: status %d, want 200", got.status)
					}
				}
				return
			}
			t.Error("the window ended before the requests, each of 20 times")
		})
	}
}

// awaitSecond returns when a new second begins, and with it a new window.
func awaitSecond() { time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) }

// use counts requests as the functions do, without a limit.
func use(t *testing.T, ws conversation.WorkspaceID, keyID conversation.APIKeyID, requests int) {
	t.Helper()
	caller := string(keyID) + "#" + httpapi.ListCalls.Function
	var group sync.WaitGroup
	for worker := range 5 {
		group.Go(func() {
			var last dynamo.Requests
			var err error
			for i := worker; i < requests; i += 5 {
				if last, _, err = deployed(t).store.CountRequest(t.Context(), ws, caller, math.MaxInt32, math.MaxInt32, last); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

// hammer asks many times at once, by two clients.
func hammer(t *testing.T, k key, requests int) []answer {
	t.Helper()
	clients := []*http.Client{newClient(), newClient()}
	answers := make([]answer, requests)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() { answers[i] = ask(t, clients[i%2], http.MethodGet, "/v1/calls", k.header()) })
	}
	group.Wait()
	return answers
}

// state reads what the header RateLimit says of a window.
func (a answer) state(window string) (remaining, reset int) {
	for field := range strings.SplitSeq(a.header.Get("RateLimit"), ", ") {
		if n, err := fmt.Sscanf(field, strconv.Quote(window)+";r=%d;t=%d", &remaining, &reset); n == 2 && err == nil {
			return remaining, reset
		}
	}
	return -1, -1
}

// windowEnded tells whether somebody was admitted to the next window already.
func windowEnded(answers []answer, window string, left int) bool {
	return slices.ContainsFunc(answers, func(a answer) bool {
		remaining, _ := a.state(window)
		return a.status == http.StatusOK && remaining >= left
	})
}

func checkLimited(t *testing.T, answers []answer, window string, quota, left int, length time.Duration) {
	t.Helper()
	var remaining []int
	for _, got := range answers {
		rest, reset := got.state(window)
		if policy := `"hour";q=1000;w=3600, "second";q=100;w=1`; got.header.Get("RateLimit-Policy") != policy {
			t.Errorf("RateLimit-Policy %s, want %s", got.header.Get("RateLimit-Policy"), policy)
		}
		if got.status == http.StatusOK {
			remaining = append(remaining, rest)
			continue
		}
		after, err := strconv.Atoi(got.header.Get("Retry-After"))
		if err != nil || after < 1 || after > int(length.Seconds()) || rest != 0 || reset > after {
			t.Errorf("%v; want Retry-After until the %s ends", got.header, window)
		}
		expected := problem{[]string{fmt.Sprintf("rate limit exceeded: %d requests per %s", quota, window)}, "rate_limit_exceeded"}
		if diff := cmp.Diff(expected, want[problem](t, got, http.StatusTooManyRequests)); diff != "" {
			t.Errorf("429 (-want +got):\n%s", diff)
		}
	}
	slices.Sort(remaining)
	expected := make([]int, left)
	for i := range expected {
		expected[i] = i
	}
	if !slices.Equal(remaining, expected) {
		t.Errorf("admitted with %v remaining, want each of %v once", remaining, expected)
	}
}

// checkUnhurt wants other endpoints and keys to answer.
func checkUnhurt(t *testing.T, n tenant, limited key) {
	t.Helper()
	for _, target := range []string{"/v1/messages", "/v1/threads", "/v1/assistants", "/open-api"} {
		if got := limited.get(t, target); got.status != http.StatusOK {
			t.Errorf("%s by the same key: status %d, want 200", target, got.status)
		}
	}
	if got := limited.get(t, "/v1/calls/"+nowhereID); got.status != http.StatusNotFound {
		t.Errorf("one call by the same key: status %d, want 404", got.status)
	}
	if got := n.key.get(t, "/v1/calls"); got.status != http.StatusOK {
		t.Errorf("another key of the workspace: status %d, want 200", got.status)
	}
}
