package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider"
	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider/types"

	"parley/shared/conversation"
)

// settingsAccess is what stack.json says of Settings → Developers.
type settingsAccess struct {
	BaseURL             string `json:"base_url"`
	Token               string `json:"token"`
	OtherWorkspaceToken string `json:"other_workspace_token"`
}

// tokenHours is how long the tokens work: as the stack says.
const tokenHours = 8

// signIn makes a user for each of the demo's workspaces and signs them in.
func (l *local) signIn(ctx context.Context) error {
	l.stack.Settings.BaseURL = l.stack.BaseURL + "/settings"
	for _, user := range []struct {
		workspace conversation.WorkspaceID
		email     string
		token     *string
	}{
		{demoWorkspace, "demo@example.com", &l.stack.Settings.Token},
		{otherWorkspace, "other@example.com", &l.stack.Settings.OtherWorkspaceToken},
	} {
		var password strings.Builder
		err := l.command(l.root).runInto(ctx, &password, filepath.Join(l.root, ".local", "bin", "workspace"),
			"user", "--stage", "local", "--workspace", string(user.workspace), "--email", user.email, "--permanent")
		if err != nil {
			return err
		}
		if *user.token, err = l.token(ctx, user.email, strings.TrimSpace(password.String())); err != nil {
			return fmt.Errorf("sign in %s: %w", user.email, err)
		}
	}
	return nil
}

// token is a user's ID token.
func (l *local) token(ctx context.Context, email, password string) (string, error) {
	cfg, err := l.aws(ctx)
	if err != nil {
		return "", err
	}
	out, err := cognitoidentityprovider.NewFromConfig(cfg).InitiateAuth(ctx, &cognitoidentityprovider.InitiateAuthInput{
		ClientId: aws.String(l.outputs["parley-local-data"]["UserPoolClient"]), AuthFlow: types.AuthFlowTypeUserPasswordAuth,
		AuthParameters: map[string]string{"USERNAME": email, "PASSWORD": password},
	})
	if err != nil {
		return "", err
	}
	if out.AuthenticationResult == nil {
		return "", errors.New("the user pool asks for more than a password")
	}
	return aws.ToString(out.AuthenticationResult.IdToken), nil
}
