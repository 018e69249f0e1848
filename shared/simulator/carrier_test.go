package simulator_test

import (
	"net/http"
	"testing"

	"parley/shared/carrier"
	"parley/shared/carrier/carriertest"
	"parley/shared/conversation"
)

func TestCarrier(t *testing.T) {
	carriertest.Test(t, func(t *testing.T) carriertest.Harness {
		w := newWorld(t, 1)
		return carriertest.Harness{
			Carrier: w.us, WorkspaceID: conversation.WorkspaceID(conversation.NewID()),
			From: ours, Answers: customer + "99", Busy: customer + "01", Refused: customer + "04", CallbackURL: w.url,
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
