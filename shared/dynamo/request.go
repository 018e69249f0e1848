package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"parley/shared/conversation"
)

// Requests are one caller's requests to one endpoint in the current UTC hour and second.
// The zero value is a caller that hasn't been seen.
type Requests struct {
	Second   time.Time // the second that InSecond counts
	InHour   int
	InSecond int
}

// CountRequest counts a request, unless perHour or perSecond are reached already; then it
// tells so with the counts as they stand, and counts nothing. It is exact over all
// functions. last is what it answered this function the last time: with it, the steady
// state is one conditional write a request.
//
// The item is of one hour. Its second only moves forward, so a function whose clock is
// behind counts in the newest second that any has seen.
func (s *Store) CountRequest(ctx context.Context, ws conversation.WorkspaceID, caller string, perHour, perSecond int, last Requests) (Requests, bool, error) {
	now := s.now().UTC().Truncate(time.Second)
	hour := now.Truncate(time.Hour)
	pk := list(ws, "requests", caller, hour.Format("2006-01-02T15"))
	stored := last
	if stored.Second.Before(hour) {
		stored = Requests{}
	}
	for range 16 {
		again := !now.After(stored.Second)
		if again {
			now = stored.Second
		}
		counted, err := s.count(ctx, pk, hour, now, again, perHour, perSecond)
		failed := new(types.ConditionalCheckFailedException)
		if !errors.As(err, &failed) {
			return counted, err == nil, wrap(err, "count request of %s", caller)
		}
		stored = requests(failed.Item, hour)
		if stored.InHour >= perHour || !now.After(stored.Second) && stored.InSecond >= perSecond {
			return stored, false, nil
		}
	}
	return Requests{}, false, fmt.Errorf("count request of %s: others were faster each time", caller)
}

// count adds a request to a second that the item has already (again), or to a new one.
func (s *Store) count(ctx context.Context, pk string, hour, now time.Time, again bool, perHour, perSecond int) (Requests, error) {
	second := int(now.Sub(hour) / time.Second)
	name, value := expression.Name, func(n int) expression.ValueBuilder { return expression.Value(n) }
	var change expression.UpdateBuilder
	var condition expression.ConditionBuilder
	if again {
		change = expression.Add(name("in_hour"), value(1)).Add(name("in_second"), value(1))
		condition = name("second").Equal(value(second)).
			And(name("in_hour").LessThan(value(perHour)), name("in_second").LessThan(value(perSecond)))
	} else {
		change = expression.Add(name("in_hour"), value(1)).
			Set(name("second"), value(second)).Set(name("in_second"), value(1)).
			Set(name(TTL), expression.Value(hour.Add(2*time.Hour).Unix()))
		condition = name(PartitionKey).AttributeNotExists().
			Or(name("second").LessThan(value(second)).And(name("in_hour").LessThan(value(perHour))))
	}
	it, err := s.update(ctx, Counters, pk, change, condition)
	return requests(it, hour), err
}

func requests(it item, hour time.Time) Requests {
	if len(it) == 0 {
		return Requests{}
	}
	return Requests{
		Second:   hour.Add(time.Duration(intOf(it, "second")) * time.Second),
		InHour:   intOf(it, "in_hour"),
		InSecond: intOf(it, "in_second"),
	}
}
