package emulator

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"parley/shared/config"
)

// shared is the emulator of a test binary. Nobody closes it: it ends with the binary.
var shared = sync.OnceValues(func() (*Emulator, error) {
	return Start(context.Background(), Options{})
})

// Config is the configuration of AWS clients for a test. They talk to an emulator that
// all tests of the binary share, so each test makes tables and buckets of its own
// names. AWS_ENDPOINT_URL, when set, names another one to use, and
// AWS_ENDPOINT_URL_DYNAMODB another one for DynamoDB alone. With -short the test is
// skipped.
func Config(t testing.TB) aws.Config {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the emulator of the AWS APIs, which -short leaves out")
	}
	cfg, err := config.AWS(t.Context(),
		awsconfig.WithRegion("us-east-1"),
		awsconfig.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("test", "test", "")))
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("AWS_ENDPOINT_URL") == "" {
		emulator, err := shared()
		if err != nil {
			t.Fatal(err)
		}
		cfg.BaseEndpoint = aws.String(emulator.URL)
	}
	return cfg
}
