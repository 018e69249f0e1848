package dynamo

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"parley/shared/conversation"
)

// OptOut is a customer's STOP, or START, of a channel's messages, with the time at which it
// was written. The latest one decides, in whichever order they arrive; of two at the very
// same time, STOP.
type OptOut struct {
	Out bool
	At  conversation.Time
}

// The customer's item holds what was last asked for, for each channel, and apart from that
// for its tests.
func optedOutAttribute(k ThreadKey) string { return optOutScope(k) + "_opted_out" }
func optedAtAttribute(k ThreadKey) string  { return optOutScope(k) + "_opted_at" }

func optOutScope(k ThreadKey) string {
	if k.Test {
		return "test_" + string(k.Channel)
	}
	return string(k.Channel)
}

func (s *Store) writeOptOut(t *transaction, w ThreadWrite) {
	k := keyOf(w.Thread)
	table, pk := s.table(Workspaces), customerID(w.Thread.WorkspaceID, k.Address)
	optedOut, optedAt := expression.Name(optedOutAttribute(k)), expression.Name(optedAtAttribute(k))
	if w.OptOut != nil {
		out, at := expression.Value(w.OptOut.Out), expression.Value(w.OptOut.At.String())
		isLatest := optedAt.AttributeNotExists().Or(optedAt.LessThan(at))
		if w.OptOut.Out {
			isLatest = isLatest.Or(optedAt.Equal(at))
		}
		t.update(table, pk, expression.Set(optedOut, out).Set(optedAt, at), isLatest, ErrOldOptOut)
	}
	if w.MayWrite {
		t.check(table, pk, expression.Not(optedOut.Equal(expression.Value(true))), ErrOptedOut)
	}
}

// OptedOut tells, strongly consistent, whether the customer has opted out of the channel.
func (s *Store) OptedOut(ctx context.Context, ws conversation.WorkspaceID, k ThreadKey) (bool, error) {
	it, err := s.read(ctx, Workspaces, customerID(ws, k.Address))
	if errors.Is(err, conversation.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, wrap(err, "read the opt-outs of a customer")
	}
	var optedOut bool
	err = attributevalue.Unmarshal(it[optedOutAttribute(k)], &optedOut)
	return optedOut, wrap(err, "read the opt-outs of a customer")
}
