// Package simulator is the far end of the sandbox's carrier: what a real carrier and the
// customer on the line do, without an account, a phone or a person.
package simulator

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"math"
	"strings"
	"time"

	"parley/shared/conversation"
)

// Both are whole numbers of samples, so the audio lasts exactly as long as Duration says.
const (
	perWord   = 400 * time.Millisecond // 150 words a minute
	perTurn   = 400 * time.Millisecond // of silence after it
	perSecond = 8000                   // samples, as on the telephone
)

// maxWords bounds a turn: nobody listens for longer than 30 s. A greeting may be filled
// with a megabyte of variables, and its audio has to fit into one answer.
const maxWords = 75

// words are what is heard of a turn.
func words(turn conversation.Turn) []string {
	all := strings.Fields(turn.Content)
	return all[:min(len(all), maxWords)]
}

// Duration is how long the turns take to speak.
func Duration(turns []conversation.Turn) time.Duration {
	var d time.Duration
	for _, turn := range turns {
		d += time.Duration(len(words(turn)))*perWord + perTurn
	}
	return d
}

// Audio is a WAV file (PCM, mono, 8 kHz, 16 bits) that lasts as long as the turns take to
// speak. Each word is a tone: low for the assistant, higher for the customer. The same
// turns make the same bytes.
func Audio(turns []conversation.Turn) []byte {
	samples := make([]int16, 0, samplesOf(Duration(turns)))
	for _, turn := range turns {
		for _, word := range words(turn) {
			samples = appendTone(samples, pitch(turn.Role, word))
		}
		samples = append(samples, make([]int16, samplesOf(perTurn))...)
	}
	return wav(samples)
}

func samplesOf(d time.Duration) int { return int(d * perSecond / time.Second) }

// pitch is the word's frequency in Hz: its role's, raised by up to a fifth.
func pitch(role conversation.Role, word string) float64 {
	base := 150.0
	if role == conversation.RoleUser {
		base = 300
	}
	hash := fnv.New32a()
	hash.Write([]byte(word))
	return base * (1 + float64(hash.Sum32()%8)/16)
}

// appendTone adds one word's tone, which swells and fades so that nothing clicks.
func appendTone(samples []int16, hertz float64) []int16 {
	n := samplesOf(perWord)
	for i := range n {
		swell := math.Sin(math.Pi * float64(i) / float64(n))
		wave := math.Sin(2 * math.Pi * hertz * float64(i) / perSecond)
		samples = append(samples, int16(8000*swell*wave))
	}
	return samples
}

// wavHeader is the RIFF header of a file with one "fmt " and one "data" chunk.
type wavHeader struct {
	RIFF          [4]byte
	RIFFSize      uint32 // of all that follows
	WAVE          [4]byte
	Fmt           [4]byte
	FmtSize       uint32
	Format        uint16 // 1: PCM
	Channels      uint16
	SampleRate    uint32
	ByteRate      uint32
	BlockAlign    uint16
	BitsPerSample uint16
	Data          [4]byte
	DataSize      uint32
}

func wav(samples []int16) []byte {
	size := uint32(2 * len(samples))
	header := wavHeader{
		RIFF: [4]byte{'R', 'I', 'F', 'F'}, RIFFSize: 36 + size, WAVE: [4]byte{'W', 'A', 'V', 'E'},
		Fmt: [4]byte{'f', 'm', 't', ' '}, FmtSize: 16, Format: 1, Channels: 1,
		SampleRate: perSecond, ByteRate: 2 * perSecond, BlockAlign: 2, BitsPerSample: 16,
		Data: [4]byte{'d', 'a', 't', 'a'}, DataSize: size,
	}
	var file bytes.Buffer
	file.Grow(44 + int(size))
	// A bytes.Buffer takes every write, and both values have a fixed size.
	_ = binary.Write(&file, binary.LittleEndian, header)
	_ = binary.Write(&file, binary.LittleEndian, samples)
	return file.Bytes()
}
