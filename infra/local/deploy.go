package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"parley/shared/config"
	"parley/shared/dynamo"
)

// outputs are those of the deployed stacks: stack → name → value.
type outputs map[string]map[string]string

// build is `make build` for this machine, as the emulator runs the functions on it.
func (l *local) build(ctx context.Context) error {
	return l.command(l.root).run(ctx, "make", "-s", "build", "ARCH="+runtime.GOARCH, "OS="+runtime.GOOS)
}

func (l *local) cdk() string {
	return filepath.Join(l.root, ".local", "cdk", "node_modules", ".bin", "cdk")
}

// bootstrap makes what the CDK needs in an account. It runs where there is no cdk.json,
// so that the CLI doesn't run the app for it.
func (l *local) bootstrap(ctx context.Context) error {
	err := l.command(l.work()).run(ctx, l.cdk(), "bootstrap", "--no-notices", "aws://"+account+"/"+region)
	if err != nil {
		return err
	}
	// The bucket's policy denies plain http, which is what an emulator speaks.
	bucket := "cdk-hnb659fds-assets-" + account + "-" + region
	cfg, err := l.aws(ctx)
	if err != nil {
		return err
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	if _, err := client.DeleteBucketPolicy(ctx, &s3.DeleteBucketPolicyInput{Bucket: aws.String(bucket)}); err != nil {
		return fmt.Errorf("delete the policy of bucket %s: %w", bucket, err)
	}
	return nil
}

func (l *local) deploy(ctx context.Context) error {
	file := filepath.Join(l.work(), "outputs.json")
	err := l.command(l.root).run(ctx, l.cdk(), "deploy", "--all", "--no-notices",
		"--require-approval=never", "--method=direct", "--progress=events",
		"--app", filepath.Join(l.root, ".local", "bin", "infra"),
		"--output", filepath.Join(l.work(), "cdk.out"),
		"--outputs-file", file,
		"-c", "stage=local",
		"-c", "baseUrl="+l.stack.BaseURL,
		"-c", "timeScale="+strconv.Itoa(l.timeScale))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &l.outputs); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	if l.apiURL() == "" {
		return errors.New("stack parley-local-service has no output ApiUrl")
	}
	return nil
}

// data names the tables and the bucket.
func (l *local) data() config.Config {
	values := l.outputs["parley-local-data"]
	return config.Config{
		ConversationsTable: values["ConversationsTable"],
		WorkspacesTable:    values["WorkspacesTable"],
		DeliveriesTable:    values["DeliveriesTable"],
		CountersTable:      values["CountersTable"],
		Bucket:             values["Bucket"],
	}
}

// apiURL is what the emulator takes for the public address of the API.
func (l *local) apiURL() string { return l.outputs["parley-local-service"]["ApiUrl"] }

// applyWorkspaces runs the operator's command on the demo's definitions.
func (l *local) applyWorkspaces(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(l.root, "infra", "local", "demo*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		err := l.command(l.root).run(ctx, filepath.Join(l.root, ".local", "bin", "workspace"), "apply", file, "--stage", "local")
		if err != nil {
			return err
		}
	}
	return nil
}

// fill gives the demo's workspaces keys and a history.
func (l *local) fill(ctx context.Context) error {
	cfg, err := l.aws(ctx)
	if err != nil {
		return err
	}
	l.stack.demo, err = fillDemo(ctx, dynamo.New(cfg, l.data()), time.Now())
	return err
}
