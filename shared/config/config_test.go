package config

import (
	"strings"
	"testing"
)

func environment() map[string]string {
	return map[string]string{
		ConversationsTable: "c", WorkspacesTable: "w", DeliveriesTable: "d", CountersTable: "n",
		Bucket: "b", BaseURL: "https://api.example.com/", TimeScale: "60",
		SimulatorFunction: "f", SimulatorQueueURL: "q", SimulatorSecret: "s", CallLifecycle: "m", ThreadLifecycle: "t", TurnQueueURL: "u", MarkQueueURL: "x",
		DeliveryQueueURL: "v", WebhookKey: "k", WebhookRetry: "r", LoopbackWebhooks: "true",
	}
}

func load(env map[string]string) (Config, error) {
	return Load(func(name string) string { return env[name] })
}

func TestLoad(t *testing.T) {
	got, err := load(environment())
	want := Config{"c", "w", "d", "n", "b", "https://api.example.com", 60, "f", "q", "s", "m", "t", "u", "x", "v", "k", "r", true}
	if err != nil || got != want {
		t.Errorf("Load = %+v, %v; want %+v", got, err, want)
	}
}

func TestLoadRefusesABadScale(t *testing.T) {
	for _, scale := range []string{"0", "-1", "1.5", "x"} {
		env := environment()
		env[TimeScale] = scale
		if _, err := load(env); err == nil || !strings.Contains(err.Error(), TimeScale) {
			t.Errorf("%s=%s: error %v, want one that names it", TimeScale, scale, err)
		}
	}
}

func TestLoadRefusesABadSwitch(t *testing.T) {
	env := environment()
	env[LoopbackWebhooks] = "maybe"
	if _, err := load(env); err == nil || !strings.Contains(err.Error(), LoopbackWebhooks) {
		t.Errorf("error %v, want one that names %s", err, LoopbackWebhooks)
	}
}

func TestLoadNamesEverythingMissing(t *testing.T) {
	_, err := load(nil)
	for name := range environment() {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v does not name %s", err, name)
		}
	}
}
