package config

import (
	"io"
	"net/http"
	"os"
	"testing"
)

// The SDK leaves the client out unless AWS_CA_BUNDLE asks for one of its own.
func TestAWSHasAClient(t *testing.T) {
	t.Setenv("AWS_CA_BUNDLE", "")
	cfg, err := AWS(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	request, _ := http.NewRequest(http.MethodGet, "http://127.0.0.1:1", nil)
	if _, err := cfg.HTTPClient.Do(request); err == nil {
		t.Error("a request to nobody succeeds, want an error")
	}
}

type inspect func(io.Reader)

func (f inspect) Do(r *http.Request) (*http.Response, error) {
	f(r.Body)
	return nil, nil
}

func TestRequestBodiesAreReadOnly(t *testing.T) {
	body, err := os.Open(os.DevNull) // has WriteTo, as the SDK's bodies have
	if err != nil {
		t.Fatal(err)
	}
	request, _ := http.NewRequest(http.MethodPost, "http://127.0.0.1", body)
	called := false
	client := plainBodies{inspect(func(got io.Reader) {
		called = true
		if _, ok := got.(io.WriterTo); ok {
			t.Error("the client got a body with WriteTo")
		}
	})}
	_, _ = client.Do(request)
	if !called {
		t.Error("the client was not called")
	}
}
