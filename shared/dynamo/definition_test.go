package dynamo_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/dynamo/dynamotest"
	"parley/shared/emulator"
)

const (
	mainNumber  = "+12025550101"
	otherNumber = "+12025550102"
)

// newDefinition is a workspace with one assistant, which has one number.
func newDefinition() dynamo.Definition {
	ws := conversation.WorkspaceID(conversation.NewID())
	return dynamo.Definition{
		Workspace: conversation.Workspace{
			WorkspaceID: ws, Name: "Harbour Hotel", Timezone: "Europe/London", Country: "GB",
			Variables: map[string]string{"check_in": "3 pm"}, Currency: "GBP",
			Limits:            conversation.Limits{ConcurrentCalls: 10, CallsPerHour: 200, LongestCallSeconds: 3600},
			InactivitySeconds: 1800, HelpText: "Call us.", Carrier: "simulator", Model: "scripted",
		},
		Assistants: []conversation.AssistantConfig{newAssistant(ws, "Reception", mainNumber)},
	}
}

func newAssistant(ws conversation.WorkspaceID, name string, numbers ...string) conversation.AssistantConfig {
	a := conversation.AssistantConfig{
		Assistant: conversation.Assistant{
			AssistantID:   conversation.AssistantID(conversation.NewID()),
			AssistantName: name, WorkspaceID: ws,
			PhoneNumbers: []conversation.PhoneNumber{}, CallVariables: []string{"guest"},
		},
		Enabled: true, Prompt: "Help {{guest}}.", Greeting: "Hello.", Voice: "calm", Model: "scripted", Language: "en",
		Criteria: []conversation.Criterion{{
			EvaluationID: conversation.EvaluationID(conversation.NewID()), Title: "Answered", Instructions: "It was answered.", Enabled: true,
		}},
	}
	for _, n := range numbers {
		a.PhoneNumbers = append(a.PhoneNumbers, conversation.PhoneNumber{PhoneNumber: n, Country: "US", OutboundEnabled: true})
	}
	return a
}

// stage is a store with a client beside it that sees the running state in the items.
type stage struct {
	*dynamo.Store
	db    *dynamodb.Client
	table string
}

func newStage(t *testing.T) stage {
	cfg := emulator.Config(t)
	names := dynamotest.Stage(t, cfg)
	return stage{dynamo.New(cfg, names), dynamodb.NewFromConfig(cfg), names.WorkspacesTable}
}

func (s stage) define(t *testing.T, have, want dynamo.Definition) dynamo.Definition {
	t.Helper()
	if err := s.Define(t.Context(), have, want, "25.5"); err != nil {
		t.Fatalf("Define = %v", err)
	}
	return s.definition(t, want.Workspace.WorkspaceID)
}

func (s stage) definition(t *testing.T, ws conversation.WorkspaceID) dynamo.Definition {
	t.Helper()
	d, err := s.Definition(t.Context(), ws)
	if err != nil {
		t.Fatalf("Definition = %v", err)
	}
	return d
}

func (s stage) setNumber(t *testing.T, pk, attribute, value string) {
	t.Helper()
	_, err := s.db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: keyOf(pk),
		UpdateExpression:          aws.String("SET #a = :v"),
		ExpressionAttributeNames:  map[string]string{"#a": attribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{":v": &types.AttributeValueMemberN{Value: value}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s stage) number(t *testing.T, pk, attribute string) string {
	t.Helper()
	out, err := s.db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &s.table, Key: keyOf(pk)})
	if err != nil {
		t.Fatal(err)
	}
	n, _ := out.Item[attribute].(*types.AttributeValueMemberN)
	if n == nil {
		return ""
	}
	return n.Value
}

func keyOf(pk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{dynamo.PartitionKey: &types.AttributeValueMemberS{Value: pk}}
}

func workspacePK(d dynamo.Definition) string {
	ws := string(d.Workspace.WorkspaceID)
	return ws + "#workspace#" + ws
}

func slotsPK(d dynamo.Definition, i int) string {
	return string(d.Workspace.WorkspaceID) + "#slots#" + string(d.Assistants[i].AssistantID)
}

func TestDefinitionIsReadAsItWasWritten(t *testing.T) {
	s := newStage(t)
	want := newDefinition()
	got := s.define(t, dynamo.Definition{}, want)

	want.Version, want.Assistants[0].Version = 1, 1
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Definition differs (-want +got):\n%s", diff)
	}
	number, err := s.Number(t.Context(), "simulator", mainNumber)
	if err != nil || number != want.Numbers()[0] {
		t.Errorf("Number = %+v, %v; want %+v", number, err, want.Numbers()[0])
	}
	page, err := s.Assistants(t.Context(), want.Workspace.WorkspaceID, dynamo.PageRequest{Limit: 10})
	if err != nil || len(page.Items) != 1 || !cmp.Equal(page.Items[0], want.Assistants[0].Assistant) {
		t.Errorf("Assistants = %+v, %v; want %+v alone", page.Items, err, want.Assistants[0].Assistant)
	}
}

func TestDefinitionOfNoWorkspace(t *testing.T) {
	s := newStage(t)
	if _, err := s.Definition(t.Context(), "nobody"); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("Definition = %v, want ErrNotFound", err)
	}
	if _, err := s.Number(t.Context(), "simulator", mainNumber); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("Number = %v, want ErrNotFound", err)
	}
}

func TestDefineLeavesRunningState(t *testing.T) {
	s := newStage(t)
	have := s.define(t, dynamo.Definition{}, newDefinition())
	if got := s.number(t, workspacePK(have), "balance"); got != "25.5" {
		t.Errorf("opening balance = %q, want 25.5", got)
	}
	s.setNumber(t, workspacePK(have), "balance", "3.2")

	want := have
	want.Workspace.HelpText = ""
	want.Assistants = []conversation.AssistantConfig{have.Assistants[0]}
	want.Assistants[0].Prompt = "Be brief."
	got := s.define(t, have, want)

	if balance := s.number(t, workspacePK(have), "balance"); balance != "3.2" {
		t.Errorf("balance = %q, want 3.2", balance)
	}
	want.Version, want.Assistants[0].Version = 2, 2
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Definition differs (-want +got):\n%s", diff)
	}
}

func TestDefineKeepsTheVersionOfAnAssistantThatStays(t *testing.T) {
	s := newStage(t)
	have := s.define(t, dynamo.Definition{}, newDefinition())
	want := have
	want.Workspace.Name = "Harbour House"
	if got := s.define(t, have, want); got.Version != 2 || got.Assistants[0].Version != 1 {
		t.Errorf("versions = %d, %d; want 2, 1", got.Version, got.Assistants[0].Version)
	}
}

func TestDefineRemoves(t *testing.T) {
	s := newStage(t)
	first := newDefinition()
	first.Assistants = append(first.Assistants, newAssistant(first.Workspace.WorkspaceID, "Bar", otherNumber))
	have := s.define(t, dynamo.Definition{}, first)

	want := have
	want.Assistants = have.Assistants[:1]
	got := s.define(t, have, want)

	if len(got.Assistants) != 1 || got.Assistants[0].AssistantName != "Reception" {
		t.Errorf("assistants = %+v, want Reception alone", got.Assistants)
	}
	if _, err := s.Number(t.Context(), "simulator", otherNumber); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("Number = %v, want ErrNotFound", err)
	}
	page, err := s.Assistants(t.Context(), want.Workspace.WorkspaceID, dynamo.PageRequest{Limit: 10})
	if err != nil || len(page.Items) != 1 {
		t.Errorf("Assistants = %+v, %v; want one", page.Items, err)
	}
}

func TestDefineRefuses(t *testing.T) {
	s := newStage(t)
	have := s.define(t, dynamo.Definition{}, newDefinition())

	outdated := have
	outdated.Version = 0
	taken := newDefinition()
	taken.Assistants[0].PhoneNumbers = append(taken.Assistants[0].PhoneNumbers,
		conversation.PhoneNumber{PhoneNumber: otherNumber, Country: "US"})
	empty := have
	empty.Assistants = nil
	s.setNumber(t, slotsPK(have, 0), "active_calls", "1")
	crowd := newDefinition()
	for range 100 {
		crowd.Assistants = append(crowd.Assistants, newAssistant(crowd.Workspace.WorkspaceID, "One of many"))
	}

	tests := map[string]struct {
		have, want dynamo.Definition
		conflict   string
	}{
		"a definition that has changed since":       {outdated, have, "somebody else has changed the workspace"},
		"a number of another workspace":             {dynamo.Definition{}, taken, "number " + mainNumber + " belongs to another workspace"},
		"removing an assistant that is on a call":   {have, empty, "assistant Reception is on a call"},
		"more at once than a transaction can write": {dynamo.Definition{}, crowd, "only 100 can at once"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := s.Define(t.Context(), tt.have, tt.want, "1")
			if err == nil || !strings.Contains(err.Error(), tt.conflict) {
				t.Errorf("Define = %v, want %q", err, tt.conflict)
			}
			if got := s.definition(t, have.Workspace.WorkspaceID); !cmp.Equal(got, have) {
				t.Errorf("the definition has changed all the same:\n%s", cmp.Diff(have, got))
			}
		})
	}
	if _, err := s.Definition(t.Context(), taken.Workspace.WorkspaceID); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("a refused workspace is there: %v, want ErrNotFound", err)
	}
	if _, err := s.Number(t.Context(), "simulator", otherNumber); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("a refused workspace's number is there: %v, want ErrNotFound", err)
	}
}
