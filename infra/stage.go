package main

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// local is the stage that runs on an emulator of AWS on this machine.
const local = "local"

// A Stage is one deployment of the service: local, dev, prod. All that differs between
// stages is here, and comes from CDK's context.
type Stage struct {
	Name      string
	BaseURL   string // public address of the API; empty: the one that AWS gives it
	TimeScale int    // long durations are divided by it
	Functions string // folder of the built functions
}

var stageName = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,14}[a-z0-9])?$`)

// readStage reads a Stage from the context. The error names everything that is wrong.
func readStage(node constructs.Node, functions string) (Stage, error) {
	name, nameErr := contextString(node, "stage")
	if nameErr == nil && !stageName.MatchString(name) {
		nameErr = fmt.Errorf("context stage: got %q, want 1 to 16 of a-z, 0-9 and -, a letter first (-c stage=dev)", name)
	}
	baseURL, urlErr := contextString(node, "baseUrl")
	if urlErr == nil {
		urlErr = checkBaseURL(baseURL)
	}
	timeScale, scaleErr := readTimeScale(node)
	return Stage{Name: name, BaseURL: baseURL, TimeScale: timeScale, Functions: functions}, errors.Join(nameErr, urlErr, scaleErr)
}

// readTimeScale is 1 where the context doesn't say. The command line gives texts, cdk.json
// numbers.
func readTimeScale(node constructs.Node) (int, error) {
	value := node.TryGetContext(jsii.String("timeScale"))
	if value == nil {
		return 1, nil
	}
	scale, err := strconv.Atoi(fmt.Sprint(value))
	if err != nil || scale < 1 {
		return 0, fmt.Errorf("context timeScale: got %v, want a whole number from 1", value)
	}
	return scale, nil
}

// contextString is empty where the context lacks key.
func contextString(node constructs.Node, key string) (string, error) {
	switch value := node.TryGetContext(jsii.String(key)).(type) {
	case nil:
		return "", nil
	case string:
		return value, nil
	default:
		return "", fmt.Errorf("context %s: got %v, want a string", key, value)
	}
}

func checkBaseURL(baseURL string) error {
	if baseURL == "" {
		return nil
	}
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || strings.ContainsAny(baseURL, "?#") {
		return fmt.Errorf("context baseUrl: got %q, want a URL like https://api.example.com", baseURL)
	}
	return nil
}

// name is the stage's own name for something, unique in an account and region.
func (s Stage) name(of string) *string { return jsii.String("parley-" + s.Name + "-" + of) }

// props belong to no account or region: a stack goes where the caller's credentials lead.
func (s Stage) props(description string) *awscdk.StackProps {
	return &awscdk.StackProps{
		AnalyticsReporting: jsii.Bool(false),
		Description:        jsii.String(description),
		Tags:               &map[string]*string{"service": jsii.String("parley"), "stage": jsii.String(s.Name)},
	}
}

// goarch is what the functions are built for: arm64 costs less on AWS, and an emulator
// runs them on the machine that it has.
func (s Stage) goarch() string {
	if s.Name == local {
		return runtime.GOARCH
	}
	return "arm64"
}
