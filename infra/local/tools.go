package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"parley/shared/emulator"
)

// checkTools says what is missing on this machine. Go is not: it built this.
func checkTools(ctx context.Context) error {
	return errors.Join(checkNode(ctx), emulator.CheckPython(ctx))
}

const oldestNode = 20

func checkNode(ctx context.Context) error {
	const install = "install Node.js 20 or newer, with npm, from https://nodejs.org"
	out, err := exec.CommandContext(ctx, "node", "--version").Output()
	if err != nil {
		return errors.New("node is missing: " + install)
	}
	version := strings.TrimPrefix(strings.TrimSpace(string(out)), "v")
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestNode {
		return fmt.Errorf("node is version %s: %s", version, install)
	}
	if _, err := exec.LookPath("npm"); err != nil {
		return errors.New("npm is missing: " + install)
	}
	return nil
}
