package conversation

import (
	"slices"
	"strings"
	"testing"
)

func TestCallVariables(t *testing.T) {
	filled := map[string]string{HotelName: "Grand", "city": ""}
	long := strings.Repeat("n", 64)
	tests := map[string]struct {
		texts []string
		want  []string
	}{
		"none":                   {nil, []string{}},
		"in order, once":         {[]string{"{{b}} {{a}} {{b}}", "{{c}}{{a}}"}, []string{"b", "a", "c"}},
		"in the greeting alone":  {[]string{"", "Hi {{name}}"}, []string{"name"}},
		"filled by the settings": {[]string{"{{hotel_name}} in {{city}}, {{room}}"}, []string{"room"}},
		"reserved": {
			[]string{"{{phone_number}}{{caller_phone_number}}{{participant_name}}{{system__time}}{{system__x}}{{secret__key}}{{phone}}"}, []string{"phone"},
		},
		"names":             {[]string{"{{a_1}}{{A}}{{1a}}{{_a}}{{a-b}}{{ä}}{{}}{{a b}}{{ a }}"}, []string{"a_1", "A"}},
		"64 characters":     {[]string{"{{" + long + "}}{{" + long + "n}}"}, []string{long}},
		"braces":            {[]string{"{{{a}}} {b} {{c} {{d}}"}, []string{"a", "d"}},
		"not across texts":  {[]string{"{{a", "}}"}, []string{}},
		"system is no name": {[]string{"{{system_time}}{{secret}}"}, []string{"system_time", "secret"}},
	}
	for name, tt := range tests {
		if got := CallVariables(filled, tt.texts...); got == nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestFilledVariables(t *testing.T) {
	if got := (Workspace{Name: "Grand"}).FilledVariables()[HotelName]; got != "Grand" {
		t.Errorf("hotel_name %q, want the workspace's name", got)
	}
	own := Workspace{Name: "Grand", Variables: map[string]string{HotelName: "The Grand", "city": "Ulm"}}
	if got := own.FilledVariables(); got[HotelName] != "The Grand" || got["city"] != "Ulm" || len(own.Variables) != 2 {
		t.Errorf("filled %v, want the workspace's own", got)
	}
}
