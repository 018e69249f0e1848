package lifecycle_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"parley/shared/lifecycle"
)

// steps speaks Step Functions' protocol, as far as the lifecycle needs:
// executions by name, and tokens that wait.
type steps struct {
	lifecycle.Machine

	mu      sync.Mutex
	started map[string]string // inputs, by execution name
	waiting map[string]bool   // tokens
	woken   []string
	answer  func(operation string) (errorType string) // "": none
}

const (
	machineARN       = "arn:aws:states:us-east-1:000000000000:stateMachine:calls"
	threadMachineARN = "arn:aws:states:us-east-1:000000000000:stateMachine:threads"
)

func newSteps(testing.TB) *steps {
	s := &steps{started: map[string]string{}, waiting: map[string]bool{}, answer: func(string) string { return "" }}
	s.Machine = lifecycle.Machine{ARN: machineARN, Client: sfn.NewFromConfig(inProcess(s.serve))}
	return s
}

// inProcess is an AWS whose every request a handler answers, without a connection.
func inProcess(handler http.HandlerFunc) aws.Config {
	return aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient: doer(handler), RetryMaxAttempts: 1,
	}
}

type doer http.HandlerFunc

func (d doer) Do(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	d(recorder, r)
	return recorder.Result(), nil
}

func (s *steps) serve(w http.ResponseWriter, r *http.Request) {
	var request struct{ StateMachineArn, Name, Input, TaskToken, Output string }
	_ = json.NewDecoder(r.Body).Decode(&request)
	s.mu.Lock()
	defer s.mu.Unlock()
	operation := r.Header.Get("X-Amz-Target")[len("AWSStepFunctions."):]
	problem := s.answer(operation)
	switch {
	case problem != "":
	case operation == "StartExecution" && request.StateMachineArn != machineARN && request.StateMachineArn != threadMachineARN:
		problem = "StateMachineDoesNotExist"
	case operation == "StartExecution" && s.started[request.Name] != "":
		problem = "ExecutionAlreadyExists"
	case operation == "StartExecution":
		s.started[request.Name] = request.Input
	case operation == "SendTaskSuccess" && !s.waiting[request.TaskToken]:
		problem = "TaskDoesNotExist"
	case operation == "SendTaskSuccess" && !json.Valid([]byte(request.Output)):
		problem = "InvalidOutput"
	case operation == "SendTaskSuccess":
		delete(s.waiting, request.TaskToken)
		s.woken = append(s.woken, request.TaskToken)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	answer := map[string]any{"executionArn": machineARN + ":" + request.Name, "startDate": 1.5e9}
	if problem != "" {
		w.WriteHeader(http.StatusBadRequest)
		answer = map[string]any{"__type": problem, "message": "no"}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// threads is the state machine of text conversations.
func (s *steps) threads() lifecycle.Machine {
	return lifecycle.Machine{ARN: threadMachineARN, Client: s.Client}
}

// wait lets a task wait for a token.
func (s *steps) wait(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[token] = true
}

// isWaiting tells whether nobody has answered the token.
func (s *steps) isWaiting(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting[token]
}
