package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckNode(t *testing.T) {
	tests := map[string]struct {
		node string // prints; empty: there is none
		npm  bool
		want string // in the error; empty: no error
	}{
		"missing":     {"", true, "node is missing: install Node.js 20"},
		"too old":     {"v18.20.4", true, "node is version 18.20.4: install Node.js 20"},
		"odd":         {"what?", true, "install Node.js 20"},
		"without npm": {"v20.0.0", false, "npm is missing: install"},
		"suitable":    {"v20.0.0", true, ""},
		"newer":       {"v110.1.2", true, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			t.Setenv("PATH", bin)
			if tt.node != "" {
				program(t, filepath.Join(bin, "node"), "echo '"+tt.node+"'")
			}
			if tt.npm {
				program(t, filepath.Join(bin, "npm"), "")
			}
			err := checkNode(t.Context())
			if tt.want == "" && err != nil {
				t.Errorf("checkNode = %v, want none", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("checkNode = %v, want one with %q", err, tt.want)
			}
		})
	}
}

func program(t *testing.T, path, script string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}
