package main

import (
	"errors"
	"flag"
	"strings"
	"testing"
)

func TestRunRefuses(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"a file that isn't there":   {[]string{"apply", "nowhere.yaml", "--stage", "local"}, "nowhere.yaml"},
		"no stage":                  {[]string{"apply", "f.yaml"}, "apply needs one file and --stage"},
		"no file":                   {[]string{"apply", "--stage", "local"}, "apply needs one file and --stage"},
		"two files":                 {[]string{"apply", "a.yaml", "--stage", "local", "b.yaml"}, "apply needs one file and --stage"},
		"an unknown flag":           {[]string{"apply", "f.yaml", "--stag", "local"}, "-stag"},
		"a key without a label":     {[]string{"key", "--stage", "local", "--workspace", "w"}, "key needs --stage, --workspace and --label"},
		"a key of a stray argument": {[]string{"key", "x", "--stage", "s", "--workspace", "w", "--label", "l"}, "nothing that is no flag"},
		"a user without an email":   {[]string{"user", "--stage", "local", "--workspace", "w"}, "user needs --stage, --workspace and --email"},
		"a key of unknown blocks":   {[]string{"key", "--stage", "s", "--workspace", "w", "--label", "l", "--blocks", "calls"}, `unknown block "calls"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), tt.args); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("run = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestRunHelps(t *testing.T) {
	for _, args := range [][]string{nil, {"help"}, {"apply", "-h"}, {"key", "--help"}} {
		if err := run(t.Context(), args); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("run(%q) = %v, want flag.ErrHelp", args, err)
		}
	}
}
