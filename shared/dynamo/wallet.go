package dynamo

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"parley/shared/conversation"
)

// Credit adds an amount, a decimal, to a workspace's balance and returns the new balance.
// It is a transaction, as those alone are not done again when an answer is lost.
func (s *Store) Credit(ctx context.Context, ws conversation.WorkspaceID, amount string) (string, error) {
	var t transaction
	t.update(s.table(Workspaces), workspaceID(ws),
		expression.Add(expression.Name(balanceAttribute), expression.Value(attributevalue.Number(amount))),
		exists, conversation.ErrNotFound)
	if err := t.commit(ctx, s.db); err != nil {
		return "", wrap(err, "credit workspace %s", ws)
	}
	it, err := s.read(ctx, Workspaces, workspaceID(ws))
	if err != nil {
		return "", wrap(err, "read the balance of workspace %s", ws)
	}
	balance, ok := it[balanceAttribute].(*types.AttributeValueMemberN)
	if !ok {
		return "", wrap(errors.New("it has none"), "read the balance of workspace %s", ws)
	}
	return balance.Value, nil
}
