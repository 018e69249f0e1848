package settings

import (
	"fmt"
	"math"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"parley/shared/conversation"
)

// number is a JSON number as it was sent, or nothing. The library doesn't know a number that
// is kept as it was sent, so it is checked here.
type number struct{ sent string }

// UnmarshalJSON takes the value as it is.
func (n *number) UnmarshalJSON(text []byte) error {
	n.sent = string(text)
	return nil
}

// whole is 0 where nothing was sent.
func (n number) whole(field string, least, most int) (int, error) {
	if n.sent == "" {
		return 0, nil
	}
	value, err := strconv.ParseFloat(n.sent, 64)
	if err != nil || value != math.Trunc(value) || value < float64(least) || value > float64(most) {
		return 0, fmt.Errorf("%s: must be a whole number from %d to %d", field, least, most)
	}
	return int(value), nil
}

func wholeNumber(least, most int) *huma.Schema {
	return &huma.Schema{Extensions: map[string]any{"type": huma.TypeInteger, "minimum": least, "maximum": most}}
}

// timeout is an endpoint's timeout_seconds.
type timeout struct{ number }

func (timeout) Schema(huma.Registry) *huma.Schema {
	return wholeNumber(conversation.MinWebhookTimeout, conversation.MaxWebhookTimeout)
}

func (t timeout) seconds() (int, error) {
	return t.whole("timeout_seconds", conversation.MinWebhookTimeout, conversation.MaxWebhookTimeout)
}

// maxMedia is how many pictures and files come with a message, at most.
const maxMedia = 10

// mediaCount is how many come with it.
type mediaCount struct{ number }

func (mediaCount) Schema(huma.Registry) *huma.Schema { return wholeNumber(0, maxMedia) }

func (m mediaCount) count() (int, error) { return m.whole("media_count", 0, maxMedia) }
