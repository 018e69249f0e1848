package dynamo_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// bySMS is whom the conversations of these tests are with, unless they say otherwise.
var bySMS = dynamo.ThreadKey{Number: mainNumber, Address: "+12025550123", Channel: conversation.SMS}

func (w ward) ws() conversation.WorkspaceID { return w.definition.Workspace.WorkspaceID }

func (w ward) newThread(k dynamo.ThreadKey) conversation.ThreadRecord {
	return conversation.ThreadRecord{
		Thread: conversation.Thread{
			ThreadID: conversation.ThreadID(conversation.NewID()), WorkspaceID: w.ws(),
			AssistantID: w.definition.Assistants[0].AssistantID, AssistantName: "Reception", Channel: k.Channel,
			StartedAt: conversation.At(now), LastMessageAt: conversation.At(now), Customer: &conversation.Customer{Phone: k.Address},
		},
		Carrier: "simulator", Number: k.Number, Address: k.Address, IsTest: k.Test, LastArrivalAt: conversation.At(now),
	}
}

// written is a customer's message, sent one that is to be sent to them.
func (w ward) written(k dynamo.ThreadKey, text string) conversation.MessageRecord {
	m := w.sent(k, text)
	m.Direction, m.Source, m.ProviderMessageID = conversation.Inbound, conversation.SourceInbound, "theirs "+string(m.MessageID)
	return m
}

func (w ward) sent(k dynamo.ThreadKey, text string) conversation.MessageRecord {
	return conversation.MessageRecord{
		Message: conversation.Message{
			MessageID: conversation.MessageID(conversation.NewID()), WorkspaceID: w.ws(),
			AssistantID: w.definition.Assistants[0].AssistantID, AssistantName: "Reception", Channel: k.Channel,
			Direction: conversation.Outbound, Source: conversation.SourceVoiceTool, OccurredAt: conversation.At(now), Content: text,
		},
		Carrier: "simulator", Number: k.Number, Address: k.Address, ArrivedAt: conversation.At(now),
	}
}

// joining is the write that adds messages to a thread.
func joining(thread conversation.ThreadRecord, messages ...conversation.MessageRecord) dynamo.ThreadWrite {
	for _, m := range messages {
		thread.MessageCount++
		if m.Direction == conversation.Inbound {
			thread.Unmarked = append(thread.Unmarked, conversation.Unanswered{MessageID: m.MessageID, ArrivedAt: m.ArrivedAt})
		}
	}
	return dynamo.ThreadWrite{Thread: thread, Until: deadline, New: messages}
}

// completing is the write that completes a thread.
func completing(thread conversation.ThreadRecord) dynamo.ThreadWrite {
	thread.CompletedAt, thread.CloseReason, thread.Unmarked = conversation.At(now), conversation.Graded, nil
	return dynamo.ThreadWrite{Thread: thread}
}

func (w ward) write(t *testing.T, write dynamo.ThreadWrite) conversation.ThreadRecord {
	t.Helper()
	if err := w.WriteThread(t.Context(), write); err != nil {
		t.Fatalf("WriteThread = %v, want nil", err)
	}
	return w.thread(t, write.Thread.ThreadID)
}

// talk is an open thread with one customer's message.
func (w ward) talk(t *testing.T, k dynamo.ThreadKey) conversation.ThreadRecord {
	t.Helper()
	return w.write(t, joining(w.newThread(k), w.written(k, "Hello.")))
}

func (w ward) thread(t *testing.T, threadID conversation.ThreadID) conversation.ThreadRecord {
	t.Helper()
	thread, err := w.ThreadRecord(t.Context(), w.ws(), threadID)
	if err != nil {
		t.Fatal(err)
	}
	return thread
}

func (w ward) message(t *testing.T, messageID conversation.MessageID) conversation.MessageRecord {
	t.Helper()
	m, err := w.MessageRecord(t.Context(), w.ws(), messageID)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// receive stores a message in the open thread or in a new one, as whoever takes one does.
func (w ward) receive(ctx context.Context, k dynamo.ThreadKey, m conversation.MessageRecord) error {
	var err error
	for range 50 {
		thread := w.newThread(k)
		open, readErr := w.OpenThread(ctx, w.ws(), k)
		switch {
		case readErr == nil:
			thread = open
		case !errors.Is(readErr, conversation.ErrNotFound):
			return readErr
		}
		if err = w.WriteThread(ctx, joining(thread, m)); !errors.Is(err, dynamo.ErrStale) {
			return err
		}
	}
	return err
}

// everything is all items of the stage, by table and key.
func (w ward) everything(t *testing.T) map[string]map[string]types.AttributeValue {
	t.Helper()
	items := map[string]map[string]types.AttributeValue{}
	for _, table := range []string{w.conversations, w.workspaces, w.counters} {
		pages := dynamodb.NewScanPaginator(w.db, &dynamodb.ScanInput{TableName: &table})
		for pages.HasMorePages() {
			page, err := pages.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range page.Items {
				items[table+" "+stringOf(it, dynamo.PartitionKey)] = it
			}
		}
	}
	return items
}

// threadsOf are the workspace's threads and how many messages each has, which are in the
// table under its name.
func (w ward) threadsOf(t *testing.T) (threads []conversation.ThreadRecord, messages map[conversation.ThreadID]int) {
	t.Helper()
	messages = map[conversation.ThreadID]int{}
	for name, it := range w.everything(t) {
		switch {
		case strings.Contains(name, string(w.ws())+"#thread#"):
			threads = append(threads, w.thread(t, conversation.ThreadID(stringOf(it, "thread_id"))))
		case strings.Contains(name, string(w.ws())+"#message#"):
			messages[conversation.ThreadID(stringOf(it, "thread_id"))]++
		}
	}
	return threads, messages
}

func after(d time.Duration) conversation.Time { return conversation.At(now.Add(d)) }

// unlist takes a message out of the index, as one is that the index doesn't show yet.
func (w ward) unlist(t *testing.T, messageID conversation.MessageID) {
	t.Helper()
	_, err := w.db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &w.conversations, Key: keyOf(string(w.ws()) + "#message#" + string(messageID)), UpdateExpression: aws.String("REMOVE thread_list"),
	})
	if err != nil {
		t.Fatal(err)
	}
}
