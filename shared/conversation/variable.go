package conversation

import (
	"regexp"
	"slices"
	"strings"
)

// placeholder is {{name}} in a prompt or greeting (spec: Call variables and metadata).
var placeholder = regexp.MustCompile(`\{\{([A-Za-z][A-Za-z0-9_]{0,63})\}\}`)

// reservedVariables are the names that the service fills in itself, beside every name
// with one of the reserved prefixes.
var (
	reservedVariables = []string{"phone_number", "caller_phone_number", "participant_name"}
	reservedPrefixes  = []string{"system__", "secret__"}
)

// ReservedVariable tells whether callers may not set the variable (spec: reserved names).
func ReservedVariable(name string) bool {
	return slices.Contains(reservedVariables, name) ||
		slices.ContainsFunc(reservedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// CallVariables returns the names of the placeholders in the texts, each once, in the
// order they appear, without those that the service fills in itself: the reserved ones
// and filled, which come from the workspace's settings.
func CallVariables(filled map[string]string, texts ...string) []string {
	names := []string{}
	for _, match := range placeholder.FindAllStringSubmatch(strings.Join(texts, "\n"), -1) {
		name := match[1]
		if _, ok := filled[name]; !ok && !ReservedVariable(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
