package main

import (
	_ "embed"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
)

//go:embed statemachines/webhook-retry.asl.json
var webhookRetryASL string

// newWebhooks connects the queue of deliveries to deliver-webhook, and the state machine of
// what failed at first to retry-webhook. The queue's attempts take no more functions than
// they may, however many receivers hang. The later attempts are a function of their own, so
// that they never take the first ones' room; the machine waits patiently for theirs, which
// is bounded where it is set aside.
func newWebhooks(stack awscdk.Stack, stage Stage, deliveries awssqs.Queue, functions map[string]awslambda.Function) {
	newQueueSource(stack, "DeliveriesSource", deliveries, functions[deliverWebhook], stage.DeliveryConcurrency)
	newStateMachine(stack, stage, webhookRetry, webhookRetryASL, map[string]awslambda.Function{"RetryWebhook": functions[retryWebhook]})
}
