package main

import (
	"flag"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"parley/shared/emulator"
)

type options struct {
	root        string // of the repository
	stackFile   string
	port        int    // of the API; 0: any that is free
	endpoint    string // of the AWS APIs; empty: an emulator is started
	timeScale   int
	withParent  bool
	installOnly bool
}

// readOptions reads flags, which are for programs, and variables, which are for people.
func readOptions(args []string, getenv func(string) string) (options, error) {
	root, err := emulator.Root()
	if err != nil {
		return options{}, err
	}
	opts := options{root: root, port: 8080, timeScale: 1}
	flags := flag.NewFlagSet("local", flag.ExitOnError)
	flags.StringVar(&opts.stackFile, "stack", filepath.Join(root, ".local", "stack.json"), "`file` to describe the running stack in; stacks of different files run side by side")
	flags.BoolVar(&opts.withParent, "with-parent", false, "end when the process that started this one ends")
	flags.BoolVar(&opts.installOnly, "install", false, "only install what the other commands need")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if opts.stackFile, err = filepath.Abs(opts.stackFile); err != nil {
		return options{}, err
	}
	if port := getenv("PORT"); port != "" {
		if opts.port, err = strconv.Atoi(port); err != nil || opts.port < 0 || opts.port > 65535 {
			return options{}, fmt.Errorf("PORT is %q: choose one from 1 to 65535, or 0 for any that is free", port)
		}
	}
	switch fast := getenv("FAST"); fast {
	case "", "0":
	case "1":
		opts.timeScale = 60
	default:
		return options{}, fmt.Errorf("FAST is %q: 1 makes long durations 60 times shorter, 0 leaves them", fast)
	}
	opts.endpoint = strings.TrimSuffix(getenv("AWS_ENDPOINT_URL"), "/")
	return opts, nil
}

// work is the folder for what belongs to this stack, emptied at its start. It stays
// when the stack ends, for the logs in it.
func (o options) work() string { return strings.TrimSuffix(o.stackFile, ".json") + ".work" }
