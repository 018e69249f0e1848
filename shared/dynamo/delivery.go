package dynamo

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"parley/shared/conversation"
)

const (
	kindDelivery   = "delivery"
	deliveriesList = "deliveries"
)

// DeliveriesPrefix is that of the bucket's objects that are payloads of webhooks. They
// must stay longer than conversation.DeliveryLife.
const DeliveriesPrefix = "deliveries/"

// A payload travels and is kept compressed. Up to maxZip bytes it is in the queue's
// message and in the delivery's item, about 200 KB of text: written as base64 it takes no
// more than the 64 KB that SQS counts as one request. A larger one is in S3.
const maxZip = 48<<10 - 512

// maxAnswered is how large a delivery's item may become by what endpoints answered:
// attempts beyond it are recorded without the answer's text.
const maxAnswered = 250 << 10

// DeliveryBody is a payload, or where it is in S3. It has one of the two.
type DeliveryBody struct {
	Zip []byte `json:"zip,omitzero"`
	Key string `json:"key,omitzero"`
}

// PackBody makes the body of a delivery. A large payload is written to S3, in an object
// named after its content, so that writing it again changes nothing.
func (s *Store) PackBody(ctx context.Context, ws conversation.WorkspaceID, delivery conversation.DeliveryID, payload []byte) (DeliveryBody, error) {
	var zip bytes.Buffer
	w := gzip.NewWriter(&zip)
	_, _ = w.Write(payload) // a Buffer takes everything
	_ = w.Close()
	if zip.Len() <= maxZip {
		return DeliveryBody{Zip: zip.Bytes()}, nil
	}
	sum := sha256.Sum256(payload)
	key := DeliveriesPrefix + id(ws, kindDelivery, delivery) + "/" + hex.EncodeToString(sum[:])
	_, err := s.s3().PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.bucket, Key: &key, Body: bytes.NewReader(zip.Bytes()), ContentType: aws.String("application/gzip"),
	})
	return DeliveryBody{Key: key}, wrap(err, "store the body of delivery %s", delivery)
}

// UnpackBody is the payload, byte for byte.
func (s *Store) UnpackBody(ctx context.Context, body DeliveryBody) ([]byte, error) {
	zip := io.NopCloser(bytes.NewReader(body.Zip))
	if body.Key != "" {
		out, err := s.s3().GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: &body.Key})
		if err != nil {
			return nil, wrap(err, "read %s", body.Key)
		}
		zip = out.Body
	}
	defer zip.Close()
	r, err := gzip.NewReader(zip)
	if err != nil {
		return nil, wrap(err, "read the body of a delivery")
	}
	payload, err := io.ReadAll(r)
	return payload, wrap(err, "read the body of a delivery")
}

// StoredDelivery is a delivery as it was read, for the record of an attempt. Version 0 is
// one that isn't stored: its first record does that.
type StoredDelivery struct {
	conversation.Delivery
	Body    DeliveryBody `json:"body"`
	Version int          `json:"version"`
}

// Delivery reads a delivery, strongly consistent.
func (s *Store) Delivery(ctx context.Context, ws conversation.WorkspaceID, delivery conversation.DeliveryID) (StoredDelivery, error) {
	it, err := s.read(ctx, Deliveries, id(ws, kindDelivery, delivery))
	if err != nil {
		return StoredDelivery{}, wrap(err, "get delivery %s", delivery)
	}
	d, err := decode[StoredDelivery](it)
	return d, wrap(err, "get delivery %s", delivery)
}

// Target is what posting needs to know: the delivery as far as it is stored, and the
// endpoint as it is set at this moment. One that isn't there has Version 0.
type Target struct {
	Delivery StoredDelivery
	Endpoint StoredEndpoint
}

// Target reads both at once, strongly consistent: an endpoint that has just been changed,
// or an attempt that has just been recorded, counts.
func (s *Store) Target(ctx context.Context, ws conversation.WorkspaceID, delivery conversation.DeliveryID, endpoint conversation.EndpointID) (Target, error) {
	deliveryKey, endpointKey := id(ws, kindDelivery, delivery), id(ws, kindEndpoint, endpoint)
	found, err := s.readAll(ctx, map[string][]item{
		s.tables[Deliveries]: {key(deliveryKey)}, s.tables[Workspaces]: {key(endpointKey)},
	})
	if err != nil {
		return Target{}, wrap(err, "get delivery %s and its endpoint", delivery)
	}
	var target Target
	if it := found[deliveryKey]; s.live(it) {
		if target.Delivery, err = decode[StoredDelivery](it); err != nil {
			return Target{}, wrap(err, "get delivery %s", delivery)
		}
	}
	if it := found[endpointKey]; s.live(it) {
		if target.Endpoint, err = decode[StoredEndpoint](it); err != nil {
			return Target{}, wrap(err, "get webhook endpoint %s", endpoint)
		}
	}
	return target, nil
}

// RecordAttempt adds what an attempt reports to its delivery, as conversation.Delivery.Report
// says, and returns the delivery as it then stands. A delivery that isn't stored is written
// with its body. The condition is that nobody has written it since it was read; else it is
// read again and decided anew, so no two records are ever decided on the same state.
func (s *Store) RecordAttempt(ctx context.Context, d StoredDelivery, a conversation.Attempt) (StoredDelivery, error) {
	for range 16 {
		next, err := s.report(ctx, d, a)
		if !isConditionFailed(err) {
			return next, wrap(err, "record attempt %d.%d of delivery %s", a.Round, a.Number, d.ID)
		}
		switch again, err := s.Delivery(ctx, d.WorkspaceID, d.ID); {
		case err == nil:
			d = again
		case errors.Is(err, conversation.ErrNotFound): // its life has ended meanwhile
			d.Version = 0
		default:
			return StoredDelivery{}, wrap(err, "record attempt %d.%d of delivery %s", a.Round, a.Number, d.ID)
		}
	}
	return StoredDelivery{}, fmt.Errorf("record attempt %d.%d of delivery %s: others were faster each time", a.Round, a.Number, d.ID)
}

func (s *Store) report(ctx context.Context, d StoredDelivery, a conversation.Attempt) (StoredDelivery, error) {
	if d.answered()+len(a.ResponseBody) > maxAnswered {
		a.ResponseBody = ""
	}
	reported, changed := d.Report(a)
	if !changed {
		return d, nil
	}
	next := StoredDelivery{reported, d.Body, d.Version + 1}
	if d.Version == 0 {
		return next, s.createDelivery(ctx, next)
	}
	attempts, err := encode(struct {
		Attempts []conversation.Attempt `json:"attempts"`
	}{next.Attempts})
	if err != nil {
		return StoredDelivery{}, err
	}
	failed := expression.Name("failed_list")
	change := expression.Set(status, expression.Value(next.Status)).
		Set(expression.Name("round"), expression.Value(next.Round)).
		Set(expression.Name("attempts"), expression.Value(attempts["attempts"])).
		Set(version, expression.Value(next.Version))
	if next.Status == conversation.DeliveryFailed {
		change = change.Set(failed, expression.Value(failedList(next.WorkspaceID, next.EndpointID)))
	} else {
		change = change.Remove(failed)
	}
	_, err = s.update(ctx, Deliveries, id(d.WorkspaceID, kindDelivery, d.ID), change, version.Equal(expression.Value(d.Version)))
	return next, err
}

// failedList is the list of an endpoint's failed deliveries: few among many, so they have an
// index of their own.
func failedList(ws conversation.WorkspaceID, endpoint conversation.EndpointID) string {
	return list(ws, string(endpoint), deliveriesList, string(conversation.DeliveryFailed))
}

// answered is how much room the answers take.
func (d StoredDelivery) answered() int {
	n := 0
	for _, a := range d.Attempts {
		n += len(a.ResponseBody)
	}
	return n
}

func (s *Store) createDelivery(ctx context.Context, d StoredDelivery) error {
	it, err := encode(d)
	if err != nil {
		return err
	}
	it[PartitionKey] = text(id(d.WorkspaceID, kindDelivery, d.ID))
	it["workspace_list"] = text(list(d.WorkspaceID, deliveriesList))
	it["endpoint_list"] = text(list(d.WorkspaceID, string(d.EndpointID), deliveriesList))
	it["listed_at"] = text(timed(d.CreatedAt, d.ID))
	it[TTL] = number(d.CreatedAt.Add(conversation.DeliveryLife).Unix())
	expired := expression.Name(TTL).LessThanEqual(expression.Value(s.now().Unix()))
	expr, err := expression.NewBuilder().WithCondition(absent.Or(expired)).Build()
	if err != nil {
		return err
	}
	_, err = s.db.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: s.table(Deliveries), Item: it, ConditionExpression: expr.Condition(),
		ExpressionAttributeNames: expr.Names(), ExpressionAttributeValues: expr.Values(),
	})
	return err
}

// DeliveryQuery chooses deliveries. Zero fields choose all. From and To bound created_at,
// [From, To).
type DeliveryQuery struct {
	EndpointID conversation.EndpointID
	Status     conversation.DeliveryStatus
	Event      conversation.EventName
	EventID    string
	From, To   time.Time
}

// Deliveries lists deliveries by created_at, with their attempts and without their bodies.
func (s *Store) Deliveries(ctx context.Context, ws conversation.WorkspaceID, q DeliveryQuery, p PageRequest) (Page[conversation.Delivery], error) {
	l := listing{
		table: Deliveries, index: ByWorkspace, attribute: "workspace_list",
		partition: list(ws, deliveriesList), prefix: id(ws, kindDelivery, ""),
	}
	if q.EndpointID != "" {
		l.index, l.attribute, l.partition = ByEndpoint, "endpoint_list", list(ws, string(q.EndpointID), deliveriesList)
	}
	if q.EndpointID != "" && q.Status == conversation.DeliveryFailed {
		l.index, l.attribute, l.partition = ByFailure, "failed_list", failedList(ws, q.EndpointID)
	} else {
		l.equal("status", string(q.Status))
	}
	l.between(q.From, q.To)
	l.equal("event", string(q.Event))
	l.equal("event_id", q.EventID)
	page, err := fetch[conversation.Delivery](ctx, s, l, p)
	return page, wrap(err, "list deliveries")
}
