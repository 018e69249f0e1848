package e2e

import (
	"fmt"
	"testing"
	"time"

	"parley/shared/carrier"
	"parley/shared/conversation"
)

// callbackURL is where the carrier reports a call's events.
func (d desk) callbackURL(t testing.TB, callID conversation.CallID) string {
	t.Helper()
	return fmt.Sprintf("%s/carriers/%s/%s/%s", deployed(t).BaseURL, carrier.SimulatorName, d.ws, callID)
}

// ring lets the customer whose number ends in the digits ring the desk.
func (d desk) ring(t testing.TB, digits string, test bool) conversation.CallID {
	t.Helper()
	ref := carrier.Ref{WorkspaceID: d.ws, CallID: conversation.CallID(conversation.NewID())}
	_, err := carrier.NewSimulator(deployed(t).aws, "parley-local-simulate-carrier", nil).Ring(t.Context(), carrier.Placement{
		Ref: ref, From: customerOf(digits), To: d.number, CallbackURL: d.callbackURL(t, ref.CallID), MaxDuration: 2 * time.Minute,
	}, test)
	if err != nil {
		t.Fatal(err)
	}
	return ref.CallID
}

// A customer's call lives the life of every other, without a slot; a test is one that
// lists leave out.
func TestInboundCalls(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	calls := map[bool]conversation.CallID{false: d.ring(t, "50", false), true: d.ring(t, "12", true)}
	for test, digits := range map[bool]string{false: "50", true: "12"} {
		callID := calls[test]
		d.finished(t, callID)
		got := d.get(t, callID)
		began := conversation.Call{
			CallID: callID, WorkspaceID: d.ws, AssistantID: assistantID, AssistantName: "Reception",
			Direction: conversation.Inbound, StartedAt: got.StartedAt, IsTest: test, Customer: &conversation.Customer{},
		}
		e := endings["99"]
		if test {
			e = endings["12"]
		}
		e.check(t, d, began, customerOf(digits), got)
	}
	d.checkSettled(t, calls[false], calls[true])
	shown := pageOf[conversation.Call](t, d.key, "calls", "").Items
	if len(shown) != 1 || shown[0].CallID != calls[false] {
		t.Errorf("without include_test: %v, want call %s", shown, calls[false])
	}
}
