package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"parley/shared/dynamo"
)

// maxObject is above what Lambda keeps: an event is at most 6 MB, and its text is escaped.
const maxObject = 32 << 20

type replay struct {
	objects  *s3.Client
	lambda   *lambda.Client
	stage    string
	bucket   string
	function string // empty: all of them
	dryRun   bool
	out      io.Writer

	found, left int
}

// all replays what is kept, the oldest of each shard first, and shows a line for each. One
// that fails is no reason to leave out the next; the error says how many are left.
func (r *replay) all(ctx context.Context) error {
	pages := s3.NewListObjectsV2Paginator(r.objects, &s3.ListObjectsV2Input{
		Bucket: &r.bucket, Prefix: aws.String(dynamo.PoisonPrefix), MaxKeys: aws.Int32(100),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("list what is kept in %s: %w", r.bucket, err)
		}
		for _, object := range page.Contents {
			if err := r.object(ctx, aws.ToString(object.Key)); err != nil {
				return err
			}
		}
	}
	switch {
	case r.left > 0:
		return fmt.Errorf("%d of %d are left", r.left, r.found)
	case r.found == 0 && r.function == "":
		fmt.Fprintln(r.out, "nothing is kept")
	case r.found == 0:
		fmt.Fprintln(r.out, "nothing is kept of", r.function)
	}
	return nil
}

// object replays one object. Its error means that going on is of no use.
func (r *replay) object(ctx context.Context, key string) error {
	record, err := r.read(ctx, key)
	if gone := (*types.NoSuchKey)(nil); errors.As(err, &gone) {
		return nil // another replay was here first
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	function, known := r.known(record)
	if err == nil && r.function != "" && known && function != r.function {
		return nil
	}
	r.found++
	switch {
	case err != nil:
		r.leave(key, err.Error())
		return nil
	case !known:
		r.leave(record.String(), "it is of no function of this stage")
		return nil
	case r.dryRun:
		fmt.Fprintln(r.out, record)
		return nil
	}
	err = r.invoke(ctx, record)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		r.leave(record.String(), err.Error())
		return nil
	}
	if _, err := r.objects.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &r.bucket, Key: &key}); err != nil {
		return fmt.Errorf("%s: replayed, but not removed: %w", record, err)
	}
	fmt.Fprintf(r.out, "%s: replayed\n", record)
	return nil
}

func (r *replay) leave(what, why string) {
	r.left++
	fmt.Fprintf(r.out, "%s: left: %s\n", what, why)
}

func (r *replay) read(ctx context.Context, key string) (record, error) {
	object, err := r.objects.GetObject(ctx, &s3.GetObjectInput{Bucket: &r.bucket, Key: &key})
	if err != nil {
		return record{}, err
	}
	defer object.Body.Close()
	body, err := io.ReadAll(io.LimitReader(object.Body, maxObject))
	if err != nil {
		return record{}, err
	}
	return parseRecord(body)
}

// known is the function of a record, if it is one that this stage's stream calls: nothing
// else is ever invoked, whatever the bucket holds.
func (r *replay) known(of record) (function string, ok bool) {
	function, ok = strings.CutPrefix(of.function, "parley-"+r.stage+"-")
	return function, ok && slices.Contains(functions[:], function)
}

// invoke gives a record to its function, and fails unless all of it succeeded.
func (r *replay) invoke(ctx context.Context, record record) error {
	answer, err := r.lambda.Invoke(ctx, &lambda.InvokeInput{FunctionName: &record.function, Payload: record.event})
	if err != nil {
		return err
	}
	if answer.FunctionError != nil {
		return fmt.Errorf("the function failed (%s); its log says why", *answer.FunctionError)
	}
	return checkAnswer(answer.Payload, record.changes)
}

// checkAnswer reads a partial batch response, as Lambda does, but for an answer that isn't
// one: Lambda takes that for success.
func checkAnswer(answer []byte, changes int) error {
	var response struct {
		Failures *[]struct {
			ID string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if err := json.Unmarshal(answer, &response); err != nil || response.Failures == nil {
		return errors.New("the function's answer doesn't say what failed")
	}
	if len(*response.Failures) == 0 {
		return nil
	}
	var failed []string
	for _, failure := range *response.Failures {
		failed = append(failed, failure.ID)
	}
	return fmt.Errorf("%d of %d failed again; the function's log says why, by sequence_number %s",
		len(failed), changes, strings.Join(failed, ", "))
}
