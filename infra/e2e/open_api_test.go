package e2e

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The API describes itself as the repository does, but for its address.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	text, err := golden()
	if err != nil {
		t.Fatal(err)
	}
	var expected record
	if err := json.Unmarshal(text, &expected); err != nil {
		t.Fatal(err)
	}
	expected["servers"] = []any{record{"url": deployed(t).BaseURL}}
	if diff := cmp.Diff(expected, want[record](t, demoKey(t).get(t, "/open-api"), http.StatusOK)); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
}
