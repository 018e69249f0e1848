package dynamo

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"parley/shared/conversation"
)

// Names of the lists, as they appear in the indexes' keys.
const (
	callsList      = "calls"
	messagesList   = "messages"
	threadsList    = "threads"
	assistantsList = "assistants"
)

// CallQuery chooses calls. Zero fields choose all. From and To bound ended_at, [From, To),
// so with either of them only calls that are over are listed.
type CallQuery struct {
	AssistantID conversation.AssistantID
	From, To    time.Time
	IncludeTest bool
}

// MessageQuery chooses messages. From and To bound occurred_at, [From, To).
type MessageQuery struct {
	AssistantID conversation.AssistantID
	ThreadID    conversation.ThreadID
	Channel     conversation.Channel
	Direction   conversation.Direction
	From, To    time.Time
}

// ThreadQuery chooses completed threads. From and To bound completed_at, [From, To).
// The reason follow_up_skipped chooses every follow_up_skipped:<reason>.
type ThreadQuery struct {
	AssistantID conversation.AssistantID
	Channel     conversation.Channel
	CloseReason conversation.CloseReason
	From, To    time.Time
}

// PageRequest says which page of a list: up to Limit (1–100) items after a Position of an
// earlier page, with the large fields of these blocks.
type PageRequest struct {
	Limit  int
	After  string
	Blocks conversation.Blocks
}

// Page is part of a list, newest first. It may hold fewer items than the limit, even
// none, when more are to come: when few of many match, or when the items are large.
type Page[R any] struct {
	Items     []R
	positions []string // of the items
	Next      string   // where the next page begins; "" at the end of the list
}

// Cut leaves the first n items, so that the next page begins after them.
func (p Page[R]) Cut(n int) Page[R] {
	return Page[R]{p.Items[:n], p.positions[:n], p.positions[n-1]}
}

// maxPageBytes bounds what a page reads into memory; one item is always read.
const maxPageBytes = 5 << 20

// Calls lists calls by the time in their ids.
func (s *Store) Calls(ctx context.Context, ws conversation.WorkspaceID, q CallQuery, p PageRequest) (Page[conversation.Call], error) {
	l := conversations(ws, callsList, kindCall, q.AssistantID)
	l.from, l.to = first, last
	if !q.From.IsZero() {
		l.from = conversation.FirstID(q.From.Add(-conversation.CallSpan))
		l.where(expression.Name("ended_at").GreaterThanEqual(expression.Value(bound(q.From))))
	}
	if !q.To.IsZero() {
		l.to = conversation.FirstID(q.To.Add(time.Millisecond))
		l.where(expression.Name("ended_at").LessThan(expression.Value(bound(q.To))))
	}
	if !q.IncludeTest {
		l.where(expression.Name("is_test").Equal(expression.Value(false)))
	}
	page, err := fetch[conversation.Call](ctx, s, l, p)
	return page, wrap(err, "list calls")
}

// Messages lists messages by occurred_at. Test messages are in no list.
func (s *Store) Messages(ctx context.Context, ws conversation.WorkspaceID, q MessageQuery, p PageRequest) (Page[conversation.Message], error) {
	l := conversations(ws, messagesList, kindMessage, q.AssistantID)
	if q.ThreadID != "" {
		l.index, l.attribute, l.partition = ByThread, "thread_list", list(ws, string(q.ThreadID))
		l.equal("assistant_id", string(q.AssistantID))
	}
	l.between(q.From, q.To)
	l.equal("channel", string(q.Channel))
	l.equal("direction", string(q.Direction))
	page, err := fetch[conversation.Message](ctx, s, l, p)
	return page, wrap(err, "list messages")
}

// Threads lists completed threads by completed_at.
func (s *Store) Threads(ctx context.Context, ws conversation.WorkspaceID, q ThreadQuery, p PageRequest) (Page[conversation.Thread], error) {
	l := conversations(ws, threadsList, kindThread, q.AssistantID)
	l.between(q.From, q.To)
	l.equal("channel", string(q.Channel))
	if q.CloseReason == conversation.FollowUpSkippedReason {
		l.where(expression.Name("close_reason").BeginsWith(string(q.CloseReason) + ":"))
	} else {
		l.equal("close_reason", string(q.CloseReason))
	}
	page, err := fetch[conversation.Thread](ctx, s, l, p)
	return page, wrap(err, "list threads")
}

// Assistants lists a workspace's assistants by their ids.
func (s *Store) Assistants(ctx context.Context, ws conversation.WorkspaceID, p PageRequest) (Page[conversation.Assistant], error) {
	l := listing{
		table: Workspaces, index: ByWorkspace, attribute: "workspace_list",
		partition: list(ws, assistantsList), prefix: id(ws, kindAssistant, ""), from: first, to: last,
	}
	page, err := fetch[conversation.Assistant](ctx, s, l, p)
	return page, wrap(err, "list assistants")
}

// listing is one query of an index: a partition, a range of its sort key and a filter.
type listing struct {
	table, index string
	attribute    string // the index's partition key
	partition    string
	prefix       string // of the records' partition keys, before the id
	from, to     string
	filter       *expression.ConditionBuilder
}

// first and last are around every sort key.
const (
	first = " "
	last  = "~"
)

func conversations(ws conversation.WorkspaceID, name, kind string, assistant conversation.AssistantID) listing {
	l := listing{
		table: Conversations, index: ByWorkspace, attribute: "workspace_list",
		partition: list(ws, name), prefix: id(ws, kind, ""),
	}
	if assistant != "" {
		l.index, l.attribute, l.partition = ByAssistant, "assistant_list", list(ws, string(assistant), name)
	}
	return l
}

// listAs puts a record into the lists of its workspace and its assistant.
func listAs(it item, ws conversation.WorkspaceID, assistant conversation.AssistantID, name, position string) {
	it["workspace_list"] = text(list(ws, name))
	it["assistant_list"] = text(list(ws, string(assistant), name))
	it["listed_at"] = text(position)
}

// timed is the position of a record that lists sort by time.
func timed[I ~string](at conversation.Time, record I) string {
	return at.String() + "#" + string(record)
}

// bound writes a bound of a half-open range of times, which are whole milliseconds. A
// fifth digit of the year would sort before four: the year 9999 stands for all later ones.
func bound(t time.Time) string {
	at := conversation.At(t.Add(time.Millisecond - time.Nanosecond))
	if at.Year() > 9999 {
		return "9999-12-31T23:59:59.999Z"
	}
	return at.String()
}

// between bounds a sort key that begins with a time to [from, to). Every such key is
// longer than a bound, so BETWEEN's inclusive end excludes what happened at to.
func (l *listing) between(from, to time.Time) {
	l.from, l.to = first, last
	if !from.IsZero() {
		l.from = bound(from)
	}
	if !to.IsZero() {
		l.to = bound(to)
	}
}

func (l *listing) where(condition expression.ConditionBuilder) {
	if l.filter != nil {
		condition = l.filter.And(condition)
	}
	l.filter = &condition
}

// equal filters by an attribute; no value is no filter.
func (l *listing) equal(attribute, value string) {
	if value != "" {
		l.where(expression.Name(attribute).Equal(expression.Value(value)))
	}
}

// fetch reads a page: its keys from the index, then the items.
func fetch[R any](ctx context.Context, s *Store, l listing, p PageRequest) (Page[R], error) {
	if l.from > l.to { // DynamoDB refuses such a range
		return Page[R]{Items: []R{}}, nil
	}
	keys, next, err := s.keys(ctx, l, p)
	if err != nil || len(keys) == 0 {
		return Page[R]{Items: []R{}, Next: next}, err
	}
	items, err := s.batch(ctx, l.table, keys)
	if err != nil {
		return Page[R]{}, err
	}
	items, err = s.fillAll(ctx, items, p.Blocks)
	if err != nil {
		return Page[R]{}, err
	}
	page := Page[R]{Items: make([]R, 0, len(items)), Next: next}
	if len(items) < len(keys) {
		page.Next = positionOf(keys[len(items)-1])
	}
	for i, it := range items {
		if !s.live(it) { // gone since the index was read
			continue
		}
		record, err := decode[R](it)
		if err != nil {
			return Page[R]{}, err
		}
		page.Items = append(page.Items, record)
		page.positions = append(page.positions, positionOf(keys[i]))
	}
	return page, nil
}

func positionOf(key item) string { return stringOf(key, "listed_at") }

// keys reads the index until it has a page of keys, at most twice: first about as many
// as are wanted; if some did not match, then up to a megabyte.
func (s *Store) keys(ctx context.Context, l listing, p PageRequest) (keys []item, next string, err error) {
	input, err := l.query(s)
	if err != nil {
		return nil, "", err
	}
	input.Limit = aws.Int32(int32(p.Limit + 1))
	if p.After != "" {
		if !l.holds(p.After) {
			return nil, "", ErrPosition
		}
		input.ExclusiveStartKey = l.startKey(p.After)
	}
	for range 2 {
		out, err := s.db.Query(ctx, input)
		if err != nil {
			return nil, "", err
		}
		keys = append(keys, out.Items...)
		if len(keys) > p.Limit {
			return keys[:p.Limit], positionOf(keys[p.Limit-1]), nil
		}
		if out.LastEvaluatedKey == nil {
			return keys, "", nil
		}
		next = positionOf(out.LastEvaluatedKey)
		input.ExclusiveStartKey, input.Limit = out.LastEvaluatedKey, nil
	}
	return keys, next, nil
}

func (l *listing) query(s *Store) (*dynamodb.QueryInput, error) {
	b := expression.NewBuilder().WithKeyCondition(
		expression.Key(l.attribute).Equal(expression.Value(l.partition)).
			And(expression.Key("listed_at").Between(expression.Value(l.from), expression.Value(l.to))))
	if l.filter != nil {
		b = b.WithFilter(*l.filter)
	}
	expr, err := b.Build()
	if err != nil {
		return nil, err
	}
	return &dynamodb.QueryInput{
		TableName: s.table(l.table), IndexName: &l.index,
		KeyConditionExpression: expr.KeyCondition(), FilterExpression: expr.Filter(),
		ExpressionAttributeNames: expr.Names(), ExpressionAttributeValues: expr.Values(),
		ScanIndexForward: aws.Bool(false),
	}, nil
}

// ErrPosition says that a page can't begin where it was asked to.
var ErrPosition = errors.New("no position of this list")

// holds tells whether the position may be one of this listing. DynamoDB fails on others.
func (l *listing) holds(position string) bool {
	record := position[strings.LastIndexByte(position, '#')+1:]
	return l.from <= position && position <= l.to && len(position) <= maxPosition && uuid.Validate(record) == nil
}

const maxPosition = 64 // a time and an id

// startKey rebuilds the key of the item at a position, whose end is the record's id.
func (l *listing) startKey(position string) item {
	return item{
		PartitionKey: text(l.prefix + position[strings.LastIndexByte(position, '#')+1:]),
		l.attribute:  text(l.partition),
		"listed_at":  text(position),
	}
}

// batch reads the items of the keys, in their order; nil for one that is gone. DynamoDB
// leaves some unread when they are many and large: the answer is cut before the first of
// those, and it asks again while there would be nothing at all.
func (s *Store) batch(ctx context.Context, table string, keys []item) ([]item, error) {
	request := types.KeysAndAttributes{Keys: make([]item, len(keys))}
	for i, k := range keys {
		request.Keys[i] = item{PartitionKey: k[PartitionKey]}
	}
	for attempt := 0; ; attempt++ {
		out, err := s.db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{s.tables[table]: request},
		})
		if err != nil {
			return nil, err
		}
		read := map[string]item{}
		for _, it := range out.Responses[s.tables[table]] {
			read[stringOf(it, PartitionKey)] = it
		}
		unread := map[string]bool{}
		for _, k := range out.UnprocessedKeys[s.tables[table]].Keys {
			unread[stringOf(k, PartitionKey)] = true
		}
		var items []item
		for _, k := range keys {
			pk := stringOf(k, PartitionKey)
			if unread[pk] {
				break
			}
			items = append(items, read[pk])
		}
		if len(items) > 0 {
			return items, nil
		}
		if err := pause(ctx, attempt); err != nil {
			return nil, wrap(err, "%d items stayed unread", len(unread))
		}
	}
}

// pause waits before another attempt; it gives up after seven.
func pause(ctx context.Context, attempt int) error {
	if attempt >= 7 {
		return context.DeadlineExceeded
	}
	delay, _ := backoff(attempt, nil)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(delay):
		return nil
	}
}

// fillAll reads the large fields of items, and leaves out the last items when together
// they would be too much for one page.
func (s *Store) fillAll(ctx context.Context, items []item, blocks conversation.Blocks) ([]item, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	total := 0
	for i, it := range items {
		large, err := largeOf(it, blocks)
		if err != nil {
			return nil, err
		}
		total += itemSize(it)
		for _, stored := range large {
			total += stored.Bytes
		}
		if total > maxPageBytes && i > 0 {
			items = slices.Clip(items[:i])
			break
		}
		if len(large) > 0 {
			group.Go(func() error { return s.fill(ctx, it, large) })
		}
	}
	return items, group.Wait()
}
