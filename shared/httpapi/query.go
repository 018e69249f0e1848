package httpapi

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"parley/shared/conversation"
)

// Strict refuses query parameters that the library lets pass: unknown, empty, repeated
// and malformed ones. A misspelt filter must not answer unfiltered.
type Strict struct{}

func (Strict) Resolve(ctx huma.Context) []error {
	address := ctx.URL()
	query, err := url.ParseQuery(address.RawQuery)
	if err != nil {
		return []error{errors.New("the query string is malformed")}
	}
	var problems []error
	for name, values := range query {
		i := slices.IndexFunc(ctx.Operation().Parameters, func(p *huma.Param) bool { return p.In == "query" && p.Name == name })
		switch {
		case i < 0:
			problems = append(problems, fmt.Errorf("%s: unknown query parameter", name))
		case slices.Contains(values, ""):
			problems = append(problems, fmt.Errorf("%s: must not be empty", name))
		case len(values) > 1 && name != "fields":
			problems = append(problems, fmt.Errorf("%s: must be given once", name))
		}
	}
	return problems
}

// Fields is the query parameter that chooses blocks.
type Fields struct {
	Fields []string `query:"fields,explode" doc:"The data blocks to return, separated by commas; may be repeated. Without it: every block that the key may read. Blocks: call, customer, costs, transcript, analysis, evaluations, follow_ups, recording, performance_metrics, config_snapshot. The block call is always included."`
	blocks conversation.Blocks
}

func (f *Fields) Resolve(huma.Context) []error {
	if f.Fields == nil {
		return nil
	}
	blocks, err := conversation.ParseBlocks(strings.Split(strings.Join(f.Fields, ","), ","))
	if err != nil {
		return []error{fmt.Errorf("fields: %w", err)}
	}
	f.blocks = blocks
	return nil
}

const badCursor = "cursor: must be the next_cursor of a page of this list with the same filters, unchanged"

// Cursor is the query parameter that goes on after an earlier page.
type Cursor struct {
	Cursor string `query:"cursor" doc:"next_cursor of the page before. Opaque: a cursor that was changed, or comes from another list or other filters, is refused."`
	after  string
	list   string
}

func (c *Cursor) Resolve(ctx huma.Context) []error {
	address := ctx.URL()
	filters := address.Query()
	for _, name := range []string{"cursor", "limit", "fields"} {
		filters.Del(name)
	}
	c.list = ctx.Operation().OperationID + "?" + filters.Encode()
	if c.Cursor == "" {
		return nil
	}
	after, ok := readCursor(c.list, c.Cursor)
	if !ok {
		return []error{errors.New(badCursor)}
	}
	c.after = after
	return nil
}

// PageSize is the query parameter that bounds a page.
type PageSize struct {
	Limit int `query:"limit" minimum:"1" maximum:"100" default:"25" doc:"How many items a page may hold. It may hold fewer although has_more is true."`
}

// Span is a half-open range of time, [from, to).
type Span struct {
	From Instant `query:"from" doc:"At or after this time."`
	To   Instant `query:"to" doc:"Before this time."`
}

func (s *Span) Resolve(huma.Context) []error {
	if !s.From.IsZero() && !s.To.IsZero() && s.From.After(s.To.Time) {
		return []error{errors.New("from: must not be after to")}
	}
	return nil
}

// Instant is an ISO 8601 time as people write it: with any offset, with none (UTC), or as
// a plain date. A space stands for a plus sign that was not encoded.
type Instant struct{ time.Time }

var instantLayouts = []string{
	"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04:05",
	"2006-01-02T15:04Z07:00", "2006-01-02T15:04Z0700", "2006-01-02T15:04Z07", "2006-01-02T15:04",
	"2006-01-02",
}

func (i *Instant) UnmarshalText(text []byte) error {
	value := string(text)
	if date, clock, ok := strings.Cut(value, "T"); ok {
		value = date + "T" + strings.Replace(clock, " ", "+", 1)
	}
	for _, layout := range instantLayouts {
		if parsed, err := time.Parse(layout, value); err == nil {
			i.Time = parsed.UTC()
			return nil
		}
	}
	return errors.New("must be an ISO 8601 time, such as 2026-01-31T08:00:00Z")
}

func (Instant) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type:       huma.TypeString,
		Extensions: map[string]any{"format": "date-time"}, // not checked by the library, which knows RFC 3339 only
		Examples:   []any{"2026-01-31T08:00:00Z"},
	}
}

// UUID is an id as clients send it, in either case.
type UUID string

var uuidPattern = `^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`

func (UUID) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeString, Pattern: uuidPattern, PatternDescription: "a UUID",
		Extensions: map[string]any{"format": "uuid"},
	}
}

// canonical is the id as the service writes it.
func canonical[I ~string](id UUID) I { return I(strings.ToLower(string(id))) }

// CloseReasonParam is a close_reason to filter by.
type CloseReasonParam string

func (CloseReasonParam) Schema(huma.Registry) *huma.Schema {
	reasons := make([]string, 0)
	for _, reason := range conversation.CloseReasons() {
		reasons = append(reasons, regexp.QuoteMeta(string(reason)))
	}
	return &huma.Schema{
		Type:               huma.TypeString,
		Pattern:            "^(" + strings.Join(reasons, "|") + "|" + string(conversation.FollowUpSkippedReason) + ":.+)$",
		PatternDescription: "one of the close_reason values",
	}
}
