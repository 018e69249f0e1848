package conversation

// Render fills a template's placeholders in one pass: a placeholder inside a value stays
// text, and one without a value is left blank (spec: Call variables and metadata).
func Render(template string, values map[string]string) string {
	return placeholder.ReplaceAllStringFunc(template, func(found string) string {
		return values[found[2:len(found)-2]]
	})
}
