package carrier_test

import (
	"cmp"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"parley/shared/carrier"
	"parley/shared/conversation"
)

const callbackURL = "https://api.example.com/carriers/simulator/w/c"

var (
	secret = []byte("a secret of the tests")
	now    = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	client = carrier.NewSimulator(aws.Config{}, "simulate-carrier", secret)
)

func signed(body []byte) http.Header {
	return http.Header{carrier.SignatureHeader: {carrier.Sign(secret, now, callbackURL, body)}}
}

func TestSign(t *testing.T) {
	// Of a shell: printf '1777863721\nhttps://api.example.com/carriers/simulator/w/c\n{}' | openssl dgst -sha256 -hmac 'a secret of the tests'
	got := carrier.Sign(secret, now, callbackURL, []byte("{}"))
	if want := "t=1777863721,v1=afa7c7c2377782d8beffbe21760e6bbc1e80ad5ca4bd49b6bad074e929afe583"; got != want {
		t.Errorf("Sign = %s, want %s", got, want)
	}
}

func TestParseCallback(t *testing.T) {
	tests := map[string]struct {
		body string
		want carrier.Callback
	}{
		"incoming": {
			`{"event":"incoming","carrier_id":"x","at":"2026-05-04T03:02:01.5Z","from":"+12025550101","to":"+12025550102","test":true}`,
			carrier.Callback{Event: carrier.EventIncoming, CarrierID: "x", At: now.Add(500 * time.Millisecond), From: "+12025550101", To: "+12025550102", Test: true},
		},
		"progress": {
			`{"event":"progress","carrier_id":"x","at":"2026-05-04T03:02:01Z"}`,
			carrier.Callback{Event: carrier.EventProgress, CarrierID: "x", At: now},
		},
		"answered": {
			"\n" + `{"event":"answered","carrier_id":"x","at":"2026-05-04T03:02:01Z"}` + "\n",
			carrier.Callback{Event: carrier.EventAnswered, CarrierID: "x", At: now},
		},
		"hung up": {
			`{"event":"hung_up","carrier_id":"x","at":"2026-05-04T03:02:01Z","reason":"customer_hung_up"}`,
			carrier.Callback{Event: carrier.EventHungUp, CarrierID: "x", At: now, Reason: conversation.EndCustomerHungUp},
		},
		"failed, for a reason yet unknown": {
			`{"event":"failed","carrier_id":"x","at":"2026-05-04T03:02:01Z","reason":"the moon"}`,
			carrier.Callback{Event: carrier.EventFailed, CarrierID: "x", At: now, Reason: "the moon"},
		},
		"tool": {
			`{"event":"tool","carrier_id":"x","at":"2026-05-04T03:02:01Z","text":"Room 417 👋","tool_id":"x-1"}`,
			carrier.Callback{Event: carrier.EventTool, CarrierID: "x", At: now, Text: "Room 417 👋", ToolID: "x-1"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := client.ParseCallback(signed([]byte(tt.body)), callbackURL, []byte(tt.body), now)
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("ParseCallback = %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

func TestParseCallbackIsStrict(t *testing.T) {
	const rest = `"carrier_id":"x","at":"2026-05-04T03:02:01Z"`
	tests := map[string]string{
		"no event":                 `{` + rest + `}`,
		"an unknown event":         `{"event":"sneezed",` + rest + `}`,
		"no id":                    `{"event":"progress","at":"2026-05-04T03:02:01Z"}`,
		"no moment":                `{"event":"progress","carrier_id":"x"}`,
		"a moment of no form":      `{"event":"progress","carrier_id":"x","at":"yesterday"}`,
		"an unknown field":         `{"event":"progress","call_id":"x",` + rest + `}`,
		"a wrong type":             `{"event":1,` + rest + `}`,
		"two objects":              `{"event":"progress",` + rest + `}{}`,
		"something after it":       `{"event":"progress",` + rest + `} x`,
		"hung up for no reason":    `{"event":"hung_up",` + rest + `}`,
		"failed for no reason":     `{"event":"failed",` + rest + `}`,
		"progress with a reason":   `{"event":"progress","reason":"busy",` + rest + `}`,
		"progress with a number":   `{"event":"progress","from":"+12025550101",` + rest + `}`,
		"progress as a test":       `{"event":"progress","test":true,` + rest + `}`,
		"incoming from nobody":     `{"event":"incoming","to":"+12025550101",` + rest + `}`,
		"incoming from a non-E164": `{"event":"incoming","from":"202 555 0101","to":"+12025550101",` + rest + `}`,
		"a tool without a text":    `{"event":"tool","tool_id":"x",` + rest + `}`,
		"a tool with a blank text": `{"event":"tool","tool_id":"x","text":" \n",` + rest + `}`,
		"a tool with a long text":  `{"event":"tool","tool_id":"x","text":"` + strings.Repeat("x", 64<<10+1) + `",` + rest + `}`,
		"a tool without an id":     `{"event":"tool","text":"x",` + rest + `}`,
		"a tool with a long id":    `{"event":"tool","text":"x","tool_id":"` + strings.Repeat("x", 257) + `",` + rest + `}`,
		"a tool from a number":     `{"event":"tool","text":"x","tool_id":"x","from":"+12025550101",` + rest + `}`,
		"progress with a text":     `{"event":"progress","text":"x",` + rest + `}`,
		"incoming with a tool id":  `{"event":"incoming","tool_id":"x","from":"+12025550101","to":"+12025550102",` + rest + `}`,
		"a long id":                `{"event":"progress","carrier_id":"` + strings.Repeat("x", 257) + `","at":"2026-05-04T03:02:01Z"}`,
		"no UTF-8":                 `{"event":"tool","tool_id":"x","text":"` + "\xff" + `",` + rest + `}`,
		"deep":                     strings.Repeat("[", 1_000_000),
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := client.ParseCallback(signed([]byte(body)), callbackURL, []byte(body), now)
			if !errors.Is(err, carrier.ErrMalformed) || got != (carrier.Callback{}) {
				t.Errorf("ParseCallback = %+v, %v; want ErrMalformed", got, err)
			}
		})
	}
}

func TestParseCallbackVerifies(t *testing.T) {
	body := []byte(`{"event":"progress","carrier_id":"x","at":"2026-05-04T03:02:01Z"}`)
	right := carrier.Sign(secret, now, callbackURL, body)
	keyless := carrier.NewSimulator(aws.Config{}, "simulate-carrier", nil)
	tests := map[string]struct {
		client *carrier.Simulator
		header string
		now    time.Time
		want   error
	}{
		"right":                    {client, right, now, nil},
		"five minutes old":         {client, right, now.Add(5 * time.Minute), nil},
		"older":                    {client, right, now.Add(5*time.Minute + time.Nanosecond), carrier.ErrUnverified},
		"five minutes ahead":       {client, right, now.Add(-5 * time.Minute), nil},
		"further ahead":            {client, right, now.Add(-5*time.Minute - time.Nanosecond), carrier.ErrUnverified},
		"another secret":           {client, carrier.Sign([]byte("x"), now, callbackURL, body), now, carrier.ErrUnverified},
		"empty":                    {client, "", now, carrier.ErrUnverified},
		"only the time":            {client, "t=1777863721", now, carrier.ErrUnverified},
		"only the signature":       {client, right[len("t=1777863721,"):], now, carrier.ErrUnverified},
		"another time":             {client, strings.Replace(right, "1777863721", "1777863722", 1), now, carrier.ErrUnverified},
		"another form of the time": {client, strings.Replace(right, "t=", "t=+", 1), now, carrier.ErrUnverified},
		"a huge time":              {client, strings.Replace(right, "1777863721", "99999999999999999999", 1), now, carrier.ErrUnverified},
		"upper case":               {client, strings.ToUpper(right), now, carrier.ErrUnverified},
		"something after it":       {client, right + ",v2=00", now, carrier.ErrUnverified},
		"nobody has a secret":      {keyless, carrier.Sign(nil, now, callbackURL, body), now, carrier.ErrUnverified},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			header := http.Header{carrier.SignatureHeader: {tt.header}}
			if _, err := tt.client.ParseCallback(header, callbackURL, body, tt.now); !errors.Is(err, tt.want) {
				t.Errorf("ParseCallback = %v, want %v", err, tt.want)
			}
			// The body is none of a text, which shows only when it is verified.
			want := cmp.Or(tt.want, carrier.ErrMalformed)
			if _, err := tt.client.ParseMessage(header, callbackURL, body, tt.now); !errors.Is(err, want) {
				t.Errorf("ParseMessage = %v, want %v", err, want)
			}
		})
	}
}

// A signature binds where the URL ends and where the body begins.
func TestSignatureParts(t *testing.T) {
	a := carrier.Sign(secret, now, "https://a.example/x", []byte("y"))
	b := carrier.Sign(secret, now, "https://a.example/", []byte("xy"))
	if a == b {
		t.Error("the same signature for two URLs")
	}
}

func FuzzParseCallback(f *testing.F) {
	f.Add("t=1777863721,v1=00", []byte(`{"event":"progress","carrier_id":"x","at":"2026-05-04T03:02:01Z"}`))
	f.Add("", []byte(`{"event":"incoming","carrier_id":"x","at":"2026-05-04T03:02:01Z","from":"+12025550101","to":"+12025550102"}`))
	f.Add("t=,v1=", []byte(`{"event":"hung_up","carrier_id":"x","at":"2026-05-04T03:02:01+14:00","reason":"busy"}`))
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		forged := http.Header{carrier.SignatureHeader: {header}}
		if _, err := client.ParseCallback(forged, callbackURL, body, now); !errors.Is(err, carrier.ErrUnverified) && header != carrier.Sign(secret, now, callbackURL, body) {
			t.Errorf("forged: %v, want ErrUnverified", err)
		}
		got, err := client.ParseCallback(signed(body), callbackURL, body, now)
		if err != nil && !errors.Is(err, carrier.ErrMalformed) {
			t.Errorf("signed: %v, want ErrMalformed or nil", err)
		}
		if err == nil && (got.CarrierID == "" || got.At.IsZero()) {
			t.Errorf("signed: %+v, want an id and a moment", got)
		}
	})
}
