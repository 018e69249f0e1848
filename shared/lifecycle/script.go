package lifecycle

import (
	"cmp"
	"time"
	_ "time/tzdata" // a function's system may have none

	"parley/shared/carrier"
	"parley/shared/conversation"
)

// script is how the assistant speaks in this call: prompt and greeting with their
// variables filled in.
func script(ws conversation.Workspace, assistant conversation.AssistantConfig, call conversation.CallRecord, now time.Time) carrier.Script {
	values := variables(ws, call, now)
	return carrier.Script{
		CallID: call.CallID, Model: cmp.Or(assistant.Model, ws.Model), Voice: assistant.Voice, Language: assistant.Language,
		Greeting: conversation.Render(assistant.Greeting, values),
		Prompt:   conversation.Render(assistant.Prompt, values),
	}
}

// variables are the values of a call's placeholders: the workspace's, over them the
// caller's, over both the service's own.
func variables(ws conversation.Workspace, call conversation.CallRecord, now time.Time) map[string]string {
	values := ws.FilledVariables()
	for name, value := range call.Variables() {
		values[name] = value
	}
	values["phone_number"] = call.Number
	if call.Customer != nil {
		values["caller_phone_number"] = call.Customer.Phone
		values["participant_name"] = call.Customer.Name
	}
	if zone, err := time.LoadLocation(ws.Timezone); err == nil {
		now = now.In(zone)
	}
	values["system__time"] = now.Format("Monday, 2 January 2006, 15:04 MST")
	return values
}

// snapshot is what the call's config_snapshot keeps of its assistant.
func snapshot(ws conversation.Workspace, assistant conversation.AssistantConfig) conversation.ConfigSnapshot {
	return conversation.ConfigSnapshot{
		Version: assistant.Version, Model: cmp.Or(assistant.Model, ws.Model), Voice: assistant.Voice,
		Language: assistant.Language, Greeting: assistant.Greeting, Prompt: assistant.Prompt,
	}
}
