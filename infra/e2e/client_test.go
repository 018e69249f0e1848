package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// key is an API key as its user sends it.
type key string

func (k key) header() string { return "Bearer " + string(k) }

// newClient makes what stands for one machine that asks the API. It follows no redirect.
func newClient() *http.Client {
	return &http.Client{
		Timeout:       30 * time.Second,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 100},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

var usualClient = newClient()

// An answer is all that came back for a request.
type answer struct {
	request *http.Request
	status  int
	header  http.Header
	body    []byte
}

// get asks as the key's user does.
func (k key) get(t testing.TB, target string) answer {
	t.Helper()
	return ask(t, usualClient, http.MethodGet, target, k.header())
}

// ask makes a request without a body, as send does.
func ask(t testing.TB, client *http.Client, method, target, authorization string) answer {
	t.Helper()
	header := http.Header{}
	if authorization != "" {
		header.Set("Authorization", authorization)
	}
	return send(t, client, method, target, header, nil)
}

// send makes a request and checks what is true of every answer of ours. It may be called
// from any goroutine.
func send(t testing.TB, client *http.Client, method, target string, header http.Header, body []byte) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, deployed(t).BaseURL, bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return answer{}
	}
	// Not parsed and put together again: malformed ones are the API's to refuse.
	path, query, _ := strings.Cut(target, "?")
	req.URL.Opaque, req.URL.RawQuery = path, query
	req.Header = header
	res, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return answer{request: req}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	got := answer{req, res.StatusCode, res.Header, text}
	got.check(t, fmt.Sprintf("%s %.200s", method, target), path)
	return got
}

// seen are the ids of all requests.
var seen sync.Map

func (a answer) check(t testing.TB, name, path string) {
	t.Helper()
	id := a.header.Get("X-Request-Id")
	if _, again := seen.LoadOrStore(id, true); id == "" || again {
		t.Errorf("%s: X-Request-Id is %q, want one of its own", name, id)
	}
	if len(a.body) == 0 {
		return
	}
	var value any
	if err := json.Unmarshal(a.body, &value); err != nil || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("%s: %s, %v; want JSON: %.200s", name, a.header.Get("Content-Type"), err, a.body)
	}
	if where := nullIn(value); where != "" {
		t.Errorf("%s: null at %s: %.400s", name, where, a.body)
	}
	if documented(a.request.Method, path) {
		if problems := a.undocumented(t, path); problems != "" {
			t.Errorf("%s: %d isn't as documented: %s\n%.400s", name, a.status, problems, a.body)
		}
	}
}

// nullIn says where a null is. Metadata may have some: it is the customer's own JSON.
func nullIn(value any) string {
	switch value := value.(type) {
	case nil:
		return "."
	case []any:
		for i, item := range value {
			if where := nullIn(item); where != "" {
				return fmt.Sprintf("[%d]%s", i, where)
			}
		}
	case map[string]any:
		for name, item := range value {
			if name == "metadata" {
				continue
			}
			if where := nullIn(item); where != "" {
				return "." + name + where
			}
		}
	}
	return ""
}

// want checks the status, and decodes the body.
func want[T any](t testing.TB, got answer, status int) T {
	t.Helper()
	var value T
	if got.status != status {
		t.Fatalf("%v: status %d, want %d: %.400s", got.request.URL, got.status, status, got.body)
	}
	if err := json.Unmarshal(got.body, &value); err != nil {
		t.Fatalf("%v: %v: %.400s", got.request.URL, err, got.body)
	}
	return value
}

// problem is the body of every error.
type problem struct {
	Detail []string
	Code   string
}

// page is the body of a list: the items are under the list's name.
type page[R any] struct {
	Items      []R
	HasMore    bool
	NextCursor string
}

func pageOf[R any](t testing.TB, k key, list, query string) page[R] {
	t.Helper()
	body := want[map[string]json.RawMessage](t, k.get(t, "/v1/"+list+"?"+query), http.StatusOK)
	var p page[R]
	for name, value := range map[string]any{list: &p.Items, "has_more": &p.HasMore, "next_cursor": &p.NextCursor} {
		if body[name] == nil && name == "next_cursor" {
			continue
		}
		if err := json.Unmarshal(body[name], value); err != nil {
			t.Fatalf("%s of %s?%s: %v: %.200s", name, list, query, err, body[name])
		}
		delete(body, name)
	}
	delete(body, "next_cursor")
	if len(body) > 0 || p.Items == nil || p.HasMore != (p.NextCursor != "") {
		t.Fatalf("%s?%s: %d items, has_more %v, next_cursor %q, and also %v", list, query, len(p.Items), p.HasMore, p.NextCursor, body)
	}
	return p
}

// walk reads a list to its end. The query must hold a limit.
func walk[R any](t testing.TB, k key, list, query string) []R {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	var limit int
	if _, err := fmt.Sscan(values.Get("limit"), &limit); err != nil {
		t.Fatalf("limit of %s: %v", query, err)
	}
	var all []R
	cursor := ""
	for range 200 {
		p := pageOf[R](t, k, list, query+cursor)
		if len(p.Items) > limit {
			t.Errorf("%s?%s: a page of %d", list, query, len(p.Items))
		}
		all = append(all, p.Items...)
		if !p.HasMore {
			return all
		}
		cursor = "&cursor=" + p.NextCursor
	}
	t.Fatalf("%s?%s: no end after 200 pages", list, query)
	return nil
}
