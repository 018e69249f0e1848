// Package emulator installs and launches the emulator of the AWS APIs that the tests
// and the local stack run against. What it installs and writes is under .local/ of the
// repository; what it launches ends with the process that launched it.
package emulator

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Options of an emulator. The zero value is right for a test of the store.
type Options struct {
	Port       int       // of 127.0.0.1; 0: any that is free
	EnforceIAM bool      // functions may do what their roles allow, and nothing else
	Log        io.Writer // gets what the emulator prints; nil: it is dropped
}

// An Emulator runs until Close, or until this process ends.
type Emulator struct {
	URL string // http://127.0.0.1:<port>, no slash at its end

	leash *Leash
	dir   string
	ended chan struct{}
	out   tail
	close sync.Once
}

// readyTimeout is generous: the first start on a slow machine compiles the emulator.
const readyTimeout = 2 * time.Minute

//go:embed launcher.py
var launcher []byte

// Start installs the emulator if need be, launches it, and returns when it answers.
// It starts empty. ctx bounds the start only.
func Start(ctx context.Context, opts Options) (*Emulator, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	if err := Install(ctx, root); err != nil {
		return nil, err
	}
	// The launcher inherits the socket, so that nobody can take the port in between,
	// and connections wait in its queue until the emulator serves it.
	listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(opts.Port))
	if err != nil {
		return nil, fmt.Errorf("start the emulator: %w", err)
	}
	defer listener.Close()
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		return nil, fmt.Errorf("start the emulator: %w", err)
	}
	defer socket.Close()

	e := &Emulator{URL: "http://" + listener.Addr().String()}
	if err := e.launch(root, socket, opts); err != nil {
		e.Close()
		return nil, fmt.Errorf("start the emulator: %w", err)
	}
	listener.Close() // so that a connection is refused, not kept waiting, if the launcher dies
	socket.Close()
	if err := e.awaitReady(ctx); err != nil {
		e.Close()
		return nil, fmt.Errorf("start the emulator: %w\n%s", err, e.out.String())
	}
	return e, nil
}

func (e *Emulator) launch(root string, socket *os.File, opts Options) (err error) {
	if e.dir, err = runDir(root); err != nil {
		return err
	}
	script := filepath.Join(e.dir, "launcher.py")
	if err := os.WriteFile(script, launcher, 0o644); err != nil {
		return err
	}
	if e.leash, err = NewLeash(); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(root, ".local", "venv", "bin", "python"), script, "3")
	cmd.ExtraFiles = []*os.File{socket} // file descriptor 3
	cmd.Dir = e.dir
	cmd.Env = e.environ(opts)
	cmd.Stdout = io.Writer(&e.out)
	if opts.Log != nil {
		cmd.Stdout = io.MultiWriter(&e.out, opts.Log)
	}
	cmd.Stderr = cmd.Stdout
	if err := e.leash.Start(cmd); err != nil {
		return err
	}
	e.ended = make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in what it printed
		close(e.ended)
	}()
	return nil
}

// environ is all that the emulator and the functions it runs see of our environment:
// nobody's AWS profile, proxy or home reaches them.
func (e *Emulator) environ(opts Options) []string {
	_, port, _ := net.SplitHostPort(e.URL[len("http://"):])
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + e.dir,
		"TMPDIR=" + e.dir,
		"BIND_HOST=127.0.0.1",
		"GATEWAY_PORT=" + port,
		"AWS_ENDPOINT_URL=" + e.URL, // functions call back here
		"AUTH=" + strconv.FormatBool(opts.EnforceIAM),
		"LAMBDA_EXECUTOR=local",
		"IOT_MTLS_ENABLED=0", // would listen on a port of its own
		"LOG_LEVEL=WARNING",
		"DOCKER_HOST=unix:///nonexistent", // it removes containers that it finds
	}
}

// awaitReady makes one request, which is answered when the emulator serves its queue.
func (e *Emulator) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	go func() {
		select {
		case <-e.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL+"/_ministack/health", nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		select {
		case <-e.ended:
			return errors.New("it ended at once")
		default:
			return err
		}
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("its health is %s", res.Status)
	}
	return nil
}

// Ended is closed when the emulator has ended, by Close or by itself.
func (e *Emulator) Ended() <-chan struct{} { return e.ended }

// Output is the end of what the emulator printed.
func (e *Emulator) Output() string { return e.out.String() }

// Close ends the emulator and the functions that it runs. It may be called again.
func (e *Emulator) Close() {
	e.close.Do(func() {
		if e.leash != nil {
			e.leash.Release()
		}
		if e.ended != nil {
			<-e.ended
		}
		os.RemoveAll(e.dir)
	})
}
