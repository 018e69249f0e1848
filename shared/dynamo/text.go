package dynamo

import (
	"context"

	"parley/shared/conversation"
)

// Message reads a message, strongly consistent. A test message is not found.
func (s *Store) Message(ctx context.Context, ws conversation.WorkspaceID, messageID conversation.MessageID, blocks conversation.Blocks) (conversation.Message, error) {
	message, err := get[conversation.Message](ctx, s, id(ws, kindMessage, messageID), blocks)
	if err == nil && message.Source == conversation.SourceTest {
		return conversation.Message{}, wrap(conversation.ErrNotFound, "get test message %s", messageID)
	}
	return message, wrap(err, "get message %s", messageID)
}

// Thread reads a completed thread, strongly consistent. An open one, or a test, is not found.
func (s *Store) Thread(ctx context.Context, ws conversation.WorkspaceID, threadID conversation.ThreadID, blocks conversation.Blocks) (conversation.Thread, error) {
	thread, err := get[conversation.ThreadRecord](ctx, s, id(ws, kindThread, threadID), blocks)
	if err == nil && (thread.Open() || thread.IsTest) {
		return conversation.Thread{}, wrap(conversation.ErrNotFound, "get open or test thread %s", threadID)
	}
	return thread.Thread, wrap(err, "get thread %s", threadID)
}

// InsertMessage writes a message of the past, which makes no event. A message that exists
// is left as it is. A test message is in no list.
func (s *Store) InsertMessage(ctx context.Context, m conversation.Message) error {
	it, err := encode(m)
	if err != nil {
		return wrap(err, "insert message %s", m.MessageID)
	}
	it[PartitionKey] = text(id(m.WorkspaceID, kindMessage, m.MessageID))
	if m.Source != conversation.SourceTest {
		listMessage(it, conversation.MessageRecord{Message: m})
	}
	return wrap(s.insert(ctx, it), "insert message %s", m.MessageID)
}

// listMessage puts a message into the lists of its workspace, its assistant and its thread.
// A test is in a list of its thread's alone, which no customer reads.
func listMessage(it item, m conversation.MessageRecord) {
	position := timed(m.OccurredAt, m.MessageID)
	if m.IsTest {
		it["listed_at"] = text(position)
	} else {
		listAs(it, m.WorkspaceID, m.AssistantID, messagesList, position)
	}
	it["thread_list"] = text(threadList(m.WorkspaceID, m.ThreadID, m.IsTest))
}

func threadList(ws conversation.WorkspaceID, threadID conversation.ThreadID, isTest bool) string {
	if isTest {
		return list(ws, string(threadID), "test")
	}
	return list(ws, string(threadID))
}

// InsertThread writes a completed thread of the past, which makes no event. A thread that
// exists is left as it is.
func (s *Store) InsertThread(ctx context.Context, t conversation.Thread) error {
	it, err := encode(t)
	if err != nil {
		return wrap(err, "insert thread %s", t.ThreadID)
	}
	it[PartitionKey] = text(id(t.WorkspaceID, kindThread, t.ThreadID))
	listAs(it, t.WorkspaceID, t.AssistantID, threadsList, timed(t.CompletedAt, t.ThreadID))
	return wrap(s.insert(ctx, it), "insert thread %s", t.ThreadID)
}

// insert writes a conversation's new record, its large fields first.
func (s *Store) insert(ctx context.Context, it item) error {
	if err := s.offload(ctx, it); err != nil {
		return err
	}
	_, err := s.create(ctx, Conversations, it)
	return err
}

// get reads a conversation's record with the large fields of these blocks.
func get[R any](ctx context.Context, s *Store, pk string, blocks conversation.Blocks) (R, error) {
	it, err := s.read(ctx, Conversations, pk)
	if err != nil {
		var none R
		return none, err
	}
	return whole[R](ctx, s, it, blocks)
}

// whole is an item's record with the large fields of these blocks.
func whole[R any](ctx context.Context, s *Store, it item, blocks conversation.Blocks) (R, error) {
	var none R
	large, err := largeOf(it, blocks)
	if err != nil {
		return none, err
	}
	if err := s.fill(ctx, it, large); err != nil {
		return none, err
	}
	return decode[R](it)
}
