package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"parley/shared/conversation"
	"parley/shared/dynamo"
)

const bearer = "bearer" // the security scheme's name in the OpenAPI document

// keyTTL is how long a function trusts a key that it has seen. A key that was revoked or
// allowed less may be used that much longer.
const keyTTL = 30 * time.Second

type callerKey struct{}

// caller is the key of the request that ctx belongs to.
func caller(ctx context.Context) conversation.APIKey {
	key, _ := ctx.Value(callerKey{}).(conversation.APIKey)
	return key
}

// authenticate lets a request pass whose key is known, and answers 401 otherwise.
func (a *API) authenticate(ctx huma.Context, next func(huma.Context)) {
	key, ok, err := a.keys.find(ctx.Context(), ctx.Header("Authorization"))
	switch {
	case err != nil:
		_ = huma.WriteErr(a.huma, ctx, http.StatusInternalServerError, "authenticate", err)
	case !ok:
		ctx.SetHeader("WWW-Authenticate", "Bearer")
		_ = huma.WriteErr(a.huma, ctx, http.StatusUnauthorized, "the API key is missing or invalid: send the header Authorization: Bearer <API_KEY>")
	default:
		next(huma.WithValue(ctx, callerKey{}, key))
	}
}

// mayPlaceCalls lets a request pass whose key may place calls, by what the table says now.
func (a *API) mayPlaceCalls(ctx huma.Context, next func(huma.Context)) {
	key := caller(ctx.Context())
	if !key.PlaceCalls {
		var err error
		if key, err = a.store.APIKey(ctx.Context(), key.APIKeyID); err != nil {
			_ = huma.WriteErr(a.huma, ctx, http.StatusInternalServerError, "authenticate", err)
			return
		}
	}
	if !key.PlaceCalls {
		_ = huma.WriteErr(a.huma, ctx, http.StatusForbidden, "the API key may not place calls")
		return
	}
	next(ctx)
}

// keyring finds keys, and remembers those that it found for keyTTL. It never remembers
// that a key was refused.
type keyring struct {
	store *dynamo.Store
	now   func() time.Time

	mu    sync.Mutex
	known map[[sha256.Size]byte]knownKey
}

type knownKey struct {
	conversation.APIKey
	until time.Time
}

const maxKnownKeys = 1000

// find returns the key that an Authorization header carries. A header that is none at all
// takes the same steps as a key with a wrong secret, so the answer's time tells nothing.
func (k *keyring) find(ctx context.Context, header string) (conversation.APIKey, bool, error) {
	sum := sha256.Sum256([]byte(header))
	k.mu.Lock()
	known, ok := k.known[sum]
	k.mu.Unlock()
	if ok && k.now().Before(known.until) {
		return known.APIKey, true, nil
	}
	key, ok, err := k.read(ctx, header)
	if err != nil || !ok {
		return conversation.APIKey{}, false, err
	}
	if err := k.touch(ctx, key); err != nil {
		slog.ErrorContext(ctx, "touch API key", "request_id", requestID(ctx), "error", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil || len(k.known) >= maxKnownKeys {
		k.known = map[[sha256.Size]byte]knownKey{}
	}
	k.known[sum] = knownKey{key, k.now().Add(keyTTL)}
	return key, true, nil
}

// read asks the store, whatever the header is.
func (k *keyring) read(ctx context.Context, header string) (conversation.APIKey, bool, error) {
	scheme, token, _ := strings.Cut(header, " ")
	id, secret, ok := conversation.ParseAPIKey(strings.TrimSpace(token))
	if !ok {
		id = conversation.APIKeyID(uuid.Nil.String())
	}
	key, err := k.store.APIKey(ctx, id)
	if err != nil && !errors.Is(err, conversation.ErrNotFound) {
		return conversation.APIKey{}, false, err
	}
	same := subtle.ConstantTimeCompare([]byte(conversation.HashSecret(secret)), []byte(key.SecretHash)) == 1
	return key, same && ok && strings.EqualFold(scheme, "Bearer") && key.RevokedAt.IsZero(), nil
}

// touch notes that the key is in use, once an hour.
func (k *keyring) touch(ctx context.Context, key conversation.APIKey) error {
	if k.now().Sub(key.LastUsedAt.Time) < time.Hour {
		return nil
	}
	return k.store.TouchAPIKey(ctx, key.APIKeyID, k.now())
}

// blocks returns the blocks that a request asked for, or all that its key may read. One
// that the key may not read is a 403, by what the table says now.
func (a *API) blocks(ctx context.Context, wanted conversation.Blocks) (conversation.Blocks, error) {
	key := caller(ctx)
	if wanted == nil {
		return key.Blocks, nil
	}
	if len(wanted.Without(key.Blocks)) == 0 {
		return wanted, nil
	}
	key, err := a.store.APIKey(ctx, key.APIKeyID)
	if err != nil {
		return nil, err
	}
	if denied := wanted.Without(key.Blocks); len(denied) > 0 {
		return nil, problem(http.StatusForbidden, "the API key may not read the block "+denied.String())
	}
	return wanted, nil
}
