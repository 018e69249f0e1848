package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestProxy(t *testing.T) {
	emulator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "https://elsewhere/audio")
		w.WriteHeader(http.StatusFound)
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.Host, r.RequestURI, r.Header.Get("Authorization"))
	}))
	defer emulator.Close()
	proxy, err := newProxy(emulator.URL, "http://abc.execute-api.localhost:4566")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(proxy)
	defer server.Close()

	req, err := http.NewRequest(http.MethodPatch, server.URL+"/v1/a%2Fb?x=1;y&bad=%zz", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer key")
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if want := "PATCH abc.execute-api.localhost:4566 /v1/a%2Fb?x=1;y&bad=%zz Bearer key"; string(body) != want {
		t.Errorf("the emulator got %q, want %q", body, want)
	}
	if res.StatusCode != http.StatusFound || res.Header.Get("Location") != "https://elsewhere/audio" {
		t.Errorf("the client got %s to %q, want the redirect as it is", res.Status, res.Header.Get("Location"))
	}
}

func TestProxyWithoutEmulator(t *testing.T) {
	proxy, err := newProxy("http://127.0.0.1:1", "http://abc.execute-api.localhost:4566")
	if err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	proxy.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/v1/calls", nil))
	if recorder.Code != http.StatusBadGateway {
		t.Errorf("status = %d, want %d", recorder.Code, http.StatusBadGateway)
	}
}
