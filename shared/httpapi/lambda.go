package httpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"

	"parley/shared/config"
	"parley/shared/dynamo"
)

// Start serves one route as a Lambda function behind an HTTP API (payload format 2.0).
func Start(cfg config.Config, route Route) {
	lambda.Start(Lambda(Handler(mustOpen(cfg), route)))
}

// StartCalling serves a route that places calls as a Lambda function.
func StartCalling(cfg config.Config, route Route, calling Calling) {
	service := mustOpen(cfg)
	service.Calling = calling
	lambda.Start(Lambda(Handler(service, route)))
}

// StartAll serves several routes as one Lambda function.
func StartAll(cfg config.Config, routes []Route) {
	lambda.Start(Lambda(Handler(Service{BaseURL: cfg.BaseURL}, routes...)))
}

// StartDefault serves GET /open-api, and 404 and 405, as a Lambda function.
func StartDefault(cfg config.Config, routes []Route) {
	lambda.Start(Lambda(DefaultHandler(mustOpen(cfg), routes)))
}

func mustOpen(cfg config.Config) Service {
	return Service{Store: dynamo.New(config.MustAWS(), cfg), BaseURL: cfg.BaseURL}
}

type (
	request  = events.APIGatewayV2HTTPRequest
	response = events.APIGatewayV2HTTPResponse
)

type eventHeadersKey struct{}

// answerTime is what a function keeps of its time to answer in. At the end of its time
// Lambda ends it, and the gateway answers in words of its own.
const answerTime = 500 * time.Millisecond

// Lambda makes a handler answer the gateway's events.
func Lambda(handler http.Handler) func(context.Context, request) (response, error) {
	adapter := httpadapter.NewV2(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The adapter splits every header at its commas; the event has them as sent.
		for name, value := range r.Context().Value(eventHeadersKey{}).(map[string]string) {
			r.Header.Set(name, value)
		}
		handler.ServeHTTP(w, r)
	}))
	return func(ctx context.Context, event request) (response, error) {
		if deadline, ok := ctx.Deadline(); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, deadline.Add(-answerTime))
			defer cancel()
		}
		ctx = context.WithValue(ctx, eventHeadersKey{}, event.Headers)
		answer, err := adapter.ProxyWithContext(ctx, event)
		if err != nil { // a path or a body that is no such thing
			slog.InfoContext(ctx, "unreadable event", "request_id", event.RequestContext.RequestID, "error", err)
			return unreadable(event.RequestContext.RequestID), nil
		}
		if event.RequestContext.HTTP.Method == http.MethodHead {
			answer.Body = ""
		}
		return answer, nil
	}
}

func unreadable(requestID string) response {
	body, _ := json.Marshal(problem(http.StatusBadRequest, "the request's path or body can't be read"))
	return response{
		StatusCode: http.StatusBadRequest,
		Headers:    map[string]string{"Content-Type": "application/json", requestIDHeader: requestID},
		Body:       string(body),
	}
}
