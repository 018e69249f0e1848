package emulator

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestCheckPython(t *testing.T) {
	tests := map[string]struct {
		script string // python3's; empty: there is none
		want   string // in the error; empty: no error
	}{
		"missing":  {"", "python3 is missing: install Python 3.11"},
		"too old":  {"echo 3.9; exit 1", "python3 is version 3.9: install Python 3.11"},
		"no venv":  {"exit 1", "venv"},
		"suitable": {"echo 3.11", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			if tt.script != "" {
				writeFile(t, filepath.Join(bin, "python3"), "#!/bin/sh\n"+tt.script+"\n", 0o755)
			}
			t.Setenv("PATH", bin)
			err := CheckPython(t.Context())
			if tt.want == "" && err != nil {
				t.Errorf("CheckPython = %v, want none", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("CheckPython = %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestInstallAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("makes a Python environment")
	}
	root := t.TempDir()
	pins := filepath.Join(root, "infra", "local", "requirements.txt")
	writeFile(t, pins, "# nothing, which needs no network\n", 0o644)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if err := Install(t.Context(), root); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	venv := filepath.Join(root, ".local", "venv")
	if !installed(venv, []byte("# nothing, which needs no network\n")) {
		t.Error("installed = false after Install")
	}
	if installed(venv, []byte("other==1\n")) {
		t.Error("installed = true for other pins")
	}
}

func TestRunDirRemovesWhatTheKilledLeft(t *testing.T) {
	root := t.TempDir()
	parent := filepath.Join(root, ".local", "emulator")
	const noPid = "2000000000-1" // above every system's largest process id
	writeFile(t, filepath.Join(parent, noPid, "file"), "", 0o644)
	first, err := runDir(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runDir(root); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(parent, noPid)); err == nil {
		t.Error("the folder of a process that is gone is still there")
	}
	if _, err := os.Stat(first); err != nil {
		t.Errorf("the folder of a process that runs: %v", err)
	}
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
