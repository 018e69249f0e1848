package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscognito"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"parley/shared/config"
	"parley/shared/dynamo"
	"parley/shared/httpapi"
	"parley/shared/settings"
)

// keep leaves what a stack holds when the stack, or the resource, goes; only a creation
// that failed cleans up after itself. Names are generated, so what is left behind is not in
// the way of its successor.
const keep = awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE

// dataStack holds all that can't be made anew.
type dataStack struct {
	stack  awscdk.Stack
	tables map[string]awsdynamodb.TableV2 // by dynamo.Table.Name
	bucket awss3.Bucket
	key    awskms.Key // seals the secrets of webhook endpoints
	users  awscognito.UserPool
	client awscognito.UserPoolClient
}

func newDataStack(app constructs.Construct, stage Stage) *dataStack {
	stack := awscdk.NewStack(app, stage.name("data"), stage.props("Parley's tables, bucket, key and users"))
	users := newUserPool(stack)
	data := &dataStack{
		stack:  stack,
		tables: map[string]awsdynamodb.TableV2{},
		bucket: newBucket(stack, stage),
		key:    newWebhookKey(stack),
		users:  users,
		client: newUserPoolClient(stack, users),
	}
	for _, table := range dynamo.Tables {
		data.tables[table.Name] = newTable(stack, table)
		output(stack, table.Name+"Table", data.tables[table.Name].TableName())
	}
	output(stack, "Bucket", data.bucket.BucketName())
	output(stack, "UserPool", data.users.UserPoolId())
	output(stack, "UserPoolClient", data.client.UserPoolClientId())
	return data
}

func newTable(stack awscdk.Stack, table dynamo.Table) awsdynamodb.TableV2 {
	props := &awsdynamodb.TablePropsV2{
		PartitionKey:  stringKey(dynamo.PartitionKey),
		Billing:       awsdynamodb.Billing_OnDemand(nil),
		Encryption:    awsdynamodb.TableEncryptionV2_AwsManagedKey(),
		RemovalPolicy: keep,
		PointInTimeRecoverySpecification: &awsdynamodb.PointInTimeRecoverySpecification{
			PointInTimeRecoveryEnabled: jsii.Bool(table.PointInTimeRecovery),
		},
	}
	if table.Stream {
		props.DynamoStream = awsdynamodb.StreamViewType_NEW_AND_OLD_IMAGES
	}
	if table.TTL {
		props.TimeToLiveAttribute = jsii.String(dynamo.TTL)
	}
	made := awsdynamodb.NewTableV2(stack, jsii.String(table.Name), props)
	for _, index := range table.Indexes {
		made.AddGlobalSecondaryIndex(indexProps(index))
	}
	return made
}

func indexProps(index dynamo.Index) *awsdynamodb.GlobalSecondaryIndexPropsV2 {
	props := &awsdynamodb.GlobalSecondaryIndexPropsV2{
		IndexName:      jsii.String(index.Name),
		PartitionKey:   stringKey(index.PartitionKey),
		SortKey:        stringKey(index.SortKey),
		ProjectionType: awsdynamodb.ProjectionType_KEYS_ONLY,
	}
	if len(index.Projected) > 0 {
		props.ProjectionType = awsdynamodb.ProjectionType_INCLUDE
		props.NonKeyAttributes = jsii.Strings(index.Projected...)
	}
	return props
}

func stringKey(name string) *awsdynamodb.Attribute {
	return &awsdynamodb.Attribute{Name: jsii.String(name), Type: awsdynamodb.AttributeType_STRING}
}

func newBucket(stack awscdk.Stack, stage Stage) awss3.Bucket {
	return awss3.NewBucket(stack, jsii.String("Objects"), &awss3.BucketProps{
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		Encryption:        awss3.BucketEncryption_S3_MANAGED,
		EnforceSSL:        jsii.Bool(stage.Name != local), // an emulator speaks plain HTTP
		RemovalPolicy:     keep,
		// Parts of an upload that was never finished cost as much as an object, and no
		// listing shows them.
		LifecycleRules: &[]*awss3.LifecycleRule{
			{AbortIncompleteMultipartUploadAfter: awscdk.Duration_Days(jsii.Number(1))},
			// The log forgets a delivery after 30 days, and DynamoDB takes up to two more.
			{Prefix: jsii.String(dynamo.DeliveriesPrefix), Expiration: awscdk.Duration_Days(jsii.Number(35))},
		},
	})
}

// newWebhookKey makes the key without which nobody can read the secrets of webhook endpoints.
func newWebhookKey(stack awscdk.Stack) awskms.Key {
	return awskms.NewKey(stack, jsii.String(settings.WebhookKey), &awskms.KeyProps{
		Description:       jsii.String("Seals the secrets of webhook endpoints"),
		EnableKeyRotation: jsii.Bool(true),
		RemovalPolicy:     keep,
	})
}

// arn is what a grant allows its actions on.
func (d *dataStack) arn(grant httpapi.Grant) *string {
	switch {
	case grant.Key != "":
		return d.key.KeyArn()
	case grant.Bucket:
		return d.bucket.BucketArn()
	case grant.Prefix != "":
		return d.bucket.ArnForObjects(jsii.String(grant.Prefix + "*"))
	case grant.Stream:
		return d.tables[grant.Table].TableStreamArn()
	case grant.Index != "":
		return jsii.String(*d.tables[grant.Table].TableArn() + "/index/" + grant.Index)
	default:
		return d.tables[grant.Table].TableArn()
	}
}

// environment tells a function the names that were generated here.
func (d *dataStack) environment() map[string]*string {
	env := map[string]*string{config.Bucket: d.bucket.BucketName(), config.WebhookKey: d.key.KeyArn()}
	for _, table := range dynamo.Tables {
		env[table.Env] = d.tables[table.Name].TableName()
	}
	return env
}

// output shows a value after a deployment, under a name that scripts rely on.
func output(stack awscdk.Stack, name string, value *string) {
	awscdk.NewCfnOutput(stack, jsii.String(name), &awscdk.CfnOutputProps{Value: value})
}
