package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"

	"parley/shared/httpapi"
	"parley/shared/settings"
)

// A size is what a function may use. Memory brings CPU with it.
type size struct {
	megabytes float64
	seconds   float64
}

// usual is the size of a function that sizes doesn't name. The gateway waits 30 s.
var usual = size{512, 10}

var sizes = map[string]size{
	// A page of a list may be read from 16 MB of items.
	httpapi.ListCalls.Function:    {1024, 20},
	httpapi.ListMessages.Function: {1024, 20},
	httpapi.ListThreads.Function:  {1024, 20},
	// The carrier has 8 s to accept a call.
	httpapi.CreateCall.Function: {512, 15},
	settings.Function:           {512, 15},
	// It has 8 s to accept a text too, which a callback about a call may ask for.
	httpapi.CarrierCallback.Function: {512, 15},
	// A request may hang for 9 s, on purpose; a callback for 20 s.
	simulateCarrier: {512, 30},
	startLifecycles: {512, 30},
	// A recording is awaited for a minute, and then copied.
	advanceCall: {512, 120},
	sweep:       {512, 290},
	// A batch is posted at once; a receiver has 10 s, and the tables and keys some more.
	deliverWebhook: {512, 30},
	// A turn waits for another that leads it, or for the customer's last words, for up to 36 s,
	// then for the agent for 26, and for the carrier for 8.
	replyToThread: {512, 90},
	advanceThread: {512, 120},
	retryWebhook:  {512, 30},
	publishEvents: {512, 30},
}

var architectures = map[string]func() awslambda.Architecture{
	"amd64": awslambda.Architecture_X86_64,
	"arm64": awslambda.Architecture_ARM_64,
}

// A function is what a folder under functions/ becomes.
type function struct {
	name        string
	description string
	grants      []httpapi.Grant
}

// maxDescription is Lambda's limit.
const maxDescription = 256

// functions lists those of the routes and the workers.
func functions() []function {
	var all []function
	for _, routes := range byFunction(routes()) {
		f := function{name: routes[0].Function}
		var keys []string
		for _, route := range routes {
			keys = append(keys, route.Method+" "+route.Path)
			f.grants = append(f.grants, route.AllGrants()...)
		}
		f.description = strings.Join(keys, ", ")
		if len(f.description) > maxDescription {
			f.description = fmt.Sprintf("%s and %d more routes", keys[0], len(keys)-1)
		}
		all = append(all, f)
	}
	for _, worker := range workers {
		all = append(all, function(worker))
	}
	return all
}

// newFunction makes a function with a role and a log group of its own.
func newFunction(stack awscdk.Stack, stage Stage, f function, env map[string]*string, arn func(httpapi.Grant) *string) awslambda.Function {
	size, ok := sizes[f.name]
	if !ok {
		size = usual
	}
	logs := newLogGroup(stack, f.name+"-log", "/aws/lambda/"+*stage.name(f.name))
	var reserved *float64
	if stage.ReserveDeliveries && (f.name == deliverWebhook || f.name == retryWebhook) {
		reserved = jsii.Number(stage.DeliveryConcurrency)
	}
	return awslambda.NewFunction(stack, jsii.String(f.name), &awslambda.FunctionProps{
		ReservedConcurrentExecutions: reserved,
		FunctionName:                 stage.name(f.name),
		Description:                  jsii.String(f.description),
		Runtime:                      awslambda.Runtime_PROVIDED_AL2023(),
		Architecture:                 architectures[stage.goarch()](),
		Handler:                      jsii.String("bootstrap"),
		Code:                         awslambda.Code_FromAsset(jsii.String(stage.built(f.name)), nil),
		MemorySize:                   jsii.Number(size.megabytes),
		Timeout:                      awscdk.Duration_Seconds(jsii.Number(size.seconds)),
		Environment:                  &env,
		Role:                         newRole(stack, f.name, policy(f, arn, logs)),
		LogGroup:                     logs,
		LoggingFormat:                awslambda.LoggingFormat_JSON,
		ApplicationLogLevelV2:        awslambda.ApplicationLogLevel_INFO,
		SystemLogLevelV2:             awslambda.SystemLogLevel_WARN,
	})
}

func newRole(stack awscdk.Stack, function string, policy awsiam.PolicyDocument) awsiam.Role {
	return awsiam.NewRole(stack, jsii.String(function+"-role"), &awsiam.RoleProps{
		AssumedBy:      awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
		InlinePolicies: &map[string]awsiam.PolicyDocument{"function": policy},
	})
}

// policy is all that a function may do: what it is granted, and writing its own log. A
// grant may come twice; the policy shows it once.
func policy(f function, arn func(httpapi.Grant) *string, logs awslogs.LogGroup) awsiam.PolicyDocument {
	doc := awsiam.NewPolicyDocument(nil)
	doc.AddStatements(allow(logs.LogGroupArn(), "logs:CreateLogStream", "logs:PutLogEvents"))
	for _, grant := range f.grants {
		doc.AddStatements(allow(arn(grant), grant.Actions...))
	}
	return doc
}

func allow(resource *string, actions ...string) awsiam.PolicyStatement {
	return awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions:   jsii.Strings(actions...),
		Resources: &[]*string{resource},
	})
}

// newLogGroup makes a log group that goes with the stack, so that its name is free for
// the next one.
func newLogGroup(stack awscdk.Stack, id, name string) awslogs.LogGroup {
	return awslogs.NewLogGroup(stack, jsii.String(id), &awslogs.LogGroupProps{
		LogGroupName:  jsii.String(name),
		Retention:     awslogs.RetentionDays_ONE_MONTH,
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
}

// built is the folder that becomes a function's zip.
func (s Stage) built(function string) string {
	return filepath.Join(s.Functions, s.goarch(), function)
}

// checkBuilt names every function that is not built.
func (s Stage) checkBuilt() error {
	var missing []string
	for _, f := range functions() {
		if _, err := os.Stat(filepath.Join(s.built(f.name), "bootstrap")); err != nil {
			missing = append(missing, f.name)
		}
	}
	if missing == nil {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("not built in %s: %s; run `make build`", filepath.Join(s.Functions, s.goarch()), strings.Join(missing, ", "))
}
