package main

import (
	"strings"
	"testing"
)

func TestReadOptions(t *testing.T) {
	tests := map[string]struct {
		env  map[string]string
		args []string
		want options // root, stackFile aside
	}{
		"defaults":       {want: options{port: 8080, timeScale: 1}},
		"fast, any port": {env: map[string]string{"PORT": "0", "FAST": "1"}, want: options{timeScale: 60}},
		"not fast":       {env: map[string]string{"FAST": "0"}, want: options{port: 8080, timeScale: 1}},
		"other endpoint": {
			env:  map[string]string{"AWS_ENDPOINT_URL": "http://localhost:4566/"},
			want: options{port: 8080, timeScale: 1, endpoint: "http://localhost:4566"},
		},
		"for a program": {args: []string{"-with-parent"}, want: options{port: 8080, timeScale: 1, withParent: true}},
		"install only":  {args: []string{"-install"}, want: options{port: 8080, timeScale: 1, installOnly: true}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := readOptions(tt.args, func(name string) string { return tt.env[name] })
			if err != nil {
				t.Fatal(err)
			}
			tt.want.root, tt.want.stackFile = got.root, got.stackFile
			if got != tt.want {
				t.Errorf("readOptions = %+v, want %+v", got, tt.want)
			}
			if want := "/.local/stack.json"; !strings.HasSuffix(got.stackFile, want) {
				t.Errorf("stackFile = %q, want it to end in %q", got.stackFile, want)
			}
		})
	}
}

func TestReadOptionsRefuses(t *testing.T) {
	for _, entry := range []string{"PORT=http", "PORT=-1", "PORT=65536", "FAST=60", "FAST=yes"} {
		name, value, _ := strings.Cut(entry, "=")
		_, err := readOptions(nil, func(n string) string {
			if n == name {
				return value
			}
			return ""
		})
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), value) {
			t.Errorf("readOptions with %s: %v, want an error that names both", entry, err)
		}
	}
}
