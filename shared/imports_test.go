// Package shared_test keeps the arrows between the packages of this module.
package shared_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "parley/"

// arrows says which packages of this module a package may import. A package below one of
// these counts as it, unless it is named here itself.
var arrows = map[string][]string{
	"shared/conversation": {},
	"shared/config":       {},
	"shared/batch":        {},
	"shared/emulator":     {"shared/config"},
	"shared/dynamo":       {"shared/conversation", "shared/config"},
	"shared/agent":        {"shared/conversation", "shared/config"},
	"shared/carrier":      {"shared/conversation", "shared/config"},
	"shared/simulator":    {"shared/batch", "shared/dynamo", "shared/agent", "shared/carrier", "shared/conversation", "shared/config"},
	"shared/lifecycle":    {"shared/batch", "shared/dynamo", "shared/agent", "shared/carrier", "shared/conversation", "shared/config"},
	"shared/webhook":      {"shared/batch", "shared/dynamo", "shared/agent", "shared/carrier", "shared/conversation", "shared/config"},
	"shared/httpapi":      {"shared/dynamo", "shared/agent", "shared/carrier", "shared/conversation", "shared/config"},
	"shared/settings":     {"shared/httpapi", "shared/webhook", "shared/dynamo", "shared/carrier", "shared/conversation", "shared/config"},
	"shared":              {}, // this test
	"functions":           product,
	"infra":               {"shared/httpapi", "shared/settings", "shared/lifecycle", "shared/dynamo", "shared/config"},
	"infra/local":         append(product, "shared/emulator"),
	"infra/workspace":     append(product, "shared/emulator"),
	"infra/replay":        append(product, "shared/emulator"),
	"infra/e2e":           append(product, "shared/emulator"),
	"events/receiver":     {"shared/webhook"},
}

// product is all of shared but what only tests and the local stack need.
var product = []string{
	"shared/conversation", "shared/config", "shared/dynamo", "shared/agent", "shared/carrier", "shared/simulator",
	"shared/lifecycle", "shared/webhook", "shared/httpapi", "shared/settings",
}

// outside says what some packages may import from other modules.
var outside = map[string][]string{
	"shared/conversation": {"github.com/google/uuid"},
	"shared/config":       {"github.com/aws/aws-sdk-go-v2/"},
}

func TestArrows(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case filepath.Ext(file) == ".go":
			name, err := filepath.Rel(root, file)
			if err != nil {
				return err
			}
			check(t, file, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, file, name string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	importer, known := owner(path.Dir(name))
	if !known {
		t.Errorf("%s: package %s has no row in the table of arrows", name, path.Dir(name))
		return
	}
	isTest := strings.HasSuffix(name, "_test.go") || strings.HasSuffix(path.Dir(name), "test")
	for _, spec := range parsed.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		inside, ours := strings.CutPrefix(imported, module)
		if !ours {
			limit, limited := outside[importer]
			foreign := strings.Contains(strings.Split(imported, "/")[0], ".")
			if limited && foreign && !isTest && !slices.ContainsFunc(limit, func(p string) bool { return strings.HasPrefix(imported, p) }) {
				t.Errorf("%s imports %s; package %s may import %v only", name, imported, importer, limit)
			}
			continue
		}
		target, _ := owner(inside)
		switch {
		case target == importer:
		case isTest && target == "shared/emulator":
		case !isTest && strings.HasSuffix(inside, "test"):
			t.Errorf("%s imports %s, which is for tests", name, inside)
		case !slices.Contains(arrows[importer], target):
			t.Errorf("%s imports %s; package %s may import %v only", name, inside, importer, arrows[importer])
		}
	}
}

// owner is the row of the table that a package counts as.
func owner(folder string) (string, bool) {
	for ; folder != "."; folder = path.Dir(folder) {
		if _, ok := arrows[folder]; ok {
			return folder, true
		}
	}
	return "", false
}
