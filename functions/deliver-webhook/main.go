// Command deliver-webhook makes the first attempts of deliveries, for the queue.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"parley/shared/config"
	"parley/shared/webhook"
)

func main() {
	cfg, aws := config.MustLoad(), config.MustAWS()
	lambda.Start(webhook.DelivererForStage(aws, cfg).DeliverBatch)
}
