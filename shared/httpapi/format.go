package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

const mediaType = "application/json"

// jsonFormat keeps numbers and characters as they were sent.
var jsonFormat = huma.Format{
	Marshal: func(w io.Writer, value any) error {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(value)
	},
	Unmarshal: func(data []byte, value any) error {
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		if err := decoder.Decode(value); err != nil {
			return fmt.Errorf("the body is not JSON: %w", err)
		}
		if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
			return errors.New("the body is not JSON: something follows the value")
		}
		return nil
	},
}

type mediaTypeKey struct{}

// asJSON hands a request's body to the library as JSON, whatever the request calls it: the
// library knows a media type in one spelling only, and names nothing beside one that it
// doesn't know, or beside a body that is missing. CallBody and StrictBody check what was sent.
func asJSON(r *http.Request) *http.Request {
	if r.Method != http.MethodPost && r.Method != http.MethodPatch {
		return r
	}
	r = r.WithContext(context.WithValue(r.Context(), mediaTypeKey{}, r.Header.Get("Content-Type")))
	r.Header.Set("Content-Type", mediaType)
	sent := io.Reader(http.NoBody)
	if r.Body != nil {
		sent = r.Body
	}
	body := bufio.NewReader(sent)
	if _, err := body.Peek(1); errors.Is(err, io.EOF) {
		body.Reset(strings.NewReader("null"))
	}
	r.Body = io.NopCloser(body) // the server closes its own
	return r
}

// checkMediaType is what is wrong with the Content-Type that a request was sent with. A
// request without one is taken for JSON.
func checkMediaType(ctx context.Context) error {
	sent, _ := ctx.Value(mediaTypeKey{}).(string)
	if named, _, err := mime.ParseMediaType(sent); sent != "" && (err != nil || named != mediaType) {
		return errors.New("Content-Type: must be " + mediaType)
	}
	return nil
}
