// Command get-message serves GET /v1/messages/{message_id}.
package main

import (
	"parley/shared/config"
	"parley/shared/httpapi"
)

func main() { httpapi.Start(config.MustLoad(), httpapi.GetMessage) }
