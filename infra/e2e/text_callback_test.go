package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// Only the carrier is believed, in time, about numbers of the workspace that it names, and
// in its own form. Of anything else, nothing is stored.
func TestTextCallbacks(t *testing.T) {
	t.Parallel()
	d, other, secret, now := newTextDesk(t), newTextDesk(t), carrierSecret(t), time.Now()
	form := func(change func(*carrier.MessageCallback)) []byte {
		m := d.written(customerOf("50"), question)
		change(&m)
		body, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	good := form(func(*carrier.MessageCallback) {})
	whole := func(body []byte) func(string) ([]byte, string) {
		return func(address string) ([]byte, string) { return body, carrier.Sign(secret, now, address, body) }
	}
	signed := func(signature string) func(string) ([]byte, string) {
		return func(string) ([]byte, string) { return good, signature }
	}
	changed := func(change func(*carrier.MessageCallback)) func(string) ([]byte, string) { return whole(form(change)) }
	aged := func(by time.Duration) string { return carrier.Sign(secret, now.Add(-by), d.textsURL(t), good) }
	nowhere := strings.Replace(d.textsURL(t), string(d.ws), nowhereID, 1)
	tests := map[string]struct {
		address string
		make    func(address string) ([]byte, string)
		status  int
	}{
		"unsigned":               {d.textsURL(t), signed(""), http.StatusUnauthorized},
		"a signature of none":    {d.textsURL(t), signed("t=1,v1="), http.StatusUnauthorized},
		"old":                    {d.textsURL(t), signed(aged(6 * time.Minute)), http.StatusUnauthorized},
		"early":                  {d.textsURL(t), signed(aged(-8 * time.Minute)), http.StatusUnauthorized},
		"by another secret":      {d.textsURL(t), signed(carrier.Sign([]byte("secret"), now, d.textsURL(t), good)), http.StatusUnauthorized},
		"signed for another":     {d.textsURL(t), signed(carrier.Sign(secret, now, other.textsURL(t), good)), http.StatusUnauthorized},
		"unsigned, nowhere":      {nowhere, signed(""), http.StatusUnauthorized},
		"another's number":       {other.textsURL(t), whole(good), http.StatusNotFound},
		"of no workspace":        {nowhere, whole(good), http.StatusNotFound},
		"nobody's number":        {d.textsURL(t), changed(func(m *carrier.MessageCallback) { m.To = "+12025550199" }), http.StatusNotFound},
		"of no carrier of ours":  {strings.Replace(d.textsURL(t), carrier.SimulatorName, "stranger", 1), whole(good), http.StatusNotFound},
		"1 MB":                   {d.textsURL(t), changed(func(m *carrier.MessageCallback) { m.Content = strings.Repeat("a", 1<<20) }), http.StatusRequestEntityTooLarge},
		"too long":               {d.textsURL(t), changed(func(m *carrier.MessageCallback) { m.Content = strings.Repeat("a", 200<<10) }), http.StatusBadRequest},
		"no JSON":                {d.textsURL(t), whole([]byte("{")), http.StatusBadRequest},
		"a call's event":         {d.textsURL(t), whole(callback(t, carrier.EventProgress, "")), http.StatusBadRequest},
		"without an id":          {d.textsURL(t), changed(func(m *carrier.MessageCallback) { m.CarrierID = "" }), http.StatusBadRequest},
		"of no channel":          {d.textsURL(t), changed(func(m *carrier.MessageCallback) { m.Channel = "fax" }), http.StatusBadRequest},
		"from a user id, by SMS": {d.textsURL(t), changed(func(m *carrier.MessageCallback) { m.From = "US.13491208655302741918" }), http.StatusBadRequest},
		"a receipt of nothing": {d.textsURL(t), changed(func(m *carrier.MessageCallback) {
			*m = carrier.MessageCallback{Event: carrier.EventReceipt, CarrierID: "sim-x", At: now, MessageID: nowhereID, Status: carrier.ReceiptSent}
		}), http.StatusOK},
	}
	for name, tt := range tests {
		body, signature := tt.make(tt.address)
		if status, answer := callBack(t, tt.address, body, signature); status != tt.status {
			t.Errorf("%s: %d %.200q, want %d", name, status, answer, tt.status)
		}
	}
	for _, desk := range []desk{d, other} {
		key := dynamo.ThreadKey{Number: desk.number, Address: customerOf("50"), Channel: conversation.SMS}
		if thread, ok := desk.openThread(t, key); ok || len(desk.listed(t)) > 0 {
			t.Errorf("something was stored: %+v, %+v", thread, desk.listed(t))
		}
	}
}
