// Command reply-to-thread makes the assistants' turns in text conversations.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"parley/shared/config"
	"parley/shared/lifecycle"
)

func main() {
	cfg, aws := config.MustLoad(), config.MustAWS()
	threads := lifecycle.Threads{Parts: lifecycle.NewParts(aws, cfg, nil)}
	lambda.Start(threads.Turns)
}
