package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider"
	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider/types"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/httpapi"
)

// newUser says whom to make.
type newUser struct {
	Workspace conversation.WorkspaceID
	Email     string
	Permanent bool // the password; else it must be changed at the first sign-in, within a week
}

// userPool is where a stage's users are.
type userPool struct {
	client *cognitoidentityprovider.Client
	id     string
}

// createUser makes a user of a workspace that exists, and prints the password, which
// happens this once.
func createUser(ctx context.Context, store *dynamo.Store, pool userPool, wanted newUser, out io.Writer) error {
	_, err := store.Definition(ctx, wanted.Workspace)
	if errors.Is(err, conversation.ErrNotFound) {
		return fmt.Errorf("there is no workspace %s on this stage: apply its file first", wanted.Workspace)
	}
	if err != nil {
		return err
	}
	password := newPassword()
	_, err = pool.client.AdminCreateUser(ctx, &cognitoidentityprovider.AdminCreateUserInput{
		UserPoolId: &pool.id, Username: &wanted.Email, TemporaryPassword: &password,
		MessageAction: types.MessageActionTypeSuppress, // it is the operator who tells the user
		UserAttributes: []types.AttributeType{
			{Name: aws.String("email"), Value: &wanted.Email},
			{Name: aws.String("email_verified"), Value: aws.String("true")},
			{Name: aws.String("custom:" + httpapi.WorkspaceAttribute), Value: aws.String(string(wanted.Workspace))},
		},
	})
	if exists := new(types.UsernameExistsException); errors.As(err, &exists) {
		return fmt.Errorf("there is a user %s on this stage already; a user belongs to one workspace for good", wanted.Email)
	}
	if err != nil {
		return fmt.Errorf("create user %s: %w", wanted.Email, err)
	}
	if wanted.Permanent {
		_, err := pool.client.AdminSetUserPassword(ctx, &cognitoidentityprovider.AdminSetUserPasswordInput{
			UserPoolId: &pool.id, Username: &wanted.Email, Password: &password, Permanent: true,
		})
		if err != nil {
			return fmt.Errorf("user %s is made, but without a password that stays: %w", wanted.Email, err)
		}
	}
	fmt.Fprintln(out, password)
	return nil
}

// newPassword has 130 random bits, and one of each kind of character that a user pool
// may ask for.
func newPassword() string { return "aA1-" + rand.Text() }
