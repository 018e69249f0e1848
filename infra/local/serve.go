package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// serve answers requests to the API until ctx is done or the emulator ends.
func (l *local) serve(ctx context.Context) error {
	proxy, err := newProxy(l.stack.AWSEndpointURL, l.apiURL())
	if err != nil {
		return err
	}
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	defer server.Close()
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l.listener) }()

	var emulatorEnded <-chan struct{} // never, for one that isn't ours
	if l.emulator != nil {
		emulatorEnded = l.emulator.Ended()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return fmt.Errorf("serve the API: %w", err)
	case <-emulatorEnded:
		return errors.New("the emulator of AWS has ended, and said:\n" + l.emulator.Output())
	}
}

// newProxy leads to the API at apiURL. Its host need not resolve here: the emulator is
// asked at its endpoint, and tells its APIs apart by the Host header.
func newProxy(endpoint, apiURL string) (http.Handler, error) {
	target, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("endpoint of AWS: %w", err)
	}
	api, err := url.Parse(apiURL)
	if err != nil {
		return nil, fmt.Errorf("output ApiUrl: %w", err)
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.SetXForwarded()
			r.Out.Host = api.Host
			r.Out.URL.RawQuery = r.In.URL.RawQuery // malformed parts too: they are the API's to refuse
		},
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 100,
			DisableCompression:  true, // answers pass as they are
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil { // else the client has gone
				http.Error(w, "the emulator of AWS did not answer: "+err.Error(), http.StatusBadGateway)
			}
		},
	}, nil
}
