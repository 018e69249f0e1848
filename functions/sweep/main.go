// Command sweep resolves what no state machine does any more.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"parley/shared/config"
	"parley/shared/lifecycle"
)

func main() {
	cfg, aws := config.MustLoad(), config.MustAWS()
	lambda.Start(lifecycle.NewParts(aws, cfg, nil).Sweep)
}
