package httpapi

import (
	"context"
	"net/http"

	"github.com/awslabs/aws-lambda-go-api-proxy/core"
	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"parley/shared/conversation"
)

const idToken = "id_token" // the security scheme's name in the OpenAPI document

// WorkspaceAttribute is what the user pool says of a user: which workspace is theirs. Only
// an administrator can set it, and nobody can change it.
const WorkspaceAttribute = "workspace_id"

// User is who has signed in.
type User struct {
	UserID      string // as the user pool names the user
	WorkspaceID conversation.WorkspaceID
}

type userKey struct{}

// UserOf is the user of the request that ctx belongs to.
func UserOf(ctx context.Context) User {
	user, _ := ctx.Value(userKey{}).(User)
	return user
}

// admit lets a request pass that a user's ID token came with. The gateway has checked its
// signature, its audience and its age; it lets access tokens pass, too, which say nothing
// about a workspace.
func (a *API) admit(ctx huma.Context, next func(huma.Context)) {
	user, ok := userOf(ctx.Context())
	if !ok {
		ctx.SetHeader("WWW-Authenticate", "Bearer")
		_ = huma.WriteErr(a.huma, ctx, http.StatusUnauthorized, "sign in: send the header Authorization: Bearer <ID token of a user of a workspace>")
		return
	}
	next(huma.WithValue(ctx, userKey{}, user))
}

func userOf(ctx context.Context) (User, bool) {
	gateway, _ := core.GetAPIGatewayV2ContextFromContext(ctx)
	if gateway.Authorizer == nil || gateway.Authorizer.JWT == nil {
		return User{}, false
	}
	claims := gateway.Authorizer.JWT.Claims
	workspace, err := uuid.Parse(claims["custom:"+WorkspaceAttribute])
	if err != nil || claims["token_use"] != "id" || claims["sub"] == "" {
		return User{}, false
	}
	return User{claims["sub"], conversation.WorkspaceID(workspace.String())}, true
}

// Operation gives a route its operation. It is how another package adds endpoints; the
// described operation names itself, and its middlewares know the user.
func Operation[I, O any](route Route, described huma.Operation, handle func(context.Context, *I) (*O, error)) Route {
	described.MaxBodyBytes = maxBodyBytes + 1 // the library refuses an equal count
	route.register = func(a *API, route Route) { operation(a, route, described, handle) }
	return route
}
