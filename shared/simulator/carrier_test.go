package simulator_test

import (
	"net/http"
	"testing"
	"time"

	"parley/shared/carrier"
	"parley/shared/carrier/carriertest"
	"parley/shared/conversation"
)

func TestCarrier(t *testing.T) {
	carriertest.Test(t, func(t *testing.T) carriertest.Harness {
		w := newWorld(t, 1)
		w.sim.Hang = time.Minute
		return carriertest.Harness{
			Carrier: w.us, WorkspaceID: conversation.WorkspaceID(conversation.NewID()),
			From: ours, Answers: customer + "99", Busy: customer + "01", Refused: customer + "04", CallbackURL: w.url,
			Delivers: customer + "01", RefusesTexts: customer + "04", Hangs: customer + "03", TextURL: w.textURL,
			Now: w.clock, Pass: w.pass,
			Tell: func(told carrier.Instruction) { w.told = told },
			Next: w.next,
			Sign: func(url string, body []byte) http.Header {
				return http.Header{carrier.SignatureHeader: {carrier.Sign(secret, w.clock(), url, body)}}
			},
		}
	})
}

// next is the next callback.
func (w *world) next() (carriertest.Delivery, bool) {
	for len(w.deliveries) == 0 {
		if !w.step() {
			return carriertest.Delivery{}, false
		}
	}
	first := w.deliveries[0]
	w.deliveries = w.deliveries[1:]
	return first, true
}
