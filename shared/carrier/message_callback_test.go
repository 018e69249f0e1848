package carrier_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/shared/carrier"
	"parley/shared/conversation"
)

const userID = "US.13491208655302741918"

func TestParseMessage(t *testing.T) {
	const rest = `"carrier_id":"x","at":"2026-05-04T03:02:01.5Z"`
	at := now.Add(500 * time.Millisecond)
	long := strings.Repeat("👋", 16<<10) // 64 KiB
	tests := map[string]struct {
		body string
		want carrier.MessageCallback
	}{
		"sms": {
			`{"event":"message","channel":"sms","from":"+12025550101","to":"+12025550102","content":" Hello?\n",` + rest + `}`,
			carrier.MessageCallback{Event: carrier.EventMessage, CarrierID: "x", At: at, Channel: conversation.SMS, From: "+12025550101", To: "+12025550102", Content: " Hello?\n"},
		},
		"from a user id": {
			`{"event":"message","channel":"whatsapp","from":"` + userID + `","to":"+12025550102","content":"Hello?",` + rest + `}`,
			carrier.MessageCallback{Event: carrier.EventMessage, CarrierID: "x", At: at, Channel: conversation.WhatsApp, From: userID, To: "+12025550102", Content: "Hello?"},
		},
		"media alone": {
			`{"event":"message","channel":"whatsapp","from":"+12025550101","to":"+12025550102","media_count":3,` + rest + `}`,
			carrier.MessageCallback{Event: carrier.EventMessage, CarrierID: "x", At: at, Channel: conversation.WhatsApp, From: "+12025550101", To: "+12025550102", MediaCount: 3},
		},
		"a test, and empty": {
			`{"event":"message","channel":"sms","from":"+12025550101","to":"+12025550102","content":"","media_count":0,"test":true,` + rest + `}`,
			carrier.MessageCallback{Event: carrier.EventMessage, CarrierID: "x", At: at, Channel: conversation.SMS, From: "+12025550101", To: "+12025550102", Test: true},
		},
		"the longest": {
			`{"event":"message","channel":"sms","from":"+12025550101","to":"+12025550102","content":"` + long + `",` + rest + `}`,
			carrier.MessageCallback{Event: carrier.EventMessage, CarrierID: "x", At: at, Channel: conversation.SMS, From: "+12025550101", To: "+12025550102", Content: long},
		},
		"sent": {
			`{"event":"receipt","message_id":"m","status":"sent",` + rest + `}`,
			carrier.MessageCallback{Event: carrier.EventReceipt, CarrierID: "x", At: at, MessageID: "m", Status: carrier.ReceiptSent},
		},
		"delivered": {
			`{"event":"receipt","message_id":"m","status":"delivered",` + rest + `}`,
			carrier.MessageCallback{Event: carrier.EventReceipt, CarrierID: "x", At: at, MessageID: "m", Status: carrier.ReceiptDelivered},
		},
		"failed": {
			`{"event":"receipt","message_id":"m","status":"failed",` + rest + `}`,
			carrier.MessageCallback{Event: carrier.EventReceipt, CarrierID: "x", At: at, MessageID: "m", Status: carrier.ReceiptFailed},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := client.ParseMessage(signed([]byte(tt.body)), callbackURL, []byte(tt.body), now)
			if err != nil || got != tt.want {
				t.Errorf("ParseMessage = %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

func TestParseMessageIsStrict(t *testing.T) {
	const (
		rest    = `"carrier_id":"x","at":"2026-05-04T03:02:01Z"`
		sms     = `{"event":"message","channel":"sms","from":"+12025550101","to":"+12025550102",` + rest
		receipt = `{"event":"receipt","message_id":"m","status":"sent",` + rest
	)
	from := func(channel, address string) string {
		return `{"event":"message","channel":"` + channel + `","from":"` + address + `","to":"+12025550102",` + rest + `}`
	}
	tests := map[string]string{
		"no event":                   `{` + rest + `}`,
		"a call's event":             `{"event":"progress",` + rest + `}`,
		"no id":                      `{"event":"receipt","message_id":"m","status":"sent","at":"2026-05-04T03:02:01Z"}`,
		"a long id":                  `{"event":"receipt","message_id":"m","status":"sent","carrier_id":"` + strings.Repeat("x", 257) + `","at":"2026-05-04T03:02:01Z"}`,
		"no moment":                  `{"event":"receipt","message_id":"m","status":"sent","carrier_id":"x"}`,
		"an unknown field":           sms + `,"call_id":"x"}`,
		"a field of calls":           sms + `,"reason":"busy"}`,
		"a wrong type":               sms + `,"content":1}`,
		"something after it":         sms + `} x`,
		"no UTF-8":                   sms + `,"content":"` + "\xff" + `"}`,
		"too long":                   sms + `,"content":"` + strings.Repeat("x", 64<<10+1) + `"}`,
		"less than no media":         sms + `,"media_count":-1}`,
		"half a medium":              sms + `,"media_count":0.5}`,
		"more media than there are":  sms + `,"media_count":1e30}`,
		"a message with our id":      sms + `,"message_id":"m"}`,
		"a message with a status":    sms + `,"status":"sent"}`,
		"from nobody":                from("sms", ""),
		"from a name":                from("sms", "us"),
		"a user id by sms":           from("sms", userID),
		"by no channel":              from("", "+12025550101"),
		"by an unknown channel":      from("pigeon", "+12025550101"),
		"a user id of no country":    from("whatsapp", ".13491208655302741918"),
		"a country in small letters": from("whatsapp", "us.13491208655302741918"),
		"a user id with a sign":      from("whatsapp", "US.1349-1208"),
		"a user id of two lines":     from("whatsapp", userID+`\n`),
		"an endless user id":         from("whatsapp", "US."+strings.Repeat("1", 129)),
		"a country alone":            from("whatsapp", "US."),
		"to nobody":                  `{"event":"message","channel":"sms","from":"+12025550101",` + rest + `}`,
		"to a user id":               `{"event":"message","channel":"whatsapp","from":"+12025550101","to":"` + userID + `",` + rest + `}`,
		"a receipt of nothing":       `{"event":"receipt","status":"sent",` + rest + `}`,
		"a receipt of a long id":     `{"event":"receipt","status":"sent","message_id":"` + strings.Repeat("x", 257) + `",` + rest + `}`,
		"a receipt without a status": `{"event":"receipt","message_id":"m",` + rest + `}`,
		"a receipt of a new status":  `{"event":"receipt","message_id":"m","status":"read",` + rest + `}`,
		"a receipt with a number":    receipt + `,"from":"+12025550101"}`,
		"a receipt with a channel":   receipt + `,"channel":"sms"}`,
		"a receipt with content":     receipt + `,"content":"x"}`,
		"a receipt with media":       receipt + `,"media_count":1}`,
		"a receipt as a test":        receipt + `,"test":true}`,
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := client.ParseMessage(signed([]byte(body)), callbackURL, []byte(body), now)
			if !errors.Is(err, carrier.ErrMalformed) || got != (carrier.MessageCallback{}) {
				t.Errorf("ParseMessage = %+v, %v; want ErrMalformed", got, err)
			}
		})
	}
}

func TestIsAddress(t *testing.T) {
	tests := map[string]struct {
		channel conversation.Channel
		address string
		want    bool
	}{
		"a number by sms":         {conversation.SMS, "+12025550101", true},
		"a number by WhatsApp":    {conversation.WhatsApp, "+12025550101", true},
		"a user id by WhatsApp":   {conversation.WhatsApp, userID, true},
		"the longest":             {conversation.WhatsApp, "GB." + strings.Repeat("aZ90", 32), true},
		"a user id by sms":        {conversation.SMS, userID, false},
		"a number by no channel":  {"", "+12025550101", false},
		"nothing":                 {conversation.WhatsApp, "", false},
		"a number without a plus": {conversation.WhatsApp, "12025550101", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := carrier.IsAddress(tt.channel, tt.address); got != tt.want {
				t.Errorf("IsAddress(%q, %q) = %v, want %v", tt.channel, tt.address, got, tt.want)
			}
		})
	}
}

func TestFit(t *testing.T) {
	tests := map[string]struct {
		channel conversation.Channel
		text    string
		want    string
	}{
		"short":                {conversation.SMS, "Hello 👋", "Hello 👋"},
		"empty":                {conversation.SMS, "", ""},
		"the longest":          {conversation.SMS, strings.Repeat("👋", 1600), strings.Repeat("👋", 1600)},
		"one more":             {conversation.SMS, strings.Repeat("👋", 1601), strings.Repeat("👋", 1600)},
		"more on WhatsApp":     {conversation.WhatsApp, strings.Repeat("é", 4096), strings.Repeat("é", 4096)},
		"too much for that":    {conversation.WhatsApp, strings.Repeat("é", 5000), strings.Repeat("é", 4096)},
		"characters, no bytes": {conversation.SMS, strings.Repeat("é", 1000), strings.Repeat("é", 1000)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := carrier.Fit(tt.channel, tt.text); got != tt.want {
				t.Errorf("Fit = %d bytes, want %d", len(got), len(tt.want))
			}
		})
	}
}

func TestKeyword(t *testing.T) {
	tests := map[carrier.Keyword][]string{
		carrier.OptOutWord: {"STOP", "StopAll", "unsubscribe", "Cancel", "END", "quit", "REVOKE", "OptOut", " stop\r\n", "\u00a0Stop", "stop!", "Stop.", "\"stop\"", "¡STOP!"},
		carrier.OptInWord:  {"START", "unstop", "\tStart "},
		carrier.HelpWord:   {"HELP", "info", "Help\n"},
		"": {
			"", " ", "yes", "YES", "...", "stop stop", "don't stop", "opt out", "please stop by tomorrow",
			"When does it end?", "helpful", "infos", "restart", strings.Repeat("stop", 16<<10),
		},
	}
	for want, texts := range tests {
		for _, text := range texts {
			if got := client.Keyword(text); got != want {
				t.Errorf("Keyword(%.40q) = %q, want %q", text, got, want)
			}
		}
	}
}

func FuzzParseMessage(f *testing.F) {
	f.Add("t=1777863721,v1=00", []byte(`{"event":"receipt","carrier_id":"x","at":"2026-05-04T03:02:01Z","message_id":"m","status":"sent"}`))
	f.Add("", []byte(`{"event":"message","carrier_id":"x","at":"2026-05-04T03:02:01Z","channel":"sms","from":"+12025550101","to":"+12025550102","content":"x"}`))
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		forged := http.Header{carrier.SignatureHeader: {header}}
		if _, err := client.ParseMessage(forged, callbackURL, body, now); !errors.Is(err, carrier.ErrUnverified) && header != carrier.Sign(secret, now, callbackURL, body) {
			t.Errorf("forged: %v, want ErrUnverified", err)
		}
		got, err := client.ParseMessage(signed(body), callbackURL, body, now)
		if err != nil && !errors.Is(err, carrier.ErrMalformed) {
			t.Errorf("signed: %v, want ErrMalformed or nil", err)
		}
		if err == nil && (got.CarrierID == "" || got.At.IsZero() || (got.From == "") == (got.MessageID == "")) {
			t.Errorf("signed: %+v, want an id, a moment, and either a customer or a message of ours", got)
		}
	})
}
