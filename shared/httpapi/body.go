package httpapi

import (
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
	var problems []error
	if err := checkMediaType(ctx.Context()); err != nil {
		problems = append(problems, err)
	}
	if !utf8.Valid(b.RawBody) {
		return append(problems, errors.New("the body must be UTF-8"))
	}
	if !json.Valid(b.RawBody) || !isObject(b.RawBody) {
		return problems // the library says so
	}
	for _, name := range repeatedKeys(b.RawBody) {
		problems = append(problems, fmt.Errorf("%s: the key stands twice", name))
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
