package webhook

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"parley/shared/conversation"
)

// The headers of every delivery (spec: Headers on every delivery).
const (
	EventHeader      = "X-Service-Event"
	DeliveryIDHeader = "X-Service-Delivery-Id"
	VersionHeader    = "X-Service-Payload-Version"
	SignatureHeader  = "X-Service-Signature"

	userAgent = "Parley-Webhooks/1"
)

// reserved are the names that no custom header may have, beside all that begin with
// X-Service- or Proxy-: they are ours, or say how a connection is used.
var reserved = []string{
	"Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host", "Keep-Alive",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent",
}

func isReserved(name string) bool {
	name = http.CanonicalHeaderKey(name)
	return slices.Contains(reserved, name) || strings.HasPrefix(name, "X-Service-") || strings.HasPrefix(name, "Proxy-")
}

// CheckHeaders names every problem of an endpoint's custom headers. No value appears in it.
func CheckHeaders(headers map[string]string) []string {
	var problems []string
	if len(headers) > conversation.MaxWebhookHeaders {
		problems = append(problems, fmt.Sprintf("headers must be at most %d", conversation.MaxWebhookHeaders))
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !isToken(name) || len(name) > conversation.MaxWebhookHeaderLength:
			problems = append(problems, fmt.Sprintf("headers: %.60q is no header name", name))
		case isReserved(name):
			problems = append(problems, fmt.Sprintf("headers: %s is set by the service", name))
		case seen[canonical]:
			problems = append(problems, fmt.Sprintf("headers: %s is there twice", canonical))
		}
		seen[canonical] = true
		if !isValue(headers[name]) {
			problems = append(problems, fmt.Sprintf("headers: the value of %.60q must be 1 to %d printable ASCII characters, without a space at either end",
				name, conversation.MaxWebhookHeaderLength))
		}
	}
	return problems
}

// isToken tells whether a name is one of HTTP (RFC 9110, 5.6.2).
func isToken(name string) bool {
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return name != ""
}

func isValue(value string) bool {
	for _, c := range []byte(value) {
		if c < ' ' || c >= 0x7f {
			return false
		}
	}
	return value != "" && len(value) <= conversation.MaxWebhookHeaderLength && strings.TrimSpace(value) == value
}
