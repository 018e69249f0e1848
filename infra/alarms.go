package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"
)

// newAlarms makes the alarms and the topic that they tell; who listens to it is up to the
// operator.
func newAlarms(stack awscdk.Stack, stage Stage, api *api) {
	topic := awssns.NewTopic(stack, jsii.String("AlarmTopic"), nil)
	output(stack, "Alarms", topic.TopicArn())

	// A function that fails, times out or is throttled answers 5xx through the gateway, so
	// this sees all of them. It counts, as emulators know no metric math for a rate.
	alarm := awscloudwatch.NewAlarm(stack, jsii.String("ServerErrors"), &awscloudwatch.AlarmProps{
		AlarmName:        stage.name("server-errors"),
		AlarmDescription: jsii.String("The API answered 5xx five times or more within 5 minutes"),
		Metric: api.http.MetricServerError(&awscloudwatch.MetricOptions{
			Statistic: jsii.String("Sum"),
			Period:    awscdk.Duration_Minutes(jsii.Number(5)),
		}),
		Threshold:          jsii.Number(5),
		ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
		EvaluationPeriods:  jsii.Number(1),
		TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING,
	})
	alarm.AddAlarmAction(awscloudwatchactions.NewSnsAction(topic))
}
