package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"parley/shared/dynamo"
)

// newStreamSource has the table's stream call a function, with what happens to the calls,
// messages and threads that live here; history that was put in whole, and keys, don't reach
// it. A record that always fails is set apart from its batch, tried for a day at most, and
// then kept whole. It returns the mapping's id.
func newStreamSource(stack awscdk.Stack, id string, data *dataStack, function awslambda.Function) *string {
	return awslambda.NewCfnEventSourceMapping(stack, jsii.String(id), &awslambda.CfnEventSourceMappingProps{
		FunctionName:               function.FunctionName(),
		EventSourceArn:             data.tables[dynamo.Conversations].TableStreamArn(),
		StartingPosition:           jsii.String("TRIM_HORIZON"),
		BatchSize:                  jsii.Number(100),
		BisectBatchOnFunctionError: jsii.Bool(true),
		MaximumRetryAttempts:       jsii.Number(100),
		MaximumRecordAgeInSeconds:  jsii.Number(24 * 60 * 60),
		FunctionResponseTypes:      jsii.Strings("ReportBatchItemFailures"),
		FilterCriteria: &awslambda.CfnEventSourceMapping_FilterCriteriaProperty{
			Filters: []any{map[string]any{"pattern": `{"dynamodb":{"NewImage":{"carrier":{"S":[{"exists":true}]}}}}`}},
		},
		DestinationConfig: &awslambda.CfnEventSourceMapping_DestinationConfigProperty{
			OnFailure: &awslambda.CfnEventSourceMapping_OnFailureProperty{Destination: data.bucket.BucketArn()},
		},
		MetricsConfig: &awslambda.CfnEventSourceMapping_MetricsConfigProperty{Metrics: jsii.Strings("EventCount")},
	}).AttrId()
}
