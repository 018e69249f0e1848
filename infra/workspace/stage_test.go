package main

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"parley/shared/conversation"
	"parley/shared/emulator"
)

// dataStack has the outputs of a stage's data stack, and one resource, as it must.
const dataStack = `{
  "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
  "Outputs": {
    "ConversationsTable": {"Value": "c"}, "WorkspacesTable": {"Value": "w"},
    "DeliveriesTable": {"Value": "d"}, "CountersTable": {"Value": "n"}, "Bucket": {"Value": "b"}
  }
}`

func TestOpenStage(t *testing.T) {
	cfg := emulator.Config(t)
	stage := conversation.NewID()
	if _, err := openStage(t.Context(), cfg, stage); err == nil || !strings.Contains(err.Error(), "stage "+stage+" is not deployed in us-east-1") {
		t.Errorf("openStage = %v, want that it is not deployed", err)
	}
	client := cloudformation.NewFromConfig(cfg)
	_, err := client.CreateStack(t.Context(), &cloudformation.CreateStackInput{
		StackName: aws.String("parley-" + stage + "-data"), TemplateBody: aws.String(dataStack),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openStage(t.Context(), cfg, stage); err != nil {
		t.Errorf("openStage = %v, want a store", err)
	}
}

func TestConfigOf(t *testing.T) {
	outputs := []types.Output{
		{OutputKey: aws.String("WorkspacesTable"), OutputValue: aws.String("w")},
		{OutputKey: aws.String("ConversationsTable"), OutputValue: aws.String("c")},
	}
	if _, err := configOf(outputs); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("configOf without a bucket = %v, want an error", err)
	}
	outputs = append(outputs, types.Output{OutputKey: aws.String("Bucket"), OutputValue: aws.String("b")})
	got, err := configOf(outputs)
	if err != nil || got.WorkspacesTable != "w" || got.ConversationsTable != "c" || got.Bucket != "b" {
		t.Errorf("configOf = %+v, %v; want w, c and b", got, err)
	}
}
