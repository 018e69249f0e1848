package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// StrictBody refuses of a body what the library lets pass: another media type, bytes that
// are no UTF-8, and keys that stand twice in it or in one of its objects.
type StrictBody struct {
	RawBody []byte
}

func (b *StrictBody) Resolve(ctx huma.Context) []error {
	problems, isWhole := checkBody(ctx.Context(), b.RawBody)
	if !isWhole {
		return problems
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(b.RawBody, &fields) // it is valid, and an object
	for field, value := range fields {
		if !isObject(value) {
			continue
		}
		for _, name := range repeatedKeys(value) {
			problems = append(problems, fmt.Errorf("%s.%s: the key stands twice", field, name))
		}
	}
	return problems
}

// checkBody checks what the library doesn't, of every body: its media type, its encoding, its
// keys. It tells whether the body is a JSON object; of one that isn't, the library says so.
func checkBody(ctx context.Context, raw []byte) (problems []error, isWhole bool) {
	if err := checkMediaType(ctx); err != nil {
		problems = append(problems, err)
	}
	if !utf8.Valid(raw) {
		return append(problems, errors.New("the body must be UTF-8")), false
	}
	if !json.Valid(raw) || !isObject(raw) {
		return problems, false
	}
	for _, name := range repeatedKeys(raw) {
		problems = append(problems, fmt.Errorf("%s: the key stands twice", name))
	}
	return problems, true
}
