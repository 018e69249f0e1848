// Package agent is what an assistant thinks: what it replies, and what it makes of a
// finished conversation. Every implementation passes the suite in agenttest.
package agent

import (
	"context"
	"errors"

	"parley/shared/conversation"
)

// ErrNoModel: there is no model of the name that was asked for.
var ErrNoModel = errors.New("there is no such model")

// Agent answers for one model. Many conversations may ask it at once.
type Agent interface {
	// Reply is the assistant's next turn. It is never empty when the customer spoke last,
	// and "" when the assistant did.
	Reply(context.Context, Conversation) (string, error)
	// TextMessage is the text message that the customer asked for with their last words, in a
	// voice call; "" if they asked for none.
	TextMessage(context.Context, Conversation) (string, error)
	// FollowUp writes the message that tries to repair what the failed criteria found wanting.
	// It is never empty.
	FollowUp(context.Context, Conversation, []conversation.Criterion) (string, error)
	// Analyse sums a finished conversation up.
	Analyse(context.Context, Conversation) (conversation.Analysis, error)
	// Evaluate judges a finished conversation by each criterion that is enabled, in their
	// order.
	Evaluate(context.Context, Conversation, []conversation.Criterion) ([]conversation.Evaluation, error)
}

// Conversation is what has been said, and what the assistant was told.
type Conversation struct {
	Prompt string // with its variables filled in
	Turns  []conversation.Turn
}

// For returns the agent of a model, or ErrNoModel.
func For(model string) (Agent, error) {
	if model == ScriptedModel {
		return Scripted{}, nil
	}
	return nil, ErrNoModel
}
