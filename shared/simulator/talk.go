package simulator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/shared/agent"
	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// answer asks what to do with a call that somebody has answered, and does it. If another
// function has done so already, the message that ends the call is sent again: nobody knows
// whether it was.
func (s *Simulator) answer(ctx context.Context, call dynamo.SimulatorCall, at conversation.Time) error {
	if call.Phase == string(carrier.Dialling) {
		told, err := s.ask(ctx, call, at)
		if err != nil {
			return err
		}
		talk, err := s.talk(ctx, call, told)
		if errors.Is(err, agent.ErrNoModel) {
			return s.begin(ctx, call, afterPart, s.Now(), conversation.EndAgentUnavailable)
		}
		if err != nil {
			return err
		}
		if call, err = s.change(ctx, call, talk); err != nil {
			return err
		}
	}
	switch {
	case call.Phase != string(carrier.Talking) || call.Forgotten:
		return nil
	case len(call.Tools) > 0:
		return s.begin(ctx, call, toolPart, call.AnsweredAt.Time, "")
	default:
		return s.hangUpLater(ctx, call)
	}
}

// useTool reports a text that the assistant wants to be sent. Nobody hangs up before the
// last of them is reported.
func (s *Simulator) useTool(ctx context.Context, call dynamo.SimulatorCall, m message) error {
	if call.Phase != string(carrier.Talking) {
		return nil // it was ended before
	}
	_, err := s.post(ctx, call.CallbackURL, carrier.Callback{
		Event: carrier.EventTool, CarrierID: call.CarrierID, At: m.Due.Time,
		Text: call.Tools[m.Step].Text, ToolID: fmt.Sprintf("tool-%d", m.Step),
	})
	if err != nil || m.Step+1 < len(call.Tools) {
		return err
	}
	return s.hangUpLater(ctx, call)
}

// hangUpLater begins the end of a call in which somebody talks.
func (s *Simulator) hangUpLater(ctx context.Context, call dynamo.SimulatorCall) error {
	reason := scenarioOf(call).hangsUp
	if reason == "" || s.limit(call) <= call.TalkTime {
		reason = conversation.EndMaxDuration
	}
	return s.begin(ctx, call, afterPart, call.AnsweredAt.Add(s.scaled(call.TalkTime)), reason)
}

// ask reports the answered or incoming call and reads what we are to do with it.
func (s *Simulator) ask(ctx context.Context, call dynamo.SimulatorCall, at conversation.Time) (carrier.Instruction, error) {
	event := carrier.EventAnswered
	if call.Inbound {
		event = carrier.EventIncoming
	}
	body, err := s.report(ctx, call, event, at)
	if err != nil {
		return carrier.Instruction{}, err
	}
	var told carrier.Instruction
	if err := json.Unmarshal(body, &told); err != nil {
		return carrier.Instruction{}, fmt.Errorf("read the instruction: %w", err)
	}
	if !told.HangUp && told.Script == (carrier.Script{}) {
		return carrier.Instruction{}, errors.New("the instruction says neither to hang up nor what to say")
	}
	return told, nil
}

// talk makes the change that an instruction means: the call falls silent, or the whole
// conversation is held.
func (s *Simulator) talk(ctx context.Context, call dynamo.SimulatorCall, told carrier.Instruction) (func(*dynamo.SimulatorCall) bool, error) {
	now := conversation.At(s.Now())
	if told.HangUp {
		return func(c *dynamo.SimulatorCall) bool {
			if c.Phase != string(carrier.Dialling) {
				return false
			}
			c.Phase, c.Reason = string(carrier.Over), conversation.EndCanceled
			c.AnsweredAt, c.HungUpAt = now, now
			return true
		}, nil
	}
	scenario := scenarioOf(call)
	turns, tools, err := converse(ctx, told.Script, scenario.says)
	if err != nil {
		return nil, err
	}
	return func(c *dynamo.SimulatorCall) bool {
		if c.Phase != string(carrier.Dialling) {
			return false
		}
		c.Phase, c.AnsweredAt, c.Transcript, c.Forgotten = string(carrier.Talking), now, turns, scenario.forgotten
		c.TalkTime = min(Duration(turns)+scenario.silence, s.limit(*c))
		if scenario.hangsUp == "" {
			c.TalkTime = s.limit(*c)
		}
		c.Tools = slices.DeleteFunc(slices.Clone(tools), func(tool dynamo.SimulatorTool) bool { return tool.After >= c.TalkTime })
		return true
	}, nil
}

// limit is how long the carrier lets a call last, on the simulator's clock.
func (s *Simulator) limit(call dynamo.SimulatorCall) time.Duration {
	return call.MaxDuration * time.Duration(s.TimeScale)
}

// converse is what is said: the greeting, and each of the customer's lines with the
// assistant's reply; and the texts that the lines ask for.
func converse(ctx context.Context, script carrier.Script, lines []string) ([]conversation.Turn, []dynamo.SimulatorTool, error) {
	assistant, err := agent.For(script.Model)
	if err != nil {
		return nil, nil, err
	}
	var turns []conversation.Turn
	var tools []dynamo.SimulatorTool
	if strings.TrimSpace(script.Greeting) != "" {
		turns = append(turns, conversation.Turn{Role: conversation.RoleAssistant, Content: script.Greeting})
	}
	for _, line := range lines {
		turns = append(turns, conversation.Turn{Role: conversation.RoleUser, Content: line})
		soFar := agent.Conversation{Prompt: script.Prompt, Turns: turns}
		text, err := assistant.TextMessage(ctx, soFar)
		if err != nil {
			return nil, nil, err
		}
		if strings.TrimSpace(text) != "" {
			tools = append(tools, dynamo.SimulatorTool{After: Duration(turns), Text: carrier.Fit(conversation.SMS, text)})
		}
		reply, err := assistant.Reply(ctx, soFar)
		if err != nil {
			return nil, nil, err
		}
		turns = append(turns, conversation.Turn{Role: conversation.RoleAssistant, Content: reply})
	}
	return turns, tools, nil
}
