package main

import (
	"parley/shared/dynamo"
	"parley/shared/httpapi"
)

// Names of the functions that serve no route.
const (
	simulateCarrier = httpapi.SimulateCarrier
	startLifecycles = "start-lifecycles"
	advanceCall     = "advance-call"
	sweep           = "sweep"
)

const (
	simulatorSteps = "SimulatorSteps" // queue
	callLifecycle  = "call-lifecycle" // state machine
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

	// finishCalls is what the steps of a call's life need.
	finishCalls = []httpapi.Grant{
		{Table: dynamo.Conversations, Actions: []string{"dynamodb:GetItem", "dynamodb:UpdateItem"}},
		{Table: dynamo.Workspaces, Actions: []string{"dynamodb:BatchGetItem", "dynamodb:UpdateItem"}},
		{Prefix: dynamo.FieldsPrefix, Actions: []string{"s3:GetObject", "s3:PutObject"}},
		{Prefix: dynamo.RecordingsPrefix, Actions: []string{"s3:PutObject"}},
		askCarrier,
	}
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
	{startLifecycles, "Starts and wakes state machines as the table changes", []httpapi.Grant{
		{Table: dynamo.Conversations, Stream: true, Actions: []string{
			"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator",
		}},
		{Everything: true, Actions: []string{"dynamodb:ListStreams"}},
		{Machine: callLifecycle, Actions: []string{"states:StartExecution"}},
		wakeTasks,
	}},
	{advanceCall, "The tasks of the state machine of calls", append([]httpapi.Grant{wakeTasks}, finishCalls...)},
	{sweep, "Resolves what no state machine does any more", append([]httpapi.Grant{
		{Table: dynamo.Conversations, Index: dynamo.Open, Actions: []string{"dynamodb:Query"}},
	}, finishCalls...)},
}
