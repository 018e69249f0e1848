package e2e

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"parley/shared/conversation"
)

// A recording's stable address leads to audio as long as the call, which opens without
// the API key, for five minutes.
func TestRecordings(t *testing.T) {
	t.Parallel()
	s, k := deployed(t), demoKey(t)
	heard, silent := 0, map[conversation.RecordingStatus]bool{}
	for i, call := range walk[conversation.Call](t, k, "calls", "limit=100&include_test=true") {
		stable := s.BaseURL + "/v1/calls/" + string(call.CallID) + "/recording"
		if call.Recording == nil || !call.Recording.Available {
			status := conversation.RecordingStatus("none")
			if call.Recording != nil {
				status = call.Recording.Status
				if call.Recording.DownloadURL != "" {
					t.Errorf("call %s has the address of no audio", call.CallID)
				}
			}
			if !silent[status] { // one of each
				want[problem](t, k.get(t, strings.TrimPrefix(stable, s.BaseURL)), http.StatusNotFound)
			}
			silent[status] = true
			continue
		}
		if call.Recording.DownloadURL != stable || call.Recording.Status != conversation.RecordingComplete {
			t.Errorf("call %s has the recording %+v", call.CallID, call.Recording)
		}
		if i%8 != 0 {
			continue
		}
		heard++
		got := k.get(t, strings.TrimPrefix(stable, s.BaseURL))
		if got.status != http.StatusFound || got.header.Get("Cache-Control") != "no-store" {
			t.Fatalf("%s: %d, %v; want 302, not to be stored", stable, got.status, got.header)
		}
		lasts := wavDuration(t, download(t, got.header.Get("Location")))
		if (lasts - time.Duration(call.DurationSeconds)*time.Second).Abs() > time.Second {
			t.Errorf("the audio of call %s lasts %v, the call %d s", call.CallID, lasts, call.DurationSeconds)
		}
	}
	if heard < 5 || !silent["none"] || !silent[conversation.RecordingAbsent] || !silent[conversation.RecordingFailed] {
		t.Errorf("%d recordings, calls without audio %v; want some of all", heard, silent)
	}
}

// download gets a file without any credentials.
func download(t *testing.T, address string) []byte {
	t.Helper()
	res, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "audio/wav" {
		t.Fatalf("%s: %s, %v; want a WAV file", address, res.Status, err)
	}
	return body
}

// wavDuration reads the header of an uncompressed WAV file.
func wavDuration(t *testing.T, file []byte) time.Duration {
	t.Helper()
	if len(file) < 44 || !bytes.Equal(file[:4], []byte("RIFF")) || !bytes.Equal(file[8:16], []byte("WAVEfmt ")) || !bytes.Equal(file[36:40], []byte("data")) {
		t.Fatalf("no WAV file: %.44q", file)
	}
	perSecond, size := binary.LittleEndian.Uint32(file[28:]), binary.LittleEndian.Uint32(file[40:])
	if int(size) != len(file)-44 || perSecond == 0 {
		t.Fatalf("a WAV file of %d bytes says that it has %d, %d a second", len(file), size, perSecond)
	}
	return time.Duration(size) * time.Second / time.Duration(perSecond)
}

// The temporary address is good for nothing else, nor for longer.
func TestRecordingAddress(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	n.fill(t)
	target := "/v1/calls/" + string(callID) + "/recording"
	address, err := url.Parse(n.key.get(t, target).header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	if got := query.Get("X-Amz-Expires"); got != "300" {
		t.Errorf("the address works for %s s, want 300", got)
	}
	if again := n.key.get(t, target).header.Get("Location"); again == "" {
		t.Error("a second request gets no address")
	}
	bare, longer, other := *address, *address, *address
	bare.RawQuery = ""
	query.Set("X-Amz-Expires", "301")
	longer.RawQuery = query.Encode()
	other.Path = strings.Replace(other.Path, string(callID), string(queuedID), 1)
	for name, changed := range map[string]url.URL{"without a signature": bare, "for longer": longer, "of another call": other} {
		res, err := http.Get(changed.String())
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s, want 403", name, res.Status)
		}
	}
}
