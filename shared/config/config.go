// Package config names the environment variables that the functions read, and reads them,
// once, into a Config. Infra sets the same names.
package config

import (
	"fmt"
	"log"
	"os"
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
)

// Config is what a function needs to know of its stage.
type Config struct {
	ConversationsTable string
	WorkspacesTable    string
	DeliveriesTable    string
	CountersTable      string
	Bucket             string
	BaseURL            string // public address of the API, without a trailing slash
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
	}
	if missing != nil {
		return Config{}, fmt.Errorf("read configuration: not set: %s", strings.Join(missing, ", "))
	}
	return cfg, nil
}

// MustLoad reads the process's environment and ends the process if something is missing.
func MustLoad() Config {
	cfg, err := Load(os.Getenv)
	if err != nil {
		log.Fatal(err)
	}
	return cfg
}
