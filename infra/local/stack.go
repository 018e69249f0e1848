package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A stack is what runs, as scripts and tests read it from stack.json.
type stack struct {
	BaseURL        string `json:"base_url"`
	AWSEndpointURL string `json:"aws_endpoint_url"`
	TimeScale      int    `json:"time_scale"`
	demo
	Settings settingsAccess `json:"settings"`
	Webhook  webhookAccess  `json:"webhook"`
}

// writeStack writes the file in one go, so whoever waits for it reads all of it, and for
// its owner alone, as it holds keys.
func writeStack(file string, s stack) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	temp, err := os.CreateTemp(filepath.Dir(file), "stack-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	if _, err := temp.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := os.Rename(temp.Name(), file); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}

// banner is what a newcomer needs to make the first requests.
func banner(s stack) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nParley is up at %s until Ctrl-C.\n\nKeys\n", s.BaseURL)
	for _, name := range slices.Sorted(maps.Keys(s.Keys)) {
		fmt.Fprintf(&b, "  %-16s%s\n", name, s.Keys[name])
	}
	fmt.Fprintf(&b, `
Try
  BASE=%s KEY=%s
  curl -H "Authorization: Bearer $KEY" "$BASE/v1/calls?limit=5"
  curl -H "Authorization: Bearer $KEY" "$BASE/v1/threads?limit=5&fields=analysis,evaluations"
  curl -H "Authorization: Bearer $KEY" "$BASE/v1/assistants"
  curl -H "Authorization: Bearer $KEY" "$BASE/open-api"

Settings → Developers, for %d hours as a user who has signed in
  SETTINGS=%s TOKEN=%s
  curl -H "Authorization: Bearer $TOKEN" "$SETTINGS/api-keys"

Webhooks of the first workspace go to the sample receiver at %s,
which prints them here. Place a call, and see call.started and call.completed:
  curl "$BASE/v1/calls" -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \
    -d '{"assistant_id": "%s", "to": "+12025550177"}'
Or write as a customer, and see message.received, and thread.completed when it has been quiet:
  curl "$SETTINGS/sandbox/messages" -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \
    -d '{"channel": "sms", "from": "+12025550177", "to": "%s", "content": "When is check-in?"}'

`, s.BaseURL, s.Keys["full"], tokenHours, s.Settings.BaseURL, s.Settings.Token, s.Webhook.URL, s.Assistants["one_number"], s.Numbers["two_numbers"][0])
	return b.String()
}
