package conversation

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Bounds of a delivery's life.
const (
	MaxAttempts  = 6 // of a round (spec: Delivery rules, 4)
	MaxRounds    = 50
	DeliveryLife = 30 * 24 * time.Hour
)

type (
	// DeliveryID names an event for an endpoint.
	DeliveryID string
	// AttemptID names an attempt of a delivery: it is the X-Service-Delivery-Id.
	AttemptID string
)

// attemptBits are the last two bytes of a delivery's id. They are zero in it, and say
// round and attempt in the ids of its attempts, so that each leads to the other.
const attemptBits = 2

// NewDeliveryID derives the id of an event's delivery from what makes it unique, so that an
// event that is published again is recognised. Like every id it is a UUIDv7, of the moment
// that the event's id holds.
func NewDeliveryID(endpoint EndpointID, event EventName, eventID string) DeliveryID {
	hash := sha256.Sum256([]byte(string(endpoint) + "\n" + string(event) + "\n" + eventID))
	id := uuid.UUID(hash[:16])
	if subject, err := uuid.Parse(eventID); err == nil {
		copy(id[:6], subject[:6])
	}
	id[6] = 0x70 | id[6]&0x0f
	id[8] = 0x80 | id[8]&0x3f
	clear(id[16-attemptBits:])
	return DeliveryID(id.String())
}

// Attempt is the id of an attempt (1–6) of a round (1–50) of the delivery.
func (d DeliveryID) Attempt(round, number int) AttemptID {
	id, _ := uuid.Parse(string(d)) // the zero id for what is none
	bits := round<<3 | number
	id[14], id[15] = byte(bits>>8), byte(bits)
	return AttemptID(id.String())
}

// Delivery is the delivery that an attempt belongs to. A delivery's own id leads to itself.
// The error is ErrNotFound for what can't be the id of either.
func (a AttemptID) Delivery() (DeliveryID, error) {
	id, err := uuid.Parse(string(a))
	if err != nil || id.String() != string(a) {
		return "", fmt.Errorf("read delivery id %q: %w", a, ErrNotFound)
	}
	clear(id[16-attemptBits:])
	return DeliveryID(id.String()), nil
}

// DeliveryStatus is where a delivery stands. delivered is final; failed and canceled ones
// may be tried again.
type DeliveryStatus string

const (
	DeliveryPending   DeliveryStatus = "pending"
	DeliveryDelivered DeliveryStatus = "delivered"
	DeliveryFailed    DeliveryStatus = "failed"   // six attempts of a round have failed
	DeliveryCanceled  DeliveryStatus = "canceled" // the endpoint is off, gone, or no longer wants the event
)

// Delivery is one event for one endpoint, with its attempts by round and number. A round
// has up to six; the first begins with the event, each later one by hand.
type Delivery struct {
	ID          DeliveryID     `json:"id"`
	WorkspaceID WorkspaceID    `json:"workspace_id"`
	EndpointID  EndpointID     `json:"endpoint_id"`
	Event       EventName      `json:"event"`
	EventID     string         `json:"event_id"`
	Status      DeliveryStatus `json:"status"`
	Round       int            `json:"round"` // the newest; 0 before the first attempt has reported
	CreatedAt   Time           `json:"created_at"`
	Attempts    []Attempt      `json:"attempts"`
}

// AttemptError is the class of what went wrong before there was an HTTP status, or why the
// status is not what counts. The set is open.
type AttemptError string

const (
	AttemptTimeout         AttemptError = "timeout"          // no complete answer in time
	AttemptDNS             AttemptError = "dns"              // the name has no address
	AttemptConnection      AttemptError = "connection"       // refused, reset, or closed before the answer was complete
	AttemptTLS             AttemptError = "tls"              // the certificate is not trusted, or no handshake
	AttemptRedirect        AttemptError = "redirect"         // it is not followed
	AttemptBlockedAddress  AttemptError = "blocked_address"  // not a public one
	AttemptBlockedURL      AttemptError = "blocked_url"      // nothing that is posted to
	AttemptTooLarge        AttemptError = "too_large"        // the answer's headers
	AttemptInvalidResponse AttemptError = "invalid_response" // no HTTP

	// What was not posted.
	AttemptCanceled AttemptError = "canceled" // the endpoint is off, gone, or no longer wants the event
	AttemptSkipped  AttemptError = "skipped"  // the delivery was over already
)

// Attempt is one try of a delivery.
type Attempt struct {
	ID           AttemptID    `json:"delivery_id"` // X-Service-Delivery-Id
	Round        int          `json:"round"`
	Number       int          `json:"attempt"` // 1–6
	At           Time         `json:"at"`
	StatusCode   int          `json:"status_code,omitzero"`
	Error        AttemptError `json:"error,omitzero"`
	LatencyMS    int          `json:"latency_ms"`
	ResponseBody string       `json:"response_body,omitzero"` // its first 4 KB
}

// Succeeded tells whether the endpoint has answered with 2xx.
func (a Attempt) Succeeded() bool {
	return a.Error == "" && a.StatusCode >= 200 && a.StatusCode < 300
}

// Posted tells whether the attempt was made, whatever came of it.
func (a Attempt) Posted() bool { return a.Error != AttemptCanceled && a.Error != AttemptSkipped }

// Attempt finds an attempt's record.
func (d Delivery) Attempt(round, number int) (Attempt, bool) {
	for _, a := range d.Attempts {
		if a.Round == round && a.Number == number {
			return a, true
		}
	}
	return Attempt{}, false
}

// Open tells whether attempts of the round may still be made: the delivery is pending in
// it, or the round is a new one.
func (d Delivery) Open(round int) bool {
	return round > d.Round || round == d.Round && d.Status == DeliveryPending
}

// Report is the delivery after an attempt's record, and whether that changes anything. It
// doesn't matter how often and in which order attempts report: the first record of an
// attempt stands, unless the later one is a success, or the first says that nothing was
// posted and the later one that something was. A delivery that has succeeded stays so.
func (d Delivery) Report(a Attempt) (Delivery, bool) {
	recorded, isRecorded := d.Attempt(a.Round, a.Number)
	succeedsNow := a.Succeeded() && !recorded.Succeeded()
	postedAfterAll := a.Posted() && !recorded.Posted()
	if isRecorded && !succeedsNow && !postedAfterAll {
		return d, false
	}
	d.Attempts = append(slices.DeleteFunc(slices.Clone(d.Attempts), func(other Attempt) bool {
		return other.Round == a.Round && other.Number == a.Number
	}), a)
	slices.SortFunc(d.Attempts, func(x, y Attempt) int {
		return cmp.Or(cmp.Compare(x.Round, y.Round), cmp.Compare(x.Number, y.Number))
	})
	open := d.Open(a.Round)
	if a.Error != AttemptSkipped {
		d.Round = max(d.Round, a.Round)
	}
	switch {
	case a.Succeeded():
		d.Status = DeliveryDelivered
	case d.Status == DeliveryDelivered || !open || a.Error == AttemptSkipped:
	case a.Error == AttemptCanceled:
		d.Status = DeliveryCanceled
	case a.Number >= MaxAttempts:
		d.Status = DeliveryFailed
	default:
		d.Status = DeliveryPending
	}
	return d, true
}

// Retryable tells whether the delivery may be sent again by hand.
func (d Delivery) Retryable() bool {
	return (d.Status == DeliveryFailed || d.Status == DeliveryCanceled) && d.Round < MaxRounds
}
