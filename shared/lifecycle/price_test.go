package lifecycle

import (
	"slices"
	"testing"

	"parley/shared/carrier"
	"parley/shared/conversation"
)

// Costs are exact: to four decimals, each component for itself, and their sum is the total.
func TestCallCosts(t *testing.T) {
	for _, tt := range []struct {
		telephony, assistant string
		seconds              int
		want                 []string // telephony, assistant, total; nil: an error
	}{
		{"0.1", "0.2", 60, []string{"0.1000", "0.2000", "0.3000"}}, // 0.30000000000000004 in floating point
		{"0.02", "0.10", 0, []string{"0.0000", "0.0000", "0.0000"}},
		{"0.02", "0.10", 1, []string{"0.0003", "0.0017", "0.0020"}},
		{"0.0001", "0.0001", 29, []string{"0.0000", "0.0000", "0.0000"}},
		{"0.0001", "0.0001", 30, []string{"0.0001", "0.0001", "0.0002"}},
		{"0", "1234567890.1234", 3600, []string{"0.0000", "74074073407.4040", "74074073407.4040"}},
		{"", "0.1", 60, nil},
		{"0.1", "ten", 60, nil},
	} {
		costs, err := callCosts(conversation.Workspace{
			Currency: "EUR", Prices: conversation.Prices{TelephonyPerMinute: tt.telephony, AssistantPerMinute: tt.assistant},
		}, tt.seconds)
		if tt.want == nil {
			if err == nil || costs != nil {
				t.Errorf("%s, %s: %+v, %v; want an error and no costs", tt.telephony, tt.assistant, costs, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s, %s: %v", tt.telephony, tt.assistant, err)
			continue
		}
		got := []string{costs.Components[0].Amount, costs.Components[1].Amount, costs.Total}
		if !slices.Equal(got, tt.want) || costs.Currency != "EUR" || costs.Components[0].Type != "telephony" || costs.Components[1].Type != "assistant" {
			t.Errorf("%d s at %s and %s: %v in %s, want %v", tt.seconds, tt.telephony, tt.assistant, got, costs.Currency, tt.want)
		}
	}
}

func TestPercentile(t *testing.T) {
	upTo := func(n int) []int {
		values := make([]int, n)
		for i := range values {
			values[i] = i + 1
		}
		return values
	}
	for _, tt := range []struct{ count, p50, p90, p95 int }{
		{1, 1, 1, 1}, {2, 1, 2, 2}, {3, 2, 3, 3}, {10, 5, 9, 10}, {20, 10, 18, 19}, {100, 50, 90, 95}, {101, 51, 91, 96},
	} {
		values := upTo(tt.count)
		if p50, p90, p95 := percentile(values, 50), percentile(values, 90), percentile(values, 95); p50 != tt.p50 || p90 != tt.p90 || p95 != tt.p95 {
			t.Errorf("of %d: %d, %d, %d; want %d, %d, %d", tt.count, p50, p90, p95, tt.p50, tt.p90, tt.p95)
		}
	}
	if got := metrics(nil); got != nil {
		t.Errorf("metrics of no turn = %+v, want none", got)
	}
	if got := metrics([]carrier.TurnLatency{{Speech: 3, Model: 2, Voice: 1}}); got.EndToEnd != (conversation.Latency{P50: 6, P90: 6, P95: 6, Max: 6, Count: 1}) {
		t.Errorf("metrics of one turn = %+v, want 6 ms in all", got.EndToEnd)
	}
}
