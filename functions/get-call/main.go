// Command get-call serves GET /v1/calls/{call_id}.
package main

import (
	"parley/shared/config"
	"parley/shared/httpapi"
)

func main() { httpapi.Start(config.MustLoad(), httpapi.GetCall) }
