package lifecycle_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/uuid"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/lifecycle"
)

func sampleEvent(t *testing.T, function string, into any, strict bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../events", function+".json"))
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if strict {
		decoder.DisallowUnknownFields()
	}
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", function, err)
	}
}

// The sample events of the functions behind the API are what those functions are sent.
func TestSampleEvents(t *testing.T) {
	var task lifecycle.Task
	sampleEvent(t, "advance-call", &task, true)
	if uuid.Validate(string(task.WorkspaceID)) != nil || uuid.Validate(string(task.CallID)) != nil || task.Token != "" {
		t.Errorf("advance-call: %+v, want a task that finishes a call", task)
	}
	var look lifecycle.ThreadTask
	sampleEvent(t, "advance-thread", &look, true)
	if uuid.Validate(string(look.WorkspaceID)) != nil || uuid.Validate(string(look.ThreadID)) != nil || look.Token != "" {
		t.Errorf("advance-thread: %+v, want a task that looks at a thread", look)
	}
	var queued events.SQSEvent
	sampleEvent(t, "reply-to-thread", &queued, false)
	var item lifecycle.TurnItem
	if err := json.Unmarshal([]byte(queued.Records[0].Body), &item); err != nil || item.ThreadID != look.ThreadID || item.WorkspaceID != look.WorkspaceID || uuid.Validate(string(item.MessageID)) != nil || item.MarkOnly {
		t.Errorf("reply-to-thread: %+v, %v; want the turn of a message of that thread", item, err)
	}
	var batch dynamo.StreamEvent
	sampleEvent(t, "start-lifecycles", &batch, false)
	if len(batch.Records) != 1 || batch.Records[0].EventName != "INSERT" || batch.Records[0].Change.SequenceNumber == "" || batch.Records[0].Change.OldImage != nil {
		t.Fatalf("start-lifecycles: %+v, want one new item", batch)
	}
	call, isCall, err := dynamo.CallImage(batch.Records[0].Change.NewImage)
	if err != nil || !isCall || call.Status != conversation.CallQueued || call.CallID != task.CallID || call.WorkspaceID != task.WorkspaceID || call.LongestSeconds == 0 || !call.HoldsSlot {
		t.Errorf("start-lifecycles: %+v, %v; want the call, queued", call, err)
	}
	var scheduled struct {
		Source string `json:"source"`
	}
	sampleEvent(t, "sweep", &scheduled, false)
	if scheduled.Source != "aws.scheduler" {
		t.Errorf("sweep: from %q, want the scheduler", scheduled.Source)
	}
}
