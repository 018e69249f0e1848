package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/shopspring/decimal"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/settings"
)

// A desk is a workspace whose assistant makes and takes calls, at the simulator.
type desk struct {
	tenant
	number  string // the assistant's
	defined dynamo.Definition
	balance decimal.Decimal // before the first call
}

const (
	recoverable conversation.EvaluationID = "0199b000-0000-7000-8000-0000000000e1"
	polite      conversation.EvaluationID = "0199b000-0000-7000-8000-0000000000e2"
)

// newDesk opens a desk with a balance of 10, unless its definition is changed first.
func newDesk(t testing.TB, changes ...func(*dynamo.Definition)) desk {
	t.Helper()
	return newDeskWith(t, "10", changes...)
}

func newDeskWith(t testing.TB, balance string, changes ...func(*dynamo.Definition)) desk {
	t.Helper()
	ws := conversation.WorkspaceID(conversation.NewID())
	d := desk{tenant: tenant{ws: ws}, balance: decimal.RequireFromString(balance)}
	d.defined = dynamo.Definition{
		Workspace: conversation.Workspace{
			WorkspaceID: ws, Name: "Harbour Hotel", Timezone: "America/New_York", Country: "US",
			Variables: map[string]string{"check_in": "3 pm"},
			// A second costs 0.011, so that amounts are exact.
			Currency: "USD", Prices: conversation.Prices{TelephonyPerMinute: "0.06", AssistantPerMinute: "0.6", SMS: "0", WhatsApp: "0"},
			Limits:            conversation.Limits{ConcurrentCalls: 10, CallsPerHour: 200, LongestCallSeconds: 3600},
			InactivitySeconds: 1800, Carrier: carrier.SimulatorName, Model: "scripted",
		},
		Assistants: []conversation.AssistantConfig{{
			Assistant: conversation.Assistant{AssistantID: assistantID, AssistantName: "Reception", WorkspaceID: ws},
			Enabled:   true, Language: "en-US", Voice: "calm", Model: "scripted",
			Greeting: "Good day {{participant_name}}, this is {{hotel_name}}{{unknown}}.",
			Prompt:   "Be kind. The booking of the room is {{booking}}. Check-in is from {{check_in}}.",
			Criteria: []conversation.Criterion{
				{EvaluationID: recoverable, Title: "Question answered", Instructions: "It was answered.", Enabled: true, Recoverable: true},
				{EvaluationID: polite, Title: "Polite", Instructions: "It was polite.", Enabled: true},
				{EvaluationID: "0199b000-0000-7000-8000-0000000000e3", Title: "Upsell", Instructions: "It was tried."},
			},
		}},
	}
	for _, change := range changes {
		change(&d.defined)
	}
	d.define(t, balance)
	k, text, err := settings.CreateAPIKey(t.Context(), deployed(t).store, settings.NewAPIKey{
		WorkspaceID: ws, Label: t.Name(), Blocks: conversation.AllBlocks(), PlaceCalls: true,
	}, time.Now())
	if err != nil {
		t.Fatalf("make key %s: %v", k.APIKeyID, err)
	}
	d.key = key(text)
	return d
}

// longest lets calls last that long, from when dialling begins; 0 is an hour, as usual. The
// stack divides it by its time scale.
func longest(seconds int) func(*dynamo.Definition) {
	return func(d *dynamo.Definition) {
		if seconds > 0 {
			d.Workspace.Limits.LongestCallSeconds = seconds
		}
	}
}

// areas have numbers for fiction: 555 01xx.
var areas = []string{"212", "303", "312", "404", "415", "503", "512", "617", "702", "713", "808", "907"}

// define writes the desk's definition with a number that nobody else has.
func (d *desk) define(t testing.TB, balance string) {
	t.Helper()
	var err error
	for range 20 {
		d.number = fmt.Sprintf("+1%s55501%02d", areas[rand.IntN(len(areas))], rand.IntN(100))
		d.defined.Assistants[0].PhoneNumbers = []conversation.PhoneNumber{{PhoneNumber: d.number, Country: "US", OutboundEnabled: true}}
		if d.defined.Workspace.FollowUps.Enabled {
			d.defined.Workspace.FollowUps.Number = d.number
		}
		err = deployed(t).store.Define(t.Context(), dynamo.Definition{}, d.defined, balance)
		if err == nil || !strings.Contains(err.Error(), "belongs to another workspace") {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// customerOf is the customer whose number ends in the digits, which choose the scenario.
func customerOf(digits string) string { return "+120255501" + digits }

const (
	variables = `{"booking":4711,"late":false,"unused":"<&>"}`
	metadata  = `{"z":1.10,"a":[12345678901234567890,null,"<&>é"],"z":"twice"}`
)

// orderTo is the body of a request to call the customer whose number ends in the digits.
func orderTo(digits string) []byte {
	return fmt.Appendf(nil, `{"assistant_id":%q,"to":%q,"customer_name":"Chloé","call_variables":%s,"metadata":%s}`,
		assistantID, customerOf(digits), variables, metadata)
}

// order asks for a call. It may be called from any goroutine.
func (d desk) order(t testing.TB, body []byte, idempotencyKey string) answer {
	t.Helper()
	header := http.Header{"Authorization": {d.key.header()}, "Content-Type": {"application/json"}}
	if idempotencyKey != "" {
		header.Set("Idempotency-Key", idempotencyKey)
	}
	return send(t, usualClient, http.MethodPost, "/v1/calls", header, body)
}

// place is an order that is accepted.
func (d desk) place(t testing.TB, digits string) conversation.Call {
	t.Helper()
	return accepted(t, d.order(t, orderTo(digits), ""))
}

func accepted(t testing.TB, got answer) conversation.Call {
	t.Helper()
	return want[struct{ Call conversation.Call }](t, got, http.StatusCreated).Call
}

func (d desk) get(t testing.TB, callID conversation.CallID) conversation.Call {
	t.Helper()
	return want[struct{ Call conversation.Call }](t, d.key.get(t, "/v1/calls/"+string(callID)), http.StatusOK).Call
}

// record is all that the service knows of a call. Waiting reads it, as that costs less than
// a request to the API.
func (d desk) record(t testing.TB, callID conversation.CallID) conversation.CallRecord {
	t.Helper()
	call, err := deployed(t).store.CallRecord(t.Context(), d.ws, callID)
	if err != nil && !errors.Is(err, conversation.ErrNotFound) {
		t.Fatal(err)
	}
	return call.CallRecord
}

// finished waits until nothing is left to do for a call.
func (d desk) finished(t testing.TB, callID conversation.CallID) conversation.CallRecord {
	t.Helper()
	var call conversation.CallRecord
	await(t, func() error {
		if call = d.record(t, callID); call.Status == conversation.CallError || !call.CompletedAt.IsZero() {
			return nil
		}
		return fmt.Errorf("call %s to %v is %s, hung up %v", callID, call.Customer, call.Status, call.HungUpAt)
	})
	return call
}

// await looks until there is no error any more.
func await(t testing.TB, look func() error) {
	t.Helper()
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(150 * time.Millisecond) {
		err := look()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still, after 90 s: %v", err)
		}
	}
}

func executionOf(callID conversation.CallID) *string {
	return aws.String("arn:aws:states:us-east-1:000000000000:execution:parley-local-call-lifecycle:" + string(callID))
}

// execution is how the call's state machine stands; "" is not started yet.
func execution(t testing.TB, callID conversation.CallID) types.ExecutionStatus {
	t.Helper()
	return executionStatus(t, executionOf(callID))
}

func executionStatus(t testing.TB, arn *string) types.ExecutionStatus {
	t.Helper()
	out, err := sfn.NewFromConfig(deployed(t).aws).DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: arn})
	if none := new(types.ExecutionDoesNotExist); errors.As(err, &none) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Status
}

// sweep runs the function as its schedule does.
func sweep(t testing.TB) {
	t.Helper()
	out, err := lambda.NewFromConfig(deployed(t).aws).Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("parley-local-sweep")})
	if err != nil || out.FunctionError != nil {
		t.Fatalf("sweep: %v, %+v", err, out)
	}
}

// activeCalls is the counter of the assistant's slots.
func (d desk) activeCalls(t testing.TB) string {
	t.Helper()
	s := deployed(t)
	out, err := dynamodb.NewFromConfig(s.aws).GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &s.config.WorkspacesTable, ConsistentRead: aws.Bool(true),
		Key: map[string]ddb.AttributeValue{dynamo.PartitionKey: &ddb.AttributeValueMemberS{Value: string(d.ws) + "#slots#" + string(assistantID)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if count, ok := out.Item["active_calls"].(*ddb.AttributeValueMemberN); ok {
		return count.Value
	}
	return "none"
}

// placements is how often the carrier was asked for a call.
func (d desk) placements(t testing.TB, callID conversation.CallID) int {
	t.Helper()
	call, err := deployed(t).store.SimulatorCall(t.Context(), d.ws, "sim-"+string(callID))
	if err != nil && !errors.Is(err, conversation.ErrNotFound) {
		t.Fatal(err)
	}
	return call.Placements
}

// checkSettled wants that these calls, all that the desk had, have left nothing behind: no
// slot is taken, the balance has paid for each once, no state machine is at work.
func (d desk) checkSettled(t testing.TB, calls ...conversation.CallID) {
	t.Helper()
	for _, callID := range calls {
		d.finished(t, callID)
		await(t, func() error {
			if status := execution(t, callID); status != types.ExecutionStatusSucceeded {
				return fmt.Errorf("the execution of call %s is %q", callID, status)
			}
			return nil
		})
	}
	if got := walk[conversation.Call](t, d.key, "calls", "limit=100&include_test=true"); len(got) != len(calls) {
		t.Errorf("%d calls are listed, want %d", len(got), len(calls))
	}
	d.checkCounters(t, calls...)
}

// checkCounters wants no slot taken, and these calls, all that the desk had, paid for once.
func (d desk) checkCounters(t testing.TB, calls ...conversation.CallID) {
	t.Helper()
	due, slots := d.balance, "none"
	for _, callID := range calls {
		call := d.record(t, callID)
		if call.Costs != nil {
			due = due.Sub(decimal.RequireFromString(call.Costs.Total))
		}
		if call.HoldsSlot {
			slots = "0"
		}
	}
	if got := d.activeCalls(t); got != slots {
		t.Errorf("active calls: %s, want %s", got, slots)
	}
	balance, err := deployed(t).store.Credit(t.Context(), d.ws, "0")
	if err != nil || !decimal.RequireFromString(balance).Equal(due) {
		t.Errorf("the balance is %s, %v; want %s", balance, err, due)
	}
}
