package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/emulator"
)

// A change of a call that publish-events failed on, as Lambda keeps it in the bucket, makes
// its event when it is replayed, and is kept no longer.
func TestReplay(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	call := d.finished(t, accepted(t, d.order(t, orderTo("50"), "one call")).CallID)
	s := newUser(t, d.ws).subscribe(t, nil, conversation.CallCompleted)
	key := keep(t, d, call.CallID)

	for _, tt := range []struct {
		args []string
		kept bool
	}{{[]string{"--dry-run"}, true}, {[]string{"--function", "start-lifecycles"}, true}, {nil, false}} {
		out, err := replay(t, tt.args...)
		if err != nil || strings.Contains(out, string(call.CallID)) {
			t.Errorf("replay %v: %v: %s; want nothing of the record shown", tt.args, err, out)
		}
		if kept := isKept(t, key); kept != tt.kept {
			t.Errorf("after replay %v: kept %t, want %t: %s", tt.args, kept, tt.kept, out)
		}
	}
	e := s.await(t, 1)[0].open(t, s.Secret)
	if e.Event != conversation.CallCompleted || e.EventID != string(call.CallID) {
		t.Errorf("got %s of %s, want call.completed of %s", e.Event, e.EventID, call.CallID)
	}
}

// keep puts the last change of a call where Lambda would, and returns its key. The record
// was written after the endpoints were made.
func keep(t *testing.T, d desk, callID conversation.CallID) string {
	t.Helper()
	out, err := dynamodb.NewFromConfig(deployed(t).aws).GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &deployed(t).config.ConversationsTable, ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{dynamo.PartitionKey: &types.AttributeValueMemberS{Value: fmt.Sprintf("%s#call#%s", d.ws, callID)}},
	})
	if err != nil || out.Item == nil {
		t.Fatalf("read call %s: %v", callID, err)
	}
	images := map[string]json.RawMessage{}
	for _, name := range []string{"NewImage", "OldImage"} {
		if images[name], err = attributevalue.MarshalMapJSON(out.Item); err != nil {
			t.Fatal(err)
		}
		delete(out.Item, "completed_at")
	}
	event, err := json.Marshal(map[string]any{"Records": []any{map[string]any{
		"eventName": "MODIFY", "eventSource": "aws:dynamodb", "dynamodb": map[string]any{
			"SequenceNumber": "1", "ApproximateCreationDateTime": time.Now().Add(time.Minute).Unix(),
			"NewImage": images["NewImage"], "OldImage": images["OldImage"],
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := json.Marshal(map[string]any{
		"requestContext": map[string]any{
			"functionArn": "arn:aws:lambda:us-east-1:000000000000:function:parley-local-publish-events",
			"condition":   "RetryAttemptsExhausted", "approximateInvokeCount": 101,
		},
		"timestamp": time.Now().UTC().Format(time.RFC3339Nano), "payload": string(event),
	})
	if err != nil {
		t.Fatal(err)
	}
	key := dynamo.PoisonPrefix + conversation.NewID() + "/shard/2026/01/31/2026-01-31T08.00.00-" + conversation.NewID()
	if _, err := objects(t).PutObject(t.Context(), &s3.PutObjectInput{Bucket: &deployed(t).config.Bucket, Key: &key, Body: bytes.NewReader(kept)}); err != nil {
		t.Fatal(err)
	}
	return key
}

func objects(t *testing.T) *s3.Client {
	return s3.NewFromConfig(deployed(t).aws, func(o *s3.Options) { o.UsePathStyle = true })
}

func isKept(t *testing.T, key string) bool {
	t.Helper()
	out, err := objects(t).ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &deployed(t).config.Bucket, Prefix: &key})
	if err != nil {
		t.Fatal(err)
	}
	return len(out.Contents) > 0
}

// replay runs the operator's command.
func replay(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root, err := emulator.Root()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, ".local", "bin", "replay"), append([]string{"--stage", "local"}, args...)...)
	cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+deployed(t).AWSEndpointURL, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
