// Command list-calls serves GET /v1/calls.
package main

import (
	"parley/shared/config"
	"parley/shared/httpapi"
)

func main() { httpapi.Start(config.MustLoad(), httpapi.ListCalls) }
