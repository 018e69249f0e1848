package lifecycle_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley/shared/agent"
	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/lifecycle"
)

// textLifeTime is how long TestTextLife begins new checks, unless -rapid.checks says how many.
const textLifeTime = 15 * time.Second

// Everybody who has a part in text conversations acts in a random order: customers, the
// carrier's callbacks (late, doubled, out of order), the voice tool, calls with follow-ups,
// the stream, the turns' function and its queue, the state machines, the sweep; the agent
// takes its time, passes, fails or can't judge, the carrier refuses or gives no answer,
// requests to DynamoDB are slow, or fail before or after their effect, functions crash. At
// every write a conversation obeys its law. When all is quiet, every message is stored once,
// in one thread, has its mark, every turn has one reply at most, every thread has completed
// once, for a reason that is true.
//
// It draws for textLifeTime, or as many checks as -rapid.checks says: the same draws each time,
// so that what fails is what was changed, unless -rapid.checks or -rapid.seed asks for others.
func TestTextLife(t *testing.T) {
	stage := newStage(t)
	saboteur := &saboteur{HTTPClient: stage.cfg.HTTPClient}
	sabotaged := stage.cfg
	sabotaged.HTTPClient = saboteur
	store := dynamo.New(sabotaged, stage.names)
	until, seed, broken := time.Now().Add(textLifeTime), "1", false
	flag.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "rapid.checks":
			until, seed = time.Now().Add(time.Hour), "0"
		case "rapid.seed":
			seed = f.Value.String()
		}
	})
	if err := flag.Set("rapid.seed", seed); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		if time.Now().After(until) && !broken {
			return
		}
		held := false
		m := newTextModel(rt, t, stage, store, saboteur)
		defer func() { broken = broken || !held; m.leave() }()
		m.begin(rt)
		rt.Repeat(m.actions())
		m.quiesce()
		held = true
	})
}

// textModel is a world in which everybody writes.
type textModel struct {
	*rapid.T
	*world
	agent    *thinker
	saboteur *saboteur
	calls    lifecycle.Calls // whose waits take the world's time
	phones   []*phone        // of calls in which the assistant talks
	over     []*phone        // of those that were hung up

	wrote     []carrier.MessageCallback // by customers
	wanted    []wanted                  // texts, by the assistant in calls
	undone    []carrier.MessageCallback // what nobody has delivered yet
	accepted  map[string]bool           // messages that were answered with 2xx, by the carrier's id
	receipts  []carrier.MessageCallback // that the carrier has
	received  []carrier.MessageCallback // that were delivered
	failed    map[conversation.MessageID]bool
	crowded   bool // many look
	gentle    bool // nothing will fail
	faulty    bool // something has failed, crashed, or been slow
	mute      bool // the carrier has given no answer
	mindless  bool // the agent could not judge, or write
	abandoned bool // a state machine is gone

	runs   map[conversation.ThreadID]*threadRun
	mu     sync.Mutex
	images map[string]textImage
	history
	records []string // of the stream
	arrived []time.Time
	done    int
	broken  []string
}

// history is what was written once, and must not be written again.
type history struct {
	answers   map[conversation.MessageID]conversation.MessageID // replies that were claimed, by what they answer
	claimed   map[conversation.MessageID]bool                   // replies and follow-ups
	spoken    map[conversation.ThreadID]bool                    // the customer has written, since the follow-up if there is one
	ends      map[conversation.ThreadID]int
	followUps map[string]int // claimed, by day, and by day and customer, those of tests apart
}

type wanted struct {
	*phone
	report carrier.Callback
}

// textImage is a message or a thread as it was last seen.
type textImage struct {
	item    map[string]types.AttributeValue
	message conversation.MessageRecord
	thread  conversation.ThreadRecord
}

// The policy of the model's workspace. Two customers and a test have one follow-up a day each.
const (
	textInactivity = 10 * time.Minute
	textAnswer     = time.Hour
	textDailyCap   = 2
)

func newTextModel(rt *rapid.T, t *testing.T, stage stage, store *dynamo.Store, saboteur *saboteur) *textModel {
	saboteur.arm(faultless, 0)
	saboteur.changed = nil
	w, a := stage.newTextWorld(t, store)
	w.define(t, func(d *dynamo.Definition) {
		d.Assistants[0].Criteria = []conversation.Criterion{
			{EvaluationID: conversation.EvaluationID(conversation.NewID()), Title: answeredCriterion, Enabled: true, Recoverable: true},
			{EvaluationID: conversation.EvaluationID(conversation.NewID()), Title: politeCriterion, Enabled: true},
		}
		d.Workspace.InactivitySeconds = int(textInactivity / time.Second)
		d.Workspace.FollowUps = conversation.FollowUpPolicy{
			Enabled: true, Channel: conversation.SMS, Number: ours, Model: agent.ScriptedModel,
			WaitSeconds: int(textAnswer / time.Second), DailyCap: textDailyCap,
		}
	})
	m := &textModel{
		T: rt, world: w, agent: a, saboteur: saboteur, calls: lifecycle.Calls{Parts: w.turns.threads.Parts},
		accepted: map[string]bool{}, failed: map[conversation.MessageID]bool{},
		runs: map[conversation.ThreadID]*threadRun{}, images: map[string]textImage{},
		history: history{
			answers: map[conversation.MessageID]conversation.MessageID{}, claimed: map[conversation.MessageID]bool{},
			spoken: map[conversation.ThreadID]bool{}, ends: map[conversation.ThreadID]int{}, followUps: map[string]int{},
		},
	}
	saboteur.changed, saboteur.crash = m.changed, m.turns.crashAll
	return m
}

// begin draws where a check begins: nowhere, at a conversation that is on its way, or at the
// end of a call.
func (m *textModel) begin(rt *rapid.T) {
	m.gentle = rapid.IntRange(0, 3).Draw(rt, "gentle") == 0
	m.judges(conversation.Fail, conversation.Pass)
	past := [][]func(){
		{},
		{
			func() { m.say("Hello") },
			func() { m.goOn(time.Minute) },
			func() { m.goOn(textInactivity) }, // its follow-up is sent
			func() { m.say("Yes") },
		},
		{func() { m.decides(rt) }, func() { m.call(rt) }, func() { m.finishCall(rt) }, func() { m.goOn(time.Minute) }},
	}[rapid.IntRange(0, 2).Draw(rt, "past")]
	for _, do := range past[:rapid.IntRange(0, len(past)).Draw(rt, "steps")] {
		do()
	}
}

// leave ends whoever is at work still, and keeps what is open from the sweeps of other checks.
func (m *textModel) leave() {
	m.saboteur.changed = nil
	m.saboteur.arm(faultless, 0)
	m.turns.crashAll()
	m.turns.settle(m)
	never := m.now().AddDate(100, 0, 0)
	for _, thread := range m.allThreads(m) {
		_ = m.store.PostponeThread(m.ctx, m.workspace, thread.ThreadID, never)
	}
	for _, ph := range m.line.phones {
		_ = m.store.PostponeCall(m.ctx, m.workspace, ph.CallID, never)
	}
}

func (m *textModel) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":              m.check,
		"write":         m.write,
		"keyword":       m.keyword,
		"say":           func(rt *rapid.T) { m.write(rt); m.pushOn() },
		"say again":     func(rt *rapid.T) { m.write(rt); m.pushOn() },
		"say keyword":   func(rt *rapid.T) { m.keyword(rt); m.pushOn() },
		"deliver":       m.deliver,
		"deliver next":  m.deliver,
		"repeat":        m.repeat,
		"tool":          m.tool,
		"receipt":       m.receipt,
		"stream":        m.stream,
		"stream next":   m.stream,
		"stream again":  m.streamAgain,
		"time":          m.passSome,
		"time again":    m.passSome,
		"agent":         m.thinks,
		"go on":         m.goesOn,
		"go on longer":  m.goesOn,
		"go on badly":   func(rt *rapid.T) { m.fail(rt); m.goesOn(rt) },
		"call badly":    func(rt *rapid.T) { m.call(rt); m.decides(rt); m.fail(rt); m.finishCall(rt) },
		"machines":      func(*rapid.T) { m.machines() },
		"lose machine":  m.loseMachine,
		"lose turn":     m.loseTurn,
		"look":          m.look,
		"sweep":         func(*rapid.T) { m.sweep() },
		"call":          m.call,
		"finish call":   m.finishCall,
		"next receipt":  m.receipt,
		"receipt again": m.receiptAgain,
		"carrier":       m.decides,
		"fault":         m.fail,
		"crash":         m.crash,
	}
}

// goesOn lets everybody do what they should, when they should, for a while; perhaps there
// are others who look, and the carrier reports at once, while somebody is at work.
func (m *textModel) goesOn(rt *rapid.T) {
	m.crowded = rapid.Bool().Draw(rt, "crowded")
	defer func() { m.crowded = false }()
	m.goOn(rapid.SampledFrom([]time.Duration{
		20 * time.Second, time.Minute, 6 * time.Minute, textInactivity, textInactivity, textAnswer, 24 * time.Hour,
	}).Draw(rt, "for"))
}

func (m *textModel) goOn(d time.Duration) {
	for end := m.now().Add(d); ; {
		m.followTo(len(m.records))
		m.machines()
		now, next := m.now(), end
		for _, run := range m.runs {
			if due := run.next(); due.After(now) && due.Before(next) {
				next = due
			}
		}
		if !now.Before(end) {
			return
		}
		if m.crowded && m.turns.busy() {
			for _, threadID := range m.threads() {
				m.lookAt(threadID)
			}
			m.fetchReceipts()
			for _, receipt := range m.receipts {
				if m.rank(receipt) == 0 {
					m.reports(receipt)
				}
			}
			next = now.Add(2 * time.Second)
		}
		m.elapse(m, min(next.Sub(now), max(30*time.Second, end.Sub(now)/8)))
	}
}

// threadRun is an execution of a conversation's state machine.
type threadRun struct {
	threadID conversation.ThreadID
	due      time.Time // of its next task
	busy     bool      // with a task
	ended    bool
	retries  int
	entered  time.Time // when it began to wait for an answer; zero: it looks
	until    time.Time // how long it does
	token    string    // of the task that waits; "": it has not begun to
}

// next is when something is due for it; zero: nothing will be.
func (r *threadRun) next() time.Time {
	switch {
	case r.ended || r.busy:
		return time.Time{}
	case r.token != "":
		return r.until
	}
	return r.due
}

// machines lets the state machines do what is due.
func (m *textModel) machines() {
	for name, input := range m.turns.steps.started {
		var begins struct {
			WaitSeconds int `json:"wait_seconds"`
		}
		threadID := conversation.ThreadID(name)
		if err := json.Unmarshal([]byte(input), &begins); err != nil || begins.WaitSeconds == 0 {
			m.Fatalf("execution %s begins with %s: %v", name, input, err)
		}
		if m.runs[threadID] == nil {
			m.runs[threadID] = &threadRun{threadID: threadID, due: m.now().Add(time.Duration(begins.WaitSeconds) * time.Second)}
		}
	}
	for _, threadID := range slices.Sorted(maps.Keys(m.runs)) {
		for range 20 {
			if !m.execute(m.runs[threadID]) {
				break
			}
			m.turns.settle(m)
		}
	}
}

// execute does what is due for an execution, if anything is.
func (m *textModel) execute(run *threadRun) bool {
	steps, now := m.turns.steps, m.now()
	switch woken := run.token != "" && !steps.isWaiting(run.token); {
	case run.ended || run.busy || !woken && now.Before(run.next()):
		return false
	case run.token != "":
		steps.mu.Lock()
		delete(steps.waiting, run.token)
		steps.mu.Unlock()
		run.entered, run.token = time.Time{}, ""
	}
	run.busy = true
	task := lifecycle.ThreadTask{WorkspaceID: m.workspace, ThreadID: run.threadID}
	waits := !run.entered.IsZero()
	if waits {
		task.Token, task.EnteredAt, task.RetryCount = conversation.NewID(), conversation.At(run.entered), run.retries
		steps.wait(task.Token)
	}
	m.turns.begin(func(ctx context.Context) {
		step, err := m.turns.threads.Run(steps.threads())(ctx, task)
		m.turns.mu.Lock()
		defer m.turns.mu.Unlock()
		now := m.now()
		run.busy = false
		switch {
		case err != nil && waits && run.retries == 5:
			run.entered, run.due, run.retries = time.Time{}, now, 0
		case err != nil && run.retries == 12:
			run.ended, m.abandoned = true, true
		case err != nil:
			run.due = now.Add(time.Second << min(run.retries, 6))
			run.retries++
		case waits:
			run.token, run.retries = task.Token, 0
		case step.Next == lifecycle.StepWait:
			run.due, run.retries = now.Add(time.Duration(step.Seconds)*time.Second), 0
		case step.Next == lifecycle.StepAnswer:
			run.entered, run.until, run.due, run.retries = now, now.Add(time.Duration(step.Seconds)*time.Second), now, 0
		default:
			run.ended = true
		}
	})
	return true
}

// loseTurn lets the queue give up an item.
func (m *textModel) loseTurn(rt *rapid.T) {
	m.turns.mu.Lock()
	defer m.turns.mu.Unlock()
	var idle []*turnItem
	for _, item := range m.turns.queued {
		if !item.busy && len(item.ended) == 0 {
			idle = append(idle, item)
		}
	}
	if len(idle) == 0 || m.gentle {
		rt.Skip()
	}
	i := rapid.IntRange(0, len(idle)-1).Draw(rt, "item")
	m.turns.queued = slices.DeleteFunc(m.turns.queued, func(item *turnItem) bool { return item == idle[i] })
	m.faulty = true
}

// loseMachine lets a state machine be gone.
func (m *textModel) loseMachine(rt *rapid.T) {
	if len(m.runs) == 0 {
		rt.Skip()
	}
	run := m.runs[rapid.SampledFrom(slices.Sorted(maps.Keys(m.runs))).Draw(rt, "machine")]
	m.turns.mu.Lock()
	defer m.turns.mu.Unlock()
	if !run.busy {
		run.ended, m.abandoned = true, true
	}
}

// look lets somebody look at a conversation, whoever else does.
func (m *textModel) look(rt *rapid.T) {
	threads := m.threads()
	if len(threads) == 0 {
		rt.Skip()
	}
	m.lookAt(rapid.SampledFrom(threads).Draw(rt, "thread"))
}

func (m *textModel) lookAt(threadID conversation.ThreadID) {
	m.atWork(func(ctx context.Context) error {
		_, err := m.turns.threads.Advance(ctx, m.workspace, threadID)
		return err
	})
}

// threads are all there are.
func (m *textModel) threads() []conversation.ThreadID {
	var threads []conversation.ThreadID
	for _, one := range m.images {
		if one.thread.ThreadID != "" {
			threads = append(threads, one.thread.ThreadID)
		}
	}
	slices.Sort(threads)
	return threads
}

func (m *textModel) sweep() { m.atWork(m.turns.threads.Parts.Sweep) }

// atWork lets somebody begin, and returns when they have ended or wait.
func (m *textModel) atWork(does func(context.Context) error) {
	m.turns.begin(func(ctx context.Context) { _ = does(ctx) }) // what fails is tried again
	m.turns.settle(m)
}

// call lets the assistant have a call, and the customer hang up.
func (m *textModel) call(rt *rapid.T) {
	if len(m.over) >= 2 || m.isBroke() {
		rt.Skip()
	}
	m.saboteur.arm(faultless, 0)
	ph := m.bring(rt, talking)
	m.elapse(rt, time.Minute)
	m.line.hangUp(ph, conversation.EndCustomerHungUp)
	m.deliverAll(rt, ph)
	m.over = append(m.over, ph)
}

// isBroke tells whether the workspace can't pay for a call: one of days has been charged.
func (m *textModel) isBroke() bool {
	left := m.balance(m)
	return left == "0" || strings.HasPrefix(left, "-")
}

// finishCall lets somebody do what is due for a call.
func (m *textModel) finishCall(rt *rapid.T) {
	if len(m.over) == 0 {
		rt.Skip()
	}
	ph := rapid.SampledFrom(m.over).Draw(rt, "call")
	m.atWork(func(ctx context.Context) error { return m.calls.Advance(ctx, m.workspace, ph.CallID) })
}

// say lets the customer write, and everybody know at once.
func (m *textModel) say(text string) {
	report := m.message(text)
	report.CarrierID = fmt.Sprintf("theirs-%d", len(m.wrote))
	m.wrote, m.undone = append(m.wrote, report), append(m.undone, report)
	m.pushOn()
}

// write lets a customer write; somebody delivers it later.
func (m *textModel) write(rt *rapid.T) { m.writes(rt, "Hello", "", "What about breakfast?") }

func (m *textModel) keyword(rt *rapid.T) { m.writes(rt, "STOP", "start", "Help") }

func (m *textModel) writes(rt *rapid.T, texts ...string) {
	if len(m.wrote) >= 12 {
		rt.Skip()
	}
	report := m.message(rapid.SampledFrom(texts).Draw(rt, "text"))
	if report.Content == "" {
		report.MediaCount = 1
	}
	report.CarrierID = fmt.Sprintf("theirs-%d", len(m.wrote))
	report.At = report.At.Add(-time.Duration(rapid.IntRange(0, 3).Draw(rt, "seconds ago")) * time.Second)
	report.From = rapid.SampledFrom([]string{customer + "99", customer + "99", customer + "99", customer + "98"}).Draw(rt, "customer")
	report.Test = rapid.IntRange(0, 9).Draw(rt, "test") == 0
	m.wrote, m.undone = append(m.wrote, report), append(m.undone, report)
}

// pushOn delivers the latest message, and the stream follows, without delay.
func (m *textModel) pushOn() {
	last := len(m.undone) - 1
	if m.give(m.undone[last]) {
		m.undone = m.undone[:last]
	}
	m.followTo(len(m.records))
}

// deliver delivers one of the messages that wait. The carrier repeats what isn't taken.
func (m *textModel) deliver(rt *rapid.T) {
	if len(m.undone) == 0 {
		rt.Skip()
	}
	i := rapid.IntRange(0, len(m.undone)-1).Draw(rt, "message")
	if m.give(m.undone[i]) {
		m.undone = slices.Delete(m.undone, i, i+1)
	}
}

// repeat delivers a message once more, or for the first time.
func (m *textModel) repeat(rt *rapid.T) {
	if len(m.wrote) == 0 {
		rt.Skip()
	}
	m.give(rapid.SampledFrom(m.wrote).Draw(rt, "message"))
}

// give tells whether the message is taken.
func (m *textModel) give(report carrier.MessageCallback) bool {
	status := m.postText(m, report)
	if status == http.StatusOK {
		m.accepted[report.CarrierID] = true
	}
	return status == http.StatusOK
}

// tool lets the assistant want a text to be sent, or reports again that it does.
func (m *textModel) tool(rt *rapid.T) {
	if len(m.phones) == 0 && m.isBroke() {
		rt.Skip()
	}
	if len(m.phones) == 0 {
		m.saboteur.arm(faultless, 0)
		m.phones = append(m.phones, m.bring(rt, talking))
	}
	if len(m.wanted) < 3 && rapid.Bool().Draw(rt, "new") {
		m.wanted = append(m.wanted, wanted{m.phones[0], m.world.tool("Check-in is from 3 pm.")})
	}
	if len(m.wanted) == 0 {
		rt.Skip()
	}
	one := rapid.SampledFrom(m.wanted).Draw(rt, "text")
	m.callback(rt, one.WorkspaceID, one.CallID, one.report)
}

// receipt delivers a receipt, or loses it; the carrier repeats what isn't taken. Those of
// follow-ups come first.
func (m *textModel) receipt(rt *rapid.T) {
	m.fetchReceipts()
	if len(m.receipts) == 0 {
		rt.Skip()
	}
	slices.SortStableFunc(m.receipts, func(a, b carrier.MessageCallback) int { return m.rank(a) - m.rank(b) })
	i := rapid.IntRange(0, min(3, len(m.receipts)-1)).Draw(rt, "receipt")
	if m.delivers(rt, m.receipts[i]) {
		m.received = append(m.received, m.receipts[i])
		m.receipts = slices.Delete(m.receipts, i, i+1)
	}
}

func (m *textModel) fetchReceipts() {
	for {
		receipt, ok := m.line.takeReceipt()
		if !ok {
			return
		}
		m.receipts = append(m.receipts, receipt)
	}
}

func (m *textModel) rank(receipt carrier.MessageCallback) int {
	if m.line.find(receipt.MessageID).Source == conversation.SourceEvaluationFollowUp {
		return 0
	}
	return 1
}

// receiptAgain delivers a receipt that was delivered.
func (m *textModel) receiptAgain(rt *rapid.T) {
	if len(m.received) == 0 {
		rt.Skip()
	}
	m.delivers(rt, rapid.SampledFrom(m.received).Draw(rt, "receipt"))
}

// delivers tells whether a receipt is taken, or lost for good.
func (m *textModel) delivers(rt *rapid.T, receipt carrier.MessageCallback) bool {
	switch rapid.SampledFrom([]string{"as it is", "as it is", "failed", "lost"}).Draw(rt, "it is") {
	case "lost":
		return true
	case "failed":
		receipt.Status = carrier.ReceiptFailed
		m.failed[receipt.MessageID] = true
	}
	return m.reports(receipt)
}

// reports tells whether a receipt is taken. That of a follow-up is when its text is listed.
func (m *textModel) reports(receipt carrier.MessageCallback) bool {
	status := m.postText(m, receipt)
	isOld := string(receipt.MessageID) < conversation.FirstID(m.now().Add(-time.Minute))
	listed := m.item(m, m.names.ConversationsTable, "message", string(receipt.MessageID)) != nil
	if status == http.StatusOK && !listed && !isOld && m.rank(receipt) == 0 {
		m.Fatalf("the receipt of text %s, which isn't listed yet, is taken", receipt.MessageID)
	}
	return status == http.StatusOK
}

// stream follows the next records of the stream; those from the first that fails come again.
func (m *textModel) stream(rt *rapid.T) {
	if m.done == len(m.records) {
		rt.Skip()
	}
	m.followTo(m.done + rapid.IntRange(1, len(m.records)-m.done).Draw(rt, "records"))
}

func (m *textModel) followTo(end int) {
	for i := m.done; i < end; i++ {
		if at := m.arrived[i]; !at.IsZero() && m.now().After(at.Add(time.Second)) {
			m.faulty = true // the stream lags
		}
	}
	m.done = followed(m, end, m.follow(m, m.turns.steps, m.records[m.done:end]...))
}

// streamAgain follows records that were followed before.
func (m *textModel) streamAgain(rt *rapid.T) {
	if m.done == 0 {
		rt.Skip()
	}
	m.follow(m, m.turns.steps, m.records[rapid.IntRange(max(0, m.done-3), m.done-1).Draw(rt, "from"):m.done]...)
}

func (m *textModel) passSome(rt *rapid.T) {
	m.elapse(rt, rapid.SampledFrom(seconds(1, 1, 3, 5, 8, 15, 30, 100)).Draw(rt, "time"))
}

func (m *textModel) thinks(rt *rapid.T) {
	m.agent.mu.Lock()
	m.agent.takes = rapid.SampledFrom(seconds(0, 0, 2, 6, 14, 25, 60)).Draw(rt, "it takes")
	m.agent.mu.Unlock()
	switch rapid.SampledFrom([]string{"fails", "fails", "fails", "passes", "isn't polite", "has no word", "can't judge"}).Draw(rt, "it") {
	case "fails":
		m.judges(conversation.Fail, conversation.Pass)
	case "passes":
		m.judges(conversation.Pass, conversation.Pass)
	case "isn't polite":
		m.judges(conversation.Undecided, conversation.Fail)
	case "has no word":
		m.judges(conversation.Fail, conversation.Pass)
		m.agent.mu.Lock()
		m.agent.writes, m.mindless = "", true
		m.agent.mu.Unlock()
	case "can't judge":
		m.judges("", "")
	}
}

// judges says what the agent finds of the criterion that is recoverable, and of the other.
func (m *textModel) judges(recoverable, other conversation.Verdict) {
	m.agent.mu.Lock()
	defer m.agent.mu.Unlock()
	m.agent.writes, m.mindless = "What can we still do?", m.mindless || recoverable == ""
	m.agent.judges = func(c conversation.Criterion) conversation.Verdict {
		if c.Recoverable {
			return recoverable
		}
		return other
	}
}

func (m *textModel) decides(rt *rapid.T) {
	does := rapid.SampledFrom([]fate{textSent, textSent, textRefused, textMute, textLost}).Draw(rt, "texts")
	takes := rapid.SampledFrom(seconds(0, 0, 3, 8)).Draw(rt, "it takes")
	m.line.mu.Lock()
	defer m.line.mu.Unlock()
	m.mute = m.mute || does == textMute || does == textLost
	m.line.fate = func(carrier.Text) fate { return does }
	m.line.received, m.line.accepted = nil, nil
	pause := func(ctx context.Context, _ carrier.Text) {
		if takes > 0 && ctx.Value(atWork{}) != nil {
			_ = m.turns.sleep(ctx, takes) // who has crashed has asked all the same
		}
	}
	if rapid.Bool().Draw(rt, "it answers late") {
		m.line.accepted = pause
	} else {
		m.line.received = pause
	}
}

func (m *textModel) fail(rt *rapid.T) {
	if m.gentle {
		rt.Skip()
	}
	m.faulty = true
	kind := rapid.SampledFrom([]faultKind{notDone, doneUnanswered, doneTwice, crashBefore, crashAfter, slowBefore, slowAfter, slowBefore, slowAfter}).Draw(rt, "fault")
	m.saboteur.arm(kind, rapid.IntRange(0, 12).Draw(rt, "after"))
}

func (m *textModel) crash(rt *rapid.T) {
	if m.gentle {
		rt.Skip()
	}
	m.faulty = true
	m.turns.crashAll()
}

// changed looks at a message or a thread after somebody wrote it, and adds the change to the
// stream.
func (m *textModel) changed(pk string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ws, rest, _ := strings.Cut(pk, "#")
	kind, id, _ := strings.Cut(rest, "#")
	if ws != string(m.workspace) {
		return
	}
	before, it := m.images[pk], m.item(m, m.names.ConversationsTable, kind, id)
	if cmp.Equal(before.item, it, values) {
		return
	}
	after := textImage{item: it}
	data := record(m, strconv.Itoa(len(m.records)), before.item, it)
	var err error
	switch image := imageOf(data); {
	case it == nil:
	case kind == "message":
		after.message, _, err = dynamo.MessageImage([]byte(image))
	default:
		after.thread, _, err = dynamo.ThreadImage([]byte(image))
	}
	if err != nil {
		m.broken = append(m.broken, err.Error())
	}
	m.images[pk] = after
	arrived := time.Time{}
	if before.item == nil && after.message.Direction == conversation.Inbound {
		arrived = m.now()
	}
	m.records, m.arrived = append(m.records, data), append(m.arrived, arrived)
	problem := wrongMessage(before.message, after.message)
	switch {
	case kind == "thread" && cmp.Equal(before.thread, after.thread) && before.thread.Open(): // the sweep has postponed it
	case kind == "thread":
		problem = m.wrongThread(before.thread, after.thread)
	case before.item == nil:
		problem = m.wrongNew(after.message)
	}
	if problem != "" {
		m.broken = append(m.broken, fmt.Sprintf("%s: from %+v%+v to %+v%+v", problem, before.message, before.thread, after.message, after.thread))
	}
}

// wrongNew says what is wrong with a message that is stored; "" is nothing.
func (m *textModel) wrongNew(message conversation.MessageRecord) string {
	thread, err := m.threadNow(message.ThreadID)
	outbound := message.Direction == conversation.Outbound
	if !outbound {
		m.spoken[message.ThreadID] = true
	}
	switch {
	case err != nil || !thread.Open():
		return fmt.Sprintf("a message is added to a thread that isn't open: %v", err)
	case outbound && message.CallID == "" && !m.claimed[message.MessageID]:
		return "nobody has claimed it"
	case outbound && message.CallID != "" && m.hasOptedOut(keyOf(thread)):
		return "a text is stored after an opt-out"
	case outbound && message.CallID != "" && message.MessageID == followUpOf(m.callNow(message.CallID)):
		return m.countFollowUp(keyOf(thread))
	}
	return ""
}

// threadNow reads a thread, whatever befalls others' requests.
func (m *textModel) threadNow(threadID conversation.ThreadID) (conversation.ThreadRecord, error) {
	image, err := attributevalue.MarshalMapJSON(m.threadItem(m, threadID))
	if err != nil {
		return conversation.ThreadRecord{}, err
	}
	thread, _, err := dynamo.ThreadImage(image)
	return thread, err
}

// callNow reads a call, whatever befalls others' requests.
func (m *textModel) callNow(callID conversation.CallID) conversation.CallRecord {
	image, err := attributevalue.MarshalMapJSON(m.item(m, m.names.ConversationsTable, "call", string(callID)))
	if err != nil {
		m.Fatalf("%v", err)
	}
	call, _, err := dynamo.CallImage(image)
	if err != nil {
		m.Fatalf("%v", err)
	}
	return call
}

// followUpOf is the message that a completed call's follow-up is.
func followUpOf(call conversation.CallRecord) conversation.MessageID {
	return conversation.DerivedMessageID(call.WorkspaceID, "follow-up "+string(call.CallID), call.CompletedAt)
}

// countFollowUp says what is wrong with a follow-up to a customer; "" is nothing.
func (m *textModel) countFollowUp(key dynamo.ThreadKey) string {
	if m.isCapped(key) {
		return "it is a follow-up too many for one day"
	}
	day := m.dayOf(key)
	m.followUps[day]++
	m.followUps[day+key.Address]++
	return ""
}

// dayOf is the day that a customer's follow-up counts for.
func (m *textModel) dayOf(key dynamo.ThreadKey) string {
	return fmt.Sprint(m.now().Format(time.DateOnly), " test ", key.Test)
}

// wrongMessage says what is wrong with a change of a message; "" is nothing.
func wrongMessage(before, after conversation.MessageRecord) string {
	toBeSent := before.Source == conversation.SourceVoiceTool || before.Source == conversation.SourceEvaluationFollowUp && before.CallID != ""
	switch {
	case before.MessageID == "":
		return ""
	case after.MessageID == "" && (!toBeSent || !before.SentAt.IsZero()):
		return "a message is gone that was not refused"
	case after.MessageID == "":
		return ""
	case before.ThreadID != after.ThreadID || before.Content != after.Content:
		return "it is another message"
	case !before.MarkedAt.IsZero() && after.MarkedAt != before.MarkedAt:
		return "it is marked twice"
	case !before.SentAt.IsZero() && after.SentAt != before.SentAt:
		return "it is sent twice"
	case before.Reply != nil && *after.Reply != *before.Reply:
		return "it has another reply"
	case before.ProviderMessageID != "" && after.ProviderMessageID != before.ProviderMessageID:
		return "the carrier's id changed"
	}
	return ""
}

// wrongThread says what is wrong with a change of a thread; "" is nothing.
func (m *textModel) wrongThread(before, after conversation.ThreadRecord) string {
	claimed := after.Claim != nil && (before.Claim == nil || before.Claim.ReplyID != after.Claim.ReplyID)
	ended := before.Claim != nil && (after.Claim == nil || after.Claim.ReplyID != before.Claim.ReplyID)
	switch {
	case after.ThreadID == "" && (before.MessageCount != 1 || busy(before) || before.Attempt != nil || before.Turns > 0):
		return "it is gone, and had more than one text that was refused"
	case after.ThreadID == "":
		return ""
	case after.Open() && after.MessageCount == 0 && after.Attempt == nil:
		return "nothing is left in it, and it stays"
	case after.Version <= before.Version:
		return "the version did not grow"
	case !before.Open():
		return "it was completed"
	case claimed && before.Claim != nil:
		return "a claim took the place of another"
	case claimed && m.hasOptedOut(keyOf(after)):
		return "a turn is claimed after an opt-out"
	case after.Turns < before.Turns || after.Turns > before.Turns+1:
		return "the turns don't count"
	case !ended && !claimed && after.Turns == before.Turns && len(after.Unanswered) < len(before.Unanswered):
		return "a message is left unanswered by nobody"
	case before.Claim != nil && !ended && !slices.Equal(before.Claim.Messages, after.Claim.Messages):
		return "the claim changed"
	}
	if claimed {
		m.claimed[after.Claim.ReplyID] = true
		for _, messageID := range after.Claim.Messages {
			if other := m.answers[messageID]; other != "" {
				return fmt.Sprintf("message %s is answered by %s already", messageID, other)
			}
			m.answers[messageID] = after.Claim.ReplyID
		}
	}
	if problem := m.wrongAttempt(before, after); problem != "" || after.Open() {
		return problem
	}
	m.ends[after.ThreadID]++
	return m.wrongEnd(before, after)
}

// wrongAttempt says what is wrong with a change of a thread's follow-up; "" is nothing.
func (m *textModel) wrongAttempt(before, after conversation.ThreadRecord) string {
	was, is := before.Attempt, after.Attempt
	forward := map[conversation.FollowUpStatus][]conversation.FollowUpStatus{
		conversation.FollowUpPending:   {conversation.FollowUpSent, conversation.FollowUpDelivered, conversation.FollowUpFailed, conversation.FollowUpAmbiguous},
		conversation.FollowUpAmbiguous: {conversation.FollowUpSent, conversation.FollowUpDelivered, conversation.FollowUpFailed},
		conversation.FollowUpSent:      {conversation.FollowUpDelivered, conversation.FollowUpFailed},
	}
	switch {
	case is == nil && was != nil && after.Open():
		return "its follow-up is forgotten"
	case is == nil:
		return ""
	case was != nil && was.MessageID != is.MessageID:
		return "it has another follow-up"
	case was != nil && was.Status != is.Status && !slices.Contains(forward[was.Status], is.Status):
		return "its follow-up went backward"
	case was != nil:
		return ""
	}
	m.spoken[after.ThreadID] = false
	m.claimed[is.MessageID] = true
	switch {
	case is.Status != conversation.FollowUpPending:
		return "a follow-up is sent that was not claimed"
	case m.hasOptedOut(keyOf(after)):
		return "a follow-up is claimed after an opt-out"
	case len(after.FollowedUp) > len(before.FollowedUp): // a call's, which joins whatever is under way, and is counted as a message
		return ""
	case m.underway(before):
		return "a follow-up is claimed while something is under way"
	}
	return m.countFollowUp(keyOf(after))
}

// underway tells whether something goes on in a thread, or did until a moment ago.
func (m *textModel) underway(thread conversation.ThreadRecord) bool {
	return busy(thread) || m.now().Before(thread.LastArrivalAt.Add(textInactivity))
}

func busy(thread conversation.ThreadRecord) bool {
	return thread.Claim != nil || len(thread.Unanswered)+len(thread.Unmarked) > 0 ||
		thread.Attempt != nil && thread.Attempt.Status == conversation.FollowUpPending
}

// wrongEnd says what is wrong with the completion of a thread; "" is nothing. Why it closes
// must be true of what was written.
func (m *textModel) wrongEnd(before, after conversation.ThreadRecord) string {
	optedOut, spoken := m.hasOptedOut(keyOf(before)), m.spoken[before.ThreadID]
	attempt, status := before.Attempt, conversation.FollowUpStatus("")
	waited := attempt != nil && !spoken && !m.now().Before(attempt.AnswerBy.Time) // in vain
	if attempt != nil {
		status = attempt.Status
	}
	listed, words := 0, false
	for _, one := range m.images {
		if said := one.message; said.ThreadID == before.ThreadID {
			listed++
			words = words || said.Direction == conversation.Inbound && said.Content != "" && m.line.Keyword(said.Content) == ""
		}
	}
	took := status == conversation.FollowUpSent || status == conversation.FollowUpDelivered
	failed := func(title string) bool {
		return slices.ContainsFunc(after.Evaluations, func(e conversation.Evaluation) bool { return e.Title == title && e.Result == conversation.Fail })
	}
	isTrue, known := map[conversation.CloseReason]bool{
		conversation.CustomerOptedOut:      optedOut,
		conversation.EmptyTranscript:       !words && (attempt == nil || spoken),
		conversation.GradingFailed:         (words || waited && took) && m.mindless && after.Evaluations == nil,
		conversation.Graded:                words && len(after.Evaluations) == 2 && (attempt == nil || spoken || waited && !took || status == conversation.FollowUpFailed),
		conversation.FollowUpNoCriteria:    attempt == nil && failed(politeCriterion) && !failed(answeredCriterion) && len(after.Evaluations) == 1,
		conversation.FollowUpFailedReason:  status == conversation.FollowUpFailed && m.hasFailed(attempt.MessageID) || attempt == nil && m.mindless,
		conversation.FollowUpDailyCap:      attempt == nil && m.isCapped(keyOf(before)),
		conversation.NoReplyAfterFollowUp:  waited && took && len(after.Evaluations) == 2,
		conversation.FollowUpSendAmbiguous: waited && status == conversation.FollowUpAmbiguous && (m.mute || m.faulty),
	}[after.CloseReason]
	switch {
	case !known || !isTrue || optedOut != (after.CloseReason == conversation.CustomerOptedOut):
		return fmt.Sprintf("it closes as %s, and isn't", after.CloseReason)
	case busy(before):
		return "it completes while something is under way"
	case !optedOut && m.underway(before) && !waited:
		return "it completes before it is quiet"
	case !optedOut && attempt != nil && !spoken && !waited && status != conversation.FollowUpFailed:
		return "it doesn't wait for the answer"
	case after.MessageCount != listed || before.MessageCount != listed:
		return fmt.Sprintf("it counts %d of %d messages", after.MessageCount, listed)
	case attempt != nil && !cmp.Equal(after.FollowUps, []conversation.FollowUp{attempt.FollowUp}):
		return "it shows another follow-up"
	}
	return ""
}

// hasFailed tells whether the carrier has said so of a text.
func (m *textModel) hasFailed(messageID conversation.MessageID) bool {
	m.line.mu.Lock()
	defer m.line.mu.Unlock()
	text := m.line.find(messageID)
	return m.failed[messageID] || text != nil && text.refused > 0
}

// isCapped tells whether a customer gets no follow-up today.
func (m *textModel) isCapped(key dynamo.ThreadKey) bool {
	day := m.dayOf(key)
	return m.followUps[day] >= textDailyCap || m.followUps[day+key.Address] >= 1
}

// hasOptedOut tells what the customer's item says.
func (m *textModel) hasOptedOut(key dynamo.ThreadKey) bool {
	scope := string(key.Channel)
	if key.Test {
		scope = "test_" + scope
	}
	it := m.item(m, m.names.WorkspacesTable, "customer", key.Address)
	out, _ := it[scope+"_opted_out"].(*types.AttributeValueMemberBOOL)
	return out != nil && out.Value
}

// check looks at what holds at any time.
func (m *textModel) check(rt *rapid.T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.broken) > 0 {
		rt.Fatalf("%s", strings.Join(m.broken, "\n"))
	}
	open := map[dynamo.ThreadKey]conversation.ThreadID{}
	stored := map[string]conversation.MessageID{}
	listed := map[conversation.ThreadID]int{}
	for _, one := range m.images {
		listed[one.message.ThreadID]++
	}
	for _, pk := range slices.Sorted(maps.Keys(m.images)) {
		one := m.images[pk]
		if thread := one.thread; thread.MessageCount != listed[thread.ThreadID] && thread.ThreadID != "" {
			rt.Fatalf("thread %s counts %d of %d messages", thread.ThreadID, thread.MessageCount, listed[thread.ThreadID])
		}
		if thread := one.thread; thread.ThreadID != "" && thread.Open() {
			if other := open[keyOf(thread)]; other != "" {
				rt.Fatalf("threads %s and %s are open for the same customer", other, thread.ThreadID)
			}
			open[keyOf(thread)] = thread.ThreadID
		}
		if message := one.message; message.MessageID != "" && m.images[string(m.workspace)+"#thread#"+string(message.ThreadID)].item == nil {
			rt.Fatalf("message %s is in no thread", message.MessageID)
		}
		if message := one.message; message.Direction == conversation.Inbound {
			if other := stored[message.ProviderMessageID]; other != "" {
				rt.Fatalf("message %s is stored as %s and %s", message.ProviderMessageID, other, message.MessageID)
			}
			stored[message.ProviderMessageID] = message.MessageID
		}
	}
	for key, last := range m.optOuts() {
		if want := m.line.Keyword(last.Content) == carrier.OptOutWord; m.hasOptedOut(key) != want {
			rt.Fatalf("customer %+v has opted out: %t, and wrote %+v", key, !want, last)
		}
	}
	for carrierID := range m.accepted {
		if stored[carrierID] == "" {
			rt.Fatalf("message %s is taken, and isn't stored", carrierID)
		}
	}
	for _, text := range m.line.texts {
		if again := text.Source == conversation.SourceVoiceTool; text.asked > 1 && !again || text.asked > 1+text.refused {
			rt.Fatalf("the carrier was asked %d times to send %+v, and refused it %d times", text.asked, text.Text, text.refused)
		}
	}
	for _, run := range m.runs {
		thread := m.images[string(m.workspace)+"#thread#"+string(run.threadID)].thread
		awaits := thread.Attempt != nil && thread.Attempt.Status != conversation.FollowUpFailed && !m.spoken[thread.ThreadID]
		if m.done == len(m.records) && thread.Open() && run.token != "" && !awaits && m.turns.steps.isWaiting(run.token) {
			rt.Fatalf("nobody wakes the task that waits for %s", run.threadID)
		}
	}
}

// optOuts are the customers' last words about whether they want to hear from us.
func (m *textModel) optOuts() map[dynamo.ThreadKey]conversation.MessageRecord {
	last := map[dynamo.ThreadKey]conversation.MessageRecord{}
	for _, one := range m.images {
		message := one.message
		word := m.line.Keyword(message.Content)
		if message.Direction != conversation.Inbound || word != carrier.OptOutWord && word != carrier.OptInWord {
			continue
		}
		key := dynamo.ThreadKey{Number: message.Number, Address: message.Address, Channel: message.Channel, Test: message.IsTest}
		before, any := last[key]
		later := message.OccurredAt.Compare(before.OccurredAt.Time)
		if !any || later > 0 || later == 0 && word == carrier.OptOutWord {
			last[key] = message
		}
	}
	return last
}

// quiesce lets everybody come to an end, and looks at what they made.
func (m *textModel) quiesce() {
	m.saboteur.arm(faultless, 0)
	m.agent.mu.Lock()
	m.agent.takes = 0
	m.agent.mu.Unlock()
	for _, report := range m.undone {
		if !m.give(report) {
			m.Fatalf("message %s is not taken", report.CarrierID)
		}
	}
	for _, one := range m.wanted {
		m.goOn(time.Minute)
		if status, _ := m.callback(m, one.WorkspaceID, one.CallID, one.report); status != http.StatusOK {
			m.Fatalf("a text that is wanted: status %d", status)
		}
	}
	sweeps := m.abandoned || rapid.Bool().Draw(m.T, "sweeps")
	for range 60 {
		for _, ph := range m.over {
			m.atWork(func(ctx context.Context) error { return m.calls.Advance(ctx, m.workspace, ph.CallID) })
		}
		if m.goOn(4 * time.Minute); sweeps {
			m.sweep()
		}
		m.check(m.T)
		if m.isQuiet() {
			break
		}
	}
	m.goOn(2 * time.Minute)
	m.check(m.T)
	m.ended()
	for _, item := range m.turns.queued {
		if gone := m.faulty && item.failures == mostReceives; len(item.ended) != 1 && !gone {
			m.Fatalf("item %+v is not acknowledged", item)
		}
	}
	carried, replies, claimed := map[string]int{}, 0, slices.Collect(maps.Values(m.answers))
	for _, message := range m.messages(m) {
		switch {
		case message.Direction == conversation.Inbound:
			after := message.MarkedAt.Sub(message.ArrivedAt.Time)
			if after < 15*time.Second || !m.faulty && after > 30*time.Second {
				m.Fatalf("message %s is marked %s after its arrival", message.MessageID, after)
			}
			if message.Reply != nil {
				carried[fmt.Sprint(message.ThreadID, message.Reply.Content, message.Reply.Timestamp)]++
			}
		case message.SentAt.IsZero():
			m.Fatalf("message %s is listed, and not taken to be sent", message.MessageID)
		case slices.Contains(claimed, message.MessageID):
			replies++
		}
	}
	if len(carried) != replies {
		m.Fatalf("%d replies are listed, and messages carry %v", replies, carried)
	}
	for _, text := range m.line.texts {
		listed := m.images[string(m.workspace)+"#message#"+string(text.MessageID)].item != nil
		if listed && !m.faulty && text.refused == text.asked {
			m.Fatalf("text %+v was refused, and is listed", text.Text)
		}
		if message, err := m.store.MessageRecord(m.ctx, m.workspace, text.MessageID); text.sent && (err != nil || message.Content != text.Content) {
			m.Fatalf("text %+v was sent, and listed is %+v, %v", text.Text, message, err)
		}
	}
}

// isQuiet tells whether nothing is left to do.
func (m *textModel) isQuiet() bool {
	for _, one := range m.images {
		if one.thread.ThreadID != "" && one.thread.Open() {
			return false
		}
	}
	for _, ph := range m.over {
		if call := m.read(m, ph.CallID); call.CompletedAt.IsZero() || strings.HasPrefix(statusOf(call.CallRecord), "pending") {
			return false
		}
	}
	return m.done == len(m.records) && !m.turns.busy()
}

// ended looks at how conversations and calls have ended.
func (m *textModel) ended() {
	followedUp := map[conversation.CallID]bool{}
	for _, thread := range m.allThreads(m) {
		if thread.Open() || m.ends[thread.ThreadID] != 1 {
			m.Fatalf("thread %+v has completed %d times", thread, m.ends[thread.ThreadID])
		}
		m.checkThread(m, thread)
		key := []string{"open_thread", thread.Number, thread.Address, string(thread.Channel)}
		if thread.IsTest {
			key = append(key, "test")
		}
		it := m.threadItem(m, thread.ThreadID)
		if pointer := m.item(m, m.names.ConversationsTable, key...); pointer != nil || it["open_shard"] != nil || it["open_until"] != nil {
			m.Fatalf("thread %s is completed, and %v names an open one, or the sweep sees it", thread.ThreadID, pointer)
		}
		for _, callID := range thread.FollowedUp {
			followedUp[callID] = true
			if strings.Count(results(m.read(m, callID).Evaluations), "after") != 2 {
				t := m.read(m, callID)
				m.Fatalf("call %s doesn't know what its follow-up made of its evaluations: %+v", callID, t.Evaluations)
			}
		}
	}
	for _, ph := range m.over {
		call := m.read(m, ph.CallID)
		status := strings.TrimSuffix(statusOf(call.CallRecord), " by sms")
		switch sent := m.asked(followUpOf(call.CallRecord)); {
		case call.CompletedAt.IsZero() || status == "pending":
			m.Fatalf("call %s has not come to its end: %+v", ph.CallID, call)
		case followedUp[ph.CallID] && (status == "" || status == "skipped"), sent > 0 && (status == "" || status == "skipped"):
			m.Fatalf("the follow-up of call %s is in a conversation, and %q", ph.CallID, status)
		}
	}
}
