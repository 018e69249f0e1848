package main

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
)

func TestListenOnTakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port

	_, err = listen(port)
	if err == nil {
		t.Fatal("listen on a taken port: no error")
	}
	wants := []string{fmt.Sprintf("port %d is taken", port), fmt.Sprintf("PORT=%d", port+1)}
	if _, err := os.Stat("/proc/net/tcp"); err == nil {
		wants = append(wants, fmt.Sprintf("by pid %d (", os.Getpid()))
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("listen on a taken port: %q, want %q in it", err, want)
		}
	}
}

func TestListenOnAnyPort(t *testing.T) {
	listener, err := listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if !listener.Addr().(*net.TCPAddr).IP.IsLoopback() {
		t.Errorf("listen on %v, want a loopback address", listener.Addr())
	}
}
