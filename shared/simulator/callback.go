package simulator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// maxAnswer is more than any function can answer with.
const maxAnswer = 8 << 20

// report posts a callback about a call and returns the body of its answer.
func (s *Simulator) report(ctx context.Context, call dynamo.SimulatorCall, event carrier.Event, at conversation.Time) ([]byte, error) {
	c := carrier.Callback{Event: event, CarrierID: call.CarrierID, At: at.Time}
	switch event {
	case carrier.EventIncoming:
		c.From, c.To, c.Test = call.From, call.To, call.IsTest
	case carrier.EventHungUp, carrier.EventFailed:
		c.Reason = call.Reason
	}
	answer, err := s.post(ctx, call.CallbackURL, c)
	if err != nil {
		return nil, fmt.Errorf("report %s: %w", event, err)
	}
	return answer, nil
}

// post signs a callback, sends it, and returns the body of its answer, which must be a 2xx.
func (s *Simulator) post(ctx context.Context, url string, callback any) ([]byte, error) {
	body, err := json.Marshal(callback)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(carrier.SignatureHeader, carrier.Sign(s.Secret, s.Now(), url, body))
	response, err := s.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, fmt.Errorf("it was answered with %s", response.Status)
	}
	return answer, nil
}
