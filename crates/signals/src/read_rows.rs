//! A read of one partition, committed or snapshot: from a client of the data plane to a query block or to the owner ldm.
//! A query block that finds the partition's guard busy passes the request on to the owner, which answers in its place.

use std::sync::Arc;

use junctor_kernel::Address;
use junctor_kernel::Buffer;
use junctor_model::error::Error;
use junctor_model::id::{CommitNumber, PartitionId, RowId, TransactionId};

use crate::diagnostics::Diagnostics;
use crate::program::{Access, ReadProgram, RowProtocol};

/// The client's record of an operation: a pool handle as a number. Opaque to everybody else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OperationId(pub u64);

/// Where a read or write that was cut at its batch limit goes on: never a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The byte position, in the input, of the item to go on with.
    pub item_position: u32,
    /// The last key seen of that item; empty where the access has no order.
    pub key: Vec<u8>,
    /// The last row seen with that key.
    pub row: RowId,
    /// Rows accepted in this reply and those before it.
    pub rows: u32,
}

/// The work that whoever sent a read expects of it, and the thread that it was sent to: what is under way there, by its account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// The thread's index.
    pub thread: u16,
    /// Work in units of 64 nanoseconds, up to 4.2 ms; see [`Charge::UNIT_SHIFT`].
    pub work: u16,
}

impl Charge {
    /// Nanoseconds of a unit of work, as a power of two.
    pub const UNIT_SHIFT: u32 = 6;

    /// So many nanoseconds of work on a thread.
    #[inline(always)]
    pub fn new(thread: u16, work_ns: u64) -> Charge {
        Charge { thread, work: (work_ns >> Charge::UNIT_SHIFT).min(u64::from(u16::MAX)) as u16 }
    }
}

/// Read rows of one partition.
#[derive(Debug)]
pub struct ReadRows {
    /// Goes back in the reply.
    pub operation: OperationId,
    /// Who gets the reply.
    pub reply_to: Address,
    /// The partition.
    pub partition: PartitionId,
    /// The wire form of the rows.
    pub protocol: RowProtocol,
    /// At most so many accepted rows in this reply.
    pub rows_max: u32,
    /// Of so many warnings the text is in this reply.
    pub warnings_max: u16,
    /// Whether the answer is to say how long the read took.
    pub is_sampled: bool,
    /// Goes back in the reply.
    pub charge: Charge,
    /// What to do.
    pub program: Arc<ReadProgram>,
    /// Versions with numbers up to this one are seen.
    pub snapshot: CommitNumber,
    /// Whose own uncommitted versions are seen too; only the owner ldm can serve them.
    pub transaction: TransactionId,
    /// See `input.rs`.
    pub input: Buffer,
    /// Empty; the reply's rows are appended to it.
    pub output: Buffer,
    /// Where to go on; `None` at the beginning.
    pub resume: Option<Box<Resume>>,
}

impl ReadRows {
    /// Bytes of the keys of a read that is done for a thread that sleeps, rather than that the thread is woken for it: a few keys.
    const LITTLE_INPUT_BYTES: usize = 64;

    /// The work of such a read: about what a wake-up costs.
    const LITTLE_WORK: u16 = (5_000 >> Charge::UNIT_SHIFT) as u16;

    /// Whether it takes no longer than to wake a thread, as far as can be told: a few keys.
    pub fn is_little(&self) -> bool {
        matches!(self.program.access, Access::PrimaryKeys)
            && self.input.len() <= Self::LITTLE_INPUT_BYTES
            && self.charge.work <= Self::LITTLE_WORK
    }
}

/// The answer.
#[derive(Debug)]
pub struct ReadRowsReply {
    /// From the request.
    pub operation: OperationId,
    /// From the request.
    pub partition: PartitionId,
    /// Rows in the output.
    pub rows: u32,
    /// How long the read took where it was done, in nanoseconds, if that was asked; else 0.
    pub service_ns: u32,
    /// From the request.
    pub charge: Charge,
    /// The input, given back for the next batch or the pool.
    pub input: Buffer,
    /// What the program's output says.
    pub output: Buffer,
    /// Where to go on; `None` when the partition has no more.
    pub resume: Option<Box<Resume>>,
    /// What there is to say besides, also of a read that failed.
    pub diagnostics: Option<Box<Diagnostics>>,
    /// Why there is no answer.
    pub error: Option<Box<Error>>,
}
