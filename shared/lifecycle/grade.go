package lifecycle

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"parley/shared/conversation"
)

// grading is what the agent makes of a conversation.
type grading struct {
	analysis    *conversation.Analysis
	evaluations []conversation.Evaluation // nil: none were made
	failed      bool                      // they should have been
	anchor      conversation.MessageID    // the last message that was judged
}

// grade lets the agent analyse and evaluate a conversation. One that was graded before its
// follow-up, which nobody has answered, isn't graded again. Where nobody said anything that
// could be judged, nothing is made.
func (t Threads) grade(ctx context.Context, q quiet) grading {
	before := grading{analysis: q.thread.Analysis, evaluations: q.thread.Evaluations, anchor: q.thread.AnchorMessageID}
	criteria := enabled(q.assistant)
	if before.evaluations != nil && (!answered(q.thread) || len(criteria) == 0) {
		before.evaluations = sinceFollowUp(before.evaluations, before.evaluations)
		return before
	}
	if !t.spoke(q.messages) && q.thread.Attempt == nil {
		return grading{}
	}
	thinker, err := t.Agent(cmp.Or(q.assistant.Model, q.ws.Model))
	if err != nil {
		slog.ErrorContext(ctx, "grade a conversation", "thread_id", q.thread.ThreadID, "error", err)
		return grading{analysis: before.analysis, failed: len(criteria) > 0, anchor: before.anchor}
	}
	said := t.conversationOf(q.ws, q.assistant, q.thread, q.messages)
	made := grading{analysis: before.analysis, anchor: before.anchor}
	if analysis, err := think(ctx, t.Parts, func(ctx context.Context) (conversation.Analysis, error) { return thinker.Analyse(ctx, said) }); err == nil {
		made.analysis = &analysis
	} else {
		slog.ErrorContext(ctx, "a part of the thread is left out", "part", "analysis", "thread_id", q.thread.ThreadID, "error", err)
	}
	if len(criteria) == 0 {
		return made
	}
	evaluations, err := think(ctx, t.Parts, func(ctx context.Context) ([]conversation.Evaluation, error) {
		return thinker.Evaluate(ctx, said, criteria)
	})
	if err != nil {
		slog.ErrorContext(ctx, "grade a conversation", "thread_id", q.thread.ThreadID, "error", err)
		made.failed = true
		return made
	}
	made.evaluations, made.anchor = sinceFollowUp(evaluations, before.evaluations), lastSaid(q.messages)
	return made
}

// think asks an agent, up to thinkTries times.
func think[A any](ctx context.Context, p Parts, ask func(context.Context) (A, error)) (A, error) {
	for try := 1; ; try++ {
		asking, stop := context.WithTimeout(ctx, thinkTimeout)
		answer, err := ask(asking)
		stop()
		if err == nil || try == thinkTries || p.Wait(ctx, time.Second) != nil {
			return answer, err
		}
	}
}

// sinceFollowUp says of evaluations what they were before the follow-up, and whether it
// repaired what had failed. Without any before, it says nothing.
func sinceFollowUp(now, before []conversation.Evaluation) []conversation.Evaluation {
	now = slices.Clone(now)
	for i := range now {
		e := &now[i]
		for _, initial := range before {
			if initial.EvaluationID == e.EvaluationID {
				e.InitialResult = initial.Result
				e.Recovered = initial.Result == conversation.Fail && e.Result == conversation.Pass
			}
		}
	}
	return now
}

// enabled are the criteria that an assistant's conversations are judged by.
func enabled(assistant conversation.AssistantConfig) []conversation.Criterion {
	return slices.DeleteFunc(slices.Clone(assistant.Criteria), func(c conversation.Criterion) bool { return !c.Enabled })
}

// toRecover are the criteria that failed, and whose failure a follow-up may repair.
func toRecover(assistant conversation.AssistantConfig, evaluations []conversation.Evaluation) []conversation.Criterion {
	var failed []conversation.Criterion
	for _, e := range evaluations {
		for _, c := range assistant.Criteria {
			if c.EvaluationID == e.EvaluationID && c.Recoverable && e.Result == conversation.Fail {
				failed = append(failed, c)
			}
		}
	}
	return failed
}

// spoke tells whether the customer said anything that can be judged.
func (p Parts) spoke(messages []conversation.MessageRecord) bool {
	return slices.ContainsFunc(p.worded(messages), func(m conversation.MessageRecord) bool { return m.Direction == conversation.Inbound })
}

// lastSaid is the last message with words.
func lastSaid(messages []conversation.MessageRecord) conversation.MessageID {
	for _, m := range slices.Backward(messages) {
		if m.Content != "" {
			return m.MessageID
		}
	}
	return ""
}
