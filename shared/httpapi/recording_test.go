package httpapi

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"parley/shared/conversation"
)

func TestRecording(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store, conversation.BlockCall, conversation.BlockRecording)
	call := callOf(k.ws, 0)
	insertCalls(t, store, call)
	wav := []byte("RIFF....WAVE")
	if err := store.PutRecording(t.Context(), k.ws, call.CallID, wav); err != nil {
		t.Fatal(err)
	}
	handler := api(store)

	// The stable address is the one that the call names.
	stable, err := url.Parse(want[oneCall](t, k.get(t, handler, "/v1/calls/"+string(call.CallID)), http.StatusOK).Call.Recording.DownloadURL)
	if err != nil {
		t.Fatal(err)
	}
	got := k.get(t, handler, stable.Path)
	if got.status != http.StatusFound || got.header.Get("Cache-Control") != "no-store" || got.body != "" {
		t.Fatalf("%d %v %s, want 302, no-store and nothing else", got.status, got.header, got.body)
	}
	location, err := url.Parse(got.header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	if expires, err := strconv.Atoi(location.Query().Get("X-Amz-Expires")); err != nil || expires <= 0 || expires > 300 {
		t.Errorf("the address works for %d s, want 300 at most", expires)
	}
	response, err := http.Get(location.String())
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	audio, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !bytes.Equal(audio, wav) || response.Header.Get("Content-Type") != "audio/wav" {
		t.Errorf("audio: %s, %s, %q, %v; want 200, audio/wav, %q", response.Status, response.Header.Get("Content-Type"), audio, err, wav)
	}
}

func TestNoRecording(t *testing.T) {
	store := newStore(t)
	k := newTenant(t, store)
	handler := api(store)
	for n, recording := range []*conversation.Recording{
		nil, {Status: conversation.RecordingPending}, {Status: conversation.RecordingProcessing},
		{Status: conversation.RecordingAbsent}, {Status: conversation.RecordingFailed},
	} {
		call := callOf(k.ws, n)
		call.Recording = recording
		insertCalls(t, store, call)
		got := want[oneCall](t, k.get(t, handler, "/v1/calls/"+string(call.CallID)), http.StatusOK).Call.Recording
		if (got == nil) != (recording == nil) || got != nil && *got != *recording {
			t.Errorf("recording %+v, want %+v and no download_url", got, recording)
		}
		answer := k.get(t, handler, "/v1/calls/"+string(call.CallID)+"/recording")
		if answer.status != http.StatusNotFound || answer.header.Get("Location") != "" || answer.body != `{"detail":["this call has no recording"],"code":"not_found"}`+"\n" {
			t.Errorf("%+v: %d %v %s, want 404", recording, answer.status, answer.header, answer.body)
		}
	}
}
