// Command workspace is the operator's: it applies workspace definitions to a stage, makes
// API keys and users, and credits balances. README and the type file say what a definition holds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"parley/shared/config"
	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/settings"
)

const usage = `usage:
  workspace apply FILE --stage S
        makes a workspace what FILE says, and shows what changes
  workspace key --stage S --workspace ID --label L [--blocks default|all|a,b,c] [--place-calls]
        makes an API key and shows it, this once
  workspace user --stage S --workspace ID --email E [--permanent]
        makes a user of the workspace's settings and shows the password, this once; without
        --permanent it must be changed at the first sign-in
  workspace credit --stage S --workspace ID --amount N
        adds an amount to the workspace's balance and shows the new one
`

func main() {
	err := run(context.Background(), os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	command := ""
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	switch command {
	case "apply":
		return runApply(ctx, args)
	case "key":
		return runKey(ctx, args)
	case "user":
		return runUser(ctx, args)
	case "credit":
		return runCredit(ctx, args)
	}
	return flag.ErrHelp
}

func runApply(ctx context.Context, args []string) error {
	flags := newFlags()
	stage := flags.String("stage", "", "")
	files, err := parseArgs(flags, args)
	if err != nil {
		return err
	}
	if len(files) != 1 || *stage == "" {
		return errors.New("apply needs one file and --stage")
	}
	f, err := readFile(files[0])
	if err != nil {
		return err
	}
	store, err := open(ctx, *stage)
	if err != nil {
		return err
	}
	return apply(ctx, store, f, os.Stdout)
}

func runKey(ctx context.Context, args []string) error {
	flags := newFlags()
	stage := flags.String("stage", "", "")
	workspace := flags.String("workspace", "", "")
	label := flags.String("label", "", "")
	blocks := flags.String("blocks", "default", "")
	placeCalls := flags.Bool("place-calls", false, "")
	others, err := parseArgs(flags, args)
	if err != nil {
		return err
	}
	if len(others) > 0 || *stage == "" || *workspace == "" || *label == "" {
		return errors.New("key needs --stage, --workspace and --label, and nothing that is no flag")
	}
	readable, err := parseBlocks(*blocks)
	if err != nil {
		return err
	}
	store, err := open(ctx, *stage)
	if err != nil {
		return err
	}
	return createKey(ctx, store, settings.NewAPIKey{
		WorkspaceID: conversation.WorkspaceID(*workspace),
		Label:       *label,
		Blocks:      readable,
		PlaceCalls:  *placeCalls,
	}, os.Stdout)
}

func runUser(ctx context.Context, args []string) error {
	flags := newFlags()
	stage := flags.String("stage", "", "")
	workspace := flags.String("workspace", "", "")
	email := flags.String("email", "", "")
	permanent := flags.Bool("permanent", false, "")
	others, err := parseArgs(flags, args)
	if err != nil {
		return err
	}
	if len(others) > 0 || *stage == "" || *workspace == "" || *email == "" {
		return errors.New("user needs --stage, --workspace and --email, and nothing that is no flag")
	}
	cfg, err := config.AWS(ctx)
	if err != nil {
		return err
	}
	store, users, err := openStageAndUsers(ctx, cfg, *stage)
	if err != nil {
		return err
	}
	if users.id == "" {
		return fmt.Errorf("stage %s has no users yet: deploy it again", *stage)
	}
	return createUser(ctx, store, users, newUser{conversation.WorkspaceID(*workspace), *email, *permanent}, os.Stdout)
}

func runCredit(ctx context.Context, args []string) error {
	flags := newFlags()
	stage := flags.String("stage", "", "")
	workspace := flags.String("workspace", "", "")
	amount := flags.String("amount", "", "")
	others, err := parseArgs(flags, args)
	if err != nil {
		return err
	}
	if len(others) > 0 || *stage == "" || *workspace == "" || *amount == "" {
		return errors.New("credit needs --stage, --workspace and --amount, and nothing that is no flag")
	}
	added, err := parseAmount(*amount)
	if err != nil {
		return err
	}
	store, err := open(ctx, *stage)
	if err != nil {
		return err
	}
	return credit(ctx, store, conversation.WorkspaceID(*workspace), added, os.Stdout)
}

// newFlags makes a set of flags that leaves it to main to print what is wrong with them.
func newFlags() *flag.FlagSet {
	flags := flag.NewFlagSet("workspace", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return flags
}

// parseArgs parses flags, which may stand before and after the arguments, and returns
// these.
func parseArgs(flags *flag.FlagSet, args []string) ([]string, error) {
	var arguments []string
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if flags.NArg() == 0 {
			return arguments, nil
		}
		arguments = append(arguments, flags.Arg(0))
		args = flags.Args()[1:]
	}
}

func open(ctx context.Context, stage string) (*dynamo.Store, error) {
	cfg, err := config.AWS(ctx)
	if err != nil {
		return nil, err
	}
	return openStage(ctx, cfg, stage)
}
