package settings

import (
	"context"
	"errors"
	"net/http"

	"parley/shared/carrier"
	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/httpapi"
)

// sandbox reads a workspace's definition, in which a customer wants to reach one of its
// numbers. It refuses with 409 in a workspace that isn't on the simulator, and with 404 a
// number of nobody or of another workspace.
func (s Settings) sandbox(ctx context.Context, ws conversation.WorkspaceID, to string) (dynamo.Definition, error) {
	definition, err := s.Store.Definition(ctx, ws)
	if err != nil {
		return dynamo.Definition{}, err
	}
	if definition.Workspace.Carrier != carrier.SimulatorName {
		return dynamo.Definition{}, httpapi.Refuse(http.StatusConflict, "not_a_sandbox", "the workspace is not on the simulator")
	}
	number, err := s.Store.Number(ctx, carrier.SimulatorName, to)
	if errors.Is(err, conversation.ErrNotFound) || err == nil && number.WorkspaceID != ws {
		return dynamo.Definition{}, httpapi.Refuse(http.StatusNotFound, "not_found", "to: there is no such number in this workspace")
	}
	return definition, err
}
