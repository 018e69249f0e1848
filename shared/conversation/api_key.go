package conversation

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
)

// APIKey is what the service keeps of a key (spec: Authentication). The secret itself is
// shown once, when the key is made; SecretHash is what HashSecret makes of it.
type APIKey struct {
	APIKeyID    APIKeyID    `json:"api_key_id"`
	WorkspaceID WorkspaceID `json:"workspace_id"`
	SecretHash  string      `json:"secret_hash"`
	Label       string      `json:"label"`
	Blocks      Blocks      `json:"blocks"`
	PlaceCalls  bool        `json:"place_calls"`
	CreatedAt   Time        `json:"created_at"`
	LastUsedAt  Time        `json:"last_used_at,omitzero"`
	RevokedAt   Time        `json:"revoked_at,omitzero"`
}

// apiKeyPrefix lets a key be recognised where it should not be, in a log or a commit.
const apiKeyPrefix = "parley_live_"

// Text is the key as a customer sends it: the prefix, the id with its hyphens, and the
// secret, parted by underscores, of which neither id nor secret has any.
func (k APIKey) Text(secret string) string {
	return apiKeyPrefix + string(k.APIKeyID) + "_" + secret
}

// ParseAPIKey takes a key's Text apart. It is false for anything that Text can't have
// written, so an id that it returns is a UUID in its canonical form.
func ParseAPIKey(text string) (id APIKeyID, secret string, ok bool) {
	rest, ok := strings.CutPrefix(text, apiKeyPrefix)
	if !ok {
		return "", "", false
	}
	name, secret, _ := strings.Cut(rest, "_")
	parsed, err := uuid.Parse(name)
	if err != nil || parsed.String() != name || secret == "" || strings.Contains(secret, "_") {
		return "", "", false
	}
	return APIKeyID(name), secret, true
}

// HashSecret is the SHA-256 of a secret in lower-case hex. A secret has 256 random bits,
// so a slow hash would protect nothing more.
func HashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
