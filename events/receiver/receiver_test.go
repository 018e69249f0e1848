package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/shared/webhook"
)

const secret = "whsec_test"

func TestReceiver(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	out, in := io.Pipe()
	r := newReceiver(secret, func() time.Time { return now }, in)
	post := func(body, signature, id string) int {
		request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		request.Header.Set(webhook.SignatureHeader, signature)
		request.Header.Set(webhook.DeliveryIDHeader, id)
		answer := httptest.NewRecorder()
		r.ServeHTTP(answer, request)
		return answer.Code
	}
	sign := func(body string, at time.Time) string { return webhook.Sign([]byte(body), secret, at) }
	sample := func(event string) string {
		text, err := os.ReadFile(filepath.Join("..", "webhooks", event+".json"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	started, completed := sample("call.started"), sample("call.completed")
	unknown := `{"event":"weather.changed","event_id":"1","occurred_at":"2026-03-01T12:00:00.000+00:00","weather":{}}`
	for _, tt := range []struct {
		name, body, signature string
		want                  int
	}{
		{"an event", started, sign(started, now), 200},
		{"the same again", started, sign(started, now), 200},
		{"another of the same call", completed, sign(completed, now), 200},
		{"one that we don't know", unknown, sign(unknown, now), 200},
		{"changed on the way", started + " ", sign(started, now), 400},
		{"old", started, sign(started, now.Add(-6*time.Minute)), 400},
		{"unsigned", started, "", 400},
		{"no JSON", "{", sign("{", now), 400},
	} {
		if got := post(tt.body, tt.signature, tt.name); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
	get := httptest.NewRecorder()
	r.ServeHTTP(get, httptest.NewRequest(http.MethodGet, "/", nil))
	if get.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d, want 405", get.Code)
	}
	close(r.work)
	lines := bufio.NewScanner(out)
	for _, want := range []string{"call.started ", "call.completed ", "weather.changed "} {
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Errorf("line %q, want one of %s", lines.Text(), want)
		}
	}
}

func TestSeenForgets(t *testing.T) {
	s := newSeen()
	for n := range remembered + 1 {
		if s.before(envelope{Event: "e", EventID: fmt.Sprint(n)}) {
			t.Fatalf("%d was here before", n)
		}
	}
	if s.before(envelope{Event: "e", EventID: "0"}) || !s.before(envelope{Event: "e", EventID: "2"}) {
		t.Errorf("the oldest is remembered, or a younger one isn't")
	}
	if len(s.known) != remembered || len(s.oldest) != remembered {
		t.Errorf("%d and %d events remembered, want %d", len(s.known), len(s.oldest), remembered)
	}
}
