//! UPDATE and DELETE whose rows a query finds.
//!
//! The query locks the rows of the changed tables and returns their keys, with the values that the
//! assignments read from other tables. Each row of a table is kept once. After the last row of the query, the
//! tables are written one after the other by primary key, so the statement never reads its own writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctor_expression::ParametersBuilder;
use junctor_expression::parameter::read_value;
use junctor_gateway::gateway::NO_OPERATION;
use junctor_gateway::{Event, invariant, require};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ColumnNumber;
use junctor_model::key::append_value;
use junctor_model::partition::{key_hash, partition_of};
use junctor_model::schema::TableDefinition;
use junctor_model::value::ValueRef;

use super::drive::{Next, continue_steps, is_ignorable, may_retry, open_transaction_if_none, unexpected_step};
use super::insert::{Locking, send_step};
use super::source::Source;
use super::state::{CompoundState, ModifyWork, Step, StepState, Work};
use crate::execute::completion::{fail, interrupted};
use crate::execute::context::StatementContext;
use crate::execute::operator::KeyTable;
use crate::execute::packets::RowPackets;
use crate::execute::resume::{continue_output, resume, run_requested_step};
use crate::execute::state::PlanInput;
use crate::execute::write::{StatementOutcome, check_writable, level_of};
use crate::mysql_catalog::show::WarningLevel;
use crate::plan::tree::leaf_parameters;
use crate::plan::{ModifyPlan, ModifyTarget, QueryPlan, row_key_columns};
use crate::result::Progress;

/// Maximum number of rows that one step writes.
const ROWS_WRITTEN_MAX: usize = 128;

/// The rows of one table that are to be written.
#[derive(Debug, Default)]
pub(super) struct TargetRows {
    /// The rows that are known, by partition and key.
    known: KeyTable,
    /// For each row: partition, length of the key, length of the parameters, key, and tagged parameters.
    bytes: Vec<u8>,
    /// Number of rows.
    count: u64,
    /// Position of the next row to write.
    next: usize,
}

/// A row to be written.
struct TargetRow<'r> {
    partition: u16,
    key: &'r [u8],
    parameters: &'r [u8],
    /// The position of the row after it.
    end: usize,
}

/// Bytes of the lengths in front of a row.
const ROW_HEADER_BYTES: usize = 10;

impl TargetRows {
    fn add(&mut self, partition: u16, key: &[u8], parameters: &[u8]) {
        let mut identity = partition.to_le_bytes().to_vec();
        identity.extend_from_slice(key);
        if !self.known.insert(&identity, 0).1 {
            return;
        }
        self.bytes.extend_from_slice(&partition.to_le_bytes());
        self.bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&(parameters.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(parameters);
        self.count += 1;
    }

    fn memory(&self) -> usize {
        self.bytes.len() + self.known.memory()
    }

    /// The next row.
    fn peek(&self) -> Option<TargetRow<'_>> {
        let (header, rest) = self.bytes.get(self.next..)?.split_at_checked(ROW_HEADER_BYTES)?;
        let number =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]) as usize;
        let (key, parameters) = (number(2), number(6));
        Some(TargetRow {
            partition: u16::from_le_bytes([header[0], header[1]]),
            key: rest.get(..key)?,
            parameters: rest.get(key..key + parameters)?,
            end: self.next + ROW_HEADER_BYTES + key + parameters,
        })
    }

    fn is_done(&self) -> bool {
        self.next == self.bytes.len()
    }
}

/// An UPDATE or DELETE at one of its steps.
pub(super) struct Modification<'s> {
    pub plan: &'s ModifyPlan,
    pub steps: &'s mut StepState,
    pub work: &'s mut ModifyWork,
}

/// Starts an UPDATE or DELETE whose rows a query finds. The parameters are in the workspace.
pub(crate) fn start_modify(
    context: &mut StatementContext<'_, '_>,
    plan: &Arc<ModifyPlan>,
    input: &PlanInput<'_>,
) -> Progress {
    let writable = plan.targets.iter().try_for_each(|target| check_writable(context.session, &target.table));
    if let Err(error) = writable {
        return fail(context, &error);
    }
    context.session.enter_statement();
    let parameters = context.copy_parameters();
    let in_transaction = context.session.transaction.explicit;
    let steps = StepState {
        before: context.session.transaction.statement(),
        retry: input.input.keep(in_transaction, &parameters, context.turn),
        owns_transaction: open_transaction_if_none(context.session),
        ..StepState::selecting(input.protocol, parameters)
    };
    let targets = plan.targets.iter().map(|_| TargetRows::default()).collect();
    let source = Some(Box::new(Source::new(false)));
    let work = ModifyWork { source, targets, ..ModifyWork::default() };
    let mut state = Box::new(CompoundState { steps, work: Work::Modify(Arc::clone(plan), work) });
    let CompoundState { steps, work: Work::Modify(_, work) } = &mut *state else {
        invariant::fail("an UPDATE has the record of an UPDATE", format_args!("it was made above"));
    };
    let mut modification = Modification { plan, steps, work };
    if let Some(source) = &mut modification.work.source {
        source.start(context, &QueryPlan::Tree(Arc::clone(&plan.query)));
    }
    let next = modification.advance(context);
    continue_steps(context, state, next)
}

/// Continues the query with a reply for it.
pub(super) fn resume_query(
    context: &mut StatementContext<'_, '_>,
    mut state: Box<CompoundState>,
    event: Event,
) -> Progress {
    let CompoundState { steps, work: Work::Modify(plan, work) } = &mut *state else {
        unexpected_step("rows of a query for a statement that has none")
    };
    let Some(source) = &mut work.source else { unexpected_step("rows of a query that has ended") };
    source.run(context, |context| resume(context, event));
    let next = match steps.is_stopped {
        true => Err(interrupted()),
        false => Modification { plan, steps, work }.advance(context),
    };
    continue_steps(context, state, next)
}

/// Continues with the outcome of a write.
pub(super) fn on_outcome(
    context: &mut StatementContext<'_, '_>,
    modification: &mut Modification<'_>,
    outcome: StatementOutcome,
) -> Result<Next> {
    let Modification { plan, work, .. } = modification;
    let Some(target) = plan.targets.get(work.target) else { unexpected_step("a write of no table") };
    if let Some(diagnostics) = outcome.diagnostics {
        context.session.note_diagnostics(level_of(&target.program), *diagnostics);
    }
    match outcome.error {
        Some(error) if plan.ignore && is_ignorable(error.code) => {
            require!(work.writing == 1, "UPDATE IGNORE and DELETE IGNORE write rows one by one");
            work.matched += 1;
            context.session.warn(WarningLevel::Warning, error.code.errno(), error.message);
        }
        Some(error) => return Err(error),
        None => {
            require!(outcome.matched <= work.writing as u64, "a write by keys matches at most the rows of its keys");
            work.matched += outcome.matched;
            work.changed += outcome.changed;
        }
    }
    modification.continue_writing(context)
}

impl Modification<'_> {
    /// Takes the rows that the query has returned, or begins to write.
    fn advance(&mut self, context: &mut StatementContext<'_, '_>) -> Result<Next> {
        loop {
            let Some(source) = &mut self.work.source else { return self.write_next(context) };
            if source.has_called() {
                std::mem::take(&mut self.steps.retry).release(context.turn);
            }
            if let Some(error) = source.take_error() {
                let retries = may_retry(self.steps, &error) && !context.session.transaction.has_begun();
                return if retries { Ok(Next::Retry) } else { Err(error) };
            }
            let packets = source.take_packets();
            let (has_ended, awaits_room) = (source.has_ended(), source.awaits_room());
            self.take_rows(context, &packets)?;
            let Some(source) = &mut self.work.source else { continue };
            if has_ended {
                self.work.source = None;
                // The rows are locked, so the statement no longer starts again.
                std::mem::take(&mut self.steps.retry).release(context.turn);
                continue;
            }
            if !awaits_room {
                source.request_step(context);
                return Ok(Next::Wait);
            }
            source.run(context, continue_output);
        }
    }

    /// Runs the step that the query has requested, or writes the next rows. Returns `None` if no step was
    /// requested.
    pub fn continue_step(&mut self, context: &mut StatementContext<'_, '_>) -> Option<Result<Next>> {
        let (is_requested, can_be_interrupted) = match &mut self.work.source {
            Some(source) => {
                let is_requested = source.inner().step_requested().is_some_and(std::mem::take);
                (is_requested || self.steps.is_stopped, source.can_be_interrupted())
            }
            None => (matches!(self.steps.step, Step::ContinueRows), false),
        };
        if !is_requested || self.steps.is_stopped && can_be_interrupted {
            return None;
        }
        if self.steps.is_stopped {
            return Some(Err(interrupted()));
        }
        Some(match &mut self.work.source {
            Some(source) => {
                source.run(context, run_requested_step);
                self.advance(context)
            }
            None => self.write_next(context),
        })
    }

    /// Keeps the keys and parameters of rows of the query. Error: 1041 if they take too much memory.
    fn take_rows(&mut self, context: &mut StatementContext<'_, '_>, packets: &[u8]) -> Result<()> {
        let memory_max = context.engine.settings.sort_buffer_bytes_max;
        let mut key = Vec::new();
        for packet in RowPackets::new(packets) {
            let mut values = Vec::new();
            let mut rest = &packet[..];
            while !rest.is_empty() {
                let (value, after) = read_value(rest).ok_or_else(Error::broken_reply)?;
                values.push((value, &rest[..rest.len() - after.len()]));
                rest = after;
            }
            for (target, rows) in self.plan.targets.iter().zip(&mut self.work.targets) {
                let keys = values.get(target.first_value..target.first_value + target.key_count);
                let keys = keys.ok_or_else(Error::broken_reply)?;
                // A row of an outer join has no row of this table.
                if keys.first().is_none_or(|(value, _)| value.is_null()) {
                    continue;
                }
                let partition = key_of(&target.table.definition, keys, &mut key);
                let first = target.first_value + target.key_count;
                let parameters = values.get(first..first + target.parameter_count).ok_or_else(Error::broken_reply)?;
                let parameters: Vec<u8> = parameters.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
                rows.add(partition, &key, &parameters);
            }
        }
        let memory: usize = self.work.targets.iter().map(TargetRows::memory).sum();
        if memory > memory_max {
            let message = "Out of memory; the rows that the statement changes exceed the memory limit";
            return Err(Error::new(ErrorCode::OutOfResources, message));
        }
        Ok(())
    }

    /// Writes the next rows: now, or after the thread's other work if many were written.
    fn continue_writing(&mut self, context: &mut StatementContext<'_, '_>) -> Result<Next> {
        self.work.written += self.work.writing;
        if self.work.written < ROWS_WRITTEN_MAX {
            return self.write_next(context);
        }
        self.work.written = 0;
        self.steps.step = Step::ContinueRows;
        self.steps.operation = NO_OPERATION;
        context.request_step();
        Ok(Next::Wait)
    }

    fn write_next(&mut self, context: &mut StatementContext<'_, '_>) -> Result<Next> {
        while let Some(rows) = self.work.targets.get(self.work.target)
            && rows.is_done()
        {
            self.work.targets[self.work.target] = TargetRows::default();
            self.work.target += 1;
            if self.work.target == self.plan.targets.len() {
                return Ok(Next::Done);
            }
        }
        let (Some(target), Some(rows)) =
            (self.plan.targets.get(self.work.target), self.work.targets.get_mut(self.work.target))
        else {
            return Ok(Next::Done);
        };
        let count = if target.one_by_one { 1 } else { ROWS_WRITTEN_MAX };
        self.work.writing = push_rows(context, target, rows, (&self.steps.parameters, count))?;
        send_step(context, self.steps, &target.program, Step::WriteRows, Locking::ROWS)
    }
}

/// Adds rows with their parameters to the inputs. The rows of a partition have the same parameters, because
/// its input has them once. Returns the number of rows.
fn push_rows(
    context: &mut StatementContext<'_, '_>,
    target: &ModifyTarget,
    rows: &mut TargetRows,
    (own, count): (&[u8], usize),
) -> Result<usize> {
    let (inputs, buffers) = (&mut context.engine.work.inputs, &mut *context.turn.buffers);
    inputs.begin(target.table.definition.partition_count, buffers);
    let mut builder = ParametersBuilder::new();
    let mut pushed = 0;
    let mut known: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
    while pushed < count {
        let Some(row) = rows.peek() else { break };
        if known.get(&row.partition).is_some_and(|known| known != row.parameters) {
            break;
        }
        if !target.program.reads_parameters {
            inputs.push_key_at(row.partition, row.key, &[], buffers);
        } else {
            builder.clear();
            let mut rest = row.parameters;
            while !rest.is_empty() {
                let (value, after) = read_value(rest).ok_or_else(Error::broken_reply)?;
                builder.push(value);
                rest = after;
            }
            let parameters = leaf_parameters(own, &mut builder)?;
            inputs.push_key_at(row.partition, row.key, &parameters, buffers);
            known.entry(row.partition).or_insert_with(|| row.parameters.to_vec());
        }
        rows.next = row.end;
        pushed += 1;
    }
    Ok(pushed)
}

/// Encodes the primary key of a row from the values of [`row_key_columns`]. Returns the partition.
fn key_of(definition: &TableDefinition, values: &[(ValueRef<'_>, &[u8])], key: &mut Vec<u8>) -> u16 {
    let columns = row_key_columns(definition);
    let append = |wanted: &[ColumnNumber], key: &mut Vec<u8>| {
        key.clear();
        for index in wanted {
            let column = &definition.columns[usize::from(index.0)];
            let position = columns.iter().position(|column| column == index);
            let value = position.and_then(|position| values.get(position)).map_or(ValueRef::Null, |value| value.0);
            append_value(column.column_type.key_part(), column.nullable, value, key);
        }
    };
    if definition.partition_columns != definition.primary().columns {
        append(&definition.partition_columns, key);
        let partition = partition_of(key_hash(key), definition.partition_count);
        append(&definition.primary().columns, key);
        return partition;
    }
    append(&definition.primary().columns, key);
    partition_of(key_hash(key), definition.partition_count)
}
