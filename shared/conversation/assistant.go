package conversation

// Assistant is an AI agent as customers see it (spec: Assistant).
type Assistant struct {
	AssistantID   AssistantID   `json:"assistant_id"`
	AssistantName string        `json:"assistant_name"`
	WorkspaceID   WorkspaceID   `json:"workspace_id"`
	PhoneNumbers  []PhoneNumber `json:"phone_numbers"`
	CallVariables []string      `json:"call_variables" doc:"The variables that prompt and greeting use, without those that the service fills in itself."`
}

// PhoneNumber is a number that an assistant answers.
type PhoneNumber struct {
	PhoneNumber     string `json:"phone_number" doc:"E.164."`
	Country         string `json:"country" doc:"ISO 3166-1 alpha-2."`
	OutboundEnabled bool   `json:"outbound_enabled"`
}

// AssistantConfig is an assistant with all that its workspace's definition says of it.
type AssistantConfig struct {
	Assistant
	Enabled  bool        `json:"enabled"`
	Version  int         `json:"version"`
	Prompt   string      `json:"prompt"`
	Greeting string      `json:"greeting"`
	Voice    string      `json:"voice"`
	Model    string      `json:"model"`
	Language string      `json:"language"`
	Criteria []Criterion `json:"criteria"`
}

// Criterion is what an evaluation judges a conversation by.
type Criterion struct {
	EvaluationID EvaluationID `json:"evaluation_id"`
	Title        string       `json:"title"`
	Instructions string       `json:"instructions"`
	Enabled      bool         `json:"enabled"`
	Recoverable  bool         `json:"recoverable"` // a follow-up may repair a failure
}

// Number is what a phone number leads to: the workspace and the assistant that answers it.
type Number struct {
	PhoneNumber
	Carrier     string      `json:"carrier"`
	WorkspaceID WorkspaceID `json:"workspace_id"`
	AssistantID AssistantID `json:"assistant_id"`
}
