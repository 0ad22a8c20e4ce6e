//! Transactions that wait for tables which a schema change holds, while other transactions wait for their
//! rows.
//!
//! The schema change may wait for one of these others, which would close a cycle. A transaction that waits
//! for tables and blocks others therefore precedes every change that has not begun. A change that has begun
//! waits for nobody. Thus every cycle is resolved without a victim.

use junctor_kernel::Outbox;
use junctor_model::id::TransactionId;
use junctor_signals::block_tables::{HastenTransaction, NoteTableWait};
use junctor_signals::lock_wait::Blocker;
use junctor_signals::{Signal, SqlSignal};

use super::block::TcBlock;

/// Maximum number of transactions hastened in one step. The timer of waits continues with the others.
const HASTENED_PER_STEP: usize = 8;

impl TcBlock {
    pub(super) fn on_note_table_wait(&mut self, signal: NoteTableWait, outbox: &mut Outbox<Signal>) {
        let NoteTableWait { transaction, connection, from, waits } = signal;
        if !waits {
            self.table_waits.remove(&transaction);
            return;
        }
        self.table_waits.insert(transaction, (from, connection));
        self.hasten_awaited(outbox);
    }

    /// Among the blockers of a wait, hastens those that themselves wait for tables.
    #[inline]
    pub(super) fn hasten_blockers(&mut self, blockers: &[Blocker], outbox: &mut Outbox<Signal>) {
        if !self.table_waits.is_empty() {
            let awaited = blockers.iter().map(|blocker| blocker.transaction).take(HASTENED_PER_STEP);
            awaited.for_each(|transaction| self.hasten(transaction, outbox));
        }
    }

    /// Searches all waits of this instance for blockers that wait for tables.
    pub(super) fn hasten_awaited(&mut self, outbox: &mut Outbox<Signal>) {
        let mut awaited = Vec::new();
        for place in 0..self.transactions.high_water() as u32 {
            let handle = self.transactions.handle_at(place);
            let Some(record) = handle.and_then(|handle| self.transactions.get(handle)) else { continue };
            let waits = record.waits.iter().filter(|wait| !wait.cancelled);
            let blockers = waits.flat_map(|wait| &wait.blockers).map(|blocker| blocker.transaction);
            awaited.extend(blockers.filter(|transaction| self.table_waits.contains_key(transaction)));
            if awaited.len() >= HASTENED_PER_STEP {
                break;
            }
        }
        awaited.truncate(HASTENED_PER_STEP);
        awaited.into_iter().for_each(|transaction| self.hasten(transaction, outbox));
    }

    /// Notifies the transaction's sql block, once for each wait for tables.
    fn hasten(&mut self, transaction: TransactionId, outbox: &mut Outbox<Signal>) {
        if let Some((to, connection)) = self.table_waits.remove(&transaction) {
            let signal = HastenTransaction { transaction, connection };
            outbox.send(to, Signal::Sql(SqlSignal::HastenTransaction(signal)));
        }
    }
}
