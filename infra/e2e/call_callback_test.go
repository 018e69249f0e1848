package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/google/go-cmp/cmp"

	"parley/shared/carrier"
	"parley/shared/conversation"
)

// carrierSecret signs the callbacks of the simulator.
func carrierSecret(t testing.TB) []byte {
	t.Helper()
	out, err := secretsmanager.NewFromConfig(deployed(t).aws).GetSecretValue(t.Context(),
		&secretsmanager.GetSecretValueInput{SecretId: aws.String("parley-local-simulator-secret")})
	if err != nil {
		t.Fatal(err)
	}
	return []byte(aws.ToString(out.SecretString))
}

// callBack posts a callback as a carrier would.
func callBack(t testing.TB, address string, body []byte, signature string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if signature != "" {
		req.Header.Set(carrier.SignatureHeader, signature)
	}
	res, err := usualClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(text))
}

func callback(t testing.TB, event carrier.Event, reason conversation.EndReason) []byte {
	t.Helper()
	body, err := json.Marshal(carrier.Callback{Event: event, CarrierID: "sim-x", At: time.Now(), Reason: reason})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// Only the carrier is believed, in time and about the call that it signs for. Whatever it
// says of a call that is over changes nothing; a phone that still rings shall fall silent.
func TestCallbacks(t *testing.T) {
	t.Parallel()
	d, secret, now := newDesk(t), carrierSecret(t), time.Now()
	given, over := d.place(t, "01").CallID, d.place(t, "50").CallID
	d.finished(t, given)
	d.finished(t, over)
	ended, busy, nobody := d.callbackURL(t, over), d.callbackURL(t, given), d.callbackURL(t, nowhereID)
	stranger := strings.Replace(ended, carrier.SimulatorName, "stranger", 1)
	progress, answered := callback(t, carrier.EventProgress, ""), callback(t, carrier.EventAnswered, "")
	hungUp, failed := callback(t, carrier.EventHungUp, "customer_hung_up"), callback(t, carrier.EventFailed, "busy")
	sign := func(address string, body []byte) string { return carrier.Sign(secret, now, address, body) }
	aged := func(by time.Duration) string { return carrier.Sign(secret, now.Add(-by), ended, progress) }
	tests := map[string]struct {
		address   string
		body      []byte
		signature string
		status    int
		answer    string
	}{
		"unsigned":              {ended, progress, "", http.StatusUnauthorized, ""},
		"unsigned, of no call":  {nobody, progress, "", http.StatusUnauthorized, ""},
		"a signature of none":   {ended, progress, "t=1,v1=", http.StatusUnauthorized, ""},
		"old":                   {ended, progress, aged(6 * time.Minute), http.StatusUnauthorized, ""},
		"early":                 {ended, progress, aged(-8 * time.Minute), http.StatusUnauthorized, ""},
		"by another secret":     {ended, progress, carrier.Sign([]byte("secret"), now, ended, progress), http.StatusUnauthorized, ""},
		"by no secret":          {ended, progress, carrier.Sign(nil, now, ended, progress), http.StatusUnauthorized, ""},
		"signed for another":    {ended, progress, sign(busy, progress), http.StatusUnauthorized, ""},
		"of another body":       {ended, progress, sign(ended, failed), http.StatusUnauthorized, ""},
		"of no call":            {nobody, progress, sign(nobody, progress), http.StatusNotFound, ""},
		"of no carrier of ours": {stranger, progress, sign(stranger, progress), http.StatusNotFound, ""},
		"no JSON":               {ended, []byte("{"), sign(ended, []byte("{")), http.StatusBadRequest, ""},
		"ended, progress":       {ended, progress, sign(ended, progress), http.StatusOK, `{}`},
		"ended, answered":       {ended, answered, sign(ended, answered), http.StatusOK, `{"hang_up":true}`},
		"ended, hung up":        {ended, hungUp, sign(ended, hungUp), http.StatusOK, `{}`},
		"ended, failed":         {ended, failed, sign(ended, failed), http.StatusOK, `{}`},
		"in error, progress":    {busy, progress, sign(busy, progress), http.StatusOK, `{"hang_up":true}`},
		"in error, answered":    {busy, answered, sign(busy, answered), http.StatusOK, `{"hang_up":true}`},
		"in error, hung up":     {busy, hungUp, sign(busy, hungUp), http.StatusOK, `{}`},
	}
	before := []conversation.CallRecord{d.record(t, over), d.record(t, given)}
	for name, tt := range tests {
		status, answer := callBack(t, tt.address, tt.body, tt.signature)
		if status != tt.status || answer != tt.answer {
			t.Errorf("%s: %d %q, want %d %q", name, status, answer, tt.status, tt.answer)
		}
	}
	if diff := cmp.Diff(before, []conversation.CallRecord{d.record(t, over), d.record(t, given)}); diff != "" {
		t.Errorf("the calls have changed (-before +after):\n%s", diff)
	}
	d.checkSettled(t, given, over)
}
