package conversation

// Channel carries a text conversation.
type Channel string

const (
	SMS      Channel = "sms"
	WhatsApp Channel = "whatsapp"
)

// Source is a message's origin (spec: Message). Unknown future values are not errors.
type Source string

const (
	SourceInbound            Source = "inbound"
	SourceVoiceTool          Source = "voice_tool"
	SourceEvaluationFollowUp Source = "evaluation_follow_up"
	SourceTest               Source = "test"
)

// Message is one SMS or WhatsApp message as customers see it (spec: Message).
type Message struct {
	MessageID         MessageID   `json:"message_id"`
	WorkspaceID       WorkspaceID `json:"workspace_id"`
	AssistantID       AssistantID `json:"assistant_id"`
	AssistantName     string      `json:"assistant_name"`
	Channel           Channel     `json:"channel"`
	Direction         Direction   `json:"direction"`
	ThreadID          ThreadID    `json:"thread_id"`
	Source            Source      `json:"source" doc:"inbound, voice_tool, evaluation_follow_up or test; treat others as unknown."`
	OccurredAt        Time        `json:"occurred_at"`
	Content           string      `json:"content,omitzero" doc:"The text; absent when the message had none."`
	MediaCount        int         `json:"media_count,omitzero" doc:"How many pictures or files came with it; absent when none did."`
	ProviderMessageID string      `json:"provider_message_id,omitzero"`
	Reply             *Reply      `json:"reply,omitzero" doc:"Only on message.received, when the assistant replied in the same turn."`

	Customer *Customer     `json:"customer,omitzero" block:"customer"`
	Costs    *MessageCosts `json:"costs,omitzero" block:"costs"`
}

// withOffsets is the message with all of its times written as webhook payloads do.
func (m Message) withOffsets() Message {
	m.OccurredAt = m.OccurredAt.WithOffset()
	if m.Reply != nil {
		reply := *m.Reply
		reply.Timestamp = reply.Timestamp.WithOffset()
		m.Reply = &reply
	}
	return m
}

// Reply is the assistant's answer in the same turn as a customer's message.
type Reply struct {
	Content           string `json:"content"`
	ProviderMessageID string `json:"provider_message_id,omitzero"`
	Timestamp         Time   `json:"timestamp"`
}

// MessageCosts is indicative, not the billed amount.
type MessageCosts struct {
	Currency string `json:"currency" doc:"ISO 4217."`
	Total    string `json:"total"`
}
