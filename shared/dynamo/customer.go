package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"parley/shared/conversation"
)

func customerID(ws conversation.WorkspaceID, address string) string {
	return id(ws, "customer", address)
}

// NameCustomer finds the workspace's customer of this phone number, or makes one, and
// keeps what is newly known of it. It returns the customer with all that is known.
func (s *Store) NameCustomer(ctx context.Context, ws conversation.WorkspaceID, c conversation.Customer) (conversation.Customer, error) {
	return s.NameAddress(ctx, ws, c.Phone, c)
}

// NameAddress is NameCustomer of one who may have no phone number: a user id of WhatsApp is
// an address too. The customer's item also has its opt-outs, which nothing here reads.
func (s *Store) NameAddress(ctx context.Context, ws conversation.WorkspaceID, address string, c conversation.Customer) (conversation.Customer, error) {
	if c.CustomerID == "" {
		c.CustomerID = conversation.CustomerID(conversation.NewID())
	}
	known, err := encode(c)
	if err != nil {
		return c, wrap(err, "name customer")
	}
	delete(known, "customer_id")
	first := expression.Name("customer_id")
	it, err := s.update(ctx, Workspaces, customerID(ws, address),
		setAll(known).Set(first, first.IfNotExists(expression.Value(c.CustomerID))), expression.ConditionBuilder{})
	if err != nil {
		return c, wrap(err, "name customer")
	}
	c, err = decode[conversation.Customer](it)
	return c, wrap(err, "name customer")
}

// CallConfig reads the workspace and the assistant of a call, strongly consistent. An
// assistant that was removed meanwhile is the zero value.
func (s *Store) CallConfig(ctx context.Context, ws conversation.WorkspaceID, assistant conversation.AssistantID) (conversation.Workspace, conversation.AssistantConfig, error) {
	r, err := s.CallRequest(ctx, ws, assistant, "")
	return r.Workspace, r.Assistant, err
}
