package main

import (
	_ "embed"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/jsii-runtime-go"

	"parley/shared/dynamo"
	"parley/shared/httpapi"
)

//go:embed statemachines/call-lifecycle.asl.json
var callLifecycleASL string

// newSimulatorSecret signs the callbacks of the sandbox's carrier. It has a name, as an
// emulator doesn't give its ARN away.
func newSimulatorSecret(stack awscdk.Stack, stage Stage) {
	awssecretsmanager.NewSecret(stack, jsii.String(httpapi.SimulatorSecret), &awssecretsmanager.SecretProps{
		SecretName:  stage.name(httpapi.SimulatorSecret),
		Description: jsii.String("Signs the callbacks of the sandbox's carrier"),
		GenerateSecretString: &awssecretsmanager.SecretStringGenerator{
			PasswordLength: jsii.Number(64), ExcludePunctuation: jsii.Bool(true),
		},
	})
}

// newQueue makes a queue of messages that are tried five times and then kept apart, for
// someone to look at and to put back.
func newQueue(stack awscdk.Stack, name string, visibility awscdk.Duration) awssqs.Queue {
	failed := awssqs.NewQueue(stack, jsii.String(name+"Failed"), &awssqs.QueueProps{
		Encryption: awssqs.QueueEncryption_SQS_MANAGED, EnforceSSL: jsii.Bool(false),
		RetentionPeriod: awscdk.Duration_Days(jsii.Number(14)),
	})
	return awssqs.NewQueue(stack, jsii.String(name), &awssqs.QueueProps{
		Encryption: awssqs.QueueEncryption_SQS_MANAGED, EnforceSSL: jsii.Bool(false),
		VisibilityTimeout: visibility,
		DeadLetterQueue:   &awssqs.DeadLetterQueue{Queue: failed, MaxReceiveCount: jsii.Number(5)},
	})
}

// newLifecycles connects the workers: the simulator's queue to the simulator, the table's
// stream to start-lifecycles, the state machine to advance-call, the clock to the sweep.
func newLifecycles(stack awscdk.Stack, stage Stage, data *dataStack, steps awssqs.Queue, functions map[string]awslambda.Function) {
	awslambda.NewCfnEventSourceMapping(stack, jsii.String("SimulatorStepsSource"), &awslambda.CfnEventSourceMappingProps{
		FunctionName:          functions[simulateCarrier].FunctionName(),
		EventSourceArn:        steps.QueueArn(),
		BatchSize:             jsii.Number(10),
		FunctionResponseTypes: jsii.Strings("ReportBatchItemFailures"),
	})
	awslambda.NewCfnEventSourceMapping(stack, jsii.String("CallsSource"), &awslambda.CfnEventSourceMappingProps{
		FunctionName:               functions[startLifecycles].FunctionName(),
		EventSourceArn:             data.tables[dynamo.Conversations].TableStreamArn(),
		StartingPosition:           jsii.String("TRIM_HORIZON"),
		BatchSize:                  jsii.Number(100),
		BisectBatchOnFunctionError: jsii.Bool(true),
		MaximumRetryAttempts:       jsii.Number(100),
		MaximumRecordAgeInSeconds:  jsii.Number(24 * 60 * 60),
		FunctionResponseTypes:      jsii.Strings("ReportBatchItemFailures"),
		FilterCriteria: &awslambda.CfnEventSourceMapping_FilterCriteriaProperty{
			// Only calls that live here have it; history that was put in whole doesn't.
			Filters: []any{map[string]any{"pattern": `{"dynamodb":{"NewImage":{"longest_seconds":{"N":[{"exists":true}]}}}}`}},
		},
	})
	newStateMachine(stack, stage, callLifecycle, callLifecycleASL, map[string]awslambda.Function{"AdvanceCall": functions[advanceCall]})
	newSchedule(stack, "SweepSchedule", "rate(5 minutes)", functions[sweep])
}

// newStateMachine makes a state machine of a definition in which ${Name} stands for the
// function that calls names so.
func newStateMachine(stack awscdk.Stack, stage Stage, name, definition string, calls map[string]awslambda.Function) {
	substitutions := map[string]*string{}
	arns := []*string{}
	for placeholder, function := range calls {
		substitutions[placeholder] = function.FunctionArn()
		arns = append(arns, function.FunctionArn())
	}
	awsstepfunctions.NewCfnStateMachine(stack, jsii.String(name), &awsstepfunctions.CfnStateMachineProps{
		StateMachineName:        stage.name(name),
		DefinitionString:        jsii.String(definition),
		DefinitionSubstitutions: &substitutions,
		RoleArn:                 newCaller(stack, name, "states.amazonaws.com", arns).RoleArn(),
	})
}

func newSchedule(stack awscdk.Stack, id, expression string, function awslambda.Function) {
	awsscheduler.NewCfnSchedule(stack, jsii.String(id), &awsscheduler.CfnScheduleProps{
		ScheduleExpression: jsii.String(expression),
		FlexibleTimeWindow: &awsscheduler.CfnSchedule_FlexibleTimeWindowProperty{Mode: jsii.String("OFF")},
		Target: &awsscheduler.CfnSchedule_TargetProperty{
			Arn:     function.FunctionArn(),
			RoleArn: newCaller(stack, id, "scheduler.amazonaws.com", []*string{function.FunctionArn()}).RoleArn(),
		},
	})
}

// newCaller is a role that may call functions and nothing else.
func newCaller(stack awscdk.Stack, id, service string, functions []*string) awsiam.Role {
	policy := awsiam.NewPolicyDocument(nil)
	for _, arn := range functions {
		policy.AddStatements(allow(arn, "lambda:InvokeFunction"))
	}
	return awsiam.NewRole(stack, jsii.String(id+"-role"), &awsiam.RoleProps{
		AssumedBy:      awsiam.NewServicePrincipal(jsii.String(service), nil),
		InlinePolicies: &map[string]awsiam.PolicyDocument{"call": policy},
	})
}
