//! Ends transactions at a backup: commits or undoes the images of all their partitions, in holds of bounded
//! length, and answers tc. Like a primary, it commits many rows in constant time and stamps them later. Every
//! replica ends a transaction alone. Another one may be ahead, so that images of the next writer of a row
//! arrive before the row is resolved here; they wait with the images that they must follow.

use junctor_kernel::{Outbox, require};
use junctor_model::id::{PartitionId, StatementNumber, TransactionId};
use junctor_model::limit::ROWS_PER_HOLD_MAX;
use junctor_signals::commit_transaction::{CommitTransactionReply, TransactionPart, UndoTransactionReply};
use junctor_signals::replicate_rows::ReplicateRows;
use junctor_signals::{Signal, TcSignal, crash_point};

use super::block::LdmBlock;
use super::deferred::Deferred;
use super::purge::PURGE_TIMER_MS;
use super::resolve_transaction::COMMIT_HOLDS_PER_TURN_MAX;
use super::state::{ImagesEnd, ImagesEndKind};

impl LdmBlock {
    /// Begins to commit the images of a transaction. Every replica had them before the number was taken.
    pub(super) fn commit_images(&mut self, end: ImagesEnd, outbox: &mut Outbox<Signal>) {
        let has_images = self.partition_with_images(end.transaction).is_some();
        require!(has_images, "a backup holds the images of a transaction that commits: {}", end.transaction);
        outbox.crash_point(crash_point::IMAGES_APPLY.before());
        self.resolve_images(end, outbox);
    }

    /// Continues until no image is left or the share of the turn is used. A backup that could not keep the
    /// images of a transaction has none to undo.
    pub(super) fn resolve_images(&mut self, mut end: ImagesEnd, outbox: &mut Outbox<Signal>) {
        if let ImagesEndKind::Commit { number, participants, recorded, .. } = &mut end.kind
            && !self.record_images(end.transaction, (*number, *participants), recorded)
        {
            self.records.deliver_if_long(self.own, outbox);
            return self.defer(Deferred::Images(end), outbox);
        }
        let mut holds = 0;
        while let Some(partition) = self.partition_with_images(end.transaction) {
            if holds == COMMIT_HOLDS_PER_TURN_MAX || !self.resolve_some(end, partition, outbox) {
                return self.defer(Deferred::Images(end), outbox);
            }
            holds += 1;
        }
        let ImagesEnd { transaction, reply_to, kind } = end;
        let from = self.own;
        let reply = match kind {
            ImagesEndKind::Commit { position, .. } => {
                outbox.crash_point(crash_point::IMAGES_APPLY.after());
                let part = TransactionPart::Images;
                CommitTransactionReply { transaction, from, part, position }.to(reply_to)
            }
            ImagesEndKind::Undo(epoch) => {
                let reply = UndoTransactionReply { transaction, epoch, from, log_blocks: 0 };
                Signal::Tc(TcSignal::UndoTransactionReply(reply))
            }
        };
        outbox.send(reply_to, reply);
    }

    /// Lets images wait until the rows of this transaction are resolved.
    pub(super) fn wait_for_images(&mut self, transaction: TransactionId, images: ReplicateRows) {
        match self.backed_up.get_mut(&(transaction, images.partition)) {
            Some(before) => before.waiting.push(images),
            None => {
                junctor_kernel::invariant::fail("an open version at a backup is an image", format_args!("{images:?}"))
            }
        }
    }

    fn partition_with_images(&self, transaction: TransactionId) -> Option<PartitionId> {
        let first = self.backed_up.range((transaction, PartitionId::default())..).next();
        first.filter(|((of, _), _)| *of == transaction).map(|((_, partition), _)| *partition)
    }

    /// Resolves the next rows of a partition. Returns false if a reader is inside the guard.
    fn resolve_some(&mut self, end: ImagesEnd, partition: PartitionId, outbox: &mut Outbox<Signal>) -> bool {
        let key = (end.transaction, partition);
        let LdmBlock { partitions, backed_up, purge, .. } = self;
        let Some(kept) = backed_up.get_mut(&key) else { return true };
        let index = kept.slot;
        let slot = partitions.slot(index);
        let Some(mut store) = slot.guard.try_enter(&mut slot.token) else { return false };
        let taken = match end.kind {
            ImagesEndKind::Undo(_) => kept.rows.len().saturating_sub(ROWS_PER_HOLD_MAX),
            ImagesEndKind::Commit { .. } => 0,
        };
        if let Some(copy) = &mut slot.copy {
            let is_commit = matches!(end.kind, ImagesEndKind::Commit { .. });
            for row in &kept.rows[taken..] {
                let newest = store.newest(*row).filter(|newest| newest.is_deleted());
                let deleted_by = newest.and_then(|newest| store.state(&newest).transaction());
                match is_commit {
                    true => copy.commit(*row, end.transaction, deleted_by == Some(end.transaction)),
                    false => copy.undo(*row, end.transaction),
                }
            }
        }
        match end.kind {
            ImagesEndKind::Commit { number, .. } if kept.rows.len() > ROWS_PER_HOLD_MAX => {
                store.settle(end.transaction, number, std::mem::take(&mut kept.rows));
            }
            ImagesEndKind::Commit { number, .. } => {
                kept.rows.drain(..).for_each(|row| store.commit(row, end.transaction, number));
            }
            ImagesEndKind::Undo(_) => {
                let rows = kept.rows.drain(taken..);
                rows.for_each(|row| store.undo(row, end.transaction, StatementNumber(0)));
            }
        }
        if store.purge_pending().is_some() {
            purge.add(index, &mut slot.is_purging);
        }
        let must_stamp = store.has_unstamped() && !std::mem::replace(&mut slot.is_stamping, true);
        drop(store);
        let waiting = match kept.rows.is_empty() {
            true => backed_up.remove(&key).map(|kept| kept.waiting),
            false => None,
        };
        if must_stamp {
            self.defer(Deferred::Stamp(partition), outbox);
        }
        self.start_purge_timer(PURGE_TIMER_MS, outbox);
        if let Some(waiting) = waiting {
            for images in waiting {
                self.defer(Deferred::ReplicateRows(Box::new(images)), outbox);
            }
            let slot = self.slot(index);
            slot.images -= 1;
            let is_free = slot.images == 0;
            if slot.leave() {
                self.free_partition(index);
            }
            if is_free && !self.held_writes.is_empty() {
                self.defer(Deferred::HeldWrites, outbox);
            }
        }
        true
    }
}
