package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"parley/shared/conversation"
)

// RetryMachine is the state machine that makes the attempts 2 to 6 of a round.
type RetryMachine struct {
	client *sfn.Client
	arn    string
}

// NewRetryMachine is the state machine of an ARN.
func NewRetryMachine(client *sfn.Client, arn string) RetryMachine { return RetryMachine{client, arn} }

// RetryInput is what an execution begins with.
type RetryInput struct {
	WorkspaceID conversation.WorkspaceID `json:"workspace_id"`
	DeliveryID  conversation.DeliveryID  `json:"delivery_id"`
	Round       int                      `json:"round"`
}

// RetryTask asks for one attempt of an execution: its input and the attempt's number, 2–6.
type RetryTask struct {
	RetryInput
	Attempt int `json:"attempt"`
}

// RetryResult tells the execution whether to end: the delivery has succeeded, was its
// sixth attempt, or is over for another reason.
type RetryResult struct {
	Done bool `json:"done"`
}

// start begins the execution of a round, named so that it begins once: after the delivery,
// the round, and when the delivery was written to the log. The last tells it from one that
// the log has forgotten, whose execution Step Functions still knows.
func (m RetryMachine) start(ctx context.Context, in RetryInput, logged conversation.Time) error {
	input, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("start the retries of delivery %s: %w", in.DeliveryID, err)
	}
	_, err = m.client.StartExecution(ctx, &sfn.StartExecutionInput{
		StateMachineArn: &m.arn, Input: aws.String(string(input)),
		Name: aws.String(fmt.Sprintf("%s-%d-%d", in.DeliveryID, in.Round, logged.Unix())),
	})
	if exists := new(types.ExecutionAlreadyExists); errors.As(err, &exists) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("start the retries of delivery %s: %w", in.DeliveryID, err)
	}
	return nil
}
