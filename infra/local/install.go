package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"parley/shared/emulator"
)

// install installs the emulator, cfn-lint and the CDK CLI, unless they are there already.
func install(ctx context.Context, root string) error {
	if err := emulator.Install(ctx, root); err != nil {
		return err
	}
	return installCDK(ctx, root)
}

// installCDK installs infra/local/package-lock.json into .local/cdk.
func installCDK(ctx context.Context, root string) error {
	dir := filepath.Join(root, ".local", "cdk")
	lock, err := emulator.WaitLock(ctx, dir+".lock")
	if err != nil {
		return err
	}
	defer lock.Unlock()

	pins, err := os.ReadFile(filepath.Join(root, "infra", "local", "package-lock.json"))
	if err != nil {
		return err
	}
	stamp := filepath.Join(dir, "installed.json") // written last
	if have, err := os.ReadFile(stamp); err == nil && bytes.Equal(have, pins) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(root, "infra", "local", name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	c := command{dir: dir, log: filepath.Join(root, ".local", "npm.log"), env: append(os.Environ(), "npm_config_cache="+filepath.Join(root, ".local", "npm"))}
	if err := c.run(ctx, "npm", "ci", "--no-audit", "--no-fund"); err != nil {
		return fmt.Errorf("install infra/local/package-lock.json: %w", err)
	}
	return os.WriteFile(stamp, pins, 0o644)
}
