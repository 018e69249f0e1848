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

	// TurnConcurrency is how many batches of ten turns of text conversations run at once.
	TurnConcurrency int
	// DeliveryConcurrency is how many batches of webhooks' first attempts are made at once.
	// The defaults are for a new account's ten executions, of which the later attempts, which
	// nothing bounds there, may take what is left.
	DeliveryConcurrency int
	// ReserveDeliveries sets that many executions aside for them, and as many for the later
	// attempts, and keeps both from taking more. A new account has none to set aside.
	ReserveDeliveries bool
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
	timeScale, scaleErr := contextNumber(node, "timeScale", 1, 1, 3600)
	deliveries, deliveriesErr := contextNumber(node, "deliveryConcurrency", 5, 2, 1000)
	turns, turnsErr := contextNumber(node, "turnConcurrency", 2, 2, 1000)
	return Stage{
		Name: name, BaseURL: baseURL, TimeScale: timeScale, Functions: functions,
		TurnConcurrency:     turns,
		DeliveryConcurrency: deliveries,
		ReserveDeliveries:   node.TryGetContext(jsii.String("deliveryConcurrency")) != nil,
	}, errors.Join(nameErr, urlErr, scaleErr, turnsErr, deliveriesErr)
}

// contextNumber is what the context says, or else usual. The command line gives texts,
// cdk.json numbers.
func contextNumber(node constructs.Node, key string, usual, least, most int) (int, error) {
	value := node.TryGetContext(jsii.String(key))
	if value == nil {
		return usual, nil
	}
	number, err := strconv.Atoi(fmt.Sprint(value))
	if err != nil || number < least || number > most {
		return 0, fmt.Errorf("context %s: got %v, want a whole number from %d to %d", key, value, least, most)
	}
	return number, nil
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

// scaled divides the waits of a state machine by the stage's time scale, rounded up to a
// whole second.
func (s Stage) scaled(definition string) string {
	return waitSeconds.ReplaceAllStringFunc(definition, func(wait string) string {
		seconds, _ := strconv.Atoi(waitSeconds.FindStringSubmatch(wait)[1])
		return fmt.Sprintf(`"Type": "Wait", "Seconds": %d`, (seconds+s.TimeScale-1)/s.TimeScale)
	})
}

var waitSeconds = regexp.MustCompile(`"Type": "Wait", "Seconds": (\d{1,6})\b`)

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
