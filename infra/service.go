package main

import (
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"parley/shared/config"
	"parley/shared/httpapi"
	"parley/shared/lifecycle"
	"parley/shared/settings"
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
	// As long as AWS asks for: six times what the function may take.
	deliveries := newQueue(stack, settings.DeliveryQueue, awscdk.Duration_Minutes(jsii.Number(3)))
	visibility := awscdk.Duration_Seconds(jsii.Number(lifecycle.TurnVisibility.Seconds()))
	turns, marks := newQueue(stack, threadTurns, visibility), newQueue(stack, threadMarks, visibility)
	queues := map[string]awssqs.Queue{simulatorSteps: steps, settings.DeliveryQueue: deliveries, threadTurns: turns, threadMarks: marks}
	newSimulatorSecret(stack, stage)
	env := data.environment()
	env[config.BaseURL] = api.baseURL
	env[config.TimeScale] = jsii.String(strconv.Itoa(stage.TimeScale))
	env[config.SimulatorFunction] = stage.name(simulateCarrier)
	env[config.SimulatorQueueURL] = steps.QueueUrl()
	env[config.SimulatorSecret] = stage.name(httpapi.SimulatorSecret)
	env[config.DeliveryQueueURL] = deliveries.QueueUrl()
	env[config.LoopbackWebhooks] = jsii.String(strconv.FormatBool(stage.Name == local))
	env[config.CallLifecycle] = machineARN(stack, stage, callLifecycle)
	env[config.ThreadLifecycle] = machineARN(stack, stage, threadLifecycle)
	env[config.TurnQueueURL] = turns.QueueUrl()
	env[config.MarkQueueURL] = marks.QueueUrl()
	env[config.WebhookRetry] = machineARN(stack, stage, webhookRetry)

	arn := func(g httpapi.Grant) *string {
		switch {
		case g.Everything:
			return jsii.String("*")
		case g.Function != "":
			return namedARN(stack, "lambda", "function", stage.name(g.Function))
		case g.Machine != "":
			return machineARN(stack, stage, g.Machine)
		case g.Queue != "":
			return queues[g.Queue].QueueArn()
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
	users := newUserAuthorizer(data)
	for _, routes := range byFunction(routes()) {
		api.serve(routes, made[routes[0].Function], users)
	}
	sources := map[string]*string{}
	for _, name := range []string{startLifecycles, publishEvents} {
		sources[name] = newStreamSource(stack, name+"-source", data, made[name])
	}
	newLifecycles(stack, stage, queues, made)
	newWebhooks(stack, stage, deliveries, made)
	newAlarms(stack, stage, api, queues, sources)
	return stack
}

// routes lists all endpoints: those of the API, and those of the settings.
func routes() []httpapi.Route { return append(httpapi.Routes(), settings.Routes()...) }

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

// sorted lists the keys of a map in an order that is the same in every template.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

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
