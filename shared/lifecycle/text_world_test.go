package lifecycle_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"parley/shared/agent"
	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/lifecycle"
)

// turns are the queues of turns and marks, with the function that takes from them: it takes
// each item when its delay is over, by the world's clock, whoever else is at work by then. An
// item that fails comes again.
type turns struct {
	lifecycle.TurnQueues
	threads lifecycle.Threads
	steps   *steps
	ctx     context.Context

	mu      sync.Mutex
	queued  []*turnItem
	now     func() time.Time
	answer  func(url string) (errorType string) // of SQS; "": none
	sleeper []*sleeper
	crash   context.CancelFunc // ends all that is at work now
	alive   context.Context
	others  int // beside the queues' items: looks, and what else begin began
}

// turnItem is one item of a queue.
type turnItem struct {
	lifecycle.TurnItem
	url      string
	group    string
	due      time.Time
	received int
	ended    []time.Time // when it was acknowledged
	failures int
	busy     bool
}

// sleeper is somebody at work who waits.
type sleeper struct {
	until time.Time
	wake  chan struct{}
}

// mostReceives is how often an item that fails comes in all.
const mostReceives = 5

func newTurns(t testing.TB, w *world) *turns {
	q := &turns{ctx: w.ctx, now: w.now, answer: func(string) string { return "" }, steps: newSteps(t)}
	q.alive, q.crash = context.WithCancel(context.WithValue(w.ctx, atWork{}, q))
	t.Cleanup(func() { q.crash() })
	q.TurnQueues = lifecycle.TurnQueues{
		Client: sqs.NewFromConfig(inProcess(q.serve)), Turns: "https://queue.example.com/turns", Marks: "https://queue.example.com/marks",
	}
	q.threads = lifecycle.Threads{Parts: w.calls.Parts}
	q.threads.Wait = q.sleep
	return q
}

// serve speaks SQS's protocol, as far as the stream needs it.
func (q *turns) serve(w http.ResponseWriter, r *http.Request) {
	var request struct {
		QueueURL                    string `json:"QueueUrl"`
		MessageBody, MessageGroupID string
		DelaySeconds                int
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	q.mu.Lock()
	defer q.mu.Unlock()
	item := &turnItem{url: request.QueueURL, group: request.MessageGroupID, due: q.now().Add(time.Duration(request.DelaySeconds) * time.Second)}
	problem := q.answer(item.url)
	if err := json.Unmarshal([]byte(request.MessageBody), &item.TurnItem); err != nil {
		problem = "InvalidMessageContents"
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if problem != "" {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"__type": problem})
		return
	}
	q.queued = append(q.queued, item)
	_ = json.NewEncoder(w).Encode(map[string]string{"MessageId": "m"})
}

// sleep is the Wait of those who take a turn: it lasts until elapse lets the time pass.
func (q *turns) sleep(ctx context.Context, d time.Duration) error {
	q.mu.Lock()
	s := &sleeper{q.now().Add(d), make(chan struct{})}
	q.sleeper = append(q.sleeper, s)
	q.mu.Unlock()
	return asleep(ctx, q, s)
}

// asleep is known to settled by its name.
//
//go:noinline
func asleep(ctx context.Context, q *turns, s *sleeper) error {
	select {
	case <-s.wake:
		return nil
	case <-ctx.Done():
		q.mu.Lock()
		defer q.mu.Unlock()
		q.sleeper = slices.DeleteFunc(q.sleeper, func(other *sleeper) bool { return other == s })
		return ctx.Err()
	}
}

// settle returns when all who are at work wait for the time to pass.
func (q *turns) settle(t fatal) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Microsecond) {
		if q.settled() {
			return
		}
	}
	t.Fatalf("somebody is still at work after 30 s:\n%s", stacks())
}

func stacks() []byte {
	for size := 64 << 10; ; size *= 2 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size {
			return buf[:n]
		}
	}
}

// settled looks at the goroutines of those who are at work: each sleeps, or waits for others
// of them.
func (q *turns) settled() bool {
	sleeping, working, others := 0, 0, 0
	for _, one := range strings.Split(string(stacks()), "\n\n") {
		state, frames, _ := strings.Cut(one, "\n")
		// One of Turns', or of a sweep's, with nothing of its own on the stack yet.
		begins := strings.HasPrefix(frames, "sync.(*WaitGroup).Go") || strings.HasPrefix(frames, "golang.org/x/sync/errgroup.(*Group).Go") ||
			strings.HasPrefix(frames, "parley/shared/batch.")
		begun := strings.Contains(one, "lifecycle_test.begun(")
		if begun {
			others++
		}
		switch {
		case !strings.Contains(one, "parley/shared/lifecycle.") && !begins && !begun || strings.Contains(one, "lifecycle.Callbacks"):
		case strings.Contains(one, "lifecycle_test.asleep(") && strings.Contains(state, "[select"):
			sleeping++
		case begun && strings.Contains(one, "errgroup.(*Group).Wait(") && strings.Contains(state, "WaitGroup.Wait"):
		case strings.Contains(one, "lifecycle.Threads.Turns(") && strings.Contains(state, "WaitGroup.Wait"):
			working++
		case strings.HasPrefix(frames, "parley/shared/lifecycle.Threads.see(") && strings.Contains(state, "[chan receive"):
		default:
			return false
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, item := range q.queued {
		if item.busy {
			working--
		}
	}
	return sleeping == len(q.sleeper) && working == 0 && others == q.others
}

// elapse lets the time pass: items come when they are due, and those who wait go on, one
// after the other.
func (w *world) elapse(t fatal, d time.Duration) {
	t.Helper()
	q, end := w.turns, w.now().Add(d)
	for {
		q.settle(t)
		q.mu.Lock()
		var next time.Time
		var do func()
		if len(q.sleeper) > 0 {
			s := slices.MinFunc(q.sleeper, func(a, b *sleeper) int { return a.until.Compare(b.until) })
			next, do = s.until, func() {
				q.sleeper = slices.DeleteFunc(q.sleeper, func(other *sleeper) bool { return other == s })
				close(s.wake)
			}
		}
		for _, item := range q.queued {
			if !item.busy && !item.due.IsZero() && (do == nil || item.due.Before(next)) {
				next, do = item.due, func() { q.take(item) }
			}
		}
		if do == nil || next.After(end) {
			q.mu.Unlock()
			w.advanceTo(end)
			return
		}
		w.advanceTo(next)
		do()
		q.mu.Unlock()
	}
}

// advanceTo moves the clock forward.
func (w *world) advanceTo(to time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if to.After(w.time) {
		w.time = to
	}
}

// take lets the function take an item. The caller holds mu.
func (q *turns) take(item *turnItem) {
	item.busy = true
	item.received++
	visible := q.now().Add(lifecycle.TurnVisibility)
	body, _ := json.Marshal(item.TurnItem)
	alive := q.alive
	began := make(chan struct{})
	go func() {
		close(began)
		answer, err := q.threads.Turns(alive, events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m", Body: string(body)}}})
		q.mu.Lock()
		defer q.mu.Unlock()
		item.busy, item.due = false, time.Time{}
		if err != nil || len(answer.BatchItemFailures) > 0 || alive.Err() != nil {
			item.failures++
			if item.received < mostReceives {
				item.due = visible
			}
			return
		}
		item.ended = append(item.ended, q.now())
	}()
	<-began
}

// crashAll ends all functions that take turns, wherever they are.
func (q *turns) crashAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.crash()
	q.alive, q.crash = context.WithCancel(context.WithValue(q.ctx, atWork{}, q))
}

// atWork is the key of the turns in the context of those who are at work.
type atWork struct{}

// begin lets somebody be at work beside the turns, until a crash ends them all.
func (q *turns) begin(does func(context.Context)) {
	q.mu.Lock()
	alive := q.alive
	q.others++
	q.mu.Unlock()
	go func() {
		begun(alive, does)
		q.mu.Lock()
		defer q.mu.Unlock()
		q.others--
	}()
}

// busy tells whether somebody of them is at work.
func (q *turns) busy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.others > 0
}

// begun is known to settled by its name.
//
//go:noinline
func begun(alive context.Context, does func(context.Context)) { does(alive) }

// message is a text that the customer writes now.
func (w *world) message(content string) carrier.MessageCallback {
	return carrier.MessageCallback{
		Event: carrier.EventMessage, CarrierID: "theirs-" + conversation.NewID(), At: w.now(), Channel: conversation.SMS,
		From: customer + "99", To: ours, Content: content,
	}
}

func (w *world) messagePath() string { return "/carriers/" + w.carrier + "/" + string(w.workspace) }

// postText posts a report about texts as the carrier does.
func (w *world) postText(t fatal, report carrier.MessageCallback) int {
	t.Helper()
	body, path := bodyOf(report), w.messagePath()
	status, _ := w.post(t, path, carrier.Sign(secret, w.now(), baseURL+path, body), body)
	return status
}

// writes lets the customer write, and the stream follow, and returns the message as it is
// stored.
func (w *world) writes(t fatal, report carrier.MessageCallback) conversation.MessageRecord {
	t.Helper()
	known := map[conversation.ThreadID]bool{}
	for _, thread := range w.allThreads(t) {
		known[thread.ThreadID] = true
	}
	if status := w.postText(t, report); status != http.StatusOK {
		t.Fatalf("%q: status %d, want 200", report.Content, status)
	}
	m := w.byCarrierID(t, report.CarrierID)
	records := []string{record(t, "1", nil, w.item(t, w.names.ConversationsTable, "message", string(m.MessageID)))}
	if !known[m.ThreadID] {
		records = append(records, record(t, "2", nil, w.threadItem(t, m.ThreadID)))
	}
	if failed := w.follow(t, w.turns.steps, records...); len(failed) != 0 {
		t.Fatalf("the stream's records failed: %v", failed)
	}
	return m
}

func (w *world) threadItem(t fatal, threadID conversation.ThreadID) map[string]types.AttributeValue {
	t.Helper()
	return w.item(t, w.names.ConversationsTable, "thread", string(threadID))
}

// scan reads all of the workspace's records of a kind.
func scan[R any](t fatal, w *world, kind string, read func(json.RawMessage) (R, bool, error)) []R {
	t.Helper()
	var found []R
	input := &dynamodb.ScanInput{
		TableName: &w.names.ConversationsTable, ConsistentRead: aws.Bool(true),
		FilterExpression:          aws.String("begins_with(pk, :prefix)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":prefix": &types.AttributeValueMemberS{Value: string(w.workspace) + "#" + kind + "#"}},
	}
	for {
		out, err := w.db.Scan(w.ctx, input)
		if err != nil {
			t.Fatalf("%v", err)
		}
		for _, it := range out.Items {
			image, err := attributevalue.MarshalMapJSON(it)
			if err != nil {
				t.Fatalf("%v", err)
			}
			one, ok, err := read(image)
			if err != nil || !ok {
				t.Fatalf("%s: %t, %v", image, ok, err)
			}
			found = append(found, one)
		}
		if out.LastEvaluatedKey == nil {
			return found
		}
		input.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// messages are all of the workspace, by when they were written.
func (w *world) messages(t fatal) []conversation.MessageRecord {
	t.Helper()
	all := scan(t, w, "message", dynamo.MessageImage)
	slices.SortFunc(all, func(a, b conversation.MessageRecord) int {
		return cmp.Or(a.OccurredAt.Compare(b.OccurredAt.Time), a.ArrivedAt.Compare(b.ArrivedAt.Time), cmp.Compare(a.MessageID, b.MessageID))
	})
	return all
}

func (w *world) allThreads(t fatal) []conversation.ThreadRecord {
	t.Helper()
	return scan(t, w, "thread", dynamo.ThreadImage)
}

func (w *world) byCarrierID(t fatal, carrierID string) conversation.MessageRecord {
	t.Helper()
	for _, m := range w.messages(t) {
		if m.ProviderMessageID == carrierID {
			return m
		}
	}
	t.Fatalf("no message has the carrier's id %s", carrierID)
	return conversation.MessageRecord{}
}

func (w *world) readMessage(t fatal, messageID conversation.MessageID) conversation.MessageRecord {
	t.Helper()
	m, err := w.store.MessageRecord(w.ctx, w.workspace, messageID)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return m
}

func (w *world) readThread(t fatal, threadID conversation.ThreadID) conversation.ThreadRecord {
	t.Helper()
	thread, err := w.store.ThreadRecord(w.ctx, w.workspace, threadID)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return thread
}

// replies are the texts that were sent as replies, by their content.
func (w *world) sent() []string {
	w.line.mu.Lock()
	defer w.line.mu.Unlock()
	contents := []string{}
	for _, t := range w.line.texts {
		for range t.asked {
			contents = append(contents, t.Content)
		}
	}
	return contents
}

// thinker is an agent that replies and judges as a test says, after as long as it says.
type thinker struct {
	agent.Scripted
	sleep func(context.Context, time.Duration) error

	mu     sync.Mutex
	takes  time.Duration
	says   func(agent.Conversation) (string, error) // nil: how many turns it was told
	told   []agent.Conversation
	judges func(conversation.Criterion) conversation.Verdict // "": it can't
	writes string                                            // the follow-up; "": it can't
}

func (a *thinker) Reply(ctx context.Context, c agent.Conversation) (string, error) {
	a.mu.Lock()
	a.told = append(a.told, c)
	takes, says := a.takes, a.says
	a.mu.Unlock()
	if takes > 0 {
		if err := a.sleep(ctx, takes); err != nil {
			return "", err
		}
	}
	if says != nil {
		return says(c)
	}
	return fmt.Sprintf("Reply to %d turns.", len(c.Turns)), nil
}

var errThoughtless = errors.New("the agent has no thought")

// grades is a part of a grading. It takes a part of the time that a reply takes.
func grades[A any](ctx context.Context, a *thinker, made func() (A, bool)) (A, error) {
	a.mu.Lock()
	takes := a.takes / 8
	a.mu.Unlock()
	if takes > 0 {
		if err := a.sleep(ctx, takes); err != nil {
			var none A
			return none, err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	answer, ok := made()
	if !ok {
		return answer, errThoughtless
	}
	return answer, nil
}

func (a *thinker) Analyse(ctx context.Context, c agent.Conversation) (conversation.Analysis, error) {
	return grades(ctx, a, func() (conversation.Analysis, bool) {
		analysis, err := a.Scripted.Analyse(ctx, c)
		return analysis, err == nil
	})
}

func (a *thinker) Evaluate(ctx context.Context, _ agent.Conversation, criteria []conversation.Criterion) ([]conversation.Evaluation, error) {
	return grades(ctx, a, func() (evaluations []conversation.Evaluation, ok bool) {
		for _, criterion := range criteria {
			result := a.judges(criterion)
			if result == "" {
				return nil, false
			}
			evaluations = append(evaluations, conversation.Evaluation{EvaluationID: criterion.EvaluationID, Title: criterion.Title, Result: result})
		}
		return evaluations, true
	})
}

func (a *thinker) FollowUp(ctx context.Context, _ agent.Conversation, _ []conversation.Criterion) (string, error) {
	return grades(ctx, a, func() (string, bool) { return a.writes, a.writes != "" })
}

// newTextWorld makes a world whose agent is a thinker.
func (s stage) newTextWorld(t testing.TB, store *dynamo.Store) (*world, *thinker) {
	w := s.newWorld(t, store)
	a := &thinker{
		sleep: w.turns.sleep, writes: "What can we still do?",
		judges: func(conversation.Criterion) conversation.Verdict { return conversation.Pass },
	}
	w.turns.threads.Agent = func(model string) (agent.Agent, error) {
		if _, err := agent.For(model); err != nil {
			return nil, err
		}
		return a, nil
	}
	return w, a
}

// saboteur stands between the store and DynamoDB, once it is armed. It tells which messages
// and threads were written, and lets one request fail or take its time, or everybody who is
// at work crash.
type saboteur struct {
	aws.HTTPClient
	doing   sync.Mutex
	mu      sync.Mutex
	changed func(pk string) // nil: nobody wants to know
	crash   func()
	kind    faultKind
	left    int // requests until the one that fails
	struck  bool
}

// Beside what can befall a request: the functions end, before or after it is done; or it, or
// its answer, takes delay.
const (
	crashBefore faultKind = "the function crashes before it"
	crashAfter  faultKind = "the function crashes after it"
	slowBefore  faultKind = "it is late"
	slowAfter   faultKind = "its answer is late"
)

// delay is a function's longest wait for DynamoDB here.
const delay = 12 * time.Second

// slow is delay for those who are at work.
func slow(ctx context.Context) error { return ctx.Value(atWork{}).(*turns).sleep(ctx, delay) }

// arm lets a request fail, after so many.
func (s *saboteur) arm(kind faultKind, after int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kind, s.left, s.struck = kind, after, false
}

// disarm tells whether a request has failed.
func (s *saboteur) disarm() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kind = faultless
	return s.struck
}

func (s *saboteur) take(ctx context.Context) faultKind {
	s.mu.Lock()
	defer s.mu.Unlock()
	slow := s.kind == slowBefore || s.kind == slowAfter
	if s.kind == faultless || s.kind == "" || slow && ctx.Value(atWork{}) == nil {
		return faultless
	}
	if s.left > 0 {
		s.left--
		return faultless
	}
	kind := s.kind
	s.kind, s.struck = faultless, true
	return kind
}

// do does a request. No other is done until what it wrote has been seen.
func (s *saboteur) do(r *http.Request, operation string, body []byte) (*http.Response, error) {
	s.doing.Lock()
	defer s.doing.Unlock()
	response, err := s.HTTPClient.Do(r)
	if s.changed != nil && (strings.HasPrefix(operation, "Put") || strings.HasPrefix(operation, "Update") || strings.HasPrefix(operation, "Transact")) {
		for _, found := range textKey.FindAllSubmatch(body, -1) {
			s.changed(string(found[1]))
		}
	}
	return response, err
}

var textKey = regexp.MustCompile(`"([^"#]+#(?:message|thread)#[^"#]+)"`)

func (s *saboteur) Do(r *http.Request) (*http.Response, error) {
	_, operation, isDynamoDB := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !isDynamoDB {
		return s.HTTPClient.Do(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	kind := s.take(r.Context())
	switch kind {
	case slowBefore:
		if err := slow(r.Context()); err != nil {
			return nil, err
		}
	case notDone:
		return failure(r, http.StatusBadRequest, "AccessDeniedException"), nil
	case crashBefore:
		s.crash()
		return nil, context.Canceled
	}
	whole := r.Clone(context.WithoutCancel(r.Context()))
	whole.Body = io.NopCloser(bytes.NewReader(body))
	response, err := s.do(whole, operation, body)
	if err == nil && kind == slowAfter {
		err = slow(r.Context())
	}
	if err != nil || kind == faultless || kind == slowBefore || kind == slowAfter {
		return response, err
	}
	response.Body.Close()
	switch kind {
	case crashAfter:
		s.crash()
		return nil, context.Canceled
	case doneTwice:
		return failure(r, http.StatusInternalServerError, "InternalServerError"), nil
	}
	return failure(r, http.StatusBadRequest, "AccessDeniedException"), nil
}
