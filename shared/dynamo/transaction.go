package dynamo

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxTransaction is how many items DynamoDB writes at once.
const maxTransaction = 100

// transaction gathers writes, each with its condition and the error that it means when
// the condition fails. The first error in making a write is what commit returns.
type transaction struct {
	writes    []types.TransactWriteItem
	conflicts []error
	err       error
}

// Conditions on whether an item exists.
var (
	exists = expression.Name(PartitionKey).AttributeExists()
	absent = expression.Name(PartitionKey).AttributeNotExists()
)

func (t *transaction) update(table *string, pk string, change expression.UpdateBuilder, condition expression.ConditionBuilder, conflict error) {
	expr := t.build(expression.NewBuilder().WithUpdate(change).WithCondition(condition))
	t.add(conflict, types.TransactWriteItem{Update: &types.Update{
		TableName: table, Key: key(pk),
		UpdateExpression: expr.Update(), ConditionExpression: expr.Condition(),
		ExpressionAttributeNames: expr.Names(), ExpressionAttributeValues: expr.Values(),
	}})
}

func (t *transaction) put(table *string, it item, condition expression.ConditionBuilder, conflict error) {
	expr := t.build(expression.NewBuilder().WithCondition(condition))
	t.add(conflict, types.TransactWriteItem{Put: &types.Put{
		TableName: table, Item: it, ConditionExpression: expr.Condition(),
		ExpressionAttributeNames: expr.Names(), ExpressionAttributeValues: expr.Values(),
	}})
}

func (t *transaction) delete(table *string, pk string, condition expression.ConditionBuilder, conflict error) {
	expr := t.build(expression.NewBuilder().WithCondition(condition))
	t.add(conflict, types.TransactWriteItem{Delete: &types.Delete{
		TableName: table, Key: key(pk), ConditionExpression: expr.Condition(),
		ExpressionAttributeNames: expr.Names(), ExpressionAttributeValues: expr.Values(),
	}})
}

// check writes nothing, but has a condition as a write has.
func (t *transaction) check(table *string, pk string, condition expression.ConditionBuilder, conflict error) {
	expr := t.build(expression.NewBuilder().WithCondition(condition))
	t.add(conflict, types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: table, Key: key(pk), ConditionExpression: expr.Condition(),
		ExpressionAttributeNames: expr.Names(), ExpressionAttributeValues: expr.Values(),
	}})
}

func (t *transaction) add(conflict error, write types.TransactWriteItem) {
	t.writes = append(t.writes, write)
	t.conflicts = append(t.conflicts, conflict)
}

func (t *transaction) build(b expression.Builder) expression.Expression {
	expr, err := b.Build()
	t.note(err)
	return expr
}

func (t *transaction) encode(record any) item {
	it, err := encode(record)
	t.note(err)
	return it
}

func (t *transaction) note(err error) {
	if t.err == nil {
		t.err = err
	}
}

// commit writes everything or nothing. Its error joins what every failed condition means.
func (t *transaction) commit(ctx context.Context, db *dynamodb.Client) error {
	if t.err != nil {
		return t.err
	}
	if len(t.writes) > maxTransaction {
		return fmt.Errorf("%d items change, and only %d can at once: change fewer at a time", len(t.writes), maxTransaction)
	}
	_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: t.writes})
	canceled := new(types.TransactionCanceledException)
	if !errors.As(err, &canceled) {
		return err
	}
	var failed []error
	for i, reason := range canceled.CancellationReasons {
		if aws.ToString(reason.Code) == "ConditionalCheckFailed" {
			failed = append(failed, t.conflicts[i])
		}
	}
	if failed == nil {
		return err
	}
	return errors.Join(failed...)
}

// firstOf is the first of these errors that a commit's error joins; without any, that error.
func firstOf(err error, order ...error) error {
	for _, one := range order {
		if errors.Is(err, one) {
			return one
		}
	}
	return err
}
