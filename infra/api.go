package main

import (
	"encoding/json"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2authorizers"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2integrations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscognito"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"parley/shared/httpapi"
)

// A backstop for the account, per route and over all callers. What one caller may do is
// counted exactly by the functions (httpapi.Limit).
const (
	requestsPerSecond = 1000
	burst             = 2000
)

// accessLog is one line of the access log. It names no caller, and the route instead of
// the path, so it holds no personal data; the request's id leads to the function's log.
var accessLog = map[string]string{
	"time":               "$context.requestTime",
	"requestId":          "$context.requestId",
	"routeKey":           "$context.routeKey",
	"status":             "$context.status",
	"responseLength":     "$context.responseLength",
	"responseLatency":    "$context.responseLatency",
	"integrationLatency": "$context.integrationLatency",
	"integrationError":   "$context.integrationErrorMessage",
	"gatewayError":       "$context.error.message",
}

// api is the HTTP API.
type api struct {
	http    awsapigatewayv2.HttpApi
	baseURL *string // public, without a trailing slash
}

func newAPI(stack awscdk.Stack, stage Stage) *api {
	http := awsapigatewayv2.NewHttpApi(stack, jsii.String("Api"), &awsapigatewayv2.HttpApiProps{
		ApiName:            stage.name("api"),
		CreateDefaultStage: jsii.Bool(false),
	})
	newGatewayStage(stack, stage, http)
	output(stack, "ApiUrl", http.ApiEndpoint())
	output(stack, "ApiId", http.ApiId())

	if stage.BaseURL != "" {
		return &api{http, jsii.String(stage.BaseURL)}
	}
	return &api{http, http.ApiEndpoint()}
}

// newGatewayStage makes the one stage of the API that adds nothing to its paths.
func newGatewayStage(stack awscdk.Stack, stage Stage, http awsapigatewayv2.HttpApi) {
	// The gateway's right to write here lies in a policy of limited size that all log
	// groups of the account share, but for those under this prefix.
	group := newLogGroup(stack, "AccessLog", "/aws/vendedlogs/"+*stage.name("access"))
	format, err := json.Marshal(accessLog)
	if err != nil {
		panic(err) // strings only
	}
	awsapigatewayv2.NewCfnStage(stack, jsii.String("DefaultStage"), &awsapigatewayv2.CfnStageProps{
		ApiId:      http.ApiId(),
		StageName:  jsii.String("$default"),
		AutoDeploy: jsii.Bool(true),
		AccessLogSettings: &awsapigatewayv2.CfnStage_AccessLogSettingsProperty{
			DestinationArn: group.LogGroupArn(),
			Format:         jsii.String(string(format)),
		},
		DefaultRouteSettings: &awsapigatewayv2.CfnStage_RouteSettingsProperty{
			ThrottlingRateLimit:  jsii.Number(requestsPerSecond),
			ThrottlingBurstLimit: jsii.Number(burst),
		},
	})
}

// newUserAuthorizer lets requests pass that come with a token of the user pool for our
// client. Which kind of token it is, and of which workspace, the function checks.
func newUserAuthorizer(data *dataStack) awsapigatewayv2.IHttpRouteAuthorizer {
	return awsapigatewayv2authorizers.NewHttpUserPoolAuthorizer(jsii.String("UserAuthorizer"), data.users, &awsapigatewayv2authorizers.HttpUserPoolAuthorizerProps{
		UserPoolClients: &[]awscognito.IUserPoolClient{data.client},
	})
}

// serve leads routes to their function, and to the default function all that no route
// matches.
func (a *api) serve(routes []httpapi.Route, function awslambda.Function, users awsapigatewayv2.IHttpRouteAuthorizer) {
	name := routes[0].Function
	integration := awsapigatewayv2integrations.NewHttpLambdaIntegration(jsii.String(name), function, nil)
	for _, route := range routes {
		options := &awsapigatewayv2.AddRoutesOptions{
			Path:        jsii.String(route.Path),
			Methods:     &[]awsapigatewayv2.HttpMethod{awsapigatewayv2.HttpMethod(route.Method)},
			Integration: integration,
		}
		if route.Auth == httpapi.ByUser {
			options.Authorizer = users
		}
		a.http.AddRoutes(options)
	}
	if name == httpapi.DefaultFunction {
		awsapigatewayv2.NewHttpRoute(a.http, jsii.String("Unmatched"), &awsapigatewayv2.HttpRouteProps{
			HttpApi:     a.http,
			RouteKey:    awsapigatewayv2.HttpRouteKey_DEFAULT(),
			Integration: integration,
		})
	}
}
