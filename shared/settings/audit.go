package settings

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"parley/shared/conversation"
	"parley/shared/dynamo"
	"parley/shared/httpapi"
)

// entry is what the audit trail says of a change by the user of the request. before and
// after are what reads show of the record, so nothing is in the trail that they don't
// show; nil is no record.
func (s Settings) entry(ctx context.Context, action conversation.AuditAction, subject string, before, after any) (conversation.AuditEntry, error) {
	return entryOf(httpapi.UserOf(ctx), s.Now(), action, subject, before, after)
}

func entryOf(user httpapi.User, now time.Time, action conversation.AuditAction, subject string, before, after any) (conversation.AuditEntry, error) {
	changes, err := changesOf(before, after)
	return conversation.AuditEntry{
		AuditID: conversation.AuditID(conversation.NewID()), WorkspaceID: user.WorkspaceID,
		At: conversation.At(now), UserID: user.UserID,
		Action: action, SubjectID: subject, Changes: changes,
	}, err
}

// changesOf compares two records field by field, as JSON.
func changesOf(before, after any) ([]conversation.AuditChange, error) {
	was, err := fieldsOf(before)
	if err != nil {
		return nil, err
	}
	is, err := fieldsOf(after)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(was)
	maps.Copy(all, is)
	changes := []conversation.AuditChange{}
	for _, field := range slices.Sorted(maps.Keys(all)) {
		if !bytes.Equal(was[field], is[field]) {
			changes = append(changes, conversation.AuditChange{Field: field, Before: conversation.JSON(was[field]), After: conversation.JSON(is[field])})
		}
	}
	return changes, nil
}

func fieldsOf(record any) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if record == nil {
		return fields, nil
	}
	text, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}
	return fields, json.Unmarshal(text, &fields)
}

// AuditEntry is an entry of the audit trail as it is shown.
type AuditEntry struct {
	AuditID   conversation.AuditID       `json:"audit_id"`
	At        conversation.Time          `json:"at"`
	UserID    string                     `json:"user_id" doc:"Who did it, as the user pool names the user; operator is who runs the service."`
	Action    conversation.AuditAction   `json:"action" doc:"What was done, such as api_key.created, webhook_endpoint.updated or webhook_endpoint.secret_rotated."`
	SubjectID string                     `json:"subject_id" doc:"The API key or webhook endpoint that it was done to."`
	Changes   []conversation.AuditChange `json:"changes" doc:"Each field that changed: absent before it was, or after it is no more. Secrets are not shown; headers that are the same before and after had a value changed."`
}

func showAuditEntry(e conversation.AuditEntry) AuditEntry {
	return AuditEntry{e.AuditID, e.At, e.UserID, e.Action, e.SubjectID, append([]conversation.AuditChange{}, e.Changes...)}
}

type listAuditRequest struct {
	httpapi.Strict
	httpapi.Cursor
	httpapi.PageSize
}

type listAuditResponse struct {
	Body struct {
		Audit []httpapi.Resource[AuditEntry] `json:"audit"`
		httpapi.Paging
	}
}

func (s Settings) listAuditRoute() httpapi.Route {
	return httpapi.Operation(row(http.MethodGet, "/audit", listWorkspaces...), huma.Operation{
		OperationID: "list-audit", Tags: tag,
		Summary:     "List the audit trail",
		Description: "Who changed what in the settings, and when; newest first.",
	}, s.listAudit)
}

func (s Settings) listAudit(ctx context.Context, in *listAuditRequest) (*listAuditResponse, error) {
	var out listAuditResponse
	var err error
	out.Body.Audit, out.Body.Paging, err = httpapi.Answer(in.Cursor, in.Limit, func(p dynamo.PageRequest) (dynamo.Page[conversation.AuditEntry], error) {
		return s.Store.Audit(ctx, httpapi.UserOf(ctx).WorkspaceID, p)
	}, showAuditEntry)
	return &out, err
}
