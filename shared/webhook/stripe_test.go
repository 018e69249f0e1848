package webhook_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/shared/emulator"
	"parley/shared/webhook"
)

// stripe is a program that says of each vector whether stripe's library accepts it, at the
// vector's time.
const stripe = `
import json, sys
from unittest import mock
from stripe import SignatureVerificationError, WebhookSignature
for v in json.load(sys.stdin.buffer):
    with mock.patch("time.time", return_value=v["now"]):
        try:
            WebhookSignature.verify_header(v["payload"].encode(), v["header"], v["secret"], v["tolerance"])
            print("accepted")
        except SignatureVerificationError:
            print("refused")
`

// stripeAccepts says which of the vectors stripe's library accepts, whose signatures have our
// form. It is pinned in infra/local/requirements.txt, and installed as the emulator is.
func stripeAccepts(t *testing.T, all []vector) []bool {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the Python environment, which -short leaves out")
	}
	root, err := emulator.Root()
	if err != nil {
		t.Fatal(err)
	}
	if err := emulator.Install(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, ".local", "venv", "bin", "python"), "-c", stripe)
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.CombinedOutput()
	said := strings.Fields(string(out))
	if err != nil || len(said) != len(all) {
		t.Fatalf("%d answers for %d vectors, %v\n%s", len(said), len(all), err, out)
	}
	accepted := make([]bool, len(all))
	for i := range said {
		accepted[i] = said[i] == "accepted"
	}
	return accepted
}

func TestStripeVerifiesOurs(t *testing.T) {
	secret, at := webhook.NewSecret(), time.Now()
	payloads := map[string]string{
		"JSON":      `{"event":"call.started","version":1}`,
		"unicode":   `{"summary":"Grüße, 日本, 👋","html":"<b>&</b>"}` + "\r\n\x00",
		"one of MB": strings.Repeat("a long transcript, ", 1<<16),
		"empty":     "",
	}
	changes := map[string]struct {
		change func(*vector)
		want   bool
	}{
		"as sent":          {func(*vector) {}, true},
		"just in time":     {func(v *vector) { v.Now += 300 }, true},
		"too old":          {func(v *vector) { v.Now += 301 }, false},
		"another body":     {func(v *vector) { v.Payload += " " }, false},
		"another secret":   {func(v *vector) { v.Secret = webhook.NewSecret() }, false},
		"another time":     {func(v *vector) { v.Header = strings.Replace(v.Header, "t=", "t=1", 1) }, false},
		"another's header": {func(v *vector) { v.Header = webhook.Sign([]byte("x"+v.Payload), secret, at) }, false},
	}
	var all []vector
	var wants []bool
	for payload, text := range payloads {
		for change, tt := range changes {
			v := vector{
				Name: payload + ", " + change, Payload: text, Header: webhook.Sign([]byte(text), secret, at),
				Secret: secret, Tolerance: 300, Now: at.Unix(),
			}
			tt.change(&v)
			all, wants = append(all, v), append(wants, tt.want)
		}
	}
	for i, got := range stripeAccepts(t, all) {
		if got != wants[i] {
			t.Errorf("%s: accepted by stripe's library: %t, want %t", all[i].Name, got, wants[i])
		}
	}
}

// stricter are the vectors that stripe's library accepts and Verify doesn't: it computes the
// signature over the number that it reads from t, Verify over t as it is written.
var stricter = map[string]string{
	"the time written otherwise": "t=01772366400 reads as 1772366400",
	"a signed time":              "t=+1772366400 reads as 1772366400",
}

func TestVectorsByStripe(t *testing.T) {
	all := vectors(t)
	different := 0
	for i, got := range stripeAccepts(t, all) {
		reason, differs := stricter[all[i].Name]
		if differs && all[i].Error != "" {
			different++
		}
		if want := all[i].Error == "" || differs; got != want {
			t.Errorf("%s: accepted by stripe's library: %t, want %t %s", all[i].Name, got, want, reason)
		}
	}
	if different != len(stricter) {
		t.Errorf("in %d vectors Verify is stricter, want %d: %v", different, len(stricter), stricter)
	}
}
