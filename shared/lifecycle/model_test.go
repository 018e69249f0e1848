package lifecycle_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// Everybody who has a part in a call's life acts in a random order: POST and its
// repetitions, the carrier, its callbacks (lost, doubled, late, out of order), the stream,
// the state machine as its definition says, the sweep; the carrier is out of order at
// times, requests to DynamoDB fail before or after their effect, functions crash. At every
// write a call moves forward only. Whenever nobody acts, slots and balance are as the calls
// say. When all is quiet and the sweep has run once, every call is resolved.
func TestLife(t *testing.T) {
	stage := newStage(t)
	watch := &watcher{HTTPClient: stage.cfg.HTTPClient, names: stage.names.ConversationsTable}
	watched := stage.cfg
	watched.HTTPClient = watch
	store, machine, asl := dynamo.New(watched, stage.names), newSteps(t), callLifecycle(t)
	rapid.Check(t, func(rt *rapid.T) {
		watch.fault(faultless, 0)
		machine.started, machine.waiting = map[string]string{}, map[string]bool{}
		m := &model{
			T: rt, world: stage.newWorld(t, store), steps: machine, watch: watch, asl: asl,
			runs: map[conversation.CallID]*execution{}, images: map[string]image{},
		}
		watch.changed = m.changed
		defer func() { watch.changed = nil }()
		rt.Repeat(map[string]func(*rapid.T){
			"":              m.check,
			"post":          m.post,
			"post goes on":  m.goOn,
			"incoming":      m.ring,
			"phone":         m.phone,
			"phone again":   m.phone,
			"late phone":    m.late,
			"report":        m.deliverOne,
			"next report":   m.deliverOne,
			"repeat":        m.repeat,
			"stream":        m.stream,
			"stream again":  m.streamAgain,
			"machine":       m.machine,
			"machine again": m.machine,
			"time":          m.passSome,
			"sweep":         m.sweep,
			"outage":        m.outage,
			"fault":         m.fail,
			"crash":         m.crash,
		})
		m.quiesce()
	})
}

// model is a world in which everybody acts.
type model struct {
	*rapid.T
	*world
	steps *steps
	watch *watcher
	asl   definition

	posts   []*post
	callers []*phone // of customers who rang
	runs    map[conversation.CallID]*execution
	lates   []carrier.Placement // phones that will ring though nobody expects it
	reports []sent              // all that phones have reported
	undone  []int               // those that nobody has delivered yet

	mu      sync.Mutex
	images  map[string]image // of calls, by key
	records []string         // of the stream
	done    int              // records that were followed
	dirty   bool             // somebody wrote since the last check
	broken  []string         // what was wrong with a write
}

type image struct {
	item map[string]types.AttributeValue
	call conversation.CallRecord
}

type sent struct {
	*phone
	report carrier.Callback
}

// post is a request to place a call, on its way through create-call.
type post struct {
	call   conversation.CallRecord
	plan   string // what the carrier does
	next   func(*post)
	status int // 0: nobody knows
}

var plans = []string{"accepts", "accepts", "accepts", "refuses", "refuses, yet rings late", "no answer, rings", "no answer, rings late", "no answer"}

// createTimeout is how long create-call lives.
const createTimeout = 15 * time.Second

func (m *model) post(rt *rapid.T) {
	if len(m.posts) >= 4 {
		rt.Skip()
	}
	call := m.newCall(customer + "99")
	key := rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(rt, "key")
	if key != "" {
		call.IdempotencyKey = dynamo.HashIdempotencyKey(key)
	}
	p := &post{call: call, plan: rapid.SampledFrom(plans).Draw(rt, "carrier"), next: m.acceptPost}
	m.posts = append(m.posts, p)
	for range rapid.IntRange(1, 3).Draw(rt, "steps") {
		m.step(p)
	}
}

func (m *model) goOn(rt *rapid.T) {
	p := pick(rt, "post", m.posts, func(p *post) bool { return p.next != nil })
	m.step(p)
}

// step does a request's next step, if its function is still alive.
func (m *model) step(p *post) {
	if next := p.next; next != nil {
		p.next = nil
		if m.now().Before(p.call.StartedAt.Add(createTimeout)) {
			next(p)
		}
	}
}

func (m *model) acceptPost(p *post) {
	replay, err := m.store.AcceptCall(m.ctx, dynamo.Acceptance{
		Call: p.call, ConcurrentCalls: 100, CallsPerHour: 1000, Until: p.call.StartedAt.Add(m.calls.Scale.Pickup() + time.Minute),
	})
	switch {
	case err != nil:
		p.status = 500
	case replay != "":
		p.status = 201
		if other := m.postOf(replay); other == nil || other.call.IdempotencyKey != p.call.IdempotencyKey || p.call.IdempotencyKey == "" {
			m.Fatalf("the key of %s replays %s, which is another's", p.call.CallID, replay)
		}
	default:
		p.next = m.placePost
	}
}

func (m *model) postOf(callID conversation.CallID) *post {
	for _, p := range m.posts {
		if p.call.CallID == callID {
			return p
		}
	}
	return nil
}

func (m *model) placePost(p *post) {
	if m.line.out != nil {
		p.status = 201
		return
	}
	switch p.plan {
	case "accepts":
		m.line.dial(placement(p.call))
		p.next = m.notePost
	case "refuses", "refuses, yet rings late":
		p.next = m.refusePost
	case "no answer, rings":
		m.line.dial(placement(p.call))
		p.status = 201
	default:
		p.status = 201
	}
	if strings.HasSuffix(p.plan, "late") {
		m.lates = append(m.lates, placement(p.call))
	}
}

// notePost does as create-call does once the carrier has accepted.
func (m *model) notePost(p *post) {
	p.status = 201
	ref := placement(p.call).Ref
	ref.CarrierID = m.line.phones[p.call.CallID].CarrierID
	if err := m.store.SetCarrierID(m.ctx, p.call, ref.CarrierID); !errors.Is(err, dynamo.ErrStale) {
		return
	}
	if now, err := m.store.CallRecord(m.ctx, p.call.WorkspaceID, p.call.CallID); err == nil && now.Status == conversation.CallError {
		_ = m.line.EndCall(m.ctx, ref, conversation.EndCanceled)
	}
}

// refusePost does as create-call does once the carrier has refused.
func (m *model) refusePost(p *post) {
	p.status = 500
	err := m.store.RefuseCall(m.ctx, p.call, m.now())
	if errors.Is(err, dynamo.ErrStale) {
		now, readErr := m.store.CallRecord(m.ctx, p.call.WorkspaceID, p.call.CallID)
		switch {
		case readErr != nil || now.Status != conversation.CallError:
			return
		case p.call.IdempotencyKey == "":
			err = nil
		default:
			err = m.store.FreeKey(m.ctx, p.call)
		}
	}
	if err == nil {
		p.status = 502
		m.checkRefused(p)
	}
}

// checkRefused looks at a call that was answered with 502.
func (m *model) checkRefused(p *post) {
	it := m.callItem(m, p.call.CallID)
	if textOf(it, "status") != "error" {
		m.Fatalf("502, yet the call is %q", textOf(it, "status"))
	}
	if key := m.item(m, m.names.ConversationsTable, "idempotency", p.call.IdempotencyKey); textOf(key, "call_id") == string(p.call.CallID) {
		m.Fatalf("502, yet the key names the call")
	}
}

func (m *model) phone(rt *rapid.T) {
	ph := pick(rt, "phone", m.phones(), func(ph *phone) bool {
		return ph.state.Phase == carrier.Dialling || ph.state.Phase == carrier.Talking
	})
	for range rapid.IntRange(1, 3).Draw(rt, "steps") {
		m.move(rt, ph)
		m.collect(ph)
		m.pass(5 * time.Second)
	}
}

func (m *model) move(rt *rapid.T, ph *phone) {
	does := []string{"hangs up", "hangs up", "hangs up", "falls silent"}
	if ph.state.Phase == carrier.Dialling {
		does = []string{"rings", "rings", "is answered", "is answered", "is answered", "is busy", "falls silent"}
	}
	switch rapid.SampledFrom(does).Draw(rt, "it") {
	case "rings":
		m.line.ring(ph)
	case "is answered":
		m.line.answer(ph)
	case "is busy":
		m.line.hangUp(ph, conversation.EndBusy)
	case "hangs up":
		m.line.hangUp(ph, conversation.EndCustomerHungUp)
	case "falls silent":
		ph.forgotten, ph.state.Phase = true, carrier.Failed
	}
}

// ring lets a customer ring.
func (m *model) ring(rt *rapid.T) {
	if len(m.callers) >= 2 {
		rt.Skip()
	}
	call := m.newCall(customer + "42")
	ph := m.line.dial(placement(call))
	ph.state.Phase, ph.answeredAt = carrier.Talking, m.now() // as soon as we say what to do
	m.callers = append(m.callers, ph)
	report := m.world.incoming(rapid.Bool().Draw(rt, "test"))
	report.CarrierID = ph.CarrierID
	m.undone = append(m.undone, len(m.reports))
	m.reports = append(m.reports, sent{ph, report})
}

// phones are all that ring or rang, in the order of their calls.
func (m *model) phones() []*phone {
	all := slices.Clone(m.callers)
	for _, p := range m.posts {
		if ph := m.line.phones[p.call.CallID]; ph != nil {
			all = append(all, ph)
		}
	}
	return all
}

func (m *model) collect(ph *phone) {
	for {
		report, ok := m.line.take(ph)
		if !ok {
			return
		}
		m.undone = append(m.undone, len(m.reports))
		m.reports = append(m.reports, sent{ph, report})
	}
}

// late lets a phone ring that nobody expects any more.
func (m *model) late(rt *rapid.T) {
	if len(m.lates) == 0 {
		rt.Skip()
	}
	m.line.ring(m.line.dial(m.lates[0]))
	m.lates = m.lates[1:]
}

// deliverOne delivers one of the reports that wait, or loses it.
func (m *model) deliverOne(rt *rapid.T) {
	if len(m.undone) == 0 {
		rt.Skip()
	}
	i := rapid.IntRange(0, len(m.undone)-1).Draw(rt, "report")
	n := m.undone[i]
	m.undone = slices.Delete(m.undone, i, i+1)
	if rapid.IntRange(0, 5).Draw(rt, "lost") == 0 {
		return
	}
	if m.give(m.reports[n]) != http.StatusOK {
		m.undone = append(m.undone, n) // the carrier repeats it
	}
}

// repeat delivers a report once more.
func (m *model) repeat(rt *rapid.T) {
	if len(m.reports) == 0 {
		rt.Skip()
	}
	m.give(rapid.SampledFrom(m.reports).Draw(rt, "report"))
}

// give delivers a report. The phone of a call that isn't wanted is told to hang up, and no
// other is.
func (m *model) give(s sent) int {
	status, told := m.callback(m, s.WorkspaceID, s.CallID, s.report)
	if status == http.StatusNotFound && m.callItem(m, s.CallID) == nil {
		return status // what is reported of a customer's call before it came
	}
	if status != http.StatusOK {
		return status
	}
	call, err := m.callOf(s.CallID)
	if err != nil {
		m.Fatalf("%s: %v", s.report.Event, err)
	}
	wanted := call.Active() && call.HungUpAt.IsZero()
	switch {
	case told.Script != (carrier.Script{}) && !wanted:
		m.Fatalf("the assistant speaks in a call that is %s", call.Status)
	case s.report.Event == carrier.EventAnswered && !wanted && !told.HangUp:
		m.Fatalf("answered while %s, and not told to hang up", call.Status)
	case s.report.Event == carrier.EventProgress && call.Status == conversation.CallError && !told.HangUp:
		m.Fatalf("it rings while in error, and isn't told to hang up")
	case told.HangUp && wanted:
		m.Fatalf("told to hang up a call that is wanted")
	}
	m.line.told(s.phone, told)
	m.collect(s.phone)
	return status
}

func (m *model) callOf(callID conversation.CallID) (conversation.CallRecord, error) {
	return decode(m.callItem(m, callID))
}

func decode(it map[string]types.AttributeValue) (conversation.CallRecord, error) {
	data, err := attributevalue.MarshalMapJSON(it)
	if err != nil {
		return conversation.CallRecord{}, err
	}
	call, _, err := dynamo.CallImage(data)
	return call, err
}

// stream follows the next records of the stream; those from the first that fails come again.
func (m *model) stream(rt *rapid.T) {
	if m.done == len(m.records) {
		rt.Skip()
	}
	m.followTo(m.done + rapid.IntRange(1, len(m.records)-m.done).Draw(rt, "records"))
}

func (m *model) followTo(end int) {
	m.done = followed(m, end, m.follow(m, m.steps, m.records[m.done:end]...))
}

// followed is how many of the stream's records, up to end, are done with: those before the
// first that failed.
func followed(t fatal, end int, failed []string) int {
	if len(failed) == 0 {
		return end
	}
	n, err := strconv.Atoi(failed[0])
	if err != nil {
		t.Fatalf("failed %q", failed)
	}
	return n
}

// streamAgain follows records that were followed before.
func (m *model) streamAgain(rt *rapid.T) {
	if m.done == 0 {
		rt.Skip()
	}
	m.follow(m, m.steps, m.records[rapid.IntRange(0, m.done-1).Draw(rt, "from"):m.done]...)
}

func (m *model) machine(rt *rapid.T) {
	e := pick(rt, "execution", m.executions(), func(e *execution) bool { return e.ended == "" })
	for range rapid.IntRange(1, 3).Draw(rt, "steps") {
		e.run(m)
	}
}

// executions are all that were started, in the order of their calls.
func (m *model) executions() []*execution {
	var all []*execution
	for _, callID := range m.callIDs() {
		if m.steps.started[string(callID)] == "" {
			continue
		}
		if m.runs[callID] == nil {
			m.runs[callID] = m.steps.execution(m, m.world, m.asl, callID)
		}
		all = append(all, m.runs[callID])
	}
	return all
}

func (m *model) callIDs() []conversation.CallID {
	var all []conversation.CallID
	for _, p := range m.posts {
		all = append(all, p.call.CallID)
	}
	for _, ph := range m.callers {
		all = append(all, ph.CallID)
	}
	return all
}

func (m *model) passSome(rt *rapid.T) {
	m.pass(rapid.SampledFrom([]time.Duration{
		time.Second, time.Second, 5 * time.Second, 5 * time.Second, 20 * time.Second, 40 * time.Second, 2 * time.Minute, 6 * time.Minute, 61 * time.Minute,
	}).Draw(rt, "time"))
}

func (m *model) sweep(*rapid.T) { _ = m.calls.Sweep(m.ctx) } // what fails comes again

func (m *model) outage(rt *rapid.T) {
	m.line.out = nil
	if rapid.IntRange(0, 2).Draw(rt, "out") == 0 {
		m.line.out = errOutOfOrder
	}
}

func (m *model) fail(rt *rapid.T) {
	kind := rapid.SampledFrom([]faultKind{notDone, doneUnanswered, doneTwice}).Draw(rt, "fault")
	m.watch.fault(kind, rapid.IntRange(0, 6).Draw(rt, "after"))
}

func (m *model) crash(rt *rapid.T) {
	if rapid.Bool().Draw(rt, "a request") {
		pick(rt, "post", m.posts, func(p *post) bool { return p.next != nil }).next = nil
		return
	}
	pick(rt, "execution", m.executions(), func(e *execution) bool { return e.ended == "" }).ended = "failed"
}

func pick[E any](rt *rapid.T, name string, all []*E, is func(*E) bool) *E {
	var some []*E
	for _, one := range all {
		if is(one) {
			some = append(some, one)
		}
	}
	if len(some) == 0 {
		rt.Skip()
	}
	return rapid.SampledFrom(some).Draw(rt, name)
}

// changed looks at a call after somebody wrote it, and adds the change to the stream.
func (m *model) changed(pk string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dirty = true
	callID := conversation.CallID(pk[strings.LastIndex(pk, "#")+1:])
	if !strings.HasPrefix(pk, string(m.workspace)) {
		return
	}
	before, it := m.images[pk], m.callItem(m, callID)
	if it == nil || cmp.Equal(before.item, it, values) {
		return
	}
	after, err := decode(it)
	if err != nil {
		m.broken = append(m.broken, err.Error())
	}
	m.images[pk] = image{it, after}
	m.records = append(m.records, record(m, strconv.Itoa(len(m.records)), before.item, it))
	if problem := wrong(before, image{it, after}); problem != "" {
		m.broken = append(m.broken, fmt.Sprintf("%s: from %+v to %+v", problem, before.call, after))
	}
}

var forward = map[conversation.CallStatus][]conversation.CallStatus{
	"":                          {conversation.CallQueued, conversation.CallInProgress},
	conversation.CallQueued:     {conversation.CallQueued, conversation.CallInProgress, conversation.CallError},
	conversation.CallInProgress: {conversation.CallInProgress, conversation.CallEnded, conversation.CallError},
	conversation.CallEnded:      {conversation.CallEnded},
	conversation.CallError:      {conversation.CallError},
}

// wrong says what is wrong with a write; "" is nothing.
func wrong(before, after image) string {
	open := after.item["open_shard"] != nil && after.item["open_until"] != nil
	closed := after.item["open_shard"] == nil && after.item["open_until"] == nil
	resolved := after.call.Status == conversation.CallError || !after.call.CompletedAt.IsZero()
	switch {
	case !slices.Contains(forward[before.call.Status], after.call.Status):
		return "the status moved back"
	case !before.call.HungUpAt.IsZero() && after.call.HungUpAt != before.call.HungUpAt:
		return "hung_up_at moved"
	case !before.call.DiallingAt.IsZero() && after.call.DiallingAt != before.call.DiallingAt:
		return "dialling_at moved"
	case !before.call.CompletedAt.IsZero() && after.call.CompletedAt != before.call.CompletedAt:
		return "completed_at moved"
	case before.call.Status == "" && (after.call.Status == conversation.CallQueued) != (after.call.Direction == conversation.Outbound):
		return "it begins as no call does"
	case before.call.Status != "" && after.call.StartedAt != before.call.StartedAt:
		return "started_at moved"
	case before.call.CarrierID != "" && after.call.CarrierID != before.call.CarrierID:
		return "the carrier's id changed"
	case before.call.TokenAt > after.call.TokenAt:
		return "an earlier attempt's token is back"
	case before.call.EndReason != "" && after.call.EndReason != before.call.EndReason:
		return "end_reason changed"
	case resolved && !closed || !resolved && !open:
		return "open and status contradict each other"
	case (after.call.Status == conversation.CallEnded) != (after.item["transcript"] != nil):
		return "ended and transcript contradict each other"
	case after.call.Status != conversation.CallQueued && after.call.Status != conversation.CallError && after.call.DiallingAt.IsZero():
		return "it is dialled at no time"
	}
	return ""
}

// check compares slots and balance with the calls.
func (m *model) check(rt *rapid.T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.broken) > 0 {
		rt.Fatalf("%s", strings.Join(m.broken, "\n"))
	}
	if !m.dirty {
		return
	}
	m.dirty = false
	active, charged := 0, decimal.Zero
	for _, one := range m.images {
		if one.call.Active() && one.call.HoldsSlot {
			active++
		}
		if one.call.Costs != nil {
			charged = charged.Add(decimal.RequireFromString(one.call.Costs.Total))
		}
	}
	if got := m.slots(rt); got != strconv.Itoa(active) && !(got == "" && active == 0) {
		rt.Fatalf("%s active calls are counted, and %d are", got, active)
	}
	if got, want := decimal.RequireFromString(m.balance(rt)), decimal.RequireFromString("25.5").Sub(charged); !got.Equal(want) {
		rt.Fatalf("the balance is %s, and the calls say %s", got, want)
	}
	for _, ph := range m.phones() {
		if ph.placements > 1 {
			rt.Fatalf("call %s was dialled %d times", ph.CallID, ph.placements)
		}
	}
}

// quiesce lets everybody come to an end, with the last reports delivered or lost, and the
// machines running on or gone. Then it sweeps once, and every call must be resolved.
func (m *model) quiesce() {
	m.watch.fault(faultless, 0)
	m.line.out = nil
	for _, p := range m.posts {
		for range 3 {
			m.step(p)
		}
	}
	for _, ph := range m.phones() {
		if rapid.Bool().Draw(m.T, "it is answered in the end") {
			m.line.answer(ph)
		}
		m.line.hangUp(ph, conversation.EndCustomerHungUp)
		m.collect(ph)
	}
	if rapid.Bool().Draw(m.T, "the last reports arrive") {
		for _, n := range m.undone {
			if status := m.give(m.reports[n]); status != http.StatusOK && status != http.StatusNotFound {
				m.Fatalf("%s: status %d", m.reports[n].report.Event, status)
			}
		}
	}
	m.undone = nil
	runs := rapid.Bool().Draw(m.T, "the machines go on")
	settle := func() {
		for range 40 {
			if m.done < len(m.records) {
				m.followTo(len(m.records))
			}
			for _, e := range m.executions() {
				for e.run(m) {
				}
			}
			m.pass(5 * time.Minute)
		}
	}
	if runs {
		settle()
	}
	m.pass(3 * time.Hour)
	if err := m.calls.Sweep(m.ctx); err != nil {
		m.Fatalf("sweep: %v", err)
	}
	m.resolved()

	// The machines that still run end, and the phones that come up now fall silent.
	settled := m.itemsOf()
	settle()
	for _, e := range m.executions() {
		if e.ended == "" {
			m.Fatalf("an execution still runs, in %s", e.state)
		}
	}
	for _, p := range m.lates {
		ph := m.line.dial(p)
		m.line.answer(ph)
		m.collect(ph)
	}
	for _, s := range m.reports {
		if m.callItem(m, s.CallID) != nil { // else it would begin a customer's call
			m.give(s)
		}
	}
	if err := m.calls.Sweep(m.ctx); err != nil {
		m.Fatalf("sweep: %v", err)
	}
	for _, ph := range m.phones() {
		if phase := ph.state.Phase; phase == carrier.Dialling || phase == carrier.Talking {
			m.Fatalf("all is over, and a phone is %s", phase)
		}
	}
	for pk, it := range m.itemsOf() { // tokens aside
		for _, name := range []string{"token", "token_at"} {
			delete(it, name)
			delete(settled[pk], name)
		}
		if diff := cmp.Diff(settled[pk], it, values); diff != "" {
			m.Fatalf("a call that was resolved changed (-before +after):\n%s", diff)
		}
	}
	m.resolved()
}

func (m *model) itemsOf() map[string]map[string]types.AttributeValue {
	items := map[string]map[string]types.AttributeValue{}
	for pk := range m.images {
		items[pk] = m.callItem(m, conversation.CallID(pk[strings.LastIndex(pk, "#")+1:]))
	}
	return items
}

// resolved checks that no call is waiting for anything, and that all its traces are gone.
func (m *model) resolved() {
	m.dirty = true
	m.check(m.T)
	for _, one := range m.images {
		if call := one.call; call.Status != conversation.CallError && (call.Status != conversation.CallEnded || call.CompletedAt.IsZero()) {
			m.Fatalf("call %s is %s, completed at %q, and nobody looks after it", call.CallID, call.Status, call.CompletedAt)
		}
		if call := one.call; (call.EndReason == "") || call.EndedAt.IsZero() {
			m.Fatalf("call %s is %s for %q, at %q", call.CallID, call.Status, call.EndReason, call.EndedAt)
		}
	}
	for _, p := range m.posts {
		if p.status == 502 {
			if call, err := m.callOf(p.call.CallID); err != nil || call.Status != conversation.CallError {
				m.Fatalf("502, and the call is %s, %v", call.Status, err)
			}
		}
		if p.status == 201 && p.next == nil && m.images[string(m.workspace)+"#call#"+string(p.call.CallID)].item == nil && p.call.IdempotencyKey == "" {
			m.Fatalf("201, and there is no call")
		}
	}
	if slots := m.slots(m); slots != "0" && slots != "" {
		m.Fatalf("%s active calls, want none", slots)
	}
}

// watcher stands between the store and DynamoDB. It tells which calls were written, and
// lets one request fail.
type watcher struct {
	aws.HTTPClient
	names   string
	changed func(pk string)

	mu   sync.Mutex
	kind faultKind
	left int // requests until the one that fails
}

// faultKind is how a request fails.
type faultKind string

const (
	faultless      faultKind = "none"
	notDone        faultKind = "it isn't done"
	doneUnanswered faultKind = "it is done, and the function crashes"
	doneTwice      faultKind = "it is done, its answer lost, and it is repeated"
)

func (w *watcher) fault(kind faultKind, after int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kind, w.left = kind, after
}

// take is the fault of this request.
func (w *watcher) take() faultKind {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind := faultless
	if w.left == 0 {
		kind, w.kind = w.kind, faultless
	}
	w.left = max(0, w.left-1)
	return kind
}

var callKey = regexp.MustCompile(`"([^"#]+#call#[^"#]+)"`)

func (w *watcher) Do(r *http.Request) (*http.Response, error) {
	_, operation, isDynamoDB := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !isDynamoDB || w.changed == nil {
		return w.HTTPClient.Do(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	kind := w.take()
	if kind == notDone {
		return failure(r, http.StatusBadRequest, "AccessDeniedException"), nil
	}
	r = r.Clone(context.WithoutCancel(r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(body))
	response, err := w.HTTPClient.Do(r)
	if strings.HasPrefix(operation, "Put") || strings.HasPrefix(operation, "Update") || strings.HasPrefix(operation, "Transact") {
		pks := map[string]bool{}
		for _, found := range callKey.FindAllSubmatch(body, -1) {
			if pk := string(found[1]); !pks[pk] {
				pks[pk] = true
				w.changed(pk)
			}
		}
	}
	switch {
	case err != nil || kind == faultless:
		return response, err
	case kind == doneTwice:
		response.Body.Close()
		return failure(r, http.StatusInternalServerError, "InternalServerError"), nil
	}
	response.Body.Close()
	return failure(r, http.StatusBadRequest, "AccessDeniedException"), nil
}

func failure(r *http.Request, status int, problem string) *http.Response {
	body := `{"__type":"com.amazonaws.dynamodb.v20120810#` + problem + `","message":"injected"}`
	header := http.Header{"Content-Type": {"application/x-amz-json-1.0"}}
	header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(body))), 10))
	return &http.Response{
		StatusCode: status, Header: header,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}
