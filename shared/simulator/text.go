package simulator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// maxWritten is how many characters a customer's text may have, and maxMessageID how many
// bytes its id.
const (
	maxWritten   = 10_000
	maxMessageID = 128
)

// text takes a text to a customer, or one that a customer writes, and starts its first
// step. Asked twice for the same text, it counts that, and there is one.
func (s *Simulator) text(ctx context.Context, request carrier.SimulatorRequest) (carrier.SimulatorAnswer, error) {
	if request.Text == nil {
		return failure(http.StatusBadRequest, "text is required"), nil
	}
	asked := *request.Text
	t := dynamo.SimulatorText{
		CarrierID: textID(asked.MessageID), WorkspaceID: asked.WorkspaceID, MessageID: asked.MessageID,
		Inbound: request.Op == carrier.OpWrite, IsTest: asked.Test, Channel: asked.Channel,
		From: asked.From, To: asked.To, Content: asked.Content, MediaCount: request.MediaCount, Source: asked.Source,
		CallbackURL: asked.CallbackURL, SentAt: conversation.At(s.Now()),
	}
	if problem := problemOfText(t); problem != "" {
		return failure(http.StatusBadRequest, problem), nil
	}
	scenario := textScenarioOf(t)
	if scenario.refuses {
		return failure(http.StatusForbidden, "texts to this number are refused"), nil
	}
	t, err := s.Store.SendSimulatorText(ctx, t)
	if err != nil {
		return carrier.SimulatorAnswer{}, err
	}
	if steps := stepsOfText(t); len(steps) > 0 {
		first := message{WorkspaceID: t.WorkspaceID, CarrierID: t.CarrierID, Part: textPart}
		first.Due = conversation.At(t.SentAt.Add(s.scaled(steps[0].after)))
		if err := s.send(ctx, first); err != nil {
			return carrier.SimulatorAnswer{}, err
		}
	}
	if scenario.hangs {
		s.hang(ctx)
	}
	return carrier.SimulatorAnswer{Status: http.StatusOK, CarrierID: t.CarrierID}, nil
}

// textID derives from ours, so that a text is one however often it is asked for.
func textID(messageID conversation.MessageID) string { return "sim-" + string(messageID) }

// problemOfText says what is wrong with a text; "" is nothing. What a customer writes may
// be media alone, or empty.
func problemOfText(t dynamo.SimulatorText) string {
	customer, ours, longest := t.To, t.From, carrier.MaxText(t.Channel)
	if t.Inbound {
		customer, ours, longest = t.From, t.To, maxWritten
	}
	switch {
	case t.WorkspaceID == "" || t.MessageID == "" || len(t.MessageID) > maxMessageID:
		return "workspace_id and message_id are required"
	case !carrier.IsAddress(t.Channel, customer):
		return fmt.Sprintf("%q must be an address of channel %q", customer, t.Channel)
	case !carrier.IsE164(ours):
		return fmt.Sprintf("%q must be a phone number in E.164", ours)
	case !isURL(t.CallbackURL):
		return "callback_url must be a URL of http or https"
	case !t.Inbound && strings.TrimSpace(t.Content) == "":
		return "content is required"
	case utf8.RuneCountInString(t.Content) > longest:
		return fmt.Sprintf("content must have %d characters at most", longest)
	case t.MediaCount < 0 || t.MediaCount > 0 && !t.Inbound:
		return "media_count is for what customers write, and can't be negative"
	default:
		return ""
	}
}

func (s *Simulator) stepText(ctx context.Context, m message) error {
	t, err := s.Store.SimulatorText(ctx, m.WorkspaceID, m.CarrierID)
	if errors.Is(err, conversation.ErrNotFound) {
		return nil // its day is over
	}
	if err != nil {
		return err
	}
	steps := stepsOfText(t)
	if m.Step < 0 || m.Step >= len(steps) {
		return fmt.Errorf("text %s has no step %d", m.CarrierID, m.Step)
	}
	if err := s.playText(ctx, t, m, steps[m.Step]); err != nil {
		return fmt.Errorf("text %s, step %d: %w", m.CarrierID, m.Step, err)
	}
	if m.Step+1 == len(steps) {
		return nil
	}
	return s.next(ctx, m, steps[m.Step+1].after)
}

// playText reports a receipt, or what a customer writes, whose id derives from the text's.
func (s *Simulator) playText(ctx context.Context, t dynamo.SimulatorText, m message, st textStep) error {
	c := carrier.MessageCallback{CarrierID: t.CarrierID, At: m.Due.Time}
	switch {
	case t.Inbound:
		c.Event, c.At, c.Channel, c.Test = carrier.EventMessage, t.SentAt.Time, t.Channel, t.IsTest
		c.From, c.To, c.Content, c.MediaCount = t.From, t.To, t.Content, t.MediaCount
	case st.says != "":
		if st.once {
			said, err := s.Store.SimulatorFirst(ctx, t.WorkspaceID, conversationOf(t), t.CarrierID)
			if err != nil || !said {
				return err
			}
		}
		c.Event, c.CarrierID, c.Channel, c.Test = carrier.EventMessage, t.CarrierID+"-answer", t.Channel, t.IsTest
		c.From, c.To, c.Content = t.To, t.From, st.says
	default:
		c.Event, c.MessageID, c.Status = carrier.EventReceipt, t.MessageID, st.status
	}
	if _, err := s.post(ctx, t.CallbackURL, c); err != nil {
		return fmt.Errorf("report %s: %w", c.Event, err)
	}
	return nil
}

// conversationOf names the conversation that a text to a customer belongs to.
func conversationOf(t dynamo.SimulatorText) string {
	return fmt.Sprintf("%s#%s#%s#%t", t.From, t.To, t.Channel, t.IsTest)
}
