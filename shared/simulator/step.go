package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// message is one step of a call, or of a text, on its way through SQS.
type message struct {
	WorkspaceID conversation.WorkspaceID `json:"workspace_id"`
	CarrierID   string                   `json:"carrier_id"`
	Part        part                     `json:"part"`
	Step        int                      `json:"step"`
	Reason      conversation.EndReason   `json:"reason,omitzero"` // of the end, in the part after it
	Due         conversation.Time        `json:"due"`
}

// maxDelay is SQS's.
const maxDelay = 15 * time.Minute

// begin sends the first step of a part, which begins at a moment.
func (s *Simulator) begin(ctx context.Context, call dynamo.SimulatorCall, p part, at time.Time, reason conversation.EndReason) error {
	return s.send(ctx, message{
		WorkspaceID: call.WorkspaceID, CarrierID: call.CarrierID, Part: p, Reason: reason,
		Due: conversation.At(at.Add(s.scaled(stepsOf(call, p)[0].after))),
	})
}

// send queues a step until it is due. SQS counts in whole seconds, so it may come up to one
// late; what is due later than SQS can wait comes early, and is sent again.
func (s *Simulator) send(ctx context.Context, m message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	delay := min(max(0, m.Due.Sub(s.Now())), maxDelay)
	_, err = s.SQS.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &s.QueueURL, MessageBody: aws.String(string(body)),
		DelaySeconds: int32((delay + time.Second - 1) / time.Second),
	})
	if err != nil {
		return fmt.Errorf("queue a step of %s: %w", m.CarrierID, err)
	}
	return nil
}

// Step plays the step that a message of SQS holds, and sends the next. A message may come
// any number of times: what it did already it leaves as it is. On an error it should come
// again.
func (s *Simulator) Step(ctx context.Context, body string) error {
	var m message
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		return fmt.Errorf("read a step: %w", err)
	}
	if s.Now().Before(m.Due.Time) {
		return s.send(ctx, m)
	}
	if m.Part == textPart {
		return s.stepText(ctx, m)
	}
	return s.stepCall(ctx, m)
}

func (s *Simulator) stepCall(ctx context.Context, m message) error {
	call, err := s.Store.SimulatorCall(ctx, m.WorkspaceID, m.CarrierID)
	if errors.Is(err, conversation.ErrNotFound) {
		return nil // its day is over
	}
	if err != nil {
		return err
	}
	steps := stepsOf(call, m.Part)
	if m.Step < 0 || m.Step >= len(steps) {
		return fmt.Errorf("call %s has no step %s %d", m.CarrierID, m.Part, m.Step)
	}
	if err := s.play(ctx, call, m, steps[m.Step]); err != nil {
		return fmt.Errorf("call %s, step %s %d: %w", m.CarrierID, m.Part, m.Step, err)
	}
	if m.Step+1 == len(steps) {
		return nil
	}
	return s.next(ctx, m, steps[m.Step+1].after)
}

// next sends the step that follows one.
func (s *Simulator) next(ctx context.Context, m message, after time.Duration) error {
	m.Step++
	m.Due = conversation.At(s.Now().Add(s.scaled(after)))
	return s.send(ctx, m)
}

func (s *Simulator) play(ctx context.Context, call dynamo.SimulatorCall, m message, st step) error {
	switch st.do {
	case progress:
		if m.Part == dialPart && call.Phase != string(carrier.Dialling) {
			return nil
		}
		_, err := s.report(ctx, call, carrier.EventProgress, m.Due)
		return err
	case answer:
		return s.answer(ctx, call, m.Due)
	case useTool:
		return s.useTool(ctx, call, m)
	case askAgain:
		_, err := s.report(ctx, call, carrier.EventAnswered, m.Due)
		return err
	default:
		return s.finish(ctx, call, cmp.Or(st.reason, m.Reason))
	}
}

// finish ends a call and reports that. One that has ended for another reason was reported
// by who ended it.
func (s *Simulator) finish(ctx context.Context, call dynamo.SimulatorCall, reason conversation.EndReason) error {
	call, err := s.change(ctx, call, s.ending(reason, s.Now()))
	if err != nil || call.Reason != reason {
		return err
	}
	event := carrier.EventHungUp
	if call.Phase == string(carrier.Failed) {
		event = carrier.EventFailed
	}
	_, err = s.report(ctx, call, event, call.HungUpAt)
	return err
}
