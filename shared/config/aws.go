package config

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

// AWS loads the configuration of AWS clients as the SDK does by default.
func AWS(ctx context.Context, options ...func(*awsconfig.LoadOptions) error) (aws.Config, error) {
	cfg, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("load the AWS configuration: %w", err)
	}
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = awshttp.NewBuildableClient()
	}
	cfg.HTTPClient = plainBodies{cfg.HTTPClient}
	return cfg, nil
}

// MustAWS is AWS with defaults; it ends the process if that fails.
func MustAWS() aws.Config {
	cfg, err := AWS(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	return cfg
}

// MustReadSecret reads a secret's value; it ends the process if that fails.
func MustReadSecret(cfg aws.Config, name string) []byte {
	out, err := secretsmanager.NewFromConfig(cfg).GetSecretValue(context.Background(), &secretsmanager.GetSecretValueInput{SecretId: &name})
	if err != nil {
		log.Fatalf("read secret %s: %v", name, err)
	}
	return []byte(aws.ToString(out.SecretString))
}

// plainBodies hides WriteTo of the SDK's request bodies. The SDK closes a body as soon as
// the answer is there. A closed body's WriteTo fails with io.EOF, which net/http takes for
// a broken connection if it was just about to look for the body's end; the answer is
// then lost, and the SDK repeats a write that has already taken effect. Near servers, such
// as an emulator, answer fast enough for that.
type plainBodies struct{ aws.HTTPClient }

func (p plainBodies) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return p.HTTPClient.Do(r)
}
