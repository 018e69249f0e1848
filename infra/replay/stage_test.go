package main

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"parley/shared/conversation"
	"parley/shared/emulator"
)

func TestBucketOf(t *testing.T) {
	cfg := emulator.Config(t)
	tests := map[string]struct {
		outputs   string // empty: there is no stack
		want      string
		wantError string
	}{
		"deployed":         {`{"Bucket": {"Value": "b"}, "WorkspacesTable": {"Value": "w"}}`, "b", ""},
		"of an older form": {`{"WorkspacesTable": {"Value": "w"}}`, "", "deploy it again"},
		"not deployed":     {"", "", "is not deployed in us-east-1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			stage := conversation.NewID()
			if tt.outputs != "" {
				_, err := cloudformation.NewFromConfig(cfg).CreateStack(t.Context(), &cloudformation.CreateStackInput{
					StackName:    aws.String("parley-" + stage + "-data"),
					TemplateBody: aws.String(`{"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}, "Outputs": ` + tt.outputs + `}`),
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			got, err := bucketOf(t.Context(), cfg, stage)
			if tt.wantError == "" && (err != nil || got != tt.want) {
				t.Errorf("bucketOf = %q, %v; want %q", got, err, tt.want)
			}
			if tt.wantError != "" && (err == nil || !strings.Contains(err.Error(), tt.wantError)) {
				t.Errorf("bucketOf = %q, %v; want the error %q", got, err, tt.wantError)
			}
		})
	}
}
