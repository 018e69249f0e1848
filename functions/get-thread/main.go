// Command get-thread serves GET /v1/threads/{thread_id}.
package main

import (
	"parley/shared/config"
	"parley/shared/httpapi"
)

func main() { httpapi.Start(config.MustLoad(), httpapi.GetThread) }
