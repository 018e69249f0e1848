package config

import (
	"strings"
	"testing"
)

func TestLoad(t *testing.T) {
	env := map[string]string{
		ConversationsTable: "c", WorkspacesTable: "w", DeliveriesTable: "d", CountersTable: "n",
		Bucket: "b", BaseURL: "https://api.example.com/",
	}
	got, err := Load(func(name string) string { return env[name] })
	want := Config{"c", "w", "d", "n", "b", "https://api.example.com"}
	if err != nil || got != want {
		t.Errorf("Load = %+v, %v; want %+v", got, err, want)
	}
}

func TestLoadNamesEverythingMissing(t *testing.T) {
	_, err := Load(func(string) string { return "" })
	for _, name := range []string{ConversationsTable, WorkspacesTable, DeliveriesTable, CountersTable, Bucket, BaseURL} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v does not name %s", err, name)
		}
	}
}
