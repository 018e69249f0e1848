package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/shopspring/decimal"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// parseAmount reads an amount to be credited: a decimal above zero.
func parseAmount(text string) (decimal.Decimal, error) {
	amount, err := decimal.NewFromString(text)
	if err != nil || !amount.IsPositive() || amount.Exponent() < -4 {
		return decimal.Decimal{}, fmt.Errorf("--amount %s: want a decimal above zero with at most four places, such as 25.00", text)
	}
	return amount, nil
}

// credit adds to a workspace's balance and prints the new one.
func credit(ctx context.Context, store *dynamo.Store, ws conversation.WorkspaceID, amount decimal.Decimal, out io.Writer) error {
	balance, err := store.Credit(ctx, ws, amount.String())
	if errors.Is(err, conversation.ErrNotFound) {
		return fmt.Errorf("there is no workspace %s on this stage: apply its file first", ws)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "balance:", balance)
	return nil
}
