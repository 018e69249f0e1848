package dynamo

import (
	"context"
	"errors"

	"parley/shared/conversation"
)

const (
	kindAudit = "audit"
	auditList = "audit"
)

// record adds entries of the audit trail to the transaction of the change that they tell
// of: there is none without the other.
func (s *Store) record(t *transaction, entries []conversation.AuditEntry) {
	for _, entry := range entries {
		it := t.encode(entry)
		it[PartitionKey] = text(id(entry.WorkspaceID, kindAudit, entry.AuditID))
		it["workspace_list"] = text(list(entry.WorkspaceID, auditList))
		it["listed_at"] = text(timed(entry.At, entry.AuditID))
		t.put(s.table(Workspaces), it, absent, errors.New("the audit entry exists already"))
	}
}

// Audit lists a workspace's audit trail, newest first.
func (s *Store) Audit(ctx context.Context, ws conversation.WorkspaceID, p PageRequest) (Page[conversation.AuditEntry], error) {
	l := listing{
		table: Workspaces, index: ByWorkspace, attribute: "workspace_list",
		partition: list(ws, auditList), prefix: id(ws, kindAudit, ""), from: first, to: last,
	}
	page, err := fetch[conversation.AuditEntry](ctx, s, l, p)
	return page, wrap(err, "list audit trail")
}
