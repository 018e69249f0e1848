package webhook_test

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"parley/shared/conversation"
)

var nolog = log.New(io.Discard, "", 0)

// raw is a server that speaks no HTTP of its own accord.
func raw(t *testing.T, config *tls.Config, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if config != nil {
				conn = tls.Server(conn, config)
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return l.Addr().String()
}

// saying is a server that reads the request's beginning, says something and, unless more
// is to follow, closes.
func saying(t *testing.T, text string, more ...func(net.Conn)) string {
	return raw(t, &tls.Config{Certificates: []tls.Certificate{authority().certificate(t, "hooks.example.com", time.Now().Add(time.Hour), true)}},
		func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 64<<10))
			_, _ = io.WriteString(conn, text)
			for _, serve := range more {
				serve(conn)
			}
		})
}

// Whatever a receiver does: only 2xx is a success, everything is bounded in time and
// memory, what went wrong is in the log, and the signature goes to nobody else.
func TestHostileReceivers(t *testing.T) {
	w := newWorld(t)
	elsewhere := newReceiver(t, answering(200))
	hanging := make(chan struct{})
	defer close(hanging)
	silent := func(net.Conn) { <-hanging }
	certified := func(name string, until time.Time, signed bool) string {
		server := raw(t, &tls.Config{Certificates: []tls.Certificate{authority().certificate(t, name, until, signed)}}, func(conn net.Conn) {
			if _, err := conn.Read(make([]byte, 64<<10)); err == nil {
				t.Errorf("%s: the request has arrived", name)
			}
		})
		return at("hooks.example.com", server)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()

	answer := func(handler http.HandlerFunc) string { return newReceiver(t, handler).url() }
	status := func(code int) string { return answer(answering(code)) }
	redirecting := func(code int) string {
		return answer(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.url(), code) })
	}
	endless := func(w io.Writer, chunk []byte) {
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	repeating := func(text string, pause time.Duration) func(net.Conn) {
		return func(conn net.Conn) {
			for {
				if _, err := io.WriteString(conn, text); err != nil {
					return
				}
				time.Sleep(pause)
			}
		}
	}
	holding := func(net.Conn) { // not for ever, so that who waits for it fails, and doesn't hang
		select {
		case <-hanging:
		case <-time.After(8 * time.Second):
		}
	}
	const (
		upgraded = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
		hint     = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
		goOn     = "HTTP/1.1 100 Continue\r\n\r\n"
	)
	zeros := make([]byte, 1<<20)
	var bomb bytes.Buffer // a kilobyte that is a megabyte; gzip may be repeated
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(zeros)
	_ = z.Close()
	const kept = 4 << 10
	tests := map[string]struct {
		url    string
		status int
		class  conversation.AttemptError
		body   int // bytes in the log
	}{
		"200":                 {status(200), 200, "", 0},
		"201":                 {status(201), 201, "", 0},
		"204":                 {status(204), 204, "", 0},
		"299":                 {status(299), 299, "", 0},
		"301":                 {redirecting(301), 301, "redirect", 0},
		"302":                 {redirecting(302), 302, "redirect", 0},
		"307":                 {redirecting(307), 307, "redirect", 0},
		"308":                 {redirecting(308), 308, "redirect", 0},
		"304":                 {status(304), 304, "redirect", 0},
		"400":                 {status(400), 400, "", 0},
		"410":                 {status(410), 410, "", 0},
		"429":                 {status(429), 429, "", 0},
		"500":                 {status(500), 500, "", 0},
		"a 4xx with a reason": {answer(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such tenant", 404) }), 404, "", 15},
		"an endless body":     {answer(func(w http.ResponseWriter, _ *http.Request) { endless(w, zeros) }), 200, "", kept},
		"10 MB": {answer(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 10<<20))
		}), 200, "", kept},
		"an endless gzip bomb": {answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			endless(w, bomb.Bytes())
		}), 200, "", kept},
		"gzip": {answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, "thank you")
			_ = z.Close()
		}), 200, "", 9},
		"gzip that is none": {answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, "thank you, plainly")
		}), 200, "", 18},
		"no text": {answer(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{'a', 0xff, 0xfe, 0xc3}) }), 200, "", 2},
		"one byte a second": {answer(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			for range 20 {
				_, _ = io.WriteString(w, ".")
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
					return
				case <-time.After(400 * time.Millisecond):
				}
			}
		}), 200, "timeout", -1},
		"never answers": {answer(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-hanging:
			}
		}), 0, "timeout", 0},
		"never shakes hands":     {at("hooks.example.com", raw(t, nil, silent)), 0, "timeout", 0},
		"closes at once":         {at("hooks.example.com", raw(t, nil, func(net.Conn) {})), 0, "tls", 0},
		"closes without answer":  {at("hooks.example.com", saying(t, "")), 0, "connection", 0},
		"closes in the header":   {at("hooks.example.com", saying(t, "HTTP/1.1 200 OK\r\nContent-Type: text")), 0, "connection", 0},
		"closes in the body":     {at("hooks.example.com", saying(t, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")), 200, "connection", 3},
		"no HTTP":                {at("hooks.example.com", saying(t, "220 mail.example.com ESMTP\r\n")), 0, "invalid_response", 0},
		"an endless header":      {at("hooks.example.com", saying(t, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 1<<20))), 0, "too_large", 0},
		"101":                    {at("hooks.example.com", saying(t, upgraded, holding)), 101, "invalid_response", 0},
		"101 and much more":      {at("hooks.example.com", saying(t, upgraded, func(conn net.Conn) { endless(conn, zeros) })), 101, "invalid_response", 0},
		"101 to nothing":         {at("hooks.example.com", saying(t, "HTTP/1.1 101 Switching Protocols\r\n\r\n", holding)), 101, "invalid_response", 0},
		"103, then 200":          {at("hooks.example.com", saying(t, hint+"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")), 200, "", 2},
		"103, then nothing":      {at("hooks.example.com", saying(t, hint, holding)), 0, "timeout", 0},
		"103 without end":        {at("hooks.example.com", saying(t, "", repeating(hint, 0))), 0, "too_large", 0},
		"103 time and again":     {at("hooks.example.com", saying(t, "", repeating(hint, 100*time.Millisecond))), 0, "timeout", 0},
		"100 without end":        {at("hooks.example.com", saying(t, "", repeating(goOn, 0))), 0, "too_large", 0},
		"HTTP where TLS should":  {at("hooks.example.com", raw(t, nil, func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n") })), 0, "tls", 0},
		"self-signed":            {certified("hooks.example.com", time.Now().Add(time.Hour), false), 0, "tls", 0},
		"expired":                {certified("hooks.example.com", time.Now().Add(-time.Hour), true), 0, "tls", 0},
		"somebody else's":        {certified("other.example.com", time.Now().Add(time.Hour), true), 0, "tls", 0},
		"nobody listens":         {at("hooks.example.com", closed.Addr().String()), 0, "connection", 0},
		"a private address":      {"https://private.example.com/", 0, "blocked_address", 0},
		"no address":             {"https://unknown.example.com/", 0, "dns", 0},
		"http, set before today": {"http://hooks.example.com/", 0, "blocked_url", 0},
		"metadata, set by hand":  {"https://169.254.169.254/", 0, "blocked_url", 0},
	}
	type place struct {
		ws conversation.WorkspaceID
		id conversation.DeliveryID
	}
	places := map[string]place{}
	var batch []events.SQSMessage
	for name, tt := range tests {
		w.moveIn()
		e, _ := w.endpoint(tt.url, func(e *conversation.WebhookEndpoint) { e.TimeoutSeconds = 2 })
		id, message := w.test(e)
		places[name] = place{w.workspace, id}
		batch = append(batch, message)
	}
	start := time.Now()
	if failed := w.deliver(batch...); failed != 0 {
		t.Errorf("%d messages failed, want none", failed)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("the batch took %s, want hardly more than a timeout of 2 s", took)
	}
	for name, tt := range tests {
		w.workspace = places[name].ws
		d := w.delivery(places[name].id)
		a, _ := d.Attempt(1, 1)
		if a.StatusCode != tt.status || a.Error != tt.class || tt.body >= 0 && len(a.ResponseBody) != tt.body || len(a.ResponseBody) > kept {
			t.Errorf("%s: status %d, error %q, %d bytes; want %d, %q, %d", name, a.StatusCode, a.Error, len(a.ResponseBody), tt.status, tt.class, tt.body)
		}
		want := conversation.DeliveryPending
		if tt.status/100 == 2 && tt.class == "" {
			want = conversation.DeliveryDelivered
		}
		_, retried := w.started[w.execution(d.ID, 1)]
		if d.Status != want || retried == (want == conversation.DeliveryDelivered) {
			t.Errorf("%s: %s, with a state machine: %t; want %s", name, d.Status, retried, want)
		}
	}
	if n := len(elsewhere.received()); n != 0 {
		t.Errorf("%d requests to where the redirects lead, want none", n)
	}
}
