package dynamo

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"parley/shared/conversation"
)

// OpenThread reads, strongly consistent, the open thread that takes messages of k. One
// that is full is returned too.
func (s *Store) OpenThread(ctx context.Context, ws conversation.WorkspaceID, k ThreadKey) (conversation.ThreadRecord, error) {
	for attempt := 0; ; attempt++ {
		pointer, err := s.read(ctx, Conversations, openThreadID(ws, k))
		if err != nil {
			return conversation.ThreadRecord{}, wrap(err, "get the open thread")
		}
		thread, err := s.ThreadRecord(ctx, ws, conversation.ThreadID(stringOf(pointer, "thread_id")))
		if err != nil || thread.Open() && !thread.Superseded {
			return thread, err
		}
		// The thread has completed since the pointer was read, or another has taken its place.
		if err := pause(ctx, attempt); err != nil {
			return conversation.ThreadRecord{}, wrap(err, "get the open thread")
		}
	}
}

// ThreadRecord reads a thread with all that the service knows of it, strongly consistent,
// open or completed, a test or not.
func (s *Store) ThreadRecord(ctx context.Context, ws conversation.WorkspaceID, threadID conversation.ThreadID) (conversation.ThreadRecord, error) {
	thread, err := get[conversation.ThreadRecord](ctx, s, id(ws, kindThread, threadID), conversation.AllBlocks())
	return thread, wrap(err, "get thread %s", threadID)
}

// MessageRecord reads a message with all that the service knows of it, strongly
// consistent, a test or not.
func (s *Store) MessageRecord(ctx context.Context, ws conversation.WorkspaceID, messageID conversation.MessageID) (conversation.MessageRecord, error) {
	message, err := get[conversation.MessageRecord](ctx, s, id(ws, kindMessage, messageID), nil)
	return message, wrap(err, "get message %s", messageID)
}

// maxBatch is how many items DynamoDB reads at once.
const maxBatch = 100

// ThreadMessages reads a thread's messages, by the time they occurred at, then by id. The
// index says which they are, and may not know the latest yet: those that the caller knows
// of are read as well, whatever the index says. Who needs all compares with MessageCount.
func (s *Store) ThreadMessages(ctx context.Context, t conversation.ThreadRecord, also ...conversation.MessageID) ([]conversation.MessageRecord, error) {
	pks, err := s.threadIndex(ctx, t)
	if err != nil {
		return nil, wrap(err, "list the messages of thread %s", t.ThreadID)
	}
	for _, messageID := range also {
		pks = append(pks, id(t.WorkspaceID, kindMessage, messageID))
	}
	slices.Sort(pks)
	messages := []conversation.MessageRecord{}
	for batch := range slices.Chunk(slices.Compact(pks), maxBatch) {
		keys := make([]item, len(batch))
		for i, pk := range batch {
			keys[i] = key(pk)
		}
		found, err := s.readAll(ctx, map[string][]item{s.tables[Conversations]: keys})
		if err != nil {
			return nil, wrap(err, "read the messages of thread %s", t.ThreadID)
		}
		for _, it := range found {
			message, err := decode[conversation.MessageRecord](it)
			if err != nil {
				return nil, wrap(err, "read the messages of thread %s", t.ThreadID)
			}
			messages = append(messages, message)
		}
	}
	slices.SortFunc(messages, func(a, b conversation.MessageRecord) int {
		return cmp.Or(a.OccurredAt.Compare(b.OccurredAt.Time), cmp.Compare(a.MessageID, b.MessageID))
	})
	return messages, nil
}

// threadIndex reads the keys of a thread's messages from the index. They are no more than
// a thread takes, but for replies, of which each message has one at most.
func (s *Store) threadIndex(ctx context.Context, t conversation.ThreadRecord) ([]string, error) {
	expr, err := expression.NewBuilder().WithKeyCondition(expression.Key("thread_list").
		Equal(expression.Value(threadList(t.WorkspaceID, t.ThreadID, t.IsTest)))).Build()
	if err != nil {
		return nil, err
	}
	index := ByThread
	pages := dynamodb.NewQueryPaginator(s.db, &dynamodb.QueryInput{
		TableName: s.table(Conversations), IndexName: &index, KeyConditionExpression: expr.KeyCondition(),
		ExpressionAttributeNames: expr.Names(), ExpressionAttributeValues: expr.Values(),
	})
	var pks []string
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, it := range page.Items {
			pks = append(pks, stringOf(it, PartitionKey))
		}
	}
	return pks, nil
}
