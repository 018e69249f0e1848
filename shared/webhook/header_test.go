package webhook_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/shared/webhook"
)

func TestCheckHeaders(t *testing.T) {
	type headers = map[string]string
	many := headers{}
	for n := range 101 {
		many[fmt.Sprint("X-", n)] = "v"
	}
	const value = "must be 1 to 1024 printable ASCII"
	for name, tt := range map[string]struct {
		headers headers
		want    []string // a part of each problem
	}{
		"none":               {nil, nil},
		"a secret":           {headers{"X-Api-Key": "s3cr3t !~", "authorization": "Basic YTpi"}, nil},
		"CR and LF":          {headers{"X-A": "1\r\nX-Service-Signature: forged"}, []string{value}},
		"LF in the name":     {headers{"X-A\nX-B": "1"}, []string{"no header name"}},
		"no name":            {headers{"": "1"}, []string{"no header name"}},
		"a colon":            {headers{"X-A:": "1"}, []string{"no header name"}},
		"another script":     {headers{"X-Ä": "1", "X-B": "ä"}, []string{value, "no header name"}},
		"NUL":                {headers{"X-A": "a\x00b"}, []string{value}},
		"empty":              {headers{"X-A": ""}, []string{value}},
		"a space at its end": {headers{"X-A": "a "}, []string{value}},
		"too long":           {headers{"X-A": strings.Repeat("a", 1025), strings.Repeat("b", 1025): "1"}, []string{value, "no header name"}},
		"as long as may be":  {headers{"X-A": strings.Repeat("a", 1024)}, nil},
		"ours":               {headers{"x-service-signature": "1", "X-Service-Anything": "1", "Content-Type": "1", "user-agent": "1"}, []string{"set by the service", "set by the service", "set by the service", "set by the service"}},
		"the connection's":   {headers{"Host": "1", "Connection": "1", "TE": "1", "Proxy-Authorization": "1", "Content-Length": "0"}, []string{"set", "set", "set", "set", "set"}},
		"a key of their own": {headers{"Idempotency-Key": "1", "x-idempotency-key": "1"}, nil},
		"twice":              {headers{"X-Api-Key": "1", "x-api-key": "2"}, []string{"X-Api-Key is there twice"}},
		"101":                {many, []string{"at most 100"}},
	} {
		got := webhook.CheckHeaders(tt.headers)
		ok := len(got) == len(tt.want)
		for i := 0; ok && i < len(got); i++ {
			ok = strings.HasPrefix(got[i], "headers") && strings.Contains(got[i], tt.want[i])
		}
		if !ok {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
