package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"parley/shared/conversation"
)

func customerID(ws conversation.WorkspaceID, phone string) string { return id(ws, "customer", phone) }

// NameCustomer finds the workspace's customer of this phone number, or makes one, and
// keeps what is newly known of it. It returns the customer with all that is known.
func (s *Store) NameCustomer(ctx context.Context, ws conversation.WorkspaceID, c conversation.Customer) (conversation.Customer, error) {
	if c.CustomerID == "" {
		c.CustomerID = conversation.CustomerID(conversation.NewID())
	}
	known, err := encode(c)
	if err != nil {
		return c, wrap(err, "name customer")
	}
	first := expression.Name("customer_id")
	change := expression.Set(first, first.IfNotExists(expression.Value(c.CustomerID)))
	delete(known, "customer_id")
	for name, value := range known {
		change = change.Set(expression.Name(name), expression.Value(value))
	}
	expr, err := expression.NewBuilder().WithUpdate(change).Build()
	if err != nil {
		return c, wrap(err, "name customer")
	}
	out, err := s.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: s.table(Workspaces), Key: key(customerID(ws, c.Phone)),
		UpdateExpression: expr.Update(), ExpressionAttributeNames: expr.Names(), ExpressionAttributeValues: expr.Values(),
		ReturnValues: types.ReturnValueAllNew,
	})
	if err != nil {
		return c, wrap(err, "name customer")
	}
	c, err = decode[conversation.Customer](out.Attributes)
	return c, wrap(err, "name customer")
}

// CallConfig reads the workspace and the assistant of a call, strongly consistent. An
// assistant that was removed meanwhile is the zero value.
func (s *Store) CallConfig(ctx context.Context, ws conversation.WorkspaceID, assistant conversation.AssistantID) (conversation.Workspace, conversation.AssistantConfig, error) {
	r, err := s.CallRequest(ctx, ws, assistant, "")
	return r.Workspace, r.Assistant, err
}
