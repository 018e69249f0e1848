package dynamo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"parley/shared/conversation"
)

// Definition is what an operator's file says of a workspace.
type Definition struct {
	Version    int // how often it was written; 0: never
	Workspace  conversation.Workspace
	Assistants []conversation.AssistantConfig
}

// Numbers are the assistants' phone numbers, each with what it leads to.
func (d Definition) Numbers() []conversation.Number {
	var numbers []conversation.Number
	for _, a := range d.Assistants {
		for _, n := range a.PhoneNumbers {
			numbers = append(numbers, conversation.Number{
				PhoneNumber: n, Carrier: d.Workspace.Carrier,
				WorkspaceID: d.Workspace.WorkspaceID, AssistantID: a.AssistantID,
			})
		}
	}
	return numbers
}

// Attributes beside the definition's own. The balance is running state, which no
// definition writes over.
const (
	versionAttribute    = "version"
	assistantsAttribute = "assistant_ids"
	balanceAttribute    = "balance"
)

func workspaceID(ws conversation.WorkspaceID) string { return id(ws, kindWorkspace, ws) }

// numberID names no workspace: whoever is called finds the workspace by it.
func numberID(carrier, phoneNumber string) string { return "number#" + carrier + "#" + phoneNumber }

// Number reads what a carrier's phone number leads to, strongly consistent.
func (s *Store) Number(ctx context.Context, carrier, phoneNumber string) (conversation.Number, error) {
	it, err := s.read(ctx, Workspaces, numberID(carrier, phoneNumber))
	if err != nil {
		return conversation.Number{}, wrap(err, "get number %s", phoneNumber)
	}
	number, err := decode[conversation.Number](it)
	return number, wrap(err, "get number %s", phoneNumber)
}

// Definition reads a workspace's definition, strongly consistent.
func (s *Store) Definition(ctx context.Context, ws conversation.WorkspaceID) (Definition, error) {
	d, err := s.definition(ctx, ws)
	return d, wrap(err, "get definition of workspace %s", ws)
}

func (s *Store) definition(ctx context.Context, ws conversation.WorkspaceID) (Definition, error) {
	it, err := s.read(ctx, Workspaces, workspaceID(ws))
	if err != nil {
		return Definition{}, err
	}
	d := Definition{Version: intOf(it, versionAttribute)}
	if d.Workspace, err = decode[conversation.Workspace](it); err != nil {
		return Definition{}, err
	}
	var ids []conversation.AssistantID
	if err := attributevalue.Unmarshal(it[assistantsAttribute], &ids); err != nil {
		return Definition{}, err
	}
	d.Assistants = make([]conversation.AssistantConfig, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	for i, assistant := range ids {
		group.Go(func() error {
			it, err := s.read(ctx, Workspaces, id(ws, kindAssistant, assistant))
			if err != nil {
				return wrap(err, "get assistant %s", assistant)
			}
			d.Assistants[i], err = decode[conversation.AssistantConfig](it)
			return err
		})
	}
	return d, group.Wait()
}

// Define replaces the definition that was read as have (the zero Definition if there is
// none) by want, all of it or nothing. Balance and active calls stay as they are; a new
// workspace's balance is openingBalance, a decimal. An assistant that changes gets the
// version after its last.
//
// The error names all that stands against it: a definition that somebody else has changed
// since it was read, a number of another workspace, an assistant to be removed that is on
// a call.
func (s *Store) Define(ctx context.Context, have, want Definition, openingBalance string) error {
	var t transaction
	s.defineWorkspace(&t, have, want, openingBalance)
	s.defineAssistants(&t, have, want)
	s.defineNumbers(&t, have, want)
	return wrap(t.commit(ctx, s.db), "define workspace %s", want.Workspace.WorkspaceID)
}

// defineWorkspace writes the workspace's item, whatever changes. Its condition guards the
// whole definition: assistants and their numbers change only together with this item.
func (s *Store) defineWorkspace(t *transaction, have, want Definition, openingBalance string) {
	before, after := t.encode(have.Workspace), t.encode(want.Workspace)
	ids := make([]types.AttributeValue, len(want.Assistants))
	for i, a := range want.Assistants {
		ids[i] = text(string(a.AssistantID))
	}
	after[assistantsAttribute] = &types.AttributeValueMemberL{Value: ids}
	after[versionAttribute] = number(have.Version + 1)

	condition := expression.Name(versionAttribute).Equal(expression.Value(have.Version))
	if have.Version == 0 {
		condition = absent
		after[balanceAttribute] = &types.AttributeValueMemberN{Value: openingBalance}
	}
	t.update(s.table(Workspaces), workspaceID(want.Workspace.WorkspaceID), replace(before, after), condition,
		errors.New("somebody else has changed the workspace meanwhile: try again"))
}

func (s *Store) defineAssistants(t *transaction, have, want Definition) {
	ws := want.Workspace.WorkspaceID
	gone := map[conversation.AssistantID]conversation.AssistantConfig{}
	for _, a := range have.Assistants {
		gone[a.AssistantID] = a
	}
	for _, a := range want.Assistants {
		old, isOld := gone[a.AssistantID]
		delete(gone, a.AssistantID)
		a.Version = old.Version
		before, after := t.encode(old), t.encode(a)
		if isOld && reflect.DeepEqual(before, after) {
			continue
		}
		after[versionAttribute] = number(old.Version + 1)
		after["workspace_list"] = text(list(ws, assistantsList))
		after["listed_at"] = text(string(a.AssistantID))
		condition := absent
		if isOld {
			condition = exists
		}
		t.update(s.table(Workspaces), id(ws, kindAssistant, a.AssistantID), replace(before, after), condition,
			fmt.Errorf("somebody else has changed assistant %s meanwhile: try again", a.AssistantName))
	}
	for _, assistant := range slices.Sorted(maps.Keys(gone)) {
		t.delete(s.table(Workspaces), id(ws, kindAssistant, assistant), exists,
			fmt.Errorf("somebody else has changed assistant %s meanwhile: try again", gone[assistant].AssistantName))
		t.check(s.table(Workspaces), slotsID(ws, assistant), activeCalls.AttributeNotExists().Or(activeCalls.Equal(expression.Value(0))),
			fmt.Errorf("assistant %s is on a call: disable it, and remove it when its calls are over", gone[assistant].AssistantName))
	}
}

func (s *Store) defineNumbers(t *transaction, have, want Definition) {
	mine := expression.Name("workspace_id").Equal(expression.Value(want.Workspace.WorkspaceID))
	gone := map[string]conversation.Number{}
	for _, n := range have.Numbers() {
		gone[numberID(n.Carrier, n.PhoneNumber.PhoneNumber)] = n
	}
	for _, n := range want.Numbers() {
		pk := numberID(n.Carrier, n.PhoneNumber.PhoneNumber)
		old := gone[pk]
		delete(gone, pk)
		if n == old {
			continue
		}
		it := t.encode(n)
		it[PartitionKey] = text(pk)
		t.put(s.table(Workspaces), it, absent.Or(mine),
			fmt.Errorf("number %s belongs to another workspace", n.PhoneNumber.PhoneNumber))
	}
	for _, pk := range slices.Sorted(maps.Keys(gone)) {
		t.delete(s.table(Workspaces), pk, mine,
			fmt.Errorf("number %s belongs to another workspace", gone[pk].PhoneNumber.PhoneNumber))
	}
}

// replace sets the attributes of after and removes those that only before has. Others,
// the running state, stay.
func replace(before, after item) expression.UpdateBuilder {
	var update expression.UpdateBuilder
	for _, name := range slices.Sorted(maps.Keys(after)) {
		update = update.Set(expression.Name(name), expression.Value(after[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[name]; !ok {
			update = update.Remove(expression.Name(name))
		}
	}
	return update
}
