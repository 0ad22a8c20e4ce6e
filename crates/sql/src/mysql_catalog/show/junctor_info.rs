//! The virtual tables of database `junctor_info`, which show the node's status. This file has the columns of
//! all tables, and computes the rows of those about threads.

use junctor_gateway::threads::ThreadUsage;
use junctor_model::value::Value;
use junctor_signals::read_status::StatusTable;

use super::layout::{Field, FieldKind, VirtualTable, bytes, double, field, int, name, text, unsigned};
use super::performance_schema::{HISTOGRAM_BY_DIGEST, HISTOGRAM_FIELDS, SUMMARY_BY_DIGEST, SUMMARY_FIELDS};
use super::schema_layout::PROCESSLIST;
use super::sending_rows::SENDING;
use super::thread_rows::{CPUSTAT, THREADBLOCKS};
use super::virtual_schema::{SchemaTable, VirtualSchema, nothing};

const THREADS: &[Field] =
    &[unsigned("thread_id"), name("name"), int("cpu").or_null(), text("modules", 1024), unsigned("spin_us")];

/// Totals since the start, then percentages of the last 50 ms, second and 20 seconds.
const THREADSTAT: &[Field] = &[
    unsigned("thread_id"),
    name("name"),
    unsigned("queue_length"),
    unsigned("spin_now_us"),
    unsigned("executing_us"),
    unsigned("sending_us"),
    unsigned("spinning_us"),
    unsigned("sleeping_us"),
    unsigned("signals"),
    unsigned("turns"),
    unsigned("hand_overs"),
    double("executing_50ms_percent"),
    double("sending_50ms_percent"),
    double("spinning_50ms_percent"),
    double("sleeping_50ms_percent"),
    unsigned("signals_50ms"),
    double("executing_1s_percent"),
    double("sending_1s_percent"),
    double("spinning_1s_percent"),
    double("sleeping_1s_percent"),
    unsigned("signals_1s"),
    double("executing_20s_percent"),
    double("sending_20s_percent"),
    double("spinning_20s_percent"),
    double("sleeping_20s_percent"),
    unsigned("signals_20s"),
    unsigned("buffer_full_us"),
    unsigned("os_user_us"),
    unsigned("os_system_us"),
    unsigned("voluntary_switches"),
    unsigned("involuntary_switches"),
];

/// One row for each partition of each ldm instance; hidden tables of unique entries are included.
const MEMORYUSAGE: &[Field] = &[
    unsigned("ldm_instance"),
    unsigned("table_id"),
    unsigned("partition_id"),
    unsigned("live_rows"),
    unsigned("row_versions"),
    unsigned("purge_queue_length"),
    unsigned("row_bytes"),
    unsigned("row_map_bytes"),
    unsigned("overflow_bytes"),
    unsigned("hash_index_bytes"),
    unsigned("ordered_index_bytes"),
];

const LOCKS: &[Field] = &[
    unsigned("ldm_instance"),
    unsigned("table_id"),
    unsigned("partition_id"),
    unsigned("row_id").or_null(),
    unsigned("transaction_id"),
    text("mode", 16),
    text("state", 16),
    unsigned("index_id").or_null(),
    text("key_range", 256).or_null(),
];

/// One row for each pair of a waiting and a blocking transaction.
const LOCK_WAITS: &[Field] = &[
    unsigned("waiting_transaction_id"),
    unsigned("blocking_transaction_id"),
    unsigned("tc_instance"),
    unsigned("ldm_instance"),
    unsigned("table_id"),
    unsigned("partition_id"),
    unsigned("row_id").or_null(),
    unsigned("waiting_ms"),
];

const TRANSACTIONS: &[Field] = &[
    unsigned("transaction_id"),
    text("state", 64),
    unsigned("tc_instance"),
    unsigned("statements"),
    unsigned("participants"),
    unsigned("waiting_ms").or_null(),
];

/// Statements and transactions that hold a table's metadata lock, or wait for it.
const METADATA_LOCKS: &[Field] = &[
    unsigned("sql_instance"),
    unsigned("connection_id"),
    unsigned("table_id"),
    name("table_schema"),
    name("table_name"),
    text("mode", 16),
    text("state", 16),
    unsigned("waiting_ms").or_null(),
];

/// The thread groups of the node, one for each sql block.
const THREAD_POOL_GROUPS: &[Field] = &[
    unsigned("group_id"),
    unsigned("connections"),
    unsigned("slots"),
    unsigned("slots_in_use"),
    unsigned("running_statements"),
    unsigned("idle_transactions"),
    unsigned("queue_length"),
    unsigned("is_stalled"),
];

/// Commands that wait for a slot, in the order of admission.
const THREAD_POOL_QUEUES: &[Field] = &[
    unsigned("group_id"),
    unsigned("position"),
    text("priority", 8),
    unsigned("connection_id"),
    unsigned("queueing_time_us"),
];

/// What happened in each thread group since the start of the node.
const THREAD_POOL_STATS: &[Field] = &[
    unsigned("group_id"),
    unsigned("slots"),
    unsigned("adjustments"),
    unsigned("stalls"),
    unsigned("slots_due_to_stalls"),
    unsigned("dequeues_high"),
    unsigned("dequeues_low"),
    unsigned("kickups"),
];

/// Why commands have waited before they ran.
const THREAD_POOL_WAITS: &[Field] =
    &[unsigned("group_id"), text("reason", 16), unsigned("count"), unsigned("waited_us").or_null()];

/// Connections that hold a lock of GET_LOCK, or wait for it.
const USER_LOCKS: &[Field] = &[name("name"), unsigned("connection_id"), text("state", 16), unsigned("count")];

/// The last rounds of checkpoints, the oldest first. The last one may be running.
const CHECKPOINTS: &[Field] = &[
    unsigned("generation"),
    text("state", 16),
    unsigned("begin_number"),
    unsigned("newest_number"),
    unsigned("replay_from_block"),
    unsigned("partitions"),
    unsigned("files"),
    unsigned("written_bytes"),
    unsigned("left_bytes"),
    unsigned("bytes_per_second"),
    unsigned("duration_ms"),
    unsigned("log_used_bytes"),
    unsigned("log_limit_bytes"),
    text("error", 256).or_null(),
];

/// The space of the log, not older than a tenth of a second. A node in memory has no row.
const LOGSPACES: &[Field] = &[
    name("log_type"),
    text("state", 16),
    unsigned("used_bytes"),
    unsigned("limit_bytes"),
    unsigned("reserved_bytes"),
    unsigned("written_bytes"),
    unsigned("has_waiting_commits"),
    unsigned("syncs"),
    unsigned("records"),
];

/// The phases of the node's last start, in their order. A node in memory has none.
const RESTART_INFO: &[Field] =
    &[name("phase"), text("state", 16), unsigned("milliseconds"), unsigned("rows_applied"), unsigned("bytes")];

/// The nodes of the cluster. A node alone has no row.
const NODES: &[Field] = &[
    unsigned("node_id"),
    text("roles", 64),
    text("state", 16),
    text("address", 256),
    unsigned("incarnation").or_null(),
    unsigned("epoch").or_null(),
    unsigned("node_group").or_null(),
    unsigned("is_leader"),
    unsigned("is_sequencer"),
    unsigned("is_durable"),
    unsigned("is_voter"),
    text("location_domain", 64),
    unsigned("protocol_version").or_null(),
];

/// The node groups of the cluster. A node alone has no row.
const NODE_GROUPS: &[Field] = &[
    unsigned("node_group"),
    text("state", 16),
    unsigned("data_nodes"),
    unsigned("serving_nodes"),
    unsigned("durable_nodes"),
];

/// The links of every node of the cluster to others, as both see them.
const LINKS: &[Field] = &[
    unsigned("node_id"),
    unsigned("peer_node_id"),
    text("state", 16),
    unsigned("incarnation").or_null(),
    unsigned("protocol_version").or_null(),
    unsigned("channels"),
    unsigned("connections"),
    unsigned("round_trip_us").or_null(),
    unsigned("sent_bytes"),
    unsigned("received_bytes"),
    unsigned("unacknowledged_bytes"),
    unsigned("credit_bytes"),
    unsigned("silent_ms"),
    // A node of an earlier release does not tell them.
    unsigned("sent_frames").or_null(),
    unsigned("sent_signals").or_null(),
];

/// What every node knows of the votes, and the lease that it has.
const ARBITRATION: &[Field] = &[
    unsigned("node_id"),
    unsigned("is_voter"),
    text("role", 16).or_null(),
    unsigned("leader_node_id").or_null(),
    unsigned("term").or_null(),
    unsigned("applied_entry").or_null(),
    unsigned("epoch"),
    unsigned("voters"),
    unsigned("voters_heard"),
    unsigned("lease_left_us").or_null(),
];

/// The phases of the last start of every node, and of its return to the cluster.
const RESTARTS: &[Field] = &[
    unsigned("node_id"),
    name("phase"),
    text("state", 16),
    unsigned("milliseconds"),
    unsigned("rows_applied"),
    unsigned("bytes"),
    unsigned("rows_total").or_null(),
    unsigned("bytes_total").or_null(),
];

/// How far every data node is with the commits of the epoch, as the sequencer knows it.
const REPLICATION_LAG: &[Field] = &[
    unsigned("node_id"),
    unsigned("node_group"),
    unsigned("sequencer_node_id"),
    unsigned("epoch"),
    text("state", 16),
    unsigned("last_commit"),
    unsigned("applied_commit"),
    unsigned("stable_commit"),
    unsigned("synced_commit"),
    unsigned("commits_to_apply"),
    unsigned("commits_to_sync").or_null(),
];

/// The last events of the membership, as every node has seen them.
const EVENTS: &[Field] = &[
    unsigned("node_id"),
    unsigned("event_number"),
    field("event_time", FieldKind::Timestamp),
    text("event_kind", 16),
    text("description", 512),
];

/// The last part of a backup that every data node has copied, or copies.
const BACKUPS: &[Field] = &[
    unsigned("node_id"),
    text("backup_name", 128),
    text("store", 512),
    text("state", 16),
    unsigned("checkpoint_commit").or_null(),
    unsigned("last_commit").or_null(),
    unsigned("bytes_copied"),
    unsigned("bytes_total"),
    unsigned("bytes_stored"),
    text("error", 512).or_null(),
];

/// Measured costs and chosen locations of reads, one row for each sql block and kind of read. A cost without
/// samples is NULL.
const ROUTING: &[Field] = &[
    unsigned("thread_id"),
    unsigned("sql_instance"),
    name("rule"),
    name("table_name").or_null(),
    name("operation"),
    unsigned("here_ns").or_null(),
    unsigned("away_ns").or_null(),
    unsigned("here_samples"),
    unsigned("away_samples"),
    unsigned("chosen_here"),
    unsigned("chosen_owner"),
    unsigned("chosen_query"),
    unsigned("explored"),
    unsigned("regret_us"),
];

/// Counters of blocks and threads since the start.
const COUNTERS: &[Field] = &[
    unsigned("thread_id"),
    name("module"),
    unsigned("instance"),
    name("name"),
    unsigned("value"),
    text("description", 256),
];

/// Latency of statements, by kind. A row whose instance is NULL has the totals of all sql blocks. Percentiles
/// are upper bounds of histogram buckets, at most one eighth above the true value.
const OPERATION_LATENCY: &[Field] = &[
    unsigned("sql_instance").or_null(),
    name("operation"),
    unsigned("count"),
    unsigned("sum_us"),
    double("p50_us"),
    double("p95_us"),
    double("p99_us"),
    double("p999_us"),
    double("max_us"),
];

/// The buckets of the same histograms: the number of statements that took from `from_ns` to `to_ns`, both
/// inclusive.
const OPERATION_LATENCY_BUCKETS: &[Field] =
    &[unsigned("sql_instance").or_null(), name("operation"), unsigned("from_ns"), unsigned("to_ns"), unsigned("count")];

/// Every table, sorted by name, with its columns. The session adds the rows.
const TABLES: &[SchemaTable] = &[
    ("arbitration", ARBITRATION, nothing),
    ("backups", BACKUPS, nothing),
    ("checkpoints", CHECKPOINTS, nothing),
    ("counters", COUNTERS, nothing),
    ("cpustat_1sec", CPUSTAT, nothing),
    ("cpustat_20sec", CPUSTAT, nothing),
    ("cpustat_50ms", CPUSTAT, nothing),
    ("events", EVENTS, nothing),
    ("links", LINKS, nothing),
    ("lock_waits", LOCK_WAITS, nothing),
    ("locks", LOCKS, nothing),
    ("logspaces", LOGSPACES, nothing),
    ("memoryusage", MEMORYUSAGE, nothing),
    ("metadata_locks", METADATA_LOCKS, nothing),
    ("node_groups", NODE_GROUPS, nothing),
    ("nodes", NODES, nothing),
    ("operation_latency", OPERATION_LATENCY, nothing),
    ("operation_latency_buckets", OPERATION_LATENCY_BUCKETS, nothing),
    ("replication_lag", REPLICATION_LAG, nothing),
    ("restart_info", RESTART_INFO, nothing),
    ("restarts", RESTARTS, nothing),
    ("routing", ROUTING, nothing),
    ("sending", SENDING, nothing),
    ("thread_pool_groups", THREAD_POOL_GROUPS, nothing),
    ("thread_pool_queues", THREAD_POOL_QUEUES, nothing),
    ("thread_pool_stats", THREAD_POOL_STATS, nothing),
    ("thread_pool_waits", THREAD_POOL_WAITS, nothing),
    ("threadblocks", THREADBLOCKS, nothing),
    ("threads", THREADS, nothing),
    ("threadstat", THREADSTAT, nothing),
    ("transactions", TRANSACTIONS, nothing),
    ("user_locks", USER_LOCKS, nothing),
];

/// The database.
pub(super) const SCHEMA: VirtualSchema = VirtualSchema { name: "junctor_info", parts: &[TABLES] };

/// A thread of the node, as placement configured it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadFacts {
    /// Thread number, from 0.
    pub thread: u32,
    /// Thread name.
    pub name: Box<str>,
    /// CPU that the thread is bound to; `None` if unbound.
    pub cpu: Option<u32>,
    /// The modules and instances on the thread, as text for users.
    pub modules: Box<str>,
    /// The blocks on the thread, as (module, instance).
    pub blocks: Vec<(&'static str, u16)>,
    /// Configured maximum spin time before the thread sleeps, in microseconds.
    pub spin_us: u32,
}

/// Load of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadStatus {
    /// Thread number, from 0.
    pub thread: u32,
    /// Thread name.
    pub name: Box<str>,
    /// Signals in the thread's own queues.
    pub queue_length: u32,
    /// Current spin time before the thread sleeps, in nanoseconds.
    pub spin_ns: u64,
    /// Usage since the start.
    pub total: ThreadUsage,
    /// Usage in the last 50 ms, second and 20 seconds.
    pub windows: [ThreadUsage; 3],
}

/// The status table with this name, ignoring case, if blocks of the data plane supply its rows.
pub fn status_table(name: &str) -> Option<StatusTable> {
    match name.to_ascii_lowercase().as_str() {
        "arbitration" => Some(StatusTable::Arbitration),
        "backups" => Some(StatusTable::Backups),
        "checkpoints" => Some(StatusTable::Checkpoints),
        "counters" => Some(StatusTable::Counters),
        "events" => Some(StatusTable::Events),
        "links" => Some(StatusTable::Links),
        "lock_waits" => Some(StatusTable::LockWaits),
        "locks" => Some(StatusTable::Locks),
        "logspaces" => Some(StatusTable::LogSpaces),
        "memoryusage" => Some(StatusTable::MemoryUsage),
        "metadata_locks" => Some(StatusTable::MetadataLocks),
        "node_groups" => Some(StatusTable::NodeGroups),
        "nodes" => Some(StatusTable::Nodes),
        "operation_latency" => Some(StatusTable::OperationLatency),
        "operation_latency_buckets" => Some(StatusTable::OperationLatencyBuckets),
        "replication_lag" => Some(StatusTable::ReplicationLag),
        "restart_info" => Some(StatusTable::RestartInfo),
        "restarts" => Some(StatusTable::Restarts),
        "routing" => Some(StatusTable::Routing),
        "thread_pool_groups" => Some(StatusTable::ThreadPoolGroups),
        "thread_pool_queues" => Some(StatusTable::ThreadPoolQueues),
        "thread_pool_stats" => Some(StatusTable::ThreadPoolStatistics),
        "thread_pool_waits" => Some(StatusTable::ThreadPoolWaits),
        "transactions" => Some(StatusTable::Transactions),
        "user_locks" => Some(StatusTable::UserLocks),
        _ => None,
    }
}

/// A status table's columns, without rows.
pub fn status_columns(table: StatusTable) -> VirtualTable {
    let (name, fields) = match table {
        StatusTable::Arbitration => ("arbitration", ARBITRATION),
        StatusTable::Backups => ("backups", BACKUPS),
        StatusTable::Checkpoints => ("checkpoints", CHECKPOINTS),
        StatusTable::Counters => ("counters", COUNTERS),
        StatusTable::Events => ("events", EVENTS),
        StatusTable::Links => ("links", LINKS),
        StatusTable::LockWaits => ("lock_waits", LOCK_WAITS),
        StatusTable::Locks => ("locks", LOCKS),
        StatusTable::LogSpaces => ("logspaces", LOGSPACES),
        StatusTable::MemoryUsage | StatusTable::TableStatistics => ("memoryusage", MEMORYUSAGE),
        StatusTable::MetadataLocks => ("metadata_locks", METADATA_LOCKS),
        StatusTable::NodeGroups => ("node_groups", NODE_GROUPS),
        StatusTable::Nodes => ("nodes", NODES),
        StatusTable::OperationLatency => ("operation_latency", OPERATION_LATENCY),
        StatusTable::OperationLatencyBuckets => ("operation_latency_buckets", OPERATION_LATENCY_BUCKETS),
        StatusTable::ReplicationLag => ("replication_lag", REPLICATION_LAG),
        StatusTable::RestartInfo => ("restart_info", RESTART_INFO),
        StatusTable::Restarts => ("restarts", RESTARTS),
        StatusTable::Routing => ("routing", ROUTING),
        StatusTable::ThreadPoolGroups => ("thread_pool_groups", THREAD_POOL_GROUPS),
        StatusTable::ThreadPoolQueues => ("thread_pool_queues", THREAD_POOL_QUEUES),
        StatusTable::ThreadPoolStatistics => ("thread_pool_stats", THREAD_POOL_STATS),
        StatusTable::ThreadPoolWaits => ("thread_pool_waits", THREAD_POOL_WAITS),
        StatusTable::Transactions => ("transactions", TRANSACTIONS),
        StatusTable::UserLocks => ("user_locks", USER_LOCKS),
        StatusTable::StatementDigests | StatusTable::TakenStatementDigests => {
            return VirtualTable::new("performance_schema", SUMMARY_BY_DIGEST, SUMMARY_FIELDS);
        }
        StatusTable::StatementHistograms => {
            return VirtualTable::new("performance_schema", HISTOGRAM_BY_DIGEST, HISTOGRAM_FIELDS);
        }
        StatusTable::Processes => return VirtualTable::new("information_schema", "PROCESSLIST", PROCESSLIST),
    };
    VirtualTable::new("junctor_info", name, fields)
}

/// The rows of `threads`.
pub fn thread_rows(threads: &[ThreadFacts]) -> Vec<Vec<Value>> {
    let row = |thread: &ThreadFacts| {
        vec![
            Value::UInt(u64::from(thread.thread)),
            bytes(&thread.name),
            thread.cpu.map_or(Value::Null, |cpu| Value::Int(i64::from(cpu))),
            bytes(&thread.modules),
            Value::UInt(u64::from(thread.spin_us)),
        ]
    };
    threads.iter().map(row).collect()
}

/// The rows of `threadstat`.
pub fn thread_status_rows(threads: &[ThreadStatus]) -> Vec<Vec<Value>> {
    let row = |thread: &ThreadStatus| {
        let total = &thread.total;
        let mut row = vec![Value::UInt(u64::from(thread.thread)), bytes(&thread.name)];
        row.extend([Value::UInt(u64::from(thread.queue_length)), Value::UInt(thread.spin_ns / 1000)]);
        let times = [total.executing_ns, total.sending_ns, total.spinning_ns, total.sleeping_ns];
        row.extend(times.map(|time_ns| Value::UInt(time_ns / 1000)));
        row.extend([total.signals, total.turns, total.hand_overs].map(Value::UInt));
        // The order must match the columns of THREADSTAT.
        for window in &thread.windows {
            row.extend(percents(window));
            row.push(Value::UInt(window.signals));
        }
        let times = [total.buffer_full_ns, total.os_user_ns, total.os_system_ns];
        row.extend(times.map(|time_ns| Value::UInt(time_ns / 1000)));
        row.extend([total.voluntary_switches, total.involuntary_switches].map(Value::UInt));
        row
    };
    threads.iter().map(row).collect()
}

/// Percentages of the measured time, with one decimal digit; 0 if no time was measured.
fn percents(usage: &ThreadUsage) -> [Value; 4] {
    let times = [usage.executing_ns, usage.sending_ns, usage.spinning_ns, usage.sleeping_ns];
    let all = times.iter().fold(0u64, |sum, time| sum.saturating_add(*time));
    times.map(|time| {
        let per_mille = (u128::from(time) * 1000).checked_div(u128::from(all)).unwrap_or(0);
        Value::Double(per_mille as f64 / 10.0)
    })
}
