package dynamo

import (
	"encoding/json"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"parley/shared/conversation"
)

// CallImage reads an image of the stream. It is false for none, and for an item that is
// no call. Large fields that are in S3 are left out.
func CallImage(image json.RawMessage) (conversation.CallRecord, bool, error) {
	if len(image) == 0 || string(image) == "null" {
		return conversation.CallRecord{}, false, nil
	}
	it, err := attributevalue.UnmarshalMapJSON(image)
	if err != nil {
		return conversation.CallRecord{}, false, wrap(err, "read image")
	}
	if !strings.Contains(stringOf(it, PartitionKey), "#"+kindCall+"#") {
		return conversation.CallRecord{}, false, nil
	}
	call, err := decode[conversation.CallRecord](it)
	return call, true, wrap(err, "read image of a call")
}
