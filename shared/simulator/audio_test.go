package simulator

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"parley/shared/conversation"
)

var dialogue = []conversation.Turn{
	{Role: conversation.RoleAssistant, Content: "Good evening, how may I help you?"},
	{Role: conversation.RoleUser, Content: "A table for two, please."},
}

func TestDuration(t *testing.T) {
	tests := map[string]struct {
		turns []conversation.Turn
		want  time.Duration
	}{
		"nobody speaks": {nil, 0},
		"7 and 5 words": {dialogue, 12*400*time.Millisecond + 2*400*time.Millisecond},
		"nobody listens for longer than 30 s": {
			[]conversation.Turn{{Role: conversation.RoleAssistant, Content: strings.Repeat("welcome ", 1000)}}, 30400 * time.Millisecond,
		},
		"an empty turn": {[]conversation.Turn{{Role: conversation.RoleUser}}, 400 * time.Millisecond},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Duration(tt.turns); got != tt.want {
				t.Errorf("Duration = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestAudioIsAWAVFileOfTheSameDuration(t *testing.T) {
	file := Audio(dialogue)
	var h wavHeader
	if err := binary.Read(bytes.NewReader(file), binary.LittleEndian, &h); err != nil {
		t.Fatal(err)
	}
	tags := string(h.RIFF[:]) + string(h.WAVE[:]) + string(h.Fmt[:]) + string(h.Data[:])
	if want := "RIFFWAVEfmt data"; tags != want {
		t.Errorf("chunks = %q, want %q", tags, want)
	}
	if int(h.RIFFSize) != len(file)-8 || int(h.DataSize) != len(file)-44 {
		t.Errorf("sizes = %d, %d; want %d, %d", h.RIFFSize, h.DataSize, len(file)-8, len(file)-44)
	}
	if h.Format != 1 || h.Channels != 1 || h.SampleRate != 8000 || h.ByteRate != 16000 || h.BlockAlign != 2 || h.BitsPerSample != 16 {
		t.Errorf("format = %+v, want PCM, mono, 8 kHz, 16 bits", h)
	}
	if got, want := time.Duration(h.DataSize)*time.Second/time.Duration(h.ByteRate), Duration(dialogue); got != want {
		t.Errorf("audio lasts %v, want %v", got, want)
	}
}

func TestAudioHasAVoiceForEachRole(t *testing.T) {
	say := func(role conversation.Role) []byte {
		return Audio([]conversation.Turn{{Role: role, Content: "hello"}})
	}
	if bytes.Equal(say(conversation.RoleUser), say(conversation.RoleAssistant)) {
		t.Error("customer and assistant sound the same, want two voices")
	}
	silence := make([]byte, len(say(conversation.RoleUser))-44)
	if bytes.Equal(say(conversation.RoleUser)[44:], silence) {
		t.Error("a spoken word is silence, want a tone")
	}
	if !bytes.Equal(Audio(dialogue), Audio(dialogue)) {
		t.Error("the same turns sound different, want the same bytes")
	}
}
