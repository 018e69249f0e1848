// Command retry-webhook makes the later attempts of deliveries, for the state machine.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"parley/shared/config"
	"parley/shared/webhook"
)

func main() {
	cfg, aws := config.MustLoad(), config.MustAWS()
	lambda.Start(webhook.DelivererForStage(aws, cfg).Retry)
}
