package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/shared/config"
	"parley/shared/httpapi"
)

// folder is the folder of a function under functions/.
func folder(function resource) string {
	return strings.TrimPrefix(function.Properties["FunctionName"].(string), "parley-prod-")
}

func TestFunctions(t *testing.T) {
	tm := prod(t)
	type properties struct {
		Runtime, Handler    string
		Architectures       []string
		MemorySize, Timeout int
		LoggingConfig       struct {
			LogFormat, ApplicationLogLevel, SystemLogLevel string
			LogGroup                                       any
		}
		Environment struct{ Variables map[string]any }
	}
	for _, function := range tm.service.of("AWS::Lambda::Function") {
		t.Run(folder(function), func(t *testing.T) {
			got := as[properties](t, function.Properties)
			if got.Runtime != "provided.al2023" || got.Handler != "bootstrap" || !slices.Equal(got.Architectures, []string{"arm64"}) {
				t.Errorf("got %s, %s, %v, want provided.al2023, bootstrap, arm64", got.Runtime, got.Handler, got.Architectures)
			}
			isWorker := slices.ContainsFunc(workers, func(w worker) bool { return w.name == folder(function) })
			if got.Timeout == 0 || got.Timeout >= 30 && !isWorker {
				t.Errorf("got a timeout of %d s, want one below the gateway's 30 s", got.Timeout)
			}
			if log := got.LoggingConfig; log.LogFormat != "JSON" || log.ApplicationLogLevel != "INFO" || log.SystemLogLevel != "WARN" {
				t.Errorf("got logging %+v, want JSON, INFO, WARN", log)
			}
			if group := tm.text(got.LoggingConfig.LogGroup); group != inID(folder(function))+"log" {
				t.Errorf("got log group %s, want its own", group)
			}
			getenv := func(name string) string { return tm.text(got.Environment.Variables[name]) }
			cfg, err := config.Load(getenv)
			want := config.Config{
				ConversationsTable: "Conversations", WorkspacesTable: "Workspaces", DeliveriesTable: "Deliveries", CountersTable: "Counters",
				Bucket: "Objects", BaseURL: "Api.ApiEndpoint", TimeScale: 1,
				SimulatorFunction: "parley-prod-simulate-carrier", SimulatorQueueURL: "SimulatorSteps", SimulatorSecret: "parley-prod-simulator-secret",
				ThreadLifecycle:  "arn:AWS::Partition:states:AWS::Region:AWS::AccountId:stateMachine:parley-prod-thread-lifecycle",
				TurnQueueURL:     "ThreadTurns",
				MarkQueueURL:     "ThreadMarks",
				CallLifecycle:    "arn:AWS::Partition:states:AWS::Region:AWS::AccountId:stateMachine:parley-prod-call-lifecycle",
				DeliveryQueueURL: "WebhookDeliveries", WebhookKey: "WebhookKey.Arn",
				WebhookRetry: "arn:AWS::Partition:states:AWS::Region:AWS::AccountId:stateMachine:parley-prod-webhook-retry",
			}
			if diff := cmp.Diff(want, cfg); err != nil || diff != "" {
				t.Errorf("environment: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestBaseURLComesFromTheContext(t *testing.T) {
	tm := synth(t, map[string]any{"stage": "prod", "baseUrl": "https://api.example.com"})
	for _, function := range tm.service.of("AWS::Lambda::Function") {
		env := function.Properties["Environment"].(map[string]any)["Variables"].(map[string]any)
		if got := env[config.BaseURL]; got != "https://api.example.com" {
			t.Errorf("%s: got base URL %v, want the context's", folder(function), got)
		}
	}
}

func TestLogsEnd(t *testing.T) {
	tm := prod(t)
	groups := tm.service.of("AWS::Logs::LogGroup")
	if want := len(tm.service.of("AWS::Lambda::Function")) + 1; len(groups) != want {
		t.Errorf("got %d log groups, want %d: the functions' and the access log's", len(groups), want)
	}
	for id, group := range groups {
		if group.Properties["RetentionInDays"] == nil || group.DeletionPolicy != "Delete" {
			t.Errorf("%s: got retention %v, deletion %s, want some, Delete", id, group.Properties["RetentionInDays"], group.DeletionPolicy)
		}
	}
}

// statement is one of a policy. CDK writes single values without a list.
type statement struct {
	Effect   string
	Action   any
	Resource any
}

type role struct {
	ManagedPolicyArns []any
	Policies          []struct {
		PolicyDocument struct{ Statement []statement }
	}
}

func TestFunctionsMayDoWhatTheirRowsGrant(t *testing.T) {
	tm := prod(t)

	want := map[string]map[string]bool{}
	grant := func(function string, grants []httpapi.Grant) {
		if want[function] == nil {
			log := inID(function) + "log.Arn"
			want[function] = map[string]bool{"logs:CreateLogStream " + log: true, "logs:PutLogEvents " + log: true}
		}
		for _, grant := range grants {
			for _, action := range grant.Actions {
				want[function][action+" "+granted(grant)] = true
			}
		}
	}
	for _, route := range routes() {
		grant(route.Function, route.AllGrants())
	}
	for _, worker := range workers {
		grant(worker.name, worker.grants)
	}

	got := map[string]map[string]bool{}
	for _, function := range tm.service.of("AWS::Lambda::Function") {
		got[folder(function)] = tm.allowed(t, tm.roleOf(t, function))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
}

// granted is a grant's resource as templates.text writes it.
func granted(grant httpapi.Grant) string {
	const mine = "AWS::Region:AWS::AccountId:"
	switch {
	case grant.Everything:
		return "*"
	case grant.Stream:
		return grant.Table + ".StreamArn"
	case grant.Function != "":
		return "arn:AWS::Partition:lambda:" + mine + "function:parley-prod-" + grant.Function
	case grant.Machine != "":
		return "arn:AWS::Partition:states:" + mine + "stateMachine:parley-prod-" + grant.Machine
	case grant.Queue != "":
		return grant.Queue + ".Arn"
	case grant.Secret != "":
		return "arn:AWS::Partition:secretsmanager:" + mine + "secret:parley-prod-" + grant.Secret + "-??????"
	case grant.Key != "":
		return grant.Key + ".Arn"
	case grant.Bucket:
		return "Objects.Arn"
	case grant.Prefix != "":
		return "Objects.Arn/" + grant.Prefix + "*"
	case grant.Index != "":
		return grant.Table + ".Arn/index/" + grant.Index
	default:
		return grant.Table + ".Arn"
	}
}

func (tm templates) roleOf(t *testing.T, function resource) role {
	t.Helper()
	for id, r := range tm.service.of("AWS::IAM::Role") {
		if tm.text(function.Properties["Role"]) == generated.ReplaceAllString(id, "")+".Arn" {
			return as[role](t, r.Properties)
		}
	}
	t.Fatalf("%s has no role", folder(function))
	return role{}
}

// allowed lists each action with each resource of a role.
func (tm templates) allowed(t *testing.T, r role) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, policy := range r.Policies {
		for _, s := range policy.PolicyDocument.Statement {
			if s.Effect != "Allow" {
				t.Errorf("got effect %s, want Allow", s.Effect)
			}
			for _, action := range list(s.Action) {
				for _, resource := range list(s.Resource) {
					all[action.(string)+" "+tm.text(resource)] = true
				}
			}
		}
	}
	return all
}

// named matches a resource that is named, or a prefix of the bucket.
var named = regexp.MustCompile(`^\w+\.(Arn|StreamArn)(/index/\w+)?$|^Objects\.Arn/[\w/]+/\*$|^arn:[\w:]+:parley-prod-[\w-]+(-\?{6})?$`)

// nameless are the actions of which IAM knows no resource.
var nameless = []string{"states:SendTaskSuccess", "dynamodb:ListStreams"}

func TestNoPolicyIsWide(t *testing.T) {
	tm := prod(t)

	for _, kind := range []string{"AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"} {
		if found := tm.service.of(kind); len(found) != 0 {
			t.Errorf("got %v, want no %s: a role's policy is within the role", slices.Collect(maps.Keys(found)), kind)
		}
	}
	users := map[string]string{}
	for id, function := range tm.service.of("AWS::Lambda::Function") {
		of := tm.text(function.Properties["Role"])
		if other, shared := users[of]; shared {
			t.Errorf("%s and %s share the role %s", id, other, of)
		}
		users[of] = id
	}
	for id, r := range tm.service.of("AWS::IAM::Role") {
		role := as[role](t, r.Properties)
		if len(role.ManagedPolicyArns) != 0 {
			t.Errorf("%s: got managed policies %v, want none", id, role.ManagedPolicyArns)
		}
		for allowed := range tm.allowed(t, role) {
			action, resource, _ := strings.Cut(allowed, " ")
			if strings.Contains(action, "*") {
				t.Errorf("%s: got action %s, want no wildcard", id, action)
			}
			if !named.MatchString(resource) && !(resource == "*" && slices.Contains(nameless, action)) {
				t.Errorf("%s: got resource %s, want one that is named", id, resource)
			}
		}
	}
}

// inID is a name as CDK writes it in a logical id.
func inID(name string) string { return strings.ReplaceAll(name, "-", "") }
