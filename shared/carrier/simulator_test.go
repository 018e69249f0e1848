package carrier_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"parley/shared/carrier"
	"parley/shared/conversation"
)

var placement = carrier.Placement{
	Ref:  carrier.Ref{WorkspaceID: "w", CallID: "c"},
	From: "+12025550101", To: "+12025550102", CallbackURL: callbackURL, MaxDuration: time.Hour,
}

var text = carrier.Text{
	WorkspaceID: "w", MessageID: "m", Channel: conversation.SMS,
	From: "+12025550101", To: "+12025550102", Content: "Good day.", Source: conversation.SourceInbound, CallbackURL: callbackURL,
}

// begins is all that is asked once.
var begins = map[string]func(context.Context, *carrier.Simulator) (string, error){
	"PlaceCall":   func(ctx context.Context, s *carrier.Simulator) (string, error) { return s.PlaceCall(ctx, placement) },
	"Ring":        func(ctx context.Context, s *carrier.Simulator) (string, error) { return s.Ring(ctx, placement, true) },
	"SendMessage": func(ctx context.Context, s *carrier.Simulator) (string, error) { return s.SendMessage(ctx, text) },
	"Write":       func(ctx context.Context, s *carrier.Simulator) (string, error) { return s.Write(ctx, text, 1, true) },
}

// clientOf asks a Lambda of the test's own.
func clientOf(url string) *carrier.Simulator {
	return carrier.NewSimulator(aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""), BaseEndpoint: &url,
	}, "simulate-carrier", secret)
}

// lambda answers invocations as it is told to, and counts them.
func lambda(t *testing.T, answer http.HandlerFunc) (*carrier.Simulator, *atomic.Int32) {
	t.Helper()
	asked := new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/2015-03-31/functions/simulate-carrier/invocations" {
			t.Errorf("path = %s, want the function's invocations", r.URL.Path)
		}
		asked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return clientOf(server.URL), asked
}

func says(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// reset breaks the connection off, so that the other side sees an error instead of an end.
func reset(w http.ResponseWriter, _ *http.Request) {
	conn, _, _ := w.(http.Hijacker).Hijack()
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

func closeEarly(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "100")
	_, _ = io.WriteString(w, `{"status":200,`)
}

// Whatever happens, the function is asked once. Only what provably never ran, and the
// function's own refusal, is ErrRefused.
func TestAskedOnce(t *testing.T) {
	tests := map[string]struct {
		answer  http.HandlerFunc
		refused bool
	}{
		"the function refuses":        {says(200, `{"status":403,"error":"no"}`), true},
		"the function finds it wrong": {says(200, `{"status":400,"error":"no"}`), true},
		"Lambda throttles":            {says(429, `{"Reason":"ConcurrentInvocationLimitExceeded"}`, "X-Amzn-ErrorType", "TooManyRequestsException"), true},
		"Lambda forbids":              {says(403, `{"Message":"no"}`, "X-Amzn-ErrorType", "AccessDeniedException"), true},
		"there is no function":        {says(404, `{"Message":"no"}`, "X-Amzn-ErrorType", "ResourceNotFoundException"), true},

		"it hangs":                       {hang, false},
		"the connection is reset":        {reset, false},
		"the connection closes midway":   {closeEarly, false},
		"Lambda fails":                   {says(500, `{"Message":"oops"}`, "X-Amzn-ErrorType", "ServiceException"), false},
		"something between fails":        {says(502, "<html>"), false},
		"something between is busy":      {says(503, ""), false},
		"a request timeout":              {says(408, ""), false},
		"the function fails":             {says(200, `{"errorMessage":"oops"}`, "X-Amz-Function-Error", "Unhandled"), false},
		"the function answers 500":       {says(200, `{"status":500}`), false},
		"the function answers 200 twice": {says(200, `{"status":200,"carrier_id":"x"}{}`), false},
		"no id":                          {says(200, `{"status":200}`), false},
		"no status":                      {says(200, `{"carrier_id":"x"}`), false},
		"nothing":                        {says(200, ""), false},
		"no JSON":                        {says(200, "OK"), false},
		"another type":                   {says(200, `{"status":"403"}`), false},
		"null":                           {says(200, "null"), false},
	}
	for name, tt := range tests {
		for what, begin := range begins {
			t.Run(what+": "+name, func(t *testing.T) {
				client, asked := lambda(t, tt.answer)
				client.PlaceTimeout = 200 * time.Millisecond
				id, err := begin(t.Context(), client)
				if err == nil || id != "" || errors.Is(err, carrier.ErrRefused) != tt.refused {
					t.Errorf("%s = %q, %v; want an error, refused: %v", what, id, err, tt.refused)
				}
				if got := asked.Load(); got != 1 {
					t.Errorf("asked %d times, want once", got)
				}
			})
		}
	}
}

func TestNobodyListens(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	listener.Close()
	for what, begin := range begins {
		if _, err := begin(t.Context(), clientOf(url)); !errors.Is(err, carrier.ErrRefused) {
			t.Errorf("%s = %v, want ErrRefused", what, err)
		}
	}
}

// The second request goes out on a connection that is broken off after it was sent.
// net/http would repeat a request that may be repeated; this one must not be.
func TestAskedOnAnOldConnection(t *testing.T) {
	for what, begin := range begins {
		accept, first := says(200, `{"status":200,"carrier_id":"x"}`), true
		client, asked := lambda(t, func(w http.ResponseWriter, r *http.Request) {
			if first {
				first = false
				accept(w, r)
				return
			}
			reset(w, r)
		})
		if id, err := begin(t.Context(), client); id != "x" || err != nil {
			t.Fatalf("%s = %q, %v; want x", what, id, err)
		}
		if _, err := begin(t.Context(), client); err == nil || errors.Is(err, carrier.ErrRefused) {
			t.Errorf("%s = %v, want no answer", what, err)
		}
		if got := asked.Load(); got != 2 {
			t.Errorf("%s: asked %d times for two", what, got)
		}
	}
}

func TestCanceled(t *testing.T) {
	client, _ := lambda(t, hang)
	for what, begin := range begins {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		if _, err := begin(ctx, client); err == nil || errors.Is(err, carrier.ErrRefused) {
			t.Errorf("%s = %v, want no answer", what, err)
		}
	}
}

// What changes nothing twice is asked again.
func TestOthersAreRetried(t *testing.T) {
	tests := map[string]struct {
		answer string
		ask    func(*carrier.Simulator) error
	}{
		"fetch": {`{"status":200,"state":{"phase":"over"}}`, func(s *carrier.Simulator) error {
			_, err := s.FetchCall(t.Context(), placement.Ref)
			return err
		}},
		"recording": {`{"status":200,"audio":"UklGRg=="}`, func(s *carrier.Simulator) error {
			_, err := s.FetchRecording(t.Context(), placement.Ref)
			return err
		}},
		"end": {`{"status":200}`, func(s *carrier.Simulator) error {
			return s.EndCall(t.Context(), placement.Ref, conversation.EndMaxDuration)
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for the SDK's backoff
			failed := false
			client, asked := lambda(t, func(w http.ResponseWriter, r *http.Request) {
				if !failed {
					failed = true
					says(500, "")(w, r)
					return
				}
				says(200, tt.answer)(w, r)
			})
			if err := tt.ask(client); err != nil || asked.Load() != 2 {
				t.Errorf("error %v after %d requests, want success after 2", err, asked.Load())
			}
		})
	}
}

func TestOthersFail(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"conflict":           says(200, `{"status":409,"error":"the recording is pending"}`),
		"nothing in it":      says(200, `{"status":200}`),
		"no JSON":            says(200, `<html>`),
		"the function fails": says(200, `{"errorMessage":"oops"}`, "X-Amz-Function-Error", "Unhandled"),
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := lambda(t, answer)
			if _, err := client.FetchCall(t.Context(), placement.Ref); err == nil || errors.Is(err, carrier.ErrUnknownCall) {
				t.Errorf("FetchCall = %v, want an error other than ErrUnknownCall", err)
			}
			if _, err := client.FetchRecording(t.Context(), placement.Ref); err == nil || errors.Is(err, carrier.ErrUnknownCall) {
				t.Errorf("FetchRecording = %v, want an error other than ErrUnknownCall", err)
			}
		})
	}
}
