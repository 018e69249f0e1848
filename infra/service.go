package main

import (
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"parley/shared/config"
	"parley/shared/httpapi"
)

// newServiceStack makes what runs: the API with a function for every route.
func newServiceStack(app constructs.Construct, stage Stage, data *dataStack) awscdk.Stack {
	stack := awscdk.NewStack(app, stage.name("service"), stage.props("Parley's API and functions"))
	// CDK writes DependsOn also where a reference says the same.
	stack.TemplateOptions().SetMetadata(&map[string]any{
		"cfn-lint": map[string]any{"config": map[string]any{"ignore_checks": []string{"W3005"}}},
	})

	api := newAPI(stack, stage)
	steps := newQueue(stack, simulatorSteps, awscdk.Duration_Minutes(jsii.Number(1)))
	newSimulatorSecret(stack, stage)
	env := data.environment()
	env[config.BaseURL] = api.baseURL
	env[config.TimeScale] = jsii.String(strconv.Itoa(stage.TimeScale))
	env[config.SimulatorFunction] = stage.name(simulateCarrier)
	env[config.SimulatorQueueURL] = steps.QueueUrl()
	env[config.SimulatorSecret] = stage.name(httpapi.SimulatorSecret)
	env[config.CallLifecycle] = machineARN(stack, stage, callLifecycle)

	arn := func(g httpapi.Grant) *string {
		switch {
		case g.Everything:
			return jsii.String("*")
		case g.Function != "":
			return namedARN(stack, "lambda", "function", stage.name(g.Function))
		case g.Machine != "":
			return machineARN(stack, stage, g.Machine)
		case g.Queue != "":
			return steps.QueueArn()
		case g.Secret != "":
			// Secrets Manager ends every secret's ARN with six characters of its own.
			return namedARN(stack, "secretsmanager", "secret", jsii.String(*stage.name(g.Secret)+"-??????"))
		}
		return data.arn(g)
	}
	made := map[string]awslambda.Function{}
	for _, f := range functions() {
		made[f.name] = newFunction(stack, stage, f, env, arn)
	}
	for _, routes := range byFunction(httpapi.Routes()) {
		api.serve(routes, made[routes[0].Function])
	}
	newLifecycles(stack, stage, data, steps, made)
	newAlarms(stack, stage, api)
	return stack
}

// machineARN is the ARN of a state machine by its name: a function that it calls and that
// starts it would else make a circle.
func machineARN(stack awscdk.Stack, stage Stage, name string) *string {
	return namedARN(stack, "states", "stateMachine", stage.name(name))
}

func namedARN(stack awscdk.Stack, service, resource string, name *string) *string {
	return stack.FormatArn(&awscdk.ArnComponents{
		Service: jsii.String(service), Resource: jsii.String(resource), ResourceName: name,
		ArnFormat: awscdk.ArnFormat_COLON_RESOURCE_NAME,
	})
}

// byFunction groups routes by the function that serves them, in their order.
func byFunction(routes []httpapi.Route) [][]httpapi.Route {
	var groups [][]httpapi.Route
	group := map[string]int{}
	for _, route := range routes {
		i, ok := group[route.Function]
		if !ok {
			i = len(groups)
			group[route.Function] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], route)
	}
	return groups
}
