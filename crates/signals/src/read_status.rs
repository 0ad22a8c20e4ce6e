//! Rows of status tables, from the blocks that know them to sql.

use junctor_kernel::Address;
use junctor_model::id::TableId;
use junctor_model::value::Value;

use crate::read_rows::OperationId;

/// Maximum number of rows in the reply of one block.
pub const STATUS_ROWS_MAX: usize = 4096;

/// A status table whose rows come from blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusTable {
    /// `junctor_info.locks`: from every ldm. Columns: ldm instance, table id, partition, row id (NULL for a
    /// range of keys), transaction id, mode (`SHARED`, `EXCLUSIVE`), state (`GRANTED`, `WAITING`), index id
    /// and range of keys (NULL for a row).
    Locks,
    /// `junctor_info.lock_waits`: from every tc, a row for each pair of waiting and blocking transaction.
    /// Columns: waiting transaction, blocking transaction, tc instance, ldm instance, table id, partition,
    /// row id (NULL for ranges of keys), milliseconds.
    LockWaits,
    /// `junctor_info.transactions`: from every tc. Columns: transaction id, state, tc instance, statements,
    /// participants, milliseconds of its longest current wait for a lock (or NULL).
    Transactions,
    /// `junctor_info.memoryusage`: from every ldm, a row for each partition. Columns: ldm instance, table id,
    /// partition, rows, versions, versions to purge, bytes of rows, of the row map, of overflow pages, of the
    /// hash index, of ordered indexes.
    MemoryUsage,
    /// `information_schema.PROCESSLIST`: from every sql block of every node. Columns: connection id, user,
    /// host, database (or NULL), command, seconds in its state, state (empty between commands), statement (or
    /// NULL).
    Processes,
    /// `junctor_info.metadata_locks`: from every sql block. Columns: sql instance, connection id, table id,
    /// database, table, mode (`READ`, `WRITE`, `CHANGE`), state (`GRANTED`, `WAITING`), milliseconds waited
    /// (or NULL).
    MetadataLocks,
    /// `junctor_info.user_locks`: from main. Columns: name, connection id, state (`GRANTED`, `WAITING`), how
    /// often its holder acquired it (0 for a waiting session).
    UserLocks,
    /// `junctor_info.checkpoints`: from main, a row for each of the last rounds. Columns: generation, state
    /// (`BEGINNING`, `WRITING`, `WAITING`, `SWITCHING`, `DONE`, `FAILED`), first and newest commit number,
    /// position of the replay in blocks, partitions, files, bytes written and left, bytes per second,
    /// milliseconds, bytes of the log in use and their limit, error (or NULL).
    Checkpoints,
    /// `junctor_info.logspaces`: from main, a row on a durable node. Columns: type (`REDO`), state (`FREE`,
    /// `LIMITED`, `EXHAUSTED`, `DEVICE FULL`), bytes in use, their limit, bytes reserved for commits,
    /// bytes written since the start, whether a commit waits for space (0 or 1), syncs and records of commits
    /// since the start.
    LogSpaces,
    /// `junctor_info.restart_info`: from main, a row for each phase of the node's start. Columns: phase,
    /// state (`RUNNING`, `DONE`), milliseconds, rows, bytes.
    RestartInfo,
    /// `junctor_info.routing`: from every sql block, a row for each kind of read. Columns: thread, sql
    /// instance, rule, table (or NULL), operation, nanoseconds for each key or range locally and in other
    /// threads (or NULL), samples of both, reads executed locally, at the owner and at query blocks,
    /// exploratory reads elsewhere, and their predicted extra cost in microseconds.
    Routing,
    /// `junctor_info.counters`: from every block; main adds those of all threads. Columns: thread, module,
    /// instance, name, value, meaning.
    Counters,
    /// `junctor_info.operation_latency`: from every sql block, a row for each kind of statement. Columns: sql
    /// instance, kind, durations in a form that only sql interprets.
    OperationLatency,
    /// `junctor_info.operation_latency_buckets`: the rows of `OperationLatency`.
    OperationLatencyBuckets,
    /// `junctor_info.nodes`: from main of a node of a cluster, a row for each node. Columns: node, roles,
    /// state (`SERVING`, `JOINING`, `WAITING`, `CONNECTED`, `SILENT`, `DOWN`, `UNKNOWN`, `REMOVED`), address
    /// of its links, incarnation, installed epoch (both NULL if unknown), group (NULL without data), whether
    /// it is raft's leader, whether it numbers commits, whether its disk counts, whether it votes, location
    /// domain.
    Nodes,
    /// `junctor_info.node_groups`: from main of a node of a cluster, a row for each group. Columns: group,
    /// state (`SERVING`, `JOINING`, `LEAVING`, `DOWN`), number of data nodes, of those that serve and are
    /// heard, and of disks that count.
    NodeGroups,
    /// `junctor_info.thread_pool_groups`: from every sql block, a row. Columns: group, connections, slots,
    /// slots in use, those of running statements, those of idle transactions, waiting commands, whether the
    /// group is stalled (0 or 1).
    ThreadPoolGroups,
    /// `junctor_info.thread_pool_queues`: from every sql block, a row for each waiting command. Columns:
    /// group, position, priority (`HIGH`, `LOW`), connection, microseconds.
    ThreadPoolQueues,
    /// `junctor_info.thread_pool_stats`: from every sql block, a row. Columns: group, slots without those of
    /// stalls, changes of that number, stalls, slots added by stalls, commands admitted from the queues of
    /// high and low priority, commands moved from low to high.
    ThreadPoolStatistics,
    /// `junctor_info.thread_pool_waits`: from every sql block. Columns: group, reason (`SLOT`, `METADATA
    /// LOCK`), number, microseconds (or NULL).
    ThreadPoolWaits,
    /// `junctor_info.links`: from main of every node of a cluster, a row for each node that it has links to.
    /// Columns: node, the other one, state (`UP`, `SILENT`, `UNREACHABLE`, `DOWN`), incarnation and version
    /// of the encoding (both NULL without a link), channels, those with a connection, microseconds of the
    /// round trip (or NULL), bytes sent, received, not acknowledged and allowed, milliseconds of silence,
    /// frames and signals sent (NULL from a node of an earlier release).
    Links,
    /// `junctor_info.arbitration`: from main of every node of a cluster. Columns: node, whether it votes,
    /// role (`LEADER`, `FOLLOWER`, `CANDIDATE`), leader, term, position of the last applied entry (these
    /// four NULL if unknown), epoch, voters, those that it hears, microseconds of its lease that are left
    /// (or NULL).
    Arbitration,
    /// `junctor_info.restarts`: from main of every node, a row for each phase of its start and return.
    /// Columns: node, those of `RestartInfo`, all rows and bytes of the phase (or NULL).
    Restarts,
    /// `junctor_info.replication_lag`: from main of the node with the sequencer, a row for each member.
    /// Columns: node, group, sequencer, epoch, state (`SERVING`, `JOINING`), the last number and those up to
    /// which the node has applied, knows as stable and has synced, commits that it has not applied, and not
    /// synced (NULL if its disk does not count).
    ReplicationLag,
    /// `junctor_info.events`: from main of every node of a cluster. Columns: node, number of the event,
    /// microseconds since 1970-01-01 UTC, kind, description.
    Events,
    /// `junctor_info.backups`: from main of every data node of a cluster, a row for its last part of a
    /// backup. Columns: node, name, store, state (`PINNED`, `COPYING`, `COPIED`, `FAILED`), the newest commit
    /// of its checkpoint and the last one of its log (both NULL if unknown), bytes copied, to copy, and
    /// stored, error (or NULL).
    Backups,
    /// `performance_schema.events_statements_summary_by_digest`: from every sql block, a row for each digest.
    /// Columns: database (or NULL), normalised text (NULL for the statements without room for their digest),
    /// figures in two forms that only sql interprets, text of a sample (or NULL).
    StatementDigests,
    /// `performance_schema.events_statements_histogram_by_digest`: the rows of `StatementDigests`.
    StatementHistograms,
    /// For TRUNCATE of the digest table: every sql block forgets its digests. No rows.
    TakenStatementDigests,
    /// For SHOW and `information_schema`: the rows of `MemoryUsage` from every ldm; from main a row for each
    /// AUTO_INCREMENT counter above 1; from every sql block a row for each range of numbers that it holds.
    /// The columns of the latter two: NULL, table id, NULL, next number, and for a range its end.
    TableStatistics,
}

choices! {
    StatusTable {
        0 Locks;
        1 LockWaits;
        2 Transactions;
        3 MemoryUsage;
        4 Processes;
        5 MetadataLocks;
        6 UserLocks;
        7 Checkpoints;
        8 LogSpaces;
        9 RestartInfo;
        10 Routing;
        11 Counters;
        12 OperationLatency;
        13 OperationLatencyBuckets;
        14 Nodes;
        15 NodeGroups;
        16 ThreadPoolGroups;
        17 ThreadPoolQueues;
        18 ThreadPoolStatistics;
        19 ThreadPoolWaits;
        20 TableStatistics;
        21 Links;
        22 Arbitration;
        23 Restarts;
        24 ReplicationLag;
        25 Events;
        26 Backups;
        27 StatementDigests;
        28 StatementHistograms;
        29 TakenStatementDigests;
    }
}

/// Requests the rows of a status table.
#[derive(Debug)]
pub struct ReadStatus {
    /// Returned in the reply.
    pub operation: OperationId,
    /// Receiver of the reply.
    pub reply_to: Address,
    /// The table to read.
    pub table: StatusTable,
    /// Only the rows about these tables are wanted; if it is empty, the rows about all. For
    /// [`StatusTable::TableStatistics`].
    pub only: Box<[TableId]>,
}

layout! { ReadStatus { operation, reply_to, table, only } }

impl ReadStatus {
    /// Whether the rows about this table are wanted.
    pub fn wants(&self, table: TableId) -> bool {
        self.only.is_empty() || self.only.contains(&table)
    }
}

/// The reply to [`ReadStatus`]. It has at most 4,096 rows. Three kinds of replies may have more: those of sql
/// with a row for each session, those of ldm with a row for each partition, and those of main and sql with a
/// row for each table that has an AUTO_INCREMENT counter.
#[derive(Debug)]
pub struct ReadStatusReply {
    /// Copied from the request.
    pub operation: OperationId,
    /// Values in the order of the table's columns.
    pub rows: Vec<Vec<Value>>,
}

layout! { ReadStatusReply { operation, rows } }
