package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider"
	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider/types"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/dynamo/dynamotest"
	"parley/shared/emulator"
)

// newUserPool makes a pool as infra does, and the id of a client that signs users in.
func newUserPool(t *testing.T) (userPool, *string) {
	t.Helper()
	client := cognitoidentityprovider.NewFromConfig(emulator.Config(t))
	pool, err := client.CreateUserPool(t.Context(), &cognitoidentityprovider.CreateUserPoolInput{
		PoolName: aws.String(conversation.NewID()), UsernameAttributes: []types.UsernameAttributeType{types.UsernameAttributeTypeEmail},
		Schema: []types.SchemaAttributeType{{Name: aws.String("workspace_id"), AttributeDataType: types.AttributeDataTypeString}},
	})
	if err != nil {
		t.Fatal(err)
	}
	made, err := client.CreateUserPoolClient(t.Context(), &cognitoidentityprovider.CreateUserPoolClientInput{
		UserPoolId: pool.UserPool.Id, ClientName: aws.String("test"), ExplicitAuthFlows: []types.ExplicitAuthFlowsType{types.ExplicitAuthFlowsTypeAllowUserPasswordAuth},
	})
	if err != nil {
		t.Fatal(err)
	}
	return userPool{client, *pool.UserPool.Id}, made.UserPoolClient.ClientId
}

func TestCreateUser(t *testing.T) {
	store := dynamotest.Store(t)
	pool, clientID := newUserPool(t)
	ws := conversation.WorkspaceID(conversation.NewID())
	if err := store.Define(t.Context(), dynamo.Definition{}, dynamo.Definition{Workspace: conversation.Workspace{WorkspaceID: ws}}, "0"); err != nil {
		t.Fatal(err)
	}
	signIn := func(email, password string) (*cognitoidentityprovider.InitiateAuthOutput, error) {
		return pool.client.InitiateAuth(t.Context(), &cognitoidentityprovider.InitiateAuthInput{
			ClientId: clientID, AuthFlow: types.AuthFlowTypeUserPasswordAuth, AuthParameters: map[string]string{"USERNAME": email, "PASSWORD": password},
		})
	}

	var out bytes.Buffer
	if err := createUser(t.Context(), store, pool, newUser{ws, "ada@example.com", true}, &out); err != nil {
		t.Fatal(err)
	}
	signed, err := signIn("ada@example.com", strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	text, err := base64.RawURLEncoding.DecodeString(strings.Split(aws.ToString(signed.AuthenticationResult.IdToken), ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(text, &claims); err != nil || claims["custom:workspace_id"] != string(ws) || claims["token_use"] != "id" || claims["sub"] == "" {
		t.Errorf("claims %v, %v; want an ID token of the workspace", claims, err)
	}

	out.Reset()
	if err := createUser(t.Context(), store, pool, newUser{ws, "ada@example.com", true}, &out); err == nil || !strings.Contains(err.Error(), "already") || out.Len() > 0 {
		t.Errorf("the same user again: %v, printed %q", err, out.String())
	}
	if err := createUser(t.Context(), store, pool, newUser{ws, "bob@example.com", false}, &out); err != nil {
		t.Fatal(err)
	}
	if signed, err := signIn("bob@example.com", strings.TrimSpace(out.String())); err != nil || signed.ChallengeName != types.ChallengeNameTypeNewPasswordRequired {
		t.Errorf("signed in by a temporary password: %+v, %v; want to be asked for a new one", signed, err)
	}
	nobody := conversation.WorkspaceID(conversation.NewID())
	if err := createUser(t.Context(), store, pool, newUser{nobody, "eve@example.com", true}, &out); err == nil || !strings.Contains(err.Error(), string(nobody)) {
		t.Errorf("a user of no workspace: %v", err)
	}
}

func TestNewPassword(t *testing.T) {
	a, b := newPassword(), newPassword()
	if a == b || len(a) < 12 {
		t.Errorf("passwords %s and %s", a, b)
	}
}
