package dynamo_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// big is a call whose fields are of these sizes, in bytes; those of 0 aren't there yet.
type big struct{ variables, snapshot, transcript int }

// A call's large fields go to S3 as they come, each when the item would be too large with
// it, and all are read back, whichever of them are there.
func TestLargeFieldsOfALife(t *testing.T) {
	stage := newWard(t)
	for name, sizes := range map[string]big{
		"all small":                        {100, 100, 100},
		"variables at the limit":           {340 << 10, 9 << 10, 100},
		"transcript that no longer fits":   {300 << 10, 40 << 10, 20 << 10},
		"snapshot that no longer fits":     {345 << 10, 60 << 10, 100},
		"each fits, all don't":             {200 << 10, 100 << 10, 200 << 10},
		"all of them far beyond":           {1 << 20, 64 << 10, 2 << 20},
		"variables beyond, transcript too": {1 << 20, 100, 500 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			w := stage.workspace(t)
			call := w.newCall()
			call.CallVariables = conversation.JSON(`{"text":"` + strings.Repeat("v", sizes.variables) + `"}`)
			call.Metadata = conversation.JSON(`{"text":"` + strings.Repeat("m", 8000) + `"}`)
			w.accept(t, call)
			if err := w.PickUpCall(t.Context(), call, "theirs", now, deadline); err != nil {
				t.Fatal(err)
			}
			config := snapshot
			config.Prompt = strings.Repeat("p", sizes.snapshot)
			if err := w.SnapshotCall(t.Context(), w.read(t, call), config); err != nil {
				t.Fatalf("SnapshotCall = %v, want nil", err)
			}
			// Kept, though it may be elsewhere.
			if err := w.SnapshotCall(t.Context(), w.read(t, call), snapshot); !errors.Is(err, dynamo.ErrStale) {
				t.Errorf("a second SnapshotCall = %v, want ErrStale", err)
			}
			if _, err := w.StoreToken(t.Context(), call.WorkspaceID, call.CallID, strings.Repeat("t", 1024), "1"); err != nil {
				t.Fatal(err)
			}
			said := ending
			said.Transcript = []conversation.Turn{{Role: conversation.RoleUser, Content: strings.Repeat("s", sizes.transcript)}}
			if err := w.EndCall(t.Context(), w.read(t, call), said, deadline); err != nil {
				t.Fatalf("EndCall = %v, want nil", err)
			}
			done := completion
			done.Analysis = &conversation.Analysis{Summary: strings.Repeat("a", 5000)}
			if err := w.CompleteCall(t.Context(), w.read(t, call), done); err != nil {
				t.Fatalf("CompleteCall = %v, want nil", err)
			}
			got := w.read(t, call)
			if !cmp.Equal(got.CallVariables, call.CallVariables) || !cmp.Equal(got.Metadata, call.Metadata) ||
				got.ConfigSnapshot == nil || *got.ConfigSnapshot != config || !cmp.Equal(got.Transcript, said.Transcript) ||
				got.Status != conversation.CallEnded || got.Analysis == nil {
				t.Error("the call was not read back as it was written")
			}
			few, err := w.Call(t.Context(), call.WorkspaceID, call.CallID, conversation.Blocks{conversation.BlockTranscript})
			if err != nil || !cmp.Equal(few.Transcript, said.Transcript) {
				t.Errorf("with the transcript alone: %v, want it", err)
			}
		})
	}
}

// A snapshot that comes between EndCall's read and its write: either both are kept, or the
// one that no longer fits says so and is there after it has read again.
func TestSnapshotRacesEnd(t *testing.T) {
	w := newWard(t)
	for _, sizes := range []big{{100, 100, 100}, {330 << 10, 60 << 10, 10 << 10}, {200 << 10, 64 << 10, 145 << 10}, {300 << 10, 20 << 10, 500 << 10}} {
		call := w.newCall()
		call.CallVariables = conversation.JSON(`"` + strings.Repeat("v", sizes.variables) + `"`)
		w.accept(t, call)
		if err := w.PickUpCall(t.Context(), call, "theirs", now, deadline); err != nil {
			t.Fatal(err)
		}
		config, said := snapshot, ending
		config.Prompt = strings.Repeat("p", sizes.snapshot)
		said.Transcript = []conversation.Turn{{Role: conversation.RoleUser, Content: strings.Repeat("s", sizes.transcript)}}

		read := w.read(t, call)
		if err := w.SnapshotCall(t.Context(), read, config); err != nil {
			t.Fatal(err)
		}
		if err := w.EndCall(t.Context(), read, said, deadline); err != nil {
			if errors.Is(err, dynamo.ErrStale) {
				t.Fatalf("EndCall = %v, want it not to take this for another's end", err)
			}
			if err := w.EndCall(t.Context(), w.read(t, call), said, deadline); err != nil {
				t.Fatalf("EndCall after another look = %v, want nil", err)
			}
		}
		got := w.read(t, call)
		if got.ConfigSnapshot == nil || *got.ConfigSnapshot != config || !cmp.Equal(got.Transcript, said.Transcript) ||
			!cmp.Equal(got.CallVariables, call.CallVariables) || w.slots(t) != "0" {
			t.Errorf("%+v: snapshot %t, transcript %t, %s active calls; want all of it, 0", sizes,
				got.ConfigSnapshot != nil, len(got.Transcript) == 1, w.slots(t))
		}
	}
}
