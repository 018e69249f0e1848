package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/smithy-go"
)

// bucketOf finds a stage's bucket by the outputs of its data stack.
func bucketOf(ctx context.Context, cfg aws.Config, stage string) (string, error) {
	stack := "parley-" + stage + "-data"
	found, err := cloudformation.NewFromConfig(cfg).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &stack})
	// CloudFormation has no other name for a stack that isn't there.
	if missing := smithy.APIError(nil); errors.As(err, &missing) && missing.ErrorCode() == "ValidationError" {
		return "", fmt.Errorf("stage %s is not deployed in %s (no stack %s): deploy it first", stage, cfg.Region, stack)
	}
	if err != nil {
		return "", fmt.Errorf("look for stack %s: %w", stack, err)
	}
	for _, output := range found.Stacks[0].Outputs {
		if aws.ToString(output.OutputKey) == "Bucket" {
			return aws.ToString(output.OutputValue), nil
		}
	}
	return "", fmt.Errorf("the outputs of stack %s lack the bucket: deploy it again", stack)
}
