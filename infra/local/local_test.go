package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestClaimTwice(t *testing.T) {
	opts := options{stackFile: filepath.Join(t.TempDir(), "stack.json")}
	first, err := claim(opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claim(opts); err == nil || !strings.Contains(err.Error(), "make run is up already") {
		t.Errorf("second claim: %v, want one that says that it is up already", err)
	}
	first.close()
	again, err := claim(opts)
	if err != nil {
		t.Fatalf("claim after close: %v", err)
	}
	again.close()
}

// A claim that fails at the port leaves the stack file to others.
func TestClaimTakenPort(t *testing.T) {
	listener, err := listen(0)
	if err != nil {
		t.Fatal(err)
	}
	opts := options{stackFile: filepath.Join(t.TempDir(), "stack.json"), port: listener.Addr().(*net.TCPAddr).Port}
	if _, err := claim(opts); err == nil {
		t.Fatal("claim of a taken port: no error")
	}
	listener.Close()
	l, err := claim(opts)
	if err != nil {
		t.Fatalf("claim of the port that is free again: %v", err)
	}
	l.close()
}

func TestTidy(t *testing.T) {
	l := &local{options: options{stackFile: filepath.Join(t.TempDir(), "stack.json")}}
	old := filepath.Join(l.work(), "old")
	for range 2 {
		if err := l.tidy(); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{l.stackFile, old} {
			if _, err := os.Stat(file); err == nil {
				t.Errorf("%s is still there", file)
			}
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestPerform(t *testing.T) {
	broken := errors.New("broken")
	var out strings.Builder
	var done []string
	do := func(name string, err error) step {
		return step{name, func(context.Context) error { done = append(done, name); return err }}
	}
	err := perform(t.Context(), &out, []step{do("first", nil), do("second", broken), do("third", nil)})
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "second: ") {
		t.Errorf("perform = %v, want the error of the second step", err)
	}
	if got := strings.Join(done, " "); got != "first second" {
		t.Errorf("done: %s, want first second", got)
	}
	if !strings.Contains(out.String(), " failed\n") {
		t.Errorf("shown: %q, want which failed", out.String())
	}
}

func TestLook(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	l := &local{options: options{endpoint: server.URL}}
	if err := l.look(t.Context()); err != nil {
		t.Errorf("look at a server: %v", err)
	}
	server.Close()
	if err := l.look(t.Context()); err == nil || !strings.Contains(err.Error(), "AWS_ENDPOINT_URL") {
		t.Errorf("look where nobody is: %v, want an error that names AWS_ENDPOINT_URL", err)
	}
}
