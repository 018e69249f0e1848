package settings_test

import (
	"net/http"
	"strings"
	"testing"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/httpapi"
)

func TestWrite(t *testing.T) {
	d := newDesk(t)
	asked := d.simulated(t, carrier.SimulatorAnswer{Status: 200, CarrierID: "sim-1"})
	u, other, elsewhere := d.newUser(t), d.newUser(t), d.newUser(t)
	u.onCarrier(t, carrier.SimulatorName, "+12025550161")
	other.onCarrier(t, carrier.SimulatorName, "+12025550162")
	elsewhere.onCarrier(t, "another", "+12025550163")
	message := func(change anything) anything {
		body := anything{"channel": "sms", "from": "+12025550155", "to": "+12025550161", "content": "Bonjour 👋"}
		for name, value := range change {
			body[name] = value
		}
		return body
	}

	got := want[struct {
		ProviderMessageID string `json:"provider_message_id"`
	}](t, u.ask(t, "POST", "/sandbox/messages", message(anything{"media_count": 2, "test": true})), http.StatusAccepted)
	wanted := carrier.Text{
		WorkspaceID: u.ws, Channel: conversation.SMS, From: "+12025550155", To: "+12025550161", Content: "Bonjour 👋", Test: true,
		CallbackURL: "https://api.example.com/carriers/simulator/" + string(u.ws),
	}
	if asked.Text == nil || asked.Text.MessageID == "" {
		t.Fatalf("asked %+v, want a text with an id", asked)
	}
	wanted.MessageID = asked.Text.MessageID
	if got.ProviderMessageID != "sim-1" || asked.Op != carrier.OpWrite || *asked.Text != wanted || asked.MediaCount != 2 {
		t.Errorf("answered %+v, asked %+v of %+v; want %+v", got, asked, *asked.Text, wanted)
	}
	want[struct{}](t, u.ask(t, "POST", "/sandbox/messages", message(anything{"channel": "whatsapp", "from": "US.13491208655302741918"})), http.StatusAccepted)
	*asked = carrier.SimulatorRequest{}
	for name, tt := range map[string]struct {
		change anything
		want   []string
	}{
		"another channel":       {anything{"channel": "fax"}, []string{"channel: "}},
		"a user id on sms":      {anything{"from": "US.13491208655302741918"}, []string{"from: must be a phone number"}},
		"from a name":           {anything{"from": "Ada"}, []string{"from: must be a phone number"}},
		"to a name":             {anything{"to": "Reception"}, []string{"to: must be a phone number"}},
		"10,001 characters":     {anything{"content": strings.Repeat("é", 10_001)}, []string{"content: "}},
		"fewer than no picture": {anything{"media_count": -1}, []string{"media_count: "}},
		"everything wrong":      {anything{"channel": 1, "from": "", "to": "x", "media_count": 11, "what": true}, []string{"channel: ", "from: ", "to: ", "media_count: ", "what: "}},
	} {
		problem := want[httpapi.Problem](t, u.ask(t, "POST", "/sandbox/messages", message(tt.change)), http.StatusBadRequest)
		for _, part := range tt.want {
			if !strings.Contains(strings.Join(problem.Detail, "\n"), part) {
				t.Errorf("%s: %q, want one of %q", name, problem.Detail, part)
			}
		}
	}
	want[httpapi.Problem](t, other.ask(t, "POST", "/sandbox/messages", message(nil)), http.StatusNotFound)
	want[httpapi.Problem](t, u.ask(t, "POST", "/sandbox/messages", message(anything{"to": "+12025550199"})), http.StatusNotFound)
	refused := want[httpapi.Problem](t, elsewhere.ask(t, "POST", "/sandbox/messages", message(anything{"to": "+12025550163"})), http.StatusConflict)
	if refused.Code != "not_a_sandbox" {
		t.Errorf("another carrier: %+v", refused)
	}
	if asked.Op != "" {
		t.Errorf("the simulator was asked %+v", asked)
	}
}
