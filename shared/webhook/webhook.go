// Package webhook brings events to the endpoints of customers (spec: Events): it publishes
// an event to a queue, one message an endpoint; posts it, signed, where the endpoint says,
// but never to an address that is not public; records every attempt; and has what failed
// tried again by a state machine. It also has what receivers need: Verify.
package webhook
