package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"parley/shared/emulator"
)

// A command is where and how programs run.
type command struct {
	dir string
	env []string
	log string // file that their output is added to
}

// run runs a program to its end. The end of what it said is in the error. When ctx is
// done, the program is asked to end, and soon killed with all that it started.
func (c command) run(ctx context.Context, name string, args ...string) error {
	return c.runInto(ctx, nil, name, args...)
}

// runInto does so with a program whose output is an answer, and not for the log.
func (c command) runInto(ctx context.Context, answer io.Writer, name string, args ...string) error {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Fprintf(log, "\n$ %s %s\n", name, strings.Join(args, " "))
	begin, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	cmd.Stdout, cmd.Stderr = log, log
	if answer != nil {
		cmd.Stdout = answer
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 3 * time.Second
	if err := emulator.Run(cmd); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%s: %w\n%s\nAll that it said is in %s", filepath.Base(name), err, lastLines(log, begin), c.log)
	}
	return nil
}

const mostLines = 30

func lastLines(file *os.File, from int64) string {
	text, err := io.ReadAll(io.NewSectionReader(file, from, 1<<20))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-mostLines):], "\n")
}

// command is one of this stack, run in dir. It sees our environment without make's own
// variables, which are not for a make that it may run.
func (l *local) command(dir string) command {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "MAKE") || strings.HasPrefix(entry, "MFLAGS")
	})
	env = append(env, l.awsEnviron()...)
	env = append(env,
		"CDK_DEFAULT_ACCOUNT="+account,
		"CDK_DEFAULT_REGION="+region,
		"CDK_HOME="+filepath.Join(l.root, ".local", "cdk", "home"),
		"CDK_DISABLE_CLI_TELEMETRY=1",
		"JSII_RUNTIME_PACKAGE_CACHE_ROOT="+filepath.Join(l.root, ".local", "jsii"),
		"JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=20",
		"NODE_NO_WARNINGS=1",
		"TMPDIR="+l.work(), // a killed CDK leaves files behind
	)
	return command{dir: dir, env: env, log: filepath.Join(l.work(), "commands.log")}
}
