package httpapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/shared/dynamo"
)

// awsCall is what a request asked AWS: what IAM looks at, and what it is charged for.
type awsCall struct {
	operation     string
	accesses      []access
	reads, writes int // units
}

// access is an action on a table, on an index of it, or on an object of the bucket.
type access struct{ action, table, index, object string }

// record runs a request and returns its AWS calls.
func record(t testing.TB, store aLine, do func()) []awsCall {
	t.Helper()
	type asked struct {
		operation, path string
		body            []byte
	}
	var mu sync.Mutex
	var all []asked
	store.meddle = func(operation string, r *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		a := asked{operation: operation, path: r.URL.Path}
		if !strings.HasPrefix(operation, "s3:") {
			a.body = peek(r)
		}
		all = append(all, a)
		return nil, nil
	}
	do()
	store.meddle = nil
	calls := make([]awsCall, len(all))
	for i, a := range all {
		calls[i].operation = a.operation
		if a.body == nil {
			action := map[string]string{"s3:GET": "s3:GetObject", "s3:PUT": "s3:PutObject"}[a.operation]
			calls[i].accesses = []access{{action: action, object: strings.TrimPrefix(a.path, "/"+shared.stage.Bucket+"/")}}
			continue
		}
		var request dynamoRequest
		if err := json.Unmarshal(a.body, &request); err != nil {
			t.Fatal(err)
		}
		request.describe(t, &calls[i])
	}
	return calls
}

// dynamoRequest is what DynamoDB is asked, of whichever operation.
type dynamoRequest struct {
	dynamoWrite
	IndexName     string
	RequestItems  map[string]struct{ Keys []dynamoItem }
	TransactItems []map[string]dynamoWrite // by the kind of write
}

type dynamoWrite struct {
	TableName                string
	Key, Item                dynamoItem
	ExpressionAttributeNames map[string]string
}

type dynamoItem map[string]map[string]any

func (r dynamoRequest) describe(t testing.TB, call *awsCall) {
	add := func(action, table string) {
		call.accesses = append(call.accesses, access{action: "dynamodb:" + action, table: tableNamed(table).Name, index: r.IndexName})
	}
	_, name, _ := strings.Cut(call.operation, ":")
	switch name {
	case "BatchGetItem":
		for table, keys := range r.RequestItems {
			add(name, table)
			for _, key := range keys.Keys {
				call.reads += units(sizeOf(t, table, key), readUnitBytes)
			}
		}
	case "TransactWriteItems":
		for _, item := range r.TransactItems {
			for kind, write := range item {
				if kind != "ConditionCheck" {
					kind += "Item"
				} else {
					kind = "ConditionCheckItem"
				}
				add(kind, write.TableName)
				call.writes += transactionally*units(write.size(t), writeUnitBytes) + write.indexes()
			}
		}
	case "GetItem":
		add(name, r.TableName)
		call.reads += units(sizeOf(t, r.TableName, r.Key), readUnitBytes)
	case "UpdateItem":
		add(name, r.TableName)
		call.writes += units(r.size(t), writeUnitBytes) + r.indexes()
	default:
		add(name, r.TableName)
	}
}

// tableNamed is the table that a stage calls so.
func tableNamed(name string) dynamo.Table {
	i := slices.IndexFunc(dynamo.Tables, func(table dynamo.Table) bool { return strings.HasSuffix(name, "-"+table.Name) })
	return dynamo.Tables[i]
}

// units are those of an item; one that isn't there takes one.
func units(bytes, each int) int { return max(1, (bytes+each-1)/each) }

// size is that of the written item, or of the one that a condition looks at, as it is now.
func (w dynamoWrite) size(t testing.TB) int {
	if w.Item == nil {
		return sizeOf(t, w.TableName, w.Key)
	}
	bytes := 0
	for name, value := range w.Item {
		bytes += len(name) + sizeOfValue(value)
	}
	return bytes
}

// indexes is how many of the table's indexes a write changes, an entry of less than 1 KB in each.
func (w dynamoWrite) indexes() int {
	changed := 0
	for _, index := range tableNamed(w.TableName).Indexes {
		seen := append([]string{index.PartitionKey, index.SortKey}, index.Projected...)
		named := slices.ContainsFunc(slices.Collect(maps.Values(w.ExpressionAttributeNames)), func(name string) bool { return slices.Contains(seen, name) })
		if w.Item[index.PartitionKey] != nil || w.Item == nil && named {
			changed++
		}
	}
	return changed
}

func sizeOf(t testing.TB, table string, key dynamoItem) int {
	t.Helper()
	pk, _ := key[dynamo.PartitionKey]["S"].(string)
	text, err := json.Marshal(raw(t, table, pk))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]struct{ Value any }
	if err := json.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	bytes := 0
	for name, value := range values {
		bytes += len(name) + sizeOfValue(value.Value)
	}
	return bytes
}

// sizeOfValue is about what DynamoDB counts: the texts, and a little for each nested value.
func sizeOfValue(value any) int {
	switch v := value.(type) {
	case string:
		return len(v)
	case map[string]any:
		bytes := 0
		for name, inner := range v {
			bytes += len(name) + sizeOfValue(inner)
		}
		return bytes
	case []any:
		bytes := 0
		for _, inner := range v {
			bytes += 1 + sizeOfValue(inner)
		}
		return bytes
	default:
		return 1
	}
}
