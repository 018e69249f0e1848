// Package httpapi is the REST API (spec: Endpoints): its routes, requests, responses,
// authentication, paging, limits, problem bodies, OpenAPI document, and the one place
// where a Lambda function hands an event to it.
package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"parley/shared/dynamo"
)

// API answers routes with what the store holds.
type API struct {
	huma    huma.API
	mux     *http.ServeMux
	store   *dynamo.Store
	calling Calling
	baseURL string // public address, without a trailing slash
	now     func() time.Time
	keys    keyring
	limits  limiter
}

// Service is what the API stands on.
type Service struct {
	Store   *dynamo.Store
	BaseURL string  // the API's public address, without a trailing slash
	Calling Calling // for CreateCall alone
}

// Handler serves the routes, and 404 and 405 beside them.
func Handler(service Service, routes ...Route) http.Handler {
	return newAPI(service, routes).handler(func(string) bool { return true })
}

// DefaultHandler serves GET /open-api, and answers everything that the gateway found no
// route for. It knows all routes, but serves no other: a HEAD of one of them is a 405.
func DefaultHandler(service Service, routes []Route) http.Handler {
	own := GetOpenAPI.Method + " " + GetOpenAPI.Path
	return newAPI(service, routes).handler(func(pattern string) bool { return pattern == own })
}

func newAPI(service Service, routes []Route) *API {
	configureHuma()
	mux := http.NewServeMux()
	a := &API{
		huma: humago.New(mux, document(service.BaseURL)), mux: mux,
		store: service.Store, calling: service.Calling, baseURL: service.BaseURL, now: time.Now,
	}
	a.keys = keyring{store: a.store, now: a.now}
	a.limits = limiter{store: a.store, now: a.now}
	for _, route := range routes {
		if route.register == nil { // somebody else's, known so that its other methods are a 405
			mux.Handle(route.Method+" "+route.Path, http.NotFoundHandler())
			continue
		}
		route.register(a, route)
	}
	return a
}

// configureHuma sets the library's package variables, which are its only configuration
// of these matters.
var configureHuma = sync.OnceFunc(func() {
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		return newProblem(context.Background(), status, message, errs)
	}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
		return newProblem(ctx.Context(), status, message, errs)
	}
	huma.ValidateStrictCasing = true
	huma.DefaultArrayNullable = false
})

// operation registers a route's handler with what every route has: its caller is known
// and counted before anything of the request is read.
func operation[I, O any](a *API, route Route, described huma.Operation, handle func(context.Context, *I) (*O, error)) {
	described.OperationID = cmp.Or(described.OperationID, route.Function)
	described.Method, described.Path = route.Method, route.Path
	described.Security = []map[string][]string{{bearer: {}}}
	switch route.Auth {
	case ByUser:
		described.Security = []map[string][]string{{idToken: {}}}
		described.Middlewares = append(huma.Middlewares{a.admit}, described.Middlewares...)
	case ByPlacingKey:
		described.Middlewares = huma.Middlewares{a.authenticate, a.mayPlaceCalls, a.limit(route), a.addCalling}
	default:
		described.Middlewares = huma.Middlewares{a.authenticate, a.limit(route)}
	}
	describeProblems(&described, route.Limit)
	huma.Register(a.huma, described, handle)
}
