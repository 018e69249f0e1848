package emulator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrLocked says that another process holds the lock.
var ErrLocked = errors.New("held by another process")

// A Lock is a locked file. The kernel lets go of it when its process ends, however
// it ends, so a lock is never stale.
type Lock struct{ file *os.File }

// TryLock locks the file at path, which it makes, or returns ErrLocked.
func TryLock(path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &Lock{file}, nil
}

// WaitLock locks the file at path, which it makes, as soon as its holder lets go. It
// asks again and again, as nothing could end a flock that waits.
func WaitLock(ctx context.Context, path string) (*Lock, error) {
	for {
		lock, err := TryLock(path)
		if !errors.Is(err, ErrLocked) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Unlock lets go. The file stays: removing it would let two processes hold a lock
// of the same name.
func (l *Lock) Unlock() { l.file.Close() }
