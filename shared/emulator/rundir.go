package emulator

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// runDir makes a folder for what one emulator writes, the functions' code above all.
// Its name begins with our process id, so that what a killed process left behind is
// recognised here and removed.
func runDir(root string) (string, error) {
	parent := filepath.Join(root, ".local", "emulator")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	old, err := os.ReadDir(parent)
	if err != nil {
		return "", err
	}
	for _, entry := range old {
		pid, _, _ := strings.Cut(entry.Name(), "-")
		if n, err := strconv.Atoi(pid); err == nil && syscall.Kill(n, 0) == syscall.ESRCH {
			os.RemoveAll(filepath.Join(parent, entry.Name()))
		}
	}
	return os.MkdirTemp(parent, fmt.Sprintf("%d-", os.Getpid()))
}
