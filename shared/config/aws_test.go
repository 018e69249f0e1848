package config

import (
	"io"
	"net/http"
	"os"
	"testing"
)

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
