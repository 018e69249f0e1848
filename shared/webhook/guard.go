package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"parley/shared/conversation"
)

// guardian knows the addresses that are public: it follows IANA's registries of those that
// are not, for IPv4 and IPv6. Ports and networks are the guard's.
var guardian = ssrf.New(ssrf.WithAnyPort(), ssrf.WithAnyNetwork())

// GuardOptions say what a guard may do. The zero value is right for AWS.
type GuardOptions struct {
	// AllowLoopback also lets it talk to this machine. The local stage needs that.
	AllowLoopback bool
	// Lookup finds a name's addresses; nil: as the system does.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// RootCAs are who is trusted to say who a host is; nil: those of the system.
	RootCAs *x509.CertPool
}

// maxAnswerHeader bounds what an answer's header takes of memory.
const maxAnswerHeader = 64 << 10

// NewGuard makes the transport of webhooks, which customers may point anywhere. It only
// ever connects to public addresses, on port 443 or one from 1024 up: a name is looked up
// once, all of its addresses must be public, and one of these very addresses is dialled,
// so there is no second look-up that could say something else. It knows no proxy, speaks
// HTTP/1.1 alone, and as a transport it follows no redirect.
//
// It asks for no compression by itself: bounding the answer after decompression is left
// to whoever reads it.
func NewGuard(o GuardOptions) *http.Transport {
	g := guard{o.AllowLoopback, o.Lookup}
	if g.lookup == nil {
		g.lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext: g.dial,
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return g.dialTLS(ctx, network, address, o.RootCAs)
		},
		Protocols:              &protocols,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxAnswerHeader,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    64,
		// Shorter than servers keep idle connections (Node: 5 s), so that none is closed
		// just when it is used again: a post that got lost so would count as a failure.
		IdleConnTimeout: 4 * time.Second,
	}
}

type guard struct {
	loopback bool
	lookup   func(ctx context.Context, host string) ([]netip.Addr, error)
}

// errBlocked says that an address or a port is not one that webhooks may go to.
var errBlocked = errors.New("not a public address")

// check tells whether a connection to the address is allowed.
func (g guard) check(to netip.AddrPort) error {
	if g.loopback && to.Addr().IsLoopback() {
		return nil
	}
	if err := guardian.SafeAddr(to.Addr()); err != nil {
		return fmt.Errorf("%w: %w", errBlocked, err)
	}
	if to.Port() != 443 && to.Port() < 1024 {
		return fmt.Errorf("%w: port %d", errBlocked, to.Port())
	}
	return nil
}

// dialUntil is the key of the time when dialling ends.
type dialUntil struct{}

// forDialling also has dialling end with the context: net/http takes cancellation and
// deadline off it before it dials, and leaves its values.
func forDialling(ctx context.Context) context.Context {
	until, ok := ctx.Deadline()
	if !ok {
		return ctx
	}
	return context.WithValue(ctx, dialUntil{}, until)
}

// dialling returns a context that ends when forDialling said, or after the longest timeout
// there is: a host that stays silent would keep a connection for minutes, or for ever.
func dialling(ctx context.Context) (context.Context, context.CancelFunc) {
	if until, ok := ctx.Value(dialUntil{}).(time.Time); ok {
		return context.WithDeadline(ctx, until)
	}
	return context.WithTimeout(ctx, conversation.MaxWebhookTimeout*time.Second)
}

// dial looks a host up, checks every address, and connects to the first that answers.
func (g guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := dialling(ctx)
	defer cancel()
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, network, service)
	if err != nil {
		return nil, err
	}
	addresses, err := g.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	if len(addresses) == 0 {
		return nil, &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}
	for i, addr := range addresses {
		// A look-up may write an IPv4 address as a mapped one: it is the same address.
		addresses[i] = addr.Unmap()
		if err := g.check(netip.AddrPortFrom(addresses[i], uint16(port))); err != nil {
			return nil, fmt.Errorf("dial %s: %w", host, err)
		}
	}
	// IPv4 first, as a Lambda has no IPv6 to the outside.
	slices.SortStableFunc(addresses, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
	return g.connect(ctx, addresses, uint16(port))
}

// connect tries the addresses in turn, each for its share of the time that is left.
func (g guard) connect(ctx context.Context, addresses []netip.Addr, port uint16) (conn net.Conn, err error) {
	dialer := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%w: %w", errBlocked, err)
		}
		return g.check(to)
	}}
	for i, addr := range addresses {
		if deadline, ok := ctx.Deadline(); ok {
			dialer.Timeout = time.Until(deadline) / time.Duration(len(addresses)-i)
		}
		conn, err = dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(addr, port).String())
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
	}
	return nil, err
}

// tlsError is a handshake that failed.
type tlsError struct{ error }

func (e tlsError) Unwrap() error { return e.error }

func (g guard) dialTLS(ctx context.Context, network, address string, roots *x509.CertPool) (net.Conn, error) {
	ctx, cancel := dialling(ctx) // also for the handshake: Transport's timeout is only for those it makes itself
	defer cancel()
	conn, err := g.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	secured := tls.Client(conn, &tls.Config{ServerName: host, RootCAs: roots, MinVersion: tls.VersionTLS12})
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, tlsError{fmt.Errorf("handshake with %s: %w", host, err)}
	}
	return secured, nil
}
