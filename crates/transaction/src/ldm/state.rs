//! Records of writes, and of the transactions that write here.

use std::collections::BTreeSet;
use std::ops::Range;

use junctor_expression::Accumulator;
use junctor_kernel::{Address, require};
use junctor_model::error::Error;
use junctor_model::id::{CommitNumber, Epoch, RowId, StatementNumber, TransactionId};
use junctor_model::limit::ROWS_PER_HOLD_MAX;
use junctor_signals::diagnostics::Diagnostics;
use junctor_signals::replicate_rows::ReplicateRows;
use junctor_signals::write_rows::{FollowUp, WriteRows, WriteRowsReply};
use junctor_storage::lock::WaiterId;
use junctor_storage::log::{WrittenExtent, long_participant_blocks, short_participant_blocks};
use junctor_storage::partition_store::{PartitionStore, ScanCursor};
use junctor_storage::row::RowVersion;

use super::participant_table::ParticipantHandle;
use super::partition_table::SlotIndex;
use super::record_images::RecordedImages;

/// Maximum number of rows of a short participant.
const SHORT_ROWS_MAX: usize = ROWS_PER_HOLD_MAX;
/// Maximum number of bytes that a short participant has written.
const SHORT_BYTES_MAX: usize = 64 * 1024;

/// Maximum number of rows that one step of a prepare sorts and records.
const ROWS_COLLECTED_MAX: usize = 256;
/// Bytes of log records that one prepare forms in one turn, apart from the last row's.
pub(super) const RECORDED_PER_TURN_MAX: usize = 64 * 1024;

/// Rows written at a backup for a transaction of another node. The partition stays until the rows are
/// resolved.
#[derive(Debug)]
pub(super) struct PreparedImages {
    pub slot: SlotIndex,
    /// The rows that are not resolved yet.
    pub rows: Vec<RowId>,
    /// Images of later transactions for some of these rows. They wait until the rows are resolved.
    pub waiting: Vec<ReplicateRows>,
}

/// The end of a transaction at a backup, in all partitions.
#[derive(Clone, Copy, Debug)]
pub(super) struct ImagesEnd {
    pub transaction: TransactionId,
    pub reply_to: Address,
    pub kind: ImagesEndKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImagesEndKind {
    /// Stamps the rows with the number. The reply repeats the position.
    Commit { number: CommitNumber, position: u64, participants: u16, recorded: RecordedImages },
    /// Undoes the rows. The reply repeats the epoch.
    Undo(Epoch),
}

/// The state of one transaction at this ldm.
#[derive(Debug, Default)]
pub(super) struct Participant {
    pub transaction: TransactionId,
    /// The last statement that was interrupted.
    pub interrupted: StatementNumber,
    /// One entry for every version made, in statement order until the prepare or the commit groups the
    /// entries by partition.
    pub rows: Vec<TouchedRow>,
    /// Bytes of images and keys written: at least those in the participant's log records.
    pub written_bytes: usize,
    /// `written_bytes` before each statement that has written, for undo.
    pub bytes_before: Vec<(StatementNumber, usize)>,
    /// Partitions in which the transaction locks or writes.
    pub touched: Vec<SlotIndex>,
    /// Partitions that were reported to tc as written.
    pub written: Vec<SlotIndex>,
    /// Partitions whose images were shipped to their backups.
    pub prepared: Vec<SlotIndex>,
    /// Number of `rows` that have been shipped to backups.
    pub shipped: usize,
    /// Number of chains that have not answered.
    pub outstanding: u32,
    /// Receiver of the prepare's reply, which is sent once all chains have answered.
    pub prepare_reply_to: Option<Address>,
    /// Why the prepare failed.
    pub prepare_error: Option<Box<Error>>,
    /// The rows of a long participant, as its prepare collects them. Present from then until the commit.
    pub collected: Option<Collected>,
    /// The commit or undo in progress.
    pub resolution: Option<Resolution>,
    /// The reply of a write that is the whole transaction. It is held back until the transaction is
    /// committed.
    pub one_phase_reply: Option<(Address, WriteRowsReply)>,
}

impl Participant {
    /// Counts one answer of a chain. Returns true for the last one.
    pub fn take_reply(&mut self) -> bool {
        require!(self.outstanding > 0, "each chain answers once: {}", self.transaction);
        self.outstanding -= 1;
        self.outstanding == 0
    }

    /// Whether the participant commits in constant time, after a prepare that forms its log records. The
    /// others stamp and record their few rows at commit.
    #[inline]
    pub fn is_long(&self) -> bool {
        self.rows.len() > SHORT_ROWS_MAX || self.written_bytes > SHORT_BYTES_MAX && !self.rows.is_empty()
    }

    /// Maximum number of rows that one step of the prepare sorts and records. The rows have
    /// [`RECORDED_PER_TURN_MAX`] bytes on average.
    pub fn rows_per_step(&self) -> usize {
        let row_bytes = self.written_bytes / self.rows.len().max(1) + 1;
        ROWS_COLLECTED_MAX.min(RECORDED_PER_TURN_MAX / row_bytes + 1)
    }

    /// Blocks of the log that the participant's records need at most; 0 without writes.
    pub fn log_blocks(&self) -> u32 {
        if self.written.is_empty() {
            return 0;
        }
        let (rows, bytes, partitions) = (self.rows.len(), self.written_bytes, self.written.len());
        let extent = WrittenExtent { rows, bytes, partitions };
        let blocks = match self.is_long() {
            true => long_participant_blocks(extent, self.rows_per_step()),
            false => short_participant_blocks(extent),
        };
        u32::try_from(blocks).unwrap_or(u32::MAX)
    }

    /// Forgets the bytes of the statements after `newer_than`.
    pub fn undo_bytes(&mut self, newer_than: StatementNumber) {
        while let Some((_, before)) = self.bytes_before.pop_if(|(statement, _)| *statement > newer_than) {
            self.written_bytes = before;
        }
    }

    /// Checks that a write may add versions. Undo and redo rely on the order of the rows.
    #[inline]
    pub fn begin_write(&mut self, statement: StatementNumber) {
        require!(self.collected.is_none(), "no row is written after the prepare: {}", self.transaction);
        require!(self.resolution.is_none(), "no row is written while the transaction ends: {}", self.transaction);
        let last = self.rows.last().map_or(StatementNumber(0), |last| last.statement);
        require!(last <= statement, "statements write in their order: {last:?} before {statement:?}");
        if self.bytes_before.last().is_none_or(|(last, _)| *last < statement) {
            self.bytes_before.push((statement, self.written_bytes));
        }
    }
}

/// The rows of a long participant, by partition, and its log records so far.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// The changed rows of each partition.
    pub rows: Vec<(SlotIndex, Vec<RowId>)>,
    /// Number of `Participant::rows` that are collected.
    pub next: usize,
    /// Chunk records formed, and the blocks of the log that they need at most.
    pub chunks: u32,
    pub chunk_blocks: u64,
}

/// A row with a version of the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TouchedRow {
    pub slot: SlotIndex,
    pub row: RowId,
    pub statement: StatementNumber,
}

/// Progress of a commit or an undo through the rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resolution {
    pub kind: ResolutionKind,
    pub reply_to: Address,
    /// The first row that is not resolved yet.
    pub next: usize,
    /// Whether the record that commits the rows is formed.
    pub is_recorded: bool,
    /// Whether only locks are left to release.
    pub is_done: bool,
}

/// The decision to commit, as the transaction's log records contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommitDecision {
    pub number: CommitNumber,
    /// How many ldm instances the transaction wrote to. Recovery expects a record of each.
    pub participants: u16,
    /// The reply repeats it.
    pub position: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResolutionKind {
    /// Stamps the rows with a number.
    Commit(CommitDecision),
    /// As `Commit`, for a number that this ldm takes and marks as applied.
    CommitOnePhase { number: CommitNumber },
    /// Undoes the statements after `newer_than`. With `ends`, the transaction is over afterwards. The reply
    /// repeats the epoch.
    Undo { newer_than: StatementNumber, ends: bool, epoch: Epoch },
}

/// Progress of a write through its rows.
#[derive(Debug)]
pub(super) struct WriteWork {
    pub request: WriteRows,
    pub slot: SlotIndex,
    pub participant: ParticipantHandle,
    /// Byte position of the current item in the input.
    pub item: usize,
    /// Position within the current range.
    pub cursor: ScanCursor,
    /// Next row id of a write to all rows.
    pub next_row: RowId,
    /// The item whose range is locked.
    pub locked_item: Option<usize>,
    /// The row whose lock the write waited for.
    pub pending: Option<RowId>,
    /// The row whose lock an insert waited for, because that row has or had the same key.
    pub pending_insert: Option<RowId>,
    /// The rows found so far, if several ranges of a multi-valued index can find a row more than once.
    pub found: BTreeSet<RowId>,
    /// Whether no row is left to evaluate.
    pub is_exhausted: bool,
    pub matched: u32,
    pub changed: u32,
    pub diagnostics: Option<Box<Diagnostics>>,
    /// The largest commit number among the rows that were looked up by key.
    pub seen: CommitNumber,
    pub follow_ups: Vec<FollowUp>,
    /// Follow-ups that were sent to tc before the reply.
    pub follow_ups_sent: usize,
    pub batch: Batch,
    /// Aggregate states of a locking read.
    pub accumulators: Vec<Accumulator>,
}

impl WriteWork {
    /// Whether the write has work for other partitions.
    #[inline]
    pub fn has_follow_ups(&self) -> bool {
        self.follow_ups_sent > 0 || !self.follow_ups.is_empty()
    }

    /// Records a version on which the result depends.
    #[inline]
    pub fn note_seen(&mut self, store: &PartitionStore, version: Option<RowVersion<'_>>) {
        if let Some(number) = version.and_then(|version| store.state(&version).commit_number()) {
            self.seen = self.seen.max(number);
        }
    }
}

/// Evaluated changes that are not applied yet.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub changes: Vec<RowChange>,
    /// Images and keys that `changes` refer to.
    pub bytes: Vec<u8>,
    /// Length of the primary keys of the rows that `changes` delete.
    pub key_bytes: usize,
    /// Number of changes that are applied.
    pub done: usize,
}

/// One change of a row whose lock is held.
#[derive(Clone, Debug)]
pub(super) enum RowChange {
    Update {
        row: RowId,
        image: Range<usize>,
    },
    Delete {
        row: RowId,
    },
    /// A new primary key within the same partition: inserts the row under the new key, then deletes it under
    /// the old key.
    Rekey {
        row: RowId,
        hash: u64,
        key: Range<usize>,
        image: Range<usize>,
    },
}

impl Resolution {
    pub fn new(kind: ResolutionKind, reply_to: Address) -> Resolution {
        Resolution { kind, reply_to, next: 0, is_recorded: false, is_done: false }
    }
}

impl Batch {
    pub fn is_done(&self) -> bool {
        self.done == self.changes.len()
    }

    pub fn clear(&mut self) {
        self.changes.clear();
        self.bytes.clear();
        self.key_bytes = 0;
        self.done = 0;
    }

    pub fn add_bytes(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }
}

/// A write that waits for a lock.
#[derive(Debug)]
pub(super) struct ParkedWrite {
    pub work: WriteWork,
    pub waiter: WaiterId,
}
