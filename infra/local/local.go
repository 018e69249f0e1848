package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"parley/shared/emulator"
)

// A local is the stack from its start to its end.
type local struct {
	options
	stack    stack
	outputs  outputs
	lock     *emulator.Lock
	listener net.Listener       // of the API; it accepts nobody before serve
	emulator *emulator.Emulator // nil with an endpoint of somebody else
	receiver *emulator.Leash    // of webhooks
}

// claim takes what no other run may have: the stack file and the port.
func claim(opts options) (*local, error) {
	lock, err := emulator.TryLock(opts.stackFile + ".lock")
	if errors.Is(err, emulator.ErrLocked) {
		return nil, fmt.Errorf("make run is up already, or starting: use it (%s says where) or end it first", opts.stackFile)
	}
	if err != nil {
		return nil, err
	}
	l := &local{options: opts, lock: lock}
	if l.listener, err = listen(opts.port); err != nil {
		l.close()
		return nil, err
	}
	l.stack = stack{
		BaseURL:        "http://" + l.listener.Addr().String(),
		AWSEndpointURL: opts.endpoint,
		TimeScale:      opts.timeScale,
	}
	return l, nil
}

// start brings the stack up, step by step.
func (l *local) start(ctx context.Context) error {
	if err := l.tidy(); err != nil {
		return err
	}
	// What is built and installed belongs to all runs in this checkout.
	lock, err := emulator.WaitLock(ctx, filepath.Join(l.root, ".local", "build.lock"))
	if err != nil {
		return err
	}
	defer lock.Unlock()
	aws := step{"start the emulator of AWS", l.emulate}
	if l.endpoint != "" {
		aws = step{"ask for AWS at " + l.endpoint, l.look}
	}
	return perform(ctx, os.Stdout, []step{
		{"build, and install what is missing", l.prepare},
		aws,
		{"bootstrap it for the CDK", l.bootstrap},
		{"deploy the stacks", l.deploy},
		{"apply the demo workspaces", l.applyWorkspaces},
		{"fill them with demo data", l.fill},
		{"make users, and sign in", l.signIn},
		{"start the sample receiver of webhooks", l.receive},
	})
}

// tidy removes what an earlier run left, in particular one that was killed.
func (l *local) tidy() error {
	if err := os.RemoveAll(l.work()); err != nil {
		return err
	}
	if err := os.RemoveAll(l.stackFile); err != nil {
		return err
	}
	return os.MkdirAll(l.work(), 0o755)
}

// prepare builds and installs at once: the one computes, the other downloads.
func (l *local) prepare(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return install(ctx, l.root) })
	group.Go(func() error { return l.build(ctx) })
	return group.Wait()
}

// look sees whether anybody answers at an endpoint that isn't ours.
func (l *local) look(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.endpoint, nil)
	if err != nil {
		return fmt.Errorf("AWS_ENDPOINT_URL: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%w; start what listens there, or leave AWS_ENDPOINT_URL unset", err)
	}
	return res.Body.Close()
}

// emulate starts an emulator of ours.
func (l *local) emulate(ctx context.Context) error {
	log, err := os.Create(filepath.Join(l.work(), "emulator.log"))
	if err != nil {
		return err
	}
	l.emulator, err = emulator.Start(ctx, emulator.Options{EnforceIAM: true, Log: log})
	if err != nil {
		return err
	}
	l.stack.AWSEndpointURL = l.emulator.URL
	return nil
}

// close ends everything that was started.
func (l *local) close() {
	if l.receiver != nil {
		l.receiver.Release()
	}
	if l.emulator != nil {
		l.emulator.Close()
	}
	if l.listener != nil {
		l.listener.Close()
	}
	l.lock.Unlock()
}
