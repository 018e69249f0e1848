package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"parley/shared/carrier"
	"parley/shared/carrier/carriertest"
	"parley/shared/conversation"
)

// line is a carrier whose phones ring, are answered and hang up when a test says so, and
// which sends texts as a test says. It signs, reads and answers callbacks as the simulator
// does.
type line struct {
	*carrier.Simulator
	now func() time.Time

	mu     sync.Mutex
	phones map[conversation.CallID]*phone
	out    error             // of order: what every request gets instead of an answer
	refuse func(string) bool // numbers that it doesn't call
	ended  []conversation.CallID
	asked  int // FetchCall

	texts    []*text
	fate     func(carrier.Text) fate             // of a text
	received func(context.Context, carrier.Text) // what happens while it is asked to send one; nil: nothing
	accepted func(context.Context, carrier.Text) // what happens before it answers; nil: nothing
	receipts []carrier.MessageCallback           // that nobody has fetched yet
}

// text is one that the line was asked to send.
type text struct {
	carrier.Text
	carrierID string
	asked     int  // how often
	refused   int  // how often of them it was refused
	sent      bool // the customer has it
}

// fate is what becomes of a text that the line is asked to send.
type fate string

const (
	textSent    fate = ""
	textRefused fate = "refused"
	textLost    fate = "no answer, and it isn't sent"
	textMute    fate = "no answer, and it is sent"
)

// phone is one call at its carrier.
type phone struct {
	carrier.Placement
	placements int
	state      carrier.CallState
	answeredAt time.Time
	script     *carrier.Script // what it was told to say
	forgotten  bool
	reports    []carrier.Callback // that nobody has fetched yet
}

var secret = []byte("a secret of the tests")

func newLine(now func() time.Time) *line {
	return &line{
		Simulator: carrier.NewSimulator(aws.Config{}, "", secret), now: now,
		phones: map[conversation.CallID]*phone{}, refuse: func(string) bool { return false },
		fate: func(carrier.Text) fate { return textSent },
	}
}

var (
	_             carrier.Carrier = (*line)(nil)
	errOutOfOrder                 = errors.New("the line is out of order")
)

func (l *line) PlaceCall(_ context.Context, p carrier.Placement) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.out != nil:
		return "", l.out
	case l.refuse(p.To):
		return "", carrier.ErrRefused
	}
	return l.dial(p).CarrierID, nil
}

// SendMessage has the receipts of a text that is sent ready at once.
func (l *line) SendMessage(ctx context.Context, t carrier.Text) (string, error) {
	if l.received != nil {
		l.received(ctx, t)
	}
	carrierID, err := l.sendOn(t)
	if l.accepted != nil {
		l.accepted(ctx, t)
	}
	return carrierID, err
}

func (l *line) sendOn(t carrier.Text) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sent := l.find(t.MessageID)
	if sent == nil {
		sent = &text{Text: t, carrierID: "text-" + string(t.MessageID)}
		l.texts = append(l.texts, sent)
	}
	sent.asked++
	if l.out != nil {
		return "", l.out
	}
	switch does := l.fate(t); does {
	case textRefused:
		sent.refused++
		return "", carrier.ErrRefused
	case textLost:
		return "", errOutOfOrder
	case textSent, textMute:
		sent.sent = true
		for _, status := range []carrier.ReceiptStatus{carrier.ReceiptSent, carrier.ReceiptDelivered} {
			l.receipts = append(l.receipts, carrier.MessageCallback{
				Event: carrier.EventReceipt, CarrierID: sent.carrierID, At: l.now(), MessageID: t.MessageID, Status: status,
			})
		}
		if does == textMute {
			return "", errOutOfOrder
		}
	}
	return sent.carrierID, nil
}

// find is the text of an id, or nil. The caller holds mu.
func (l *line) find(messageID conversation.MessageID) *text {
	for _, t := range l.texts {
		if t.MessageID == messageID {
			return t
		}
	}
	return nil
}

// takeReceipt takes the oldest receipt that nobody has fetched yet.
func (l *line) takeReceipt() (carrier.MessageCallback, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.receipts) == 0 {
		return carrier.MessageCallback{}, false
	}
	first := l.receipts[0]
	l.receipts = l.receipts[1:]
	return first, true
}

// dial lets a phone ring. The caller holds mu.
func (l *line) dial(p carrier.Placement) *phone {
	ph := l.phones[p.CallID]
	if ph == nil {
		p.CarrierID = "line-" + string(p.CallID)
		ph = &phone{Placement: p, state: carrier.CallState{CarrierID: p.CarrierID, Phase: carrier.Dialling}}
		l.phones[p.CallID] = ph
	}
	ph.placements++
	return ph
}

func (l *line) EndCall(_ context.Context, ref carrier.Ref, reason conversation.EndReason) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out != nil {
		return l.out
	}
	ph, err := l.phone(ref)
	if err != nil {
		return nil
	}
	l.ended = append(l.ended, ph.CallID)
	l.over(ph, reason)
	return nil
}

func (l *line) FetchCall(_ context.Context, ref carrier.Ref) (carrier.CallState, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if l.out != nil {
		return carrier.CallState{}, l.out
	}
	ph, err := l.phone(ref)
	if err != nil {
		return carrier.CallState{}, err
	}
	state := ph.state
	if state.Recording == conversation.RecordingPending && !l.now().Before(state.HungUpAt.Add(10*time.Second)) {
		state.Recording = conversation.RecordingComplete
	}
	return state, nil
}

func (l *line) FetchRecording(_ context.Context, ref carrier.Ref) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out != nil {
		return nil, l.out
	}
	if _, err := l.phone(ref); err != nil {
		return nil, err
	}
	return []byte("RIFF and so on"), nil
}

func (l *line) phone(ref carrier.Ref) (*phone, error) {
	for _, ph := range l.phones {
		if ph.WorkspaceID == ref.WorkspaceID && !ph.forgotten && (ph.CarrierID == ref.CarrierID || ref.CarrierID == "" && ph.CallID == ref.CallID) {
			return ph, nil
		}
	}
	return nil, carrier.ErrUnknownCall
}

func (l *line) report(ph *phone, event carrier.Event, reason conversation.EndReason) {
	ph.reports = append(ph.reports, carrier.Callback{Event: event, CarrierID: ph.CarrierID, At: l.now(), Reason: reason})
}

// ring reports that dialling began.
func (l *line) ring(ph *phone) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ph.state.Phase == carrier.Dialling {
		l.report(ph, carrier.EventProgress, "")
	}
}

// answer picks the phone up.
func (l *line) answer(ph *phone) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ph.state.Phase == carrier.Dialling {
		ph.state.Phase, ph.answeredAt = carrier.Talking, l.now()
		l.report(ph, carrier.EventAnswered, "")
	}
}

// hangUp ends the call, whether it was answered or not.
func (l *line) hangUp(ph *phone, reason conversation.EndReason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over(ph, reason)
}

func (l *line) over(ph *phone, reason conversation.EndReason) {
	switch ph.state.Phase {
	case carrier.Dialling:
		ph.state.Phase = carrier.Failed
		l.report(ph, carrier.EventFailed, reason)
	case carrier.Talking:
		ph.state.Phase = carrier.Over
		ph.state.DurationSeconds = int(l.now().Sub(ph.answeredAt) / time.Second)
		ph.state.Recording = conversation.RecordingAbsent
		if ph.script != nil {
			ph.state.Transcript = []conversation.Turn{
				{Role: conversation.RoleAssistant, Content: ph.script.Greeting},
				{Role: conversation.RoleUser, Content: "Is there a room with a view?"},
			}
			ph.state.Latencies = []carrier.TurnLatency{{Speech: 100, Model: 200, Voice: 300}}
			ph.state.Recording = conversation.RecordingPending
		}
		l.report(ph, carrier.EventHungUp, reason)
	default:
		return
	}
	ph.state.Reason, ph.state.HungUpAt = reason, conversation.At(l.now())
}

// take takes the oldest report that nobody has fetched yet.
func (l *line) take(ph *phone) (carrier.Callback, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(ph.reports) == 0 {
		return carrier.Callback{}, false
	}
	first := ph.reports[0]
	ph.reports = ph.reports[1:]
	return first, true
}

// told is the answer to the question what to do.
func (l *line) told(ph *phone, i carrier.Instruction) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case i.HangUp:
		l.over(ph, conversation.EndCanceled)
	case i.Script != (carrier.Script{}) && ph.state.Phase == carrier.Talking:
		ph.script = &i.Script
	}
}

// The line is a carrier as the others are.
func TestLine(t *testing.T) {
	carriertest.Test(t, func(t *testing.T) carriertest.Harness {
		now := time.Date(2030, 5, 6, 7, 8, 9, 0, time.UTC)
		clock := func() time.Time { return now }
		l := newLine(clock)
		l.refuse = func(number string) bool { return strings.HasSuffix(number, "04") }
		l.fate = func(t carrier.Text) fate {
			return map[string]fate{customer + "04": textRefused, customer + "10": textMute}[t.To]
		}
		const url, textURL = "https://api.example.com/carriers/simulator/w/c", "https://api.example.com/carriers/simulator/w"
		sign := func(url string, body []byte) http.Header {
			return http.Header{carrier.SignatureHeader: {carrier.Sign(secret, now, url, body)}}
		}
		told := carrier.Instruction{Script: carriertest.Script}
		var next func() (carriertest.Delivery, bool)
		next = func() (carriertest.Delivery, bool) {
			for _, ph := range l.phones {
				if report, ok := l.take(ph); ok {
					body := bodyOf(report)
					if report.Event == carrier.EventAnswered {
						l.told(ph, told)
					}
					return carriertest.Delivery{Header: sign(url, body), URL: url, Body: body, At: now}, true
				}
				now = now.Add(10 * time.Second)
				switch {
				case ph.state.Phase == carrier.Dialling && strings.HasSuffix(ph.To, "01"):
					l.hangUp(ph, conversation.EndBusy)
				case ph.state.Phase == carrier.Dialling:
					l.ring(ph)
					l.answer(ph)
				case ph.state.Phase == carrier.Talking:
					l.hangUp(ph, conversation.EndCustomerHungUp)
				default:
					continue
				}
				return next()
			}
			if receipt, ok := l.takeReceipt(); ok {
				body := bodyOf(receipt)
				return carriertest.Delivery{Header: sign(textURL, body), URL: textURL, Body: body, At: now}, true
			}
			return carriertest.Delivery{}, false
		}
		return carriertest.Harness{
			Carrier: l, WorkspaceID: conversation.WorkspaceID(conversation.NewID()),
			From: ours, Answers: customer + "99", Busy: customer + "01", Refused: customer + "04", CallbackURL: url,
			Delivers: customer + "99", RefusesTexts: customer + "04", Hangs: customer + "10", TextURL: textURL,
			Now: clock, Pass: func(d time.Duration) { now = now.Add(d) },
			Tell: func(i carrier.Instruction) { told = i },
			Next: next, Sign: sign,
		}
	})
}

// bodyOf is a report as the simulator writes it.
func bodyOf[C carrier.Callback | carrier.MessageCallback](report C) []byte {
	body, err := json.Marshal(report)
	if err != nil {
		panic(err)
	}
	return body
}

// byCall is a line on which some calls are on another.
type byCall struct {
	*line
	others map[conversation.CallID]*line
}

func (b byCall) FetchCall(ctx context.Context, ref carrier.Ref) (carrier.CallState, error) {
	if other := b.others[ref.CallID]; other != nil {
		return other.FetchCall(ctx, ref)
	}
	return b.line.FetchCall(ctx, ref)
}
