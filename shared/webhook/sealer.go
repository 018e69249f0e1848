package webhook

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/kms"

	"parley/shared/conversation"
)

// Sealer seals the secrets of endpoints with a KMS key. What it seals is bound to its
// endpoint: copied to another one, it can't be opened.
type Sealer struct {
	client *kms.Client
	keyID  string

	mu     sync.Mutex
	opened map[string]string // by endpoint and ciphertext
}

// maxOpened bounds what a Sealer remembers.
const maxOpened = 10_000

// NewSealer makes a Sealer with a key: its id, ARN or alias. Opening doesn't use it, as a
// ciphertext names its key.
func NewSealer(client *kms.Client, keyID string) *Sealer {
	return &Sealer{client: client, keyID: keyID, opened: map[string]string{}}
}

// Seal encrypts a secret of an endpoint, of at most 4,096 bytes.
func (s *Sealer) Seal(ctx context.Context, e conversation.WebhookEndpoint, secret string) ([]byte, error) {
	out, err := s.client.Encrypt(ctx, &kms.EncryptInput{
		KeyId: &s.keyID, Plaintext: []byte(secret), EncryptionContext: boundTo(e),
	})
	if err != nil {
		return nil, fmt.Errorf("seal a secret of webhook endpoint %s: %w", e.EndpointID, err)
	}
	return out.CiphertextBlob, nil
}

// Open decrypts what Seal made for the same endpoint. It asks KMS once for each.
func (s *Sealer) Open(ctx context.Context, e conversation.WebhookEndpoint, sealed []byte) (string, error) {
	name := string(e.EndpointID) + "\n" + string(sealed)
	s.mu.Lock()
	secret, ok := s.opened[name]
	s.mu.Unlock()
	if ok {
		return secret, nil
	}
	out, err := s.client.Decrypt(ctx, &kms.DecryptInput{CiphertextBlob: sealed, EncryptionContext: boundTo(e)})
	if err != nil {
		return "", fmt.Errorf("open a secret of webhook endpoint %s: %w", e.EndpointID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.opened) >= maxOpened {
		clear(s.opened)
	}
	s.opened[name] = string(out.Plaintext)
	return string(out.Plaintext), nil
}

func boundTo(e conversation.WebhookEndpoint) map[string]string {
	return map[string]string{"workspace_id": string(e.WorkspaceID), "endpoint_id": string(e.EndpointID)}
}
