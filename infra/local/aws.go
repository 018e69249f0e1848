package main

import (
	"context"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"parley/shared/config"
)

// Where emulators of AWS put everybody. The key is no secret, and goes to every endpoint,
// so that nobody's own goes to a wrong one.
const (
	account   = "000000000000"
	region    = "us-east-1"
	accessKey = "test"
)

// forgetAWS removes from the environment what could lead this program, or one that it
// runs, to somebody's AWS account.
func forgetAWS() {
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "AWS_") {
			os.Unsetenv(name)
		}
	}
}

// aws is the configuration of this program's own AWS clients.
func (l *local) aws(ctx context.Context) (aws.Config, error) {
	return config.AWS(ctx,
		awsconfig.WithRegion(region),
		awsconfig.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(accessKey, accessKey, "")),
		awsconfig.WithBaseEndpoint(l.stack.AWSEndpointURL),
		awsconfig.WithSharedConfigFiles(nil),
		awsconfig.WithSharedCredentialsFiles(nil))
}

// awsEnviron is the same for the programs that it runs.
func (l *local) awsEnviron() []string {
	return []string{
		"AWS_ENDPOINT_URL=" + l.stack.AWSEndpointURL,
		"AWS_ACCESS_KEY_ID=" + accessKey,
		"AWS_SECRET_ACCESS_KEY=" + accessKey,
		"AWS_REGION=" + region,
		"AWS_CONFIG_FILE=" + os.DevNull,
		"AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
	}
}
