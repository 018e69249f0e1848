package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestWriteStack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stack.json")
	want := stack{
		BaseURL: "http://127.0.0.1:8080", AWSEndpointURL: "http://127.0.0.1:4566", TimeScale: 60,
		demo: demo{
			WorkspaceID: "w", OtherWorkspaceID: "o",
			Keys:       map[string]string{"full": "k"},
			Assistants: map[string]string{"one_number": "a"},
			Numbers:    map[string][]string{"one_number": {"+12025550101"}},
		},
		Settings: settingsAccess{"http://127.0.0.1:8080/settings", "t", "u"},
	}
	if err := writeStack(file, want); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got stack
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("stack.json = %+v, want %+v", got, want)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o600 {
		t.Errorf("mode of stack.json = %v, want 0600, as it holds keys", info.Mode())
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "stack-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestBanner(t *testing.T) {
	got := banner(stack{
		BaseURL: "http://127.0.0.1:8081",
		demo: demo{
			Keys:       map[string]string{"full": "key1", "revoked": "key2"},
			Assistants: map[string]string{"one_number": "assistant1"},
			Numbers:    map[string][]string{"two_numbers": {"+12025550150", "+12025550151"}},
		},
		Settings: settingsAccess{BaseURL: "http://127.0.0.1:8081/settings", Token: "token1"},
	})
	for _, want := range []string{"http://127.0.0.1:8081 ", "full            key1\n", "revoked         key2\n", "KEY=key1\n", "SETTINGS=http://127.0.0.1:8081/settings TOKEN=token1\n", "curl ", `"assistant_id": "assistant1"`, `"to": "+12025550150"`} {
		if !strings.Contains(got, want) {
			t.Errorf("banner lacks %q:\n%s", want, got)
		}
	}
}
