package dynamo

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"parley/shared/conversation"
)

// DynamoDB refuses items over 400 KB. One over 350 KB has its largest fields in S3, each
// in an object named after its content and written before the item; the item's "large"
// says where they are. Readers don't notice.
const maxItemBytes = 350 << 10

const largeAttribute = "large"

// largeFields are the fields that may leave their item, and the block that asks for each.
var largeFields = map[string]conversation.Block{
	"transcript":      conversation.BlockTranscript,
	"call_variables":  conversation.BlockCall,
	"config_snapshot": conversation.BlockConfigSnapshot,
}

// object is where a large field is.
type object struct {
	Key   string `json:"key"`
	Bytes int    `json:"bytes"`
}

// offload moves the largest fields of an item to S3 until it is small enough.
func (s *Store) offload(ctx context.Context, it item) error {
	moved := map[string]object{}
	for name := range bySize(it) {
		if itemSize(it) <= maxItemBytes {
			break
		}
		stored, err := s.putField(ctx, stringOf(it, PartitionKey), name, it)
		if err != nil {
			return wrap(err, "store %s", name)
		}
		moved[name] = stored
		delete(it, name)
	}
	if len(moved) == 0 {
		return nil
	}
	large, err := attributevalue.MarshalWithOptions(moved, func(o *attributevalue.EncoderOptions) { o.TagKey = "json" })
	it[largeAttribute] = large
	return err
}

// bySize yields the names of the item's movable fields, the largest first.
func bySize(it item) func(yield func(string) bool) {
	var names []string
	for name := range largeFields {
		if _, ok := it[name]; ok {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(size(it[b]), size(it[a])) })
	return slices.Values(names)
}

func (s *Store) putField(ctx context.Context, pk, name string, it item) (object, error) {
	var value any
	if err := attributevalue.Unmarshal(it[name], &value); err != nil {
		return object{}, err
	}
	body, err := json.Marshal(value)
	if err != nil {
		return object{}, err
	}
	sum := sha256.Sum256(body)
	stored := object{Key: FieldsPrefix + pk + "/" + name + "/" + hex.EncodeToString(sum[:]), Bytes: len(body)}
	_, err = s.s3().PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.bucket, Key: &stored.Key, Body: bytes.NewReader(body),
		ContentType: aws.String("application/json"),
	})
	return stored, err
}

// largeOf says where the item's large fields of these blocks are.
func largeOf(it item, blocks conversation.Blocks) (map[string]object, error) {
	var large map[string]object
	if stored, ok := it[largeAttribute]; ok {
		err := attributevalue.UnmarshalWithOptions(stored, &large, func(o *attributevalue.DecoderOptions) { o.TagKey = "json" })
		if err != nil {
			return nil, err
		}
	}
	for name := range large {
		if !blocks.Has(largeFields[name]) {
			delete(large, name)
		}
	}
	return large, nil
}

// fill reads an item's large fields back into it.
func (s *Store) fill(ctx context.Context, it item, large map[string]object) error {
	for name, stored := range large {
		body, err := s.getField(ctx, stored)
		if err != nil {
			return wrap(err, "read %s", name)
		}
		var value any
		if err := json.Unmarshal(body, &value); err != nil {
			return wrap(err, "read %s", name)
		}
		if it[name], err = attributevalue.Marshal(value); err != nil {
			return wrap(err, "read %s", name)
		}
	}
	return nil
}

func (s *Store) getField(ctx context.Context, stored object) ([]byte, error) {
	out, err := s.s3().GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: &stored.Key})
	if err != nil {
		return nil, err
	}
	defer out.Body.Close()
	return io.ReadAll(io.LimitReader(out.Body, int64(stored.Bytes)))
}
