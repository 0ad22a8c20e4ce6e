//! Hot path: at most 150 instructions per transaction and 60 per row, not counting storage.
//!
//! Commits or undoes the rows that a transaction has touched here, in holds (acquisitions of a partition's
//! guard) of bounded length. Then releases the locks and answers tc. A long participant commits in one short
//! hold for each partition: its rows are stamped after the answer, and its locks count as free before they
//! are released.

use junctor_kernel::{Outbox, require};
use junctor_model::id::{CommitNumber, PartitionId, StatementNumber, TransactionId};
use junctor_model::limit::ROWS_PER_HOLD_MAX;
use junctor_signals::commit_transaction::{
    CommitStable, CommitTransactionReply, TransactionPart, UndoTransactionReply,
};
use junctor_signals::{Signal, TcSignal};
use junctor_storage::lock::LockKey;
use junctor_storage::log::commit_blocks;

use super::block::LdmBlock;
use super::deferred::Deferred;
use super::participant_table::ParticipantHandle;
use super::purge::PURGE_TIMER_MS;
use super::state::{CommitDecision, Resolution, ResolutionKind, TouchedRow};

/// Holds of one undo in one turn.
const HOLDS_PER_TURN_MAX: usize = 4;
/// Holds of one commit in one turn. More than of an undo, because every later commit number waits for this
/// one.
pub(super) const COMMIT_HOLDS_PER_TURN_MAX: usize = 8;

/// Holds in one turn that stamp the rows of one partition.
const STAMP_HOLDS_PER_TURN_MAX: usize = 4;

/// Locks of one transaction released in one step.
const LOCKS_RELEASED_MAX: usize = 256;

impl LdmBlock {
    /// Commits a transaction that consists of one write in this partition.
    pub(super) fn commit_one_phase(&mut self, handle: ParticipantHandle, outbox: &mut Outbox<Signal>) {
        let participant = self.participant(handle);
        require!(participant.resolution.is_none(), "a transaction is resolved once");
        require!(participant.touched.len() == 1, "a transaction of one phase has one partition");
        require!(participant.prepared.is_empty(), "a commit of one phase has no backups");
        require!(!participant.is_long(), "a long participant is prepared");
        let Some((reply_to, _)) = participant.one_phase_reply else {
            junctor_kernel::invariant::fail("a commit of one phase answers its write", format_args!("{handle:?}"))
        };
        let has_rows = !participant.rows.is_empty();
        let owner = participant.transaction.tc();
        let number = match has_rows {
            false => CommitNumber(0),
            true => match self.shared.sequence.take(owner) {
                Ok(number) => number,
                Err(error) => junctor_kernel::invariant::fail("a commit number is free", format_args!("{error}")),
            },
        };
        let kind = ResolutionKind::CommitOnePhase { number };
        self.participant(handle).resolution = Some(Resolution::new(kind, reply_to));
        self.run_resolution(handle, outbox);
    }

    /// Continues a resolution until it ends or its share of the turn is used.
    pub(super) fn run_resolution(&mut self, handle: ParticipantHandle, outbox: &mut Outbox<Signal>) {
        let Some(mut resolution) = self.participant(handle).resolution else {
            junctor_kernel::invariant::fail("a resolution runs until it ends", format_args!("{handle:?}"))
        };
        let holds_max = match resolution.kind {
            ResolutionKind::Undo { .. } => HOLDS_PER_TURN_MAX,
            _ => COMMIT_HOLDS_PER_TURN_MAX,
        };
        for _ in 0..holds_max {
            let is_done = match resolution.kind {
                _ if resolution.is_done => Some(true),
                ResolutionKind::Commit(decision) => self.commit_guarded(handle, &mut resolution, decision, outbox),
                ResolutionKind::CommitOnePhase { number } => self.commit_guarded(
                    handle,
                    &mut resolution,
                    CommitDecision { number, participants: 1, position: 0 },
                    outbox,
                ),
                ResolutionKind::Undo { newer_than, ends, .. } => self.undo_guarded(handle, newer_than, ends),
            };
            match is_done {
                Some(true) if self.release_locks(handle, &resolution, outbox) => resolution.is_done = true,
                Some(true) => return self.end_resolution(handle, resolution, outbox),
                Some(false) => {}
                None => break,
            }
        }
        self.participant(handle).resolution = Some(resolution);
        self.defer(Deferred::Resolution(handle), outbox);
    }

    /// Commits rows of one partition in one hold: some rows of a short participant, all rows of a long one.
    /// Returns true when no row is left, `None` when a reader is inside.
    fn commit_guarded(
        &mut self,
        handle: ParticipantHandle,
        resolution: &mut Resolution,
        decision: CommitDecision,
        outbox: &mut Outbox<Signal>,
    ) -> Option<bool> {
        // Set before the first row is committed: inserted rows have no locks that would hide them until the
        // end.
        self.applied = self.applied.max(decision.number);
        if !resolution.is_recorded {
            self.record_commit(handle, decision);
            resolution.is_recorded = true;
        }
        match self.participant(handle).collected {
            Some(_) => self.settle_guarded(handle, decision.number, outbox),
            None => self.stamp_guarded(handle, resolution, decision.number, outbox),
        }
    }

    /// Forms the record that commits the participant: its changes if it is short, otherwise only the number
    /// of its chunks.
    fn record_commit(&mut self, handle: ParticipantHandle, decision: CommitDecision) {
        let CommitDecision { number, participants, .. } = decision;
        let LdmBlock { partitions, participants: table, records, memory, .. } = self;
        let builder = &mut memory.row_builder;
        let participant = table.record(handle);
        let transaction = participant.transaction;
        let is_recorded = number.0 != 0 && records.is_enabled();
        if let Some(collected) = &participant.collected {
            if is_recorded {
                records.begin_chunk_commit(transaction, number, participants, collected.chunks);
                records.end();
            }
            return;
        }
        let rows = &mut participant.rows;
        rows.sort_unstable_by_key(|touched| (touched.slot, touched.row));
        // A participant that only locks has no record. One that wrote and undid all of it has an empty
        // record: tc counts it, so recovery expects it.
        if !is_recorded || participant.written.is_empty() {
            return;
        }
        records.begin_commit(transaction, number, participants);
        for rows in rows.chunk_by(|one, next| one.slot == next.slot) {
            let slot = partitions.slot(rows[0].slot);
            if !slot.is_logged() {
                continue;
            }
            records.begin_section(slot);
            // The owner reads its changes without keeping readers out.
            slot.guard.owner_read(&slot.token, |store| {
                let mut previous = None;
                for touched in rows {
                    // A row that several statements changed is recorded once.
                    if previous.replace(touched.row) != Some(touched.row) {
                        records.add_newest(store, touched.row, transaction, builder);
                    }
                }
            });
        }
        let blocks = commit_blocks(records.end());
        require!(
            blocks <= u64::from(participant.log_blocks()),
            "a participant needs no more blocks of the log than it said: {blocks} for {transaction}"
        );
    }

    /// Stamps rows of one partition, as many as one hold allows.
    fn stamp_guarded(
        &mut self,
        handle: ParticipantHandle,
        resolution: &mut Resolution,
        number: CommitNumber,
        outbox: &mut Outbox<Signal>,
    ) -> Option<bool> {
        let LdmBlock { partitions, participants, purge, .. } = self;
        let participant = participants.record(handle);
        let rows = &participant.rows[resolution.next..];
        let Some(first) = rows.first() else { return Some(true) };
        let slot = partitions.slot(first.slot);
        let mut store = slot.guard.try_enter(&mut slot.token)?;
        let in_partition = rows.partition_point(|touched| touched.slot == first.slot);
        let count = in_partition.min(ROWS_PER_HOLD_MAX);
        for touched in &rows[..count] {
            store.commit(touched.row, participant.transaction, number);
        }
        if store.purge_pending().is_some() {
            purge.add(first.slot, &mut slot.is_purging);
        }
        drop(store);
        resolution.next += count;
        self.start_purge_timer(PURGE_TIMER_MS, outbox);
        Some(false)
    }

    /// Commits all rows of a long participant in one partition, in constant time. They are stamped later.
    fn settle_guarded(
        &mut self,
        handle: ParticipantHandle,
        number: CommitNumber,
        outbox: &mut Outbox<Signal>,
    ) -> Option<bool> {
        let LdmBlock { partitions, participants, .. } = self;
        let participant = participants.record(handle);
        let transaction = participant.transaction;
        let collected = participant.collected.as_mut().map(|collected| &mut collected.rows);
        let Some((index, rows)) = collected.and_then(|rows| rows.last_mut()) else { return Some(true) };
        let slot = partitions.slot(*index);
        let mut store = slot.guard.try_enter(&mut slot.token)?;
        store.settle(transaction, number, std::mem::take(rows));
        drop(store);
        participant.collected.as_mut().and_then(|collected| collected.rows.pop());
        let partition = slot.id;
        if !std::mem::replace(&mut slot.is_stamping, true) {
            self.defer(Deferred::Stamp(partition), outbox);
        }
        Some(false)
    }

    /// Stamps rows of committed transactions in the background. A partition with a reader inside waits for
    /// the next turn.
    pub(super) fn stamp(&mut self, partition: PartitionId, outbox: &mut Outbox<Signal>) {
        let LdmBlock { partitions, purge, .. } = self;
        let Some(index) = partitions.find(partition) else { return };
        let slot = partitions.slot(index);
        let mut has_more = true;
        for _ in 0..STAMP_HOLDS_PER_TURN_MAX {
            // Unlike `try_enter`, this leaves the guard open to readers if it fails.
            let Some(mut store) = slot.guard.try_write(&mut slot.token) else { break };
            has_more = store.stamp_step(ROWS_PER_HOLD_MAX);
            if store.purge_pending().is_some() {
                purge.add(index, &mut slot.is_purging);
            }
            if !has_more {
                break;
            }
        }
        slot.is_stamping = has_more;
        if has_more {
            self.defer(Deferred::Stamp(partition), outbox);
        }
        self.start_purge_timer(PURGE_TIMER_MS, outbox);
    }

    /// Releases some locks of a transaction that is over. Returns true when the reply has to wait for more. A
    /// commit does not wait for its row locks: they count as free, and later steps release them.
    fn release_locks(
        &mut self,
        handle: ParticipantHandle,
        resolution: &Resolution,
        outbox: &mut Outbox<Signal>,
    ) -> bool {
        if matches!(resolution.kind, ResolutionKind::Undo { ends: false, .. }) {
            return false;
        }
        let LdmBlock { participants, locks, waits, .. } = self;
        let transaction = participants.record(handle).transaction;
        let is_undo = matches!(resolution.kind, ResolutionKind::Undo { .. });
        let granted = &mut waits.granted_now;
        let mut has_more = !is_undo && locks.release_ranges(transaction, LOCKS_RELEASED_MAX, granted);
        if !has_more {
            has_more = locks.release_some(transaction, LOCKS_RELEASED_MAX, granted);
            if has_more && !is_undo {
                let waiting = waits.parked.values().map(|parked| parked.waiter);
                locks.end_transaction(transaction, waiting, granted);
                self.defer(Deferred::ReleaseLocks(transaction), outbox);
                has_more = false;
            }
        }
        self.waits.queue_granted();
        has_more
    }

    /// Releases some locks of a transaction that has ended here.
    pub(super) fn release_ended(&mut self, transaction: TransactionId, outbox: &mut Outbox<Signal>) {
        if self.locks.release_ended(transaction, LOCKS_RELEASED_MAX) {
            self.defer(Deferred::ReleaseLocks(transaction), outbox);
        }
    }

    /// Undoes the newest versions, as many as one hold allows. Returns true when none is left, `None` when a
    /// reader is inside.
    fn undo_guarded(&mut self, handle: ParticipantHandle, newer_than: StatementNumber, ends: bool) -> Option<bool> {
        let LdmBlock { partitions, participants, locks, waits, .. } = self;
        let participant = participants.record(handle);
        let is_undone = |touched: &TouchedRow| touched.statement > newer_than;
        let Some(last) = participant.rows.last().copied().filter(is_undone) else { return Some(true) };
        let slot = partitions.slot(last.slot);
        let mut store = slot.guard.try_enter(&mut slot.token)?;
        for _ in 0..ROWS_PER_HOLD_MAX {
            let next = participant.rows.pop_if(|touched| touched.statement > newer_than && touched.slot == last.slot);
            let Some(touched) = next else { break };
            store.undo(touched.row, participant.transaction, newer_than);
            if !ends && store.newest(touched.row).is_none() {
                // The row is gone and its id may be reused; the new row must not appear locked.
                let key = LockKey { partition: slot.id, row: touched.row };
                while locks.mode_held(key, participant.transaction).is_some() {
                    locks.release(key, participant.transaction, &mut waits.granted_now);
                }
            }
        }
        drop(store);
        self.waits.queue_granted();
        Some(false)
    }

    fn end_resolution(&mut self, handle: ParticipantHandle, resolution: Resolution, outbox: &mut Outbox<Signal>) {
        let (own, has_log) = (self.own, self.records.is_enabled());
        let participant = self.participant(handle);
        let transaction = participant.transaction;
        participant.resolution = None;
        match resolution.kind {
            ResolutionKind::Commit(_) | ResolutionKind::CommitOnePhase { .. } => {
                let is_applied = match &participant.collected {
                    Some(collected) => collected.rows.is_empty(),
                    None => resolution.next == participant.rows.len(),
                };
                require!(is_applied, "a commit stamps or settles every row: {transaction}");
            }
            ResolutionKind::Undo { ends: true, .. } => {
                require!(participant.rows.is_empty(), "a transaction that is undone leaves no version: {transaction}");
            }
            ResolutionKind::Undo { .. } => {}
        }
        if let ResolutionKind::Undo { ends: false, newer_than, epoch } = resolution.kind {
            participant.undo_bytes(newer_than);
            let log_blocks = if has_log { participant.log_blocks() } else { 0 };
            let reply = UndoTransactionReply { transaction, epoch, from: own, log_blocks };
            return outbox.send(resolution.reply_to, Signal::Tc(TcSignal::UndoTransactionReply(reply)));
        }
        let has_written = !participant.written.is_empty();
        let one_phase_reply = participant.one_phase_reply.take();
        let has_chunks = participant.collected.as_ref().is_some_and(|collected| collected.chunks > 0);
        if has_chunks && matches!(resolution.kind, ResolutionKind::Undo { .. }) {
            self.records.add_chunk_undo(transaction);
        }
        self.forget(handle);
        match resolution.kind {
            ResolutionKind::Commit(CommitDecision { position, .. }) => {
                self.counted.commits += 1;
                let part = if has_written { TransactionPart::Rows } else { TransactionPart::Locks };
                let reply = CommitTransactionReply { transaction, from: own, part, position };
                outbox.send(resolution.reply_to, reply.to(resolution.reply_to));
            }
            ResolutionKind::Undo { epoch, .. } => {
                self.counted.aborts += 1;
                let reply = UndoTransactionReply { transaction, epoch, from: own, log_blocks: 0 };
                outbox.send(resolution.reply_to, Signal::Tc(TcSignal::UndoTransactionReply(reply)));
            }
            ResolutionKind::CommitOnePhase { number } => {
                self.counted.commits += 1;
                if number.0 != 0 {
                    self.mark_applied(number, outbox);
                }
                if let Some((reply_to, mut reply)) = one_phase_reply {
                    reply.newest = reply.newest.max(number);
                    outbox.send(reply_to, Signal::Tc(TcSignal::WriteRowsReply(reply)));
                }
            }
        }
    }

    /// Marks a commit number as applied and notifies the blocks whose numbers became stable.
    fn mark_applied(&mut self, number: CommitNumber, outbox: &mut Outbox<Signal>) {
        let node = self.own.node;
        let marked = self.shared.sequence.mark_applied(number, &mut |number, owner| {
            let (to, signal) = CommitStable::for_owner(number, owner, node);
            outbox.send(to, signal);
        });
        require!(marked.is_ok(), "commit {number}: {marked:?}");
    }

    /// Removes the record of a transaction that has ended here.
    fn forget(&mut self, handle: ParticipantHandle) {
        let Some(mut participant) = self.participants.remove(handle) else { return };
        for index in participant.touched.drain(..) {
            if self.slot(index).leave() {
                self.free_partition(index);
            }
        }
        self.participants.recycle(participant);
    }
}
