package settings_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
	"parley/shared/httpapi"
)

// Every bad input is a 400 that names every problem, and nothing of it is saved.
func TestBadInput(t *testing.T) {
	u := newDesk(t).newUser(t)
	tooMany := anything{}
	for i := range 101 {
		tooMany[fmt.Sprintf("X-%d", i)] = "v"
	}
	endpoint := func(change anything) anything {
		body := anything{"url": "https://example.com/hooks", "events": []string{"call.started"}}
		maps.Copy(body, change)
		return body
	}
	e := u.createEndpoint(t, nil).WebhookEndpoint
	k := u.createKey(t, "CRM").APIKey
	onEndpoint, onKey := "/webhook-endpoints/"+string(e.EndpointID), "/api-keys/"+string(k.APIKeyID)
	const someID = "0191d1c0-0000-7000-8000-000000000001"
	const badHeader = `must be 1 to 1024 printable ASCII characters, without a space at either end`
	tests := map[string]struct {
		method, target string
		body           any
		want           []string // the details; those that end in … by their beginning
	}{
		"http":                 {"POST", "/webhook-endpoints", endpoint(anything{"url": "http://example.com/"}), []string{"url: must begin with https://"}},
		"http to this machine": {"POST", "/webhook-endpoints", endpoint(anything{"url": "http://127.0.0.1:9000/"}), []string{"url: must begin with https://", "url: must have a public address"}},
		"private address":      {"POST", "/webhook-endpoints", endpoint(anything{"url": "https://10.0.0.1/"}), []string{"url: must have a public address"}},
		"metadata address":     {"POST", "/webhook-endpoints", endpoint(anything{"url": "https://169.254.169.254/latest"}), []string{"url: must have a public address"}},
		"user info":            {"POST", "/webhook-endpoints", endpoint(anything{"url": "https://a:b@example.com/"}), []string{"url: must have no user name and no password"}},
		"no host":              {"POST", "/webhook-endpoints", endpoint(anything{"url": "https:///x"}), []string{"url: must be an absolute URL…"}},
		"3,000 characters":     {"POST", "/webhook-endpoints", endpoint(anything{"url": "https://example.com/" + strings.Repeat("x", 2980)}), []string{"url: must have at most 2048 characters"}},
		"no URL to begin with": {"POST", "/webhook-endpoints", endpoint(anything{"url": ""}), []string{"url: expected length >= 1"}},
		"an empty URL":         {"PATCH", onEndpoint, anything{"url": ""}, []string{"url: must be an absolute URL…"}},
		"timeout 0":            {"POST", "/webhook-endpoints", endpoint(anything{"timeout_seconds": 0}), []string{"timeout_seconds: must be a whole number from 1 to 10"}},
		"timeout 11":           {"PATCH", onEndpoint, anything{"timeout_seconds": 11}, []string{"timeout_seconds: must be a whole number from 1 to 10"}},
		"half a second":        {"PATCH", onEndpoint, anything{"timeout_seconds": 1.5}, []string{"timeout_seconds: must be a whole number from 1 to 10"}},
		"timeout of text":      {"PATCH", onEndpoint, anything{"timeout_seconds": "5"}, []string{"timeout_seconds: must be a whole number from 1 to 10"}},
		"timeout null":         {"PATCH", onEndpoint, anything{"timeout_seconds": nil}, []string{"timeout_seconds: must be a whole number from 1 to 10"}},
		"unknown event":        {"POST", "/webhook-endpoints", endpoint(anything{"events": []string{"call.started", "call.melted"}}), []string{`events[1]: expected value to be one of "call.started, …`}},
		"the test event":       {"POST", "/webhook-endpoints", endpoint(anything{"events": []string{"webhook.test"}}), []string{`events[0]: expected value to be one of …`}},
		"unknown block":        {"PATCH", onEndpoint, anything{"blocks": []string{"salary"}}, []string{`blocks[0]: expected value to be one of …`}},
		"header with CR LF":    {"POST", "/webhook-endpoints", endpoint(anything{"headers": anything{"X-A": "a\r\nX-B: b"}}), []string{`headers: the value of "X-A" ` + badHeader}},
		"header name with LF":  {"POST", "/webhook-endpoints", endpoint(anything{"headers": anything{"X-A\n": "a"}}), []string{`headers: "X-A\n" is no header name`}},
		"our own header":       {"POST", "/webhook-endpoints", endpoint(anything{"headers": anything{"x-service-signature": "a", "content-type": "b"}}), []string{"headers: content-type is set by the service", "headers: x-service-signature is set by the service"}},
		"101 headers":          {"POST", "/webhook-endpoints", endpoint(anything{"headers": tooMany}), []string{"headers must be at most 100"}},
		"a header to remove":   {"POST", "/webhook-endpoints", endpoint(anything{"headers": anything{"X-A": nil}}), []string{"headers: X-A must have a value: there is none to remove"}},
		"a header twice":       {"POST", "/webhook-endpoints", `{"url":"https://example.com/","events":[],"headers":{"X-A":"1","X-A":"2"}}`, []string{"headers.X-A: the key stands twice"}},
		"everything at once": {"POST", "/webhook-endpoints?x=1", endpoint(anything{
			"url": "ftp://u@10.0.0.1:80/#f", "timeout_seconds": 0, "events": []string{"x"}, "blocks": []string{"y"}, "headers": anything{"Host": "a", "X-A": ""}, "z": 1, "enabled": "yes",
		}), []string{
			"blocks[0]: …", "enabled: expected boolean", "events[0]: …", "headers: Host is set by the service", `headers: the value of "X-A" ` + badHeader,
			"timeout_seconds: must be a whole number from 1 to 10", "url: must begin with https://", "url: must have a public address", "url: must have no fragment",
			"url: must have no user name and no password", "url: must have port 443, or one from 1024 to 65535", "x: unknown query parameter", "z: unexpected property",
		}},
		"no URL and no events": {"POST", "/webhook-endpoints", anything{}, []string{"expected required property events to be present", "expected required property url to be present"}},

		"no label":         {"POST", "/api-keys", anything{"label": "", "place_calls": 1}, []string{"label: expected length >= 1", "place_calls: expected boolean"}},
		"a long label":     {"PATCH", onKey, anything{"label": strings.Repeat("é", 101)}, []string{"label: expected length <= 100"}},
		"a key's block":    {"PATCH", onKey, anything{"blocks": []string{"calls"}}, []string{"blocks[0]: …"}},
		"a field twice":    {"POST", "/api-keys", `{"label":"a","label":"b"}`, []string{"label: the key stands twice"}},
		"no body":          {"POST", "/api-keys", nil, []string{"the body must be a JSON object"}},
		"no JSON":          {"PATCH", onKey, `{"label"`, []string{"the body is not JSON: …"}},
		"no id":            {"DELETE", "/api-keys/x", nil, []string{"api_key_id: …"}},
		"unknown status":   {"GET", "/deliveries?status=lost&limit=0&from=x&since=1", nil, []string{"from: …", "limit: …", "since: unknown query parameter", "status: …"}},
		"retry of nothing": {"POST", "/deliveries/retry", anything{"endpoint_id": "x", "since": "yesterday"}, []string{"endpoint_id: …", "since: must be an ISO 8601 time…"}},
		"no numbers":       {"POST", "/sandbox/calls", anything{"from": "555", "to": "12025550111"}, []string{"from: must be a phone number…", "to: must be a phone number…"}},
		"a parameter":      {"POST", "/webhook-endpoints/" + someID + "/test?force=1", nil, []string{"force: unknown query parameter"}},
	}
	before := u.audit(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := want[httpapi.Problem](t, u.ask(t, tt.method, tt.target, tt.body), http.StatusBadRequest)
			same := slices.EqualFunc(tt.want, got.Detail, func(want, got string) bool {
				prefix, cut := strings.CutSuffix(want, "…")
				return want == got || cut && strings.HasPrefix(got, prefix)
			})
			if !same || got.Code != "invalid_request" {
				t.Errorf("(-want +got):\n%s", cmp.Diff(tt.want, got.Detail))
			}
		})
	}
	if diff := cmp.Diff(before, u.audit(t)); diff != "" {
		t.Errorf("the trail tells of changes (-want +got):\n%s", diff)
	}
	if got := want[endpointList](t, u.ask(t, "GET", "/webhook-endpoints", nil), http.StatusOK).WebhookEndpoints; len(got) != 1 || !cmp.Equal(got[0], e) {
		t.Errorf("endpoints %+v, want the one as it was", got)
	}
	if got := want[apiKeyList](t, u.ask(t, "GET", "/api-keys", nil), http.StatusOK).APIKeys; len(got) != 1 || !cmp.Equal(got[0], k) {
		t.Errorf("keys %+v, want the one as it was", got)
	}
}

// The local stage alone may post to this machine.
func TestLoopback(t *testing.T) {
	d := newDesk(t)
	d.Loopback = true
	d.open()
	u := d.newUser(t)
	u.createEndpoint(t, anything{"url": "http://127.0.0.1:9000/"})
	want[httpapi.Problem](t, u.ask(t, "POST", "/webhook-endpoints", anything{"url": "http://10.0.0.1:9000/", "events": []string{}}), http.StatusBadRequest)
}

// Who isn't signed in to a workspace gets nothing.
func TestUnauthorized(t *testing.T) {
	u := newDesk(t).newUser(t)
	without := func(change anything) map[string]string {
		claims := maps.Clone(u.claims)
		for name, value := range change {
			claims[name] = value.(string)
		}
		return claims
	}
	for name, claims := range map[string]map[string]string{
		"no token":        nil,
		"no claims":       {},
		"an access token": without(anything{"token_use": "access"}),
		"no workspace":    without(anything{"custom:workspace_id": ""}),
		"no such id":      without(anything{"custom:workspace_id": "x#y"}),
		"nobody":          without(anything{"sub": ""}),
	} {
		u.claims = claims
		got := u.ask(t, "POST", "/api-keys?x=1", anything{"label": ""})
		if problem := want[httpapi.Problem](t, got, http.StatusUnauthorized); problem.Code != "unauthorized" || got.header["Www-Authenticate"] != "Bearer" {
			t.Errorf("%s: %+v %v", name, problem, got.header)
		}
	}
}

// What is another workspace's is like what isn't there, whatever is asked of it.
func TestIsolation(t *testing.T) {
	d := newDesk(t)
	mine, other := d.newUser(t), d.newUser(t)
	k, e := mine.createKey(t, "CRM").APIKey, mine.createEndpoint(t, nil).WebhookEndpoint
	delivery := d.insertDelivery(t, mine.ws, e.EndpointID, conversation.DeliveryFailed)
	before := mine.audit(t)
	const nothing = "0191d1c0-0000-7000-8000-000000000000"
	for _, asked := range []struct {
		method, path, id string
		body             any
	}{
		{"PATCH", "/api-keys/%s", string(k.APIKeyID), anything{"label": "x"}},
		{"DELETE", "/api-keys/%s", string(k.APIKeyID), nil},
		{"GET", "/webhook-endpoints/%s", string(e.EndpointID), nil},
		{"PATCH", "/webhook-endpoints/%s", string(e.EndpointID), anything{"enabled": false}},
		{"DELETE", "/webhook-endpoints/%s", string(e.EndpointID), nil},
		{"POST", "/webhook-endpoints/%s/secret", string(e.EndpointID), nil},
		{"POST", "/webhook-endpoints/%s/test", string(e.EndpointID), nil},
		{"GET", "/deliveries/%s", string(delivery.ID), nil},
		{"POST", "/deliveries/%s/retry", string(delivery.ID), nil},
		{"POST", "/deliveries/retry", string(e.EndpointID), anything{"endpoint_id": e.EndpointID, "since": "2026-01-01"}},
	} {
		target, ofNothing, body := asked.path, asked.path, asked.body
		if strings.Contains(asked.path, "%s") {
			target, ofNothing = fmt.Sprintf(asked.path, asked.id), fmt.Sprintf(asked.path, nothing)
		} else {
			body = anything{"endpoint_id": nothing, "since": "2026-01-01"}
		}
		got := other.ask(t, asked.method, target, asked.body)
		want[httpapi.Problem](t, got, http.StatusNotFound)
		if none := other.ask(t, asked.method, ofNothing, body); none.status != got.status || none.body != got.body {
			t.Errorf("%s %s: %s, and of nothing %s", asked.method, asked.path, got.body, none.body)
		}
	}
	for _, list := range []string{"/api-keys", "/webhook-endpoints", "/deliveries", "/deliveries?endpoint_id=" + string(e.EndpointID), "/deliveries?delivery_id=" + string(delivery.ID), "/audit"} {
		got := other.ask(t, "GET", list, nil)
		if got.status != http.StatusOK || strings.Contains(got.body, string(e.EndpointID)) || strings.Contains(got.body, string(k.APIKeyID)) {
			t.Errorf("%s: %d %s", list, got.status, got.body)
		}
	}
	if _, ok := d.sent(t); ok {
		t.Error("something was sent")
	}
	if diff := cmp.Diff(before, mine.audit(t)); diff != "" {
		t.Errorf("the trail tells of changes (-want +got):\n%s", diff)
	}
	if trail := other.audit(t); len(trail) != 0 {
		t.Errorf("the other's trail: %+v", trail)
	}
}
