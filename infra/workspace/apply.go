package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// apply makes the workspace what the file says, and prints what that changes. What is
// already as the file says is not written.
func apply(ctx context.Context, store *dynamo.Store, f file, out io.Writer) error {
	want := f.definition
	have, err := store.Definition(ctx, want.Workspace.WorkspaceID)
	if err != nil && !errors.Is(err, conversation.ErrNotFound) {
		return err
	}
	if have.Version > 0 && have.Workspace.Currency != want.Workspace.Currency {
		return fmt.Errorf("workspace %s has its balance in %s, so its currency can't become %s",
			have.Workspace.Name, have.Workspace.Currency, want.Workspace.Currency)
	}
	lines := changes(have, want)
	if len(lines) == 0 {
		fmt.Fprintf(out, "%s: nothing to change\n", want.Workspace.Name)
		return nil
	}
	if err := store.Define(ctx, have, want, f.openingBalance); err != nil {
		return err
	}
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
	fmt.Fprintf(out, "%s: applied\n", want.Workspace.Name)
	return nil
}
