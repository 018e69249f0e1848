package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"

	"parley/shared/config"
	"parley/shared/httpapi"
)

// A size is what a function may use. Memory brings CPU with it.
type size struct {
	megabytes float64
	seconds   float64
}

// usual is the size of a function that sizes doesn't name. The gateway waits 30 s.
var usual = size{512, 10}

// A page of a list may be read from 16 MB of items.
var sizes = map[string]size{
	httpapi.ListCalls.Function:    {1024, 20},
	httpapi.ListMessages.Function: {1024, 20},
	httpapi.ListThreads.Function:  {1024, 20},
}

var architectures = map[string]func() awslambda.Architecture{
	"amd64": awslambda.Architecture_X86_64,
	"arm64": awslambda.Architecture_ARM_64,
}

// newFunction makes the function that serves routes, with a role and a log group of its
// own.
func newFunction(stack awscdk.Stack, stage Stage, routes []httpapi.Route, data *dataStack, baseURL *string) awslambda.Function {
	name := routes[0].Function
	size, ok := sizes[name]
	if !ok {
		size = usual
	}
	env := data.environment()
	env[config.BaseURL] = baseURL
	logs := newLogGroup(stack, name+"-log", "/aws/lambda/"+*stage.name(name))

	return awslambda.NewFunction(stack, jsii.String(name), &awslambda.FunctionProps{
		FunctionName:          stage.name(name),
		Description:           jsii.String(describe(routes)),
		Runtime:               awslambda.Runtime_PROVIDED_AL2023(),
		Architecture:          architectures[stage.goarch()](),
		Handler:               jsii.String("bootstrap"),
		Code:                  awslambda.Code_FromAsset(jsii.String(stage.built(name)), nil),
		MemorySize:            jsii.Number(size.megabytes),
		Timeout:               awscdk.Duration_Seconds(jsii.Number(size.seconds)),
		Environment:           &env,
		Role:                  newRole(stack, name, policy(routes, data, logs)),
		LogGroup:              logs,
		LoggingFormat:         awslambda.LoggingFormat_JSON,
		ApplicationLogLevelV2: awslambda.ApplicationLogLevel_INFO,
		SystemLogLevelV2:      awslambda.SystemLogLevel_WARN,
	})
}

func describe(routes []httpapi.Route) string {
	var keys []string
	for _, route := range routes {
		keys = append(keys, route.Method+" "+route.Path)
	}
	return strings.Join(keys, ", ")
}

func newRole(stack awscdk.Stack, function string, policy awsiam.PolicyDocument) awsiam.Role {
	return awsiam.NewRole(stack, jsii.String(function+"-role"), &awsiam.RoleProps{
		AssumedBy:      awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
		InlinePolicies: &map[string]awsiam.PolicyDocument{"function": policy},
	})
}

// policy is all that the function of routes may do: what its rows grant, and writing its
// own log.
func policy(routes []httpapi.Route, data *dataStack, logs awslogs.LogGroup) awsiam.PolicyDocument {
	doc := awsiam.NewPolicyDocument(nil)
	doc.AddStatements(allow(logs.LogGroupArn(), "logs:CreateLogStream", "logs:PutLogEvents"))
	for _, grant := range grants(routes) {
		doc.AddStatements(allow(data.arn(grant), grant.Actions...))
	}
	return doc
}

// grants lists what routes need, what Auth needs included. A grant may come twice; the
// policy shows it once.
func grants(routes []httpapi.Route) []httpapi.Grant {
	var all []httpapi.Grant
	for _, route := range routes {
		if route.Auth == httpapi.ByKey {
			all = append(all, httpapi.KeyGrants...)
		}
		all = append(all, route.Grants...)
	}
	return all
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

// checkBuilt names every function of routes that is not built.
func (s Stage) checkBuilt(routes []httpapi.Route) error {
	missing := map[string]bool{}
	for _, route := range routes {
		if _, err := os.Stat(filepath.Join(s.built(route.Function), "bootstrap")); err != nil {
			missing[route.Function] = true
		}
	}
	if len(missing) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(missing))
	return fmt.Errorf("not built in %s: %s; run `make build`", filepath.Join(s.Functions, s.goarch()), strings.Join(names, ", "))
}
