// Command replay is the operator's: it gives a stage's functions once more the records of
// the stream that they failed on until Lambda gave up. It may be repeated and interrupted:
// both functions recognise what they have done before, and a record is removed only when it
// has succeeded.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"parley/shared/config"
)

const usage = `usage:
  replay --stage S [--function F] [--dry-run]
        shows the records of the stream that a function failed on, and invokes the function
        with them again; what succeeds is removed, what fails stays, and makes the exit
        status 1. --function is publish-events or start-lifecycles, without it both;
        --dry-run only shows
`

// functions are those that read the stream.
var functions = [...]string{"publish-events", "start-lifecycles"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // main prints what is wrong with them
	stage := flags.String("stage", "", "")
	function := flags.String("function", "", "")
	dryRun := flags.Bool("dry-run", false, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *stage == "" || flags.NArg() > 0 {
		return errors.New("replay needs --stage, and nothing that is no flag")
	}
	if *function != "" && !slices.Contains(functions[:], *function) {
		return fmt.Errorf("--function %s: want one of %s", *function, strings.Join(functions[:], ", "))
	}
	cfg, err := config.AWS(ctx)
	if err != nil {
		return err
	}
	bucket, err := bucketOf(ctx, cfg, *stage)
	if err != nil {
		return err
	}
	return newReplay(cfg, *stage, bucket, *function, *dryRun, out).all(ctx)
}

func newReplay(cfg aws.Config, stage, bucket, function string, dryRun bool, out io.Writer) *replay {
	return &replay{
		objects: s3.NewFromConfig(cfg, func(o *s3.Options) {
			o.UsePathStyle = o.BaseEndpoint != nil // an emulator has no host for each bucket
		}),
		lambda: lambda.NewFromConfig(cfg),
		stage:  stage, bucket: bucket, function: function, dryRun: dryRun, out: out,
	}
}
