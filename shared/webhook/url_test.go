package webhook

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

func TestCheckURL(t *testing.T) {
	const (
		https  = "begin with https://"
		port   = "have port 443"
		host   = "have a public host name"
		public = "have a public address"
		ipv6   = "name its host, not write an IPv6 address"
		usual  = "write an IPv4 address as four decimal numbers"
		ascii  = "have a host of ASCII letters"
		none   = "be an absolute URL with a host"
	)
	for raw, want := range map[string][]string{
		"https://example.com":                              nil,
		"https://example.com/hooks?a=1&b=%20":              nil,
		"https://hooks.example.com:8443/":                  nil,
		"https://EXAMPLE.com:443":                          nil,
		"HTTPS://xn--bcher-kva.example/":                   nil,
		"https://93.184.216.34/":                           nil,
		"https://example.com:1024/":                        nil,
		"http://example.com/":                              {https},
		"ftp://example.com/":                               {https},
		"//example.com/":                                   {https},
		"example.com/hooks":                                {none},
		"/hooks":                                           {none},
		"https:///hooks":                                   {none},
		"https:example.com":                                {none},
		"":                                                 {none},
		"https://exa mple.com/":                            {none},
		"https://example.com/\r\nX-Api-Key: 1":             {none},
		"https://example.com:port/":                        {none},
		"https://ada@example.com/":                         {"have no user name"},
		"https://ada:secret@example.com/":                  {"have no user name"},
		"https://example.com#@other.example/":              {"have no fragment"},
		"https://example.com:80/":                          {port},
		"https://example.com:22/":                          {port},
		"https://example.com:0/":                           {port},
		"https://example.com:65536/":                       {port},
		"https://example.com:1023/":                        {port},
		"https://localhost/":                               {host},
		"https://LOCALHOST:8443/":                          {host},
		"https://api.localhost/":                           {host},
		"https://metadata.google.internal/":                {host},
		"https://printer.local/":                           {host},
		"https://intranet/":                                {host},
		"https://example.com./":                            {ascii},
		"https://example..com/":                            {ascii},
		"https://bücher.example/":                          {ascii},
		"https://１２７.０.０.１/":                               {ascii},
		"https://127.0.0.1/":                               {public},
		"https://10.0.0.1/":                                {public},
		"https://172.16.0.1/":                              {public},
		"https://192.168.1.1/":                             {public},
		"https://169.254.169.254/latest/meta-data/":        {public},
		"https://100.64.0.1/":                              {public},
		"https://0.0.0.0/":                                 {public},
		"https://224.0.0.1/":                               {public},
		"https://255.255.255.255/":                         {public},
		"https://198.18.0.1/":                              {public},
		"https://192.0.2.1/":                               {public},
		"https://2130706433/":                              {usual},
		"https://017700000001/":                            {usual},
		"https://0x7f000001/":                              {usual},
		"https://0x7f.1/":                                  {usual},
		"https://127.1/":                                   {usual},
		"https://127.0.0.01/":                              {usual},
		"https://1.2.3.4.5/":                               {usual},
		"https://example.0x1/":                             {usual},
		"https://[2606:4700::1111]/":                       {ipv6},
		"https://[::1]/":                                   {ipv6},
		"https://[::ffff:127.0.0.1]/":                      {ipv6},
		"https://[2002:7f00:1::]/":                         {ipv6},
		"https://[64:ff9b::7f00:1]/":                       {ipv6},
		"https://[2001:0:53aa:64c:0:0:80ff:fffe]/":         {ipv6},
		"https://[fe80::1%25eth0]/":                        {ipv6},
		"https://" + strings.Repeat("a.", 130) + "com":     {host},
		"https://" + strings.Repeat("a", 64) + ".com":      {ascii},
		"https://example.com/" + strings.Repeat("a", 3000): {"have at most 2048 characters"},
		"https://example.com/" + strings.Repeat("ü", 2028): nil, // characters, not bytes
		"https://example.com/" + strings.Repeat("ü", 2029): {"have at most 2048 characters"},
		"http://ada@127.0.0.1:22/#x":                       {"have no user name", "have no fragment", https, port, public},
	} {
		got := CheckURL(raw, false)
		ok := len(got) == len(want)
		for i := 0; ok && i < len(want); i++ {
			ok = strings.HasPrefix(got[i], "url must "+want[i])
		}
		if !ok {
			t.Errorf("%.80s: %q, want %q", raw, got, want)
		}
	}
}

// The local stage also allows this machine, and nothing else.
func TestCheckURLWithLoopback(t *testing.T) {
	for raw, want := range map[string]bool{
		"http://127.0.0.1:9000/hooks": true,
		"http://localhost/":           true,
		"https://[::1]:9443/":         true,
		"http://127.9.9.9:22/":        true,
		"https://example.com/":        true,
		"http://example.com/":         false,
		"http://10.0.0.1/":            false,
		"ftp://localhost/":            false,
		"http://ada@localhost/":       false,
		"http://localhost.evil.com/":  false,
	} {
		if got := CheckURL(raw, true); (got == nil) != want {
			t.Errorf("%s: %q, want allowed: %t", raw, got, want)
		}
	}
}

// A URL without problems has a host that nobody could take for an address that isn't
// public, however they read addresses.
func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{
		"https://example.com/", "https://0x7f.1/", "https://2130706433/", "https://[::ffff:7f00:1]/", "https://a@b.com:443/",
		"https://127.0.0.1.nip.io/", "https://0177.0.0.1/", "https://example.com:8443/?q#f", "https://１２７.０.０.１/", "https://1.1/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if CheckURL(raw, false) != nil {
			return
		}
		u, err := url.Parse(raw)
		if err != nil || u.Scheme != "https" || u.User != nil || u.Fragment != "" {
			t.Fatalf("%q has no problems, but is %+v, %v", raw, u, err)
		}
		host := u.Hostname()
		if addr, ok := readLoosely(host); ok && (addr.String() != host || guardian.SafeAddr(addr) != nil) {
			t.Errorf("%q has no problems, but its host can be read as %s", raw, addr)
		}
		for _, c := range host {
			if c > 'z' || c <= ' ' || strings.ContainsRune(`/\@:%#?[]`, c) {
				t.Errorf("%q has no problems, but its host has %q", raw, c)
			}
		}
	})
}

// readLoosely reads an IPv4 address as inet_aton does: one to four numbers, decimal, octal
// or hexadecimal, the last of which fills what is left.
func readLoosely(host string) (netip.Addr, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var sum uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 32)
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		if err != nil || n >= 1<<bits {
			return netip.Addr{}, false
		}
		sum = sum<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}), true
}
