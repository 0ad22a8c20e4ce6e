//! Hot path, budget 150 instructions a transaction and 60 a row besides storage. Commits or undoes the rows
//! that a transaction has touched here, in holds of bounded length. Then it releases the locks and answers
//! tc.

use junctor_kernel::{Address, Outbox, require};
use junctor_model::id::{CommitNumber, StatementNumber};
use junctor_model::limit::ROWS_PER_HOLD_MAX;
use junctor_signals::commit_transaction::{CommitStable, CommitTransactionReply, UndoTransactionReply};
use junctor_signals::{Signal, TcSignal};
use junctor_storage::lock::LockKey;

use super::block::LdmBlock;
use super::deferred::Deferred;
use super::participant_table::ParticipantHandle;
use super::purge::PURGE_TIMER_MS;
use super::state::{CommitDecision, Resolution, ResolutionKind, TouchedRow};

/// Holds of one undo in one turn.
const HOLDS_PER_TURN_MAX: usize = 4;
/// Holds of one commit in one turn. More than of an undo, because every later commit number waits for this
/// one.
const COMMIT_HOLDS_PER_TURN_MAX: usize = 8;

/// Rows of a commit that are grouped by partition and recorded in one step.
const ROWS_RECORDED_MAX: usize = 256;

/// Locks of one transaction released in one step.
const LOCKS_RELEASED_MAX: usize = 256;

impl LdmBlock {
    /// Commits a transaction that consists of one write in this partition.
    pub(super) fn commit_one_phase(
        &mut self,
        handle: ParticipantHandle,
        reply_to: Address,
        outbox: &mut Outbox<Signal>,
    ) {
        let participant = self.participant(handle);
        require!(participant.resolution.is_none(), "a transaction is resolved once");
        require!(participant.touched.len() == 1, "a transaction of one phase has one partition");
        require!(participant.prepared.is_empty(), "a commit of one phase has no backups");
        let has_rows = !participant.rows.is_empty();
        let owner = participant.transaction.instance();
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
                ResolutionKind::Commit(decision) => self.hold_commit(handle, &mut resolution, decision, outbox),
                ResolutionKind::CommitOnePhase { number } => {
                    self.hold_commit(handle, &mut resolution, CommitDecision { number, participants: 1 }, outbox)
                }
                ResolutionKind::Undo { newer_than, ends } => self.hold_undo(handle, newer_than, ends),
            };
            match is_done {
                Some(true) if self.release_locks(handle, &resolution) => resolution.is_done = true,
                Some(true) => return self.end_resolution(handle, resolution, outbox),
                Some(false) => {}
                None => break,
            }
        }
        self.participant(handle).resolution = Some(resolution);
        self.defer(Deferred::Resolution(handle), outbox);
    }

    /// Stamps rows of one partition, as many as one hold allows. Returns true when no row is left, `None`
    /// when a reader is inside.
    fn hold_commit(
        &mut self,
        handle: ParticipantHandle,
        resolution: &mut Resolution,
        decision: CommitDecision,
        outbox: &mut Outbox<Signal>,
    ) -> Option<bool> {
        let number = decision.number;
        // Set before the first row is stamped: inserted rows have no locks that would hide them until the
        // end.
        self.applied = self.applied.max(number);
        if resolution.next == resolution.recorded && !self.record_next(handle, resolution, decision, outbox) {
            return Some(true);
        }
        let LdmBlock { partitions, participants, purge, .. } = self;
        let participant = participants.record(handle);
        let rows = &participant.rows[resolution.next..resolution.recorded];
        require!(!rows.is_empty(), "rows are stamped after their record is formed");
        let first = rows[0];
        let slot = partitions.slot(first.slot);
        let mut store = slot.guard.try_enter(&mut slot.token)?;
        let in_partition = rows.partition_point(|touched| touched.slot == first.slot);
        let count = in_partition.min(ROWS_PER_HOLD_MAX);
        for touched in &rows[..count] {
            store.commit(touched.row, participant.transaction, number);
        }
        if store.purge_pending().is_some() && !slot.is_purging {
            slot.is_purging = true;
            purge.partitions.push(first.slot);
        }
        drop(store);
        resolution.next += count;
        self.start_purge_timer(PURGE_TIMER_MS, outbox);
        Some(false)
    }

    /// Groups the next rows by partition and forms their record; false when no row is left. The owner reads
    /// its changes without keeping readers out.
    ///
    /// A short transaction has one record. A long one has a chunk for each group of rows, and a record that
    /// commits the chunks.
    fn record_next(
        &mut self,
        handle: ParticipantHandle,
        resolution: &mut Resolution,
        decision: CommitDecision,
        outbox: &mut Outbox<Signal>,
    ) -> bool {
        let CommitDecision { number, participants } = decision;
        let own = self.own;
        let LdmBlock { partitions, participants: table, records, memory, .. } = self;
        let builder = &mut memory.row_builder;
        let participant = table.record(handle);
        let transaction = participant.transaction;
        let count = participant.rows.len();
        let is_long = count > ROWS_RECORDED_MAX;
        if resolution.recorded == count {
            // A short participant without rows has undone all that it wrote. tc counts it, so recovery
            // expects its record. A participant with locks only is not counted.
            let is_empty = count == 0 && !participant.written.is_empty();
            if number.0 != 0 && records.is_enabled() && (is_long || is_empty) {
                match is_long {
                    true => records.begin_chunk_commit(transaction, number, participants, resolution.chunks),
                    false => records.begin_commit(transaction, number, participants),
                }
                records.end();
            }
            return false;
        }
        let end = count.min(resolution.recorded + ROWS_RECORDED_MAX);
        let rows = &mut participant.rows[resolution.recorded..end];
        rows.sort_unstable_by_key(|touched| (touched.slot, touched.row));
        resolution.recorded = end;
        if !records.is_enabled() {
            return true;
        }
        match is_long {
            true => records.begin_chunk(transaction, resolution.chunks),
            false => records.begin_commit(transaction, number, participants),
        }
        resolution.chunks += 1;
        for rows in rows.chunk_by(|one, next| one.slot == next.slot) {
            let slot = partitions.slot(rows[0].slot);
            records.begin_section(slot);
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
        records.end();
        records.deliver_if_long(own, outbox);
        true
    }

    /// Releases some locks of a transaction that is over. Returns true when more are left.
    fn release_locks(&mut self, handle: ParticipantHandle, resolution: &Resolution) -> bool {
        if matches!(resolution.kind, ResolutionKind::Undo { ends: false, .. }) {
            return false;
        }
        let transaction = self.participant(handle).transaction;
        let has_more = self.locks.release_some(transaction, LOCKS_RELEASED_MAX, &mut self.waits.granted_now);
        self.waits.queue_granted();
        has_more
    }

    /// Undoes the newest versions, as many as one hold allows. Returns true when none is left, `None` when a
    /// reader is inside.
    fn hold_undo(&mut self, handle: ParticipantHandle, newer_than: StatementNumber, ends: bool) -> Option<bool> {
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
                while locks.held(key, participant.transaction).is_some() {
                    locks.release(key, participant.transaction, &mut waits.granted_now);
                }
            }
        }
        drop(store);
        self.waits.queue_granted();
        Some(false)
    }

    fn end_resolution(&mut self, handle: ParticipantHandle, resolution: Resolution, outbox: &mut Outbox<Signal>) {
        let own = self.own;
        let participant = self.participant(handle);
        let transaction = participant.transaction;
        participant.resolution = None;
        match resolution.kind {
            ResolutionKind::Commit(_) | ResolutionKind::CommitOnePhase { .. } => {
                require!(resolution.next == participant.rows.len(), "a commit stamps every row: {transaction}");
            }
            ResolutionKind::Undo { ends: true, .. } => {
                require!(participant.rows.is_empty(), "a transaction that is undone leaves no version: {transaction}");
            }
            ResolutionKind::Undo { .. } => {}
        }
        if let ResolutionKind::Undo { ends: false, .. } = resolution.kind {
            let reply = UndoTransactionReply { transaction, from: own };
            return outbox.send(resolution.reply_to, Signal::Tc(TcSignal::UndoTransactionReply(reply)));
        }
        let one_phase_reply = participant.one_phase_reply.take();
        self.forget(handle);
        match resolution.kind {
            ResolutionKind::Commit(_) => {
                self.counted.commits += 1;
                let reply = CommitTransactionReply { transaction, from: own };
                outbox.send(resolution.reply_to, Signal::Tc(TcSignal::CommitTransactionReply(reply)));
            }
            ResolutionKind::Undo { .. } => {
                self.counted.aborts += 1;
                let reply = UndoTransactionReply { transaction, from: own };
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
