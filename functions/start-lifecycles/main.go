// Command start-lifecycles follows the table's stream: it starts the state machine of each new
// call and text conversation, queues the turn of each new message, and answers the task that
// waits for a change.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"parley/shared/config"
	"parley/shared/lifecycle"
)

func main() {
	cfg, aws := config.MustLoad(), config.MustAWS()
	lambda.Start(lifecycle.NewParts(aws, cfg, nil).Follow(
		lifecycle.NewMachine(aws, cfg.CallLifecycle),
		lifecycle.NewMachine(aws, cfg.ThreadLifecycle),
		lifecycle.TurnQueues{Client: sqs.NewFromConfig(aws), Turns: cfg.TurnQueueURL, Marks: cfg.MarkQueueURL},
	))
}
