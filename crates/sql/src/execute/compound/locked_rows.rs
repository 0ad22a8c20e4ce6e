//! The rows that an UPDATE or DELETE has locked, in the order of the writes.

use junctor_expression::parameter::read_value;
use junctor_model::error::{Error, Result};
use junctor_model::id::ColumnNumber;
use junctor_model::key::append_value;
use junctor_model::partition::{key_hash, partition_of};
use junctor_model::schema::TableDefinition;
use junctor_model::value::ValueRef;
use junctor_signals::program::{Output, WriteAction};

use crate::execute::context::StatementContext;
use crate::execute::engine::Engine;
use crate::execute::packets::{RowPackets, Window};
use crate::execute::received::{ReceivedRows, RowForm, StepBudget};
use crate::execute::sorter::{SortRequest, SortStep, Sorter};
use crate::plan::{OrderedChange, row_key_columns};

/// The locked rows of a change that are not written yet.
#[derive(Debug)]
pub(super) struct LockedRows {
    received: ReceivedRows,
    /// Sorts the received rows; `None` if the change has no order.
    sorter: Option<Box<Sorter>>,
    /// Maximum number of rows still to write.
    window: Window,
    /// Row packets in the order of the writes, of one step.
    packets: Vec<u8>,
}

/// The outcome of a step.
pub(super) enum LockedStep {
    /// Rows were taken.
    Rows,
    /// The rows are not sorted yet.
    More,
    /// All rows were taken before.
    Done,
}

impl LockedRows {
    /// The rows of a locking read. At most `limit` of them are taken.
    pub(super) fn new(engine: &mut Engine, ordered: &OrderedChange, limit: u64, outputs: Vec<Vec<u8>>) -> LockedRows {
        let is_sorted =
            matches!(&ordered.locking_program.action, WriteAction::LockRead { output: Output::Entries { .. }, .. });
        let sorter = is_sorted.then(|| {
            let bytes_max = engine.settings.sort_buffer_bytes_max;
            let request = SortRequest { distinct: false, wanted: limit, counts_all: false };
            Sorter::begin(request, bytes_max, &mut engine.work.sorters)
        });
        let window = Window { offset: 0, remaining: limit };
        LockedRows { received: ReceivedRows::new(outputs), sorter, window, packets: Vec::new() }
    }

    /// Runs a step: adds partition and primary key of the next rows to `rows`, or prepares to.
    ///
    /// # Errors
    /// 1038 if sorting takes too much memory.
    pub(super) fn take_rows(
        &mut self,
        context: &mut StatementContext<'_, '_>,
        definition: &TableDefinition,
        rows: &mut Vec<(u16, Vec<u8>)>,
    ) -> Result<LockedStep> {
        let mut budget = StepBudget::FULL;
        self.packets.clear();
        let step = match &mut self.sorter {
            None => {
                while let Some((part, count)) = self.received.take_part(RowForm::Packets, &mut budget, context.turn) {
                    self.packets.extend_from_slice(self.window.cut(part, count).0);
                }
                let is_done = self.received.is_empty() || self.window.remaining == 0;
                if is_done { SortStep::Done } else { SortStep::More }
            }
            Some(sorter) => {
                while let Some((part, _)) = self.received.take_part(RowForm::Entries, &mut budget, context.turn) {
                    sorter.add_rows(part)?;
                }
                match self.received.is_empty() {
                    true => sorter.emit_rows(&mut self.window, usize::MAX, &mut self.packets),
                    false => SortStep::More,
                }
            }
        };
        if !self.packets.is_empty() {
            append_keys(definition, &self.packets, rows)?;
            return Ok(LockedStep::Rows);
        }
        if step != SortStep::Done {
            return Ok(LockedStep::More);
        }
        if let Some(sorter) = self.sorter.take() {
            sorter.retire(&mut context.engine.work.sorters);
        }
        Ok(LockedStep::Done)
    }
}

/// Adds partition and primary key of each row.
fn append_keys(definition: &TableDefinition, packets: &[u8], rows: &mut Vec<(u16, Vec<u8>)>) -> Result<()> {
    let columns = row_key_columns(definition);
    for packet in RowPackets::new(packets) {
        let mut rest = &packet[..];
        let mut values = Vec::with_capacity(columns.len());
        for _ in &columns {
            let Some((value, after)) = read_value(rest) else { return Err(Error::broken_reply()) };
            values.push(value);
            rest = after;
        }
        let key_of = |wanted: &[ColumnNumber]| {
            let mut key = Vec::new();
            for index in wanted {
                let column = &definition.columns[usize::from(index.0)];
                let position = columns.iter().position(|column| column == index);
                let value = position.map_or(ValueRef::Null, |position| values[position]);
                append_value(column.column_type.key_part(), column.nullable, value, &mut key);
            }
            key
        };
        let key = key_of(&definition.primary().columns);
        let partition = match definition.partition_columns == definition.primary().columns {
            true => partition_of(key_hash(&key), definition.partition_count),
            false => partition_of(key_hash(&key_of(&definition.partition_columns)), definition.partition_count),
        };
        rows.push((partition, key));
    }
    Ok(())
}
