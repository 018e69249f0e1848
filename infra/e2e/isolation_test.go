package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"parley/shared/conversation"
)

// all is everything that a key can see: the body of each record, by its list and by its
// id, and of each recording.
func (k key) all(t *testing.T) []byte {
	t.Helper()
	var everything bytes.Buffer
	for _, list := range []string{"assistants", "calls", "messages", "threads"} {
		query := "limit=100"
		if list == "calls" {
			query += "&include_test=true"
		}
		for i, item := range walk[json.RawMessage](t, k, list, query) {
			everything.Write(item)
			if i%5 != 0 || list == "assistants" {
				continue
			}
			var ids map[string]any
			if err := json.Unmarshal(item, &ids); err != nil {
				t.Fatal(err)
			}
			target := "/v1/" + list + "/" + ids[resources[list].one+"_id"].(string)
			everything.Write(k.get(t, target).body)
			if list == "calls" {
				got := k.get(t, target+"/recording")
				everything.WriteString(got.header.Get("Location"))
			}
		}
	}
	return everything.Bytes()
}

var uuidPattern = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// No id of whatever kind shows in two workspaces.
func TestDemoWorkspacesShareNothing(t *testing.T) {
	t.Parallel()
	s := deployed(t)
	mine, theirs := demoKey(t).all(t), newKey(t, s.OtherWorkspaceID).all(t)
	ids := map[string]bool{}
	for _, id := range uuidPattern.FindAllString(string(mine), -1) {
		ids[id] = true
	}
	others := uuidPattern.FindAllString(string(theirs), -1)
	if len(ids) < 300 || len(others) < 50 {
		t.Errorf("%d and %d ids, want more", len(ids), len(others))
	}
	for _, id := range others {
		if ids[id] {
			t.Errorf("%s shows in both workspaces", id)
		}
	}
	if !ids[string(s.WorkspaceID)] || ids[string(s.OtherWorkspaceID)] {
		t.Error("the demo's workspace shows another, or not itself")
	}
}

// Two workspaces whose records have the same ids each see their own.
func TestSameIDs(t *testing.T) {
	t.Parallel()
	mine, theirs := newTenant(t), newTenant(t)
	mine.fill(t)
	theirs.fill(t)
	for _, pair := range [][2]tenant{{mine, theirs}, {theirs, mine}} {
		own, other := pair[0], pair[1]
		seen := string(own.key.all(t))
		if strings.Contains(seen, string(other.ws)) || strings.Count(seen, "Front desk of "+string(own.ws)) < 8 {
			t.Errorf("%s sees of %s: %s", own.ws, other.ws, seen)
		}
		address := own.key.get(t, "/v1/calls/"+string(callID)+"/recording").header.Get("Location")
		if got := string(download(t, address)); got != "audio of "+string(own.ws) {
			t.Errorf("%s hears %q", own.ws, got)
		}
	}
}

// A record of another workspace is as absent as one that never was.
func TestNotFound(t *testing.T) {
	t.Parallel()
	n, other := newTenant(t), newTenant(t)
	other.fill(t)
	test := read[conversation.Message](t, n, wholeMessage)
	test.MessageID, test.Source = "0199b000-0000-7000-8000-000000000009", conversation.SourceTest
	if err := deployed(t).store.InsertMessage(t.Context(), test); err != nil {
		t.Fatal(err)
	}
	targets := map[string]string{
		"no call":             "/v1/calls/" + nowhereID,
		"another's call":      "/v1/calls/" + string(callID),
		"with fields":         "/v1/calls/" + string(callID) + "?fields=transcript",
		"no recording":        "/v1/calls/" + nowhereID + "/recording",
		"another's recording": "/v1/calls/" + string(callID) + "/recording",
		"no message":          "/v1/messages/" + nowhereID,
		"another's message":   "/v1/messages/" + string(messageID),
		"a test message":      "/v1/messages/" + string(test.MessageID),
		"no thread":           "/v1/threads/" + nowhereID,
		"another's thread":    "/v1/threads/" + string(threadID),
		"a thread as a call":  "/v1/calls/" + string(threadID),
		"nobody's":            "/v1/calls/00000000-0000-0000-0000-000000000000",
	}
	const body = `{"detail":["there is no such record"],"code":"not_found"}` + "\n"
	for name, target := range targets {
		if got := n.key.get(t, target); got.status != http.StatusNotFound || string(got.body) != body || got.header.Get("Location") != "" {
			t.Errorf("%s: %d %v %s, want 404 %s", name, got.status, got.header, got.body, body)
		}
	}
	for list, filter := range map[string]string{
		"calls": "assistant_id=" + string(assistantID), "threads": "assistant_id=" + string(assistantID), "messages": "thread_id=" + string(threadID),
	} {
		if got := pageOf[record](t, n.key, list, filter); len(got.Items) > 0 {
			t.Errorf("%s of another's %s: %v", list, filter, got.Items)
		}
		if theirs := pageOf[record](t, other.key, list, filter); len(theirs.Items) == 0 {
			t.Errorf("%s of %s: none, want the other workspace's own", list, filter)
		}
	}
}

// A cursor names no workspace: with another's key it goes on in that one's own list.
func TestCursorOfAnother(t *testing.T) {
	t.Parallel()
	mine, theirs := newTenant(t), newTenant(t)
	mine.fill(t)
	theirs.fill(t)
	cursor := pageOf[record](t, theirs.key, "calls", "limit=1").NextCursor
	got := pageOf[record](t, mine.key, "calls", "cursor="+cursor).Items
	if len(got) != 1 || got[0]["workspace_id"] != string(mine.ws) {
		t.Errorf("with another's cursor: %v, want the own call after it", got)
	}
}
