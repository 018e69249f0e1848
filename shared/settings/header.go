package settings

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/sync/errgroup"

	"parley/shared/conversation"
	"parley/shared/httpapi"
	"parley/shared/webhook"
)

// Headers are custom headers to set. One that is null is removed, where there is one to
// remove; values are never shown again.
type Headers map[string]*string

func (Headers) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeObject,
		Description: "Headers to send with every delivery, such as a secret of yours in X-Api-Key. Values are never shown again. " +
			"Where an endpoint is changed, headers that aren't given stay, and null removes one.",
		AdditionalProperties: &huma.Schema{Type: huma.TypeString, Nullable: true},
		Extensions:           map[string]any{"maxProperties": conversation.MaxWebhookHeaders},
	}
}

// problems names everything that is wrong with the headers.
func (h Headers) problems() []error {
	given := map[string]string{}
	for name, value := range h {
		if value != nil {
			given[name] = *value
		}
	}
	var problems []error
	for _, problem := range webhook.CheckHeaders(given) {
		problems = append(problems, errors.New(problem))
	}
	return problems
}

// setsAny tells whether a value is among them.
func (h Headers) setsAny() bool {
	for _, value := range h {
		if value != nil {
			return true
		}
	}
	return false
}

// headers are those that the endpoint has after a change, sorted by name. A header that is
// given replaces the one of its name in any spelling.
func (s Settings) headers(ctx context.Context, e conversation.WebhookEndpoint, given Headers) ([]conversation.SealedHeader, error) {
	replaced := map[string]bool{}
	var sealed []conversation.SealedHeader
	for name, value := range given {
		replaced[strings.ToLower(name)] = true
		if value != nil {
			sealed = append(sealed, conversation.SealedHeader{Name: name})
		}
	}
	kept := slices.DeleteFunc(slices.Clone(e.Headers), func(h conversation.SealedHeader) bool { return replaced[strings.ToLower(h.Name)] })
	if len(kept)+len(sealed) > conversation.MaxWebhookHeaders {
		return nil, httpapi.Refuse(http.StatusBadRequest, "invalid_request", fmt.Sprintf("headers must be at most %d", conversation.MaxWebhookHeaders))
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range sealed {
		group.Go(func() (err error) {
			sealed[i].SealedValue, err = s.Sealer.Seal(ctx, e, *given[sealed[i].Name])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := append(kept, sealed...)
	slices.SortFunc(all, func(a, b conversation.SealedHeader) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
