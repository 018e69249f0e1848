package settings_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/httpapi"
)

// onCarrier gives the user's workspace a carrier and a number on it.
func (u user) onCarrier(t *testing.T, name, phoneNumber string) {
	t.Helper()
	definition, err := u.d.Store.Definition(t.Context(), u.ws)
	if err != nil {
		t.Fatal(err)
	}
	changed := definition
	changed.Workspace.Carrier, changed.Workspace.Limits.LongestCallSeconds = name, 600
	changed.Assistants = []conversation.AssistantConfig{{Assistant: conversation.Assistant{
		AssistantID: conversation.AssistantID(conversation.NewID()), AssistantName: "Front desk", WorkspaceID: u.ws,
		PhoneNumbers: []conversation.PhoneNumber{{PhoneNumber: phoneNumber, Country: "US"}},
	}}}
	if err := u.d.Store.Define(t.Context(), definition, changed, "0"); err != nil {
		t.Fatal(err)
	}
}

func TestRing(t *testing.T) {
	d := newDesk(t)
	asked := d.simulated(t, carrier.SimulatorAnswer{Status: 200, CarrierID: "sim-1"})
	u, other, elsewhere := d.newUser(t), d.newUser(t), d.newUser(t)
	u.onCarrier(t, carrier.SimulatorName, "+12025550171")
	other.onCarrier(t, carrier.SimulatorName, "+12025550172")
	elsewhere.onCarrier(t, "another", "+12025550173")
	call := anything{"from": "+12025550155", "to": "+12025550171", "test": true}

	got := want[struct {
		ProviderCallID string `json:"provider_call_id"`
	}](t, u.ask(t, "POST", "/sandbox/calls", call), http.StatusAccepted)
	prefix := "https://api.example.com/carriers/simulator/" + string(u.ws) + "/" + string(asked.CallID)
	if got.ProviderCallID != "sim-1" || asked.Op != carrier.OpRing || !asked.Test || asked.WorkspaceID != u.ws || asked.From != "+12025550155" || asked.To != "+12025550171" ||
		asked.CallID == "" || asked.CallbackURL != prefix || asked.MaxDuration != 11*time.Minute {
		t.Errorf("answered %+v, asked %+v", got, asked)
	}
	*asked = carrier.SimulatorRequest{}
	want[httpapi.Problem](t, other.ask(t, "POST", "/sandbox/calls", call), http.StatusNotFound)
	call["to"] = "+12025550199"
	want[httpapi.Problem](t, u.ask(t, "POST", "/sandbox/calls", call), http.StatusNotFound)
	call["to"] = "+12025550173"
	if got := want[httpapi.Problem](t, elsewhere.ask(t, "POST", "/sandbox/calls", call), http.StatusConflict); got.Code != "not_a_sandbox" {
		t.Errorf("another carrier: %+v", got)
	}
	if asked.Op != "" {
		t.Errorf("the simulator was asked %+v", asked)
	}
	d.simulated(t, carrier.SimulatorAnswer{Status: 400, Error: "no"})
	if got := want[httpapi.Problem](t, u.ask(t, "POST", "/sandbox/calls", anything{"from": "+12025550155", "to": "+12025550171"}), http.StatusBadGateway); got.Code != "provider_refused" || strings.Contains(got.Detail[0], "400") {
		t.Errorf("refused: %+v", got)
	}
}
