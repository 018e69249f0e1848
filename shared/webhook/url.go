package webhook

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley/shared/conversation"
)

// CheckURL names every problem of an endpoint's URL: each begins with "url must". It asks
// nobody where a name leads; the guard checks that whenever it dials. loopback also allows
// http and any port of this machine's own addresses, as the local stage does.
func CheckURL(raw string, loopback bool) []string {
	var problems []string
	must := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, "url must "+fmt.Sprintf(format, args...))
		}
	}
	must(utf8.RuneCountInString(raw) <= conversation.MaxWebhookURL, "have at most %d characters", conversation.MaxWebhookURL)
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Opaque != "" {
		must(false, "be an absolute URL with a host, like https://example.com/webhooks")
		return problems
	}
	must(u.User == nil, "have no user name and no password")
	must(!strings.Contains(raw, "#"), "have no fragment")
	if loopback && isLoopback(u.Hostname()) {
		must(u.Scheme == "https" || u.Scheme == "http", "begin with https:// or http://")
		return problems
	}
	must(u.Scheme == "https", "begin with https://")
	must(u.Port() == "" || allowedPort(u.Port()), "have port 443, or one from 1024 to 65535")
	if problem := hostProblem(u.Hostname()); problem != "" {
		must(false, "%s", problem)
	}
	return problems
}

// isLoopback knows this machine by name or by address.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}

func allowedPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && (n == 443 || n >= 1024)
}

// notPublic are the names under which nothing public is.
var notPublic = []string{"localhost", "local", "internal", "lan", "intranet", "home.arpa", "test", "invalid", "onion"}

// hostProblem says what a host must be that this one isn't. A host is a name, or an IPv4
// address in its usual form: not one that other programs also take for an address, such
// as 2130706433 or 0x7f.1.
func hostProblem(host string) string {
	if strings.Contains(host, ":") {
		return "name its host, not write an IPv6 address"
	}
	labels := strings.Split(strings.ToLower(host), ".")
	for _, label := range labels {
		if !isLabel(label) {
			return "have a host of ASCII letters, digits, hyphens and dots (write others in punycode)"
		}
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if guardian.SafeAddr(addr) != nil {
			return "have a public address"
		}
		return ""
	}
	if isNumber(labels[len(labels)-1]) {
		return "write an IPv4 address as four decimal numbers"
	}
	if len(host) > 253 || len(labels) < 2 {
		return "have a public host name"
	}
	for _, name := range notPublic {
		if strings.HasSuffix("."+strings.ToLower(host), "."+name) {
			return "have a public host name"
		}
	}
	return ""
}

func isLabel(label string) bool {
	if label == "" || len(label) > 63 {
		return false
	}
	for _, c := range []byte(label) {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

// isNumber tells whether a label is decimal, octal or hexadecimal.
func isNumber(label string) bool {
	digits, isHex := strings.CutPrefix(label, "0x")
	return strings.Trim(digits, "0123456789") == "" || isHex && strings.Trim(digits, "0123456789abcdef") == ""
}
