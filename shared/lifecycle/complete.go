package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"parley/shared/agent"
	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// complete does the work after a call that has ended: recording, analysis, evaluations,
// costs, metrics. A part that fails is left out, as call.completed must come; what can be
// tried again is what the workspace or the table can't be read for. Whether a follow-up is
// due shows here; it is sent when the call is completed.
func (c *Calls) complete(ctx context.Context, call dynamo.StoredCall) error {
	ws, assistant, err := c.Store.CallConfig(ctx, call.WorkspaceID, call.AssistantID)
	if err != nil {
		return err
	}
	customer, err := c.customer(ctx, call.CallRecord)
	if err != nil {
		return err
	}
	done := dynamo.Completion{Customer: customer}
	parts, stop := context.WithTimeout(ctx, partsTimeout)
	defer stop()
	audioBy := c.Now().Add(c.Scale.Of(recordingTimeout)) // the carrier makes it while the agent thinks
	done.Analysis, done.Evaluations = c.judge(parts, call, ws, assistant)
	done.Recording, done.PerformanceMetrics = c.recording(parts, call, audioBy)
	if done.Costs, err = callCosts(ws, call.DurationSeconds); err != nil {
		logFailure(ctx, call.CallRecord, "costs", err)
	}
	if ws.FollowUps.Enabled && len(toRecover(assistant, done.Evaluations)) > 0 {
		done.FollowUps = []conversation.FollowUp{{Status: conversation.FollowUpPending, Channel: ws.FollowUps.Channel}}
		done.Until = c.Now().Add(c.Scale.Of(patience))
	}
	done.At = conversation.At(c.Now())
	return c.Store.CompleteCall(ctx, call, done)
}

// customer is the call's customer with the id that the workspace knows it by.
func (c *Calls) customer(ctx context.Context, call conversation.CallRecord) (*conversation.Customer, error) {
	if call.Customer == nil || call.Customer.Phone == "" {
		return call.Customer, nil
	}
	known, err := c.Store.NameCustomer(ctx, call.WorkspaceID, *call.Customer)
	return &known, err
}

// recording awaits the call's audio, up to a deadline, and stores it. The carrier is asked
// for the state anyway, so the latencies come with it.
func (c *Calls) recording(ctx context.Context, call dynamo.StoredCall, deadline time.Time) (*conversation.Recording, *conversation.PerformanceMetrics) {
	for {
		state, err := c.fetch(ctx, call)
		if err != nil {
			logFailure(ctx, call.CallRecord, "recording", err)
			return &conversation.Recording{Status: conversation.RecordingFailed}, nil
		}
		switch state.Recording {
		case conversation.RecordingPending, conversation.RecordingProcessing:
			if c.Now().Before(deadline) && c.Wait(ctx, c.Scale.Of(2*time.Second)) == nil {
				continue
			}
			logFailure(ctx, call.CallRecord, "recording", errors.New("it isn't there in time"))
			return &conversation.Recording{Status: conversation.RecordingFailed}, metrics(state.Latencies)
		case conversation.RecordingComplete:
			if err := c.fetchAudio(ctx, call); err != nil {
				logFailure(ctx, call.CallRecord, "recording", err)
				return &conversation.Recording{Status: conversation.RecordingFailed}, metrics(state.Latencies)
			}
			return &conversation.Recording{Status: conversation.RecordingComplete, Available: true}, metrics(state.Latencies)
		default:
			return &conversation.Recording{Status: cmp.Or(state.Recording, conversation.RecordingAbsent)}, metrics(state.Latencies)
		}
	}
}

func (c *Calls) fetchAudio(ctx context.Context, call dynamo.StoredCall) error {
	by, err := c.carrierOf(call.CallRecord)
	if err != nil {
		return err
	}
	audio, err := by.FetchRecording(ctx, refOf(call.CallRecord))
	if err != nil {
		return fmt.Errorf("fetch the recording of call %s: %w", call.CallID, err)
	}
	return c.Store.PutRecording(ctx, call.WorkspaceID, call.CallID, audio)
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// judge lets the agent analyse and evaluate the call.
func (c *Calls) judge(ctx context.Context, call dynamo.StoredCall, ws conversation.Workspace, assistant conversation.AssistantConfig) (*conversation.Analysis, []conversation.Evaluation) {
	thinker, err := c.Agent(cmp.Or(assistant.Model, ws.Model))
	if err != nil {
		logFailure(ctx, call.CallRecord, "analysis", err)
		return nil, nil
	}
	said := saidIn(call.CallRecord, ws, assistant, c.Now())
	var analysis *conversation.Analysis
	if made, err := think(ctx, c.Parts, func(ctx context.Context) (conversation.Analysis, error) { return thinker.Analyse(ctx, said) }); err == nil {
		analysis = &made
	} else {
		logFailure(ctx, call.CallRecord, "analysis", err)
	}
	evaluations, err := think(ctx, c.Parts, func(ctx context.Context) ([]conversation.Evaluation, error) {
		return thinker.Evaluate(ctx, said, enabled(assistant))
	})
	if err != nil {
		logFailure(ctx, call.CallRecord, "evaluations", err)
		return analysis, nil
	}
	return analysis, evaluations
}

// saidIn is what an agent is told of a call.
func saidIn(call conversation.CallRecord, ws conversation.Workspace, assistant conversation.AssistantConfig, now time.Time) agent.Conversation {
	return agent.Conversation{
		Prompt: conversation.Render(assistant.Prompt, variables(ws, call, now)),
		Turns:  call.Transcript,
	}
}

// outcomes are what a conversation made of the calls whose follow-up it has. They have
// outcomesTimeout together: what isn't judged again by then stays as it was.
func (t Threads) outcomes(ctx context.Context, q quiet) ([]dynamo.CallOutcome, error) {
	var outcomes []dynamo.CallOutcome
	thinking, stop := context.WithTimeout(ctx, outcomesTimeout)
	defer stop()
	for _, callID := range q.thread.FollowedUp {
		call, err := t.Store.CallRecord(ctx, q.thread.WorkspaceID, callID)
		if err != nil {
			return nil, err
		}
		ws, assistant, err := t.Store.CallConfig(ctx, call.WorkspaceID, call.AssistantID)
		if err != nil {
			return nil, err
		}
		again := t.judgeAgain(thinking, call.CallRecord, ws, assistant, q.messages)
		outcomes = append(outcomes, dynamo.CallOutcome{CallID: callID, Evaluations: sinceFollowUp(again, call.Evaluations)})
	}
	return outcomes, nil
}

// judgeAgain judges a call by what its follow-up was to repair, if the customer has answered
// that: by what was said in the call, and in the conversation.
func (t Threads) judgeAgain(ctx context.Context, call conversation.CallRecord, ws conversation.Workspace, assistant conversation.AssistantConfig, messages []conversation.MessageRecord) []conversation.Evaluation {
	followUp := slices.IndexFunc(messages, func(m conversation.MessageRecord) bool { return m.MessageID == followUpOf(call) })
	criteria := toRecover(assistant, call.Evaluations)
	if followUp < 0 || !t.spoke(messages[followUp:]) || len(criteria) == 0 {
		return call.Evaluations
	}
	said := saidIn(call, ws, assistant, t.Now())
	said.Turns = slices.Concat(said.Turns, turnsOf(t.worded(messages)))
	thinker, err := t.Agent(cmp.Or(assistant.Model, ws.Model))
	var again []conversation.Evaluation
	if err == nil {
		again, err = think(ctx, t.Parts, func(ctx context.Context) ([]conversation.Evaluation, error) {
			return thinker.Evaluate(ctx, said, criteria)
		})
	}
	if err != nil {
		logFailure(ctx, call, "evaluations after the follow-up", err)
	}
	evaluations := slices.Clone(call.Evaluations)
	for i, before := range evaluations {
		for _, e := range again {
			if e.EvaluationID == before.EvaluationID {
				evaluations[i] = e
			}
		}
	}
	return evaluations
}

// callCosts prices a call by its seconds. Amounts have four decimals.
func callCosts(ws conversation.Workspace, seconds int) (*conversation.CallCosts, error) {
	costs := &conversation.CallCosts{Currency: ws.Currency, Components: []conversation.CostComponent{}}
	total := decimal.Zero
	for _, part := range []struct{ name, perMinute string }{
		{"telephony", ws.Prices.TelephonyPerMinute},
		{"assistant", ws.Prices.AssistantPerMinute},
	} {
		price, err := decimal.NewFromString(part.perMinute)
		if err != nil {
			return nil, fmt.Errorf("price of %s: %w", part.name, err)
		}
		amount := price.Mul(decimal.NewFromInt(int64(seconds))).DivRound(decimal.NewFromInt(60), 4)
		total = total.Add(amount)
		costs.Components = append(costs.Components, conversation.CostComponent{Type: part.name, Amount: amount.StringFixed(4)})
	}
	costs.Total = total.StringFixed(4)
	return costs, nil
}

// metrics sums up the latencies of the assistant's turns; none is no metrics.
func metrics(turns []carrier.TurnLatency) *conversation.PerformanceMetrics {
	if len(turns) == 0 {
		return nil
	}
	of := func(pick func(carrier.TurnLatency) int) conversation.Latency {
		values := make([]int, len(turns))
		for i, turn := range turns {
			values[i] = pick(turn)
		}
		slices.Sort(values)
		return conversation.Latency{
			P50: percentile(values, 50), P90: percentile(values, 90), P95: percentile(values, 95), Max: values[len(values)-1], Count: len(values),
		}
	}
	return &conversation.PerformanceMetrics{
		Speech:   of(func(t carrier.TurnLatency) int { return t.Speech }),
		Model:    of(func(t carrier.TurnLatency) int { return t.Model }),
		Voice:    of(func(t carrier.TurnLatency) int { return t.Voice }),
		EndToEnd: of(func(t carrier.TurnLatency) int { return t.Speech + t.Model + t.Voice }),
	}
}

// percentile is the nearest-rank percentile of sorted values.
func percentile(sorted []int, p int) int { return sorted[(len(sorted)*p+99)/100-1] }
