package conversation

import "testing"

func TestWithDownloadURL(t *testing.T) {
	for name, tt := range map[string]struct {
		recording *Recording
		want      string
	}{
		"available":     {&Recording{Status: RecordingComplete, Available: true}, "https://api.example.com/v1/calls/c/recording"},
		"not available": {&Recording{Status: RecordingPending}, ""},
		"none":          {nil, ""},
	} {
		call := Call{CallID: "c", Recording: tt.recording}
		got := call.WithDownloadURL("https://api.example.com").Recording
		if (got == nil) != (tt.recording == nil) || got != nil && got.DownloadURL != tt.want {
			t.Errorf("%s: %+v, want %q", name, got, tt.want)
		}
		if tt.recording != nil && tt.recording.DownloadURL != "" {
			t.Errorf("%s: the original has changed", name)
		}
	}
}
