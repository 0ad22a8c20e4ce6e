//! Freeing versions that no snapshot can reach, in the background and in holds of bounded length.

use junctor_kernel::Outbox;
use junctor_model::limit::ROWS_PER_HOLD_MAX;
use junctor_signals::Signal;

use super::block::LdmBlock;
use super::state::Deferred;

impl LdmBlock {
    /// One hold of every partition with something to purge. Those that a reader is in have to wait for the next turn of
    /// the timer: purging is never urgent enough to keep readers out.
    pub(super) fn purge(&mut self, outbox: &mut Outbox<Signal>) {
        let horizon = self.shared.snapshots.horizon();
        let slots = &mut self.slots;
        let mut has_more = false;
        self.purging.retain(|index| {
            let Some(Some(slot)) = slots.get_mut(*index as usize) else { return false };
            let Some(mut store) = slot.guard.try_write(&mut slot.token) else { return true };
            has_more |= store.purge_step(horizon, ROWS_PER_HOLD_MAX).has_more;
            let is_left = store.purge_pending().is_some();
            drop(store);
            slot.is_purging = is_left;
            is_left
        });
        if has_more {
            self.defer(Deferred::Purge, outbox);
        }
    }
}
