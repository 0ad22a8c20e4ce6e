//! Hot path: at most 100 instructions per request, not counting its rows.
//!
//! Reads that the owner itself runs: those whose query block found the partition's guard (its read-write
//! lock) busy, and those that must see their own transaction's writes.

use junctor_kernel::{Context, Outbox};
use junctor_model::error::Error;
use junctor_signals::Signal;
use junctor_signals::diagnostics;
use junctor_signals::read_rows::ReadRows;
use junctor_signals::start_epoch::lost_with_node;

use super::block::LdmBlock;
use super::partition_table::PartitionSlot;
use crate::query::block::{answer, fail, sampled_elapsed_ns};
use crate::read::{GuardedReadOutcome, LONG_READ_ROWS, ReadPosition};

impl LdmBlock {
    #[inline]
    pub(super) fn on_read_rows(
        &mut self,
        mut request: ReadRows,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let index = self.partitions.find(request.partition);
        // A node without data may not know yet that the tc is lost, or its request was on its way for long.
        if request.transaction.is_some() && !self.participants.is_open(request.transaction) {
            return fail(request, lost_with_node(), None, outbox);
        }
        let LdmBlock { partitions, memory, .. } = self;
        let reader = &mut memory.reader;
        let slot = index.and_then(|index| partitions.get(index));
        // A backup has every version that a snapshot may see, and none that is not prepared.
        let is_here = |slot: &&PartitionSlot| slot.chain_position == 0 || !request.transaction.is_some();
        let Some(slot) = slot.filter(is_here) else {
            return fail(request, Error::table_definition_changed(), None, outbox);
        };
        let mut position = ReadPosition::new(&request);
        let begun = request.is_sampled.then(|| context.clock_now());
        let examined = reader.counts.examined();
        let outcome = reader.step(&mut request, &mut position, context, |reader, view, position, out| {
            let is_done =
                slot.guard.owner_read(&slot.token, |store| reader.read_guarded(store, view, position, out))?;
            Ok(GuardedReadOutcome::ended(is_done))
        });
        if reader.counts.examined() - examined >= LONG_READ_ROWS {
            outbox.stop_intake();
        }
        let diagnostics = diagnostics::take(&mut reader.emitter.scratch);
        match outcome {
            Ok(_) => answer(request, position, sampled_elapsed_ns(begun, context), diagnostics, outbox),
            Err(error) => fail(request, error, diagnostics, outbox),
        }
    }
}
