// Command local is `make run`: the whole service on this machine, until it is told to
// end. It deploys the CDK app to an emulator of the AWS APIs, fills it with demo data and
// serves the API on a port of 127.0.0.1. What it installs and writes is under .local/.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	opts, err := readOptions(os.Args[1:], os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	forgetAWS()
	ctx, stop := untilTold(opts.withParent)
	defer stop()
	if err := run(ctx, opts); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func run(ctx context.Context, opts options) error {
	if err := checkTools(ctx); err != nil {
		return err
	}
	if opts.installOnly {
		return install(ctx, opts.root)
	}
	l, err := claim(opts)
	if err != nil {
		return err
	}
	defer l.close()
	if err := l.start(ctx); err != nil {
		return err
	}
	if err := writeStack(opts.stackFile, l.stack); err != nil {
		return err
	}
	defer os.Remove(opts.stackFile)
	fmt.Print(banner(l.stack))
	return l.serve(ctx)
}

// untilTold is done at Ctrl-C, at a polite kill, when the terminal closes, and, if asked
// for, when the process that started this one has ended, however it did.
func untilTold(withParent bool) (context.Context, context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup wants it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	if withParent {
		go func(parent int) {
			for os.Getppid() == parent {
				time.Sleep(200 * time.Millisecond)
			}
			stop()
		}(os.Getppid())
	}
	return ctx, stop
}
