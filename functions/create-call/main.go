// Command create-call serves POST /v1/calls.
package main

import (
	"parley/shared/carrier"
	"parley/shared/carrier/phone"
	"parley/shared/config"
	"parley/shared/httpapi"
	"parley/shared/lifecycle"
)

func main() {
	cfg := config.MustLoad()
	scale := lifecycle.Scale(cfg.TimeScale)
	httpapi.StartCalling(cfg, httpapi.CreateCall, httpapi.Calling{
		Carriers: carrier.ForStage(config.MustAWS(), cfg, nil),
		Country:  phone.Country, Pickup: scale.Pickup(), Longest: scale.Longest,
	})
}
