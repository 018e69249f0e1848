package main

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadStage(t *testing.T) {
	tests := map[string]struct {
		context map[string]any
		want    Stage
		wantErr []string // substrings; none: no error
	}{
		"name only":       {context: map[string]any{"stage": "prod"}, want: Stage{Name: "prod", TimeScale: 1, TurnConcurrency: 2, DeliveryConcurrency: 5}},
		"base URL":        {context: map[string]any{"stage": "p-1", "baseUrl": "https://api.example.com"}, want: Stage{Name: "p-1", BaseURL: "https://api.example.com", TimeScale: 1, TurnConcurrency: 2, DeliveryConcurrency: 5}},
		"more context":    {context: map[string]any{"stage": "prod", "timeScale": "60", "other": true}, want: Stage{Name: "prod", TimeScale: 60, TurnConcurrency: 2, DeliveryConcurrency: 5}},
		"deliveries":      {context: map[string]any{"stage": "prod", "deliveryConcurrency": "50"}, want: Stage{Name: "prod", TimeScale: 1, TurnConcurrency: 2, DeliveryConcurrency: 50, ReserveDeliveries: true}},
		"no name":         {context: map[string]any{}, wantErr: []string{`context stage: got ""`}},
		"upper case":      {context: map[string]any{"stage": "Prod"}, wantErr: []string{`context stage: got "Prod"`}},
		"dash at the end": {context: map[string]any{"stage": "prod-"}, wantErr: []string{`context stage`}},
		"17 characters":   {context: map[string]any{"stage": "abcdefghijklmnopq"}, wantErr: []string{`context stage`}},
		"number":          {context: map[string]any{"stage": 1}, wantErr: []string{"context stage: got 1, want a string"}},
		"everything wrong": {
			context: map[string]any{"stage": "a_b", "baseUrl": "api.example.com", "timeScale": "0", "deliveryConcurrency": 1, "turnConcurrency": "x"},
			wantErr: []string{`context stage: got "a_b"`, `context baseUrl: got "api.example.com"`, "context timeScale: got 0", "context deliveryConcurrency: got 1", "context turnConcurrency: got x"},
		},
		"base URL with a query": {context: map[string]any{"stage": "prod", "baseUrl": "https://api.example.com?a=b"}, wantErr: []string{"context baseUrl"}},
		"base URL of a file":    {context: map[string]any{"stage": "prod", "baseUrl": "file://host/path"}, wantErr: []string{"context baseUrl"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := readStage(newApp(t, tt.context).Node(), "")
			if tt.wantErr == nil && (err != nil || got != tt.want) {
				t.Errorf("readStage = %+v, %v, want %+v", got, err, tt.want)
			}
			for _, want := range tt.wantErr {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("readStage error = %v, want %q in it", err, want)
				}
			}
		})
	}
}

func TestMissingFunctionsAreNamed(t *testing.T) {
	_, err := newStacks(newApp(t, map[string]any{"stage": "prod"}), t.TempDir())
	for _, want := range []string{"get-call,", "list-assistants", "arm64", "run `make build`"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("newStacks error = %v, want %q in it", err, want)
		}
	}
}

// The local stack is the one that goes to AWS, but for what an emulator can't have.
func TestLocalDiffersOnlyWhereMeant(t *testing.T) {
	baseURL := "https://api.example.com"
	onAWS := flatten(synth(t, map[string]any{"stage": "prod", "baseUrl": baseURL}))
	here := flatten(synth(t, map[string]any{"stage": "local", "baseUrl": baseURL, "timeScale": "60"}))

	for path := range here {
		if onAWS[path] == strings.ReplaceAll(here[path], "parley-local", "parley-prod") {
			delete(onAWS, path)
			delete(here, path)
		}
	}
	for path := range onAWS {
		switch {
		case strings.HasPrefix(path, "data.Resources.ObjectsPolicy"): // enforces TLS
		case strings.Contains(path, ".Architectures."): // the machine's own
		case strings.HasSuffix(path, ".TIME_SCALE"):
		case strings.HasSuffix(path, "webhookretry.Properties.DefinitionString"): // its waits
		case strings.HasSuffix(path, ".LOOPBACK_WEBHOOKS"):
		default:
			t.Errorf("%s = %q, local %q", path, onAWS[path], here[path])
		}
	}
	for path := range here {
		if _, ok := onAWS[path]; !ok {
			t.Errorf("%s = %q, only local", path, here[path])
		}
	}
}

func TestLocalFitsTheMachine(t *testing.T) {
	tm := synth(t, map[string]any{"stage": "local"})
	if policies := tm.data.of("AWS::S3::BucketPolicy"); len(policies) != 0 {
		t.Errorf("got bucket policies %v, want none: an emulator has no TLS", policies)
	}
	want := map[string]string{"amd64": "x86_64", "arm64": "arm64"}[runtime.GOARCH]
	for id, function := range tm.service.of("AWS::Lambda::Function") {
		if got := tm.text(list(function.Properties["Architectures"])[0]); got != want {
			t.Errorf("%s: got architecture %s, want %s", id, got, want)
		}
	}
}

// flatten lists every value of the templates by its path.
func flatten(tm templates) map[string]string {
	flat := map[string]string{}
	var walk func(path string, value reflect.Value)
	walk = func(path string, value reflect.Value) {
		for value.Kind() == reflect.Interface {
			value = value.Elem()
		}
		switch value.Kind() {
		case reflect.Map:
			for _, key := range value.MapKeys() {
				walk(path+"."+key.String(), value.MapIndex(key))
			}
		case reflect.Slice:
			for i := range value.Len() {
				walk(fmt.Sprintf("%s.%d", path, i), value.Index(i))
			}
		case reflect.Struct:
			for i := range value.NumField() {
				walk(path+"."+value.Type().Field(i).Name, value.Field(i))
			}
		default:
			flat[path] = fmt.Sprint(value)
		}
	}
	walk("data", reflect.ValueOf(tm.data))
	walk("service", reflect.ValueOf(tm.service))
	return flat
}

func TestOutputs(t *testing.T) {
	tm := prod(t)
	got := map[string]string{}
	for _, outputs := range []map[string]stackOutput{tm.data.Outputs, tm.service.Outputs} {
		for id, out := range outputs {
			if out.Export.Name == "" {
				got[id] = tm.text(out.Value)
			}
		}
	}
	want := map[string]string{
		"ConversationsTable": "Conversations",
		"WorkspacesTable":    "Workspaces",
		"DeliveriesTable":    "Deliveries",
		"CountersTable":      "Counters",
		"Bucket":             "Objects",
		"UserPool":           "Users",
		"UserPoolClient":     "UsersClient",
		"ApiUrl":             "Api.ApiEndpoint",
		"ApiId":              "Api",
		"Alarms":             "AlarmTopic",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
}
