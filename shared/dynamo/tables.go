package dynamo

import "parley/shared/config"

// Table describes a table: infra creates it from this, and so do the tests. Each has the
// string partition key "pk", which starts with the workspace's id (but for what names a
// workspace: an API key, a phone number), and no sort key.
type Table struct {
	Name                string // its id in the stack
	Env                 string // the environment variable that carries its name
	Indexes             []Index
	Stream              bool // new and old images
	PointInTimeRecovery bool
	TTL                 bool // items leave at the epoch second in the attribute "ttl"
}

// Index is a global secondary index with two string keys. It carries the keys and the
// attributes that lists filter by; a page's items are then read from the table.
type Index struct {
	Name         string
	PartitionKey string
	SortKey      string
	Projected    []string
}

// Names of the tables.
const (
	Conversations = "Conversations"
	Workspaces    = "Workspaces"
	Deliveries    = "Deliveries"
	Counters      = "Counters"
)

// Names of the indexes.
const (
	ByWorkspace = "by_workspace"
	ByAssistant = "by_assistant"
	ByThread    = "by_thread"
	ByEndpoint  = "by_endpoint"
	ByFailure   = "by_failure"
	Open        = "open"
)

// PartitionKey and TTL are attributes of every table that has them.
const (
	PartitionKey = "pk"
	TTL          = "ttl"
)

// filterable are the attributes of a conversation that lists filter by.
var filterable = []string{"assistant_id", "channel", "close_reason", "direction", "ended_at", "is_test"}

// Tables is every table of the service.
//
// Every list index sorts by listed_at: the call_id of a call, whose UUIDv7 holds the time
// that never changes; the time and id of anything else. Open threads, and the threads and
// messages of tests, have no keys of the lists that customers read; a test's messages are
// in a list of their thread's alone. The deliveries of one attempt's X-Service-Delivery-Id
// need no index: the id contains the delivery's own.
var Tables = []Table{
	{
		Name: Conversations, Env: config.ConversationsTable, Stream: true, PointInTimeRecovery: true,
		Indexes: []Index{
			{ByWorkspace, "workspace_list", "listed_at", filterable},
			{ByAssistant, "assistant_list", "listed_at", filterable},
			{ByThread, "thread_list", "listed_at", filterable},
			{Open, "open_shard", "open_until", nil},
		},
	},
	{
		Name: Workspaces, Env: config.WorkspacesTable, PointInTimeRecovery: true,
		Indexes: []Index{{ByWorkspace, "workspace_list", "listed_at", nil}},
	},
	{
		Name: Deliveries, Env: config.DeliveriesTable, TTL: true,
		Indexes: []Index{
			{ByWorkspace, "workspace_list", "listed_at", []string{"event", "event_id", "status"}},
			{ByEndpoint, "endpoint_list", "listed_at", []string{"event", "event_id", "status"}},
			{ByFailure, "failed_list", "listed_at", []string{"event", "event_id"}},
		},
	},
	{Name: Counters, Env: config.CountersTable, TTL: true},
}

// Prefixes of the bucket's objects.
const (
	RecordingsPrefix = "recordings/" // a call's audio
	FieldsPrefix     = "fields/"     // fields that are too large for their item
	PoisonPrefix     = "aws/lambda/" // stream records that failed for good; Lambda's own name
)
