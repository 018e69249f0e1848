package conversation

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRender(t *testing.T) {
	long := strings.Repeat("n", 64)
	values := map[string]string{
		"a": "x", "b": "{{a}}", "c_1": "", "A": "capital", "brace": "}}", "open": "{{", "dollar": "$1 \\0 ${a}", "utf8": "𝄞 \x00é", long: "long",
	}
	tests := map[string]struct{ template, want string }{
		"nothing":                {"", ""},
		"no placeholder":         {"Hello.", "Hello."},
		"one":                    {"Hello {{a}}.", "Hello x."},
		"several, repeated":      {"{{a}}{{A}}{{a}}", "xcapitalx"},
		"one pass":               {"{{b}}", "{{a}}"},
		"made of two values":     {"{{open}}a{{brace}}", "{{a}}"},
		"no value":               {"<{{nobody}}>", "<>"},
		"an empty value":         {"<{{c_1}}>", "<>"},
		"text is text":           {"{{dollar}}{{utf8}}", "$1 \\0 ${a}𝄞 \x00é"},
		"names":                  {"{{1a}}{{_a}}{{a-b}}{{ä}}{{}}{{a b}}{{ a }}", "{{1a}}{{_a}}{{a-b}}{{ä}}{{}}{{a b}}{{ a }}"},
		"64 characters, and 65":  {"{{" + long + "}}{{" + long + "n}}", "long{{" + long + "n}}"},
		"braces around":          {"{{{a}}} {a} {{a} {{a", "{x} {a} {{a} {{a"},
		"over a line's end":      {"{{a\n}}", "{{a\n}}"},
		"reserved, without one":  {"<{{system__time}}{{secret__key}}>", "<>"},
		"bytes that are no text": {"\xff{{a}}\xfe", "\xffx\xfe"},
	}
	for name, tt := range tests {
		if got := Render(tt.template, values); got != tt.want {
			t.Errorf("%s: Render(%q) = %q, want %q", name, tt.template, got, tt.want)
		}
	}
	if got := Render("{{a}}", nil); got != "" {
		t.Errorf("without values: %q, want blank", got)
	}
}

// What is no placeholder stays as it is, and each placeholder becomes its value, whatever
// the value is.
func TestRenderByProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var template, want strings.Builder
		values := map[string]string{}
		for range rapid.IntRange(0, 8).Draw(t, "parts") {
			if rapid.Bool().Draw(t, "placeholder") {
				name := rapid.StringMatching(`[A-Za-z][A-Za-z0-9_]{0,63}`).Draw(t, "name")
				if _, ok := values[name]; !ok {
					values[name] = rapid.SampledFrom([]string{"", "{{a}}", "}}", "$0", "x"}).Draw(t, "value")
				}
				template.WriteString("{{" + name + "}}")
				want.WriteString(values[name])
				continue
			}
			text := rapid.StringMatching(`[^{}]*`).Draw(t, "text")
			template.WriteString(text)
			want.WriteString(text)
		}
		if got := Render(template.String(), values); got != want.String() {
			t.Fatalf("Render(%q, %q) = %q, want %q", template.String(), values, got, want.String())
		}
	})
}
