// Command get-open-api serves GET /open-api, and answers what no route matches.
package main

import (
	"parley/shared/config"
	"parley/shared/httpapi"
	"parley/shared/settings"
)

func main() { httpapi.StartDefault(config.MustLoad(), append(httpapi.Routes(), settings.Routes()...)) }
