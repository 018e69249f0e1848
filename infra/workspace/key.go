package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/settings"
)

// createKey makes an API key and prints it, which happens this once.
func createKey(ctx context.Context, store *dynamo.Store, wanted settings.NewAPIKey, out io.Writer) error {
	_, text, err := settings.CreateAPIKey(ctx, store, wanted, time.Now())
	if errors.Is(err, conversation.ErrNotFound) {
		return fmt.Errorf("there is no workspace %s on this stage: apply its file first", wanted.WorkspaceID)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(out, text)
	return nil
}

// parseBlocks reads what --blocks names: default, all, or blocks parted by commas.
func parseBlocks(names string) (conversation.Blocks, error) {
	switch names {
	case "default":
		return conversation.DefaultBlocks(), nil
	case "all":
		return conversation.AllBlocks(), nil
	}
	return conversation.ParseBlocks(strings.Split(names, ","))
}
