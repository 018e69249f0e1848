package main

import (
	"bytes"
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
		"no stage":            {nil, "needs --stage"},
		"a stray argument":    {[]string{"--stage", "s", "x"}, "nothing that is no flag"},
		"an unknown flag":     {[]string{"--stag", "s"}, "-stag"},
		"an unknown function": {[]string{"--stage", "s", "--function", "sweep"}, "want one of publish-events, start-lifecycles"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := run(t.Context(), tt.args, &out); err == nil || !strings.Contains(err.Error(), tt.want) || out.Len() > 0 {
				t.Errorf("run = %v, printed %q; want the error %q", err, out.String(), tt.want)
			}
		})
	}
}

func TestRunHelps(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, &out); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("run = %v, want flag.ErrHelp", err)
	}
}
