package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Why a payload is not to be trusted.
var (
	// ErrHeader says that the header is not t=<Unix seconds>,v1=<hex>, or is missing.
	ErrHeader = errors.New("webhook: the signature header is malformed")
	// ErrSignature says that no signature in the header is that of this payload by this
	// secret: somebody else sent it, it was changed, or it is not the raw body.
	ErrSignature = errors.New("webhook: the signature does not match")
	// ErrTooOld says that the signature is right, but older than the tolerance.
	ErrTooOld = errors.New("webhook: the signature is too old")
)

// Verify tells whether a payload is the service's: whether the header X-Service-Signature
// holds a signature of the raw body by the endpoint's secret that is no older than the
// tolerance (five minutes are a good one). Its error is ErrHeader, ErrSignature or
// ErrTooOld. Nothing is verified by an empty secret.
func Verify(payload []byte, header, secret string, tolerance time.Duration, now time.Time) error {
	var timestamp string
	var signatures []string
	for part := range strings.SplitSeq(header, ",") {
		switch name, value, _ := strings.Cut(part, "="); name {
		case "t":
			timestamp = value
		case "v1":
			signatures = append(signatures, value)
		}
	}
	seconds, err := strconv.ParseUint(timestamp, 10, 60)
	if err != nil || len(signatures) == 0 {
		return ErrHeader
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(payload)
	want := []byte(hex.EncodeToString(mac.Sum(nil)))
	for _, got := range signatures {
		if secret != "" && hmac.Equal(want, []byte(got)) {
			if int64(seconds) < now.Add(-tolerance).Unix() {
				return ErrTooOld
			}
			return nil
		}
	}
	return ErrSignature
}

// Sign makes the value of X-Service-Signature: t=<Unix seconds>,v1=<lower-case hex of the
// HMAC-SHA256 of "<t>.<payload>">. The key is the secret as it is written.
func Sign(payload []byte, secret string, at time.Time) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.", at.Unix())
	mac.Write(payload)
	return fmt.Sprintf("t=%d,v1=%x", at.Unix(), mac.Sum(nil))
}

// NewSecret makes a signing secret of 256 random bits.
func NewSecret() string {
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // it never fails
	return "whsec_" + base64.RawURLEncoding.EncodeToString(bits[:])
}
