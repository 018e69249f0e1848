package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"golang.org/x/sync/errgroup"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// callInput is what a call's execution begins with: how long its tasks wait.
type callInput struct {
	WorkspaceID   conversation.WorkspaceID `json:"workspace_id"`
	CallID        conversation.CallID      `json:"call_id"`
	PickupSeconds int                      `json:"pickup_seconds"`
	CallSeconds   int                      `json:"call_seconds"`
}

// threadInput is what a conversation's execution begins with: how long it waits before it
// looks.
type threadInput struct {
	WorkspaceID conversation.WorkspaceID `json:"workspace_id"`
	ThreadID    conversation.ThreadID    `json:"thread_id"`
	WaitSeconds int                      `json:"wait_seconds"`
}

// TurnQueues are the queue of turns and that of marks, which has functions of its own: turns
// are slow, and marks must not be late. Both are fair queues: items are grouped by workspace,
// so that one with many doesn't keep the others waiting.
type TurnQueues struct {
	Client *sqs.Client
	Turns  string // URL
	Marks  string // URL
}

// Follow starts the state machine of each new call and conversation, queues the turn of each
// new message of a customer, and answers the token that waits for a change. All of it may be
// done again. A record that fails is reported, and comes again.
func (p Parts) Follow(calls, threads Machine, queues TurnQueues) func(context.Context, dynamo.StreamEvent) (events.DynamoDBEventResponse, error) {
	return func(ctx context.Context, batch dynamo.StreamEvent) (events.DynamoDBEventResponse, error) {
		failed := make([]bool, len(batch.Records))
		group := errgroup.Group{}
		group.SetLimit(8)
		for i, record := range batch.Records {
			group.Go(func() error {
				for _, follow := range []func() error{
					func() error { return p.followCall(ctx, calls, record) },
					func() error { return p.followThread(ctx, threads, record) },
					func() error { return p.followMessage(ctx, queues, record) },
				} {
					if err := follow(); err != nil {
						slog.ErrorContext(ctx, "stream record", "sequence_number", record.Change.SequenceNumber, "error", err)
						failed[i] = true
					}
				}
				return nil
			})
		}
		_ = group.Wait() // its errors are in failed
		return batch.Failures(failed), nil
	}
}

func (p Parts) followCall(ctx context.Context, m Machine, record dynamo.StreamRecord) error {
	after, isCall, err := dynamo.CallImage(record.Change.NewImage)
	if err != nil || !isCall {
		return err
	}
	before, existed, err := dynamo.CallImage(record.Change.OldImage)
	switch {
	case err != nil:
		return err
	case !existed && after.Active():
		return m.start(ctx, string(after.CallID), callInput{
			WorkspaceID: after.WorkspaceID, CallID: after.CallID,
			PickupSeconds: seconds(p.Scale.Pickup()), CallSeconds: seconds(p.Scale.Longest(after.LongestSeconds)),
		})
	case existed && after.Token != "" && (before.Status != after.Status || before.HungUpAt != after.HungUpAt):
		return m.wake(ctx, after.Token)
	}
	return nil
}

func (p Parts) followThread(ctx context.Context, m Machine, record dynamo.StreamRecord) error {
	after, isThread, err := dynamo.ThreadImage(record.Change.NewImage)
	if err != nil || !isThread {
		return err
	}
	before, existed, err := dynamo.ThreadImage(record.Change.OldImage)
	switch {
	case err != nil:
		return err
	case !existed && after.Open():
		ws, _, err := p.Store.CallConfig(ctx, after.WorkspaceID, after.AssistantID)
		if err != nil {
			return err
		}
		return m.start(ctx, string(after.ThreadID), threadInput{
			WorkspaceID: after.WorkspaceID, ThreadID: after.ThreadID, WaitSeconds: seconds(p.Scale.FirstLook(ws)),
		})
	case existed && after.Token != "" && awaited(after) && !awaited(before):
		return m.wake(ctx, after.Token)
	}
	return nil
}

func seconds(d time.Duration) int { return int(d / time.Second) }

// followMessage queues the turn of a customer's message, and its event mark, both counted
// from its arrival: in whole seconds, so that no turn is early, and no mark late.
func (p Parts) followMessage(ctx context.Context, queues TurnQueues, record dynamo.StreamRecord) error {
	m, isMessage, err := dynamo.MessageImage(record.Change.NewImage)
	if err != nil || !isMessage || m.Direction != conversation.Inbound {
		return err
	}
	if _, existed, err := dynamo.MessageImage(record.Change.OldImage); err != nil || existed {
		return err
	}
	item := TurnItem{WorkspaceID: m.WorkspaceID, ThreadID: m.ThreadID, MessageID: m.MessageID}
	mark := item
	mark.MarkOnly = true
	now := p.Now()
	due, latest := m.ArrivedAt.Add(p.Scale.Of(replyPause)).Sub(now), m.ArrivedAt.Add(latestMark).Sub(now)
	return errors.Join(
		queues.send(ctx, queues.Turns, item, math.Ceil(due.Seconds())),
		queues.send(ctx, queues.Marks, mark, math.Floor(latest.Seconds())),
	)
}

// send queues an item for after a delay, in whole seconds; at once if it is over.
func (q TurnQueues) send(ctx context.Context, url string, item TurnItem, delay float64) error {
	body, err := json.Marshal(item)
	if err == nil {
		_, err = q.Client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: &url, MessageBody: aws.String(string(body)), MessageGroupId: aws.String(string(item.WorkspaceID)),
			DelaySeconds: int32(max(0, delay)),
		})
	}
	if err != nil {
		return fmt.Errorf("queue message %s: %w", item.MessageID, err)
	}
	return nil
}
