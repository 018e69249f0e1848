package emulator

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// A Leash holds a group of processes, which ends with the process that made it: on
// Release, and just as well when that process is killed and can't clean up.
//
// The group's leader is a shell that reads from a pipe, whose other end only we
// hold. However we end, the kernel closes our end, and the shell kills its group.
type Leash struct {
	keeper *exec.Cmd
	pipe   io.Closer
}

// NewLeash makes an empty group.
func NewLeash() (*Leash, error) {
	keeper := exec.Command("/bin/sh", "-c", "read -r _; kill -9 0")
	keeper.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := keeper.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("make a process group: %w", err)
	}
	if err := keeper.Start(); err != nil {
		return nil, fmt.Errorf("make a process group: %w", err)
	}
	return &Leash{keeper: keeper, pipe: pipe}, nil
}

// Start starts cmd in the group, where its own children will be as well.
func (l *Leash) Start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: l.keeper.Process.Pid}
	return cmd.Start()
}

// Release kills what is left of the group. It may be called again.
func (l *Leash) Release() {
	l.pipe.Close()
	_ = l.keeper.Wait() // it kills itself too, so this is always an error
}

// Run runs cmd on a leash of its own: when it has ended, nothing that it started is left.
func Run(cmd *exec.Cmd) error {
	leash, err := NewLeash()
	if err != nil {
		return err
	}
	defer leash.Release()
	if err := leash.Start(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}
