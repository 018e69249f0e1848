package conversation

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

func TestDeliveryID(t *testing.T) {
	event := NewID()
	id := NewDeliveryID("e1", CallStarted, event)
	if again := NewDeliveryID("e1", CallStarted, event); again != id {
		t.Errorf("the same event twice: %s and %s", id, again)
	}
	for _, other := range []DeliveryID{
		NewDeliveryID("e2", CallStarted, event), NewDeliveryID("e1", CallCompleted, event), NewDeliveryID("e1", CallStarted, NewID()),
	} {
		if other == id {
			t.Errorf("another event has the same id %s", id)
		}
	}
	if parsed, err := uuid.Parse(string(id)); err != nil || parsed.Version() != 7 || parsed.Variant() != uuid.RFC4122 || string(id)[:13] != event[:13] {
		t.Errorf("%s is no UUIDv7 of the moment of %s", id, event)
	}
	seen := map[AttemptID]bool{AttemptID(id): true}
	for round := 1; round <= MaxRounds; round++ {
		for number := 1; number <= MaxAttempts; number++ {
			attempt := id.Attempt(round, number)
			if seen[attempt] {
				t.Errorf("round %d, attempt %d: %s is another's", round, number, attempt)
			}
			seen[attempt] = true
			if parsed, err := uuid.Parse(string(attempt)); err != nil || parsed.Version() != 7 || parsed.Variant() != uuid.RFC4122 {
				t.Errorf("%s is no UUIDv7", attempt)
			}
			if got, err := attempt.Delivery(); got != id || err != nil {
				t.Errorf("%s is of delivery %s, %v; want %s", attempt, got, err, id)
			}
		}
	}
	if got, err := AttemptID(id).Delivery(); got != id || err != nil {
		t.Errorf("the delivery's own id leads to %s, %v", got, err)
	}
	for _, bad := range []string{"", "x", strings.ToUpper(string(id)), "{" + string(id) + "}"} {
		if _, err := AttemptID(bad).Delivery(); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v, want ErrNotFound", bad, err)
		}
	}
}

func answer(round, number, status int) Attempt {
	return Attempt{Round: round, Number: number, StatusCode: status}
}

func failure(round, number int, class AttemptError) Attempt {
	return Attempt{Round: round, Number: number, Error: class}
}

// Each row is a life: what reports, in this order, and where the delivery stands then.
func TestReport(t *testing.T) {
	round := func(n int) (attempts []Attempt) {
		for i := 1; i <= MaxAttempts; i++ {
			attempts = append(attempts, answer(n, i, 500))
		}
		return attempts
	}
	then := func(lists ...[]Attempt) (all []Attempt) {
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	canceled, skipped := AttemptCanceled, AttemptSkipped
	for name, tt := range map[string]struct {
		reports []Attempt
		want    string // round, status, then the attempts
	}{
		"first success":                            {[]Attempt{answer(1, 1, 204)}, "1 delivered: 1.1=204"},
		"first failure":                            {[]Attempt{answer(1, 1, 500)}, "1 pending: 1.1=500"},
		"a redirect is none":                       {[]Attempt{{Round: 1, Number: 1, StatusCode: 302, Error: AttemptRedirect}}, "1 pending: 1.1=redirect"},
		"2xx cut short is none":                    {[]Attempt{{Round: 1, Number: 1, StatusCode: 200, Error: AttemptTimeout}}, "1 pending: 1.1=timeout"},
		"a retry succeeds":                         {[]Attempt{answer(1, 1, 500), failure(1, 2, AttemptTimeout), answer(1, 3, 200)}, "1 delivered: 1.1=500 1.2=timeout 1.3=200"},
		"six failures":                             {round(1), "1 failed: 1.1=500 1.2=500 1.3=500 1.4=500 1.5=500 1.6=500"},
		"the first record stands":                  {[]Attempt{answer(1, 1, 500), answer(1, 1, 400)}, "1 pending: 1.1=500"},
		"a success replaces a failure":             {[]Attempt{answer(1, 1, 500), answer(1, 1, 200)}, "1 delivered: 1.1=200"},
		"a failure doesn't replace a success":      {[]Attempt{answer(1, 1, 200), answer(1, 1, 500)}, "1 delivered: 1.1=200"},
		"a late success of a failed round":         {append(round(1), answer(1, 3, 200)), "1 delivered: 1.1=500 1.2=500 1.3=200 1.4=500 1.5=500 1.6=500"},
		"the sixth reports twice, then succeeds":   {then(round(1), []Attempt{answer(1, 6, 500), answer(1, 6, 200)}), "1 delivered: 1.1=500 1.2=500 1.3=500 1.4=500 1.5=500 1.6=200"},
		"a second round":                           {append(round(1), answer(2, 1, 500)), "2 pending: 1.1=500 1.2=500 1.3=500 1.4=500 1.5=500 1.6=500 2.1=500"},
		"a success of the round before":            {[]Attempt{failure(1, 1, canceled), answer(2, 1, 500), answer(1, 1, 200)}, "2 delivered: 1.1=200 2.1=500"},
		"delivered is final for the next round":    {[]Attempt{failure(1, 1, canceled), answer(1, 1, 200), answer(2, 1, 500)}, "2 delivered: 1.1=200 2.1=500"},
		"the round before fails after the second":  {[]Attempt{failure(1, 1, canceled), answer(2, 1, 500), answer(1, 6, 500)}, "2 pending: 1.1=canceled 1.6=500 2.1=500"},
		"canceled at once":                         {[]Attempt{failure(1, 1, canceled)}, "1 canceled: 1.1=canceled"},
		"canceled while pending":                   {[]Attempt{answer(1, 1, 500), failure(1, 2, canceled)}, "1 canceled: 1.1=500 1.2=canceled"},
		"an answer replaces canceled, and no more": {[]Attempt{failure(1, 1, canceled), answer(1, 1, 500)}, "1 canceled: 1.1=500"},
		"canceled doesn't replace an answer":       {[]Attempt{answer(1, 1, 500), failure(1, 1, canceled)}, "1 pending: 1.1=500"},
		"a later round is canceled":                {append(round(1), failure(2, 1, canceled)), "2 canceled: 1.1=500 1.2=500 1.3=500 1.4=500 1.5=500 1.6=500 2.1=canceled"},
		"a delivered one is not canceled":          {[]Attempt{answer(1, 1, 200), failure(1, 2, canceled)}, "1 delivered: 1.1=200 1.2=canceled"},
		"nor by a later round":                     {[]Attempt{answer(1, 1, 200), failure(2, 1, canceled)}, "2 delivered: 1.1=200 2.1=canceled"},
		"the round before cancels nothing":         {[]Attempt{failure(1, 1, canceled), answer(2, 1, 500), failure(1, 2, canceled)}, "2 pending: 1.1=canceled 1.2=canceled 2.1=500"},
		"skipped is a record alone":                {[]Attempt{answer(1, 1, 200), failure(1, 2, skipped)}, "1 delivered: 1.1=200 1.2=skipped"},
		"skipped doesn't replace":                  {[]Attempt{failure(1, 1, canceled), failure(1, 1, skipped)}, "1 canceled: 1.1=canceled"},
		"an answer replaces skipped":               {[]Attempt{failure(1, 1, canceled), failure(1, 2, skipped), answer(1, 2, 500)}, "1 canceled: 1.1=canceled 1.2=500"},
		"canceled, and six more fail":              {append([]Attempt{failure(1, 1, canceled)}, round(2)...), "2 failed: 1.1=canceled 2.1=500 2.2=500 2.3=500 2.4=500 2.5=500 2.6=500"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Delivery{Status: DeliveryPending}
			for _, a := range tt.reports {
				d, _ = d.Report(a)
				if again, changed := d.Report(a); changed && a.Succeeded() {
					t.Errorf("the same report again makes %+v of %+v", again, d)
				}
			}
			if got := told(d); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func told(d Delivery) string {
	text := fmt.Sprintf("%d %s:", d.Round, d.Status)
	for _, a := range d.Attempts {
		if a.Error != "" {
			text += fmt.Sprintf(" %d.%d=%s", a.Round, a.Number, a.Error)
		} else {
			text += fmt.Sprintf(" %d.%d=%d", a.Round, a.Number, a.StatusCode)
		}
	}
	return text
}

// Whatever reports in whatever order: one record an attempt, in order; a success, once
// reported, is what the delivery says; a report that is repeated changes nothing; and the
// delivery that Report was called on stays as it was.
func TestReportsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, succeeded := Delivery{Status: DeliveryPending}, false
		for range rapid.IntRange(1, 40).Draw(t, "reports") {
			a := Attempt{Round: rapid.IntRange(1, 3).Draw(t, "round"), Number: rapid.IntRange(1, 6).Draw(t, "number")}
			a.Error = rapid.SampledFrom([]AttemptError{"", "", AttemptTimeout, AttemptCanceled, AttemptSkipped}).Draw(t, "error")
			if a.Error == "" {
				a.StatusCode = rapid.SampledFrom([]int{200, 302, 500}).Draw(t, "status")
			}
			succeeded = succeeded || a.Succeeded()
			before := told(d)
			next, changed := d.Report(a)
			if told(d) != before || !changed && told(next) != before {
				t.Fatalf("%+v changed %s to %s, and said %t of %s", a, before, told(d), changed, told(next))
			}
			if again, changed := next.Report(a); changed {
				t.Fatalf("%+v, repeated, makes %s of %s", a, told(again), told(next))
			}
			if next.Round < d.Round || (next.Status == DeliveryDelivered) != succeeded || next.Status == "" {
				t.Fatalf("%+v makes %s of %s; any success: %t", a, told(next), before, succeeded)
			}
			d = next
			for i, a := range d.Attempts[1:] {
				if p := d.Attempts[i]; p.Round > a.Round || p.Round == a.Round && p.Number >= a.Number {
					t.Fatalf("attempts out of order: %s", told(d))
				}
			}
		}
	})
}

func TestRetryable(t *testing.T) {
	for status, want := range map[DeliveryStatus]bool{DeliveryPending: false, DeliveryDelivered: false, DeliveryFailed: true, DeliveryCanceled: true} {
		if got := (Delivery{Status: status, Round: 1}).Retryable(); got != want {
			t.Errorf("%s: %t, want %t", status, got, want)
		}
	}
	if (Delivery{Status: DeliveryFailed, Round: MaxRounds}).Retryable() {
		t.Errorf("retryable after %d rounds", MaxRounds)
	}
}
