package conversation

import "encoding/json"

// CallRecord is a call with what the service alone knows of it.
type CallRecord struct {
	Call
	Carrier        string    `json:"carrier"`
	CarrierID      string    `json:"carrier_id,omitzero"`
	Number         string    `json:"number"`                   // the workspace's own, E.164
	CalledName     string    `json:"called_name,omitzero"`     // the request's customer_name
	IdempotencyKey string    `json:"idempotency_key,omitzero"` // hashed
	LongestSeconds int       `json:"longest_seconds"`          // then the service hangs up
	HoldsSlot      bool      `json:"holds_slot"`               // counts among its assistant's active calls
	DiallingAt     Time      `json:"dialling_at,omitzero"`     // dialling began, or the call arrived
	HungUpAt       Time      `json:"hung_up_at,omitzero"`
	HungUpReason   EndReason `json:"hung_up_reason,omitzero"`
	CompletedAt    Time      `json:"completed_at,omitzero"` // post-call work is done
	Token          string    `json:"token,omitzero"`        // of the task that waits for the next change
	TokenAt        string    `json:"token_at,omitzero"`     // sorts by when its attempt began
}

// Active tells whether the call is still to be resolved.
func (r CallRecord) Active() bool { return r.Status == CallQueued || r.Status == CallInProgress }

// Variables are the call's variables as text, as they reach the prompt.
func (c Call) Variables() map[string]string {
	var values map[string]json.RawMessage
	_ = json.Unmarshal(c.CallVariables, &values) // it was checked when the call was accepted
	texts := make(map[string]string, len(values))
	for name, value := range values {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value) // a number or a boolean
		}
		texts[name] = text
	}
	return texts
}
