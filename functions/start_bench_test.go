// Package functions_test times what all functions have in common: their start.
package functions_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"parley/shared/config"
	"parley/shared/emulator"
)

// A function is ready when it first asks its runtime for an event. The time from its
// execution is our part of a cold start, on this machine: Lambda's own comes before it. The
// median counts, as other programs take their share of the machine.
func BenchmarkStart(b *testing.B) {
	const budget = 25 * time.Millisecond
	root, err := emulator.Root()
	if err != nil {
		b.Fatal(err)
	}
	build := exec.Command("make", "-s", "build", "ARCH="+runtime.GOARCH, "OS="+runtime.GOOS)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	all, err := filepath.Glob(filepath.Join(root, "functions", "*", "main.go"))
	if err != nil || len(all) == 0 {
		b.Fatalf("%d functions, %v", len(all), err)
	}
	for _, main := range all {
		name := filepath.Base(filepath.Dir(main))
		b.Run(name, func(b *testing.B) {
			l := newLambda(b)
			var took []time.Duration
			for b.Loop() {
				took = append(took, l.start(b, filepath.Join(root, ".local", "functions", runtime.GOARCH, name, "bootstrap")))
			}
			slices.Sort(took)
			median := took[len(took)/2]
			b.ReportMetric(float64(median)/float64(time.Millisecond), "ms-to-ready")
			if median > budget {
				b.Errorf("ready after %s, want at most %s", median, budget)
			}
		})
	}
}

// lambda is a function's surroundings: its runtime's API, which has no event for it, and
// Secrets Manager, which answers at once.
type lambda struct {
	env   []string
	asked chan time.Time
}

func newLambda(b *testing.B) *lambda {
	b.Helper()
	l := &lambda{asked: make(chan time.Time, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(_ http.ResponseWriter, r *http.Request) {
		l.asked <- time.Now()
		<-r.Context().Done()
	})
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		if target := r.Header.Get("X-Amz-Target"); target != "secretsmanager.GetSecretValue" {
			b.Errorf("%s at the start, want nothing of AWS but secrets", target)
		}
		_, _ = io.WriteString(w, `{"SecretString":"secret"}`)
	})
	server := httptest.NewServer(mux)
	b.Cleanup(server.Close)
	l.env = []string{
		"AWS_LAMBDA_RUNTIME_API=" + server.Listener.Addr().String(), "AWS_ENDPOINT_URL=" + server.URL,
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
	}
	// Whatever a function reads of its environment: 1 is a text, a number and a truth.
	_, err := config.Load(func(name string) string {
		l.env = append(l.env, name+"=1")
		return "1"
	})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// start runs a function until it asks for an event, and says how long that took.
func (l *lambda) start(b *testing.B, program string) time.Duration {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), program)
	cmd.Env, cmd.Stderr = l.env, os.Stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // says that it was killed
	}()
	select {
	case at := <-l.asked:
		return at.Sub(began)
	case <-time.After(10 * time.Second):
		b.Fatal("it doesn't ask for an event")
		return 0
	}
}
