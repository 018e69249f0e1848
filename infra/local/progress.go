package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// A step is something that takes a while and is worth a line.
type step struct {
	name string
	do   func(context.Context) error
}

// perform does the steps in order and shows their times on w, up to the first that fails.
func perform(ctx context.Context, w io.Writer, steps []step) error {
	start := time.Now()
	for _, s := range steps {
		began := time.Now()
		fmt.Fprintf(w, "  %-42s", s.name)
		if err := s.do(ctx); err != nil {
			if ctx.Err() != nil {
				fmt.Fprintln(w, " stopped")
				return ctx.Err()
			}
			fmt.Fprintln(w, " failed")
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Fprintf(w, "%6.1f s\n", time.Since(began).Seconds())
	}
	fmt.Fprintf(w, "  %-42s%6.1f s\n", "ready after", time.Since(start).Seconds())
	return nil
}
