package settings_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/dynamo/dynamotest"
	"parley/shared/httpapi"
	"parley/shared/settings"
)

var update = flag.Bool("update", false, "rewrite the golden files under testdata")

// document is the OpenAPI document as the service gives it: that of all endpoints.
func document(t *testing.T) []byte {
	t.Helper()
	store := dynamotest.Store(t)
	ws := conversation.WorkspaceID(conversation.NewID())
	if err := store.Define(t.Context(), dynamo.Definition{}, dynamo.Definition{Workspace: conversation.Workspace{WorkspaceID: ws}}, "0"); err != nil {
		t.Fatal(err)
	}
	_, key, err := settings.CreateAPIKey(t.Context(), store, settings.NewAPIKey{WorkspaceID: ws}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	handler := httpapi.DefaultHandler(httpapi.Service{Store: store, BaseURL: "https://api.example.com"}, append(httpapi.Routes(), settings.Routes()...))
	r := httptest.NewRequest("GET", "/open-api", nil)
	r.Header.Set("Authorization", "Bearer "+key)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	var text bytes.Buffer
	if err := json.Indent(&text, w.Body.Bytes(), "", "  "); err != nil {
		t.Fatalf("%d: %v", w.Code, err)
	}
	return text.Bytes()
}

func TestOpenAPI(t *testing.T) {
	got := document(t)
	path := filepath.Join("testdata", "openapi.json")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expected, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(expected), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("%s has changed: look, and run the test with -update if it should (-want +got):\n%s", path, diff)
	}
	parsed, err := libopenapi.NewDocument(got)
	if err != nil {
		t.Fatal(err)
	}
	v, errs := validator.NewValidator(parsed)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if ok, errs := v.ValidateDocument(); !ok {
		t.Errorf("no OpenAPI 3.1: %v", errs)
	}
}

// What clients are generated from has every endpoint of the settings, for users, not keys.
func TestOpenAPIOfEveryRoute(t *testing.T) {
	var got struct {
		Paths map[string]map[string]struct {
			OperationID, Summary string
			Tags                 []string
			Security             []map[string][]string
			Responses            map[string]struct{ Headers map[string]any }
		}
		Components struct {
			Schemas map[string]struct{ AdditionalProperties any }
		}
	}
	if err := json.Unmarshal(document(t), &got); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, route := range settings.Routes() {
		op, ok := got.Paths[route.Path][strings.ToLower(route.Method)]
		if !ok || op.OperationID == "" || seen[op.OperationID] || op.Summary == "" || !slices.Equal(op.Tags, []string{"Settings"}) {
			t.Errorf("%s %s: %+v, want it with an id of its own, a summary and the tag", route.Method, route.Path, op)
		}
		seen[op.OperationID] = true
		if len(op.Security) != 1 || op.Security[0]["id_token"] == nil {
			t.Errorf("%s: security %v, want an ID token", op.OperationID, op.Security)
		}
		for _, status := range []string{"400", "401", "500"} {
			if _, ok := op.Responses[status]; !ok {
				t.Errorf("%s: no response %s", op.OperationID, status)
			}
		}
		for status, response := range op.Responses {
			if _, limited := response.Headers["RateLimit"]; limited || status == "429" || status == "422" {
				t.Errorf("%s: response %s with %v, want no limits", op.OperationID, status, response.Headers)
			}
		}
	}
	readable := regexp.MustCompile(`^[A-Z][A-Za-z]+$`)
	for name, schema := range got.Components.Schemas {
		if !readable.MatchString(name) || strings.Contains(name, "Resource") {
			t.Errorf("schema %s: no name for a client", name)
		}
		if !strings.Contains(name, "Request") && schema.AdditionalProperties == false {
			t.Errorf("schema %s is closed: no field could be added", name)
		}
	}
}
