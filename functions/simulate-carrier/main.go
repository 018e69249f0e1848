// Command simulate-carrier is the far end of the sandbox's carrier.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"parley/shared/config"
	"parley/shared/dynamo"
	"parley/shared/simulator"
)

func main() {
	cfg, aws := config.MustLoad(), config.MustAWS()
	lambda.Start(simulator.New(simulator.Options{
		Store: dynamo.New(aws, cfg), SQS: sqs.NewFromConfig(aws), QueueURL: cfg.SimulatorQueueURL,
		Secret: config.MustReadSecret(aws, cfg.SimulatorSecret), TimeScale: cfg.TimeScale,
	}).Invoke)
}
