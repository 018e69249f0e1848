package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/shared/dynamo"
)

// globalTable is the part of a table's template that dynamo.Tables decides.
type globalTable struct {
	BillingMode             string
	TableName               string
	KeySchema               keySchema
	AttributeDefinitions    []struct{ AttributeName, AttributeType string }
	SSESpecification        struct{ SSEEnabled bool }
	StreamSpecification     struct{ StreamViewType string }
	TimeToLiveSpecification struct {
		AttributeName string
		Enabled       bool
	}
	Replicas []struct {
		PointInTimeRecoverySpecification struct{ PointInTimeRecoveryEnabled bool }
	}
	GlobalSecondaryIndexes []struct {
		IndexName  string
		KeySchema  keySchema
		Projection struct {
			ProjectionType   string
			NonKeyAttributes []string
		}
	}
}

type keySchema []struct{ AttributeName, KeyType string }

func TestTables(t *testing.T) {
	tm := prod(t)
	tables := tm.data.of("AWS::DynamoDB::GlobalTable")
	if len(tables) != len(dynamo.Tables) {
		t.Errorf("got %d tables, want %d", len(tables), len(dynamo.Tables))
	}
	for _, want := range dynamo.Tables {
		t.Run(want.Name, func(t *testing.T) {
			for id, r := range tables {
				if generated.ReplaceAllString(id, "") == want.Name {
					checkKept(t, r)
					checkTable(t, as[globalTable](t, r.Properties), want)
					return
				}
			}
			t.Error("no such table")
		})
	}
}

func checkTable(t *testing.T, got globalTable, want dynamo.Table) {
	t.Helper()
	if diff := cmp.Diff(want, described(got, want)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	if got.BillingMode != "PAY_PER_REQUEST" || !got.SSESpecification.SSEEnabled || got.TableName != "" {
		t.Errorf("got billing %s, encryption %t, name %q, want on demand, encrypted, without a name",
			got.BillingMode, got.SSESpecification.SSEEnabled, got.TableName)
	}
	if len(got.KeySchema) != 1 || got.KeySchema[0].AttributeName != dynamo.PartitionKey || got.KeySchema[0].KeyType != "HASH" {
		t.Errorf("got key %v, want %s alone", got.KeySchema, dynamo.PartitionKey)
	}
	for _, attribute := range got.AttributeDefinitions {
		if attribute.AttributeType != "S" {
			t.Errorf("key %s is of type %s, want S", attribute.AttributeName, attribute.AttributeType)
		}
	}
}

// described reads a template's table back into the row that it should come from.
func described(got globalTable, row dynamo.Table) dynamo.Table {
	table := dynamo.Table{
		Name: row.Name, Env: row.Env, // not of the table itself
		Stream:              got.StreamSpecification.StreamViewType == "NEW_AND_OLD_IMAGES",
		PointInTimeRecovery: got.Replicas[0].PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled,
		TTL:                 got.TimeToLiveSpecification.Enabled && got.TimeToLiveSpecification.AttributeName == dynamo.TTL,
	}
	for _, index := range got.GlobalSecondaryIndexes {
		described := dynamo.Index{Name: index.IndexName, Projected: index.Projection.NonKeyAttributes}
		if (index.Projection.ProjectionType == "KEYS_ONLY") != (described.Projected == nil) {
			described.Projected = []string{index.Projection.ProjectionType}
		}
		for _, key := range index.KeySchema {
			switch key.KeyType {
			case "HASH":
				described.PartitionKey = key.AttributeName
			case "RANGE":
				described.SortKey = key.AttributeName
			}
		}
		table.Indexes = append(table.Indexes, described)
	}
	return table
}

func TestBucket(t *testing.T) {
	tm := prod(t)
	buckets := tm.data.of("AWS::S3::Bucket")
	if len(buckets) != 1 {
		t.Fatalf("got %d buckets, want 1", len(buckets))
	}
	for _, bucket := range buckets {
		checkKept(t, bucket)
		private := map[string]any{"BlockPublicAcls": true, "BlockPublicPolicy": true, "IgnorePublicAcls": true, "RestrictPublicBuckets": true}
		if diff := cmp.Diff(private, bucket.Properties["PublicAccessBlockConfiguration"]); diff != "" {
			t.Errorf("public access (-want +got):\n%s", diff)
		}
		if bucket.Properties["BucketEncryption"] == nil || bucket.Properties["BucketName"] != nil {
			t.Errorf("got %v, want a bucket encrypted and without a name", bucket.Properties)
		}
	}

	policies := tm.data.of("AWS::S3::BucketPolicy")
	if len(policies) != 1 {
		t.Fatalf("got %d bucket policies, want 1", len(policies))
	}
	for _, policy := range policies {
		document := as[struct {
			Statement []struct {
				Effect    string
				Condition map[string]map[string]string
			}
		}](t, policy.Properties["PolicyDocument"])
		for _, s := range document.Statement {
			if s.Effect != "Deny" || s.Condition["Bool"]["aws:SecureTransport"] != "false" {
				t.Errorf("got statement %+v, want only the one that denies what is without TLS", s)
			}
		}
	}
}

func checkKept(t *testing.T, r resource) {
	t.Helper()
	if r.DeletionPolicy != "RetainExceptOnCreate" || r.UpdateReplacePolicy != "Retain" {
		t.Errorf("got deletion %q, replacement %q, want RetainExceptOnCreate, Retain", r.DeletionPolicy, r.UpdateReplacePolicy)
	}
}
