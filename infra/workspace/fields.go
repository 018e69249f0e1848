package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"parley/shared/conversation"
)

// problems are all that is wrong in a file. Its methods note one more.
type problems []problem

type problem struct {
	line int
	text string
}

func (ps *problems) note(line int, format string, args ...any) {
	*ps = append(*ps, problem{line, fmt.Sprintf(format, args...)})
}

// err joins the problems by line, each with the file's name. It is nil if there are none.
func (ps problems) err(file string) error {
	slices.SortFunc(ps, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.text, b.text))
	})
	var errs []error
	for _, p := range ps {
		errs = append(errs, fmt.Errorf("%s:%d: %s", file, p.line, p.text))
	}
	return errors.Join(errs...)
}

// fields is a mapping of the file. Its fields are read by name; done notes those that
// nobody has read.
type fields struct {
	problems *problems
	path     string // of this mapping, with a point or colon at its end
	line     int
	values   map[string]field // nil: it is no mapping, which is all there is to say of it
	names    []string         // that were read
}

type field struct {
	node ast.Node
	line int
}

// parseFile reads the file's one document, a mapping. What is no YAML at all is noted
// with the first line that isn't.
func parseFile(content []byte, ps *problems) *fields {
	none := &fields{problems: ps}
	file, err := parser.ParseBytes(content, 0, parser.AllowDuplicateMapKey())
	if broken := yaml.Error(nil); errors.As(err, &broken) {
		ps.note(broken.GetToken().Position.Line, "no YAML: %s", broken.GetMessage())
		return none
	}
	if err != nil {
		ps.note(1, "no YAML: %v", err)
		return none
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		ps.note(1, "holds no workspace, or more than one")
		return none
	}
	return newFields(ps, "", 1, file.Docs[0].Body)
}

func newFields(ps *problems, path string, line int, node ast.Node) *fields {
	f := &fields{problems: ps, path: path, line: line}
	mapping, ok := node.(ast.MapNode)
	if !ok {
		ps.note(line, "%s must be made of fields, name: value", cmp.Or(strings.TrimRight(path, ".: "), "the file"))
		return f
	}
	f.values = map[string]field{}
	for entries := mapping.MapRange(); entries.Next(); {
		key := entries.Key().GetToken()
		name, at := key.Value, key.Position.Line
		if first, ok := f.values[name]; ok {
			ps.note(at, "%s%s is given twice, first in line %d", path, name, first.line)
			continue
		}
		f.values[name] = field{entries.Value(), at}
	}
	return f
}

// take finds a field. One without a value is the same as none.
func (f *fields) take(name string) (field, bool) {
	if !slices.Contains(f.names, name) {
		f.names = append(f.names, name)
	}
	value, ok := f.values[name]
	if _, null := value.node.(*ast.NullNode); null {
		return field{}, false
	}
	return value, ok
}

// lineOf is where a field is, or would be.
func (f *fields) lineOf(name string) int {
	if value, ok := f.values[name]; ok {
		return value.line
	}
	return f.line
}

// note notes what is wrong with a field.
func (f *fields) note(name, format string, args ...any) {
	if f.values != nil {
		f.problems.note(f.lineOf(name), "%s%s %s", f.path, name, fmt.Sprintf(format, args...))
	}
}

// done notes the fields that nobody has read.
func (f *fields) done() {
	for name, value := range f.values {
		if !slices.Contains(f.names, name) {
			f.problems.note(value.line, "%s%s is no field; those here are %s", f.path, name, strings.Join(f.names, ", "))
		}
	}
}

// read parses a field that must be there. The parser's error says what the field must be.
func read[T any](f *fields, name string, parse func(string) (T, error)) T {
	var none T
	if _, ok := f.take(name); !ok {
		f.note(name, "is missing")
		return none
	}
	return readOr(f, name, none, parse)
}

// readOr parses a field that may be left out, which means otherwise.
func readOr[T any](f *fields, name string, otherwise T, parse func(string) (T, error)) T {
	value, ok := f.take(name)
	if !ok {
		return otherwise
	}
	text, err := scalar(value.node)
	if err != nil {
		f.note(name, "%v", err)
		return otherwise
	}
	parsed, err := parse(text)
	if err != nil {
		f.note(name, "%v", err)
		return otherwise
	}
	return parsed
}

// readID reads an id. Where it is missing, a new one is offered.
func readID(f *fields, name string) string {
	if _, ok := f.take(name); !ok {
		f.note(name, "is missing; a new one is %s", conversation.NewID())
		return ""
	}
	return read(f, name, id)
}

// mapping takes a field that is made of fields. One that is left out has none.
func (f *fields) mapping(name string) *fields {
	value, ok := f.take(name)
	switch {
	case f.values == nil:
		return &fields{problems: f.problems}
	case !ok:
		return &fields{problems: f.problems, path: f.path + name + ".", line: f.line, values: map[string]field{}}
	}
	return newFields(f.problems, f.path+name+".", value.line, value.node)
}

// list takes a field that is a list, each item made of fields.
func (f *fields) list(name string) []*fields {
	value, ok := f.take(name)
	if !ok {
		return nil
	}
	sequence, ok := value.node.(*ast.SequenceNode)
	if !ok {
		f.note(name, "must be a list, each item after a dash")
		return nil
	}
	var items []*fields
	for i, node := range sequence.Values {
		line := node.GetToken().Position.Line
		items = append(items, newFields(f.problems, fmt.Sprintf("%s%s %d: ", f.path, name, i+1), line, node))
	}
	return items
}

// scalar is a value's text as it stands in the file, so that +12025550100 and 0.10 are
// what they look like, with or without quotes.
func scalar(node ast.Node) (string, error) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, nil
	default:
		return "", errors.New("must be a plain value")
	}
}
