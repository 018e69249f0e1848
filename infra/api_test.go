package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/shared/httpapi"
)

func TestEveryRouteHasItsFunction(t *testing.T) {
	tm := prod(t)

	want := map[string]string{"$default": httpapi.DefaultFunction}
	for _, route := range routes() {
		want[route.Method+" "+route.Path] = route.Function
	}
	got := map[string]string{}
	for _, route := range tm.service.of("AWS::ApiGatewayV2::Route") {
		got[route.Properties["RouteKey"].(string)] = tm.target(t, route)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("functions of routes (-want +got):\n%s", diff)
	}
}

// target follows a route to its integration and its function.
func (tm templates) target(t *testing.T, route resource) string {
	t.Helper()
	for id, integration := range tm.service.of("AWS::ApiGatewayV2::Integration") {
		if tm.text(route.Properties["Target"]) == "integrations/"+generated.ReplaceAllString(id, "") {
			if version := integration.Properties["PayloadFormatVersion"]; version != "2.0" {
				t.Errorf("%s: got payload format %v, want 2.0", id, version)
			}
			return tm.functionOf(integration.Properties["IntegrationUri"])
		}
	}
	return ""
}

// functionOf is the folder of the function whose ARN is arn.
func (tm templates) functionOf(arn any) string {
	for id, function := range tm.service.of("AWS::Lambda::Function") {
		if tm.text(arn) == generated.ReplaceAllString(id, "")+".Arn" {
			return folder(function)
		}
	}
	return ""
}

func TestOnlyTheRoutesMayCallAFunction(t *testing.T) {
	tm := prod(t)

	const ofAPI = "arn:AWS::Partition:execute-api:AWS::Region:AWS::AccountId:Api/*/*"
	want := map[string][]string{}
	for _, route := range routes() {
		want[route.Function] = append(want[route.Function], ofAPI+route.Path)
	}
	want[httpapi.DefaultFunction] = append(want[httpapi.DefaultFunction], ofAPI) // $default has no path

	got := map[string][]string{}
	for _, permission := range tm.service.of("AWS::Lambda::Permission") {
		function := tm.functionOf(permission.Properties["FunctionName"])
		got[function] = append(got[function], tm.text(permission.Properties["SourceArn"]))
		if by := permission.Properties["Principal"]; by != "apigateway.amazonaws.com" {
			t.Errorf("%s may be called by %v, want API Gateway alone", function, by)
		}
	}
	for _, arns := range []map[string][]string{want, got} {
		for _, a := range arns {
			slices.Sort(a)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("who calls (-want +got):\n%s", diff)
	}
}

// A user's token is asked for by the routes of the settings, and by no other.
func TestAuthorizer(t *testing.T) {
	tm := prod(t)
	type properties struct {
		AuthorizerType   string
		IdentitySource   []string
		JwtConfiguration struct {
			Audience []any
			Issuer   any
		}
	}
	authorizers := tm.service.of("AWS::ApiGatewayV2::Authorizer")
	if len(authorizers) != 1 {
		t.Fatalf("got %d authorizers, want 1", len(authorizers))
	}
	var id string
	for name, authorizer := range authorizers {
		id = generated.ReplaceAllString(name, "")
		got := as[properties](t, authorizer.Properties)
		if got.AuthorizerType != "JWT" || !slices.Equal(got.IdentitySource, []string{"$request.header.Authorization"}) {
			t.Errorf("got %s from %v, want a JWT from Authorization", got.AuthorizerType, got.IdentitySource)
		}
		if len(got.JwtConfiguration.Audience) != 1 || tm.text(got.JwtConfiguration.Audience[0]) != "UsersClient" {
			t.Errorf("got audience %v, want our client alone", got.JwtConfiguration.Audience)
		}
		if issuer := tm.text(got.JwtConfiguration.Issuer); issuer != "https://cognito-idp.AWS::Region.amazonaws.com/Users" {
			t.Errorf("got issuer %s, want our user pool", issuer)
		}
	}
	want := map[string]string{"$default": ""}
	for _, route := range routes() {
		want[route.Method+" "+route.Path] = ""
		if route.Auth == httpapi.ByUser {
			want[route.Method+" "+route.Path] = "JWT " + id
		}
	}
	got := map[string]string{}
	for _, route := range tm.service.of("AWS::ApiGatewayV2::Route") {
		by := ""
		if route.Properties["AuthorizerId"] != nil {
			by = route.Properties["AuthorizationType"].(string) + " " + tm.text(route.Properties["AuthorizerId"])
		}
		got[route.Properties["RouteKey"].(string)] = by
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("authorizers of routes (-want +got):\n%s", diff)
	}
}

func TestGatewayStage(t *testing.T) {
	tm := prod(t)
	type properties struct {
		StageName            string
		AutoDeploy           bool
		DefaultRouteSettings struct{ ThrottlingRateLimit, ThrottlingBurstLimit int }
		AccessLogSettings    struct {
			DestinationArn any
			Format         string
		}
	}
	stages := tm.service.of("AWS::ApiGatewayV2::Stage")
	if len(stages) != 1 {
		t.Fatalf("got %d gateway stages, want 1", len(stages))
	}
	for _, stage := range stages {
		got := as[properties](t, stage.Properties)
		if got.StageName != "$default" || !got.AutoDeploy {
			t.Errorf("got stage %q, deployed by itself: %t, want $default, true", got.StageName, got.AutoDeploy)
		}
		if throttle := got.DefaultRouteSettings; throttle.ThrottlingRateLimit == 0 || throttle.ThrottlingBurstLimit == 0 {
			t.Errorf("got throttling %+v, want limits", throttle)
		}
		if to := tm.text(got.AccessLogSettings.DestinationArn); to != "AccessLog.Arn" {
			t.Errorf("access log goes to %s, want AccessLog.Arn", to)
		}
		if !json.Valid([]byte(got.AccessLogSettings.Format)) || !strings.Contains(got.AccessLogSettings.Format, "$context.requestId") {
			t.Errorf("access log format = %s, want JSON with the request's id", got.AccessLogSettings.Format)
		}
		if strings.Contains(got.AccessLogSettings.Format, "identity") || strings.Contains(got.AccessLogSettings.Format, "$context.path") {
			t.Errorf("access log format = %s, want nothing that names a caller or a record", got.AccessLogSettings.Format)
		}
	}
}

func TestAlarmsTellTheTopic(t *testing.T) {
	tm := prod(t)
	alarms := tm.service.of("AWS::CloudWatch::Alarm")
	if len(alarms) == 0 {
		t.Error("got no alarms")
	}
	for id, alarm := range alarms {
		var told []string
		for _, action := range list(alarm.Properties["AlarmActions"]) {
			told = append(told, tm.text(action))
		}
		if !slices.Equal(told, []string{"AlarmTopic"}) {
			t.Errorf("%s tells %v, want the topic", id, told)
		}
	}
}
