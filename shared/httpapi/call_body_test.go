package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"parley/shared/conversation"
)

// plenty are limits that no test reaches by chance.
var plenty = conversation.Limits{ConcurrentCalls: 10_000, CallsPerHour: 10_000, LongestCallSeconds: 3600}

const (
	badNumber   = "must be a valid phone number in E.164, such as +12025550123"
	notObject   = "the body must be a JSON object"
	notJSON     = "the body is not JSON: "
	noAssistant = "expected required property assistant_id to be present"
	noTo        = "expected required property to to be present"
)

// Everything wrong with a body is named at once, and nothing is placed.
func TestBadBodies(t *testing.T) {
	store := newStore(t)
	o := newOfficeWithin(t, store, plenty)
	handler := o.unlimited(store)
	tests := map[string][]string{
		"":                                      {notObject},
		"null":                                  {notObject},
		"[]":                                    {notObject},
		"[" + bodyWith() + "]":                  {notObject},
		`"text"`:                                {notObject},
		"7":                                     {notObject},
		"{}":                                    {noAssistant, noTo},
		" ":                                     {notJSON + "EOF"},
		"{":                                     {notJSON + "unexpected EOF"},
		"assistant_id=1":                        {notJSON + "invalid character 'a' looking for beginning of value"},
		bodyWith() + "{}":                       {notJSON + "something follows the value"},
		bodyWith() + ",":                        {notJSON + "something follows the value"},
		bodyWith() + " x":                       {notJSON + "something follows the value"},
		"\ufeff" + bodyWith():                   {notJSON + "invalid character 'ï' looking for beginning of value"},
		bodyWith("call_variables", `{"a":NaN}`): {notJSON + "invalid character 'N' looking for beginning of value"},
		bodyWith("metadata", `{'a':1}`):         {notJSON + `invalid character '\'' looking for beginning of object key string`},
		bodyWith("metadata", strings.Repeat("[", 11_000)): {notJSON + "invalid character '[' exceeded max depth"},
		bodyWith("customer_name", "\"\xff\""):             {"the body must be UTF-8"},
		bodyWith("metadata", "\"\xc3\x28\""):              {"the body must be UTF-8"},

		bodyWith("colour", "1", "call-variables", "{}"): {"call-variables: unexpected property", "colour: unexpected property"},
		bodyWith("To", quoted(customer)):                {"To: unexpected property"},
		`{"assistant_id":1,"to":2,"from":3,"customer_name":4,"call_variables":5}`: {
			"assistant_id: expected string", "to: expected string", "from: expected string", "customer_name: expected string", "call_variables: expected object",
		},
		`{"assistant_id":null,"to":null}`:                            {"assistant_id: expected string", "to: expected string"},
		bodyWith("call_variables", `[]`):                             {"call_variables: expected object"},
		bodyWith("call_variables", `"a"`):                            {"call_variables: expected object"},
		bodyWith("customer_name", `{"a":1}`):                         {"customer_name: expected string"},
		bodyWith("assistant_id", `"me"`):                             {"assistant_id: expected string to be a UUID"},
		bodyWith("assistant_id", `""`):                               {"assistant_id: expected string to be a UUID"},
		bodyWith("to", `""`):                                         {"to: expected length >= 1"},
		bodyWith("from", `""`):                                       {"from: expected length >= 1"},
		bodyWith("customer_name", quoted(strings.Repeat("😀", 5001))): {"customer_name: expected length <= 5000"},

		`{"to":"+12025550199","to":"+12025550199","to":"+12025550199","assistant_id":"` + string(oneNumber) + `"}`: {"to: the key stands twice"},
		bodyWith("metadata", `{"a":1},"metadata":{"a":2}`):                                                         {"metadata: the key stands twice"},
		bodyWith("call_variables", `{"a":1,"b":2,"\u0061":3,"b":2,"b":2}`):                                         {"call_variables key 'a' stands twice", "call_variables key 'b' stands twice"},

		bodyWith("to", `"12025550199"`):         {"to: " + badNumber},
		bodyWith("to", `"+1 202 555 0199"`):     {"to: " + badNumber},
		bodyWith("to", `"+1202555019"`):         {"to: " + badNumber},
		bodyWith("to", `"+0012025550199"`):      {"to: " + badNumber},
		bodyWith("to", `"tel:+12025550199"`):    {"to: " + badNumber},
		bodyWith("to", `"+120255501990000000"`): {"to: " + badNumber},
		bodyWith("from", `"reception"`):         {"from: " + badNumber},
		bodyWith("to", `"112"`, "from", `"+99912345"`, "assistant_id", "", "metadata", quoted(strings.Repeat("x", 8191)), "shape", "1",
			"call_variables", `{"1":null}`): {
			noAssistant, "to: " + badNumber, "from: " + badNumber, "shape: unexpected property", "metadata: 8193 bytes, at most 8192 are allowed",
			"call_variables key '1' must start with a letter and contain only letters, digits and underscores",
			"call_variables key '1' must be a string, a number or a boolean",
		},
	}
	for body, details := range tests {
		isRefused(t, fmt.Sprintf("%.80q", body), o.post(t, handler, body), http.StatusBadRequest, "invalid_request", details...)
	}
	got := o.post(t, handler, "", "Idempotency-Key", strings.Repeat("x", 256), "Content-Type", "text/plain")
	isRefused(t, "no body and bad headers", got, http.StatusBadRequest, "invalid_request",
		notObject, "Content-Type: must be application/json", "Idempotency-Key: expected length <= 255")
	got = ask(t, handler, http.MethodPost, "/v1/calls?fields=call", o.auth)
	isRefused(t, "a query", got, http.StatusBadRequest, "invalid_request", notObject, "fields: unknown query parameter")
	if placed := o.exchange.placements(); len(placed) != 0 || len(o.calls(t)) != 0 {
		t.Errorf("placed %v", placed)
	}
}

func TestSizeOfBody(t *testing.T) {
	store := newStore(t)
	o := newOfficeWithin(t, store, plenty)
	handler := o.unlimited(store)
	padded := func(size int) string { return bodyWith() + strings.Repeat(" ", size-len(bodyWith())) }
	isAccepted(t, o.post(t, handler, padded(4<<20)))
	for _, body := range []string{padded(4<<20 + 1), strings.Repeat("[", 5<<20)} {
		isRefused(t, "over 4 MiB", o.post(t, handler, body), http.StatusRequestEntityTooLarge, "request_too_large",
			"the body is too large: at most 4194304 bytes are allowed")
	}
}

// An answer has a bound, however much is wrong.
func TestManyProblems(t *testing.T) {
	store := newStore(t)
	o := newOfficeWithin(t, store, plenty)
	handler := o.unlimited(store)
	many := func(form string) string {
		var list []string
		for n := range 100_000 {
			list = append(list, fmt.Sprintf(form, n))
		}
		return strings.Join(list, ",")
	}
	long := strings.Repeat(`\"`, 1<<20)
	for name, body := range map[string]string{
		"bad names":      bodyWith("call_variables", "{"+many(`"-%d":null`)+"}"),
		"unknown fields": "{" + many(`"x%d":1`) + "}",
		"a long name":    bodyWith("call_variables", `{"`+long+`":{}}`),
		"a long field":   `{"` + long + `":1}`,
	} {
		got := o.post(t, handler, body)
		problem := want[Problem](t, got, http.StatusBadRequest)
		if len(got.body) > 2<<20 {
			t.Errorf("%s: an answer of %d bytes", name, len(got.body))
		}
		if last := problem.Detail[len(problem.Detail)-1]; len(problem.Detail) > 1000 && !strings.HasPrefix(last, "and ") {
			t.Errorf("%s: %d details, the last is %.100s; want how many more there are", name, len(problem.Detail), last)
		}
	}
}

func TestContentTypes(t *testing.T) {
	store := newStore(t)
	o := newOfficeWithin(t, store, plenty)
	handler := o.unlimited(store)
	for _, sent := range []string{
		"application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", "application/json ; charset=utf-8", "Application/JSON", "application/json;", "",
	} {
		if got := o.post(t, handler, bodyWith(), "Content-Type", sent); got.status != http.StatusCreated {
			t.Errorf("%q: %d %s, want 201", sent, got.status, got.body)
		}
	}
	for _, sent := range []string{
		"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", "application/xml",
		"application/vnd.api+json", "x+application/json", "application/json, text/plain", "application/jsonp", "json", "a;b+c", "*/*",
	} {
		got := o.post(t, handler, bodyWith(), "Content-Type", sent)
		isRefused(t, sent, got, http.StatusBadRequest, "invalid_request", "Content-Type: must be application/json")
	}
	got := o.post(t, handler, bodyWith("to", "1", "colour", "2"), "Content-Type", "text/plain")
	isRefused(t, "the body too", got, http.StatusBadRequest, "invalid_request",
		"Content-Type: must be application/json", "colour: unexpected property", "to: expected string")
}

// variables is a call_variables object of n variables.
func variables(n int, name func(int) string, value string) string {
	var parts []string
	for i := range n {
		parts = append(parts, quoted(name(i))+":"+value)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func longName(length int) func(int) string {
	return func(n int) string { return fmt.Sprintf("v%0*d", length-1, n) }
}

func TestBadVariables(t *testing.T) {
	store := newStore(t)
	o := newOfficeWithin(t, store, plenty)
	handler := o.unlimited(store)
	name := func(key string) string {
		return "call_variables key '" + key + "' must start with a letter and contain only letters, digits and underscores"
	}
	about := func(key, what string) string { return "call_variables key '" + key + "' " + what }
	const (
		kind  = "must be a string, a number or a boolean"
		long  = "must have a value of at most 5000 characters"
		longN = "must have at most 64 characters"
	)
	tests := map[string][]string{
		variables(51, longName(8), "1"):    {"call_variables has 51 keys, at most 50 are allowed"},
		variables(1, longName(65), "1"):    {about(longName(65)(0), longN)},
		`{"1st":1}`:                        {name("1st")},
		`{"room-number":1}`:                {name("room-number")},
		`{"room number":1}`:                {name("room number")},
		`{"größe":1,"名前":1,"e\u0301t":1}`:  {name("größe"), name("名前"), name("e\u0301t")},
		`{"":1,"_a":1,"a.b":1,"a\n":1}`:    {name(""), name("_a"), name("a.b"), name("a\n")},
		`{"{{a}}":1,"'":1}`:                {name("{{a}}"), name("'")},
		`{"phone_number":1}`:               {about("phone_number", "is reserved: use the request field to")},
		`{"caller_phone_number":1}`:        {about("caller_phone_number", "is reserved")},
		`{"participant_name":1}`:           {about("participant_name", "is reserved: use the request field customer_name")},
		`{"system__time":1,"system__x":1}`: {about("system__time", "is reserved"), about("system__x", "is reserved")},
		`{"secret__y":1,"secret__":1}`:     {about("secret__y", "is reserved"), about("secret__", "is reserved")},
		`{"a":null,"b":{},"c":[],"d":[1]}`: {about("a", kind), about("b", kind), about("c", kind), about("d", kind)},
		`{"a":{"b":1,"b":2}}`:              {about("a", kind)},
		`{"a":` + quoted(strings.Repeat("x", 5001)) + `,"b":` + quoted(strings.Repeat("😀", 5001)) + `}`: {about("a", long), about("b", long)},
		`{"a":1` + strings.Repeat("0", 5000) + `}`:                                                      {about("a", long)},
		variables(51, func(n int) string { return longName(64)(n) + "-" }, "null"): append(func() (all []string) {
			for n := range 51 {
				key := longName(64)(n) + "-"
				all = append(all, name(key), about(key, longN), about(key, kind))
			}
			return all
		}(), "call_variables has 51 keys, at most 50 are allowed"),
	}
	for sent, details := range tests {
		isRefused(t, fmt.Sprintf("%.80s", sent), o.post(t, handler, bodyWith("call_variables", sent)), http.StatusBadRequest, "invalid_request", details...)
	}
	for _, sent := range []string{
		`{}`, `null`, `{"a":"","b":false,"c":-0.0,"d":1e400,"e":12345678901234567890,"F_2":"{{a}}"}`,
		`{"Phone_number":1,"system_x":1,"secret":1,"my_system__x":1,"hotel_name":"Inn"}`,
		`{"a":1` + strings.Repeat("0", 4999) + `}`,
		variables(50, longName(8), "1"), variables(1, longName(64), "1"), variables(1, longName(8), quoted(strings.Repeat("x", 5000))),
	} {
		if got := o.post(t, handler, bodyWith("call_variables", sent)); got.status != http.StatusCreated {
			t.Errorf("%.80s: %d %.300s, want 201", sent, got.status, got.body)
		}
	}
}

// The largest legal call is stored, replayed and given back, whichever way it is written,
// and its answer fits into one of Lambda's.
func TestLargestCall(t *testing.T) {
	store := newStore(t)
	o := newOfficeWithin(t, store, plenty)
	handler := o.unlimited(store)
	for name, character := range map[string]string{"as it is": "😀", "escaped": `\ud83d\ude00`} {
		sent := variables(50, longName(64), `"`+strings.Repeat(character, 5000)+`"`)
		metadata := quoted(strings.Repeat("x", 8190))
		body := bodyWith("call_variables", sent, "metadata", metadata, "customer_name", quoted(strings.Repeat("😀", 5000)))
		first := o.post(t, handler, body, withKey(name)...)
		call := isAccepted(t, first)
		if string(call.CallVariables) != sent || string(call.Metadata) != metadata {
			t.Errorf("%s: %d bytes of variables come back, want the %d that were sent", name, len(call.CallVariables), len(sent))
		}
		checkReplay(t, name, o.post(t, handler, body, withKey(name)...), first)
		got := want[oneCall](t, o.get(t, handler, "/v1/calls/"+string(call.CallID)), http.StatusOK).Call
		if string(got.CallVariables) != sent || string(got.Metadata) != metadata || got.Customer.Name != strings.Repeat("😀", 5000) {
			t.Errorf("%s: GET shows %d bytes of variables, want the %d that were sent", name, len(got.CallVariables), len(sent))
		}
		event := eventOf(http.MethodPost, "/v1/calls", o.auth)
		event.Headers["idempotency-key"], event.Body = name, body
		answer, err := Lambda(handler)(t.Context(), event)
		if err != nil || answer.Body != first.body {
			t.Errorf("%s: by Lambda %d, %v; want the same answer", name, answer.StatusCode, err)
		}
		asked, _ := json.Marshal(event)
		if text, _ := json.Marshal(answer); len(text) > 6<<20 || len(asked) > 6<<20 {
			t.Errorf("%s: %d bytes come and %d go, Lambda allows 6 MiB", name, len(asked), len(text))
		}
	}
}

// metadata comes back as it was sent, but for white space between its tokens.
func TestMetadata(t *testing.T) {
	store := newStore(t)
	o := newOfficeWithin(t, store, plenty)
	handler := o.unlimited(store)
	filled := func(size int) string { return `{"a":"` + strings.Repeat("x", size-len(`{"a":""}`)) + `"}` }
	tests := map[string]string{ // by what is given back, if that is something else
		filled(8192):                          "",
		`"` + strings.Repeat("é", 4095) + `"`: "",
		`{"a":  1` + strings.Repeat(" ", 8192-len(`{"a":  1}`)) + `}`:  `{"a":1}`,
		strings.Repeat("[", 4000) + strings.Repeat("]", 4000):          "",
		strings.Repeat(`{"":`, 1600) + "1" + strings.Repeat("}", 1600): "",
		`[]`: "", `{}`: "", `[1,"a",null,true]`: "", `"a text"`: "", `""`: "", `false`: "", `0`: "",
		`1.10`: "", `-0.0`: "", `1e400`: "", `1E+2`: "", `12345678901234567890`: "", `0.1000000000000000055511151231257827`: "",
		`"<&>"`: "", `"\u003c\u0026\u003e"`: "", "\"\u2028\"": "", `"\u2028\/\u0000\ud83d"`: "", `"\ud800"`: "",
		`{"b":1,"a":2,"b":3,"a":{"c":1,"c":2}}`: "",
		` { "b" : [ 1 , 2 ] } `:                 `{"b":[1,2]}`,
		`{"metadata":{"metadata":1,"metadata":2},"to":3,"call_variables":{"1":null}}`: "",
	}
	for sent, given := range tests {
		if given == "" {
			given = sent
		}
		key := fmt.Sprintf("%.40q of %d", sent, len(sent))
		key = strings.ToValidUTF8(strings.Map(func(r rune) rune {
			if r < ' ' || r > '~' {
				return '?'
			}
			return r
		}, key), "?")
		body := bodyWith("metadata", sent)
		first := o.post(t, handler, body, withKey(key)...)
		if first.status != http.StatusCreated {
			t.Errorf("%s: %d %.300s, want 201", key, first.status, first.body)
			continue
		}
		call := isAccepted(t, first)
		shown := o.get(t, handler, "/v1/calls/"+string(call.CallID))
		for place, text := range map[string]string{"POST": first.body, "GET": shown.body} {
			if !strings.Contains(text, `"metadata":`+given+`}`) && !strings.Contains(text, `"metadata":`+given+`,`) {
				t.Errorf("%s: %s answers %.500s\nwant metadata %.200s", key, place, text, given)
			}
		}
		checkReplay(t, key, o.post(t, handler, body, withKey(key)...), first)
	}
	for _, sent := range []string{filled(8193), `"` + strings.Repeat("é", 4095) + `x"`, `[` + strings.Repeat(" ", 8191) + `]`} {
		isRefused(t, "a byte too many", o.post(t, handler, bodyWith("metadata", sent)), http.StatusBadRequest, "invalid_request",
			"metadata: 8193 bytes, at most 8192 are allowed")
	}
	if got := o.post(t, handler, bodyWith("metadata", "null")); got.status != http.StatusCreated || strings.Contains(got.body, "metadata") {
		t.Errorf("null: %d %s, want 201 without metadata", got.status, got.body)
	}
}

// checkReplay wants the answer to an earlier request, byte for byte.
func checkReplay(t testing.TB, name string, got, first answered) {
	t.Helper()
	if got.status != http.StatusCreated || got.body != first.body || got.header.Get("Idempotent-Replay") != "true" {
		t.Errorf("%s: %d, Idempotent-Replay %q, %.300s\nwant 201, true, %.300s",
			name, got.status, got.header.Get("Idempotent-Replay"), got.body, first.body)
	}
}
