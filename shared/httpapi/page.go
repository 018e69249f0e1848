package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// maxItemsBytes bounds the items of a response, and maxEscapedBytes what becomes of them
// in Lambda's answer to the gateway: a JSON text that may have 6 MB, in which the body is
// a string. A page that would be larger carries fewer items, but at least one.
const (
	maxItemsBytes   = 4<<20 - 64<<10
	maxEscapedBytes = 6_000_000 - 64<<10
)

// escaped is how long a text is as a string of a JSON text.
func escaped(text []byte) int {
	return len(text) + bytes.Count(text, []byte(`"`)) + bytes.Count(text, []byte(`\`))
}

// resource is a value whose JSON is made already, so that its size is known.
type resource[R any] struct{ json.RawMessage }

// Schema is that of the value.
func (resource[R]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[R](), true, "")
}

// Resource is a value in the response of another package's operation.
type Resource[R any] = resource[R]

func encode[R any](value R) (resource[R], error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false) // metadata is given back as it was sent
	err := encoder.Encode(value)
	return resource[R]{buffer.Bytes()}, err
}

// Paging is how every list ends.
type Paging struct {
	HasMore    bool   `json:"has_more" doc:"Whether there is another page."`
	NextCursor string `json:"next_cursor,omitzero" doc:"The cursor of the next page; absent on the last."`
}

// list is a list request whose parameters are in order.
type list[R any] struct {
	cursor Cursor
	limit  int
	fields Fields
	read   func(dynamo.PageRequest) (dynamo.Page[R], error)
	show   func(R, conversation.Blocks) R // cuts an item to the blocks
}

// answer reads a page, cut to the blocks that the caller asked for and may read.
func answer[R any](ctx context.Context, a *API, l list[R]) ([]resource[R], Paging, error) {
	blocks, err := a.blocks(ctx, l.fields.blocks)
	if err != nil {
		return nil, Paging{}, err
	}
	return Answer(l.cursor, l.limit, func(p dynamo.PageRequest) (dynamo.Page[R], error) {
		p.Blocks = blocks
		return l.read(p)
	}, func(item R) R { return l.show(item, blocks) })
}

// Answer reads a page and makes the response of it: as many items as fit, each as show
// makes it.
func Answer[R, S any](cursor Cursor, limit int, read func(dynamo.PageRequest) (dynamo.Page[R], error), show func(R) S) ([]Resource[S], Paging, error) {
	page, err := read(dynamo.PageRequest{Limit: limit, After: cursor.after})
	if errors.Is(err, dynamo.ErrPosition) {
		return nil, Paging{}, problem(http.StatusBadRequest, badCursor)
	}
	if err != nil {
		return nil, Paging{}, err
	}
	items := make([]Resource[S], 0, len(page.Items))
	size, sizeEscaped := 0, 0
	for i, item := range page.Items {
		encoded, err := encode(show(item))
		if err != nil {
			return nil, Paging{}, err
		}
		size += len(encoded.RawMessage)
		sizeEscaped += escaped(encoded.RawMessage)
		if (size > maxItemsBytes || sizeEscaped > maxEscapedBytes) && i > 0 {
			page = page.Cut(i)
			break
		}
		items = append(items, encoded)
	}
	if page.Next == "" {
		return items, Paging{}, nil
	}
	return items, Paging{HasMore: true, NextCursor: writeCursor(cursor.list, page.Next)}, nil
}
