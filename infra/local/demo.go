package main

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/settings"
	"parley/shared/simulator"
)

// The workspaces that demo.yaml and demo-other.yaml define.
const (
	demoWorkspace  conversation.WorkspaceID = "0199a000-0000-7000-8000-000000000001"
	otherWorkspace conversation.WorkspaceID = "0199a000-0000-7000-8000-000000000002"
)

// demo is what stack.json says of the demo data.
type demo struct {
	WorkspaceID      string              `json:"workspace_id"`
	OtherWorkspaceID string              `json:"other_workspace_id"`
	Keys             map[string]string   `json:"keys"`
	Assistants       map[string]string   `json:"assistants"`
	Numbers          map[string][]string `json:"numbers"`
}

// fillDemo gives the demo's workspaces, which must have been applied, their keys and a
// history up to now. The history is finished, so it makes no event.
func fillDemo(ctx context.Context, store *dynamo.Store, now time.Time) (demo, error) {
	definition, err := store.Definition(ctx, demoWorkspace)
	if err != nil {
		return demo{}, err
	}
	other, err := store.Definition(ctx, otherWorkspace)
	if err != nil {
		return demo{}, err
	}
	if err := write(ctx, store, newHistory(1, now, definition, 120, demoReasons()), newHistory(2, now, other, 12, otherReasons())); err != nil {
		return demo{}, err
	}
	keys, err := createKeys(ctx, store, now)
	if err != nil {
		return demo{}, err
	}
	d := demo{
		WorkspaceID: string(demoWorkspace), OtherWorkspaceID: string(otherWorkspace), Keys: keys,
		Assistants: map[string]string{}, Numbers: map[string][]string{},
	}
	for _, a := range definition.Assistants {
		name := []string{"no_number", "one_number", "two_numbers"}[len(a.PhoneNumbers)]
		d.Assistants[name] = string(a.AssistantID)
		for _, n := range a.PhoneNumbers {
			d.Numbers[name] = append(d.Numbers[name], n.PhoneNumber)
		}
	}
	return d, nil
}

// demoReasons are the close reasons of the demo's 40 threads, mixed.
func demoReasons() []conversation.CloseReason {
	counts := []struct {
		reason conversation.CloseReason
		count  int
	}{
		{conversation.Graded, 14},
		{conversation.NoReplyAfterFollowUp, 4},
		{conversation.CustomerOptedOut, 3},
		{conversation.NoEnabledEvaluations, 2},
		{conversation.EmptyTranscript, 2},
		{conversation.GradingFailed, 2},
		{conversation.FollowUpFailedReason, 2},
		{conversation.FollowUpDailyCap, 1},
		{conversation.FollowUpNoCriteria, 2},
		{conversation.FollowUpNoCustomerPhone, 1},
		{conversation.FollowUpMissingProviderKey, 1},
		{conversation.FollowUpSendAmbiguous, 2},
		{conversation.SkippedOutside24hWindow, 1},
		{conversation.SkippedQuietHours, 2},
		{conversation.SkippedAssistantDisabled, 1},
	}
	var sorted []conversation.CloseReason
	for _, c := range counts {
		sorted = append(sorted, slices.Repeat([]conversation.CloseReason{c.reason}, c.count)...)
	}
	mixed := make([]conversation.CloseReason, len(sorted))
	for i := range mixed {
		mixed[i] = sorted[i*7%len(sorted)] // 7 has no divisor in common with 40
	}
	return mixed
}

func otherReasons() []conversation.CloseReason {
	return []conversation.CloseReason{
		conversation.Graded, conversation.Graded, conversation.NoReplyAfterFollowUp,
		conversation.CustomerOptedOut, conversation.Graded, conversation.Graded,
	}
}

// write inserts the histories, a call's recording before the call.
func write(ctx context.Context, store *dynamo.Store, histories ...history) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for _, h := range histories {
		for _, call := range h.calls {
			group.Go(func() error { return writeCall(ctx, store, call) })
		}
		for _, thread := range h.threads {
			group.Go(func() error { return store.InsertThread(ctx, thread) })
		}
		for _, message := range h.messages {
			group.Go(func() error { return store.InsertMessage(ctx, message) })
		}
	}
	return group.Wait()
}

func writeCall(ctx context.Context, store *dynamo.Store, call conversation.Call) error {
	if call.Recording != nil && call.Recording.Available {
		if err := store.PutRecording(ctx, call.WorkspaceID, call.CallID, simulator.Audio(call.Transcript)); err != nil {
			return err
		}
	}
	return store.InsertCall(ctx, call)
}

// createKeys makes the demo's keys and returns what their users send, by name.
func createKeys(ctx context.Context, store *dynamo.Store, now time.Time) (map[string]string, error) {
	usual := conversation.DefaultBlocks()
	wanted := []settings.NewAPIKey{
		{WorkspaceID: demoWorkspace, Label: "full", Blocks: conversation.AllBlocks(), PlaceCalls: true},
		{WorkspaceID: demoWorkspace, Label: "default", Blocks: usual},
		{WorkspaceID: demoWorkspace, Label: "no_transcript", Blocks: usual.Without(conversation.Blocks{conversation.BlockTranscript})},
		{WorkspaceID: demoWorkspace, Label: "place_calls", Blocks: usual, PlaceCalls: true},
		{WorkspaceID: demoWorkspace, Label: revokedKey, Blocks: usual},
		{WorkspaceID: otherWorkspace, Label: "other_workspace", Blocks: conversation.AllBlocks(), PlaceCalls: true},
	}
	texts := map[string]string{}
	for _, w := range wanted {
		k, text, err := settings.CreateAPIKey(ctx, store, w, now)
		if err != nil {
			return nil, err
		}
		texts[w.Label] = text
		if w.Label != revokedKey {
			continue
		}
		if err := settings.RevokeAPIKey(ctx, store, w.WorkspaceID, k.APIKeyID, now); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

const revokedKey = "revoked"
