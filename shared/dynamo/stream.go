package dynamo

import (
	"context"
	"encoding/json"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"parley/shared/conversation"
)

// StreamEvent is a batch of the stream of conversations, with its images as the store reads
// them.
type StreamEvent struct {
	Records []StreamRecord `json:"Records"`
}

// StreamRecord is one change of one item.
type StreamRecord struct {
	EventName string `json:"eventName"` // INSERT, MODIFY or REMOVE
	Change    struct {
		SequenceNumber string          `json:"SequenceNumber"`
		CreatedAt      float64         `json:"ApproximateCreationDateTime"` // Unix seconds
		OldImage       json.RawMessage `json:"OldImage"`
		NewImage       json.RawMessage `json:"NewImage"`
	} `json:"dynamodb"`
}

// WrittenBy is when the record was written at the latest: DynamoDB rounds the time down to
// the second.
func (r StreamRecord) WrittenBy() time.Time {
	return time.Unix(int64(r.Change.CreatedAt)+1, 0)
}

// Failures answers a batch with those of its records, by their place, that are to come again.
func (b StreamEvent) Failures(failed []bool) events.DynamoDBEventResponse {
	response := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
	for i, record := range b.Records {
		if failed[i] {
			response.BatchItemFailures = append(response.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: record.Change.SequenceNumber})
		}
	}
	return response
}

// CallImage reads an image of the stream. It is false for none, and for an item that is
// no call. Large fields that are in S3 are left out.
func CallImage(image json.RawMessage) (conversation.CallRecord, bool, error) {
	return imageOf[conversation.CallRecord](image, kindCall)
}

// MessageImage is as CallImage, for a message. It is false for one of the past, which no
// carrier brought.
func MessageImage(image json.RawMessage) (conversation.MessageRecord, bool, error) {
	message, isMessage, err := imageOf[conversation.MessageRecord](image, kindMessage)
	return message, isMessage && message.Carrier != "", err
}

// ThreadImage is as CallImage, for a thread, open or completed. It is false for one of the
// past, which no carrier brought.
func ThreadImage(image json.RawMessage) (conversation.ThreadRecord, bool, error) {
	thread, isThread, err := imageOf[conversation.ThreadRecord](image, kindThread)
	return thread, isThread && thread.Carrier != "", err
}

func imageOf[R any](image json.RawMessage, kind string) (R, bool, error) {
	var none R
	if len(image) == 0 || string(image) == "null" {
		return none, false, nil
	}
	it, err := attributevalue.UnmarshalMapJSON(image)
	if err != nil {
		return none, false, wrap(err, "read image")
	}
	if kindOf(stringOf(it, PartitionKey)) != kind {
		return none, false, nil
	}
	record, err := decode[R](it)
	return record, true, wrap(err, "read image of a %s", kind)
}

// WholeCallImage is CallImage with the large fields of these blocks, as they were when the
// image was made. The image must be of a call.
func (s *Store) WholeCallImage(ctx context.Context, image json.RawMessage, blocks conversation.Blocks) (conversation.CallRecord, error) {
	return wholeImage[conversation.CallRecord](ctx, s, image, blocks)
}

// WholeThreadImage is as WholeCallImage, for a thread.
func (s *Store) WholeThreadImage(ctx context.Context, image json.RawMessage, blocks conversation.Blocks) (conversation.ThreadRecord, error) {
	return wholeImage[conversation.ThreadRecord](ctx, s, image, blocks)
}

func wholeImage[R any](ctx context.Context, s *Store, image json.RawMessage, blocks conversation.Blocks) (R, error) {
	it, err := attributevalue.UnmarshalMapJSON(image)
	if err != nil {
		var none R
		return none, wrap(err, "read image")
	}
	record, err := whole[R](ctx, s, it, blocks)
	return record, wrap(err, "read image")
}
