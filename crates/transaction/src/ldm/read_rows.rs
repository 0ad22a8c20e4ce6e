//! Hot path, budget 100 instructions a request besides its rows. Reads at the owner: those that found the guard busy,
//! and those that see their own transaction's writes.

use junctor_kernel::{Context, Outbox};
use junctor_model::error::Result;
use junctor_signals::Signal;
use junctor_signals::read_rows::ReadRows;
use junctor_signals::remarks;

use super::block::LdmBlock;
use super::partition_table::PartitionSlot;
use crate::query::block::{answer, fail, since};
use crate::read::{HOLDS_PER_TURN_MAX, LONG_READ_ROWS, ReadPosition, ReadView, RowReader, plan_is_stale};

impl LdmBlock {
    #[inline]
    pub(super) fn on_read_rows(
        &mut self,
        mut request: ReadRows,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let index = self.partitions.find(request.partition);
        let LdmBlock { partitions, memory, .. } = self;
        let reader = &mut memory.reader;
        let slot = index.and_then(|index| partitions.get(index));
        let Some(slot) = slot.filter(|slot| slot.place == 0) else {
            return fail(request, plan_is_stale(), None, outbox);
        };
        let mut position = ReadPosition::new(&request);
        let begun = request.is_sampled.then(|| context.stamp());
        let looked_at = reader.counts.looked_at();
        let outcome = read(slot, reader, &mut request, &mut position);
        if reader.counts.looked_at() - looked_at >= LONG_READ_ROWS {
            outbox.take_no_more();
        }
        let remarks = remarks::take(&mut reader.emitter.scratch);
        match outcome {
            Ok(()) => answer(request, position, since(begun, context), remarks, outbox),
            Err(error) => fail(request, error, remarks, outbox),
        }
    }
}

fn read(
    slot: &PartitionSlot,
    reader: &mut RowReader,
    request: &mut ReadRows,
    position: &mut ReadPosition,
) -> Result<()> {
    let view = ReadView {
        program: &request.program,
        protocol: request.protocol,
        input: &request.input,
        snapshot: request.snapshot,
        own: request.transaction.is_some().then_some(request.transaction),
        rows_max: request.rows_max,
    };
    let out = &mut request.output;
    reader.emitter.scratch.set_warnings_max(request.warnings_max);
    reader.emitter.begin(&view.program.output)?;
    for _ in 0..HOLDS_PER_TURN_MAX {
        if slot.guard.owner_read(&slot.token, |store| reader.hold(store, &view, position, out))? {
            break;
        }
    }
    if reader.emitter.end(&view.program.output, out) {
        position.rows = 1;
    }
    reader.counts.reads += 1;
    reader.counts.rows_answered += u64::from(position.rows);
    Ok(())
}
