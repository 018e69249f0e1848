package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/shared/conversation"
)

// lookup is a resolver that says the same of every name: the nth time the nth answer, and
// then the last one again.
func lookup(answers ...[]string) (func(context.Context, string) ([]netip.Addr, error), *atomic.Int32) {
	asked := new(atomic.Int32)
	return func(context.Context, string) ([]netip.Addr, error) {
		n := min(int(asked.Add(1)), len(answers))
		var addresses []netip.Addr
		for _, a := range answers[n-1] {
			addresses = append(addresses, netip.MustParseAddr(a))
		}
		return addresses, nil
	}, asked
}

// listener counts the connections to a port of this machine.
func listener(t *testing.T) (port string, connections *atomic.Int32) {
	t.Helper()
	connections = new(atomic.Int32)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	_, port, _ = net.SplitHostPort(server.Listener.Addr().String())
	return port, connections
}

func get(t *testing.T, transport *http.Transport, url string) error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := transport.RoundTrip(request)
	if err == nil {
		answer.Body.Close()
	}
	return err
}

// Nothing that isn't public is connected to, whatever a name leads to.
func TestGuardBlocksAddresses(t *testing.T) {
	port, connections := listener(t)
	for _, address := range []string{
		"127.0.0.1", "127.8.8.8", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::127.0.0.1",
		"10.0.0.1", "172.31.255.255", "192.168.0.1", "169.254.169.254", "169.254.170.2", "100.64.0.1", "192.0.0.1",
		"192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.88.99.1",
		"::ffff:10.0.0.1", "::ffff:169.254.169.254", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1", "3fff::1",
		"2002:7f00:1::1", "2002:5db8:d822::1", "64:ff9b::7f00:1", "64:ff9b::5db8:d822", "64:ff9b:1::1", "2001:0:53aa:64c::1", "2001:2::1", "100::1",
	} {
		find, _ := lookup([]string{address})
		guard := NewGuard(GuardOptions{Lookup: find})
		for _, url := range []string{"http://example.com:" + port, "https://example.com:" + port} {
			if err := get(t, guard, url); !errors.Is(err, errBlocked) {
				t.Errorf("%s at %s: %v, want it blocked", url, address, err)
			}
		}
	}
	// An address in the URL is one, too; the system's look-up reads it.
	for _, host := range []string{"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"} {
		if err := get(t, NewGuard(GuardOptions{}), "http://"+host+":"+port); !errors.Is(err, errBlocked) {
			t.Errorf("http://%s: %v, want it blocked", host, err)
		}
	}
	// What else the system takes for one is blocked, or unknown.
	for _, host := range []string{"2130706433", "0x7f.1", "017700000001", "localhost"} {
		if err := get(t, NewGuard(GuardOptions{}), "http://"+host+":"+port); err == nil {
			t.Errorf("http://%s: an answer, want none", host)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections, want none", n)
	}
}

func TestGuardBlocksPorts(t *testing.T) {
	for port, want := range map[uint16]bool{443: true, 1024: true, 8443: true, 65535: true, 0: false, 22: false, 25: false, 80: false, 1023: false} {
		if err := (guard{}).check(netip.AddrPortFrom(netip.MustParseAddr("93.184.216.34"), port)); (err == nil) != want {
			t.Errorf("port %d: %v, want allowed: %t", port, err, want)
		}
	}
}

// A name with one address that isn't public is blocked whole, in any order.
func TestGuardBlocksMixedNames(t *testing.T) {
	port, connections := listener(t)
	for _, addresses := range [][]string{{"127.0.0.1", "10.0.0.1"}, {"fd00::1", "127.0.0.1"}, {"127.0.0.1", "127.0.0.1", "169.254.169.254"}} {
		find, _ := lookup(addresses)
		// Here 127.0.0.1 stands for a public address.
		if err := get(t, NewGuard(GuardOptions{AllowLoopback: true, Lookup: find}), "http://example.com:"+port); !errors.Is(err, errBlocked) {
			t.Errorf("%v: %v, want it blocked", addresses, err)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections, want none", n)
	}
}

// Between the check and the dialling nobody is asked again, and every new connection is
// checked anew.
func TestGuardAgainstRebinding(t *testing.T) {
	port, connections := listener(t)
	find, asked := lookup([]string{"127.0.0.1"}, []string{"169.254.169.254"})
	guard := NewGuard(GuardOptions{AllowLoopback: true, Lookup: find}) // 127.0.0.1 stands for a public address
	if err := get(t, guard, "http://example.com:"+port); err != nil || asked.Load() != 1 || connections.Load() != 1 {
		t.Errorf("first: %v, %d look-ups, %d connections; want one of each", err, asked.Load(), connections.Load())
	}
	guard.CloseIdleConnections()
	if err := get(t, guard, "http://example.com:"+port); !errors.Is(err, errBlocked) || asked.Load() != 2 || connections.Load() != 1 {
		t.Errorf("second: %v, %d look-ups, %d connections; want it blocked", err, asked.Load(), connections.Load())
	}
}

// The dialler itself refuses, should an address ever get past the look-up's check.
func TestGuardChecksWhatIsDialled(t *testing.T) {
	port, connections := listener(t)
	to := netip.MustParseAddrPort("127.0.0.1:" + port)
	if _, err := (guard{}).connect(t.Context(), []netip.Addr{to.Addr()}, to.Port()); !errors.Is(err, errBlocked) || connections.Load() != 0 {
		t.Errorf("%v and %d connections, want it blocked", err, connections.Load())
	}
}

// An address that refuses costs nothing; IPv4 is tried first.
func TestGuardTriesAllAddresses(t *testing.T) {
	port, connections := listener(t)
	find, _ := lookup([]string{"::1", "127.0.0.9", "127.0.0.1"})
	guard := NewGuard(GuardOptions{AllowLoopback: true, Lookup: find})
	if err := get(t, guard, "http://example.com:"+port); err != nil || connections.Load() != 1 {
		t.Errorf("%v and %d connections, want an answer of the third address", err, connections.Load())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	find, _ = lookup(nil)
	if _, err := NewGuard(GuardOptions{Lookup: find}).DialContext(ctx, "tcp", "example.com:443"); err == nil {
		t.Error("a name without addresses is dialled")
	}
}

// deaf is an address of this machine with a port where no connection is ever made: as many
// wait there as may.
func deaf(t *testing.T, port string) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux is known to let callers wait then")
	}
	const address = "127.0.0.9"
	l, err := net.Listen("tcp", net.JoinHostPort(address, port))
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { l.Close() })
	socket, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failure error
	if err := socket.Control(func(fd uintptr) { failure = syscall.Listen(int(fd), 0) }); err != nil || failure != nil {
		t.Fatal(err, failure)
	}
	for range 4 {
		conn, err := net.DialTimeout("tcp", l.Addr().String(), 100*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { conn.Close() })
	}
	t.Skip("this machine lets more wait than it was told to")
	return ""
}

// send posts as the deliverer does.
func send(t *testing.T, transport http.RoundTripper, url string, timeout time.Duration, custom map[string]string) conversation.Attempt {
	t.Helper()
	outcome, err := post(t.Context(), transport, letter{url, headersOf(custom, "webhook.test", "a", "s"), []byte("{}"), timeout}, time.Now)
	if err != nil {
		t.Error(err)
	}
	return outcome
}

// An address that doesn't answer costs its share of the time, and the next one is tried.
func TestGuardSharesTheTime(t *testing.T) {
	port, connections := listener(t)
	find, _ := lookup([]string{deaf(t, port), "127.0.0.1"})
	guard := NewGuard(GuardOptions{AllowLoopback: true, Lookup: find})
	start := time.Now()
	got := send(t, guard, "http://example.com:"+port, 2*time.Second, nil)
	if took := time.Since(start); got.StatusCode != 200 || got.Error != "" || connections.Load() != 1 || took < 900*time.Millisecond {
		t.Errorf("status %d, error %q, %d connections after %s; want an answer of the second address after 1 s",
			got.StatusCode, got.Error, connections.Load(), took)
	}
}

// A host that stays silent keeps no connection and no goroutine beyond the post.
func TestGuardHangsUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var accepted, open atomic.Int32
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			open.Add(1)
			go func() {
				_, _ = io.Copy(io.Discard, conn)
				conn.Close()
				open.Add(-1)
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	here := func(*testing.T, string) string { return "127.0.0.1" }
	for name, tt := range map[string]struct {
		address  func(t *testing.T, port string) string
		url      string
		accepted int32
	}{
		"no connection": {deaf, "https://example.com:" + port, 0},
		"no handshake":  {here, "https://example.com:" + port, 20},
		"no answer":     {here, "http://example.com:" + port, 20},
	} {
		t.Run(name, func(t *testing.T) {
			find, _ := lookup([]string{tt.address(t, port)})
			guard := NewGuard(GuardOptions{AllowLoopback: true, Lookup: find})
			accepted.Store(0)
			before := runtime.NumGoroutine()
			var posts sync.WaitGroup
			for range 20 {
				posts.Go(func() {
					if got := send(t, guard, tt.url, 500*time.Millisecond, nil); got.Error != conversation.AttemptTimeout {
						t.Errorf("error %q, want a timeout", got.Error)
					}
				})
			}
			posts.Wait()
			for end := time.Now().Add(2 * time.Second); time.Now().Before(end) && (open.Load() > 0 || runtime.NumGoroutine() > before); {
				time.Sleep(10 * time.Millisecond)
			}
			if a, o, now := accepted.Load(), open.Load(), runtime.NumGoroutine(); a != tt.accepted || o != 0 || now > before {
				t.Errorf("of %d connections %d are open, %d goroutines; want %d, none open, %d goroutines", a, o, now, tt.accepted, before)
			}
		})
	}
}

// Who dials without a deadline has the longest timeout.
func TestGuardDialsWithDeadline(t *testing.T) {
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for name, tt := range map[string]struct {
		ctx  context.Context
		want time.Duration
	}{
		"none":                    {t.Context(), 10 * time.Second},
		"for dialling, none":      {forDialling(t.Context()), 10 * time.Second},
		"one":                     {soon, time.Second},
		"one, taken off":          {context.WithoutCancel(forDialling(soon)), time.Second},
		"one, twice":              {forDialling(forDialling(soon)), time.Second},
		"one, taken off unmarked": {context.WithoutCancel(soon), 10 * time.Second},
	} {
		ctx, cancel := dialling(tt.ctx)
		until, ok := ctx.Deadline()
		cancel()
		if left := time.Until(until); !ok || left > tt.want || left < tt.want-900*time.Millisecond {
			t.Errorf("%s: %s left, want %s", name, left, tt.want)
		}
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Reading ends with the time, even of a body that knows nothing of the request's context.
func TestPostEndsWithItsTime(t *testing.T) {
	body, w := io.Pipe()
	defer time.AfterFunc(5*time.Second, func() { w.Close() }).Stop() // so that it fails, and doesn't hang
	start := time.Now()
	got := send(t, transportFunc(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: body, Request: r}, nil
	}), "https://example.com", 100*time.Millisecond, nil)
	if took := time.Since(start); got.StatusCode != 200 || got.Error != conversation.AttemptTimeout || took > 2*time.Second {
		t.Errorf("status %d, error %q after %s; want 200, a timeout after 100 ms", got.StatusCode, got.Error, took)
	}
}

// One attempt is one post at most, whatever headers the customer chose: also when a server
// reads the request from a reused connection and closes it.
func TestOneAttemptIsOnePost(t *testing.T) {
	for _, name := range []string{"X-Api-Key", "Idempotency-Key", "idempotency-key", "X-Idempotency-Key"} {
		for _, reset := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, reset: %t", name, reset), func(t *testing.T) {
				var requests, connections atomic.Int32
				server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					if got := r.Header.Values(name); len(got) != 1 || got[0] != "k" {
						t.Errorf("%s: %q, want it as chosen", name, got)
					}
					if requests.Add(1) == 1 {
						return
					}
					conn, _, err := w.(http.Hijacker).Hijack()
					if err != nil {
						t.Error(err)
						return
					}
					if reset {
						_ = conn.(*net.TCPConn).SetLinger(0)
					}
					conn.Close()
				}))
				server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
					if state == http.StateNew {
						connections.Add(1)
					}
				}
				server.Start()
				defer server.Close()
				guard := NewGuard(GuardOptions{AllowLoopback: true})
				custom := map[string]string{name: "k"}
				if got := send(t, guard, server.URL, 5*time.Second, custom); got.StatusCode != 200 || got.Error != "" {
					t.Errorf("first: status %d, error %q; want 200", got.StatusCode, got.Error)
				}
				if got := send(t, guard, server.URL, 5*time.Second, custom); got.StatusCode != 0 || got.Error != conversation.AttemptConnection {
					t.Errorf("second: status %d, error %q; want a connection that broke", got.StatusCode, got.Error)
				}
				if r, c := requests.Load(), connections.Load(); r != 2 || c != 1 {
					t.Errorf("%d requests on %d connections, want 2 on 1", r, c)
				}
			})
		}
	}
}

// breaking is a connection whose nth write fails before a byte has left.
type breaking struct {
	net.Conn
	left atomic.Int32
}

func (c *breaking) Write(p []byte) (int, error) {
	if c.left.Add(-1) == 0 {
		return 0, syscall.EPIPE
	}
	return c.Conn.Write(p)
}

// A post of which nothing has left goes on over another connection.
func TestPostGoesOnIfNothingLeft(t *testing.T) {
	port, connections := listener(t)
	guard := NewGuard(GuardOptions{AllowLoopback: true})
	dial := guard.DialContext
	guard.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		b := &breaking{Conn: conn}
		b.left.Store(2)
		return b, nil
	}
	for n := range 2 {
		if got := send(t, guard, "http://127.0.0.1:"+port, 5*time.Second, nil); got.StatusCode != 200 || got.Error != "" {
			t.Errorf("post %d: status %d, error %q; want 200", n, got.StatusCode, got.Error)
		}
	}
	if n := connections.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

func TestGuardKnowsNoProxy(t *testing.T) {
	port, connections := listener(t)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, "http://127.0.0.1:"+port)
	}
	find, _ := lookup([]string{"10.0.0.1"})
	guard := NewGuard(GuardOptions{Lookup: find})
	for _, url := range []string{"http://example.com:8080", "https://example.com"} {
		if err := get(t, guard, url); !errors.Is(err, errBlocked) {
			t.Errorf("%s: %v, want it blocked", url, err)
		}
	}
	if connections.Load() != 0 || guard.Proxy != nil {
		t.Error("the proxy was asked")
	}
}

// Whatever a name leads to, no connection is made to what isn't public.
func FuzzGuard(f *testing.F) {
	for _, seed := range []string{"127.0.0.1", "::ffff:127.0.0.1", "2002:7f00:1::", "93.184.216.34", "2606:4700::1111"} {
		f.Add(netip.MustParseAddr(seed).AsSlice(), uint16(443))
	}
	f.Fuzz(func(t *testing.T, bytes []byte, port uint16) {
		addr, ok := netip.AddrFromSlice(bytes)
		if !ok {
			return
		}
		err := guard{}.check(netip.AddrPortFrom(addr.Unmap(), port))
		a := addr.Unmap()
		bad := a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() || !a.IsGlobalUnicast() ||
			a.Is6() && strings.HasPrefix(a.StringExpanded(), "2002:") || port != 443 && port < 1024
		if bad && err == nil {
			t.Errorf("%s port %d is allowed", a, port)
		}
	})
}
