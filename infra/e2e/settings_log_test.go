package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// logs asks CloudWatch Logs for something. Its client is no part of the module, as nothing
// else reads logs.
func logs(t *testing.T, action string, request anything, into any) {
	t.Helper()
	s := deployed(t)
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.AWSEndpointURL, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "Logs_20140328."+action)
	credentials, err := s.aws.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(t.Context(), credentials, req, hex.EncodeToString(hash[:]), "logs", s.aws.Region, time.Now()); err != nil {
		t.Fatal(err)
	}
	res, err := usualClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v: %.400s", action, res.StatusCode, err, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v: %.400s", action, err, text)
	}
}

// logged are the messages of every log group since a moment.
func logged(t *testing.T, since time.Time) map[string][]string {
	t.Helper()
	var found struct {
		LogGroups []struct{ LogGroupName string }
		NextToken string
	}
	logs(t, "DescribeLogGroups", anything{}, &found)
	if found.NextToken != "" {
		t.Errorf("there are more log groups than these: %v", found.LogGroups)
	}
	lines := map[string][]string{}
	for _, group := range found.LogGroups {
		request := anything{"logGroupName": group.LogGroupName, "startTime": since.UnixMilli()}
		for {
			var page struct {
				Events    []struct{ Message string }
				NextToken string
			}
			logs(t, "FilterLogEvents", request, &page)
			for _, event := range page.Events {
				lines[group.LogGroupName] = append(lines[group.LogGroupName], event.Message)
			}
			if page.NextToken == "" {
				break
			}
			request["nextToken"] = page.NextToken
		}
	}
	return lines
}
