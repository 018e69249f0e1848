package conversation

// Role says who spoke.
type Role string

const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Turn is one item of a transcript.
type Turn struct {
	Role    Role   `json:"role" enum:"user,assistant"`
	Content string `json:"content"`
}

// Customer is who the conversation is with, as far as is known.
type Customer struct {
	CustomerID CustomerID `json:"customer_id,omitzero" format:"uuid"`
	Name       string     `json:"name,omitzero"`
	Phone      string     `json:"phone,omitzero" doc:"E.164."`
	Email      string     `json:"email,omitzero"`
	Language   string     `json:"language,omitzero" doc:"BCP 47."`
	Country    string     `json:"country,omitzero" doc:"ISO 3166-1 alpha-2."`
}

// Outcome is how a conversation ended for the customer.
type Outcome string

const (
	OutcomeResolved         Outcome = "resolved"
	OutcomeUnresolved       Outcome = "unresolved"
	OutcomeFollowUpRequired Outcome = "follow_up_required"
	OutcomeVoicemail        Outcome = "voicemail"
	OutcomeUnknown          Outcome = "unknown"
)

// Sentiment is how the customer felt.
type Sentiment string

const (
	SentimentPositive Sentiment = "positive"
	SentimentNeutral  Sentiment = "neutral"
	SentimentNegative Sentiment = "negative"
	SentimentUnknown  Sentiment = "unknown"
)

// Analysis is what the agent makes of a finished conversation.
type Analysis struct {
	Summary   string    `json:"summary"`
	Intent    string    `json:"intent" doc:"Free text."`
	Outcome   Outcome   `json:"outcome" doc:"resolved, unresolved, follow_up_required, voicemail or unknown."`
	Sentiment Sentiment `json:"sentiment" doc:"positive, neutral, negative or unknown."`
}

// Verdict is the result of an evaluation.
type Verdict string

const (
	Pass          Verdict = "pass"
	Fail          Verdict = "fail"
	Undecided     Verdict = "unknown"
	NotApplicable Verdict = "not_applicable"
)

// Evaluation is one criterion's verdict on a conversation (spec: Evaluation).
type Evaluation struct {
	EvaluationID  EvaluationID `json:"evaluation_id" format:"uuid"`
	Title         string       `json:"title"`
	Result        Verdict      `json:"result" doc:"pass, fail, unknown or not_applicable."`
	InitialResult Verdict      `json:"initial_result,omitzero" doc:"The result before a follow-up; absent without one."`
	Rationale     string       `json:"rationale"`
	Recovered     bool         `json:"recovered" doc:"A failed criterion was fixed by a follow-up."`
}

// FollowUpStatus is where a recovery follow-up stands.
type FollowUpStatus string

const (
	FollowUpPending   FollowUpStatus = "pending"
	FollowUpSent      FollowUpStatus = "sent"
	FollowUpDelivered FollowUpStatus = "delivered"
	FollowUpFailed    FollowUpStatus = "failed"
	FollowUpSkipped   FollowUpStatus = "skipped"
	FollowUpAmbiguous FollowUpStatus = "ambiguous"
)

// FollowUp is a message that tries to repair what an evaluation found wanting (spec: Follow-up).
type FollowUp struct {
	Status  FollowUpStatus `json:"status" doc:"pending, sent, delivered, failed, skipped or ambiguous."`
	Channel Channel        `json:"channel" enum:"sms,whatsapp"`
	SentAt  Time           `json:"sent_at,omitzero"`
}
