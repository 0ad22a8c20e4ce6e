//! A read of one partition, either of the latest committed rows or of a snapshot, from the gateway of a sql
//! block to a query block or to the owner ldm. A query block that finds the partition's guard (its lock) busy
//! passes the request to the owner, which answers directly.

use std::sync::Arc;

use junctor_kernel::Address;
use junctor_kernel::Buffer;
use junctor_model::error::Error;
use junctor_model::id::{CommitNumber, PartitionId, RowId, TransactionId};

use crate::diagnostics::Diagnostics;
use crate::program::{Access, ReadProgram, RowProtocol};

/// The requester's record of an operation, a pool handle as a number. Opaque to all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OperationId(pub u64);

/// The position at which a read that reached its batch limit resumes. Never a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// Byte position of the current item in the input.
    pub item_position: u32,
    /// Last key visited in that item; empty when the access has no order.
    pub key: Vec<u8>,
    /// Last row visited with that key.
    pub row: RowId,
    /// Rows accepted in this reply and in earlier ones.
    pub rows: u32,
}

layout! { Resume { item_position, key, row, rows } }

/// Predicted cost of a read, booked to the thread that executes it. The sender sums up its open bookings to
/// estimate the thread's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookedCost {
    /// Index of the thread.
    pub thread: u16,
    /// Predicted work in units of 64 ns, at most 4.2 ms; see [`BookedCost::UNIT_SHIFT`].
    pub work: u16,
}

layout! { BookedCost { thread, work } }

impl BookedCost {
    /// Base-2 logarithm of the unit of work in nanoseconds.
    pub const UNIT_SHIFT: u32 = 6;

    /// Books `work_ns` nanoseconds of work on a thread.
    #[inline(always)]
    pub fn new(thread: u16, work_ns: u64) -> BookedCost {
        BookedCost { thread, work: (work_ns >> BookedCost::UNIT_SHIFT).min(u64::from(u16::MAX)) as u16 }
    }
}

/// Reads rows of one partition.
#[derive(Debug)]
pub struct ReadRows {
    /// Returned in the reply.
    pub operation: OperationId,
    /// Receiver of the reply.
    pub reply_to: Address,
    /// The partition to read.
    pub partition: PartitionId,
    /// Wire form of the rows.
    pub protocol: RowProtocol,
    /// Maximum number of accepted rows in this reply.
    pub rows_max: u32,
    /// Maximum number of warnings returned with text.
    pub warnings_max: u16,
    /// Whether the reply reports how long the read took.
    pub is_sampled: bool,
    /// Returned in the reply.
    pub booked_cost: BookedCost,
    /// The planned work.
    pub program: Arc<ReadProgram>,
    /// Versions with commit numbers up to this one are visible.
    pub snapshot: CommitNumber,
    /// The transaction whose uncommitted versions are visible too. Only the owner ldm can serve it.
    pub transaction: TransactionId,
    /// Keys or ranges in the form of `input.rs`.
    pub input: Buffer,
    /// The reply's rows are appended to this buffer, after its present content.
    pub output: Buffer,
    /// The position to resume at; `None` for a new read.
    pub resume: Option<Box<Resume>>,
}

layout! {
    ReadRows {
        operation, reply_to, partition, protocol, rows_max, warnings_max, is_sampled, booked_cost, program,
        snapshot, transaction, input [buffer], output [buffer], resume,
    }
}

impl ReadRows {
    /// Bytes of keys up to which a read is inline-eligible: a few keys.
    const INLINE_INPUT_BYTES_MAX: usize = 64;

    /// Predicted work up to which a read is inline-eligible: about the cost of waking a thread.
    const INLINE_WORK_MAX: u16 = (5_000 >> BookedCost::UNIT_SHIFT) as u16;

    /// Whether the read is known to be long: it has stopped at a limit before. The first step of a read waits
    /// for no other, since many tables have few rows.
    pub fn is_long(&self) -> bool {
        self.resume.is_some()
    }

    /// Whether the read likely takes no longer than waking a thread, so that the sender may run it in the
    /// sleeping thread's place.
    pub fn is_inline_eligible(&self) -> bool {
        matches!(self.program.access, Access::PrimaryKeys)
            && self.input.len() <= Self::INLINE_INPUT_BYTES_MAX
            && self.booked_cost.work <= Self::INLINE_WORK_MAX
    }
}

/// Goes on with a read in the block that runs it. A block sends it to itself between two steps of a long
/// read, so that a reply has the rows of several steps.
#[derive(Debug)]
pub struct ContinueRead(pub Box<LongRead>);

/// A read that has not answered yet.
#[derive(Debug)]
pub struct LongRead {
    /// The read, with its output so far and the position of the next step.
    pub request: ReadRows,
    /// Number of rows in the output.
    pub rows: u32,
    /// Number of steps that it has taken.
    pub steps: u32,
}

/// The reply to [`ReadRows`].
#[derive(Debug)]
pub struct ReadRowsReply {
    /// Copied from the request.
    pub operation: OperationId,
    /// Copied from the request.
    pub partition: PartitionId,
    /// Number of rows in the output.
    pub rows: u32,
    /// Duration of the read in nanoseconds if it was requested; otherwise 0.
    pub service_ns: u32,
    /// Copied from the request.
    pub booked_cost: BookedCost,
    /// Returned for the next batch or the pool.
    pub input: Buffer,
    /// Rows in the form of the program's output.
    pub output: Buffer,
    /// The position to resume at; `None` when the partition has no more rows.
    pub resume: Option<Box<Resume>>,
    /// Present after failures too.
    pub diagnostics: Option<Box<Diagnostics>>,
    /// Why the read failed; the output is empty then.
    pub error: Option<Box<Error>>,
}

layout! {
    ReadRowsReply {
        operation, partition, rows, service_ns, booked_cost, resume, input [buffer with resume],
        output [buffer], diagnostics, error,
    }
}
