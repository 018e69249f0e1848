// Command list-assistants serves GET /v1/assistants.
package main

import (
	"parley/shared/config"
	"parley/shared/httpapi"
)

func main() { httpapi.Start(config.MustLoad(), httpapi.ListAssistants) }
