package webhook_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley/shared/webhook"
)

// forReceivers is the folder of what receivers copy.
var forReceivers = filepath.Join("..", "..", "events", "webhooks")

// vector is a payload and what becomes of it. The signatures were not made by our code;
// stripe's library (PyPI, 16.1.0) agrees with every one, but that it accepts a time that
// is written with a zero or a plus before it.
type vector struct {
	Name      string `json:"name"`
	Payload   string `json:"payload"`
	Header    string `json:"header"`
	Secret    string `json:"secret"`
	Tolerance int    `json:"tolerance"`
	Now       int64  `json:"now"`
	Error     string `json:"error"`
}

func vectors(t testing.TB) []vector {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(forReceivers, "vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(text, &all); err != nil || len(all) == 0 {
		t.Fatalf("%d vectors, %v", len(all), err)
	}
	return all
}

func verifyVector(v vector) error {
	return webhook.Verify([]byte(v.Payload), v.Header, v.Secret, time.Duration(v.Tolerance)*time.Second, time.Unix(v.Now, 0))
}

func TestVerify(t *testing.T) {
	errs := map[string]error{"malformed": webhook.ErrHeader, "mismatch": webhook.ErrSignature, "too_old": webhook.ErrTooOld}
	for _, v := range vectors(t) {
		if err := verifyVector(v); !errors.Is(err, errs[v.Error]) {
			t.Errorf("%s: %v, want %v", v.Name, err, errs[v.Error])
		}
	}
}

// What we sign is what was signed elsewhere.
func TestSign(t *testing.T) {
	for _, v := range vectors(t) {
		if v.Error != "" || strings.Count(v.Header, ",") != 1 {
			continue
		}
		var at int64
		if err := json.Unmarshal([]byte(v.Header[2:strings.IndexByte(v.Header, ',')]), &at); err != nil {
			t.Fatal(err)
		}
		if got := webhook.Sign([]byte(v.Payload), v.Secret, time.Unix(at, 0)); got != v.Header {
			t.Errorf("%s: Sign = %s, want %s", v.Name, got, v.Header)
		}
	}
}

func TestNewSecret(t *testing.T) {
	a, b := webhook.NewSecret(), webhook.NewSecret()
	if form := regexp.MustCompile(`^whsec_[A-Za-z0-9_-]{43}$`); !form.MatchString(a) || a == b {
		t.Errorf("secrets %s and %s; want two of the form %s", a, b, form)
	}
}

// outcomes are the vectors' errors as another language's code prints them, in their order.
func outcomes(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	got := strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(out), "\r\n", "\n"), "\n"), "\n")
	all := vectors(t)
	if len(got) != len(all) {
		t.Fatalf("%d lines for %d vectors:\n%s", len(got), len(all), out)
	}
	for i, v := range all {
		if want := v.Error; got[i] != "="+want {
			t.Errorf("%s: %q, want %q", v.Name, got[i], "="+want)
		}
	}
}

func TestVerifyPython(t *testing.T) {
	outcomes(t, "python3", "-c", `
import json, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from verify import verify, VerificationError
for v in json.load(open(sys.argv[1] + "/vectors.json", encoding="utf-8")):
    try:
        verify(v["payload"].encode(), v["header"], v["secret"], v["tolerance"], v["now"])
        print("=")
    except VerificationError as error:
        print("=" + error.code)
`, forReceivers)
}

// Node 20 runs no TypeScript: what the types add is taken out first.
func TestVerifyTypeScript(t *testing.T) {
	typed, err := os.ReadFile(filepath.Join(forReceivers, "verify.ts"))
	if err != nil {
		t.Fatal(err)
	}
	plain := regexp.MustCompile(`: (Uint8Array|string|number|void)\b`).ReplaceAll(typed, nil)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "verify.mjs"), plain, 0o644); err != nil {
		t.Fatal(err)
	}
	run := filepath.Join(dir, "run.mjs")
	if err := os.WriteFile(run, []byte(`
import { readFileSync } from "node:fs";
import { verify } from "./verify.mjs";
for (const v of JSON.parse(readFileSync(process.argv[2], "utf8"))) {
  try {
    verify(Buffer.from(v.payload), v.header, v.secret, v.tolerance, v.now);
    console.log("=");
  } catch (error) {
    console.log("=" + error.message);
  }
}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	outcomes(t, "node", run, filepath.Join(forReceivers, "vectors.json"))
}

// Our own signature of a payload is accepted, and of no other; any header gets a documented
// error or none.
func FuzzVerify(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add([]byte(v.Payload), v.Header, v.Secret, v.Now)
	}
	f.Fuzz(func(t *testing.T, payload []byte, header, secret string, now int64) {
		now = now & (1<<40 - 1) // within the times that a signature can hold
		at := time.Unix(now, 0)
		signed := webhook.Sign(payload, secret, at)
		if err := webhook.Verify(payload, signed, secret, 0, at); (err == nil) != (secret != "") {
			t.Errorf("our own signature by secret %q: %v", secret, err)
		}
		if err := webhook.Verify(append(payload[:len(payload):len(payload)], 'x'), signed, secret, 0, at); !errors.Is(err, webhook.ErrSignature) {
			t.Errorf("another payload: %v", err)
		}
		err := webhook.Verify(payload, header, secret, time.Minute, at)
		if err != nil && !errors.Is(err, webhook.ErrHeader) && !errors.Is(err, webhook.ErrSignature) && !errors.Is(err, webhook.ErrTooOld) {
			t.Errorf("header %q: error %v is none of the documented ones", header, err)
		}
	})
}

// The README shows all three whole, for copying.
func TestREADMEShowsVerify(t *testing.T) {
	read := func(parts ...string) string {
		text, err := os.ReadFile(filepath.Join(parts...))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	_, ours, _ := strings.Cut(read("signature.go"), "// Why a payload")
	ours, _, _ = strings.Cut(ours, "// Sign makes")
	readme := read("..", "..", "README.md")
	for name, code := range map[string]string{
		"signature.go": strings.TrimSpace(ours),
		"verify.ts":    read(forReceivers, "verify.ts"),
		"verify.py":    read(forReceivers, "verify.py"),
	} {
		if !strings.Contains(readme, code) {
			t.Errorf("README.md doesn't show Verify as %s has it", name)
		}
	}
}
