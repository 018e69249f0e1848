package lifecycle

import (
	"context"
	"errors"
	"log/slog"

	"golang.org/x/sync/errgroup"
)

// sweepLimit bounds one sweep, per shard; the next one goes on.
const sweepLimit = 250

// Sweep takes every call past its deadline through the steps that its state machine would
// take. It asks nobody whether that machine runs: two of them at once do no harm. A call
// that stays unfinished is looked at again later, after the others.
func (c *Calls) Sweep(ctx context.Context) error {
	overdue, err := c.Store.OverdueCalls(ctx, c.Now(), sweepLimit)
	if err != nil {
		return err
	}
	group := errgroup.Group{}
	group.SetLimit(8)
	for _, call := range overdue {
		group.Go(func() error {
			err := c.Advance(ctx, call.WorkspaceID, call.CallID)
			if err == nil {
				return nil
			}
			if !errors.Is(err, ErrNotYet) {
				slog.ErrorContext(ctx, "sweep", "workspace_id", call.WorkspaceID, "call_id", call.CallID, "error", err)
			}
			return c.Store.PostponeCall(ctx, call.WorkspaceID, call.CallID, c.Now().Add(c.Scale.Of(patience)))
		})
	}
	return group.Wait()
}
