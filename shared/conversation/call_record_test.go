package conversation

import (
	"maps"
	"testing"
)

func TestVariables(t *testing.T) {
	for name, tt := range map[string]struct {
		sent string
		want map[string]string
	}{
		"none":                {"", map[string]string{}},
		"empty":               {"{}", map[string]string{}},
		"text":                {`{"a":"x","b":""}`, map[string]string{"a": "x", "b": ""}},
		"escapes":             {`{"a":"\"\u003c\n\ud834\udd1e"}`, map[string]string{"a": "\"<\n𝄞"}},
		"numbers, as sent":    {`{"a":2.50,"b":12345678901234567890,"c":1e3,"d":-0}`, map[string]string{"a": "2.50", "b": "12345678901234567890", "c": "1e3", "d": "-0"}},
		"booleans":            {`{"a":true,"b":false}`, map[string]string{"a": "true", "b": "false"}},
		"white space between": {"{ \"a\" : 1 }", map[string]string{"a": "1"}},
	} {
		if got := (Call{CallVariables: JSON(tt.sent)}).Variables(); !maps.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestActive(t *testing.T) {
	for status, want := range map[CallStatus]bool{CallQueued: true, CallInProgress: true, CallEnded: false, CallError: false, "": false} {
		if got := (CallRecord{Call: Call{Status: status}}).Active(); got != want {
			t.Errorf("%q is active: %t, want %t", status, got, want)
		}
	}
}
