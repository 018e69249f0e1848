package main

import (
	"strings"
	"testing"
)

// sample is the example of AWS's documentation, with %payload% in place of "<Whole Event>".
const sample = `{
    "requestContext": {
        "requestId": "316aa6d0-8154-xmpl-9af7-85d5f4a6bc81",
        "functionArn": "arn:aws:lambda:us-east-2:123456789012:function:myfunction",
        "condition": "RetryAttemptsExhausted",
        "approximateInvokeCount": 1
    },
    "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
    "version": "1.0",
    "timestamp": "2019-11-14T00:13:49.717Z",
    "DDBStreamBatchInfo": {
        "shardId": "shardId-00000001573689847184-864758bb",
        "startSequenceNumber": "800000000003126276362",
        "endSequenceNumber": "800000000003126276362",
        "approximateArrivalOfFirstRecord": "2019-11-14T00:13:19Z",
        "approximateArrivalOfLastRecord": "2019-11-14T00:13:19Z",
        "batchSize": 1,
        "streamArn": "arn:aws:dynamodb:us-east-2:123456789012:table/mytable/stream/2019-11-14T00:04:06.388"
    },
    "payload": %payload%
}`

func TestParseRecord(t *testing.T) {
	const event = `{"Records":[{"eventID":"1","dynamodb":{"NewImage":{"name":{"S":"secret"}}}},{"eventID":"2"}]}`
	const want = "2019-11-14T00:13:49Z myfunction: RetryAttemptsExhausted after 1 attempts, 2 in the batch"
	for name, payload := range map[string]string{
		"a text, as on AWS": `"` + strings.ReplaceAll(event, `"`, `\"`) + `"`,
		"as it is":          event,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseRecord([]byte(strings.ReplaceAll(sample, "%payload%", payload)))
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != want || string(got.event) != event {
				t.Errorf("got %q with the event %s; want %q with %s", got, got.event, want, event)
			}
		})
	}
}

func TestParseRecordRefuses(t *testing.T) {
	tests := map[string]struct {
		object string
		want   string
	}{
		"no JSON":            {"secret", "isn't in Lambda's form"},
		"another form":       {`{"requestContext": "secret"}`, "isn't in Lambda's form"},
		"metadata alone":     {`{"requestContext": {}}`, "no records of the stream"},
		"a payload of text":  {strings.ReplaceAll(sample, "%payload%", `"secret"`), "no records of the stream"},
		"a payload of none":  {strings.ReplaceAll(sample, "%payload%", `{"Records": []}`), "no records of the stream"},
		"a payload in parts": {strings.ReplaceAll(sample, "%payload%", `"{\"Records\":[{\"secret"`), "no records of the stream"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parseRecord([]byte(tt.object))
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("parseRecord = %v, want %q and nothing of the object", err, tt.want)
			}
		})
	}
}

func TestFunctionName(t *testing.T) {
	for arn, want := range map[string]string{
		"arn:aws:lambda:us-east-1:000000000000:function:f":         "f",
		"arn:aws:lambda:us-east-1:000000000000:function:f:$LATEST": "f",
		"arn:aws-cn:lambda:cn-north-1:000000000000:function:f":     "f",
		"arn:aws:lambda:us-east-1:000000000000:layer:f":            "",
		"arn:aws:states:us-east-1:000000000000:function:f":         "",
		"parley-prod-publish-events":                               "",
		"":                                                         "",
	} {
		if got := functionName(arn); got != want {
			t.Errorf("functionName(%s) = %q, want %q", arn, got, want)
		}
	}
}

func TestCheckAnswer(t *testing.T) {
	tests := map[string]string{ // answer → what is wrong with it
		`{"batchItemFailures": []}`:                                               "",
		`{"batchItemFailures": [{"itemIdentifier": "7"}]}`:                        "1 of 3 failed again; the function's log says why, by sequence_number 7",
		`{"batchItemFailures": [{"itemIdentifier":"7"},{"itemIdentifier": "9"}]}`: "2 of 3 failed again; the function's log says why, by sequence_number 7, 9",
		`{"batchItemFailures": null}`:                                             "doesn't say what failed",
		`{}`:                                                                      "doesn't say what failed",
		`null`:                                                                    "doesn't say what failed",
		`"fine"`:                                                                  "doesn't say what failed",
		``:                                                                        "doesn't say what failed",
	}
	for answer, want := range tests {
		err := checkAnswer([]byte(answer), 3)
		if want == "" && err != nil {
			t.Errorf("checkAnswer(%s) = %v, want success", answer, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("checkAnswer(%s) = %v, want %q", answer, err, want)
		}
	}
}
