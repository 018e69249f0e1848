package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
)

func TestMain(m *testing.M) {
	code := m.Run()
	jsii.Close()
	os.Exit(code)
}

// A template is what a stack becomes.
type template struct {
	Resources map[string]resource
	Outputs   map[string]stackOutput
}

type resource struct {
	Type                string
	Properties          map[string]any
	DeletionPolicy      string
	UpdateReplacePolicy string
}

type stackOutput struct {
	Value  any
	Export struct{ Name string }
}

// templates are those of one stage.
type templates struct{ data, service template }

// prod returns the templates that most tests look at, made once.
var prod = func() func(*testing.T) templates {
	var once sync.Once
	var made templates
	return func(t *testing.T) templates {
		once.Do(func() { made = synth(t, map[string]any{"stage": "prod"}) })
		return made
	}
}()

// synth makes the templates of a stage, with functions that hold nothing.
func synth(t *testing.T, context map[string]any) templates {
	t.Helper()
	made, err := newStacks(newApp(t, context), build(t))
	if err != nil {
		t.Fatal(err)
	}
	return templates{parse(t, made.data), parse(t, made.service)}
}

func newApp(t *testing.T, context map[string]any) awscdk.App {
	return awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(t.TempDir()), Context: &context})
}

// build makes a folder like that of the built functions.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for arch := range architectures {
		for _, f := range functions() {
			name := filepath.Join(dir, arch, f.name, "bootstrap")
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, nil, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func parse(t *testing.T, stack awscdk.Stack) template {
	t.Helper()
	data, err := json.Marshal(assertions.Template_FromStack(stack, nil).ToJSON())
	if err != nil {
		t.Fatal(err)
	}
	return decode[template](t, data)
}

func decode[T any](t *testing.T, data []byte) T {
	t.Helper()
	var value T
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// as reads part of a template into T.
func as[T any](t *testing.T, part any) T {
	t.Helper()
	data, err := json.Marshal(part)
	if err != nil {
		t.Fatal(err)
	}
	return decode[T](t, data)
}

// of returns the resources of a type.
func (tm template) of(kind string) map[string]resource {
	found := map[string]resource{}
	for id, r := range tm.Resources {
		if r.Type == kind {
			found[id] = r
		}
	}
	return found
}

// generated is what CDK appends to a name that is unique in its stack.
var generated = regexp.MustCompile(`[0-9A-F]{8}$`)

// text writes a value with its references as names: "Conversations.Arn/index/open".
func (tm templates) text(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case map[string]any:
		for function, argument := range value {
			switch function {
			case "Ref":
				return generated.ReplaceAllString(argument.(string), "")
			case "Fn::GetAtt":
				of := argument.([]any)
				return generated.ReplaceAllString(of[0].(string), "") + "." + of[1].(string)
			case "Fn::ImportValue":
				return tm.exported(argument.(string))
			case "Fn::Join":
				var joined strings.Builder
				for _, part := range argument.([]any)[1].([]any) {
					joined.WriteString(tm.text(part))
				}
				return joined.String()
			}
		}
	}
	return fmt.Sprintf("%v", value)
}

func (tm templates) exported(name string) string {
	for _, out := range tm.data.Outputs {
		if out.Export.Name == name {
			return tm.text(out.Value)
		}
	}
	return "not exported: " + name
}

// list reads what a template shows as one value or as several.
func list(value any) []any {
	if values, ok := value.([]any); ok {
		return values
	}
	return []any{value}
}
