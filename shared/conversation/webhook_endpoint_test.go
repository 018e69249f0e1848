package conversation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEndpointWants(t *testing.T) {
	on := WebhookEndpoint{Events: []EventName{CallStarted}, Enabled: true}
	off := WebhookEndpoint{Events: []EventName{CallStarted}}
	for _, tt := range []struct {
		endpoint WebhookEndpoint
		event    EventName
		want     bool
	}{
		{on, CallStarted, true},
		{on, CallCompleted, false},
		{on, WebhookTest, true},
		{off, CallStarted, false},
		{off, WebhookTest, false},
	} {
		if got := tt.endpoint.Wants(tt.event); got != tt.want {
			t.Errorf("enabled %t, event %s: %t, want %t", tt.endpoint.Enabled, tt.event, got, tt.want)
		}
	}
}

func TestSubscription(t *testing.T) {
	t0 := At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	t1 := At(t0.Add(time.Hour))
	type since = map[EventName]Time
	both := since{CallStarted: t0, CallCompleted: t0}
	for name, tt := range map[string]struct {
		before  since
		enabled bool
		events  []EventName
		want    since
	}{
		"new":            {nil, true, []EventName{CallStarted}, since{CallStarted: t1}},
		"new, disabled":  {nil, false, []EventName{CallStarted}, since{}},
		"unchanged":      {both, true, []EventName{CallStarted, CallCompleted}, both},
		"one added":      {since{CallStarted: t0}, true, []EventName{CallStarted, CallFailed}, since{CallStarted: t0, CallFailed: t1}},
		"one removed":    {both, true, []EventName{CallCompleted}, since{CallCompleted: t0}},
		"disabled":       {both, false, []EventName{CallStarted, CallCompleted}, since{}},
		"enabled again":  {since{}, true, []EventName{CallStarted}, since{CallStarted: t1}},
		"nothing chosen": {both, true, nil, since{}},
	} {
		e := WebhookEndpoint{EndpointID: "e", Blocks: DefaultBlocks(), Events: tt.events, Enabled: tt.enabled}
		got := e.Subscription(Subscription{Since: tt.before}, t1)
		if diff := cmp.Diff(Subscription{"e", DefaultBlocks(), tt.want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
