package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// Task is the input of the state machine's tasks. Those that wait have a Token.
type Task struct {
	WorkspaceID conversation.WorkspaceID `json:"workspace_id"`
	CallID      conversation.CallID      `json:"call_id"`
	AwaitPickup bool                     `json:"await_pickup"` // else the hang-up is awaited
	Token       string                   `json:"token"`
	EnteredAt   conversation.Time        `json:"entered_at"`  // when the state was entered
	RetryCount  int                      `json:"retry_count"` // of this state
}

// Machine is a state machine: that of calls, or of text conversations.
type Machine struct {
	Client *sfn.Client
	ARN    string
}

// NewMachine is the state machine of an ARN.
func NewMachine(aws aws.Config, arn string) Machine { return Machine{sfn.NewFromConfig(aws), arn} }

// Run does a task. A task with a token ends when the token is answered: by start-lifecycles
// when the stream shows the change, or here if the change has already happened. So no
// order of change and token loses the waking.
func (c *Calls) Run(m Machine) func(context.Context, Task) error {
	return func(ctx context.Context, t Task) error { return c.run(ctx, m, t) }
}

func (c *Calls) run(ctx context.Context, m Machine, t Task) error {
	if t.Token == "" {
		return c.Advance(ctx, t.WorkspaceID, t.CallID)
	}
	attempt := fmt.Sprintf("%s#%04d", t.EnteredAt, t.RetryCount)
	call, err := c.Store.StoreToken(ctx, t.WorkspaceID, t.CallID, t.Token, attempt)
	if errors.Is(err, dynamo.ErrStale) {
		return nil // a later attempt waits
	}
	if err != nil || !moved(call, t.AwaitPickup) {
		return err
	}
	return m.wake(ctx, t.Token)
}

// moved tells whether what a task waits for has happened.
func moved(call conversation.CallRecord, awaitPickup bool) bool {
	if awaitPickup && call.Status != conversation.CallQueued {
		return true
	}
	return !call.Active() || !call.HungUpAt.IsZero()
}

// start begins an execution, named after what it is for so that it begins once.
func (m Machine) start(ctx context.Context, name string, input any) error {
	data, err := json.Marshal(input)
	if err != nil {
		return fmt.Errorf("start the lifecycle of %s: %w", name, err)
	}
	_, err = m.Client.StartExecution(ctx, &sfn.StartExecutionInput{
		StateMachineArn: &m.ARN, Name: &name, Input: aws.String(string(data)),
	})
	if exists := new(types.ExecutionAlreadyExists); errors.As(err, &exists) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("start the lifecycle of %s: %w", name, err)
	}
	return nil
}

// wake answers a task's token. A task that is over needs no answer.
func (m Machine) wake(ctx context.Context, token string) error {
	_, err := m.Client.SendTaskSuccess(ctx, &sfn.SendTaskSuccessInput{TaskToken: &token, Output: aws.String("{}")})
	gone, late := new(types.TaskDoesNotExist), new(types.TaskTimedOut)
	if errors.As(err, &gone) || errors.As(err, &late) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("wake a task: %w", err)
	}
	return nil
}
