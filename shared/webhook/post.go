package webhook

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"parley/shared/conversation"
)

const (
	// keptAnswer is how much of an answer's body the log keeps, after decompression.
	keptAnswer = 4 << 10
	// maxAnswer is how much of an answer's body is read, as it is sent. What is more is
	// left unread: the status has said what counts.
	maxAnswer = 64 << 10
)

// letter is one post: what, where to, and with what.
type letter struct {
	url     string
	headers http.Header
	payload []byte
	timeout time.Duration // of all of it: look-up, connection, handshake, answer
}

// post posts once at most and says what came of it: status code or class of error, latency,
// and the beginning of the answer. A 2xx whose body breaks off or takes too long is a
// failure; a body that is longer than we care to read is not. The error is that ctx has
// ended, not the receiver's: nothing is known then.
func post(ctx context.Context, transport http.RoundTripper, l letter, now func() time.Time) (outcome conversation.Attempt, err error) {
	began := now()
	deadline, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(forDialling(deadline), http.MethodPost, l.url, bytes.NewReader(l.payload))
	if err != nil {
		outcome.Error = conversation.AttemptBlockedURL
		return outcome, nil
	}
	request.Header = l.headers
	answer, failure := transport.RoundTrip(request)
	if failure == nil {
		outcome.StatusCode = answer.StatusCode
		outcome.ResponseBody, failure = read(deadline, answer)
	}
	if late := deadline.Err(); late != nil {
		failure = late // a body that ends because we hang up looks broken, or complete
	}
	if ctx.Err() != nil {
		return outcome, ctx.Err()
	}
	switch {
	case failure != nil:
		outcome.Error = classOf(failure)
	case outcome.StatusCode >= 300 && outcome.StatusCode < 400:
		outcome.Error = conversation.AttemptRedirect
	}
	outcome.LatencyMS = int(now().Sub(began).Milliseconds())
	return outcome, nil
}

// errSwitched says that an answer goes on in a protocol that nobody asked for.
var errSwitched = errors.New("switched to another protocol")

// read returns the beginning of an answer's body as text. It fails if the body breaks off
// before it has been read as far as it is, and when ctx ends, whatever kind of body it is.
func read(ctx context.Context, answer *http.Response) (string, error) {
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusSwitchingProtocols {
		return "", errSwitched // the body is the bare connection
	}
	defer context.AfterFunc(ctx, func() { answer.Body.Close() })()
	sent := &source{Reader: answer.Body}
	raw := bufio.NewReader(io.LimitReader(sent, maxAnswer))
	body := io.Reader(raw)
	if magic, _ := raw.Peek(2); string(magic) == "\x1f\x8b" && strings.EqualFold(answer.Header.Get("Content-Encoding"), "gzip") {
		if unzipped, err := gzip.NewReader(raw); err == nil {
			body = unzipped
		}
	}
	kept, _ := io.ReadAll(io.LimitReader(body, keptAnswer))
	_, _ = io.Copy(io.Discard, raw)
	return strings.ToValidUTF8(string(kept), "?"), sent.failure
}

// source remembers how reading first failed: net/http says only then why, and what is no
// gzip is no failure.
type source struct {
	io.Reader
	failure error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && err != io.EOF && s.failure == nil {
		s.failure = err
	}
	return n, err
}

// classOf names what went wrong, for the log.
func classOf(err error) conversation.AttemptError {
	var (
		dns       *net.DNSError
		network   net.Error
		handshake tlsError
		alert     tls.AlertError
		malformed textproto.ProtocolError
	)
	text := err.Error()
	switch {
	case errors.Is(err, errBlocked):
		return conversation.AttemptBlockedAddress
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return conversation.AttemptTimeout
	case errors.As(err, &dns):
		return conversation.AttemptDNS
	case errors.As(err, &handshake), errors.As(err, &alert):
		return conversation.AttemptTLS
	case strings.Contains(text, "server response headers exceeded"): // net/http has no error value for it
		return conversation.AttemptTooLarge
	case errors.Is(err, errSwitched), errors.As(err, &malformed), strings.Contains(text, "malformed "):
		return conversation.AttemptInvalidResponse
	default:
		return conversation.AttemptConnection
	}
}

// headersOf are a delivery's headers: the endpoint's own, then ours, which they can't
// override.
func headersOf(custom map[string]string, event conversation.EventName, attempt conversation.AttemptID, signature string) http.Header {
	headers := http.Header{}
	for name, value := range custom {
		if !isReserved(name) {
			headers[spelling(name)] = []string{value}
		}
	}
	headers.Set("Content-Type", "application/json")
	headers.Set("User-Agent", userAgent)
	headers.Set("Accept-Encoding", "gzip")
	headers.Set(EventHeader, string(event))
	headers.Set(DeliveryIDHeader, string(attempt))
	headers.Set(VersionHeader, strconv.Itoa(conversation.PayloadVersion))
	headers.Set(SignatureHeader, signature)
	return headers
}

// spelling is how a custom header's name is sent. net/http takes a POST with an idempotency
// key for one that it may send again, and does so when a reused connection breaks: the
// receiver would get one attempt twice. It knows these names in their usual case alone,
// which means nothing to the receiver. What it also sends again, and should, is a request
// of which no byte has left.
func spelling(name string) string {
	name = http.CanonicalHeaderKey(name)
	if name == "Idempotency-Key" || name == "X-Idempotency-Key" {
		return strings.ToLower(name)
	}
	return name
}
