package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"parley/shared/conversation"
	"parley/shared/emulator"
)

// webhookAccess is what stack.json says of the sample receiver: the URL that is an endpoint
// of the demo's first workspace, and its signing secret.
type webhookAccess struct {
	URL    string `json:"url"`
	Secret string `json:"secret"`
}

// receive makes the sample receiver an endpoint for all events, and starts it. What it
// receives it prints.
func (l *local) receive(ctx context.Context) error {
	free, err := listen(0)
	if err != nil {
		return err
	}
	address := free.Addr().String()
	free.Close()
	l.stack.Webhook.URL = "http://" + address
	if l.stack.Webhook.Secret, err = l.register(ctx, l.stack.Webhook.URL); err != nil {
		return fmt.Errorf("make %s a webhook endpoint: %w", l.stack.Webhook.URL, err)
	}
	if l.receiver, err = emulator.NewLeash(); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(l.root, ".local", "bin", "receiver"), "-listen", address)
	cmd.Env = append(os.Environ(), "WEBHOOK_SECRET="+l.stack.Webhook.Secret)
	cmd.Stdout = os.Stdout
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := l.receiver.Start(cmd); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		if conn, err := net.Dial("tcp", address); err == nil {
			return conn.Close()
		}
		select {
		case err := <-ended:
			return fmt.Errorf("the sample receiver has ended: %w: %s", err, said.String())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// register makes a webhook endpoint for all events, as a user does, and returns its secret.
func (l *local) register(ctx context.Context, receiver string) (string, error) {
	body, err := json.Marshal(map[string]any{"url": receiver, "events": conversation.EventNames()})
	if err != nil {
		return "", err
	}
	// The API isn't served yet: the emulator knows it by its host.
	api, err := url.Parse(l.apiURL())
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.stack.AWSEndpointURL+"/settings/webhook-endpoints", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Host = api.Host
	req.Header.Set("Authorization", "Bearer "+l.stack.Settings.Token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
		return "", fmt.Errorf("got status %d: %s", res.StatusCode, text)
	}
	var created struct {
		Secret string `json:"secret"`
	}
	return created.Secret, json.NewDecoder(res.Body).Decode(&created)
}
