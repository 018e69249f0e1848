// Package dynamotest makes what a stage's Store needs, for tests: the tables of
// dynamo.Tables and a bucket, under names of their own.
package dynamotest

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"parley/shared/config"
	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/emulator"
)

// Stage makes empty tables and an empty bucket, and says what they are called.
func Stage(t testing.TB, cfg aws.Config) config.Config {
	t.Helper()
	prefix := "test-" + conversation.NewID() + "-"
	stage := config.Config{
		ConversationsTable: prefix + dynamo.Conversations,
		WorkspacesTable:    prefix + dynamo.Workspaces,
		DeliveriesTable:    prefix + dynamo.Deliveries,
		CountersTable:      prefix + dynamo.Counters,
		Bucket:             strings.ToLower(prefix + "bucket"),
		BaseURL:            "https://api.example.com",
	}
	db := dynamodb.NewFromConfig(cfg)
	for _, table := range dynamo.Tables {
		if _, err := db.CreateTable(t.Context(), create(prefix, table)); err != nil {
			t.Fatalf("create table %s: %v", table.Name, err)
		}
	}
	buckets := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	if _, err := buckets.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &stage.Bucket}); err != nil {
		t.Fatalf("create bucket %s: %v", stage.Bucket, err)
	}
	return stage
}

// Store is the Store of a new Stage. With -short the test is skipped.
func Store(t testing.TB) *dynamo.Store {
	t.Helper()
	cfg := emulator.Config(t)
	return dynamo.New(cfg, Stage(t, cfg))
}

func create(prefix string, table dynamo.Table) *dynamodb.CreateTableInput {
	input := &dynamodb.CreateTableInput{
		TableName:   aws.String(prefix + table.Name),
		BillingMode: types.BillingModePayPerRequest,
		KeySchema:   []types.KeySchemaElement{{AttributeName: aws.String(dynamo.PartitionKey), KeyType: types.KeyTypeHash}},
	}
	names := map[string]bool{dynamo.PartitionKey: true}
	for _, index := range table.Indexes {
		names[index.PartitionKey], names[index.SortKey] = true, true
		projection := &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}
		if index.Projected != nil {
			projection = &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: index.Projected}
		}
		input.GlobalSecondaryIndexes = append(input.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(index.Name),
			KeySchema: []types.KeySchemaElement{
				{AttributeName: aws.String(index.PartitionKey), KeyType: types.KeyTypeHash},
				{AttributeName: aws.String(index.SortKey), KeyType: types.KeyTypeRange},
			},
			Projection: projection,
		})
	}
	for name := range names {
		input.AttributeDefinitions = append(input.AttributeDefinitions,
			types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS})
	}
	return input
}
