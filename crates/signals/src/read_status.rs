//! The rows of status tables: from sql to the blocks that know them.

use junctor_kernel::Address;
use junctor_model::value::Value;

use crate::read_rows::OperationId;

/// A status table whose rows blocks know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusTable {
    /// `junctor_info.locks`: from every ldm. Columns: ldm instance, table id, partition, row id (NULL for a range of keys),
    /// transaction id, mode (`SHARED`, `EXCLUSIVE`), state (`GRANTED`, `WAITING`), index id and range of keys (NULL for a row).
    Locks,
    /// `junctor_info.lock_waits`: from every tc, a row for each that waits and each that it waits for. Columns: waiting transaction,
    /// blocking transaction, tc instance, ldm instance, table id, partition, row id (NULL for ranges of keys), milliseconds.
    LockWaits,
    /// `junctor_info.transactions`: from every tc. Columns: transaction id, state, tc instance, statements, participants,
    /// milliseconds of its longest wait for a lock (or NULL).
    Transactions,
    /// `junctor_info.memoryusage`: from every ldm, a row for each partition. Columns: ldm instance, table id, partition, rows,
    /// versions, versions to purge, bytes of rows, of the row map, of overflow pages, of the hash index, of ordered indexes.
    MemoryUsage,
    /// `information_schema.PROCESSLIST`: from every sql. Columns: connection id, user, host, database (or NULL), command,
    /// seconds in its state, state (or NULL), statement (or NULL).
    Processes,
    /// `junctor_info.metadata_locks`: from every sql block. Columns: sql instance, connection id, table id, database, table, mode
    /// (`READ`, `WRITE`, `CHANGE`), state (`GRANTED`, `WAITING`), milliseconds waited (or NULL).
    MetadataLocks,
    /// `junctor_info.user_locks`: from main. Columns: name, connection id, state (`GRANTED`, `WAITING`), how often its holder got it (0 of
    /// one that waits).
    UserLocks,
    /// `junctor_info.routing`: from every sql block, a row for each kind of reads. Columns: thread, sql instance, rule, table (or
    /// NULL), operation, nanoseconds a key or range here and in other threads (or NULL), samples of both, reads that stayed, that went to
    /// the owner and to query blocks, reads that tried another place, and microseconds which that was predicted to cost.
    Routing,
    /// `junctor_info.counters`: from every block, and of all threads from main. Columns: thread, module, instance, name, value, meaning.
    Counters,
    /// `junctor_info.operation_latency`: from every sql block, a row for each kind of statements. Columns: sql instance, kind, durations
    /// as sql itself understands them.
    OperationLatency,
    /// `junctor_info.operation_latency_buckets`: the same rows.
    OperationLatencyBuckets,
}

/// Tell the rows.
#[derive(Debug)]
pub struct ReadStatus {
    /// Goes back in the reply.
    pub operation: OperationId,
    /// Who gets the reply.
    pub reply_to: Address,
    /// Which table.
    pub table: StatusTable,
}

/// The answer, at most 4,096 rows; of sql one for each session.
#[derive(Debug)]
pub struct ReadStatusReply {
    /// From the request.
    pub operation: OperationId,
    /// The rows, columns in the order of the table.
    pub rows: Vec<Vec<Value>>,
}
