package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// orderPatiently repeats an order that comes too early, as clients should.
func (d desk) orderPatiently(t testing.TB, body []byte, idempotencyKey string) answer {
	t.Helper()
	got := d.order(t, body, idempotencyKey)
	for tries := 0; got.status == http.StatusTooManyRequests && tries < 20; tries++ {
		awaitSecond()
		got = d.order(t, body, idempotencyKey)
	}
	return got
}

// atOnce places many orders at once.
func atOnce(orders int, order func(i int) answer) []answer {
	answers := make([]answer, orders)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() { answers[i] = order(i) })
	}
	group.Wait()
	return answers
}

// Many requests at once with one key place one call.
func TestOneKeyAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	answers := atOnce(20, func(int) answer { return d.orderPatiently(t, orderTo("50"), "one call") })
	placed, originals := accepted(t, answers[0]), 0
	for _, got := range answers {
		if got.status != http.StatusCreated || !bytes.Equal(got.body, answers[0].body) {
			t.Errorf("%d %s, want 201 %s", got.status, got.body, answers[0].body)
		}
		if got.header.Get("Idempotent-Replay") != "true" {
			originals++
		}
	}
	if originals != 1 {
		t.Errorf("%d answers aren't replays, want one", originals)
	}
	d.finished(t, placed.CallID)
	d.checkSettled(t, placed.CallID)
	if got := d.placements(t, placed.CallID); got != 1 {
		t.Errorf("the carrier was asked %d times, want once", got)
	}
}

// An assistant has as many calls at once as it may have, and exactly so many; when they
// are over, there is room again.
func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	const limit = 3
	d := newDesk(t, func(d *dynamo.Definition) { d.Workspace.Limits.ConcurrentCalls = limit })
	var placed []conversation.CallID
	for _, got := range atOnce(10, func(i int) answer { return d.orderPatiently(t, orderTo("50"), fmt.Sprint(i)) }) {
		if got.status == http.StatusCreated {
			placed = append(placed, accepted(t, got).CallID)
		} else if refused := want[problem](t, got, http.StatusConflict); refused.Code != "agent_busy" {
			t.Errorf("%+v, want agent_busy", refused)
		}
	}
	if len(placed) != limit {
		t.Errorf("%d calls were accepted, want %d", len(placed), limit)
	}
	d.checkSettled(t, placed...)
	placed = append(placed, d.place(t, "50").CallID)
	d.checkSettled(t, placed...)
}
