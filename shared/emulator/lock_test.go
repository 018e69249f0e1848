package emulator

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "lock")
	held, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(path); !errors.Is(err, ErrLocked) {
		t.Errorf("TryLock of a held lock: %v, want %v", err, ErrLocked)
	}
	waited := make(chan error)
	go func() {
		lock, err := WaitLock(t.Context(), path)
		if err == nil {
			lock.Unlock()
		}
		waited <- err
	}()
	held.Unlock()
	if err := <-waited; err != nil {
		t.Errorf("WaitLock: %v", err)
	}
}
