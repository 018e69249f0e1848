package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"

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
	for _, routes := range byFunction(httpapi.Routes()) {
		api.serve(routes, newFunction(stack, stage, routes, data, api.baseURL))
	}
	newAlarms(stack, stage, api)
	return stack
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
