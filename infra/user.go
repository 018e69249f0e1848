package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscognito"
	"github.com/aws/jsii-runtime-go"

	"parley/shared/httpapi"
)

// tokenHours is how long a user stays signed in without asking for a new token.
const tokenHours = 8

// newUserPool makes the pool of the people who use the settings. An administrator makes
// them, each in one workspace for good.
func newUserPool(stack awscdk.Stack) awscognito.UserPool {
	return awscognito.NewUserPool(stack, jsii.String("Users"), &awscognito.UserPoolProps{
		SelfSignUpEnabled: jsii.Bool(false),
		SignInAliases:     &awscognito.SignInAliases{Email: jsii.Bool(true)},
		StandardAttributes: &awscognito.StandardAttributes{
			Email: &awscognito.StandardAttribute{Required: jsii.Bool(true), Mutable: jsii.Bool(true)},
		},
		CustomAttributes: &map[string]awscognito.ICustomAttribute{
			httpapi.WorkspaceAttribute: awscognito.NewStringAttribute(&awscognito.StringAttributeProps{
				MinLen: jsii.Number(36), MaxLen: jsii.Number(36), Mutable: jsii.Bool(false),
			}),
		},
		PasswordPolicy: &awscognito.PasswordPolicy{
			MinLength:            jsii.Number(12),
			RequireDigits:        jsii.Bool(true),
			RequireLowercase:     jsii.Bool(true),
			RequireUppercase:     jsii.Bool(true),
			RequireSymbols:       jsii.Bool(false),
			TempPasswordValidity: awscdk.Duration_Days(jsii.Number(7)),
		},
		AccountRecovery: awscognito.AccountRecovery_EMAIL_ONLY,
		RemovalPolicy:   keep,
	})
}

// newUserPoolClient is how programs sign users in. They read which workspace is a user's;
// of what they may write, it is no part.
func newUserPoolClient(stack awscdk.Stack, pool awscognito.UserPool) awscognito.UserPoolClient {
	hours := awscdk.Duration_Hours(jsii.Number(tokenHours))
	email := &awscognito.StandardAttributesMask{Email: jsii.Bool(true)}
	client := awscognito.NewUserPoolClient(stack, jsii.String("UsersClient"), &awscognito.UserPoolClientProps{
		UserPool:                   pool,
		AuthFlows:                  &awscognito.AuthFlow{UserPassword: jsii.Bool(true), UserSrp: jsii.Bool(true)},
		DisableOAuth:               jsii.Bool(true),
		GenerateSecret:             jsii.Bool(false),
		PreventUserExistenceErrors: jsii.Bool(true),
		EnableTokenRevocation:      jsii.Bool(true),
		IdTokenValidity:            hours,
		AccessTokenValidity:        hours,
		ReadAttributes:             awscognito.NewClientAttributes().WithStandardAttributes(email).WithCustomAttributes(jsii.String(httpapi.WorkspaceAttribute)),
		WriteAttributes:            awscognito.NewClientAttributes().WithStandardAttributes(email),
	})
	client.ApplyRemovalPolicy(keep)
	return client
}
