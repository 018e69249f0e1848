package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"parley/shared/emulator"
)

// local is a stack that these tests started. It ends with them, however they end: the
// leash kills it when this process is gone, and it holds its own children likewise.
type local struct {
	lock  *emulator.Lock
	leash *emulator.Leash
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

func startLocal(ctx context.Context, root, file string) (*local, error) {
	// One run at a time in a checkout, and not before a stack that was killed is gone.
	lock, err := emulator.WaitLock(ctx, filepath.Join(root, ".local", "e2e.lock"))
	if err != nil {
		return nil, err
	}
	earlier, err := emulator.WaitLock(ctx, file+".lock")
	if err != nil {
		return nil, err
	}
	earlier.Unlock()
	if err := buildLocal(ctx, root); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(file); err != nil { // what is there is an earlier stack's
		return nil, err
	}
	l := &local{lock: lock, log: filepath.Join(root, ".local", "e2e.log"), ended: make(chan struct{})}
	// A file, as go test waits for the end of a pipe that it shares with a child.
	log, err := os.Create(l.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	l.cmd = exec.Command(filepath.Join(root, ".local", "bin", "local"), "-stack", file)
	l.cmd.Env = append(os.Environ(), "FAST=1", "PORT=0")
	l.cmd.Stdout, l.cmd.Stderr = log, log
	if l.leash, err = emulator.NewLeash(); err != nil {
		return nil, err
	}
	if err := l.leash.Start(l.cmd); err != nil {
		l.leash.Release()
		return nil, err
	}
	go func() {
		_ = l.cmd.Wait() // how it ended is in its log
		close(l.ended)
	}()
	return l, nil
}

// buildLocal builds the program behind `make run`.
func buildLocal(ctx context.Context, root string) error {
	lock, err := emulator.WaitLock(ctx, filepath.Join(root, ".local", "build.lock"))
	if err != nil {
		return err
	}
	defer lock.Unlock()
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(root, ".local", "bin")+"/", "./infra/local")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// awaitFile waits for the file that the stack writes when it is up.
func (l *local) awaitFile(ctx context.Context, file string) error {
	for {
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		select {
		case <-l.ended:
			text, _ := os.ReadFile(l.log)
			return fmt.Errorf("it has ended, and said:\n%s", text)
		case <-ctx.Done():
			text, _ := os.ReadFile(l.log)
			return fmt.Errorf("%w; so far it said:\n%s", ctx.Err(), text)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// end asks the stack to end, then kills what is left of it.
func (l *local) end() {
	_ = l.cmd.Process.Signal(syscall.SIGTERM) // it fails if the stack has ended
	select {
	case <-l.ended:
	case <-time.After(20 * time.Second):
	}
	l.leash.Release()
	l.lock.Unlock()
}
