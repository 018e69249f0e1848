package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/dynamo/dynamotest"
	"parley/shared/settings"
)

// edited is the example with some texts replaced: old, new, old, new.
func edited(t *testing.T, replacements ...string) file {
	t.Helper()
	f, err := parse("example.yaml", []byte(strings.NewReplacer(replacements...).Replace(example)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mustApply(t *testing.T, store *dynamo.Store, f file) string {
	t.Helper()
	var out bytes.Buffer
	if err := apply(t.Context(), store, f, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestApplyShowsWhatChanges(t *testing.T) {
	store := dynamotest.Store(t)
	steps := []struct {
		name string
		file file
		want string
	}{
		{"a new workspace", edited(t), `+ workspace Harbour Hotel
+ assistant Reception
+ assistant Reception: evaluation "Question answered"
+ assistant Bar
+ number +442079460001
+ number +12025550101
Harbour Hotel: applied
`},
		{"the same again", edited(t), "Harbour Hotel: nothing to change\n"},
		{"another opening balance", edited(t, "100.50", "7"), "Harbour Hotel: nothing to change\n"},
		{"the same, written differently", edited(t, "100.50", "'100.5'", "0.0120", "'0.012'", "21:00", `"21:00"`, "3 pm", "'3 pm'"),
			"Harbour Hotel: nothing to change\n"},
		{"settings", edited(t, "Harbour Hotel", "Harbour House", "help_text: Call reception.\n", "", "3 pm", "4 pm"), `~ workspace Harbour House: help_text: "Call reception." -> none
~ workspace Harbour House: name: "Harbour Hotel" -> "Harbour House"
~ workspace Harbour House: variables.check_in: "3 pm" -> "4 pm"
Harbour House: applied
`},
		{"back", edited(t), `~ workspace Harbour Hotel: help_text: none -> "Call reception."
~ workspace Harbour Hotel: name: "Harbour House" -> "Harbour Hotel"
~ workspace Harbour Hotel: variables.check_in: "4 pm" -> "3 pm"
Harbour Hotel: applied
`},
		{"a prompt, an evaluation, a number", edited(t, "the room is {{room}}", "the room is {{room_number}}", "title: Question", "title: Request",
			"assistant: Reception}", "assistant: Bar}"), `~ assistant Reception: call_variables: ["room"] -> ["room_number"]
~ assistant Reception: prompt: … room is {{room}}." -> … room is {{room_number}}."
~ assistant Reception: evaluation "Request answered": title: "Question answered" -> "Request answered"
~ number +12025550101: assistant: "Reception" -> "Bar"
Harbour Hotel: applied
`},
		{"without an assistant, its evaluations and a number", edited(t, example[strings.Index(example, "  - assistant_id: 01990000-0000-7000-8000-000000000002"):strings.Index(example, "  - assistant_id: 01990000-0000-7000-8000-000000000004")], "",
			"assistant: Reception\n", "assistant: Bar\n", `  - {number: "+12025550101", assistant: Reception}`, ""), `~ number +442079460001: assistant: "Reception" -> "Bar"
- assistant Reception
- assistant Reception: evaluation "Request answered"
- number +12025550101
Harbour Hotel: applied
`},
	}
	for _, step := range steps {
		if diff := cmp.Diff(step.want, mustApply(t, store, step.file)); diff != "" {
			t.Errorf("%s: output differs (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestApplyTwiceWritesNothing(t *testing.T) {
	store := dynamotest.Store(t)
	f := edited(t)
	mustApply(t, store, f)
	mustApply(t, store, f)
	d, err := store.Definition(t.Context(), f.definition.Workspace.WorkspaceID)
	if err != nil || d.Version != 1 || d.Assistants[0].Version != 1 {
		t.Errorf("versions = %d, %d, %v; want 1, 1", d.Version, d.Assistants[0].Version, err)
	}
}

func TestApplyRefuses(t *testing.T) {
	store := dynamotest.Store(t)
	mustApply(t, store, edited(t))
	tests := map[string]struct {
		file file
		want string
	}{
		"another currency": {edited(t, "currency: GBP", "currency: EUR"), "its currency can't become EUR"},
		"another workspace's numbers": {edited(t, "workspace_id: 01990000-0000-7000-8000-000000000001", "workspace_id: 01990000-0000-7000-8000-000000000009"),
			"number +442079460001 belongs to another workspace\nnumber +12025550101 belongs to another workspace"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := apply(t.Context(), store, tt.file, &out)
			if err == nil || !strings.Contains(err.Error(), tt.want) || out.Len() > 0 {
				t.Errorf("apply = %v, printed %q; want %q and nothing", err, out.String(), tt.want)
			}
		})
	}
}

func TestCreateKey(t *testing.T) {
	store := dynamotest.Store(t)
	f := edited(t)
	mustApply(t, store, f)
	ws := f.definition.Workspace.WorkspaceID
	var out bytes.Buffer
	err := createKey(t.Context(), store, settings.NewAPIKey{WorkspaceID: ws, Label: "CRM", Blocks: conversation.AllBlocks(), PlaceCalls: true}, &out)
	id, secret, ok := conversation.ParseAPIKey(strings.TrimSpace(out.String()))
	if err != nil || !ok {
		t.Fatalf("createKey = %v, printed %q; want a key", err, out.String())
	}
	k, err := store.APIKey(t.Context(), id)
	if err != nil || k.WorkspaceID != ws || k.SecretHash != conversation.HashSecret(secret) || k.Label != "CRM" ||
		!cmp.Equal(k.Blocks, conversation.AllBlocks()) || !k.PlaceCalls {
		t.Errorf("APIKey = %+v, %v; want what was printed and wanted", k, err)
	}
}

func TestCreateKeyOfNoWorkspace(t *testing.T) {
	store := dynamotest.Store(t)
	var out bytes.Buffer
	err := createKey(t.Context(), store, settings.NewAPIKey{WorkspaceID: "nobody"}, &out)
	if want := "there is no workspace nobody on this stage: apply its file first"; err == nil || err.Error() != want || out.Len() > 0 {
		t.Errorf("createKey = %v, printed %q; want %q", err, out.String(), want)
	}
}

func TestParseBlocks(t *testing.T) {
	tests := map[string]struct {
		want conversation.Blocks
		err  string
	}{
		"default":        {conversation.DefaultBlocks(), ""},
		"all":            {conversation.AllBlocks(), ""},
		"costs,customer": {conversation.Blocks{conversation.BlockCall, conversation.BlockCustomer, conversation.BlockCosts}, ""},
		"cost":           {nil, `unknown block "cost"`},
	}
	for names, tt := range tests {
		t.Run(names, func(t *testing.T) {
			got, err := parseBlocks(names)
			if !cmp.Equal(got, tt.want) || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("parseBlocks = %v, %v; want %v, %q", got, err, tt.want, tt.err)
			}
		})
	}
}
