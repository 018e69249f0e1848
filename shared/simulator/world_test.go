package simulator_test

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"parley/shared/carrier"
	"parley/shared/carrier/carriertest"
	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/dynamo/dynamotest"
	"parley/shared/emulator"
	"parley/shared/simulator"
)

var secret = []byte("a secret of the tests")

// world is a stage with a simulator: its queue and our callback endpoint, in which time
// passes from one message to the next. Lambda, SQS and the endpoint are HTTP servers; the
// store is the emulator's.
type world struct {
	t     *testing.T
	store *dynamo.Store
	sim   *simulator.Simulator
	us    *carrier.Simulator

	mu         sync.Mutex
	now        time.Time
	queue      []queued
	delays     []int                  // of all messages, in seconds
	deliveries []carriertest.Delivery // callbacks that nobody has looked at
	heard      []carrier.Callback     // all callbacks that were answered with 200
	told       carrier.Instruction    // the answer to callbacks
	endpoint   func() (status int)    // how our endpoint answers; 0: it hangs
	queueFails func() bool
	url        string                    // of our endpoint for calls
	textURL    string                    // and for texts
	texts      []carrier.MessageCallback // all callbacks about texts that were answered with 200
}

type queued struct {
	due  time.Time
	body string
}

func newWorld(t *testing.T, timeScale int) *world {
	t.Helper()
	w := &world{
		t: t, now: time.Now().UTC().Truncate(time.Second), told: carrier.Instruction{Script: carriertest.Script},
		endpoint: func() int { return http.StatusOK }, queueFails: func() bool { return false },
	}
	cfg := emulator.Config(t)
	w.store = dynamo.New(cfg, dynamotest.Stage(t, cfg)).WithClock(w.clock)
	w.textURL = w.serve(w.callback) + "/carriers/simulator/w"
	w.url = w.textURL + "/c"

	cfg.BaseEndpoint = aws.String(w.serve(w.sqs))
	w.sim = simulator.New(simulator.Options{
		Store: w.store, SQS: sqs.NewFromConfig(cfg), QueueURL: "https://sqs.example.com/simulator", Secret: secret,
		TimeScale: timeScale, Hang: 100 * time.Millisecond, Now: w.clock,
	})
	cfg.BaseEndpoint = aws.String(w.serve(w.lambda))
	w.us = carrier.NewSimulator(cfg, "simulate-carrier", secret)
	return w
}

func (w *world) serve(handle http.HandlerFunc) string {
	server := httptest.NewServer(handle)
	w.t.Cleanup(server.Close)
	return server.URL
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// sqs speaks SQS's JSON protocol, as far as SendMessage needs.
func (w *world) sqs(out http.ResponseWriter, r *http.Request) {
	var message struct {
		QueueUrl     string
		MessageBody  string
		DelaySeconds int
	}
	if err := json.NewDecoder(r.Body).Decode(&message); err != nil || message.QueueUrl != "https://sqs.example.com/simulator" {
		w.t.Errorf("%s: %+v, %v; want a message to the queue", r.Header.Get("X-Amz-Target"), message, err)
	}
	if w.queueFails() {
		out.WriteHeader(http.StatusForbidden)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delays = append(w.delays, message.DelaySeconds)
	w.queue = append(w.queue, queued{w.now.Add(time.Duration(message.DelaySeconds) * time.Second), message.MessageBody})
	sum := md5.Sum([]byte(message.MessageBody))
	out.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_ = json.NewEncoder(out).Encode(map[string]string{"MessageId": "m", "MD5OfMessageBody": hex.EncodeToString(sum[:])})
}

// lambda invokes the simulator as the API of Lambda does.
func (w *world) lambda(out http.ResponseWriter, r *http.Request) {
	event, _ := io.ReadAll(r.Body)
	answer, err := w.sim.Invoke(r.Context(), event)
	if err != nil {
		out.Header().Set("X-Amz-Function-Error", "Unhandled")
		answer = map[string]string{"errorMessage": err.Error()}
	}
	_ = json.NewEncoder(out).Encode(answer)
}

// callback is our endpoint.
func (w *world) callback(out http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	status := w.endpoint()
	switch {
	case status == 0:
		<-r.Context().Done()
		return
	case status != http.StatusOK:
		http.Redirect(out, r, r.URL.Path, status)
		return
	}
	url := "http://" + r.Host + r.URL.Path
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deliveries = append(w.deliveries, carriertest.Delivery{Header: r.Header, URL: url, Body: body, At: w.now})
	if url == w.textURL {
		text, err := w.us.ParseMessage(r.Header, url, body, w.now)
		if err != nil {
			w.t.Errorf("callback %s: %v", body, err)
		}
		w.texts = append(w.texts, text)
		return
	}
	callback, err := w.us.ParseCallback(r.Header, url, body, w.now)
	if err != nil {
		w.t.Errorf("callback %s: %v", body, err)
	}
	w.heard = append(w.heard, callback)
	answer, err := w.us.Answer(w.told)
	if err != nil {
		w.t.Error(err)
	}
	_, _ = out.Write(answer)
}

// visibility is when a message comes again that was not dealt with.
const visibility = 30 * time.Second

// step lets time pass until the next message comes, and plays it. It is false when there
// is none.
func (w *world) step() bool {
	w.mu.Lock()
	if len(w.queue) == 0 {
		w.mu.Unlock()
		return false
	}
	slices.SortStableFunc(w.queue, func(a, b queued) int { return a.due.Compare(b.due) })
	next := w.queue[0]
	w.queue = w.queue[1:]
	if next.due.After(w.now) {
		w.now = next.due
	}
	w.mu.Unlock()
	if err := w.sim.Step(w.t.Context(), next.body); err != nil {
		w.mu.Lock()
		w.queue = append(w.queue, queued{w.now.Add(visibility), next.body})
		w.mu.Unlock()
	}
	return true
}

// run plays all messages, and those that they lead to.
func (w *world) run() {
	w.t.Helper()
	for range 1000 {
		if !w.step() {
			return
		}
	}
	w.t.Fatal("the messages never end")
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

const (
	ours     = "+12025550150"
	customer = "+120255501" // and two digits
)

func (w *world) placement(digits string) carrier.Placement {
	return carrier.Placement{
		Ref: carrier.Ref{
			WorkspaceID: conversation.WorkspaceID(conversation.NewID()), CallID: conversation.CallID(conversation.NewID()),
		},
		From: ours, To: customer + digits, CallbackURL: w.url, MaxDuration: time.Hour,
	}
}

// place places a call.
func (w *world) place(digits string) carrier.Placement {
	w.t.Helper()
	p := w.placement(digits)
	var err error
	if p.CarrierID, err = w.us.PlaceCall(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) state(ref carrier.Ref) carrier.CallState {
	w.t.Helper()
	state, err := w.us.FetchCall(w.t.Context(), ref)
	if err != nil {
		w.t.Fatal(err)
	}
	return state
}

// record is what the simulator keeps of the call.
func (w *world) record(p carrier.Placement) dynamo.SimulatorCall {
	w.t.Helper()
	call, err := w.store.SimulatorCall(w.t.Context(), p.WorkspaceID, "sim-"+string(p.CallID))
	if err != nil {
		w.t.Fatal(err)
	}
	return call
}

// events are what was reported, each with its reason.
func (w *world) events() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := []string{}
	for _, c := range w.heard {
		event := string(c.Event)
		if c.Reason != "" {
			event += " " + string(c.Reason)
		}
		events = append(events, event)
	}
	return events
}
