package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"parley/shared/conversation"
)

// Problem is the body of every answer that isn't a success (spec: Errors). Every problem
// of a request is named at once. It says what the client can mend; causes go to the log.
type Problem struct {
	Detail []string `json:"detail" doc:"Every problem of the request."`
	Code   string   `json:"code" doc:"What kind of problem it is, in snake_case."`
	status int
}

// Codes of problems that are told by their status alone.
var codes = map[int]string{
	http.StatusBadRequest:            "invalid_request",
	http.StatusUnauthorized:          "unauthorized",
	http.StatusForbidden:             "forbidden",
	http.StatusNotFound:              "not_found",
	http.StatusMethodNotAllowed:      "method_not_allowed",
	http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests:       "rate_limit_exceeded",
	http.StatusInternalServerError:   "internal_error",
}

func problem(status int, details ...string) *Problem {
	return &Problem{Detail: details, Code: codes[status], status: status}
}

// coded is a problem that its status alone doesn't tell.
func coded(status int, code, detail string) *Problem {
	return &Problem{Detail: []string{detail}, Code: code, status: status}
}

// Refuse answers with a problem that its status alone doesn't tell.
func Refuse(status int, code, detail string) error { return coded(status, code, detail) }

func (p *Problem) Error() string             { return strings.Join(p.Detail, "; ") }
func (p *Problem) GetStatus() int            { return p.status }
func (p *Problem) ContentType(string) string { return "application/json" }

// newProblem is where every error becomes an answer: the library's own, whose 422 is a
// 400 here, and those that handlers return.
func newProblem(ctx context.Context, status int, message string, errs []error) *Problem {
	err := errors.Join(errs...)
	switch {
	case errors.Is(err, conversation.ErrNotFound):
		return problem(http.StatusNotFound, "there is no such record")
	case status >= 500:
		slog.ErrorContext(ctx, message, "request_id", requestID(ctx), "error", err)
		return problem(http.StatusInternalServerError, "the service failed to answer; the cause is in its log under this X-Request-Id")
	case status == http.StatusUnprocessableEntity || status == http.StatusUnsupportedMediaType:
		status = http.StatusBadRequest
	case status == http.StatusRequestEntityTooLarge:
		return problem(status, fmt.Sprintf("the body is too large: at most %d bytes are allowed", maxBodyBytes))
	}
	if len(errs) == 0 {
		return problem(status, message)
	}
	details := make([]string, len(errs))
	for i, err := range errs {
		details[i] = detail(err)
	}
	slices.Sort(details) // the library's order is random
	return problem(status, bounded(slices.Compact(details))...)
}

// What an answer has room for: a request can have more to be told than an answer may hold.
const (
	maxDetail  = 1 << 10 // bytes
	maxDetails = 1000
)

// bounded cuts details that are too long or too many, and says so.
func bounded(details []string) []string {
	for i, text := range details {
		if len(text) > maxDetail {
			details[i] = strings.ToValidUTF8(text[:maxDetail], "") + "…"
		}
	}
	if more := len(details) - maxDetails; more > 0 {
		details = append(details[:maxDetails], fmt.Sprintf("and %d more problems", more))
	}
	return details
}

// detail names the parameter or field as the client knows it: "limit", not "query.limit".
func detail(err error) string {
	located := new(huma.ErrorDetail)
	if !errors.As(err, &located) {
		return err.Error()
	}
	if _, field, ok := strings.Cut(located.Location, "."); ok {
		return field + ": " + located.Message
	}
	if located.Message == validation.MsgExpectedObject {
		return "the body must be a JSON object"
	}
	return located.Message
}

// writeProblem answers outside of the library.
func writeProblem(w http.ResponseWriter, p *Problem) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(p.status)
	_ = json.NewEncoder(w).Encode(p) // the client is gone if this fails
}
