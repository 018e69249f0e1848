package conversation

import "time"

// Bounds of what a workspace's definition may say.
const (
	MaxCallDuration = 4 * time.Hour
	MaxAssistants   = 50
	MaxPromptBytes  = 64 << 10
)

// HotelName is the variable that defaults to the workspace's name.
const HotelName = "hotel_name"

// Workspace is one customer of the service and its settings. Amounts are decimals as strings.
type Workspace struct {
	WorkspaceID       WorkspaceID       `json:"workspace_id"`
	Name              string            `json:"name"`
	Timezone          string            `json:"timezone"` // IANA
	Country           string            `json:"country"`  // ISO 3166-1 alpha-2
	Variables         map[string]string `json:"variables"`
	Currency          string            `json:"currency"` // ISO 4217
	Prices            Prices            `json:"prices"`
	Limits            Limits            `json:"limits"`
	InactivitySeconds int               `json:"inactivity_seconds"`
	QuietHours        QuietHours        `json:"quiet_hours,omitzero"`
	HelpText          string            `json:"help_text"`
	Carrier           string            `json:"carrier"`
	Model             string            `json:"model"`
	FollowUps         FollowUpPolicy    `json:"follow_ups"`
}

// DefaultInactivity is how long a text conversation is quiet before it is over, where the
// workspace doesn't say.
const DefaultInactivity = 30 * time.Minute

// FilledVariables are the variables that the workspace's settings fill in for every call.
func (w Workspace) FilledVariables() map[string]string {
	filled := map[string]string{HotelName: w.Name}
	for name, value := range w.Variables {
		filled[name] = value
	}
	return filled
}

// Prices are what the service charges, in the workspace's currency.
type Prices struct {
	TelephonyPerMinute string `json:"telephony_per_minute"`
	AssistantPerMinute string `json:"assistant_per_minute"`
	SMS                string `json:"sms"`
	WhatsApp           string `json:"whatsapp"`
}

// Limits bound what a workspace does at once.
type Limits struct {
	ConcurrentCalls    int `json:"concurrent_calls"`     // per assistant
	CallsPerHour       int `json:"calls_per_hour"`       // POST /v1/calls, per workspace
	LongestCallSeconds int `json:"longest_call_seconds"` // then the service hangs up
}

// QuietHours are the local times of day, "15:04", between which no follow-up is sent.
// They may reach over midnight. The zero value is no quiet hours.
type QuietHours struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// FollowUpPolicy says whether and how a failed evaluation is followed up.
type FollowUpPolicy struct {
	Enabled     bool    `json:"enabled"`
	Channel     Channel `json:"channel,omitzero"`
	Number      string  `json:"number,omitzero"` // E.164, the number that sends
	Model       string  `json:"model,omitzero"`  // writes the follow-up; none: not configured
	WaitSeconds int     `json:"wait_seconds"`    // for the customer's answer
	DailyCap    int     `json:"daily_cap"`       // per workspace and day
}
