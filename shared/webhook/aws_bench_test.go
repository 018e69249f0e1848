package webhook_test

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// awsLatency is what DynamoDB takes for one item, seen from a function.
const awsLatency = 5 * time.Millisecond

// nearAWS speaks as much of the protocol of DynamoDB, KMS and Step Functions as making an
// endpoint and a first attempt takes, so that what is measured is our code, not the emulator.
// Every condition holds, what KMS opens is its own plaintext, and no delivery is kept: the
// same message may come again as if it were new.
type nearAWS struct {
	endpoints sync.Map // items by pk
	recorded  atomic.Int64
	started   atomic.Int64
}

// attribute is a DynamoDB attribute that is a string.
type attribute struct{ S string }

func (n *nearAWS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	operations := map[string]func(*json.Decoder) (any, error){
		"TransactWriteItems": n.insert,
		"BatchGetItem":       n.read,
		"Decrypt":            n.open,
		"PutItem": func(*json.Decoder) (any, error) {
			n.recorded.Add(1)
			return struct{}{}, nil
		},
		"StartExecution": func(*json.Decoder) (any, error) {
			n.started.Add(1)
			return map[string]any{"executionArn": "arn", "startDate": 1}, nil
		},
	}
	do, known := operations[operation]
	if !known {
		http.Error(w, fmt.Sprintf(`{"__type":"ValidationException","message":"no %s here"}`, operation), http.StatusBadRequest)
		return
	}
	answer, err := do(json.NewDecoder(r.Body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	body, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amz-Crc32", strconv.Itoa(int(crc32.ChecksumIEEE(body))))
	time.Sleep(awsLatency - time.Since(began))
	_, _ = w.Write(body) // whose connection is gone asks no more
}

func (n *nearAWS) insert(request *json.Decoder) (any, error) {
	var in struct {
		TransactItems []struct {
			Put struct{ Item json.RawMessage }
		}
	}
	if err := request.Decode(&in); err != nil {
		return nil, err
	}
	for _, write := range in.TransactItems {
		var key struct{ PK attribute }
		if write.Put.Item == nil {
			continue
		}
		if err := json.Unmarshal(write.Put.Item, &key); err != nil {
			return nil, err
		}
		n.endpoints.Store(key.PK.S, write.Put.Item)
	}
	return struct{}{}, nil
}

func (n *nearAWS) read(request *json.Decoder) (any, error) {
	var in struct {
		RequestItems map[string]struct{ Keys []struct{ PK attribute } }
	}
	if err := request.Decode(&in); err != nil {
		return nil, err
	}
	found := map[string][]any{}
	for table, wanted := range in.RequestItems {
		for _, key := range wanted.Keys {
			if it, ok := n.endpoints.Load(key.PK.S); ok {
				found[table] = append(found[table], it)
			}
		}
	}
	return map[string]any{"Responses": found, "UnprocessedKeys": struct{}{}}, nil
}

func (n *nearAWS) open(request *json.Decoder) (any, error) {
	var in struct{ CiphertextBlob []byte }
	err := request.Decode(&in)
	return map[string]any{"KeyId": "key", "Plaintext": in.CiphertextBlob}, err
}
