// Package carriertest is the suite that every carrier.Carrier passes.
package carriertest

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"parley/shared/carrier"
	"parley/shared/conversation"
)

// Harness is a carrier under test and the world around it, in which a test's time passes.
type Harness struct {
	Carrier     carrier.Carrier
	WorkspaceID conversation.WorkspaceID
	From        string // one of the workspace's numbers
	Answers     string // a number where somebody answers, talks and hangs up
	Busy        string // a number that is busy
	Refused     string // a number that the carrier doesn't call
	CallbackURL string // for callbacks about calls

	Delivers     string // a number where texts arrive, and nobody answers them
	RefusesTexts string // a number that the carrier doesn't text
	Hangs        string // a number of which the carrier doesn't say in time whether it texts it
	TextURL      string // for callbacks about texts

	Now  func() time.Time
	Pass func(time.Duration) // lets time pass
	// Tell sets what callbacks that ask what to do are answered from now on.
	Tell func(carrier.Instruction)
	// Next lets time pass until the carrier calls back, and returns the callback when it
	// has been answered. It is false when the carrier has no more to say.
	Next func() (Delivery, bool)
	// Sign is the header of a callback that the carrier signs now.
	Sign func(url string, body []byte) http.Header
}

// Delivery is a callback as it came in.
type Delivery struct {
	Header http.Header
	URL    string
	Body   []byte
	At     time.Time // by our clock
}

// Script is what the suite tells the carrier to say.
var Script = carrier.Script{
	Model: "scripted", Voice: "calm", Language: "en",
	Greeting: "Good day, how may I help you?", Prompt: "You are the front desk.",
}

// Test runs the suite. newHarness makes a fresh world for each of its tests.
func Test(t *testing.T, newHarness func(*testing.T) Harness) {
	for name, test := range map[string]func(*testing.T, Harness){
		"answered":             testAnswered,
		"told to hang up":      testToldToHangUp,
		"busy":                 testBusy,
		"refused":              testRefused,
		"unknown":              testUnknown,
		"ended while talking":  testEndedWhileTalking,
		"ended while dialling": testEndedWhileDialling,
		"signature":            testSignature,
		"malformed":            testMalformed,
		"text":                 testText,
		"text refused":         testTextRefused,
		"text unanswered":      testTextUnanswered,
		"keywords":             testKeywords,
	} {
		t.Run(name, func(t *testing.T) { test(t, newHarness(t)) })
	}
}

func testAnswered(t *testing.T, h Harness) {
	ref := h.place(t, h.Answers)
	for name, by := range map[string]carrier.Ref{
		"the carrier's id": {WorkspaceID: ref.WorkspaceID, CarrierID: ref.CarrierID},
		"our id":           {WorkspaceID: ref.WorkspaceID, CallID: ref.CallID},
	} {
		if got := h.fetch(t, by); got.Phase != carrier.Dialling || got.CarrierID != ref.CarrierID {
			t.Errorf("by %s: call %q is %s, want %q, dialling", name, got.CarrierID, got.Phase, ref.CarrierID)
		}
	}

	events := h.all(t, ref)
	if i := slices.Index(events, carrier.EventAnswered); i < 0 || slices.Index(events, carrier.EventHungUp) < i {
		t.Errorf("callbacks = %v, want answered, then hung_up", events)
	}
	state := h.fetch(t, ref)
	if state.Phase != carrier.Over || state.Reason == "" || state.HungUpAt.IsZero() || state.DurationSeconds <= 0 {
		t.Errorf("state = %+v, want over, with reason, moment and duration", state)
	}
	if len(state.Transcript) < 2 || state.Transcript[0].Content != Script.Greeting || len(state.Latencies) == 0 {
		t.Errorf("transcript = %v, latencies %v; want the greeting and more", state.Transcript, state.Latencies)
	}
	h.Pass(time.Minute)
	if got := h.fetch(t, ref).Recording; got != conversation.RecordingComplete {
		t.Fatalf("recording is %q, want complete", got)
	}
	audio, err := h.Carrier.FetchRecording(t.Context(), ref)
	if err != nil || !bytes.HasPrefix(audio, []byte("RIFF")) {
		t.Errorf("FetchRecording = %d bytes, %v; want a WAV file", len(audio), err)
	}
}

func testToldToHangUp(t *testing.T, h Harness) {
	h.Tell(carrier.Instruction{HangUp: true})
	ref := h.place(t, h.Answers)
	h.all(t, ref)
	if got := h.fetch(t, ref); got.Phase == carrier.Talking || got.Phase == carrier.Dialling || len(got.Transcript) != 0 {
		t.Errorf("state = %+v, want silence", got)
	}
}

func testBusy(t *testing.T, h Harness) {
	ref := h.place(t, h.Busy)
	if events := h.all(t, ref); !slices.Contains(events, carrier.EventFailed) || slices.Contains(events, carrier.EventAnswered) {
		t.Errorf("callbacks = %v, want failed, and not answered", events)
	}
	if got := h.fetch(t, ref); got.Phase != carrier.Failed || got.Reason != conversation.EndBusy || len(got.Transcript) != 0 {
		t.Errorf("state = %+v, want failed, busy", got)
	}
}

func testRefused(t *testing.T, h Harness) {
	p := h.placement(h.Refused)
	if id, err := h.Carrier.PlaceCall(t.Context(), p); !errors.Is(err, carrier.ErrRefused) {
		t.Errorf("PlaceCall = %q, %v; want ErrRefused", id, err)
	}
	if _, err := h.Carrier.FetchCall(t.Context(), p.Ref); !errors.Is(err, carrier.ErrUnknownCall) {
		t.Errorf("FetchCall = %v, want ErrUnknownCall", err)
	}
	if delivery, ok := h.Next(); ok {
		t.Errorf("callback %s of a call that was refused", delivery.Body)
	}
}

func testUnknown(t *testing.T, h Harness) {
	ref := h.placement(h.Answers).Ref
	if _, err := h.Carrier.FetchCall(t.Context(), ref); !errors.Is(err, carrier.ErrUnknownCall) {
		t.Errorf("FetchCall = %v, want ErrUnknownCall", err)
	}
	if _, err := h.Carrier.FetchRecording(t.Context(), ref); !errors.Is(err, carrier.ErrUnknownCall) {
		t.Errorf("FetchRecording = %v, want ErrUnknownCall", err)
	}
	if err := h.Carrier.EndCall(t.Context(), ref, conversation.EndCanceled); err != nil {
		t.Errorf("EndCall = %v, want nil", err)
	}
	placed := h.place(t, h.Answers)
	placed.WorkspaceID = conversation.WorkspaceID(conversation.NewID())
	if _, err := h.Carrier.FetchCall(t.Context(), placed); !errors.Is(err, carrier.ErrUnknownCall) {
		t.Errorf("FetchCall by another workspace = %v, want ErrUnknownCall", err)
	}
}

func testEndedWhileTalking(t *testing.T, h Harness) {
	ref := h.place(t, h.Answers)
	for h.next(t, ref).Event != carrier.EventAnswered {
	}
	h.Pass(time.Second)
	if got := h.fetch(t, ref).Phase; got != carrier.Talking {
		t.Fatalf("the call is %s, want talking", got)
	}
	h.end(t, ref, conversation.EndMaxDuration)
	state := h.fetch(t, ref)
	if state.Phase != carrier.Over || state.Reason != conversation.EndMaxDuration {
		t.Errorf("state = %+v, want over, max_duration", state)
	}
	if got := h.next(t, ref); got.Event != carrier.EventHungUp || got.Reason != conversation.EndMaxDuration {
		t.Errorf("callback = %+v, want hung_up, max_duration", got)
	}
	h.end(t, ref, conversation.EndCanceled)
	if got := h.fetch(t, ref); got.Reason != state.Reason || got.HungUpAt != state.HungUpAt || got.DurationSeconds != state.DurationSeconds {
		t.Errorf("ended again: state = %+v, want %+v", got, state)
	}
}

func testEndedWhileDialling(t *testing.T, h Harness) {
	ref := h.place(t, h.Answers)
	h.end(t, ref, conversation.EndCanceled)
	if got := h.fetch(t, ref); got.Phase != carrier.Failed || got.Reason != conversation.EndCanceled {
		t.Errorf("state = %+v, want failed, canceled", got)
	}
	if events := h.all(t, ref); slices.Contains(events, carrier.EventAnswered) || !slices.Contains(events, carrier.EventFailed) {
		t.Errorf("callbacks = %v, want failed, and not answered", events)
	}
}

func testSignature(t *testing.T, h Harness) {
	h.place(t, h.Answers)
	testSigned(t, h, func(header http.Header, url string, body []byte, now time.Time) error {
		_, err := h.Carrier.ParseCallback(header, url, body, now)
		return err
	})
	for ok := true; ok; { // until the call has no more to say
		_, ok = h.Next()
	}
	h.text(t, h.Delivers)
	testSigned(t, h, func(header http.Header, url string, body []byte, now time.Time) error {
		_, err := h.Carrier.ParseMessage(header, url, body, now)
		return err
	})
}

// testSigned parses the next callback as it came, and changed in all ways that matter.
func testSigned(t *testing.T, h Harness, parse func(http.Header, string, []byte, time.Time) error) {
	t.Helper()
	d, ok := h.Next()
	if !ok {
		t.Fatal("no callback came")
	}
	tests := map[string]struct {
		header http.Header
		url    string
		body   []byte
		now    time.Time
		want   error
	}{
		"as it came":                {d.Header, d.URL, d.Body, d.At, nil},
		"four minutes later":        {d.Header, d.URL, d.Body, d.At.Add(4 * time.Minute), nil},
		"six minutes later":         {d.Header, d.URL, d.Body, d.At.Add(6 * time.Minute), carrier.ErrUnverified},
		"six minutes early":         {d.Header, d.URL, d.Body, d.At.Add(-6 * time.Minute), carrier.ErrUnverified},
		"no header":                 {http.Header{}, d.URL, d.Body, d.At, carrier.ErrUnverified},
		"another URL":               {d.Header, d.URL + "x", d.Body, d.At, carrier.ErrUnverified},
		"another body":              {d.Header, d.URL, append(slices.Clip(d.Body), ' '), d.At, carrier.ErrUnverified},
		"no body":                   {d.Header, d.URL, nil, d.At, carrier.ErrUnverified},
		"another body's signature":  {h.Sign(d.URL, []byte("{}")), d.URL, d.Body, h.Now(), carrier.ErrUnverified},
		"the carrier's own, anew":   {h.Sign(d.URL, d.Body), d.URL, d.Body, h.Now(), nil},
		"each header's value twice": {doubled(d.Header), d.URL, d.Body, d.At, carrier.ErrUnverified},
	}
	for name, tt := range tests {
		if err := parse(tt.header, tt.url, tt.body, tt.now); !errors.Is(err, tt.want) {
			t.Errorf("%s: parsing %.100s = %v, want %v", name, d.Body, err, tt.want)
		}
	}
}

func doubled(header http.Header) http.Header {
	twice := http.Header{}
	for name, values := range header {
		twice[name] = append(slices.Clone(values), values...)
	}
	return twice
}

func testMalformed(t *testing.T, h Harness) {
	for _, body := range []string{"", "{}", "[]", "null", "{", "\xff", `{"unknown":1}`} {
		_, err := h.Carrier.ParseCallback(h.Sign(h.CallbackURL, []byte(body)), h.CallbackURL, []byte(body), h.Now())
		if !errors.Is(err, carrier.ErrMalformed) {
			t.Errorf("ParseCallback(%q) = %v, want ErrMalformed", body, err)
		}
		_, err = h.Carrier.ParseMessage(h.Sign(h.TextURL, []byte(body)), h.TextURL, []byte(body), h.Now())
		if !errors.Is(err, carrier.ErrMalformed) {
			t.Errorf("ParseMessage(%q) = %v, want ErrMalformed", body, err)
		}
	}
}

func testText(t *testing.T, h Harness) {
	sent, carrierID := h.text(t, h.Delivers)
	var became []carrier.ReceiptStatus
	for {
		d, ok := h.Next()
		if !ok {
			break
		}
		got, err := h.Carrier.ParseMessage(d.Header, d.URL, d.Body, d.At)
		if err != nil {
			t.Fatalf("ParseMessage(%s): %v", d.Body, err)
		}
		if got.Event != carrier.EventReceipt || got.MessageID != sent.MessageID || got.CarrierID != carrierID || got.At.IsZero() {
			t.Errorf("callback = %+v, want a receipt of message %s, text %s", got, sent.MessageID, carrierID)
		}
		if d.URL != h.TextURL {
			t.Errorf("the receipt came to %s, want %s", d.URL, h.TextURL)
		}
		became = append(became, got.Status)
	}
	if !slices.Contains(became, carrier.ReceiptDelivered) || slices.Contains(became, carrier.ReceiptFailed) {
		t.Errorf("receipts = %v, want that it was delivered", became)
	}
}

func testTextRefused(t *testing.T, h Harness) {
	if id, err := h.Carrier.SendMessage(t.Context(), h.newText(h.RefusesTexts)); !errors.Is(err, carrier.ErrRefused) {
		t.Errorf("SendMessage = %q, %v; want ErrRefused", id, err)
	}
	if delivery, ok := h.Next(); ok {
		t.Errorf("callback %s of a text that was refused", delivery.Body)
	}
}

// Who gets no answer in time must take it that the text may have been sent.
func testTextUnanswered(t *testing.T, h Harness) {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if id, err := h.Carrier.SendMessage(ctx, h.newText(h.Hangs)); err == nil || errors.Is(err, carrier.ErrRefused) {
		t.Errorf("SendMessage = %q, %v; want no answer", id, err)
	}
}

// testKeywords knows the words that every carrier has.
func testKeywords(t *testing.T, h Harness) {
	for text, want := range map[string]carrier.Keyword{
		"STOP": carrier.OptOutWord, "Unsubscribe": carrier.OptOutWord, "cancel": carrier.OptOutWord, "END": carrier.OptOutWord,
		"quit": carrier.OptOutWord, " Stop\n": carrier.OptOutWord,
		"START": carrier.OptInWord, "start ": carrier.OptInWord,
		"HELP": carrier.HelpWord, "info": carrier.HelpWord,
		"": "", "please stop by tomorrow": "", "When does it start?": "", "Can you help me?": "", "stopped": "",
	} {
		if got := h.Carrier.Keyword(text); got != want {
			t.Errorf("Keyword(%q) = %q, want %q", text, got, want)
		}
	}
}

func (h Harness) newText(to string) carrier.Text {
	return carrier.Text{
		WorkspaceID: h.WorkspaceID, MessageID: conversation.MessageID(conversation.NewID()), Channel: conversation.SMS,
		From: h.From, To: to, Content: "Check-in is from 3 pm.", Source: conversation.SourceInbound, CallbackURL: h.TextURL,
	}
}

// text sends a text and returns it, with the carrier's id.
func (h Harness) text(t *testing.T, to string) (carrier.Text, string) {
	t.Helper()
	text := h.newText(to)
	carrierID, err := h.Carrier.SendMessage(t.Context(), text)
	if err != nil || carrierID == "" {
		t.Fatalf("SendMessage = %q, %v; want an id", carrierID, err)
	}
	return text, carrierID
}

func (h Harness) placement(to string) carrier.Placement {
	return carrier.Placement{
		Ref:  carrier.Ref{WorkspaceID: h.WorkspaceID, CallID: conversation.CallID(conversation.NewID())},
		From: h.From, To: to, CallbackURL: h.CallbackURL, MaxDuration: time.Hour,
	}
}

// place places a call and returns both of its ids.
func (h Harness) place(t *testing.T, to string) carrier.Ref {
	t.Helper()
	p := h.placement(to)
	carrierID, err := h.Carrier.PlaceCall(t.Context(), p)
	if err != nil || carrierID == "" {
		t.Fatalf("PlaceCall = %q, %v; want an id", carrierID, err)
	}
	p.CarrierID = carrierID
	return p.Ref
}

func (h Harness) fetch(t *testing.T, ref carrier.Ref) carrier.CallState {
	t.Helper()
	state, err := h.Carrier.FetchCall(t.Context(), ref)
	if err != nil {
		t.Fatalf("FetchCall: %v", err)
	}
	return state
}

func (h Harness) end(t *testing.T, ref carrier.Ref, reason conversation.EndReason) {
	t.Helper()
	if err := h.Carrier.EndCall(t.Context(), ref, reason); err != nil {
		t.Fatalf("EndCall: %v", err)
	}
}

// next is the next callback, which must be of this call.
func (h Harness) next(t *testing.T, ref carrier.Ref) carrier.Callback {
	t.Helper()
	delivery, ok := h.Next()
	if !ok {
		t.Fatal("no more callbacks come")
	}
	return h.parse(t, ref, delivery)
}

// all are the events of all callbacks to come.
func (h Harness) all(t *testing.T, ref carrier.Ref) []carrier.Event {
	t.Helper()
	var events []carrier.Event
	for {
		delivery, ok := h.Next()
		if !ok {
			return events
		}
		events = append(events, h.parse(t, ref, delivery).Event)
	}
}

func (h Harness) parse(t *testing.T, ref carrier.Ref, d Delivery) carrier.Callback {
	t.Helper()
	callback, err := h.Carrier.ParseCallback(d.Header, d.URL, d.Body, d.At)
	if err != nil {
		t.Fatalf("ParseCallback(%s): %v", d.Body, err)
	}
	if callback.CarrierID != ref.CarrierID || callback.At.IsZero() {
		t.Errorf("callback = %+v, want a moment of call %s", callback, ref.CarrierID)
	}
	return callback
}
