package conversation

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestJSONAsSent(t *testing.T) {
	for _, text := range []string{
		`{"b":1.10,"a":12345678901234567890,"c":1e400}`, `{"z":1,"a":2,"z":3}`, `"<&>\u00e9\/"`, `null`, `[]`, `0`,
	} {
		var read struct{ Metadata JSON }
		if err := json.Unmarshal([]byte(`{"metadata": `+text+`}`), &read); err != nil || string(read.Metadata) != text {
			t.Errorf("%s reads as %s, %v", text, read.Metadata, err)
		}
		var written bytes.Buffer
		encoder := json.NewEncoder(&written)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(read.Metadata); err != nil || written.String() != text+"\n" {
			t.Errorf("%s is written %s, %v", text, &written, err)
		}
		var stored JSON
		if kept, err := read.Metadata.MarshalText(); err != nil || stored.UnmarshalText(kept) != nil || string(stored) != text {
			t.Errorf("%s is kept as %s, %v", text, kept, err)
		}
	}
	text := []byte(`{"a":1}`)
	var kept JSON
	if err := kept.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	text[1] = 'X' // a decoder uses its buffer again
	if string(kept) != `{"a":1}` {
		t.Errorf("kept %s", kept)
	}
}
