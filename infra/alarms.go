package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"parley/shared/settings"
)

// An alarm is raised when a metric reaches a threshold within five minutes. None computes a
// rate, as emulators know no metric math.
type alarm struct {
	id, description   string
	namespace, metric string
	dimension         string
	of                *string // the dimension's value
	statistic         string
	threshold         float64
}

const fiveMinutes = 5 * 60

// newAlarms makes the alarms and the topic that they tell; who listens to it is up to the
// operator. Every way in which something can be left undone has one.
func newAlarms(stack awscdk.Stack, stage Stage, api *api, queues map[string]awssqs.Queue, sources map[string]*string) {
	topic := awssns.NewTopic(stack, jsii.String("AlarmTopic"), nil)
	output(stack, "Alarms", topic.TopicArn())

	alarms := []alarm{
		// A function that fails, times out or is throttled answers 5xx through the gateway.
		{"server-errors", "The API answered 5xx five times or more", "AWS/ApiGateway", "5xx", "ApiId", api.http.ApiId(), "Sum", 5},
		{"sweep-errors", "The sweep failed", "AWS/Lambda", "Errors", "FunctionName", stage.name(sweep), "Sum", 1},
	}
	for _, name := range []string{settings.DeliveryQueue, threadTurns, threadMarks} {
		alarms = append(alarms, alarm{name + "-behind", "The function is behind the queue",
			"AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", queues[name].QueueName(), "Maximum", fiveMinutes})
	}
	for _, name := range sorted(queues) {
		alarms = append(alarms, alarm{name + "-failed", "Messages have failed five times and wait for someone to put them back",
			"AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", queues[name].DeadLetterQueue().Queue.QueueName(), "Maximum", 1})
	}
	for _, name := range []string{callLifecycle, threadLifecycle, webhookRetry} {
		arn := machineARN(stack, stage, name)
		alarms = append(alarms,
			alarm{name + "-failed", "Executions have failed: redrive them", "AWS/States", "ExecutionsFailed", "StateMachineArn", arn, "Sum", 1},
			alarm{name + "-timed-out", "Executions took too long: redrive them", "AWS/States", "ExecutionsTimedOut", "StateMachineArn", arn, "Sum", 1},
			alarm{name + "-aborted", "Somebody has stopped executions: redrive them", "AWS/States", "ExecutionsAborted", "StateMachineArn", arn, "Sum", 1})
	}
	for _, name := range sorted(sources) {
		alarms = append(alarms,
			alarm{name + "-behind", "The function is behind the table's stream", "AWS/Lambda", "IteratorAge",
				"FunctionName", stage.name(name), "Maximum", fiveMinutes * 1000},
			alarm{name + "-kept", "Stream records failed for good and were kept: replay them", "AWS/Lambda", "OnFailureDestinationDeliveredEventCount",
				"EventSourceMappingUUID", sources[name], "Sum", 1},
			alarm{name + "-dropped", "Stream records failed for good and could not be kept", "AWS/Lambda", "DroppedEventCount",
				"EventSourceMappingUUID", sources[name], "Sum", 1})
	}
	for _, a := range alarms {
		awscloudwatch.NewCfnAlarm(stack, jsii.String(a.id), &awscloudwatch.CfnAlarmProps{
			AlarmName:          stage.name(a.id),
			AlarmDescription:   jsii.String(a.description),
			Namespace:          jsii.String(a.namespace),
			MetricName:         jsii.String(a.metric),
			Dimensions:         []any{&awscloudwatch.CfnAlarm_DimensionProperty{Name: jsii.String(a.dimension), Value: a.of}},
			Statistic:          jsii.String(a.statistic),
			Period:             jsii.Number(fiveMinutes),
			EvaluationPeriods:  jsii.Number(1),
			Threshold:          jsii.Number(a.threshold),
			ComparisonOperator: jsii.String("GreaterThanOrEqualToThreshold"),
			TreatMissingData:   jsii.String("notBreaching"),
			AlarmActions:       &[]any{topic.TopicArn()},
		})
	}
}
