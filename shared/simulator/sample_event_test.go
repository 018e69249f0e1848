package simulator_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"parley/shared/carrier"
)

// The sample event places a call.
func TestSampleEvent(t *testing.T) {
	event, err := os.ReadFile("../../events/simulate-carrier.json")
	if err != nil {
		t.Fatal(err)
	}
	var request carrier.SimulatorRequest
	if err := json.Unmarshal(event, &request); err != nil || request.MaxDuration != 61*time.Minute {
		t.Errorf("%+v, %v; want a limit of 61 minutes", request, err)
	}
	w := newWorld(t, 1)
	answer, err := w.sim.Invoke(t.Context(), event)
	if got, ok := answer.(carrier.SimulatorAnswer); err != nil || !ok || got.Status != 200 || got.CarrierID != "sim-"+string(request.CallID) {
		t.Errorf("Invoke = %+v, %v; want the call placed", answer, err)
	}
}
