// Package config names the environment variables that the functions read, and reads them,
// once, into a Config. Infra sets the same names.
package config

import (
	"fmt"
	"log"
	"log/slog"
	"os"
	"strconv"
	"strings"
)

// Names of the environment variables.
const (
	ConversationsTable = "CONVERSATIONS_TABLE"
	WorkspacesTable    = "WORKSPACES_TABLE"
	DeliveriesTable    = "DELIVERIES_TABLE"
	CountersTable      = "COUNTERS_TABLE"
	Bucket             = "BUCKET"
	BaseURL            = "BASE_URL"
	TimeScale          = "TIME_SCALE"
	SimulatorFunction  = "SIMULATOR_FUNCTION"
	SimulatorQueueURL  = "SIMULATOR_QUEUE_URL"
	SimulatorSecret    = "SIMULATOR_SECRET"
	CallLifecycle      = "CALL_LIFECYCLE"
	ThreadLifecycle    = "THREAD_LIFECYCLE"
	TurnQueueURL       = "TURN_QUEUE_URL"
	MarkQueueURL       = "MARK_QUEUE_URL"
	DeliveryQueueURL   = "DELIVERY_QUEUE_URL"
	WebhookKey         = "WEBHOOK_KEY"
	WebhookRetry       = "WEBHOOK_RETRY"
	LoopbackWebhooks   = "LOOPBACK_WEBHOOKS"
)

// Config is what a function needs to know of its stage.
type Config struct {
	ConversationsTable string
	WorkspacesTable    string
	DeliveriesTable    string
	CountersTable      string
	Bucket             string
	BaseURL            string // public address of the API, without a trailing slash
	TimeScale          int    // long durations are divided by it; 1 unless a stage is for trying things out
	SimulatorFunction  string // name of simulate-carrier
	SimulatorQueueURL  string // of the steps that it plays later
	SimulatorSecret    string // name of the secret that signs its callbacks
	CallLifecycle      string // ARN of the state machine of calls
	ThreadLifecycle    string // ARN of the state machine of text conversations
	TurnQueueURL       string // of the assistants' turns in text conversations
	MarkQueueURL       string // of the event marks of customers' messages
	DeliveryQueueURL   string // of webhooks' deliveries
	WebhookKey         string // ARN of the KMS key that seals webhooks' secrets
	WebhookRetry       string // ARN of the state machine of deliveries that failed at first
	LoopbackWebhooks   bool   // whether webhooks may go to this machine: on the local stage alone
}

// Load reads a Config with getenv. The error names every variable that is missing.
func Load(getenv func(string) string) (Config, error) {
	var missing []string
	get := func(name string) string {
		value := getenv(name)
		if value == "" {
			missing = append(missing, name)
		}
		return value
	}
	cfg := Config{
		ConversationsTable: get(ConversationsTable),
		WorkspacesTable:    get(WorkspacesTable),
		DeliveriesTable:    get(DeliveriesTable),
		CountersTable:      get(CountersTable),
		Bucket:             get(Bucket),
		BaseURL:            strings.TrimSuffix(get(BaseURL), "/"),
		SimulatorFunction:  get(SimulatorFunction),
		SimulatorQueueURL:  get(SimulatorQueueURL),
		SimulatorSecret:    get(SimulatorSecret),
		CallLifecycle:      get(CallLifecycle),
		ThreadLifecycle:    get(ThreadLifecycle),
		TurnQueueURL:       get(TurnQueueURL),
		MarkQueueURL:       get(MarkQueueURL),
		DeliveryQueueURL:   get(DeliveryQueueURL),
		WebhookKey:         get(WebhookKey),
		WebhookRetry:       get(WebhookRetry),
	}
	scale, loopback := get(TimeScale), get(LoopbackWebhooks)
	if missing != nil {
		return Config{}, fmt.Errorf("read configuration: not set: %s", strings.Join(missing, ", "))
	}
	var err error
	if cfg.TimeScale, err = strconv.Atoi(scale); err != nil || cfg.TimeScale < 1 {
		return Config{}, fmt.Errorf("read configuration: %s is %q, want a number from 1", TimeScale, scale)
	}
	if cfg.LoopbackWebhooks, err = strconv.ParseBool(loopback); err != nil {
		return Config{}, fmt.Errorf("read configuration: %s is %q, want true or false", LoopbackWebhooks, loopback)
	}
	return cfg, nil
}

// MustLoad begins a function: it makes its log lines JSON and reads its environment. It
// ends the process if something is missing.
func MustLoad() Config {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	cfg, err := Load(os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	return cfg
}
