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
// in an object named after its content and written before the item; in the field's place
// the item has "large_<field>", which says where it is. Readers don't notice.
const maxItemBytes = 350 << 10

const largePrefix = "large_"

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
	for name := range bySize(it) {
		if itemSize(it) <= maxItemBytes {
			break
		}
		if err := s.move(ctx, stringOf(it, PartitionKey), name, it); err != nil {
			return err
		}
	}
	return nil
}

// move puts one field into S3 and says so in its place.
func (s *Store) move(ctx context.Context, pk, name string, it item) error {
	stored, err := s.putField(ctx, pk, name, it)
	if err != nil {
		return wrap(err, "store %s", name)
	}
	delete(it, name)
	it[largePrefix+name], err = attributevalue.MarshalWithOptions(stored, func(o *attributevalue.EncoderOptions) { o.TagKey = "json" })
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
	large := map[string]object{}
	for name, block := range largeFields {
		value, ok := it[largePrefix+name]
		if !ok || !blocks.Has(block) {
			continue
		}
		var stored object
		err := attributevalue.UnmarshalWithOptions(value, &stored, func(o *attributevalue.DecoderOptions) { o.TagKey = "json" })
		if err != nil {
			return nil, err
		}
		large[name] = stored
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
