package settings

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/httpapi"
)

// APIKey is a key as it is shown: without its secret, of which there is but a hash.
type APIKey struct {
	APIKeyID   conversation.APIKeyID `json:"api_key_id"`
	Label      string                `json:"label"`
	Blocks     conversation.Blocks   `json:"blocks" doc:"The data blocks that the key may read."`
	PlaceCalls bool                  `json:"place_calls" doc:"Whether the key may place calls."`
	CreatedAt  conversation.Time     `json:"created_at"`
	LastUsedAt conversation.Time     `json:"last_used_at,omitzero" doc:"Within an hour; absent while the key has not been used."`
	RevokedAt  conversation.Time     `json:"revoked_at,omitzero" doc:"Absent while the key works."`
}

func showAPIKey(k conversation.APIKey) APIKey {
	return APIKey{k.APIKeyID, k.Label, append(conversation.Blocks{}, k.Blocks...), k.PlaceCalls, k.CreatedAt, k.LastUsedAt, k.RevokedAt}
}

type listAPIKeysRequest struct {
	httpapi.Strict
	httpapi.Cursor
	httpapi.PageSize
}

type listAPIKeysResponse struct {
	Body struct {
		APIKeys []httpapi.Resource[APIKey] `json:"api_keys"`
		httpapi.Paging
	}
}

func (s Settings) listAPIKeysRoute() httpapi.Route {
	return httpapi.Operation(row(http.MethodGet, "/api-keys", listWorkspaces...), huma.Operation{
		OperationID: "list-api-keys", Tags: tag,
		Summary:     "List API keys",
		Description: "Newest first, with those that are revoked. Secrets are never shown again.",
	}, s.listAPIKeys)
}

func (s Settings) listAPIKeys(ctx context.Context, in *listAPIKeysRequest) (*listAPIKeysResponse, error) {
	var out listAPIKeysResponse
	var err error
	out.Body.APIKeys, out.Body.Paging, err = httpapi.Answer(in.Cursor, in.Limit, func(p dynamo.PageRequest) (dynamo.Page[conversation.APIKey], error) {
		return s.Store.APIKeys(ctx, httpapi.UserOf(ctx).WorkspaceID, p)
	}, showAPIKey)
	return &out, err
}

type createAPIKeyRequest struct {
	httpapi.Strict
	httpapi.StrictBody
	Body struct {
		_          struct{} `additionalProperties:"false"`
		Label      string   `json:"label" minLength:"1" maxLength:"100" doc:"What the key is for."`
		Blocks     *[]block `json:"blocks,omitempty" doc:"The data blocks that the key may read. Without it: the usual ones. call is always among them."`
		PlaceCalls bool     `json:"place_calls,omitempty" doc:"Whether the key may place calls; without it: no."`
	}
}

type createAPIKeyResponse struct {
	CacheControl string `header:"Cache-Control"`
	Body         struct {
		APIKey APIKey `json:"api_key"`
		Secret string `json:"secret" doc:"The key as it is sent in the header Authorization. It is shown this once."`
	}
}

func (s Settings) createAPIKeyRoute() httpapi.Route {
	return httpapi.Operation(row(http.MethodPost, "/api-keys", writeWorkspaces), huma.Operation{
		OperationID: "create-api-key", Tags: tag, DefaultStatus: http.StatusCreated, Errors: bodyErrors,
		Summary:     "Create an API key",
		Description: "The answer alone has the key itself. A key that was lost is revoked and replaced.",
	}, s.createAPIKey)
}

func (s Settings) createAPIKey(ctx context.Context, in *createAPIKeyRequest) (*createAPIKeyResponse, error) {
	k, text := newAPIKey(NewAPIKey{
		WorkspaceID: httpapi.UserOf(ctx).WorkspaceID, Label: in.Body.Label,
		Blocks: blocksOf(in.Body.Blocks), PlaceCalls: in.Body.PlaceCalls,
	}, s.Now())
	shown := showAPIKey(k)
	entry, err := s.entry(ctx, conversation.APIKeyCreated, string(k.APIKeyID), nil, shown)
	if err != nil {
		return nil, err
	}
	if err := s.Store.InsertAPIKey(ctx, k, entry); err != nil {
		return nil, err
	}
	out := createAPIKeyResponse{CacheControl: "no-store"}
	out.Body.APIKey, out.Body.Secret = shown, text
	return &out, nil
}

type updateAPIKeyRequest struct {
	httpapi.Strict
	httpapi.StrictBody
	APIKeyID httpapi.UUID `path:"api_key_id"`
	Body     struct {
		_          struct{} `additionalProperties:"false"`
		Label      *string  `json:"label,omitempty" minLength:"1" maxLength:"100"`
		Blocks     *[]block `json:"blocks,omitempty"`
		PlaceCalls *bool    `json:"place_calls,omitempty"`
	}
}

type updateAPIKeyResponse struct {
	Body struct {
		APIKey APIKey `json:"api_key"`
	}
}

func (s Settings) updateAPIKeyRoute() httpapi.Route {
	return httpapi.Operation(row(http.MethodPatch, "/api-keys/{api_key_id}", getWorkspaces, writeWorkspaces), huma.Operation{
		OperationID: "update-api-key", Tags: tag, Errors: append([]int{http.StatusConflict}, bodyErrors...),
		Summary:     "Change what an API key may do",
		Description: "What isn't given stays. It takes effect within 30 seconds. 409 for a key that is revoked.",
	}, s.updateAPIKey)
}

func (s Settings) updateAPIKey(ctx context.Context, in *updateAPIKeyRequest) (*updateAPIKeyResponse, error) {
	changed, err := changeAPIKey(ctx, s.Store, httpapi.UserOf(ctx), apiKeyID(in.APIKeyID), s.Now(), conversation.APIKeyUpdated, func(k *conversation.APIKey) error {
		if !k.RevokedAt.IsZero() {
			return httpapi.Refuse(http.StatusConflict, "api_key_revoked", "the API key is revoked")
		}
		if in.Body.Label != nil {
			k.Label = *in.Body.Label
		}
		if in.Body.Blocks != nil {
			k.Blocks = blocksOf(in.Body.Blocks)
		}
		if in.Body.PlaceCalls != nil {
			k.PlaceCalls = *in.Body.PlaceCalls
		}
		return nil
	})
	var out updateAPIKeyResponse
	out.Body.APIKey = showAPIKey(changed)
	return &out, err
}

type revokeAPIKeyRequest struct {
	httpapi.Strict
	APIKeyID httpapi.UUID `path:"api_key_id"`
}

func (s Settings) revokeAPIKeyRoute() httpapi.Route {
	return httpapi.Operation(row(http.MethodDelete, "/api-keys/{api_key_id}", getWorkspaces, writeWorkspaces), huma.Operation{
		OperationID: "revoke-api-key", Tags: tag, DefaultStatus: http.StatusNoContent,
		Summary:     "Revoke an API key",
		Description: "For good, and within 30 seconds. The key stays in the list. One that is revoked already stays as it is.",
	}, s.revokeAPIKey)
}

func (s Settings) revokeAPIKey(ctx context.Context, in *revokeAPIKeyRequest) (*struct{}, error) {
	return nil, revokeAPIKey(ctx, s.Store, httpapi.UserOf(ctx), apiKeyID(in.APIKeyID), s.Now())
}

func apiKeyID(sent httpapi.UUID) conversation.APIKeyID {
	return conversation.APIKeyID(strings.ToLower(string(sent)))
}
