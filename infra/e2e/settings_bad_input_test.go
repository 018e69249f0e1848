package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
)

// Every problem of an endpoint that isn't to be is named, when it is made and when it is
// changed, and nothing of it is saved. On this stage an endpoint may be on this machine,
// also by http, and nowhere else where others can't be.
func TestBadEndpoints(t *testing.T) {
	t.Parallel()
	u := newUser(t, newTenant(t).ws)
	good := u.createEndpoint(t, "http://localhost:80/hooks", []conversation.EventName{conversation.CallStarted}, anything{"headers": anything{"X-Api-Key": "theirs"}})
	tooMany := anything{}
	for i := range 101 {
		tooMany[fmt.Sprintf("X-%d", i)] = "v"
	}
	const (
		notHTTPS  = "url: must begin with https://"
		notPublic = "url: must have a public address"
		noURL     = "url: must be an absolute URL with a host, like https://example.com/webhooks"
		badTime   = "timeout_seconds: must be a whole number from 1 to 10"
		badValue  = "must be 1 to 1024 printable ASCII characters, without a space at either end"
		badEvent  = `expected value to be one of "call.started, call.completed, call.failed, message.received, message.sent, thread.completed"`
		badBlock  = `expected value to be one of "call, customer, costs, transcript, analysis, evaluations, follow_ups, recording, performance_metrics, config_snapshot"`
	)
	tests := map[string]struct {
		bad  anything
		want []string
	}{
		"http":               {anything{"url": "http://example.com/"}, []string{notHTTPS}},
		"private":            {anything{"url": "https://10.0.0.1/"}, []string{notPublic}},
		"private, by http":   {anything{"url": "http://192.168.1.1:8080/"}, []string{notHTTPS, notPublic}},
		"metadata":           {anything{"url": "https://169.254.169.254/latest/meta-data"}, []string{notPublic}},
		"all of this host":   {anything{"url": "https://0.0.0.0/"}, []string{notPublic}},
		"a decimal loopback": {anything{"url": "https://2130706433/"}, []string{"url: must write an IPv4 address as four decimal numbers"}},
		"a private IPv6":     {anything{"url": "https://[fd00::1]/"}, []string{"url: must name its host, not write an IPv6 address"}},
		"a private name":     {anything{"url": "https://printer.local/"}, []string{"url: must have a public host name"}},
		"a low port":         {anything{"url": "https://example.com:22/"}, []string{"url: must have port 443, or one from 1024 to 65535"}},
		"user info":          {anything{"url": "https://ada:pass@example.com/"}, []string{"url: must have no user name and no password"}},
		"user info, here":    {anything{"url": "http://ada@127.0.0.1:9000/"}, []string{"url: must have no user name and no password"}},
		"no host":            {anything{"url": "https:///hooks"}, []string{noURL}},
		"no URL":             {anything{"url": "hooks"}, []string{noURL}},
		"3,000 characters":   {anything{"url": "https://example.com/" + strings.Repeat("x", 2980)}, []string{"url: must have at most 2048 characters"}},
		"timeout 0":          {anything{"timeout_seconds": 0}, []string{badTime}},
		"timeout 11":         {anything{"timeout_seconds": 11}, []string{badTime}},
		"unknown event":      {anything{"events": []string{"call.started", "call.melted"}}, []string{"events[1]: " + badEvent}},
		"unknown block":      {anything{"blocks": []string{"salary"}}, []string{"blocks[0]: " + badBlock}},
		"CR LF in a value":   {anything{"headers": anything{"X-A": "a\r\nX-B: b"}}, []string{`headers: the value of "X-A" ` + badValue}},
		"CR LF in a name":    {anything{"headers": anything{"X-A\r\nX-B": "a"}}, []string{`headers: "X-A\r\nX-B" is no header name`}},
		"our own headers":    {anything{"headers": anything{"x-service-signature": "a", "Host": "b"}}, []string{"headers: Host is set by the service", "headers: x-service-signature is set by the service"}},
		"101 headers":        {anything{"headers": tooMany}, []string{"headers must be at most 100"}},
		"all of it": {anything{
			"url": "ftp://u@10.0.0.1:80/#f", "timeout_seconds": 11, "events": []string{"x"}, "blocks": []string{"y"},
			"headers": anything{"Host": "a", "X-A": ""}, "enabled": "yes", "colour": "red",
		}, []string{
			"blocks[0]: " + badBlock, "colour: unexpected property", "enabled: expected boolean", "events[0]: " + badEvent,
			"headers: Host is set by the service", `headers: the value of "X-A" ` + badValue, badTime,
			notHTTPS, notPublic, "url: must have no fragment", "url: must have no user name and no password", "url: must have port 443, or one from 1024 to 65535",
		}},
	}
	before := everything(t, u)
	for name, tt := range tests {
		made := anything{"url": good.URL, "events": good.Events}
		maps.Copy(made, tt.bad)
		for method, got := range map[string]answer{
			http.MethodPost:  u.ask(t, http.MethodPost, "/webhook-endpoints", made),
			http.MethodPatch: u.ask(t, http.MethodPatch, "/webhook-endpoints/"+string(good.EndpointID), tt.bad),
		} {
			if diff := cmp.Diff(problem{tt.want, "invalid_request"}, want[problem](t, got, http.StatusBadRequest)); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", method, name, diff)
			}
		}
	}
	if after := everything(t, u); after != before {
		t.Errorf("before, the settings were\n%s\nand after\n%s", before, after)
	}
}
