// Command start-lifecycles follows the table's stream: it starts the state machine of each new
// call, and answers the task that waits for a call's change.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"parley/shared/config"
	"parley/shared/lifecycle"
)

func main() {
	cfg, aws := config.MustLoad(), config.MustAWS()
	lambda.Start(lifecycle.New(aws, cfg, nil).Follow(lifecycle.NewMachine(aws, cfg)))
}
