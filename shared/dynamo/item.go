package dynamo

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"parley/shared/conversation"
)

// item is a row. Its attributes have the names of the JSON fields, so a row reads like
// the resource, with the keys beside it.
type item = map[string]types.AttributeValue

// Kinds of records, as they appear in keys.
const (
	kindCall      = "call"
	kindMessage   = "message"
	kindThread    = "thread"
	kindWorkspace = "workspace"
	kindAssistant = "assistant"
)

// id makes a record's partition key: the workspace first.
func id[I ~string](ws conversation.WorkspaceID, kind string, record I) string {
	return string(ws) + "#" + kind + "#" + string(record)
}

// list makes the partition key of an index: the workspace first.
func list(ws conversation.WorkspaceID, names ...string) string {
	return string(ws) + "#" + strings.Join(names, "#")
}

func key(pk string) item { return item{PartitionKey: text(pk)} }

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number[N ~int | ~int64](n N) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(int64(n), 10)}
}

func stringOf(it item, attribute string) string {
	s, _ := it[attribute].(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

func intOf(it item, attribute string) int {
	n, _ := it[attribute].(*types.AttributeValueMemberN)
	if n == nil {
		return 0
	}
	i, _ := strconv.Atoi(n.Value)
	return i
}

// live tells whether the item exists: one past its ttl doesn't, whether or not DynamoDB
// has deleted it yet.
func (s *Store) live(it item) bool {
	if len(it) == 0 {
		return false
	}
	_, expires := it[TTL]
	return !expires || int64(intOf(it, TTL)) > s.now().Unix()
}

// encode makes an item of a record. What has no value (null, an empty text) is left out;
// 0, false and an empty list are values.
func encode(record any) (item, error) {
	it, err := attributevalue.MarshalMapWithOptions(record, func(o *attributevalue.EncoderOptions) {
		o.TagKey = "json"
		o.UseEncodingMarshalers = true
	})
	if err != nil {
		return nil, err
	}
	dropEmpty(it)
	return it, nil
}

func dropEmpty(it item) {
	for name, value := range it {
		switch v := value.(type) {
		case *types.AttributeValueMemberNULL:
			delete(it, name)
		case *types.AttributeValueMemberS:
			if v.Value == "" {
				delete(it, name)
			}
		case *types.AttributeValueMemberM:
			dropEmpty(v.Value)
		case *types.AttributeValueMemberL:
			for _, element := range v.Value {
				if m, ok := element.(*types.AttributeValueMemberM); ok {
					dropEmpty(m.Value)
				}
			}
		}
	}
}

func decode[R any](it item) (R, error) {
	var record R
	err := attributevalue.UnmarshalMapWithOptions(it, &record, func(o *attributevalue.DecoderOptions) {
		o.TagKey = "json"
		o.UseEncodingUnmarshalers = true
	})
	return record, err
}

// size is what DynamoDB counts of a value, in bytes.
func size(value types.AttributeValue) int {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return len(v.Value)/2 + 2
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberM:
		return 3 + itemSize(v.Value) + len(v.Value)
	case *types.AttributeValueMemberL:
		n := 3
		for _, element := range v.Value {
			n += 1 + size(element)
		}
		return n
	default:
		return 1
	}
}

func itemSize(it item) int {
	n := 0
	for name, value := range it {
		n += len(name) + size(value)
	}
	return n
}

// kindOf is the kind of the record that a key is of.
func kindOf(pk string) string {
	_, rest, _ := strings.Cut(pk, "#")
	kind, _, _ := strings.Cut(rest, "#")
	return kind
}

// ownerOf takes a record's key apart.
func ownerOf[I ~string](pk string) (conversation.WorkspaceID, I) {
	ws, rest, _ := strings.Cut(pk, "#")
	_, record, _ := strings.Cut(rest, "#")
	return conversation.WorkspaceID(ws), I(record)
}
