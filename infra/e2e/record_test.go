package e2e

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
)

// record is a resource as a client without types sees it.
type record = map[string]any

// resources are what is read by id, each a list too, and the fields that it shows always,
// sometimes, and by a block of the same name.
var resources = map[string]struct {
	one       string
	id        string
	whole     string
	always    string
	sometimes string
	blocks    string
}{
	"calls": {
		"call", string(callID), wholeCall,
		"call_id workspace_id assistant_id assistant_name call_type direction status duration_seconds started_at is_test",
		"ended_at end_reason call_variables metadata",
		"customer costs transcript analysis evaluations follow_ups recording performance_metrics config_snapshot",
	},
	"messages": {
		"message", string(messageID), wholeMessage,
		"message_id workspace_id assistant_id assistant_name channel direction thread_id source occurred_at",
		"content media_count provider_message_id reply",
		"customer costs",
	},
	"threads": {
		"thread", string(threadID), wholeThread,
		"thread_id workspace_id assistant_id assistant_name channel close_reason message_count started_at last_message_at completed_at",
		"anchor_message_id",
		"customer costs transcript analysis evaluations follow_ups",
	},
}

// What is stored with every field of the spec is shown with every field.
func TestWholeRecords(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	n.fill(t)
	for list, resource := range resources {
		t.Run(list, func(t *testing.T) {
			expected := read[record](t, n, resource.whole)
			got := n.key.get(t, "/v1/"+list+"/"+resource.id)
			if diff := cmp.Diff(record{resource.one: expected}, want[record](t, got, http.StatusOK)); diff != "" {
				t.Errorf("by id (-want +got):\n%s", diff)
			}
			items := walk[record](t, n.key, list, "limit=100")
			if diff := cmp.Diff(expected, items[len(items)-1]); diff != "" {
				t.Errorf("in the list (-want +got):\n%s", diff)
			}
		})
	}
	got := n.key.get(t, "/v1/calls/"+string(callID))
	if want := `"metadata":{"a":[1.50,null,"👋 <b>"],"z":{}}`; !bytes.Contains(got.body, []byte(want)) {
		t.Errorf("metadata isn't as it was sent, %s: %s", want, got.body)
	}
}

// Blocks that cannot exist yet are absent, and a call that isn't over has no end to
// filter by.
func TestQueuedCall(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	n.fill(t)
	expected := read[record](t, n, queuedCall)
	if diff := cmp.Diff(record{"call": expected}, want[record](t, n.key.get(t, "/v1/calls/"+string(queuedID)), http.StatusOK)); diff != "" {
		t.Errorf("call (-want +got):\n%s", diff)
	}
	for query, want := range map[string]int{"": 2, "&from=2025-10-01": 1, "&to=2027-10-01": 1, "&from=2025-10-05": 0} {
		if got := walk[record](t, n.key, "calls", "limit=5"+query); len(got) != want {
			t.Errorf("calls with %q: %d, want %d", query, len(got), want)
		}
	}
}

// fields chooses blocks; one that a resource doesn't have is left out.
func TestFields(t *testing.T) {
	t.Parallel()
	k := demoKey(t)
	for list, resource := range resources {
		t.Run(list, func(t *testing.T) {
			for _, block := range conversation.AllBlocks() {
				items := walk[record](t, k, list, "limit=100&fields="+string(block))
				chosen := strings.Fields(resource.blocks)
				chosen = slices.DeleteFunc(chosen, func(name string) bool { return name != string(block) })
				checkFields(t, items, strings.Fields(resource.always), strings.Fields(resource.sometimes), chosen)
			}
			all := walk[record](t, k, list, "limit=100")
			checkFields(t, all, strings.Fields(resource.always), strings.Fields(resource.sometimes), strings.Fields(resource.blocks))
			few := walk[record](t, k, list, "limit=100&fields=costs,customer&fields=call")
			checkFields(t, few, strings.Fields(resource.always), strings.Fields(resource.sometimes), []string{"customer", "costs"})

			one := "/v1/" + list + "/" + all[0][resource.one+"_id"].(string)
			checkFields(t, []record{want[map[string]record](t, k.get(t, one+"?fields=customer"), http.StatusOK)[resource.one]},
				strings.Fields(resource.always), strings.Fields(resource.sometimes), []string{"customer"})
		})
	}
}

// checkFields wants the items to have all of always, some of the others and nothing else,
// and each chosen block to be in at least one item.
func checkFields(t *testing.T, items []record, always, sometimes, chosen []string) {
	t.Helper()
	shown := map[string]bool{}
	for _, item := range items {
		for name := range item {
			shown[name] = true
		}
		for _, name := range always {
			if _, ok := item[name]; !ok {
				t.Errorf("there is no %s in %v", name, item)
			}
		}
	}
	allowed := slices.Concat(always, sometimes, chosen)
	for name := range shown {
		if !slices.Contains(allowed, name) {
			t.Errorf("with the blocks %v, there is %s", chosen, name)
		}
	}
	for _, name := range chosen {
		if !shown[name] {
			t.Errorf("no item has the block %s", name)
		}
	}
}

// A record is the same by its id as in its list.
func TestListsAndRecordsAgree(t *testing.T) {
	t.Parallel()
	k := demoKey(t)
	for list, resource := range resources {
		t.Run(list, func(t *testing.T) {
			t.Parallel()
			for i, item := range walk[json.RawMessage](t, k, list, "limit=100") {
				if i%4 != 0 { // some of each kind
					continue
				}
				var ids map[string]any
				if err := json.Unmarshal(item, &ids); err != nil {
					t.Fatal(err)
				}
				target := "/v1/" + list + "/" + ids[resource.one+"_id"].(string)
				body := want[map[string]json.RawMessage](t, k.get(t, target), http.StatusOK)
				if keys := slices.Collect(maps.Keys(body)); !slices.Equal(keys, []string{resource.one}) || !bytes.Equal(body[resource.one], item) {
					t.Errorf("%s: %s, want %s as the list has it: %s", target, body, resource.one, item)
				}
			}
		})
	}
}

// An id may be written in either case.
func TestUpperCaseID(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	n.fill(t)
	want[record](t, n.key.get(t, "/v1/messages/"+strings.ToUpper(string(messageID))), http.StatusOK)
	if got := walk[record](t, n.key, "messages", "limit=5&assistant_id="+strings.ToUpper(string(assistantID))); len(got) != 1 {
		t.Errorf("%d messages of the assistant, want 1", len(got))
	}
}
