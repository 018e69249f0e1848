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

	"parley/shared/httpapi"
)

var (
	//go:embed statemachines/call-lifecycle.asl.json
	callLifecycleASL string
	//go:embed statemachines/thread-lifecycle.asl.json
	threadLifecycleASL string
)

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

// markConcurrency is how many batches of ten event marks are made at once: the fewest that AWS
// allows, as each takes milliseconds.
const markConcurrency = 2

// newLifecycles connects the workers: the simulator's queue to the simulator, those of turns
// and marks to reply-to-thread, the state machines to advance-call and advance-thread, the
// clock to the sweep. A turn mostly waits, so a batch of them shares one function; marks have
// functions of their own, so that they don't wait for slow turns.
func newLifecycles(stack awscdk.Stack, stage Stage, queues map[string]awssqs.Queue, functions map[string]awslambda.Function) {
	newQueueSource(stack, "SimulatorStepsSource", queues[simulatorSteps], functions[simulateCarrier], 0)
	newQueueSource(stack, "ThreadTurnsSource", queues[threadTurns], functions[replyToThread], stage.TurnConcurrency)
	newQueueSource(stack, "ThreadMarksSource", queues[threadMarks], functions[replyToThread], markConcurrency)
	newStateMachine(stack, stage, callLifecycle, callLifecycleASL, map[string]awslambda.Function{"AdvanceCall": functions[advanceCall]})
	newStateMachine(stack, stage, threadLifecycle, threadLifecycleASL, map[string]awslambda.Function{"AdvanceThread": functions[advanceThread]})
	newSchedule(stack, "SweepSchedule", "rate(5 minutes)", functions[sweep])
}

// newQueueSource gives a function what is in a queue, ten messages at once, in so many batches
// at a time; 0 is no bound.
func newQueueSource(stack awscdk.Stack, id string, queue awssqs.Queue, function awslambda.Function, concurrency int) {
	source := awslambda.NewCfnEventSourceMapping(stack, jsii.String(id), &awslambda.CfnEventSourceMappingProps{
		FunctionName:          function.FunctionName(),
		EventSourceArn:        queue.QueueArn(),
		BatchSize:             jsii.Number(10),
		FunctionResponseTypes: jsii.Strings("ReportBatchItemFailures"),
	})
	if concurrency > 0 {
		source.SetScalingConfig(&awslambda.CfnEventSourceMapping_ScalingConfigProperty{MaximumConcurrency: jsii.Number(concurrency)})
	}
}

// newStateMachine makes a state machine of a definition in which ${Name} stands for the
// function that calls names so. Its waits are divided by the stage's time scale.
func newStateMachine(stack awscdk.Stack, stage Stage, name, definition string, calls map[string]awslambda.Function) {
	substitutions := map[string]*string{}
	arns := []*string{}
	for placeholder, function := range calls {
		substitutions[placeholder] = function.FunctionArn()
		arns = append(arns, function.FunctionArn())
	}
	awsstepfunctions.NewCfnStateMachine(stack, jsii.String(name), &awsstepfunctions.CfnStateMachineProps{
		StateMachineName:        stage.name(name),
		DefinitionString:        jsii.String(stage.scaled(definition)),
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
