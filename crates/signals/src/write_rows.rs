//! One statement's part for one partition: from tc to the owner ldm, which locks, evaluates and writes uncommitted versions.
//! A part that must wait for a lock is parked at its row and goes on from there.

use std::sync::Arc;

use junctor_kernel::Address;
use junctor_kernel::Buffer;
use junctor_model::error::Error;
use junctor_model::id::{CommitNumber, IndexId, PartitionId, StatementNumber, TransactionId};

use crate::diagnostics::Diagnostics;
use crate::execute_statement::Reading;
use crate::program::{RowProtocol, WriteProgram};
use crate::read_rows::OperationId;

/// Write or lock rows of one partition.
#[derive(Debug)]
pub struct WriteRows {
    /// Goes back in the reply.
    pub operation: OperationId,
    /// The tc.
    pub reply_to: Address,
    /// The transaction.
    pub transaction: TransactionId,
    /// The statement, which its versions carry.
    pub statement: StatementNumber,
    /// The number that the client's statement began with; steps of foreign keys have later ones.
    pub first: StatementNumber,
    /// The last statement that the newest savepoint keeps.
    pub savepoint: StatementNumber,
    /// The partition.
    pub partition: PartitionId,
    /// The wire form of the rows of a locking read.
    pub protocol: RowProtocol,
    /// What the rows that are looked at are to stay true of.
    pub reading: Reading,
    /// Whether this part is the whole transaction, so that a partition without backups commits it at once.
    pub one_phase: bool,
    /// What to do.
    pub program: Arc<WriteProgram>,
    /// See `input.rs`.
    pub input: Buffer,
    /// Empty; rows of a locking read are appended to it.
    pub output: Buffer,
}

/// Stop the parts of a statement where they are: they answer with error 1317. Has no answer of its own. It is a request as they
/// are, so that it does not come before them.
#[derive(Debug)]
pub struct InterruptWrites {
    /// The transaction.
    pub transaction: TransactionId,
    /// The statement; parts of later ones are not meant.
    pub statement: StatementNumber,
}

/// A change that belongs to another partition, in the order in which the rows were changed.
#[derive(Debug)]
pub enum FollowUp {
    /// A unique entry to insert: key and row reference.
    InsertEntry {
        /// The unique index of the base table.
        index: IndexId,
        /// The unique key bytes.
        key: Vec<u8>,
        /// The row reference: partition as u16 big-endian, then the primary key bytes.
        row_reference: Vec<u8>,
        /// The key as error 1062 shows it.
        shown: Box<str>,
    },
    /// A unique entry to delete.
    DeleteEntry {
        /// The unique index of the base table.
        index: IndexId,
        /// The unique key bytes.
        key: Vec<u8>,
    },
    /// A row names a parent by this foreign key of the program, by its place there.
    ParentKey {
        /// Its place among `ForeignKeyWork::parents`.
        place: u16,
        /// The key bytes of the parent's columns; empty while there is no parent table.
        key: Vec<u8>,
    },
    /// A row that children may name by this foreign key of the program is gone or has another key.
    ChildKey {
        /// Its place among `ForeignKeyWork::children`.
        place: u16,
        /// What the keys of such children begin with in the index of the child.
        key: Vec<u8>,
        /// The new values, in the form of `expression::Parameters`; `None` when the row is gone.
        new: Option<Vec<u8>>,
        /// Whether the row names itself.
        is_own: bool,
    },
    /// A row whose new primary key belongs to another partition: it was deleted here and is to be inserted there.
    MoveRow {
        /// The hash of the partition columns' key bytes' partition: where it goes.
        partition: u16,
        /// `key_hash` of the key.
        hash: u64,
        /// The primary key bytes.
        key: Vec<u8>,
        /// The row image.
        image: Vec<u8>,
    },
}

/// The answer.
#[derive(Debug)]
pub struct WriteRowsReply {
    /// From the request.
    pub operation: OperationId,
    /// From the request.
    pub transaction: TransactionId,
    /// From the request.
    pub partition: PartitionId,
    /// Rows found and accepted; when an insert fails, the images before the one that failed.
    pub matched: u32,
    /// Rows changed; above 0 also when the write failed after it changed some.
    pub changed: u32,
    /// What there is to say besides, also of a write that failed.
    pub diagnostics: Option<Box<Diagnostics>>,
    /// The newest commit number that the answer tells of: its own, when `one_phase` was asked and the partition committed, else
    /// that of what was looked at, or 0. The client learns nothing of it before it is stable.
    pub newest: CommitNumber,
    /// Given back for the pool.
    pub input: Buffer,
    /// Rows of a locking read.
    pub output: Buffer,
    /// What other partitions have to do, in order.
    pub follow_ups: Box<[FollowUp]>,
    /// Whether this tells of follow-ups only and the answer itself comes later: a write of many rows asks for much, and says it bit by
    /// bit.
    pub is_part: bool,
    /// Why it failed; versions of the statement stay until tc undoes it.
    pub error: Option<Box<Error>>,
}
