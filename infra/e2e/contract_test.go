package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/errors"

	"parley/shared/emulator"
	"parley/shared/httpapi"
	"parley/shared/settings"
)

// documented tells whether the OpenAPI document should have the endpoint.
func documented(method, path string) bool {
	return slices.ContainsFunc(append(endpoints(), settings.Routes()...), func(r httpapi.Route) bool { return r.Method == method && matches(r.Path, path) })
}

// endpoints are the routes that customers use.
func endpoints() []httpapi.Route {
	return only(httpapi.Routes(), func(r httpapi.Route) bool { return r.Auth != httpapi.ByCarrier })
}

// matches compares segment by segment; a parameter takes any that isn't empty.
func matches(pattern, path string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if want[i] != got[i] && (!strings.HasPrefix(want[i], "{") || got[i] == "") {
			return false
		}
	}
	return true
}

// golden is the OpenAPI document as the repository has it.
var golden = sync.OnceValues(func() ([]byte, error) {
	root, err := emulator.Root()
	if err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(root, "shared", "settings", "testdata", "openapi.json"))
})

var contract = sync.OnceValues(func() (validator.Validator, error) {
	text, err := golden()
	if err != nil {
		return nil, err
	}
	document, err := libopenapi.NewDocument(text)
	if err != nil {
		return nil, err
	}
	v, errs := validator.NewValidator(document)
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return v, nil
})

// validating is held by who uses the contract: the validator caches without a lock.
var validating sync.Mutex

// undocumented says in what the answer differs from the OpenAPI document.
func (a answer) undocumented(t testing.TB, path string) string {
	t.Helper()
	v, err := contract()
	if err != nil {
		t.Error(err)
		return ""
	}
	request := &http.Request{Method: a.request.Method, URL: &url.URL{Scheme: "https", Host: "api.example.com", Path: path}, Header: http.Header{}}
	response := &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(bytes.NewReader(a.body)), Request: request}
	validating.Lock()
	defer validating.Unlock()
	_, errs := v.ValidateHttpResponse(request, response)
	return messages(errs)
}

func messages(errs []*errors.ValidationError) string {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
		for _, reason := range err.SchemaValidationErrors {
			texts = append(texts, reason.Reason+" at "+reason.Location)
		}
	}
	return strings.Join(texts, "\n")
}
