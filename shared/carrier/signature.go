package carrier

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// SignatureHeader carries the signature of one of the simulator's callbacks.
const SignatureHeader = "X-Carrier-Signature"

// maxAge is how far a signature's time may be from ours, either way.
const maxAge = 5 * time.Minute

// Sign makes the header's value, t=<Unix seconds>,v1=<HMAC-SHA256 in lower-case hex>, over
// time, URL and body. No URL has a line break, so the three can't run into each other.
func Sign(secret []byte, at time.Time, url string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%d\n%s\n", at.Unix(), url)
	mac.Write(body)
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
}

// verify tells whether the header has one signature, of this secret, that is young enough.
// Without a secret nothing is verified.
func verify(secret []byte, header http.Header, url string, body []byte, now time.Time) error {
	values := header.Values(SignatureHeader)
	if len(values) != 1 || len(secret) == 0 {
		return ErrUnverified
	}
	t, _, _ := strings.Cut(strings.TrimPrefix(values[0], "t="), ",")
	seconds, err := strconv.ParseInt(t, 10, 64)
	if err != nil {
		return ErrUnverified
	}
	at := time.Unix(seconds, 0)
	if at.Before(now.Add(-maxAge)) || at.After(now.Add(maxAge)) {
		return ErrUnverified
	}
	if !hmac.Equal([]byte(values[0]), []byte(Sign(secret, at, url, body))) {
		return ErrUnverified
	}
	return nil
}
