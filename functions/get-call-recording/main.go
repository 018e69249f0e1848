// Command get-call-recording serves GET /v1/calls/{call_id}/recording.
package main

import (
	"parley/shared/config"
	"parley/shared/httpapi"
)

func main() { httpapi.Start(config.MustLoad(), httpapi.GetCallRecording) }
