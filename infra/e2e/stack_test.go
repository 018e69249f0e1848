// Package e2e tries the deployed stack from outside: over HTTP, through the gateway, by
// functions that may do what their roles allow and nothing else.
package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"parley/shared/config"
	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/emulator"
)

// A stack is a running one as its stack.json describes it, and the way to its tables.
type stack struct {
	BaseURL          string                              `json:"base_url"`
	AWSEndpointURL   string                              `json:"aws_endpoint_url"`
	TimeScale        int                                 `json:"time_scale"`
	WorkspaceID      conversation.WorkspaceID            `json:"workspace_id"`
	OtherWorkspaceID conversation.WorkspaceID            `json:"other_workspace_id"`
	Keys             map[string]key                      `json:"keys"`
	Assistants       map[string]conversation.AssistantID `json:"assistants"`
	Numbers          map[string][]string                 `json:"numbers"`

	aws            aws.Config
	config         config.Config // its tables and its bucket
	store          *dynamo.Store
	userPool       string
	userPoolClient string
}

// running is the stack that all tests share; each has workspaces and keys of its own.
var running struct {
	sync.Once
	stack *stack
	local *local // nil if somebody else runs it
}

func TestMain(m *testing.M) {
	status := m.Run()
	if running.local != nil {
		running.local.end()
	}
	os.Exit(status)
}

// deployed is the running stack. The first test that asks for it starts it, unless one
// with the same durations is up already.
func deployed(t testing.TB) *stack {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the deployed stack, which -short leaves out")
	}
	running.Do(func() {
		began := time.Now()
		s, err := findOrStart()
		if err == nil {
			err = s.open(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		running.stack = s
		t.Logf("the stack at %s is up after %.1f s", s.BaseURL, time.Since(began).Seconds())
	})
	if running.stack == nil {
		t.Fatal("there is no stack")
	}
	return running.stack
}

const timeScale = 60

// startTimeout covers the first start on a machine, which compiles and installs for
// minutes, and another run of these tests, whose end is awaited.
const startTimeout = 12 * time.Minute

func findOrStart() (*stack, error) {
	root, err := emulator.Root()
	if err != nil {
		return nil, err
	}
	if s, err := readStack(filepath.Join(root, ".local", "stack.json")); err == nil && s.TimeScale == timeScale && s.answers() {
		return s, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	file := filepath.Join(root, ".local", "e2e.json")
	running.local, err = startLocal(ctx, root, file)
	if err != nil {
		return nil, fmt.Errorf("start a stack: %w", err)
	}
	if err := running.local.awaitFile(ctx, file); err != nil {
		return nil, fmt.Errorf("start a stack: %w", err)
	}
	return readStack(file)
}

func readStack(file string) (*stack, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := new(stack)
	return s, json.Unmarshal(text, s)
}

// answers tells whether the stack is up: a killed one leaves its file behind.
func (s *stack) answers() bool {
	req, err := http.NewRequest(http.MethodGet, s.BaseURL+"/open-api", nil)
	if err != nil {
		return false
	}
	req.Header.Set("Authorization", s.Keys["full"].header())
	res, err := (&http.Client{Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// open finds the tables, the bucket and the users by the outputs of the data stack.
func (s *stack) open(ctx context.Context) error {
	var err error
	s.aws, err = config.AWS(ctx,
		awsconfig.WithRegion("us-east-1"),
		awsconfig.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("test", "test", "")),
		awsconfig.WithBaseEndpoint(s.AWSEndpointURL))
	if err != nil {
		return err
	}
	s.aws.ConfigSources = nil // AWS_ENDPOINT_URL_DYNAMODB is for the store's own tests
	found, err := cloudformation.NewFromConfig(s.aws).DescribeStacks(ctx,
		&cloudformation.DescribeStacksInput{StackName: aws.String("parley-local-data")})
	if err != nil {
		return fmt.Errorf("look for the tables: %w", err)
	}
	values := map[string]string{}
	for _, output := range found.Stacks[0].Outputs {
		values[aws.ToString(output.OutputKey)] = aws.ToString(output.OutputValue)
	}
	s.config = config.Config{
		ConversationsTable: values["ConversationsTable"],
		WorkspacesTable:    values["WorkspacesTable"],
		DeliveriesTable:    values["DeliveriesTable"],
		CountersTable:      values["CountersTable"],
		Bucket:             values["Bucket"],
	}
	s.store = dynamo.New(s.aws, s.config)
	s.userPool, s.userPoolClient = values["UserPool"], values["UserPoolClient"]
	return nil
}
