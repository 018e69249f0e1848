// Command settings serves Settings → Developers, under /settings.
package main

import (
	"parley/shared/config"
	"parley/shared/httpapi"
	"parley/shared/lifecycle"
	"parley/shared/settings"
)

func main() {
	cfg := config.MustLoad()
	all := settings.New(config.MustAWS(), cfg, lifecycle.Scale(cfg.TimeScale).Longest)
	httpapi.StartAll(cfg, all.Routes())
}
