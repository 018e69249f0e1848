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
	// The mux takes a HEAD for a GET; the gateway doesn't, so no endpoint answers it.
	if _, pattern := a.mux.Handler(r); pattern != "" && serves(pattern) && r.Method != http.MethodHead {
		a.mux.ServeHTTP(w, asJSON(r)) // not the handler: it is the mux that reads the path's parameters
		return
	}
	allow := a.methods(r)
	if allow == "" {
		writeProblem(w, problem(http.StatusNotFound, "there is no such path"))
		return
	}
	w.Header().Set("Allow", allow)
	writeProblem(w, problem(http.StatusMethodNotAllowed, "this path answers "+allow))
}

// methods lists the methods of a path as the mux does, asked for one that no path has.
func (a *API) methods(r *http.Request) string {
	probe := r.Clone(r.Context())
	probe.Method = "NONE"
	handler, _ := a.mux.Handler(probe)
	refused := refusal{header: http.Header{}}
	handler.ServeHTTP(&refused, probe)
	return strings.Replace(refused.header.Get("Allow"), "GET, HEAD", "GET", 1)
}

// refusal takes the mux's own answer to a request that it has no handler for.
type refusal struct{ header http.Header }

func (r *refusal) Header() http.Header         { return r.header }
func (r *refusal) Write(b []byte) (int, error) { return len(b), nil }
func (r *refusal) WriteHeader(int)             {}
