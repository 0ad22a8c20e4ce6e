//! The records of ldm.

use std::ops::Range;

use junctor_expression::Accumulator;
use junctor_kernel::{Address, require};
use junctor_model::error::Error;
use junctor_model::id::{CommitNumber, RowId, StatementNumber, TransactionId};
use junctor_signals::diagnostics::Diagnostics;
use junctor_signals::write_rows::{FollowUp, WriteRows, WriteRowsReply};
use junctor_storage::lock::WaiterId;
use junctor_storage::partition_store::ScanCursor;
use junctor_storage::row::RowVersion;

use super::participant_table::ParticipantHandle;
use super::partition_table::SlotIndex;

/// Rows that a backup has written for a transaction of another node. The partition stays until they are settled.
#[derive(Debug)]
pub(super) struct KeptImages {
    pub slot: SlotIndex,
    pub rows: Vec<RowId>,
    /// The first one that is not settled.
    pub next: usize,
}

/// What one transaction has touched here.
#[derive(Debug, Default)]
pub(super) struct Participant {
    pub transaction: TransactionId,
    /// The last statement that was stopped.
    pub interrupted: StatementNumber,
    /// A row for every version made, in the order of statements until the commit begins.
    pub rows: Vec<TouchedRow>,
    /// Partitions in which it locks or writes.
    pub touched: Vec<SlotIndex>,
    /// Partitions of which tc was told that they are written.
    pub written: Vec<SlotIndex>,
    /// Partitions whose backups hold its images.
    pub prepared: Vec<SlotIndex>,
    /// The end of the rows whose images were sent to backups.
    pub shipped: usize,
    /// Answers of chains that are waited for.
    pub outstanding: u32,
    /// Who is told that the chains are prepared.
    pub prepare_reply_to: Option<Address>,
    /// Why the prepare failed.
    pub prepare_error: Option<Box<Error>>,
    /// What is being done with all of it.
    pub resolution: Option<Resolution>,
    /// The reply of a write that is the whole transaction.
    pub one_phase_reply: Option<(Address, WriteRowsReply)>,
}

impl Participant {
    /// One answer of a chain has come. True when it was the last one.
    pub fn take_reply(&mut self) -> bool {
        require!(self.outstanding > 0, "each chain answers once: {}", self.transaction);
        self.outstanding -= 1;
        self.outstanding == 0
    }

    /// Checks that a write may add versions: undo and redo rely on the order of the rows.
    #[inline]
    pub fn check_write(&self, statement: StatementNumber) {
        require!(self.resolution.is_none(), "no row is written while the transaction ends: {}", self.transaction);
        let last = self.rows.last().map_or(StatementNumber(0), |last| last.statement);
        require!(last <= statement, "statements write in their order: {last:?} before {statement:?}");
    }
}

/// A row with a version of the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TouchedRow {
    pub slot: SlotIndex,
    pub row: RowId,
    pub statement: StatementNumber,
}

/// Commit or undo, on its way through the rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resolution {
    pub kind: ResolutionKind,
    pub reply_to: Address,
    /// The first row that is not done.
    pub next: usize,
    /// The end of the run of rows whose redo record is formed.
    pub recorded: usize,
    /// The end of the rows that are grouped by partition.
    pub ordered: usize,
    /// Whether nothing but locks is left.
    pub is_done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResolutionKind {
    /// Stamp with the number; so many partitions in all.
    Commit { number: CommitNumber, participants: u32 },
    /// As `Commit`, with a number taken and marked here.
    CommitOnePhase { number: CommitNumber },
    /// Undo later statements; with `ends` the transaction is over then.
    Undo { newer_than: StatementNumber, ends: bool },
}

/// A write on its way through its rows.
#[derive(Debug)]
pub(super) struct WriteWork {
    pub request: WriteRows,
    pub slot: SlotIndex,
    pub participant: ParticipantHandle,
    /// Where the item that comes next, or is under way, begins in the input.
    pub item: usize,
    /// The place within a range.
    pub cursor: ScanCursor,
    /// The next row id of a write to all rows.
    pub next_row: RowId,
    /// The item whose range is locked.
    pub locked_item: Option<usize>,
    /// The row that was found and whose lock was waited for.
    pub pending: Option<RowId>,
    /// The row whose lock an insert waited for, because it has or had the key.
    pub pending_insert: Option<RowId>,
    /// Whether every row was looked at.
    pub is_exhausted: bool,
    pub matched: u32,
    pub changed: u32,
    pub diagnostics: Option<Box<Diagnostics>>,
    /// The largest commit number of the rows that were looked at by their keys.
    pub seen: CommitNumber,
    pub follow_ups: Vec<FollowUp>,
    /// Follow-ups that tc was told of already.
    pub follow_ups_told: usize,
    pub batch: Batch,
    /// States of the aggregates of a locking read.
    pub accumulators: Vec<Accumulator>,
}

impl WriteWork {
    /// Whether other partitions have something to do.
    #[inline]
    pub fn has_follow_ups(&self) -> bool {
        self.follow_ups_told > 0 || !self.follow_ups.is_empty()
    }

    /// The answer tells of this version.
    #[inline]
    pub fn note_seen(&mut self, version: Option<RowVersion<'_>>) {
        if let Some(number) = version.and_then(|version| version.commit_number()) {
            self.seen = self.seen.max(number);
        }
    }
}

/// Changes that are evaluated and not yet made.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub changes: Vec<RowChange>,
    /// Images and keys.
    pub bytes: Vec<u8>,
    /// Changes that are made.
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
    /// The primary key changes within the partition: the row is inserted anew, and then deleted under its old key.
    Rekey {
        row: RowId,
        hash: u64,
        key: Range<usize>,
        image: Range<usize>,
    },
}

impl Resolution {
    pub fn new(kind: ResolutionKind, reply_to: Address) -> Resolution {
        Resolution { kind, reply_to, next: 0, recorded: 0, ordered: 0, is_done: false }
    }
}

impl Batch {
    pub fn is_done(&self) -> bool {
        self.done == self.changes.len()
    }

    pub fn clear(&mut self) {
        self.changes.clear();
        self.bytes.clear();
        self.done = 0;
    }

    pub fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
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
