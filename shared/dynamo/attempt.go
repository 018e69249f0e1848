package dynamo

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// attemptTimeout bounds one attempt. DynamoDB answers within milliseconds, and a page of
// 16 MB within a second: what takes longer is lost, and the request still has time to ask
// again. Without it one lost packet would take all of the request's time.
const attemptTimeout = 3 * time.Second

// impatient gives up an attempt that takes too long, its answer's body included.
type impatient struct{ dynamodb.HTTPClient }

func (c impatient) Do(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), attemptTimeout)
	answer, err := c.HTTPClient.Do(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	answer.Body = canceling{answer.Body, cancel}
	return answer, nil
}

// canceling frees its attempt when the body has been read.
type canceling struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b canceling) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
