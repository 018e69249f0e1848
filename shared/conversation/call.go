package conversation

import "time"

// Direction says who began: the customer (inbound) or the service (outbound).
type Direction string

const (
	Inbound  Direction = "inbound"
	Outbound Direction = "outbound"
)

// CallStatus is where a call stands (spec: Call status). It only moves forward:
// queued, in_progress, then ended or error.
type CallStatus string

const (
	CallQueued     CallStatus = "queued"
	CallInProgress CallStatus = "in_progress"
	CallEnded      CallStatus = "ended"
	CallError      CallStatus = "error"
)

// EndReason says why a call ended or failed. The set is open: new ones may be added.
type EndReason string

// Why a call is in error.
const (
	EndBusy                EndReason = "busy"
	EndNoAnswer            EndReason = "no_answer"
	EndRejected            EndReason = "rejected"
	EndCanceled            EndReason = "canceled"
	EndInvalidDestination  EndReason = "invalid_destination"
	EndProviderRefused     EndReason = "provider_refused"
	EndProviderUnavailable EndReason = "provider_unavailable"
	EndAgentUnavailable    EndReason = "agent_unavailable"
	EndAgentError          EndReason = "agent_error"
	EndStalled             EndReason = "stalled"
)

// Why a call that happened ended.
const (
	EndCustomerHungUp  EndReason = "customer_hung_up"
	EndAssistantHungUp EndReason = "assistant_hung_up"
	EndMaxDuration     EndReason = "max_duration"
)

// CallSpan bounds the time between a call's start, which its id holds, and its ended_at:
// the longest call that a workspace may allow, and two hours for the pickup and for a
// sweep that comes late. Lists by ended_at read ids from that much earlier.
const CallSpan = MaxCallDuration + 2*time.Hour

// Call is a voice call as customers see it (spec: Call).
type Call struct {
	CallID          CallID      `json:"call_id"`
	WorkspaceID     WorkspaceID `json:"workspace_id"`
	AssistantID     AssistantID `json:"assistant_id"`
	AssistantName   string      `json:"assistant_name"`
	CallType        Direction   `json:"call_type"`
	Direction       Direction   `json:"direction"`
	Status          CallStatus  `json:"status"`
	DurationSeconds int         `json:"duration_seconds" doc:"Whole seconds from answer to hang-up; 0 until then."`
	StartedAt       Time        `json:"started_at" doc:"When the call was accepted, or arrived. It never moves."`
	EndedAt         Time        `json:"ended_at,omitzero" doc:"When the call was hung up or given up; absent until then."`
	EndReason       EndReason   `json:"end_reason,omitzero" doc:"Why the call ended or failed. An open set: busy, no_answer, rejected, canceled, invalid_destination, provider_refused, provider_unavailable, agent_unavailable, agent_error, stalled; customer_hung_up, assistant_hung_up, max_duration."`
	IsTest          bool        `json:"is_test"`
	CallVariables   JSON        `json:"call_variables,omitzero" doc:"The variables sent when the call was placed."`
	Metadata        JSON        `json:"metadata,omitzero" doc:"The caller's own JSON, as it was sent."`

	Customer           *Customer           `json:"customer,omitzero" block:"customer"`
	Costs              *CallCosts          `json:"costs,omitzero" block:"costs"`
	Transcript         []Turn              `json:"transcript,omitzero" block:"transcript"`
	Analysis           *Analysis           `json:"analysis,omitzero" block:"analysis"`
	Evaluations        []Evaluation        `json:"evaluations,omitzero" block:"evaluations"`
	FollowUps          []FollowUp          `json:"follow_ups,omitzero" block:"follow_ups"`
	Recording          *Recording          `json:"recording,omitzero" block:"recording"`
	PerformanceMetrics *PerformanceMetrics `json:"performance_metrics,omitzero" block:"performance_metrics"`
	ConfigSnapshot     *ConfigSnapshot     `json:"config_snapshot,omitzero" block:"config_snapshot"`
}

// WithDownloadURL is the call with the stable address of its audio, if it has any.
// baseURL is the API's public address, without a trailing slash.
func (c Call) WithDownloadURL(baseURL string) Call {
	if c.Recording != nil && c.Recording.Available {
		recording := *c.Recording
		recording.DownloadURL = baseURL + "/v1/calls/" + string(c.CallID) + "/recording"
		c.Recording = &recording
	}
	return c
}

// RecordingStatus is where a call's recording stands.
type RecordingStatus string

const (
	RecordingPending    RecordingStatus = "pending"
	RecordingProcessing RecordingStatus = "processing"
	RecordingComplete   RecordingStatus = "complete"
	RecordingAbsent     RecordingStatus = "absent"
	RecordingFailed     RecordingStatus = "failed"
)

// Recording says whether there is audio, and where. The audio's address is made when it
// is read, never stored.
type Recording struct {
	Status      RecordingStatus `json:"status" enum:"pending,processing,complete,absent,failed"`
	Available   bool            `json:"available"`
	DownloadURL string          `json:"download_url,omitzero" doc:"The stable endpoint of the audio, present only if it is available."`
}

// CallCosts is what a call cost. Amounts are decimals as strings.
type CallCosts struct {
	Currency   string          `json:"currency" doc:"ISO 4217."`
	Total      string          `json:"total"`
	Components []CostComponent `json:"components"`
}

// CostComponent is one part of a call's costs, such as telephony.
type CostComponent struct {
	Type   string `json:"type"`
	Amount string `json:"amount"`
}

// PerformanceMetrics are the latencies of a call.
type PerformanceMetrics struct {
	Speech   Latency `json:"speech"`
	Model    Latency `json:"model"`
	Voice    Latency `json:"voice"`
	EndToEnd Latency `json:"end_to_end"`
}

// Latency sums up one kind of latency over a call, in milliseconds.
type Latency struct {
	P50   int `json:"p50"`
	P90   int `json:"p90"`
	P95   int `json:"p95"`
	Max   int `json:"max"`
	Count int `json:"count"`
}

// ConfigSnapshot is the assistant's configuration at call time. Prompt and greeting are
// the templates, before any variable was filled in.
type ConfigSnapshot struct {
	Version  int    `json:"version"`
	Model    string `json:"model"`
	Voice    string `json:"voice"`
	Language string `json:"language"`
	Greeting string `json:"greeting"`
	Prompt   string `json:"prompt"`
}
