// Command advance-call does the tasks of the state machine of calls.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"parley/shared/config"
	"parley/shared/lifecycle"
)

func main() {
	cfg, aws := config.MustLoad(), config.MustAWS()
	lambda.Start(lifecycle.New(aws, cfg, nil).Run(lifecycle.NewMachine(aws, cfg.CallLifecycle)))
}
