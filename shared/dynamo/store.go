// Package dynamo is the only place that knows tables, keys, indexes, conditions, and the
// S3 objects that belong to items: recordings and fields too large for their item.
//
// Every key starts with the workspace's id, which callers take from whoever they
// authenticated, never from a request: a read across workspaces can't be written. Only
// what names a workspace is found without one: an API key and a phone number.
//
// Errors: conversation.ErrNotFound for a record that isn't there (or is past its ttl);
// anything else is AWS's, wrapped with what was being done.
package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"parley/shared/config"
	"parley/shared/conversation"
)

// Store reads and writes the tables and the bucket of one stage.
type Store struct {
	db     *dynamodb.Client
	bucket string
	// s3 is made when it is first needed: most functions never do.
	s3     func() *s3.Client
	tables map[string]string
	now    func() time.Time
}

// New makes a Store of the stage that cfg names.
func New(aws aws.Config, cfg config.Config) *Store {
	return &Store{
		db: dynamodb.NewFromConfig(aws, func(o *dynamodb.Options) {
			o.Retryer = newRetryer()
			o.HTTPClient = impatient{o.HTTPClient}
		}),
		s3: sync.OnceValue(func() *s3.Client {
			return s3.NewFromConfig(aws, func(o *s3.Options) {
				o.UsePathStyle = o.BaseEndpoint != nil
				o.Retryer = newRetryer()
			})
		}),
		bucket: cfg.Bucket,
		tables: map[string]string{
			Conversations: cfg.ConversationsTable,
			Workspaces:    cfg.WorkspacesTable,
			Deliveries:    cfg.DeliveriesTable,
			Counters:      cfg.CountersTable,
		},
		now: time.Now,
	}
}

// WithClock is the store with another clock.
func (s *Store) WithClock(now func() time.Time) *Store {
	clocked := *s
	clocked.now = now
	return &clocked
}

func (s *Store) table(name string) *string { return aws.String(s.tables[name]) }

// newRetryer retries what AWS says may pass by itself (throttling, conflicts between
// transactions, its own faults): seven times within two seconds, with jitter. The number
// of tries is the bound, so there is no quota shared between requests.
func newRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = 8
		o.MaxBackoff = 400 * time.Millisecond
		o.Backoff = retry.BackoffDelayerFunc(backoff)
		o.RateLimiter = ratelimit.None
		o.Retryables = append(o.Retryables, retry.IsErrorRetryableFunc(isTransient))
	})
}

// backoff waits up to 25, 50, 100, 200 and then 400 ms.
func backoff(attempt int, _ error) (time.Duration, error) {
	ceiling := min(25*time.Millisecond<<min(attempt, 10), 400*time.Millisecond)
	return time.Duration(rand.Int64N(int64(ceiling))), nil
}

// isTransient knows the failures that the SDK leaves to its callers: a write that met a
// transaction, and a transaction that met another or was throttled. A condition that failed
// is an answer, unless one of the other items was in another transaction's hands: that one
// may be writing the very idempotency key that decides.
func isTransient(err error) aws.Ternary {
	if conflict := new(types.TransactionConflictException); errors.As(err, &conflict) {
		return aws.TrueTernary
	}
	canceled := new(types.TransactionCanceledException)
	if !errors.As(err, &canceled) {
		return aws.UnknownTernary
	}
	throttled, answered := false, false
	for _, reason := range canceled.CancellationReasons {
		switch aws.ToString(reason.Code) {
		case "", "None":
		case "TransactionConflict":
			return aws.TrueTernary
		case "ThrottlingError", "ProvisionedThroughputExceeded":
			throttled = true
		default:
			answered = true
		}
	}
	return aws.BoolTernary(throttled && !answered)
}

// read gets one item, strongly consistent.
func (s *Store) read(ctx context.Context, table, pk string) (item, error) {
	out, err := s.db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      s.table(table),
		Key:            key(pk),
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, err
	}
	if !s.live(out.Item) {
		return nil, conversation.ErrNotFound
	}
	return out.Item, nil
}

// create writes an item that must not exist. It tells whether it was this call that did.
func (s *Store) create(ctx context.Context, table string, it item) (bool, error) {
	_, err := s.db.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:           s.table(table),
		Item:                it,
		ConditionExpression: aws.String("attribute_not_exists(" + PartitionKey + ")"),
	})
	if isConditionFailed(err) {
		return false, nil
	}
	return err == nil, err
}

// update changes one item if the condition holds, and returns it as it then is. The zero
// condition always holds. When it fails, the error has the item as it stands.
func (s *Store) update(ctx context.Context, table, pk string, change expression.UpdateBuilder, condition expression.ConditionBuilder) (item, error) {
	b := expression.NewBuilder().WithUpdate(change)
	if condition.IsSet() {
		b = b.WithCondition(condition)
	}
	expr, err := b.Build()
	if err != nil {
		return nil, err
	}
	out, err := s.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: s.table(table), Key: key(pk),
		UpdateExpression: expr.Update(), ConditionExpression: expr.Condition(),
		ExpressionAttributeNames: expr.Names(), ExpressionAttributeValues: expr.Values(),
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// setAll sets every attribute of an item.
func setAll(fields item) expression.UpdateBuilder {
	var change expression.UpdateBuilder
	for name, value := range fields {
		change = change.Set(expression.Name(name), expression.Value(value))
	}
	return change
}

func isConditionFailed(err error) bool {
	failed := new(types.ConditionalCheckFailedException)
	return errors.As(err, &failed)
}

// wrap says what was being done when err happened; nil stays nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
