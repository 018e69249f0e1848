package conversation

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The spec's fields of each resource, each with its name. media_count is an addition.
func TestFieldNames(t *testing.T) {
	const customer = "customer_id name phone email language country"
	tests := []struct {
		resource reflect.Type
		want     string
	}{
		{reflect.TypeFor[Call](), "call_id workspace_id assistant_id assistant_name call_type direction status duration_seconds started_at ended_at " +
			"end_reason is_test customer transcript analysis evaluations recording call_variables metadata costs performance_metrics config_snapshot follow_ups"},
		{reflect.TypeFor[Message](), "message_id workspace_id assistant_id assistant_name channel direction thread_id source occurred_at content " +
			"provider_message_id reply customer costs media_count"},
		{reflect.TypeFor[Thread](), "thread_id workspace_id assistant_id assistant_name channel close_reason message_count started_at last_message_at " +
			"completed_at anchor_message_id customer transcript analysis evaluations costs follow_ups"},
		{reflect.TypeFor[Assistant](), "assistant_id assistant_name workspace_id phone_numbers call_variables"},
		{reflect.TypeFor[PhoneNumber](), "phone_number country outbound_enabled"},
		{reflect.TypeFor[Customer](), customer},
		{reflect.TypeFor[Turn](), "role content"},
		{reflect.TypeFor[Analysis](), "summary intent outcome sentiment"},
		{reflect.TypeFor[Evaluation](), "evaluation_id title result initial_result rationale recovered"},
		{reflect.TypeFor[FollowUp](), "status channel sent_at"},
		{reflect.TypeFor[Recording](), "status available download_url"},
		{reflect.TypeFor[Reply](), "content provider_message_id timestamp"},
		{reflect.TypeFor[ThreadCosts](), "currency total charged_message_count"},
		{reflect.TypeFor[CallCosts](), "currency total components"},
		{reflect.TypeFor[MessageCosts](), "currency total"},
		{reflect.TypeFor[PerformanceMetrics](), "speech model voice end_to_end"},
		{reflect.TypeFor[Latency](), "p50 p90 p95 max count"},
		{reflect.TypeFor[ConfigSnapshot](), "version model voice language greeting prompt"},
	}
	snake := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	for _, tt := range tests {
		want := strings.Fields(tt.want)
		var got []string
		for field := range tt.resource.Fields() {
			name, option, _ := strings.Cut(field.Tag.Get("json"), ",")
			got = append(got, name)
			if !snake.MatchString(name) || option != "" && option != "omitzero" {
				t.Errorf("%s.%s: %s,%s; want snake_case, and omitzero or nothing", tt.resource, field.Name, name, option)
			}
			// What may have no value is left out: null never shows.
			if kind := field.Type.Kind(); kind == reflect.Pointer && option != "omitzero" {
				t.Errorf("%s.%s may be null", tt.resource, field.Name)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", tt.resource, got, want)
		}
	}
}
