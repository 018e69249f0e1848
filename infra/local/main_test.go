package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// A test that started a stack may be killed, and its stack must not outlive it.
func TestUntilParentEnds(t *testing.T) {
	if os.Getenv("UNTIL_PARENT_ENDS") != "" {
		ctx, stop := untilTold(true)
		defer stop()
		fmt.Println("started")
		<-ctx.Done()
		return
	}
	parent := exec.Command("/bin/sh", "-c", `"$0" -test.run='^TestUntilParentEnds$' & read -r _`, os.Args[0])
	parent.Env = append(os.Environ(), "UNTIL_PARENT_ENDS=1")
	if _, err := parent.StdinPipe(); err != nil { // which keeps the parent waiting
		t.Fatal(err)
	}
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(out)
	if _, err := reader.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The output ends when nobody has it open any more.
	ended := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, reader); close(ended) }()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the child is still there, its parent is not")
	}
}
