//! Records of commits on their way to the log. From ldm and main to log.

use junctor_kernel::{Address, Buffer};
use junctor_model::id::CommitNumber;

/// Records that a block has formed, in order. They become durable with one of the next groups (writes of the
/// log).
#[derive(Debug)]
pub struct AppendRecords {
    /// The block that formed them, to which the buffer returns.
    pub from: Address,
    /// Position of the stream among those of the node: the ldm instances, then main.
    pub stream: u16,
    /// Number of records that the stream has formed since the node's start, these included.
    pub records_formed: u64,
    /// The records, each complete.
    pub bytes: Buffer,
}

/// The reply to [`AppendRecords`]: the log holds the records, and the buffer is free.
#[derive(Debug)]
pub struct AppendRecordsReply {
    /// The buffer of the request, for reuse.
    pub bytes: Buffer,
}

/// Asks for the records that an ldm has formed and not delivered. From log to ldm. The ldm sends them with
/// [`AppendRecords`] at the end of its turn.
#[derive(Debug)]
pub struct DeliverRecords {}

/// Asks for a reply once a commit is durable. From tc and main to log. The commit is stable already.
#[derive(Debug)]
pub struct AwaitDurable {
    /// The commit.
    pub number: CommitNumber,
    /// The block that waits. It has at most one request under way and asks for its highest number.
    pub reply_to: Address,
}

/// What a holder tells the log. Quantities are in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceExchange {
    /// Blocks that the holder asks for, in place of an earlier request that is not granted; `None` leaves
    /// that request as it is.
    pub wanted: Option<u64>,
    /// Blocks of commits that are stable.
    pub spent: u64,
    /// Blocks that the holder does not need.
    pub returned: u64,
}

/// What the log tells a holder. Quantities are in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceGrant {
    /// Blocks for the holder.
    pub granted: u64,
    /// Blocks that the holder may keep in advance.
    pub line: u64,
    /// Maximum number of blocks of one transaction.
    pub transaction_max: u64,
}

/// Exchanges reservations of blocks of the log. From tc to log.
#[derive(Debug)]
pub struct ReserveLogSpace {
    /// The tc.
    pub reply_to: Address,
    /// The blocks that tc wants, has spent, and returns.
    pub exchange: SpaceExchange,
}

/// The reply to [`ReserveLogSpace`], sent once the log has the blocks. The log also sends it at its start.
#[derive(Debug)]
pub struct ReserveLogSpaceReply {
    /// The blocks granted.
    pub grant: SpaceGrant,
}

/// From log to every tc and main: how much room the log has.
#[derive(Debug)]
pub struct LogSpaceChanged {
    /// The present state.
    pub space: LogSpace,
}

/// The room that the log has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogSpace {
    /// Nothing waits.
    #[default]
    Free,
    /// The log is close to the limit of its size. New writes wait until a checkpoint has freed a part, or
    /// fail with error 1297. Commits go on as far as blocks can be reserved for them.
    Limited,
    /// As `Limited`, and main, too, must not write: the log needs the rest of its space for groups that free
    /// some.
    Exhausted,
    /// The device is full. Writes are refused with error 1021. Commits that already have a number wait for
    /// space.
    DeviceFull,
}

/// The reply to [`AwaitDurable`]: every commit up to this number survives a crash.
#[derive(Debug)]
pub struct AwaitDurableReply {
    /// At least the number of the request.
    pub durable: CommitNumber,
}
