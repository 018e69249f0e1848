package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/emulator"
)

// stage is a bucket and a function on the emulator.
type stage struct {
	cfg          aws.Config
	name, bucket string
	functionARN  string
	objects      *s3.Client
	lambda       *lambda.Client
}

// handler reports the records of the kinds that it is made with; it throws at throws.
const handler = `
def handler(event, context):
    broken = %q.split()
    kinds = {r["dynamodb"]["SequenceNumber"]: r["dynamodb"]["NewImage"]["kind"]["S"] for r in event["Records"]}
    if "throws" in broken and "throws" in kinds.values():
        raise ValueError("secret")
    return {"batchItemFailures": [{"itemIdentifier": n} for n, kind in kinds.items() if kind in broken]}
`

func newStage(t *testing.T, broken string) *stage {
	t.Helper()
	cfg := emulator.Config(t)
	id := conversation.NewID()
	s := &stage{
		cfg: cfg, name: id, bucket: "replay-" + id,
		objects: s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }),
		lambda:  lambda.NewFromConfig(cfg),
	}
	if _, err := s.objects.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &s.bucket}); err != nil {
		t.Fatal(err)
	}
	made, err := s.lambda.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
		FunctionName: aws.String("parley-" + id + "-publish-events"),
		Role:         aws.String("arn:aws:iam::000000000000:role/any"),
		Runtime:      types.RuntimePython312, Handler: aws.String("main.handler"),
		Code: &types.FunctionCode{ZipFile: code(t, broken)},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.functionARN = *made.FunctionArn
	return s
}

func code(t *testing.T, broken string) []byte {
	t.Helper()
	var file bytes.Buffer
	archive := zip.NewWriter(&file)
	main, err := archive.Create("main.py")
	if err == nil {
		_, err = fmt.Fprintf(main, handler, broken)
	}
	if err == nil {
		err = archive.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// repair changes what the function fails on.
func (s *stage) repair(t *testing.T, broken string) {
	t.Helper()
	_, err := s.lambda.UpdateFunctionCode(t.Context(), &lambda.UpdateFunctionCodeInput{FunctionName: &s.functionARN, ZipFile: code(t, broken)})
	if err != nil {
		t.Fatal(err)
	}
}

// keep puts a record where Lambda does, with changes of these kinds.
func (s *stage) keep(t *testing.T, functionARN string, kinds ...string) {
	t.Helper()
	var changes []any
	for i, kind := range kinds {
		changes = append(changes, map[string]any{"dynamodb": map[string]any{
			"SequenceNumber": fmt.Sprint(i + 1), "NewImage": map[string]any{"kind": map[string]string{"S": kind}},
		}})
	}
	event, err := json.Marshal(map[string]any{"Records": changes})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(string(event))
	if err != nil {
		t.Fatal(err)
	}
	object := strings.NewReplacer("%payload%", string(text), "arn:aws:lambda:us-east-2:123456789012:function:myfunction", functionARN).Replace(sample)
	s.put(t, dynamo.PoisonPrefix+"mapping/shard/2019/11/14/2019-11-14T00.13.49-"+conversation.NewID(), object)
}

func (s *stage) put(t *testing.T, key, object string) {
	t.Helper()
	_, err := s.objects.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &s.bucket, Key: &key, Body: strings.NewReader(object)})
	if err != nil {
		t.Fatal(err)
	}
}

// keys lists what the bucket holds.
func (s *stage) keys(t *testing.T) []string {
	t.Helper()
	page, err := s.objects.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &s.bucket})
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{}
	for _, object := range page.Contents {
		keys = append(keys, *object.Key)
	}
	return keys
}

// replay returns what is printed, and the error.
func (s *stage) replay(t *testing.T, function string, dryRun bool) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := newReplay(s.cfg, s.name, s.bucket, function, dryRun, &out).all(t.Context())
	return out.String(), err
}

func TestReplay(t *testing.T) {
	s := newStage(t, "fails throws")
	other := strings.ReplaceAll(s.functionARN, "publish-events", "start-lifecycles")
	stranger := strings.ReplaceAll(s.functionARN, "publish-events", "sweep")
	s.put(t, "recordings/1", "not ours")
	if out, err := s.replay(t, "", false); err != nil || out != "nothing is kept\n" {
		t.Errorf("without records: printed %q, %v; want that nothing is kept", out, err)
	}
	if out, err := s.replay(t, "publish-events", false); err != nil || out != "nothing is kept of publish-events\n" {
		t.Errorf("without its records: printed %q, %v; want that nothing of it is kept", out, err)
	}

	s.keep(t, s.functionARN, "good", "good")
	s.keep(t, s.functionARN, "good", "fails", "fails")
	s.keep(t, s.functionARN, "throws")
	s.keep(t, other, "good") // there is no such function
	s.keep(t, stranger, "good")
	s.put(t, dynamo.PoisonPrefix+"note", "secret")

	all := len(s.keys(t))
	out, err := s.replay(t, "", true)
	if err == nil || err.Error() != "2 of 6 are left" || strings.Count(out, "\n") != 6 || len(s.keys(t)) != all {
		t.Errorf("dry run: %v\n%s; want 6 lines, 2 of them unusable, and nothing done", err, out)
	}
	if out, err = s.replay(t, "start-lifecycles", false); err == nil || err.Error() != "3 of 3 are left" {
		t.Errorf("start-lifecycles alone: %v\n%s; want it and the two unusable ones left", err, out)
	}

	out, err = s.replay(t, "", false)
	if err == nil || err.Error() != "5 of 6 are left" || len(s.keys(t)) != all-1 {
		t.Errorf("broken: %v, %d objects\n%s; want all but one left", err, len(s.keys(t)), out)
	}
	for _, want := range []string{
		"publish-events: RetryAttemptsExhausted after 1 attempts, 2 in the batch: replayed\n",
		"3 in the batch: left: 2 of 3 failed again; the function's log says why, by sequence_number 2, 3\n",
		"1 in the batch: left: the function failed (Unhandled); its log says why\n",
		"start-lifecycles: RetryAttemptsExhausted after 1 attempts, 1 in the batch: left: ",
		"sweep: RetryAttemptsExhausted after 1 attempts, 1 in the batch: left: it is of no function of this stage\n",
		"note: left: it isn't in Lambda's form\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("printed %s; want %q", out, want)
		}
	}
	if strings.Contains(out, "secret") || strings.Contains(out, "NewImage") {
		t.Errorf("what it prints quotes a record: %s", out)
	}

	s.repair(t, "")
	out, err = s.replay(t, "publish-events", false)
	if err == nil || err.Error() != "2 of 4 are left" || len(s.keys(t)) != all-3 {
		t.Errorf("repaired: %v, %d objects\n%s; want the two of publish-events gone", err, len(s.keys(t)), out)
	}
}

// A record that stays poisonous is kept whole, alone, while its neighbours go on, and a
// replay of it succeeds when the function is repaired.
func TestPoison(t *testing.T) {
	for _, poison := range []string{"fails", "throws"} {
		t.Run(poison, func(t *testing.T) {
			s := newStage(t, poison)
			write := s.stream(t, 2)
			for _, kind := range []string{"good", "good", poison, "good"} {
				write(kind)
			}
			keys := s.await(t, 1)
			if want := regexp.MustCompile(`^aws/lambda/[0-9a-f-]{36}/shardId-[0-9a-f-]+/\d{4}/\d\d/\d\d/\d{4}-\d\d-\d\dT\d\d\.\d\d\.\d\d-[0-9a-f-]{36}$`); !want.MatchString(keys[0]) {
				t.Errorf("kept as %s, want AWS's form %s", keys[0], want)
			}
			if out, err := s.replay(t, "", false); err == nil || !strings.Contains(out, "RetryAttemptsExhausted after 3 attempts, 1 in the batch: left: ") {
				t.Errorf("broken: %v\n%s; want one record left, alone, after 3 attempts", err, out)
			}
			s.repair(t, "")
			if out, err := s.replay(t, "", false); err != nil || !strings.HasSuffix(out, ": replayed\n") {
				t.Errorf("repaired: %v\n%s; want it replayed", err, out)
			}
			if keys := s.keys(t); len(keys) > 0 {
				t.Errorf("still kept: %v", keys)
			}
			s.repair(t, "later") // the stream goes on behind what was poisonous
			write("later")
			s.await(t, 1)
		})
	}
}

// stream maps a table's stream to the function, and returns what writes an item of a kind.
func (s *stage) stream(t *testing.T, attempts int32) func(kind string) {
	t.Helper()
	db := dynamodb.NewFromConfig(s.cfg)
	table, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("replay-" + s.name), BillingMode: dynamotypes.BillingModePayPerRequest,
		KeySchema:            []dynamotypes.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: dynamotypes.KeyTypeHash}},
		AttributeDefinitions: []dynamotypes.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: dynamotypes.ScalarAttributeTypeS}},
		StreamSpecification:  &dynamotypes.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: dynamotypes.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.lambda.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{
		FunctionName: &s.functionARN, EventSourceArn: table.TableDescription.LatestStreamArn,
		StartingPosition: types.EventSourcePositionTrimHorizon, BatchSize: aws.Int32(100),
		MaximumRetryAttempts: &attempts, BisectBatchOnFunctionError: aws.Bool(true),
		FunctionResponseTypes: []types.FunctionResponseType{types.FunctionResponseTypeReportBatchItemFailures},
		DestinationConfig:     &types.DestinationConfig{OnFailure: &types.OnFailure{Destination: aws.String("arn:aws:s3:::" + s.bucket)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(kind string) {
		t.Helper()
		_, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: table.TableDescription.TableName, Item: map[string]dynamotypes.AttributeValue{
			"id":   &dynamotypes.AttributeValueMemberS{Value: conversation.NewID()},
			"kind": &dynamotypes.AttributeValueMemberS{Value: kind},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// await waits until the bucket holds so many objects.
func (s *stage) await(t *testing.T, objects int) []string {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if keys := s.keys(t); len(keys) >= objects {
			return keys
		}
	}
	t.Fatalf("%v after 30 s, want %d objects", s.keys(t), objects)
	return nil
}
