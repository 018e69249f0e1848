package webhook_test

import (
	"strings"
	"testing"

	"parley/shared/conversation"
)

func TestSealer(t *testing.T) {
	w := newWorld(t)
	e := conversation.WebhookEndpoint{WorkspaceID: w.workspace, EndpointID: "e"}
	for _, secret := range []string{"whsec_abc", strings.Repeat("x", 1024)} {
		sealed := w.seal(e, secret)
		if strings.Contains(string(sealed), secret) {
			t.Error("the secret is not sealed")
		}
		if got, err := w.sealer.Open(t.Context(), e, sealed); got != secret || err != nil {
			t.Errorf("opened: %q, %v; want %q", got, err, secret)
		}
		other := e
		other.EndpointID = "other"
		if got, err := w.sealer.Open(t.Context(), other, sealed); err == nil {
			t.Errorf("opened for another endpoint: %q", got)
		}
		// What was opened once needs no KMS.
		w.failing("Decrypt")
		if got, err := w.sealer.Open(t.Context(), e, sealed); got != secret || err != nil {
			t.Errorf("opened again: %q, %v; want %q", got, err, secret)
		}
		w.failing()
	}
}
