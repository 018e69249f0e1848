package dynamo

import (
	"context"
	"time"

	"parley/shared/conversation"
)

// ReceiveCall writes a customer's call. One that is stored already is left as it is.
func (s *Store) ReceiveCall(ctx context.Context, call conversation.CallRecord, until time.Time) error {
	it, err := s.newCall(ctx, call, until)
	if err != nil {
		return wrap(err, "receive call %s", call.CallID)
	}
	_, err = s.create(ctx, Conversations, it)
	return wrap(err, "receive call %s", call.CallID)
}
