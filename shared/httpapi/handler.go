package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"strings"

	"github.com/awslabs/aws-lambda-go-api-proxy/core"
	"github.com/google/uuid"
)

const requestIDHeader = "X-Request-Id"

type requestIDKey struct{}

// requestID is the id of the request that ctx belongs to, as the client sees it.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// handler is what surrounds every operation: the request's id, a 500 for a panic, and
// 404 and 405 in our own form. serves tells which of the mux's patterns to serve.
func (a *API) handler(serves func(pattern string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := uuid.NewString()
		if gateway, ok := core.GetAPIGatewayV2ContextFromContext(r.Context()); ok && gateway.RequestID != "" {
			id = gateway.RequestID
		}
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
		w.Header().Set(requestIDHeader, id)
		defer func() {
			if cause := recover(); cause != nil {
				slog.ErrorContext(r.Context(), "panic", "request_id", id, "error", fmt.Sprint(cause), "stack", string(debug.Stack()))
				writeProblem(w, problem(http.StatusInternalServerError, "the service failed to answer; the cause is in its log under this X-Request-Id"))
			}
		}()
		a.route(w, r, serves)
	})
}

func (a *API) route(w http.ResponseWriter, r *http.Request, serves func(pattern string) bool) {
	// The mux would redirect a path such as //v1 to its clean form, in HTML.
	if path.Clean(r.URL.Path) != r.URL.Path {
		writeProblem(w, problem(http.StatusNotFound, "there is no such path"))
		return
	}
	handler, pattern := a.mux.Handler(r)
	if pattern != "" && serves(pattern) {
		handler.ServeHTTP(w, r)
		return
	}
	allow := ""
	if pattern != "" {
		allow, _, _ = strings.Cut(pattern, " ")
	} else {
		mux := refusal{header: http.Header{}}
		handler.ServeHTTP(&mux, r)
		allow = mux.header.Get("Allow")
	}
	if allow == "" {
		writeProblem(w, problem(http.StatusNotFound, "there is no such path"))
		return
	}
	w.Header().Set("Allow", allow)
	writeProblem(w, problem(http.StatusMethodNotAllowed, "this path answers "+allow))
}

// refusal takes the mux's own answer to a request that it has no handler for.
type refusal struct{ header http.Header }

func (r *refusal) Header() http.Header         { return r.header }
func (r *refusal) Write(b []byte) (int, error) { return len(b), nil }
func (r *refusal) WriteHeader(int)             {}
