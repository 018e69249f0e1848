package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider"
	"github.com/aws/smithy-go"

	"parley/shared/config"
	"parley/shared/dynamo"
)

// openStage finds a stage's tables and bucket by the outputs of its data stack.
func openStage(ctx context.Context, cfg aws.Config, stage string) (*dynamo.Store, error) {
	store, _, err := openStageAndUsers(ctx, cfg, stage)
	return store, err
}

// openStageAndUsers finds a stage's user pool, too.
func openStageAndUsers(ctx context.Context, cfg aws.Config, stage string) (*dynamo.Store, userPool, error) {
	stack := "parley-" + stage + "-data"
	found, err := cloudformation.NewFromConfig(cfg).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &stack})
	// CloudFormation has no other name for a stack that isn't there.
	if missing := smithy.APIError(nil); errors.As(err, &missing) && missing.ErrorCode() == "ValidationError" {
		return nil, userPool{}, fmt.Errorf("stage %s is not deployed in %s (no stack %s): deploy it first", stage, cfg.Region, stack)
	}
	if err != nil {
		return nil, userPool{}, fmt.Errorf("look for stack %s: %w", stack, err)
	}
	stageConfig, err := configOf(found.Stacks[0].Outputs)
	if err != nil {
		return nil, userPool{}, fmt.Errorf("read outputs of stack %s: %w", stack, err)
	}
	users := userPool{client: cognitoidentityprovider.NewFromConfig(cfg)}
	for _, output := range found.Stacks[0].Outputs {
		if aws.ToString(output.OutputKey) == "UserPool" {
			users.id = aws.ToString(output.OutputValue)
		}
	}
	return dynamo.New(cfg, stageConfig), users, nil
}

// configOf reads the names that the data stack puts out.
func configOf(outputs []types.Output) (config.Config, error) {
	values := map[string]string{}
	for _, output := range outputs {
		values[aws.ToString(output.OutputKey)] = aws.ToString(output.OutputValue)
	}
	cfg := config.Config{
		ConversationsTable: values["ConversationsTable"],
		WorkspacesTable:    values["WorkspacesTable"],
		DeliveriesTable:    values["DeliveriesTable"],
		CountersTable:      values["CountersTable"],
		Bucket:             values["Bucket"],
	}
	if cfg.WorkspacesTable == "" || cfg.ConversationsTable == "" || cfg.Bucket == "" {
		return config.Config{}, fmt.Errorf("a table or the bucket is missing among %v", values)
	}
	return cfg, nil
}
