package e2e

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider"
	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider/types"

	"parley/shared/conversation"
	"parley/shared/httpapi"
	"parley/shared/settings"
)

// A user has signed in to the settings of a workspace.
type user struct {
	ws     conversation.WorkspaceID
	id     string // as the user pool names them
	token  string
	access string // their other token, which says nothing of a workspace
}

// newUser makes a user of the workspace, as an administrator does, and signs them in.
func newUser(t testing.TB, ws conversation.WorkspaceID) user {
	t.Helper()
	s := deployed(t)
	pool := cognitoidentityprovider.NewFromConfig(s.aws)
	email, password := conversation.NewID()+"@example.com", "aA1-"+rand.Text()
	made, err := pool.AdminCreateUser(t.Context(), &cognitoidentityprovider.AdminCreateUserInput{
		UserPoolId: &s.userPool, Username: &email, MessageAction: types.MessageActionTypeSuppress,
		UserAttributes: []types.AttributeType{
			{Name: aws.String("email"), Value: &email},
			{Name: aws.String("custom:" + httpapi.WorkspaceAttribute), Value: aws.String(string(ws))},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = pool.AdminSetUserPassword(t.Context(), &cognitoidentityprovider.AdminSetUserPasswordInput{
		UserPoolId: &s.userPool, Username: &email, Password: &password, Permanent: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	in, err := pool.InitiateAuth(t.Context(), &cognitoidentityprovider.InitiateAuthInput{
		ClientId: &s.userPoolClient, AuthFlow: types.AuthFlowTypeUserPasswordAuth,
		AuthParameters: map[string]string{"USERNAME": email, "PASSWORD": password},
	})
	if err != nil {
		t.Fatal(err)
	}
	u := user{ws: ws, token: aws.ToString(in.AuthenticationResult.IdToken), access: aws.ToString(in.AuthenticationResult.AccessToken)}
	for _, attribute := range made.User.Attributes {
		if aws.ToString(attribute.Name) == "sub" {
			u.id = aws.ToString(attribute.Value)
		}
	}
	return u
}

// anything is a JSON object.
type anything = map[string]any

// ask sends a request below /settings, its body as JSON. It may be called from any
// goroutine.
func (u user) ask(t testing.TB, method, target string, body any) answer {
	t.Helper()
	header := http.Header{"Authorization": {"Bearer " + u.token}}
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			t.Error(err)
		}
		header.Set("Content-Type", "application/json")
	}
	return send(t, usualClient, method, "/settings"+target, header, text)
}

// Bodies of answers.
type (
	oneKey struct {
		APIKey settings.APIKey `json:"api_key"`
		Secret string
	}
	oneEndpoint struct {
		settings.WebhookEndpoint `json:"webhook_endpoint"`
		Secret                   string
	}
	oneDelivery  struct{ Delivery settings.Delivery }
	deliveryList struct {
		Deliveries []settings.Delivery
		HasMore    bool `json:"has_more"`
	}
)

// createEndpoint makes an endpoint for the events at the URL, which more may add to.
func (u user) createEndpoint(t testing.TB, url string, events []conversation.EventName, more anything) oneEndpoint {
	t.Helper()
	body := anything{"url": url, "events": append([]conversation.EventName{}, events...)}
	for name, value := range more {
		body[name] = value
	}
	return want[oneEndpoint](t, u.ask(t, http.MethodPost, "/webhook-endpoints", body), http.StatusCreated)
}

// sendTest has a webhook.test sent to an endpoint.
func (u user) sendTest(t testing.TB, e oneEndpoint) settings.Delivery {
	t.Helper()
	got := u.ask(t, http.MethodPost, "/webhook-endpoints/"+string(e.EndpointID)+"/test", nil)
	return want[oneDelivery](t, got, http.StatusAccepted).Delivery
}

// delivery reads one of the log.
func (u user) delivery(t testing.TB, id conversation.DeliveryID) settings.Delivery {
	t.Helper()
	return want[oneDelivery](t, u.ask(t, http.MethodGet, "/deliveries/"+string(id), nil), http.StatusOK).Delivery
}

// deliveries are those of the log that the query asks for, newest first.
func (u user) deliveries(t testing.TB, query string) []settings.Delivery {
	t.Helper()
	got := want[deliveryList](t, u.ask(t, http.MethodGet, "/deliveries?limit=100&"+query, nil), http.StatusOK)
	if got.HasMore {
		t.Errorf("deliveries?%s: more than 100", query)
	}
	return got.Deliveries
}
