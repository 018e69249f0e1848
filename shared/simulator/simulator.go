package simulator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// Options of a Simulator. TimeScale, HTTP, Hang and Now have defaults.
type Options struct {
	Store    *dynamo.Store
	SQS      *sqs.Client
	QueueURL string // of the queue that leads to Step
	Secret   []byte // signs the callbacks
	// TimeScale is how many times as fast as ours the simulator's clock runs: a call that
	// lasts a minute takes a second at 60. 1 by default.
	TimeScale int
	HTTP      *http.Client     // posts the callbacks
	Hang      time.Duration    // how long a request hangs that gets no answer in time
	Now       func() time.Time // time.Now by default
}

// Simulator is the carrier and its customers. It keeps nothing but the calls
// and texts in its store: any number of functions may play one, each message any number of
// times.
type Simulator struct{ Options }

// callbackTimeout is longer than the function lives that answers callbacks.
const callbackTimeout = 20 * time.Second

// New makes a Simulator.
func New(o Options) *Simulator {
	o.TimeScale = max(1, o.TimeScale)
	if o.HTTP == nil {
		o.HTTP = &http.Client{
			Timeout:       callbackTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	if o.Hang == 0 {
		o.Hang = carrier.PlaceTimeout + time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Simulator{o}
}

// Handle does what a carrier.Simulator asks. An error is no answer: the caller can't know
// what happened.
func (s *Simulator) Handle(ctx context.Context, request carrier.SimulatorRequest) (carrier.SimulatorAnswer, error) {
	if request.CarrierID == "" {
		request.CarrierID = carrierID(request.CallID)
	}
	answer, err := s.handle(ctx, request)
	if errors.Is(err, conversation.ErrNotFound) {
		return failure(http.StatusNotFound, "there is no such call"), nil
	}
	return answer, err
}

func (s *Simulator) handle(ctx context.Context, request carrier.SimulatorRequest) (carrier.SimulatorAnswer, error) {
	switch request.Op {
	case carrier.OpPlace, carrier.OpRing:
		return s.place(ctx, request)
	case carrier.OpSend, carrier.OpWrite:
		return s.text(ctx, request)
	case carrier.OpEnd:
		return s.end(ctx, request)
	case carrier.OpFetch:
		return s.fetch(ctx, request)
	case carrier.OpRecording:
		return s.recording(ctx, request)
	default:
		return failure(http.StatusBadRequest, fmt.Sprintf("there is no operation %q", request.Op)), nil
	}
}

// carrierID derives from ours, so that a call is found by ours alone.
func carrierID(callID conversation.CallID) string { return "sim-" + string(callID) }

func failure(status int, problem string) carrier.SimulatorAnswer {
	return carrier.SimulatorAnswer{Status: status, Error: problem}
}

// place accepts a call, and starts its first step. Asked twice for the same call, it
// counts that and lets one phone ring.
func (s *Simulator) place(ctx context.Context, request carrier.SimulatorRequest) (carrier.SimulatorAnswer, error) {
	if problem := problemOf(request.Placement); problem != "" {
		return failure(http.StatusBadRequest, problem), nil
	}
	call := dynamo.SimulatorCall{
		CarrierID: carrierID(request.CallID), WorkspaceID: request.WorkspaceID, CallID: request.CallID,
		Inbound: request.Op == carrier.OpRing, IsTest: request.Test,
		From: request.From, To: request.To, CallbackURL: request.CallbackURL, MaxDuration: request.MaxDuration,
		PlacedAt: conversation.At(s.Now()), Placements: 1, Phase: string(carrier.Dialling),
	}
	scenario := scenarioOf(call)
	if scenario.refuses {
		return failure(http.StatusForbidden, "calls to this number are refused"), nil
	}
	isNew, err := s.Store.InsertSimulatorCall(ctx, call)
	if err == nil && !isNew {
		call, err = s.change(ctx, call, func(c *dynamo.SimulatorCall) bool { c.Placements++; return true })
	}
	if err != nil {
		return carrier.SimulatorAnswer{}, err
	}
	if err := s.begin(ctx, call, dialPart, call.PlacedAt.Time, ""); err != nil {
		return carrier.SimulatorAnswer{}, err
	}
	if scenario.hangs {
		s.hang(ctx)
	}
	return carrier.SimulatorAnswer{Status: http.StatusOK, CarrierID: call.CarrierID}, nil
}

// hang waits until nobody waits for the answer any more.
func (s *Simulator) hang(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(s.Hang):
	}
}

// problemOf says what is wrong with a placement; "" is nothing.
func problemOf(p carrier.Placement) string {
	if p.WorkspaceID == "" || p.CallID == "" {
		return "workspace_id and call_id are required"
	}
	for _, number := range []string{p.From, p.To} {
		if !carrier.IsE164(number) {
			return fmt.Sprintf("%q must be a phone number in E.164", number)
		}
	}
	if !isURL(p.CallbackURL) {
		return "callback_url must be a URL of http or https"
	}
	if p.MaxDuration <= 0 {
		return "max_duration must be positive"
	}
	return ""
}

func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// end hangs up. The message goes first, as it suffices: it ends the call too, and reports
// the end. The call is over here and now, so that a caller who asks next is told so.
func (s *Simulator) end(ctx context.Context, request carrier.SimulatorRequest) (carrier.SimulatorAnswer, error) {
	call, err := s.call(ctx, request)
	if err != nil {
		return carrier.SimulatorAnswer{}, err
	}
	if call.HungUpAt.IsZero() {
		now, reason := s.Now(), cmp.Or(request.Reason, conversation.EndCanceled)
		if err := s.begin(ctx, call, afterPart, now, reason); err != nil {
			return carrier.SimulatorAnswer{}, err
		}
		if _, err := s.change(ctx, call, s.ending(reason, now)); err != nil {
			return carrier.SimulatorAnswer{}, err
		}
	}
	return carrier.SimulatorAnswer{Status: http.StatusOK}, nil
}

func (s *Simulator) fetch(ctx context.Context, request carrier.SimulatorRequest) (carrier.SimulatorAnswer, error) {
	call, err := s.call(ctx, request)
	if err != nil {
		return carrier.SimulatorAnswer{}, err
	}
	state := s.state(call)
	return carrier.SimulatorAnswer{Status: http.StatusOK, State: &state}, nil
}

// recording answers with the whole audio. Seven turns of 30 s are 4.6 MB in base64, and
// Lambda answers with 6 MB at most.
func (s *Simulator) recording(ctx context.Context, request carrier.SimulatorRequest) (carrier.SimulatorAnswer, error) {
	call, err := s.call(ctx, request)
	if err != nil {
		return carrier.SimulatorAnswer{}, err
	}
	if status := s.state(call).Recording; status != conversation.RecordingComplete {
		return failure(http.StatusConflict, fmt.Sprintf("the recording is %q", status)), nil
	}
	return carrier.SimulatorAnswer{Status: http.StatusOK, Audio: Audio(call.Transcript)}, nil
}

// call reads a call that the carrier still knows.
func (s *Simulator) call(ctx context.Context, request carrier.SimulatorRequest) (dynamo.SimulatorCall, error) {
	call, err := s.Store.SimulatorCall(ctx, request.WorkspaceID, request.CarrierID)
	if err == nil && call.Forgotten {
		return dynamo.SimulatorCall{}, conversation.ErrNotFound
	}
	return call, err
}

func (s *Simulator) change(ctx context.Context, call dynamo.SimulatorCall, change func(*dynamo.SimulatorCall) bool) (dynamo.SimulatorCall, error) {
	return s.Store.ChangeSimulatorCall(ctx, call.WorkspaceID, call.CarrierID, change)
}
