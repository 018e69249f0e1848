package e2e

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"parley/shared/conversation"
	"parley/shared/httpapi"
)

// A function can do its own work with its own role, and no other's. So the answers of all
// these tests come from functions that have what they need, and little else.
func TestRoles(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	n.fill(t)
	tests := []struct {
		code   httpapi.Route
		path   string
		role   httpapi.Route
		denied string // empty: allowed
	}{
		{httpapi.ListCalls, "/v1/calls", httpapi.ListCalls, ""},
		{httpapi.ListCalls, "/v1/calls", httpapi.ListThreads, ""}, // the same rights
		{httpapi.ListCalls, "/v1/calls", httpapi.GetCall, "dynamodb:Query"},
		{httpapi.ListCalls, "/v1/calls", httpapi.ListAssistants, "dynamodb:Query"}, // on another table
		{httpapi.ListAssistants, "/v1/assistants", httpapi.GetOpenAPI, "dynamodb:Query"},
		{httpapi.GetMessage, "/v1/messages/" + string(messageID), httpapi.ListMessages, "dynamodb:GetItem"},
	}
	for _, tt := range tests {
		t.Run(tt.code.Function+" as "+tt.role.Function, func(t *testing.T) {
			answer, log := invokeAs(t, tt.code, tt.role, n.key, tt.path)
			if tt.denied == "" {
				if answer.StatusCode != http.StatusOK || !strings.Contains(answer.Body, string(n.ws)) {
					t.Errorf("%d %s, want 200; it logged %s", answer.StatusCode, answer.Body, log)
				}
				return
			}
			var got problem
			if err := json.Unmarshal([]byte(answer.Body), &got); err != nil || answer.StatusCode != http.StatusInternalServerError || got.Code != "internal_error" {
				t.Errorf("%d %s, want 500 internal_error", answer.StatusCode, answer.Body)
			}
			if strings.Contains(answer.Body, "dynamodb") || strings.Contains(answer.Body, "Denied") {
				t.Errorf("the client sees the cause: %s", answer.Body)
			}
			if !strings.Contains(log, "AccessDenied") || !strings.Contains(log, tt.denied) {
				t.Errorf("it logged %s; want that %s is denied", log, tt.denied)
			}
		})
	}
}

// invokeAs runs a function's code with the role of another, in a function of its own
// that is gone afterwards, and returns what it answers and logs.
func invokeAs(t *testing.T, code, role httpapi.Route, k key, path string) (answer events.APIGatewayV2HTTPResponse, log string) {
	t.Helper()
	client := lambda.NewFromConfig(deployed(t).aws)
	original, lender := function(t, client, code), function(t, client, role)
	name := "e2e-" + conversation.NewID()
	_, err := client.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
		FunctionName: &name, Role: lender.Configuration.Role,
		Code:    &types.FunctionCode{ZipFile: codeOf(t, original)},
		Runtime: original.Configuration.Runtime, Handler: original.Configuration.Handler, Architectures: original.Configuration.Architectures,
		Environment: &types.Environment{Variables: original.Configuration.Environment.Variables},
		Timeout:     original.Configuration.Timeout,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := client.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: &name}); err != nil {
			t.Error(err)
		}
	}()
	event := events.APIGatewayV2HTTPRequest{Version: "2.0", RawPath: path, Headers: map[string]string{"authorization": k.header()}}
	event.RequestContext.HTTP.Method, event.RequestContext.HTTP.Path = http.MethodGet, path
	payload, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	// On a busy machine the emulator may log a line with the next invocation only.
	for range 20 {
		out, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &name, Payload: payload, LogType: types.LogTypeTail})
		if err != nil {
			t.Fatal(err)
		}
		text, err := base64.StdEncoding.DecodeString(aws.ToString(out.LogResult))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out.Payload, &answer); err != nil {
			t.Fatalf("%v: %s", err, out.Payload)
		}
		if log = string(text); log != "" || answer.StatusCode == http.StatusOK {
			break
		}
	}
	return answer, log
}

func function(t *testing.T, client *lambda.Client, route httpapi.Route) *lambda.GetFunctionOutput {
	t.Helper()
	out, err := client.GetFunction(t.Context(), &lambda.GetFunctionInput{FunctionName: aws.String("parley-local-" + route.Function)})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// codeOf downloads a function's zip.
func codeOf(t *testing.T, f *lambda.GetFunctionOutput) []byte {
	t.Helper()
	res, err := http.Get(aws.ToString(f.Code.Location))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := zip.NewReader(bytes.NewReader(text), int64(len(text))); err != nil {
		t.Fatalf("%s: %v: %.200s", aws.ToString(f.Code.Location), err, text)
	}
	return text
}
