//! One statement's part for one partition, from tc to the owner ldm, which locks, evaluates and writes
//! uncommitted versions. A part that must wait for a lock is parked and resumes at its row.

use std::sync::Arc;

use junctor_kernel::Address;
use junctor_kernel::Buffer;
use junctor_model::error::Error;
use junctor_model::id::{CommitNumber, Epoch, IndexId, PartitionId, StatementNumber, TransactionId};

use crate::diagnostics::Diagnostics;
use crate::execute_statement::Reading;
use crate::program::{RowProtocol, WriteProgram};
use crate::read_rows::OperationId;

/// Writes or locks rows of one partition.
#[derive(Debug)]
pub struct WriteRows {
    /// Statement and part number of tc, returned in the reply.
    pub operation: OperationId,
    /// The coordinating tc.
    pub reply_to: Address,
    /// The epoch of the tc. A life of the owner's node that was admitted later is not meant.
    pub epoch: Epoch,
    /// The transaction of the versions and locks.
    pub transaction: TransactionId,
    /// Number of the statement, which its versions carry.
    pub statement: StatementNumber,
    /// The number with which the client's statement began. Foreign-key steps have later ones.
    pub first: StatementNumber,
    /// The last statement that the newest savepoint keeps.
    pub savepoint: StatementNumber,
    /// The partition to write.
    pub partition: PartitionId,
    /// Wire form of the rows of a locking read.
    pub protocol: RowProtocol,
    /// How rows are read.
    pub reading: Reading,
    /// Whether this part is the whole transaction, so that a partition without backups commits it directly,
    /// unless the part is long or causes work elsewhere. tc has reserved `ONE_PHASE_BLOCKS_MAX` blocks of the
    /// log.
    pub one_phase: bool,
    /// The planned work.
    pub program: Arc<WriteProgram>,
    /// Keys, ranges or images in the form of `input.rs`.
    pub input: Buffer,
    /// Empty; receives the rows of a locking read or of RETURNING.
    pub output: Buffer,
}

layout! {
    WriteRows {
        operation, reply_to, epoch, transaction, statement, first, savepoint, partition, protocol, reading,
        one_phase, program, input [buffer], output [buffer],
    }
}

/// Stops the running parts of a statement, which answer with error 1317. Has no reply of its own. It is
/// deferrable like the parts, so that it cannot overtake them.
#[derive(Debug)]
pub struct InterruptWrites {
    /// The transaction of the statement.
    pub transaction: TransactionId,
    /// The statement to stop. Parts of later ones continue.
    pub statement: StatementNumber,
}

layout! { InterruptWrites { transaction, statement } }

/// Work that a changed row causes in another partition, in the order of the changes.
#[derive(Debug)]
pub enum FollowUp {
    /// Inserts a unique entry.
    InsertEntry {
        /// The unique index of the base table.
        index: IndexId,
        /// Bytes of the unique key.
        key: Vec<u8>,
        /// Partition as big-endian u16, followed by the bytes of the primary key.
        row_reference: Vec<u8>,
        /// The key as error 1062 shows it.
        shown: Box<str>,
    },
    /// Deletes a unique entry.
    DeleteEntry {
        /// The unique index of the base table.
        index: IndexId,
        /// Bytes of the unique key.
        key: Vec<u8>,
    },
    /// A row refers to a parent by a foreign key, so the parent must exist.
    ParentKey {
        /// Position of the foreign key in `ForeignKeyWork::parents`.
        position: u16,
        /// Key bytes of the parent's columns; empty while the parent table does not exist.
        key: Vec<u8>,
    },
    /// A row that children may refer to is deleted or has another key.
    ChildKey {
        /// Position of the foreign key in `ForeignKeyWork::children`.
        position: u16,
        /// Prefix of such children's keys in the child's index.
        key: Vec<u8>,
        /// New values in the form of `expression::Parameters`; `None` when the row is deleted.
        new: Option<Vec<u8>>,
        /// Whether the row is its own child.
        is_own: bool,
    },
    /// A row whose new key belongs to another partition. It was deleted here and is to be inserted there.
    MoveRow {
        /// Index of the target partition.
        partition: u16,
        /// `key_hash` of the key.
        hash: u64,
        /// Bytes of the primary key.
        key: Vec<u8>,
        /// The encoded row.
        image: Vec<u8>,
    },
}

choices! {
    FollowUp {
        0 InsertEntry { index, key, row_reference, shown };
        1 DeleteEntry { index, key };
        2 ParentKey { position, key };
        3 ChildKey { position, key, new, is_own };
        4 MoveRow { partition, hash, key, image };
    }
}

/// The reply to [`WriteRows`].
#[derive(Debug)]
pub struct WriteRowsReply {
    /// Copied from the request.
    pub operation: OperationId,
    /// Copied from the request.
    pub transaction: TransactionId,
    /// Copied from the request.
    pub partition: PartitionId,
    /// Rows found and accepted. When an insert fails, the number of images before the failed one.
    pub matched: u32,
    /// Rows changed. Above 0 also when the write failed after it changed some.
    pub changed: u32,
    /// Present after failures too.
    pub diagnostics: Option<Box<Diagnostics>>,
    /// The newest commit number that the result depends on: the write's own if a one-phase part committed,
    /// else that of the rows it saw, or 0. tc answers the client once this number is stable.
    pub newest: CommitNumber,
    /// Returned for the pool.
    pub input: Buffer,
    /// Rows of a locking read or of RETURNING.
    pub output: Buffer,
    /// Blocks of the log that the transaction's records at this ldm need at most; 0 without a log.
    pub log_blocks: u32,
    /// Whether the transaction has written so much at this ldm that it must be prepared there, even as the
    /// only participant.
    pub is_long: bool,
    /// Whether a part with `one_phase` has committed, or had nothing to commit. Otherwise the transaction is
    /// still open.
    pub is_committed: bool,
    /// Work for other partitions, in order.
    pub follow_ups: Box<[FollowUp]>,
    /// Whether this carries follow-ups only, and the reply itself comes later. A long write sends its
    /// follow-ups in portions.
    pub is_part: bool,
    /// Why the write failed. Versions of the statement stay until tc undoes it.
    pub error: Option<Box<Error>>,
}

layout! {
    WriteRowsReply {
        operation, transaction, partition, matched, changed, diagnostics, newest, input [returned], output [buffer],
        log_blocks, is_long, is_committed, follow_ups, is_part, error,
    }
}
