package conversation

// AuditID names an entry of the audit trail.
type AuditID string

// AuditAction is what was done. The set is open.
type AuditAction string

const (
	APIKeyCreated                AuditAction = "api_key.created"
	APIKeyUpdated                AuditAction = "api_key.updated"
	APIKeyRevoked                AuditAction = "api_key.revoked"
	WebhookEndpointCreated       AuditAction = "webhook_endpoint.created"
	WebhookEndpointUpdated       AuditAction = "webhook_endpoint.updated"
	WebhookEndpointDeleted       AuditAction = "webhook_endpoint.deleted"
	WebhookEndpointSecretRotated AuditAction = "webhook_endpoint.secret_rotated"
)

// AuditEntry says who changed what in a workspace's settings, and when. It holds no secret:
// its changes are those of what reading the record shows.
type AuditEntry struct {
	AuditID     AuditID       `json:"audit_id"`
	WorkspaceID WorkspaceID   `json:"workspace_id"`
	At          Time          `json:"at"`
	UserID      string        `json:"user_id"` // as the user pool names the user
	Action      AuditAction   `json:"action"`
	SubjectID   string        `json:"subject_id"` // of the API key or the webhook endpoint
	Changes     []AuditChange `json:"changes"`
}

// AuditChange is one field before and after: absent before it was, or after it is no more.
type AuditChange struct {
	Field  string `json:"field"`
	Before JSON   `json:"before,omitzero"`
	After  JSON   `json:"after,omitzero"`
}
