package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCommandFails(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("of an earlier command\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := command{dir: t.TempDir(), log: log}
	err := c.run(t.Context(), "/bin/sh", "-c", "seq 1 99; echo the reason >&2; exit 3")
	if err == nil {
		t.Fatal("run of a failing command: no error")
	}
	for _, want := range []string{"sh: exit status 3", "\n99\nthe reason\n", log} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
	for _, no := range []string{"\n50\n", "earlier"} {
		if strings.Contains(err.Error(), no) {
			t.Errorf("error has %q:\n%v", no, err)
		}
	}
}

func TestCommandStops(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	c := command{dir: t.TempDir(), log: filepath.Join(t.TempDir(), "log")}
	began := time.Now()
	err := c.run(ctx, "/bin/sh", "-c", "sleep 1000 & wait")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("run = %v, want %v", err, context.DeadlineExceeded)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("run took %v to stop", took)
	}
}

func TestEnvironLeadsToTheEmulator(t *testing.T) {
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value) // which undoes what forgetAWS does
	}
	t.Setenv("AWS_PROFILE", "production")
	t.Setenv("AWS_ENDPOINT_URL_S3", "https://elsewhere")
	t.Setenv("MAKEFLAGS", "-j")
	forgetAWS()
	l := &local{options: options{root: "/repo", stackFile: "/repo/.local/stack.json"}, stack: stack{AWSEndpointURL: "http://127.0.0.1:4566"}}
	env := strings.Join(l.command("/repo").env, "\n")
	for _, no := range []string{"production", "elsewhere", "MAKEFLAGS"} {
		if strings.Contains(env, no) {
			t.Errorf("environment has %q", no)
		}
	}
	if want := "\nAWS_ENDPOINT_URL=http://127.0.0.1:4566\n"; !strings.Contains(env, want) {
		t.Errorf("environment lacks %q", want)
	}
	cfg, err := l.aws(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if cfg.BaseEndpoint == nil || *cfg.BaseEndpoint != "http://127.0.0.1:4566" {
		t.Errorf("clients' endpoint = %v, want the emulator's", cfg.BaseEndpoint)
	}
}
