// Command publish-events follows the table's stream: it queues what happened for the webhook
// endpoints that want to know.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"parley/shared/config"
	"parley/shared/dynamo"
	"parley/shared/webhook"
)

func main() {
	cfg, aws := config.MustLoad(), config.MustAWS()
	queue := webhook.NewQueue(sqs.NewFromConfig(aws), cfg.DeliveryQueueURL)
	lambda.Start(webhook.NewPublisher(webhook.PublisherOptions{
		Store: dynamo.New(aws, cfg), Queue: queue, BaseURL: cfg.BaseURL, TimeScale: cfg.TimeScale,
	}).Publish)
}
