package carrier

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"parley/shared/conversation"
)

// SimulatorName is what a workspace's definition calls the simulator.
const SimulatorName = "simulator"

// PlaceTimeout is how long a carrier may take to accept a call, or a text.
const PlaceTimeout = 8 * time.Second

// Simulator is the client of the sandbox's carrier: the function simulate-carrier, which
// it invokes and waits for.
type Simulator struct {
	PlaceTimeout time.Duration // of PlaceCall, Ring, SendMessage and Write

	function string
	secret   []byte
	// lambda is made when it is first needed: who reads callbacks never does.
	lambda func() *lambda.Client
}

var _ Carrier = (*Simulator)(nil)

// NewSimulator makes a client of the function (a name or an ARN), whose callbacks are
// signed with the secret.
func NewSimulator(cfg aws.Config, function string, secret []byte) *Simulator {
	return &Simulator{
		PlaceTimeout: PlaceTimeout,
		function:     function,
		secret:       secret,
		lambda:       sync.OnceValue(func() *lambda.Client { return lambda.NewFromConfig(cfg) }),
	}
}

// Operation is what the simulator is asked to do.
type Operation string

const (
	OpPlace     Operation = "place"
	OpRing      Operation = "ring"
	OpEnd       Operation = "end"
	OpFetch     Operation = "fetch"
	OpRecording Operation = "recording"
	OpSend      Operation = "send"
	OpWrite     Operation = "write"
)

// SimulatorRequest is the payload of an invocation: place and ring have a whole Placement,
// send and write a Text, the others name a call.
type SimulatorRequest struct {
	Op Operation `json:"op"`
	Placement
	Reason     conversation.EndReason `json:"reason,omitzero"`      // of end
	Test       bool                   `json:"test,omitzero"`        // of ring
	Text       *Text                  `json:"text,omitzero"`        // of write: from the customer to the workspace
	MediaCount int                    `json:"media_count,omitzero"` // of write
}

// SimulatorAnswer is the function's answer. Its status means what it means in HTTP.
type SimulatorAnswer struct {
	Status    int        `json:"status"`
	Error     string     `json:"error,omitzero"`
	CarrierID string     `json:"carrier_id,omitzero"` // of place, ring, send and write
	State     *CallState `json:"state,omitzero"`      // of fetch
	Audio     []byte     `json:"audio,omitzero"`      // of recording
}

// PlaceCall asks the function once, without the SDK's retries.
func (s *Simulator) PlaceCall(ctx context.Context, p Placement) (string, error) {
	carrierID, err := s.begin(ctx, SimulatorRequest{Op: OpPlace, Placement: p})
	if err != nil {
		return "", fmt.Errorf("place call %s: %w", p.CallID, err)
	}
	return carrierID, nil
}

// Ring lets the customer p.From ring the workspace's number p.To, and returns the
// simulator's id of the call. p.CallID is the one that the call shall have.
func (s *Simulator) Ring(ctx context.Context, p Placement, test bool) (string, error) {
	carrierID, err := s.begin(ctx, SimulatorRequest{Op: OpRing, Placement: p, Test: test})
	if err != nil {
		return "", fmt.Errorf("ring %s: %w", p.To, err)
	}
	return carrierID, nil
}

// begin asks for a new call or text, once.
func (s *Simulator) begin(ctx context.Context, request SimulatorRequest) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.PlaceTimeout)
	defer cancel()
	answer, err := s.invoke(ctx, request, func(o *lambda.Options) { o.Retryer = aws.NopRetryer{} })
	switch {
	case err != nil && neverRan(err):
		return "", fmt.Errorf("%w: %w", ErrRefused, err)
	case err != nil:
		return "", err
	case answer.Status >= 400 && answer.Status < 500:
		return "", fmt.Errorf("%w: %w", ErrRefused, answer.failure())
	case answer.Status != http.StatusOK || answer.CarrierID == "":
		return "", answer.failure()
	default:
		return answer.CarrierID, nil
	}
}

// EndCall makes the call over, if it was answered, and failed if not.
func (s *Simulator) EndCall(ctx context.Context, ref Ref, reason conversation.EndReason) error {
	_, err := s.ask(ctx, SimulatorRequest{Op: OpEnd, Placement: Placement{Ref: ref}, Reason: reason})
	if err != nil && !errors.Is(err, ErrUnknownCall) {
		return fmt.Errorf("end call %s: %w", ref.name(), err)
	}
	return nil
}

// FetchCall finds a call by our call_id as well.
func (s *Simulator) FetchCall(ctx context.Context, ref Ref) (CallState, error) {
	answer, err := s.ask(ctx, SimulatorRequest{Op: OpFetch, Placement: Placement{Ref: ref}})
	if err != nil {
		return CallState{}, fmt.Errorf("fetch call %s: %w", ref.name(), err)
	}
	if answer.State == nil {
		return CallState{}, fmt.Errorf("fetch call %s: the answer has no state", ref.name())
	}
	return *answer.State, nil
}

// FetchRecording reads the audio in one answer: the simulator's calls are short enough.
func (s *Simulator) FetchRecording(ctx context.Context, ref Ref) ([]byte, error) {
	answer, err := s.ask(ctx, SimulatorRequest{Op: OpRecording, Placement: Placement{Ref: ref}})
	if err != nil {
		return nil, fmt.Errorf("fetch recording of call %s: %w", ref.name(), err)
	}
	if len(answer.Audio) == 0 {
		return nil, fmt.Errorf("fetch recording of call %s: the answer has no audio", ref.name())
	}
	return answer.Audio, nil
}

// ParseCallback verifies the callback's signature before it looks at anything else.
func (s *Simulator) ParseCallback(header http.Header, url string, body []byte, now time.Time) (Callback, error) {
	if err := verify(s.secret, header, url, body, now); err != nil {
		return Callback{}, err
	}
	return decode[Callback](body)
}

// Answer is the instruction as JSON.
func (s *Simulator) Answer(i Instruction) ([]byte, error) { return json.Marshal(i) }

// SendMessage asks the function once, without the SDK's retries.
func (s *Simulator) SendMessage(ctx context.Context, t Text) (string, error) {
	carrierID, err := s.begin(ctx, SimulatorRequest{Op: OpSend, Text: &t})
	if err != nil {
		return "", fmt.Errorf("send message %s: %w", t.MessageID, err)
	}
	return carrierID, nil
}

// Write lets the customer t.From write to the workspace's number t.To, and returns the
// simulator's id of the text, which it then reports to t.CallbackURL. t.MessageID makes it
// one text however often it is asked for; without it each is a new one.
func (s *Simulator) Write(ctx context.Context, t Text, mediaCount int, test bool) (string, error) {
	t.MessageID, t.Test = cmp.Or(t.MessageID, conversation.MessageID(conversation.NewID())), test
	carrierID, err := s.begin(ctx, SimulatorRequest{Op: OpWrite, Text: &t, MediaCount: mediaCount})
	if err != nil {
		return "", fmt.Errorf("write to %s: %w", t.To, err)
	}
	return carrierID, nil
}

// ParseMessage verifies the callback's signature before it looks at anything else.
func (s *Simulator) ParseMessage(header http.Header, url string, body []byte, now time.Time) (MessageCallback, error) {
	if err := verify(s.secret, header, url, body, now); err != nil {
		return MessageCallback{}, err
	}
	return decode[MessageCallback](body)
}

// Keyword goes by the words of keyword.go.
func (s *Simulator) Keyword(text string) Keyword { return keywordOf(text) }

// ask invokes the function about a call that it should know.
func (s *Simulator) ask(ctx context.Context, request SimulatorRequest) (SimulatorAnswer, error) {
	answer, err := s.invoke(ctx, request)
	switch {
	case err != nil:
		return SimulatorAnswer{}, err
	case answer.Status == http.StatusNotFound:
		return SimulatorAnswer{}, ErrUnknownCall
	case answer.Status != http.StatusOK:
		return SimulatorAnswer{}, answer.failure()
	default:
		return answer, nil
	}
}

func (s *Simulator) invoke(ctx context.Context, request SimulatorRequest, options ...func(*lambda.Options)) (SimulatorAnswer, error) {
	payload, err := json.Marshal(request)
	if err != nil {
		return SimulatorAnswer{}, err
	}
	out, err := s.lambda().Invoke(ctx, &lambda.InvokeInput{FunctionName: &s.function, Payload: payload}, options...)
	if err != nil {
		return SimulatorAnswer{}, err
	}
	if out.FunctionError != nil {
		return SimulatorAnswer{}, fmt.Errorf("the simulator failed (%s): %.500s", *out.FunctionError, out.Payload)
	}
	var answer SimulatorAnswer
	if err := json.Unmarshal(out.Payload, &answer); err != nil {
		return SimulatorAnswer{}, fmt.Errorf("read the simulator's answer: %w", err)
	}
	return answer, nil
}

func (a SimulatorAnswer) failure() error {
	return fmt.Errorf("the simulator answered %d %s", a.Status, a.Error)
}

// neverRan tells whether an invocation provably didn't reach the function: nobody took the
// connection, or Lambda turned the request down. Anything else may have taken effect.
func neverRan(err error) bool {
	dial := new(net.OpError)
	if errors.As(err, &dial) && dial.Op == "dial" {
		return true
	}
	response := new(awshttp.ResponseError)
	return errors.As(err, &response) && slices.Contains(turnedDown, response.HTTPStatusCode())
}

// turnedDown are Lambda's answers to requests that it doesn't pass on: not allowed, no such
// function, throttled.
var turnedDown = []int{http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests}

// name is the carrier's id of the call, or ours.
func (r Ref) name() string { return cmp.Or(r.CarrierID, string(r.CallID)) }
