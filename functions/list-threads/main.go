// Command list-threads serves GET /v1/threads.
package main

import (
	"parley/shared/config"
	"parley/shared/httpapi"
)

func main() { httpapi.Start(config.MustLoad(), httpapi.ListThreads) }
