package emulator

import (
	"errors"
	"os"
	"path/filepath"
)

// Root is the folder of this module's go.mod: the working directory or the
// nearest folder above it. Tests run in their package's folder, commands anywhere.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		return "", errors.New("find the repository: no go.mod here or above; run this inside the repository")
	}
}
