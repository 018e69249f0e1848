package lifecycle

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
)

// sweepLimit bounds one sweep, per shard; the next one goes on.
const sweepLimit = 250

// Sweep resolves the calls and conversations that nobody else does any more.
func (p Parts) Sweep(ctx context.Context) error {
	return errors.Join((&Calls{p}).Sweep(ctx), Threads{p}.Sweep(ctx))
}

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

// Sweep takes every conversation past its deadline through the steps that its state machine
// would take, as the sweep of calls does. One that stays open is looked at again when the
// step it says is over.
func (t Threads) Sweep(ctx context.Context) error {
	overdue, err := t.Store.OverdueThreads(ctx, t.Now(), sweepLimit)
	if err != nil {
		return err
	}
	group := errgroup.Group{}
	group.SetLimit(8)
	for _, thread := range overdue {
		group.Go(func() error {
			step, err := t.Advance(ctx, thread.WorkspaceID, thread.ThreadID)
			if err != nil {
				slog.ErrorContext(ctx, "sweep", "workspace_id", thread.WorkspaceID, "thread_id", thread.ThreadID, "error", err)
			}
			if step.Next == StepDone {
				return nil
			}
			until := t.Now().Add(time.Duration(step.Seconds)*time.Second + t.Scale.Of(patience))
			return t.Store.PostponeThread(ctx, thread.WorkspaceID, thread.ThreadID, until)
		})
	}
	return group.Wait()
}
