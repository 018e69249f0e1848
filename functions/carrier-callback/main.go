// Command carrier-callback serves the callbacks of carriers: what becomes of calls and texts,
// and what customers write.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"parley/shared/config"
	"parley/shared/httpapi"
	"parley/shared/lifecycle"
)

func main() {
	cfg, aws := config.MustLoad(), config.MustAWS()
	calls := lifecycle.New(aws, cfg, config.MustReadSecret(aws, cfg.SimulatorSecret))
	lambda.Start(httpapi.Lambda(lifecycle.Callbacks(calls, cfg.BaseURL)))
}
