package e2e

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
)

// The keys of stack.json read what their names say.
func TestDemoKeys(t *testing.T) {
	t.Parallel()
	s := deployed(t)
	usual := conversation.DefaultBlocks()
	tests := map[string]struct {
		ws     conversation.WorkspaceID
		blocks conversation.Blocks
	}{
		"full":            {s.WorkspaceID, conversation.AllBlocks()},
		"default":         {s.WorkspaceID, usual},
		"place_calls":     {s.WorkspaceID, usual},
		"no_transcript":   {s.WorkspaceID, usual.Without(conversation.Blocks{conversation.BlockTranscript})},
		"other_workspace": {s.OtherWorkspaceID, conversation.AllBlocks()},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, block := range conversation.AllBlocks() {
				status := http.StatusForbidden
				if tt.blocks.Has(block) {
					status = http.StatusOK
				}
				if got := s.Keys[name].get(t, "/v1/threads?limit=1&fields="+string(block)); got.status != status {
					t.Errorf("block %s: status %d, want %d", block, got.status, status)
				}
			}
			calls := pageOf[record](t, s.Keys[name], "calls", "limit=100").Items
			for _, block := range conversation.AllBlocks() {
				shown := slices.ContainsFunc(calls, func(call record) bool { return call[string(block)] != nil })
				if block != conversation.BlockCall && shown != tt.blocks.Has(block) {
					t.Errorf("block %s is shown: %v", block, shown)
				}
			}
			for _, call := range calls {
				if call["workspace_id"] != string(tt.ws) {
					t.Errorf("call %v is of workspace %v, want %s", call["call_id"], call["workspace_id"], tt.ws)
				}
			}
		})
	}
	if len(s.Keys) != len(tests)+1 {
		t.Errorf("%d keys, want these and the revoked one", len(s.Keys))
	}
	if got := s.Keys["revoked"].get(t, "/v1/calls"); got.status != http.StatusUnauthorized {
		t.Errorf("revoked: status %d, want 401", got.status)
	}
}

func TestDemoAssistants(t *testing.T) {
	t.Parallel()
	s, k := deployed(t), demoKey(t)
	all := pageOf[conversation.Assistant](t, k, "assistants", "")
	if len(all.Items) != 3 || all.HasMore {
		t.Fatalf("%d assistants, has_more %v; without a limit, want all 3", len(all.Items), all.HasMore)
	}
	expected := map[conversation.AssistantID]conversation.Assistant{}
	for name, want := range map[string]struct {
		called    string
		variables []string
	}{
		"two_numbers": {"Front desk", []string{"departure_date", "room_number"}},
		"one_number":  {"Reservations", []string{"arrival_date", "booking_number"}},
		"no_number":   {"Concierge", []string{"city"}},
	} {
		a := conversation.Assistant{
			AssistantID: s.Assistants[name], AssistantName: want.called, WorkspaceID: s.WorkspaceID,
			CallVariables: want.variables, PhoneNumbers: []conversation.PhoneNumber{},
		}
		for _, number := range s.Numbers[name] {
			a.PhoneNumbers = append(a.PhoneNumbers, conversation.PhoneNumber{PhoneNumber: number, Country: "US", OutboundEnabled: true})
		}
		expected[a.AssistantID] = a
	}
	got := map[conversation.AssistantID]conversation.Assistant{}
	for _, a := range all.Items {
		slices.Sort(a.CallVariables)
		got[a.AssistantID] = a
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("assistants (-want +got):\n%s", diff)
	}
	for _, limit := range []string{"1", "2", "3", "100"} {
		if diff := cmp.Diff(pageOf[record](t, k, "assistants", "").Items, walk[record](t, k, "assistants", "limit="+limit)); diff != "" {
			t.Errorf("by pages of %s (-all +got):\n%s", limit, diff)
		}
	}
}
