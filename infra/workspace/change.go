package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

// part is one thing of a definition that comes, goes and changes by itself. Its fields
// have the names that they have in the table, and their values as JSON.
type part struct {
	key    string
	title  string
	fields map[string]string
}

// changes says in short lines what a definition changes: + what comes, ~ what is
// different, - what goes.
func changes(have, want dynamo.Definition) []string {
	gone := map[string]part{}
	if have.Version > 0 {
		for _, p := range parts(have) {
			gone[p.key] = p
		}
	}
	var lines []string
	for _, p := range parts(want) {
		old, exists := gone[p.key]
		delete(gone, p.key)
		if !exists {
			lines = append(lines, "+ "+p.title)
			continue
		}
		lines = append(lines, differences(old, p)...)
	}
	for _, p := range parts(have) {
		if _, ok := gone[p.key]; ok {
			lines = append(lines, "- "+p.title)
		}
	}
	return lines
}

func differences(old, new part) []string {
	names := map[string]bool{}
	for name := range old.fields {
		names[name] = true
	}
	for name := range new.fields {
		names[name] = true
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if was, is := old.fields[name], new.fields[name]; was != is {
			lines = append(lines, fmt.Sprintf("~ %s: %s: %s -> %s", new.title, name, short(was, is), short(is, was)))
		}
	}
	return lines
}

// short is a value without what is equal at the beginning of a long one and its other side.
func short(value, other string) string {
	const most = 60
	if value == "" {
		return "none"
	}
	start := 0
	for start < min(len(value), len(other)) && value[start] == other[start] {
		start++
	}
	if len(value) <= most || start < most/2 {
		start = 0
	} else {
		start -= most / 4
	}
	cut := strings.ToValidUTF8(value[start:min(len(value), start+most)], "")
	if start > 0 {
		cut = "…" + cut
	}
	if start+most < len(value) {
		cut += "…"
	}
	return cut
}

func parts(d dynamo.Definition) []part {
	ps := []part{{"workspace", "workspace " + d.Workspace.Name, flatten(d.Workspace, "workspace_id")}}
	for _, a := range d.Assistants {
		title := "assistant " + a.AssistantName
		ps = append(ps, part{string(a.AssistantID), title,
			flatten(a, "assistant_id", "workspace_id", "phone_numbers", "criteria", "version")})
		for _, c := range a.Criteria {
			ps = append(ps, part{string(a.AssistantID) + string(c.EvaluationID),
				title + ": evaluation " + strconv.Quote(c.Title), flatten(c, "evaluation_id")})
		}
	}
	names := map[conversation.AssistantID]string{}
	for _, a := range d.Assistants {
		names[a.AssistantID] = a.AssistantName
	}
	for _, n := range d.Numbers() {
		ps = append(ps, part{n.PhoneNumber.PhoneNumber, "number " + n.PhoneNumber.PhoneNumber,
			map[string]string{
				"carrier":          n.Carrier,
				"assistant":        strconv.Quote(names[n.AssistantID]),
				"outbound_enabled": strconv.FormatBool(n.OutboundEnabled),
			}})
	}
	return ps
}

// flatten writes a value's JSON fields, one of another as "other.one", but for some.
func flatten(value any, without ...string) map[string]string {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err) // definitions are made of texts, numbers and lists of them
	}
	flat := map[string]string{}
	flattenInto(flat, "", encoded)
	for _, name := range without {
		maps.DeleteFunc(flat, func(field, _ string) bool { return field == name })
	}
	return flat
}

func flattenInto(flat map[string]string, path string, encoded json.RawMessage) {
	var object map[string]json.RawMessage
	if json.Unmarshal(encoded, &object) != nil {
		if text := string(encoded); text != "null" && text != `""` {
			flat[path] = text
		}
		return
	}
	for name, value := range object {
		flattenInto(flat, strings.TrimPrefix(path+"."+name, "."), value)
	}
}
