package emulator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// python asks for the version that the pins in requirements.txt need, and for the
// module that some systems leave out of their Python.
const python = `import sys, ensurepip
print("%d.%d" % sys.version_info[:2])
sys.exit(sys.version_info < (3, 11))`

// CheckPython says in one sentence what to install if Python is missing or too old.
func CheckPython(ctx context.Context) error {
	found, err := exec.CommandContext(ctx, "python3", "-c", python).Output()
	version := strings.TrimSpace(string(found))
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("python3 is missing: install Python 3.11 or newer")
	case err != nil && version != "":
		return fmt.Errorf("python3 is version %s: install Python 3.11 or newer", version)
	case err != nil:
		return errors.New("python3 lacks its venv module: install it (on Debian and Ubuntu: apt install python3-venv)")
	}
	return nil
}

// Install installs infra/local/requirements.txt into .local/venv of the repository
// at root, unless it is there already. Processes that install at once take turns.
func Install(ctx context.Context, root string) error {
	pins, err := os.ReadFile(filepath.Join(root, "infra", "local", "requirements.txt"))
	if err != nil {
		return fmt.Errorf("install the emulator: %w", err)
	}
	venv := filepath.Join(root, ".local", "venv")
	if installed(venv, pins) {
		return nil
	}
	lock, err := WaitLock(ctx, filepath.Join(root, ".local", "venv.lock"))
	if err != nil {
		return fmt.Errorf("install the emulator: %w", err)
	}
	defer lock.Unlock()
	if installed(venv, pins) {
		return nil
	}
	if err := CheckPython(ctx); err != nil {
		return err
	}
	// Cleared, as it may have been left half done, or by a Python that is gone.
	if err := run(ctx, "python3", "-m", "venv", "--clear", venv); err != nil {
		return fmt.Errorf("make %s: %w", venv, err)
	}
	err = run(ctx, filepath.Join(venv, "bin", "python"), "-m", "pip", "install", "--quiet",
		"--disable-pip-version-check", "--no-cache-dir", "-r", filepath.Join(root, "infra", "local", "requirements.txt"))
	if err != nil {
		return fmt.Errorf("install infra/local/requirements.txt: %w", err)
	}
	return os.WriteFile(stamp(venv), pins, 0o644)
}

// stamp is written last, so it says that all of its lines are installed.
func stamp(venv string) string { return filepath.Join(venv, "requirements.txt") }

func installed(venv string, pins []byte) bool {
	if _, err := os.Stat(filepath.Join(venv, "bin", "python")); err != nil {
		return false
	}
	have, err := os.ReadFile(stamp(venv))
	return err == nil && bytes.Equal(have, pins)
}

func run(ctx context.Context, name string, args ...string) error {
	var out tail
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := Run(cmd); err != nil {
		return fmt.Errorf("%w\n%s", err, out.String())
	}
	return nil
}
