package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// listen takes a port of 127.0.0.1; 0 takes any that is free. The error names who has it.
func listen(port int) (net.Listener, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %d is taken%s: stop it or choose another port with PORT=%d", port, holder(port), port+1)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on port %d: %w; choose another port with PORT=8080", port, err)
	}
	return listener, nil
}

// holder is " by pid 123 (name)", or empty where the system doesn't tell.
func holder(port int) string {
	if pid, name := holderInProc(port); pid != "" {
		return fmt.Sprintf(" by pid %s (%s)", pid, name)
	}
	if pid, name := holderFromLsof(port); pid != "" {
		return fmt.Sprintf(" by pid %s (%s)", pid, name)
	}
	return ""
}

// holderInProc finds the socket that listens on port in Linux's tables, then the
// process that has it open.
func holderInProc(port int) (pid, name string) {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			const localAddress, state, inode = 1, 3, 9 // columns; state 0A listens
			column := strings.Fields(line)
			if len(column) > inode && column[state] == "0A" && strings.HasSuffix(column[localAddress], fmt.Sprintf(":%04X", port)) {
				sockets["socket:["+column[inode]+"]"] = true
			}
		}
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && sockets[target] {
			pid = strings.Split(file, "/")[2]
			comm, _ := os.ReadFile("/proc/" + pid + "/comm")
			return pid, strings.TrimSpace(string(comm))
		}
	}
	return "", ""
}

// holderFromLsof asks the command that macOS has.
func holderFromLsof(port int) (pid, name string) {
	out, _ := exec.CommandContext(context.Background(), "lsof", "-nP", "-iTCP:"+strconv.Itoa(port), "-sTCP:LISTEN", "-Fpc").Output()
	for line := range strings.Lines(string(out)) {
		switch value := strings.TrimSpace(line[1:]); line[0] {
		case 'p':
			pid = value
		case 'c':
			return pid, value
		}
	}
	return pid, name
}
