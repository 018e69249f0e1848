package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// maxItemsBytes bounds the items of a response: Lambda answers 6 MB at most, after the
// gateway's escaping. A page that would be larger carries fewer items, but at least one.
const maxItemsBytes = 4<<20 - 64<<10

// resource is a value whose JSON is made already, so that its size is known.
type resource[R any] struct{ json.RawMessage }

// Schema is that of the value.
func (resource[R]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[R](), true, "")
}

func encode[R any](value R) (resource[R], error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false) // metadata is given back as it was sent
	err := encoder.Encode(value)
	return resource[R]{buffer.Bytes()}, err
}

// paging is how every list ends.
type paging struct {
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

// answer reads a page and makes the response of it: as many items as fit.
func answer[R any](ctx context.Context, a *API, l list[R]) ([]resource[R], paging, error) {
	blocks, err := a.blocks(ctx, l.fields.blocks)
	if err != nil {
		return nil, paging{}, err
	}
	page, err := l.read(dynamo.PageRequest{Limit: l.limit, After: l.cursor.after, Blocks: blocks})
	if err != nil {
		return nil, paging{}, err
	}
	items := make([]resource[R], 0, len(page.Items))
	total := 0
	for i, item := range page.Items {
		encoded, err := encode(l.show(item, blocks))
		if err != nil {
			return nil, paging{}, err
		}
		total += len(encoded.RawMessage)
		if total > maxItemsBytes && i > 0 {
			page = page.Cut(i)
			break
		}
		items = append(items, encoded)
	}
	if page.Next == "" {
		return items, paging{}, nil
	}
	return items, paging{HasMore: true, NextCursor: writeCursor(l.cursor.list, page.Next)}, nil
}
