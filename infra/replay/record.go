package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// record is what Lambda keeps of a batch of the stream that it gives up:
// https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html
type record struct {
	at       time.Time // when Lambda gave up
	function string    // its name, which has the stage's before it
	why      string
	attempts int
	changes  int
	event    []byte // what the function is invoked with
}

// parseRecord reads a record. Its errors don't quote it, as it holds what people said.
func parseRecord(object []byte) (record, error) {
	var kept struct {
		RequestContext struct {
			FunctionARN string `json:"functionArn"`
			Condition   string `json:"condition"`
			Attempts    int    `json:"approximateInvokeCount"`
		} `json:"requestContext"`
		Timestamp time.Time       `json:"timestamp"`
		Payload   json.RawMessage `json:"payload"`
	}
	if err := json.Unmarshal(object, &kept); err != nil {
		return record{}, errors.New("it isn't in Lambda's form")
	}
	r := record{
		at: kept.Timestamp, why: kept.RequestContext.Condition, attempts: kept.RequestContext.Attempts,
		function: functionName(kept.RequestContext.FunctionARN),
		event:    kept.Payload,
	}
	// AWS writes the event as a text, some emulators as it is.
	if text := ""; bytes.HasPrefix(r.event, []byte(`"`)) && json.Unmarshal(r.event, &text) == nil {
		r.event = []byte(text)
	}
	var event struct {
		Records []json.RawMessage
	}
	if json.Unmarshal(r.event, &event) != nil || len(event.Records) == 0 {
		return record{}, errors.New("it holds no records of the stream")
	}
	r.changes = len(event.Records)
	return r, nil
}

// functionName is empty where the ARN is none of a function. A version or alias is dropped.
func functionName(arn string) string {
	parts := strings.Split(arn, ":")
	if len(parts) < 7 || parts[2] != "lambda" || parts[5] != "function" {
		return ""
	}
	return parts[6]
}

// String shows a record in a line, without what it holds.
func (r record) String() string {
	return fmt.Sprintf("%s %s: %s after %d attempts, %d in the batch",
		r.at.UTC().Format(time.RFC3339), r.function, r.why, r.attempts, r.changes)
}
