package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// limit counts a request against its route's limits (spec: Limits), in fixed UTC hours
// and seconds, per key and endpoint. Beyond them it answers 429 with Retry-After.
func (a *API) limit(route Route) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		if route.Limit == (Limit{}) {
			next(ctx)
			return
		}
		count, admitted, err := a.limits.count(ctx.Context(), route, caller(ctx.Context()))
		if err != nil {
			_ = huma.WriteErr(a.huma, ctx, http.StatusInternalServerError, "count request", err)
			return
		}
		now := a.now()
		windows := route.Limit.windows(count, now)
		describe(ctx, windows)
		if admitted {
			next(ctx)
			return
		}
		ctx.SetHeader("Retry-After", strconv.Itoa(retryAfter(windows)))
		_ = huma.WriteErr(a.huma, ctx, http.StatusTooManyRequests, "rate limit exceeded: "+exhausted(windows))
	}
}

// window is one of a route's limits with its state.
type window struct {
	name      string
	quota     int
	length    time.Duration
	remaining int
	reset     time.Duration
}

// windows says how a caller stands with each limit that the route has.
func (l Limit) windows(count dynamo.Requests, now time.Time) []window {
	var windows []window
	add := func(name string, quota, used int, length time.Duration) {
		if quota > 0 {
			end := count.Second.Truncate(length).Add(length)
			windows = append(windows, window{name, quota, length, max(0, quota-used), max(0, end.Sub(now))})
		}
	}
	add("hour", l.PerHour, count.InHour, time.Hour)
	add("second", l.PerSecond, count.InSecond, time.Second)
	return windows
}

// describe writes the fields of the IETF draft "RateLimit header fields for HTTP".
func describe(ctx huma.Context, windows []window) {
	policies, states := make([]string, len(windows)), make([]string, len(windows))
	for i, w := range windows {
		policies[i] = fmt.Sprintf("%q;q=%d;w=%d", w.name, w.quota, int(w.length.Seconds()))
		states[i] = fmt.Sprintf("%q;r=%d;t=%d", w.name, w.remaining, seconds(w.reset))
	}
	ctx.SetHeader("RateLimit-Policy", strings.Join(policies, ", "))
	ctx.SetHeader("RateLimit", strings.Join(states, ", "))
}

// seconds rounds up: who comes back after them is not early.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// retryAfter is when every exhausted window is over, in whole seconds, at least one.
func retryAfter(windows []window) int {
	after := 1
	for _, w := range windows {
		if w.remaining == 0 {
			after = max(after, seconds(w.reset))
		}
	}
	return after
}

func exhausted(windows []window) string {
	var names []string
	for _, w := range windows {
		if w.remaining == 0 {
			names = append(names, fmt.Sprintf("%d requests per %s", w.quota, w.name))
		}
	}
	return strings.Join(names, ", ")
}

// limiter counts in the store, and remembers what it answered: a client that is over its
// limit costs nothing until the window ends.
type limiter struct {
	store *dynamo.Store
	now   func() time.Time

	mu   sync.Mutex
	seen map[string]seen
}

type seen struct {
	dynamo.Requests
	deniedUntil time.Time
}

const maxSeen = 10_000

func (l *limiter) count(ctx context.Context, route Route, key conversation.APIKey) (dynamo.Requests, bool, error) {
	who := string(key.APIKeyID) + "#" + route.Function
	if route.Limit.PerWorkspace {
		who = string(key.WorkspaceID) + "#" + route.Function
	}
	l.mu.Lock()
	last := l.seen[who]
	l.mu.Unlock()
	if l.now().Before(last.deniedUntil) {
		return last.Requests, false, nil
	}
	perHour, perSecond := cmp.Or(route.Limit.PerHour, math.MaxInt32), cmp.Or(route.Limit.PerSecond, math.MaxInt32)
	count, admitted, err := l.store.CountRequest(ctx, key.WorkspaceID, who, perHour, perSecond, last.Requests)
	if err != nil {
		return dynamo.Requests{}, false, err
	}
	now := seen{Requests: count}
	if !admitted {
		now.deniedUntil = count.Second.Add(time.Second)
		if count.InHour >= perHour {
			now.deniedUntil = count.Second.Truncate(time.Hour).Add(time.Hour)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil || len(l.seen) >= maxSeen {
		l.seen = map[string]seen{}
	}
	l.seen[who] = now
	return count, admitted, nil
}
