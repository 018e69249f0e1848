package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestUserPool(t *testing.T) {
	tm := prod(t)
	type properties struct {
		AdminCreateUserConfig struct{ AllowAdminCreateUserOnly bool }
		UsernameAttributes    []string
		Policies              struct {
			PasswordPolicy struct {
				MinimumLength                                      int
				RequireLowercase, RequireUppercase, RequireNumbers bool
			}
		}
		Schema []struct {
			Name              string
			AttributeDataType string
			Mutable           bool
		}
	}
	pools := tm.data.of("AWS::Cognito::UserPool")
	if len(pools) != 1 {
		t.Fatalf("got %d user pools, want 1", len(pools))
	}
	for _, pool := range pools {
		checkKept(t, pool)
		got := as[properties](t, pool.Properties)
		if !got.AdminCreateUserConfig.AllowAdminCreateUserOnly || !slices.Equal(got.UsernameAttributes, []string{"email"}) {
			t.Errorf("got %+v, want users that administrators make, named by email", got)
		}
		if p := got.Policies.PasswordPolicy; p.MinimumLength < 12 || !p.RequireLowercase || !p.RequireUppercase || !p.RequireNumbers {
			t.Errorf("got password policy %+v", p)
		}
		found := false
		for _, attribute := range got.Schema {
			if attribute.Name == "workspace_id" {
				found = true
				if attribute.Mutable || attribute.AttributeDataType != "String" {
					t.Errorf("got attribute %+v, want a text that never changes", attribute)
				}
			}
		}
		if !found {
			t.Errorf("got schema %+v, want workspace_id in it", got.Schema)
		}
	}
}

// No client may write which workspace is a user's, and no secret is needed to sign in.
func TestUserPoolClient(t *testing.T) {
	tm := prod(t)
	type properties struct {
		ExplicitAuthFlows, ReadAttributes, WriteAttributes []string
		GenerateSecret                                     bool
		PreventUserExistenceErrors                         string
	}
	clients := tm.data.of("AWS::Cognito::UserPoolClient")
	if len(clients) != 1 {
		t.Fatalf("got %d clients, want 1", len(clients))
	}
	for _, client := range clients {
		checkKept(t, client)
		got := as[properties](t, client.Properties)
		if !slices.Contains(got.ReadAttributes, "custom:workspace_id") || len(got.WriteAttributes) == 0 || slices.Contains(got.WriteAttributes, "custom:workspace_id") {
			t.Errorf("reads %v, writes %v; want custom:workspace_id in the first alone", got.ReadAttributes, got.WriteAttributes)
		}
		if !slices.Contains(got.ExplicitAuthFlows, "ALLOW_USER_PASSWORD_AUTH") || slices.Contains(got.ExplicitAuthFlows, "ALLOW_ADMIN_USER_PASSWORD_AUTH") {
			t.Errorf("got flows %v", got.ExplicitAuthFlows)
		}
		if got.GenerateSecret || got.PreventUserExistenceErrors != "ENABLED" {
			t.Errorf("got %+v, want no secret, and nothing told of who exists", got)
		}
	}
}

func TestWebhookKey(t *testing.T) {
	tm := prod(t)
	keys := tm.data.of("AWS::KMS::Key")
	if len(keys) != 1 {
		t.Fatalf("got %d keys, want 1", len(keys))
	}
	for _, key := range keys {
		checkKept(t, key)
		if key.Properties["EnableKeyRotation"] != true {
			t.Error("the key isn't rotated")
		}
	}
}

// The settings may seal secrets and never open them; the functions that
// post webhooks may open them, and nobody else does either.
func TestWhoSealsAndOpens(t *testing.T) {
	tm := prod(t)
	got := map[string]string{}
	for _, function := range tm.service.of("AWS::Lambda::Function") {
		for allowed := range tm.allowed(t, tm.roleOf(t, function)) {
			if strings.HasPrefix(allowed, "kms:") {
				got[folder(function)] += allowed
			}
		}
	}
	const opens = "kms:Decrypt WebhookKey.Arn"
	want := map[string]string{"settings": "kms:Encrypt WebhookKey.Arn", deliverWebhook: opens, retryWebhook: opens}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
