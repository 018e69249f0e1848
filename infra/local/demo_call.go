package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/shopspring/decimal"

	"parley/shared/conversation"
	"parley/shared/simulator"
)

// failures are the reasons of calls that never happened.
var failures = []conversation.EndReason{
	conversation.EndBusy, conversation.EndNoAnswer, conversation.EndRejected, conversation.EndCanceled,
	conversation.EndInvalidDestination, conversation.EndProviderRefused, conversation.EndProviderUnavailable,
	conversation.EndAgentUnavailable, conversation.EndAgentError, conversation.EndStalled,
}

// fillCall makes the i-th call, which began at a moment: of five, two are outbound, and
// every fourth of these failed.
func (h *historian) fillCall(i int, at time.Time) {
	a := h.assistant()
	call := &h.calls[i]
	*call = conversation.Call{
		CallID:      conversation.CallID(h.id(at)),
		WorkspaceID: h.definition.Workspace.WorkspaceID, AssistantID: a.AssistantID, AssistantName: a.AssistantName,
		CallType: conversation.Inbound, Direction: conversation.Inbound,
		Status: conversation.CallEnded, StartedAt: conversation.At(at),
		IsTest:         i%30 == 7,
		ConfigSnapshot: snapshot(a),
	}
	customer := h.customer()
	if i%5 < 2 {
		customer = h.compatriot()
		call.CallType, call.Direction = conversation.Outbound, conversation.Outbound
		call.CallVariables = h.callVariables(a, at)
		call.Metadata = conversation.JSON(fmt.Sprintf(`{"booking_id":"HH-%d","source":"crm"}`, 1000+i))
		h.outbound++
	}
	call.Customer = &customer
	ringing := time.Duration(4+h.IntN(12)) * time.Second
	if call.Direction == conversation.Outbound && h.outbound%4 == 0 {
		call.Status, call.EndReason = conversation.CallError, failures[h.outbound/4%len(failures)]
		call.EndedAt = conversation.At(at.Add(ringing))
	} else {
		h.talk(call, a, i)
		answered := at.Add(ringing)
		call.EndedAt = conversation.At(answered.Add(time.Duration(call.DurationSeconds) * time.Second))
	}
	if len(call.FollowUps) > 0 && !call.IsTest {
		h.failed = append(h.failed, call)
	}
}

// talk fills in what a call that happened leaves behind.
func (h *historian) talk(call *conversation.Call, a conversation.AssistantConfig, i int) {
	s := callScripts[i%len(callScripts)]
	if call.Direction == conversation.Outbound && i%15 == 1 {
		s = voicemail
	}
	lines := append([]string{greeting(a, h.definition.Workspace.Name, call.Customer.Name)}, s.lines...)
	call.Transcript = dialogue(conversation.RoleAssistant, lines...)
	call.DurationSeconds = int(simulator.Duration(call.Transcript).Round(time.Second) / time.Second)
	call.EndReason = conversation.EndCustomerHungUp
	if i%3 == 0 {
		call.EndReason = conversation.EndAssistantHungUp
	}
	call.Recording = &conversation.Recording{Status: conversation.RecordingComplete, Available: true}
	switch i % 24 {
	case 10:
		call.Recording = &conversation.Recording{Status: conversation.RecordingAbsent}
	case 17:
		call.Recording = &conversation.Recording{Status: conversation.RecordingFailed}
	case 22: // an hour would be a large file for a demo
		call.Recording = &conversation.Recording{Status: conversation.RecordingAbsent}
		call.DurationSeconds, call.EndReason = h.definition.Workspace.Limits.LongestCallSeconds, conversation.EndMaxDuration
	}
	call.Analysis = s.analysis()
	call.Evaluations = s.evaluations(a)
	if s.fails == failsRecoverable {
		call.FollowUps = []conversation.FollowUp{{Status: conversation.FollowUpSkipped, Channel: h.definition.Workspace.FollowUps.Channel}}
	}
	call.Costs = h.callCosts(call.DurationSeconds)
	call.PerformanceMetrics = h.metrics(len(call.Transcript))
}

// callVariables has a value for every variable of the assistant.
func (h *historian) callVariables(a conversation.AssistantConfig, at time.Time) conversation.JSON {
	known := map[string]any{
		"room_number": 100 + h.IntN(400), "departure_date": at.AddDate(0, 0, 2).Format(time.DateOnly),
		"booking_number": fmt.Sprintf("HH-%d", h.IntN(10_000)), "arrival_date": at.AddDate(0, 0, 9).Format(time.DateOnly),
	}
	sent := map[string]any{}
	for _, name := range a.CallVariables {
		if value, ok := known[name]; ok {
			sent[name] = value
		}
	}
	text, err := json.Marshal(sent)
	if err != nil {
		panic(err) // texts and numbers
	}
	return text
}

func (h *historian) callCosts(seconds int) *conversation.CallCosts {
	prices := h.definition.Workspace.Prices
	minutes := decimal.NewFromInt(int64(seconds)).Div(decimal.NewFromInt(60))
	telephony := amountOf(prices.TelephonyPerMinute, minutes).Round(4)
	assistant := amountOf(prices.AssistantPerMinute, minutes).Round(4)
	return &conversation.CallCosts{
		Currency: h.definition.Workspace.Currency, Total: telephony.Add(assistant).String(),
		Components: []conversation.CostComponent{
			{Type: "telephony", Amount: telephony.String()},
			{Type: "assistant", Amount: assistant.String()},
		},
	}
}

func (h *historian) metrics(turns int) *conversation.PerformanceMetrics {
	latency := func(least int) conversation.Latency {
		p50 := least + h.IntN(least)
		return conversation.Latency{P50: p50, P90: p50 * 3 / 2, P95: p50 * 2, Max: p50 * 3, Count: turns}
	}
	return &conversation.PerformanceMetrics{
		Speech: latency(80), Model: latency(250), Voice: latency(100), EndToEnd: latency(450),
	}
}

func snapshot(a conversation.AssistantConfig) *conversation.ConfigSnapshot {
	return &conversation.ConfigSnapshot{
		Version: a.Version, Model: a.Model, Voice: a.Voice, Language: a.Language, Greeting: a.Greeting, Prompt: a.Prompt,
	}
}
