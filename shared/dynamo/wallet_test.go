package dynamo_test

import (
	"errors"
	"testing"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

func TestCredit(t *testing.T) {
	s := newStage(t)
	ws := s.define(t, dynamo.Definition{}, newDefinition()).Workspace.WorkspaceID
	for _, step := range []struct{ amount, want string }{{"10", "35.5"}, {"0.25", "35.75"}} {
		got, err := s.Credit(t.Context(), ws, step.amount)
		if err != nil || got != step.want {
			t.Errorf("balance after a credit of %s = %s, %v; want %s", step.amount, got, err, step.want)
		}
	}
	if _, err := s.Credit(t.Context(), newWorkspace(), "1"); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("credit to nobody: error %v, want ErrNotFound", err)
	}
}
