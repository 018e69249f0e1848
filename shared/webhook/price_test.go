package webhook_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// List prices of us-east-1 in dollars per million, without the free tier.
const (
	sqsRequest     = 0.40
	lambdaRequest  = 0.20
	lambdaGBSecond = 13.3334 // arm64
	writeUnit      = 0.625   // on demand
	readUnit       = 0.125   // on demand
)

// What a batch of ten is assumed to take: to publish it, and to post it to receivers that
// answer within 200 ms.
const (
	lambdaGB       = 0.5
	publishSeconds = 0.1
	deliverSeconds = 0.25
	budget         = 3.50 // dollars per million
)

// A webhook of 4 KB that succeeds at once costs what its calls of AWS cost, in full
// batches: its share of four requests to SQS (send, receive, delete, and an empty receive
// now and then) and of two functions, one strongly consistent read each of delivery and
// endpoint, one write with its two indexes. KMS is asked once for each endpoint.
func TestPriceOfADelivery(t *testing.T) {
	const batch = 10
	w := newWorld(t)
	r := newReceiver(t, answering(200))
	w.endpoint(r.url(), nil)
	publish := func() {
		var records []dynamo.StreamRecord
		for n := range batch {
			before, after := w.completion(n)
			records = append(records, w.record(fmt.Sprint(n), time.Now().Add(time.Minute), before, after))
		}
		if failed := w.publish(records...); len(failed) != 0 {
			t.Fatalf("%v failed", failed)
		}
		if failed := w.deliver(w.receive(batch)...); failed != 0 {
			t.Fatalf("%d failed", failed)
		}
	}
	publish() // warm
	var mu sync.Mutex
	calls := map[string]int{}
	w.fail = func(operation string) fault {
		mu.Lock()
		defer mu.Unlock()
		calls[operation]++
		return none
	}
	publish()
	want := map[string]int{"GetItem": 1, "SendMessageBatch": 1, "BatchGetItem": batch, "PutItem": batch}
	if fmt.Sprint(calls) != fmt.Sprint(want) {
		t.Fatalf("calls %v, want %v", calls, want)
	}
	body := r.received()[batch].body
	if len(body) < 4<<10 || len(body) > 5<<10 {
		t.Fatalf("a payload of %d bytes, want about 4 KB", len(body))
	}
	out, err := w.db.Scan(t.Context(), &dynamodb.ScanInput{TableName: &w.stage.DeliveriesTable, ConsistentRead: aws.Bool(true)})
	if err != nil || len(out.Items) == 0 {
		t.Fatal(err)
	}
	writes := 0
	for _, item := range out.Items {
		if pk, _ := item["pk"].(*types.AttributeValueMemberS); !strings.HasPrefix(pk.Value, string(w.workspace)) {
			continue // another test's
		}
		writes = max(writes, (sizeOf(&types.AttributeValueMemberM{Value: item})+1023)/1024)
	}
	const indexes, reads = 2, 2
	price := 4*sqsRequest/batch + 2*lambdaRequest/batch + (publishSeconds+deliverSeconds)*lambdaGB*lambdaGBSecond/batch +
		reads*readUnit + float64(writes+indexes)*writeUnit
	t.Logf("a million webhooks of 4 KB cost $%.2f: %d write units and %d of indexes each", price, writes, indexes)
	if price > budget {
		t.Errorf("a million webhooks of 4 KB cost $%.2f, want $%.2f at most", price, budget)
	}
}

// completion is a call before and after it is completed, about 4 KB as a payload.
func (w *world) completion(n int) (before, after conversation.CallRecord) {
	_, before, after = w.calls()
	for turn := range 30 {
		after.Transcript = append(after.Transcript, conversation.Turn{
			Role:    conversation.RoleUser,
			Content: strings.Repeat(fmt.Sprintf("I said %d that my booking of room %d is for %d nights. ", n, turn*7+n, turn+2), 2),
		})
	}
	return before, after
}

// sizeOf is what DynamoDB counts of a value, in bytes.
func sizeOf(value types.AttributeValue) (size int) {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return len(v.Value)/2 + 2
	case *types.AttributeValueMemberL:
		for _, element := range v.Value {
			size += 1 + sizeOf(element)
		}
		return size + 3
	case *types.AttributeValueMemberM:
		for name, element := range v.Value {
			size += 1 + len(name) + sizeOf(element)
		}
		return size + 3
	default:
		return 1
	}
}
