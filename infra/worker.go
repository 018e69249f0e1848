package main

import (
	"parley/shared/dynamo"
	"parley/shared/httpapi"
	"parley/shared/settings"
)

// Names of the functions that serve no route.
const (
	simulateCarrier = httpapi.SimulateCarrier
	startLifecycles = "start-lifecycles"
	advanceCall     = "advance-call"
	sweep           = "sweep"
	publishEvents   = "publish-events"
	deliverWebhook  = "deliver-webhook"
	replyToThread   = "reply-to-thread"
	advanceThread   = "advance-thread"
	retryWebhook    = "retry-webhook"
)

const (
	simulatorSteps  = "SimulatorSteps"   // queue
	threadTurns     = "ThreadTurns"      // queue
	threadMarks     = "ThreadMarks"      // queue
	callLifecycle   = "call-lifecycle"   // state machine
	threadLifecycle = "thread-lifecycle" // state machine
	webhookRetry    = "webhook-retry"    // state machine
)

// A worker is a function that serves no route: it is called by a queue, a stream, a state
// machine or a schedule.
type worker struct {
	name        string
	description string
	grants      []httpapi.Grant
}

var (
	askCarrier = httpapi.Grant{Function: simulateCarrier, Actions: []string{"lambda:InvokeFunction"}}
	wakeTasks  = httpapi.Grant{Everything: true, Actions: []string{"states:SendTaskSuccess"}}

	// deliver is what attempts need.
	deliver = []httpapi.Grant{
		{Table: dynamo.Deliveries, Actions: []string{"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}},
		{Prefix: dynamo.DeliveriesPrefix, Actions: []string{"s3:GetObject"}},
		{Key: settings.WebhookKey, Actions: []string{"kms:Decrypt"}},
	}

	// readStream is what the stream's mapping needs of its function.
	readStream = []httpapi.Grant{
		{Table: dynamo.Conversations, Stream: true, Actions: []string{
			"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator",
		}},
		{Everything: true, Actions: []string{"dynamodb:ListStreams"}},
		// What fails for good is kept in the function's name.
		{Prefix: dynamo.PoisonPrefix, Actions: []string{"s3:PutObject"}},
		{Bucket: true, Actions: []string{"s3:ListBucket"}},
	}

	// converse is what a turn of a text conversation needs.
	converse = []httpapi.Grant{
		{Table: dynamo.Conversations, Index: dynamo.ByThread, Actions: []string{"dynamodb:Query"}},
		{Table: dynamo.Conversations, Actions: []string{
			"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem",
		}},
		{Table: dynamo.Workspaces, Actions: []string{"dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem", "dynamodb:GetItem"}},
		{Prefix: dynamo.FieldsPrefix, Actions: []string{"s3:GetObject", "s3:PutObject"}},
		askCarrier,
	}

	// finishThreads is what the steps of a text conversation need.
	finishThreads = append([]httpapi.Grant{
		{Table: dynamo.Conversations, Actions: []string{"dynamodb:DeleteItem"}}, // the pointer to the open one
		{Table: dynamo.Counters, Actions: []string{"dynamodb:UpdateItem"}},      // the follow-ups of a day
	}, converse...)

	// finishCalls is what the steps of a call's life need beside that: a follow-up of a call
	// is a text conversation.
	finishCalls = append([]httpapi.Grant{
		{Table: dynamo.Workspaces, Actions: []string{"dynamodb:UpdateItem"}},
		{Prefix: dynamo.RecordingsPrefix, Actions: []string{"s3:PutObject"}},
	}, finishThreads...)
)

var workers = []worker{
	{simulateCarrier, "The far end of the sandbox's carrier", []httpapi.Grant{
		{Table: dynamo.Counters, Actions: []string{"dynamodb:GetItem", "dynamodb:PutItem"}},
		{Prefix: dynamo.FieldsPrefix, Actions: []string{"s3:GetObject", "s3:PutObject"}},
		{Secret: httpapi.SimulatorSecret, Actions: []string{"secretsmanager:GetSecretValue"}},
		{Queue: simulatorSteps, Actions: []string{
			"sqs:SendMessage", "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes",
		}},
	}},
	{startLifecycles, "Starts and wakes state machines as the table changes", append([]httpapi.Grant{
		{Machine: callLifecycle, Actions: []string{"states:StartExecution"}},
		{Machine: threadLifecycle, Actions: []string{"states:StartExecution"}},
		{Table: dynamo.Workspaces, Actions: []string{"dynamodb:BatchGetItem"}},
		{Queue: threadTurns, Actions: []string{"sqs:SendMessage"}},
		{Queue: threadMarks, Actions: []string{"sqs:SendMessage"}},
		wakeTasks,
	}, readStream...)},
	{advanceCall, "The tasks of the state machine of calls", append([]httpapi.Grant{wakeTasks}, finishCalls...)},
	{replyToThread, "The assistants' turns in text conversations", append([]httpapi.Grant{
		{Queue: threadTurns, Actions: []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}},
		{Queue: threadMarks, Actions: []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}},
	}, converse...)},
	{advanceThread, "The tasks of the state machine of text conversations", append([]httpapi.Grant{wakeTasks}, finishThreads...)},
	{sweep, "Resolves what no state machine does any more", append([]httpapi.Grant{
		{Table: dynamo.Conversations, Index: dynamo.Open, Actions: []string{"dynamodb:Query"}},
	}, finishCalls...)},
	{publishEvents, "Queues what happened for the webhook endpoints that want to know", append([]httpapi.Grant{
		{Table: dynamo.Workspaces, Actions: []string{"dynamodb:GetItem"}},
		{Prefix: dynamo.FieldsPrefix, Actions: []string{"s3:GetObject"}},
		{Prefix: dynamo.DeliveriesPrefix, Actions: []string{"s3:PutObject"}},
		{Queue: settings.DeliveryQueue, Actions: []string{"sqs:SendMessage"}},
	}, readStream...)},
	{deliverWebhook, "The first attempts of webhooks' deliveries", append([]httpapi.Grant{
		{Queue: settings.DeliveryQueue, Actions: []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}},
		{Table: dynamo.Deliveries, Actions: []string{"dynamodb:BatchGetItem"}},
		{Table: dynamo.Workspaces, Actions: []string{"dynamodb:BatchGetItem"}},
		{Machine: webhookRetry, Actions: []string{"states:StartExecution"}},
	}, deliver...)},
	{retryWebhook, "The later attempts of webhooks' deliveries", append([]httpapi.Grant{
		{Table: dynamo.Workspaces, Actions: []string{"dynamodb:GetItem"}},
	}, deliver...)},
}
