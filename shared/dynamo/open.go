package dynamo

import (
	"context"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"parley/shared/conversation"
)

// The open index holds what is not resolved yet, by its next deadline. It has a few
// shards a kind, as all workspaces share it; only the sweep reads it.
const openShards = 4

func openShard(kind string, n uint32) string { return kind + "s#" + strconv.Itoa(int(n)) }

// openAs puts a record into the open index.
func openAs[I ~string](it item, kind string, record I, until time.Time) {
	hash := fnv.New32a()
	hash.Write([]byte(record))
	it["open_shard"] = text(openShard(kind, hash.Sum32()%openShards))
	it["open_until"] = text(conversation.At(until).String())
}

func setOpen(until time.Time) expression.UpdateBuilder {
	return withOpen(expression.UpdateBuilder{}, until)
}

func withOpen(change expression.UpdateBuilder, until time.Time) expression.UpdateBuilder {
	return change.Set(expression.Name("open_until"), expression.Value(conversation.At(until).String()))
}

func removeOpen(change expression.UpdateBuilder) expression.UpdateBuilder {
	return change.Remove(expression.Name("open_until")).Remove(expression.Name("open_shard"))
}

// postpone moves a record's deadline, unless it has been resolved meanwhile.
func (s *Store) postpone(ctx context.Context, pk string, until time.Time) error {
	_, err := s.update(ctx, Conversations, pk, setOpen(until), expression.Name("open_shard").AttributeExists())
	if isConditionFailed(err) {
		return nil
	}
	return err
}

// overdue lists the keys of a kind's records past their deadline, the longest overdue
// first, up to limit a shard.
func (s *Store) overdue(ctx context.Context, kind string, now time.Time, limit int) ([]string, error) {
	var overdue []string
	for shard := range uint32(openShards) {
		expr, err := expression.NewBuilder().WithKeyCondition(
			expression.Key("open_shard").Equal(expression.Value(openShard(kind, shard))).
				And(expression.Key("open_until").LessThan(expression.Value(conversation.At(now).String())))).Build()
		if err != nil {
			return nil, err
		}
		out, err := s.db.Query(ctx, &dynamodb.QueryInput{
			TableName: s.table(Conversations), IndexName: aws.String(Open), Limit: aws.Int32(int32(limit)),
			KeyConditionExpression:   expr.KeyCondition(),
			ExpressionAttributeNames: expr.Names(), ExpressionAttributeValues: expr.Values(),
		})
		if err != nil {
			return nil, err
		}
		for _, it := range out.Items {
			overdue = append(overdue, stringOf(it, PartitionKey))
		}
	}
	return overdue, nil
}
