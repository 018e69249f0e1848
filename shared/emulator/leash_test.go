package emulator

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// family starts a grandchild that would stay, says so, and waits for it.
const family = `sleep 1000 & echo started; wait`

func TestLeashRelease(t *testing.T) {
	leash, err := NewLeash()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", family)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := leash.Start(cmd); err != nil {
		t.Fatal(err)
	}
	reader := awaitStart(t, out)
	leash.Release()
	leash.Release()
	awaitEnd(t, reader)
	_ = cmd.Wait()
}

func TestLeashWhenKilled(t *testing.T) {
	if os.Getenv("RUN_FAMILY") != "" {
		cmd := exec.Command("/bin/sh", "-c", family)
		cmd.Stdout = os.Stdout
		t.Fatal(Run(cmd))
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestLeashWhenKilled$")
	cmd.Env = append(os.Environ(), "RUN_FAMILY=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reader := awaitStart(t, out)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, reader)
	_ = cmd.Wait()
}

// What a command leaves running when it ends is ended too.
func TestRun(t *testing.T) {
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command("/bin/sh", "-c", "sleep 1000 & echo started")
	cmd.Stdout = in
	if err := Run(cmd); err != nil {
		t.Fatal(err)
	}
	in.Close()
	awaitEnd(t, awaitStart(t, out))
}

func awaitStart(t *testing.T, out io.Reader) *bufio.Reader {
	t.Helper()
	reader := bufio.NewReader(out)
	if line, err := reader.ReadString('\n'); err != nil || line != "started\n" {
		t.Fatalf("got %q, %v; want started", line, err)
	}
	return reader
}

// awaitEnd awaits the end of the output, which comes when no process has it open any more.
func awaitEnd(t *testing.T, out io.Reader) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, out)
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("a process is still there")
	}
}
