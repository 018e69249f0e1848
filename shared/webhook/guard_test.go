package webhook

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
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

// An address that doesn't answer costs its share of the time; IPv4 is tried first.
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
