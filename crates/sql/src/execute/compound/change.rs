//! UPDATE and DELETE with LIMIT, and those whose rows are written in an order because one may meet the keys of another: where no order
//! is asked for, that of the primary key is taken once writing all rows at once has met a duplicate.

use std::ops::Range;
use std::sync::Arc;

use junctor_expression::Parameters;
use junctor_expression::parameter::read_value;
use junctor_model::error::{ErrorCode, Result};
use junctor_model::key::append_value;
use junctor_model::partition::{key_hash, partition_of};
use junctor_model::schema::TableDefinition;
use junctor_model::value::ValueRef;
use junctor_signals::diagnostics;
use junctor_signals::program::{Output, WriteAction};

use super::drive::{Next, may_leave_out, may_repeat, settle, take_transaction};
use super::insert::send_step;
use super::returned::check_returned;
use super::state::{ChangeWork, CompoundState, Step, Work};
use crate::engine::Engine;
use crate::execute::context::StatementContext;
use crate::execute::key::Values;
use crate::execute::packets::{RowPackets, Window};
use crate::execute::read::{broken_reply, push_path, wrong_plan};
use crate::execute::sorter::{SortRequest, Sorter};
use crate::execute::state::{Run, Workspace};
use crate::execute::write::{StatementOutcome, level_of};
use crate::mysql_catalog::show::WarningLevel;
use crate::plan::{ChangePlan, OrderedChange, Plan, row_key_columns};
use crate::result::Progress;

/// Locks the rows of a change. The inputs are in the engine's workspace, as for the change itself.
pub(in crate::execute) fn start_ordered_change(
    context: &mut StatementContext<'_, '_>,
    plan: &Arc<Plan>,
    ordered: &OrderedChange,
    run: &Run<'_>,
    limit: Option<u64>,
) -> Progress {
    let mut parameters = context.turn.buffers.take(context.engine.work.parameters.len());
    parameters.extend_from_slice(&context.engine.work.parameters);
    let origin = run.again.keep(context.session.transaction.explicit, &context.engine.work.parameters, context.turn);
    let before = context.session.transaction.statement();
    let mut state = Box::new(CompoundState {
        plan: Arc::clone(plan),
        operation: Default::default(),
        protocol: run.protocol,
        step: Step::Lock,
        owns_transaction: !ordered.after_duplicate && take_transaction(context.session),
        before,
        parameters,
        origin,
        work: Work::Change(ChangeWork {
            rows: Vec::new(),
            next: 0,
            limit: limit.unwrap_or(u64::MAX),
            locked_max: match (limit, ordered.is_first) {
                (Some(limit), true) => u32::try_from(limit).unwrap_or(u32::MAX),
                _ => u32::MAX,
            },
            matched: 0,
            changed: 0,
            outputs: Vec::new(),
        }),
        source: None,
        is_stopped: false,
    });
    let next = match (ordered.after_duplicate, &**plan) {
        (true, Plan::Change(change)) => send_step(context, &mut state, &change.program, Step::WriteAll),
        _ => send_step(context, &mut state, &ordered.lock, Step::Lock),
    };
    settle(context, state, next)
}

/// Writing all rows at once met a duplicate and is undone: they are locked, and then written one by one.
fn begin_in_turn(
    context: &mut StatementContext<'_, '_>,
    state: &mut CompoundState,
    plan: &ChangePlan,
    ordered: &OrderedChange,
) -> Result<Next> {
    std::mem::take(&mut state.origin).release(context.turn);
    state.owns_transaction = take_transaction(context.session);
    state.before = context.session.transaction.statement();
    let Workspace { inputs, scratch, keys, .. } = &mut context.engine.work;
    let sent: &[u8] = if ordered.lock.reads_parameters { &state.parameters } else { &[] };
    let values = Values { parameters: Parameters::from_bytes(&state.parameters), scratch };
    let pushed = push_path(inputs, keys, &plan.table.definition, &plan.path, &values, sent, context.turn);
    // The same was said when the statement began.
    diagnostics::take(&mut context.engine.work.scratch);
    pushed?;
    send_step(context, state, &ordered.lock, Step::Lock)
}

/// A step was answered.
pub(super) fn on_answer(
    context: &mut StatementContext<'_, '_>,
    state: &mut CompoundState,
    plan: &ChangePlan,
    outcome: StatementOutcome,
    outputs: &mut Vec<Vec<u8>>,
) -> Result<Next> {
    let Some(ordered) = &plan.ordered else { return Err(wrong_plan()) };
    let repeats = outcome.error.as_ref().is_some_and(|error| may_repeat(state, error));
    let Work::Change(work) = &mut state.work else { return Err(wrong_plan()) };
    let is_duplicate = outcome.error.as_ref().is_some_and(|error| error.code == ErrorCode::DuplicateEntry);
    let goes_in_turn = is_duplicate && ordered.after_duplicate && matches!(state.step, Step::WriteAll);
    // What is written once more, row by row, says it then.
    if let Some(diagnostics) = outcome.diagnostics.filter(|_| !goes_in_turn) {
        context.session.note_diagnostics(level_of(&ordered.write), *diagnostics);
    }
    if let Some(error) = outcome.error {
        let is_left_out = ordered.ignore && may_leave_out(error.code);
        return match state.step {
            Step::WriteAll if goes_in_turn => begin_in_turn(context, state, plan, ordered),
            Step::WriteAll if ordered.after_duplicate && repeats => Ok(Next::Again),
            Step::WriteOne if is_left_out => {
                work.matched += 1;
                context.session.warn(WarningLevel::Warning, error.code.errno(), error.message);
                next_row(context, state, plan, ordered)
            }
            // Its own transaction holds nothing yet, so it may be begun again.
            Step::Lock if repeats && !context.session.transaction.has_begun() => Ok(Next::Again),
            _ => Err(error),
        };
    }
    match state.step {
        Step::Lock => {
            work.rows = locked_rows(context.engine, plan, ordered, work.limit, outputs)?;
            match (work.rows.is_empty(), ordered.in_turn) {
                (true, _) => Ok(Next::Done),
                (false, true) => write_one(context, state, plan, ordered),
                (false, false) => {
                    let all = 0..work.rows.len();
                    write_rows(context, state, plan, ordered, (all, Step::WriteAll))
                }
            }
        }
        Step::WriteAll => {
            (work.matched, work.changed) = (outcome.matched, outcome.changed);
            check_returned(outputs.iter().map(Vec::len).sum())?;
            work.outputs = std::mem::take(outputs);
            Ok(Next::Done)
        }
        Step::WriteOne => {
            work.matched += outcome.matched;
            work.changed += outcome.changed;
            // The rows of all go into one buffer.
            let mut returned = work.outputs.pop().unwrap_or_default();
            for output in outputs.drain(..) {
                returned.extend_from_slice(&output);
                context.turn.buffers.give(output);
            }
            check_returned(returned.len())?;
            work.outputs.push(returned);
            next_row(context, state, plan, ordered)
        }
        _ => Err(wrong_plan()),
    }
}

/// The rows to write: partition and primary key of each, in order.
fn locked_rows(
    engine: &mut Engine,
    plan: &ChangePlan,
    ordered: &OrderedChange,
    limit: u64,
    outputs: &[Vec<u8>],
) -> Result<Vec<(u16, Vec<u8>)>> {
    let definition = &plan.table.definition;
    let mut rows = Vec::new();
    let WriteAction::LockRead { output: Output::Entries { .. }, .. } = &ordered.lock.action else {
        for output in outputs {
            take_rows(definition, output, limit, &mut rows)?;
        }
        return Ok(rows);
    };
    let bytes_max = engine.settings.sort_buffer_bytes_max;
    let mut sorter = Sorter::begin(
        SortRequest { distinct: false, wanted: limit, counts_all: false },
        bytes_max,
        &mut engine.work.sorters,
    );
    outputs.iter().try_for_each(|output| sorter.take(output))?;
    let mut packets = Vec::new();
    sorter.give_all(Window { offset: 0, remaining: limit }, &mut packets);
    sorter.retire(&mut engine.work.sorters);
    take_rows(definition, &packets, limit, &mut rows)?;
    Ok(rows)
}

fn take_rows(definition: &TableDefinition, packets: &[u8], limit: u64, rows: &mut Vec<(u16, Vec<u8>)>) -> Result<()> {
    let columns = row_key_columns(definition);
    for packet in RowPackets::new(packets) {
        if rows.len() as u64 >= limit {
            break;
        }
        let mut rest = &packet[..];
        let mut values = Vec::with_capacity(columns.len());
        for _ in &columns {
            let Some((value, after)) = read_value(rest) else { return Err(broken_reply()) };
            values.push(value);
            rest = after;
        }
        let key_of = |wanted: &[junctor_model::id::ColumnIndex]| {
            let mut key = Vec::new();
            for index in wanted {
                let column = &definition.columns[usize::from(index.0)];
                let place = columns.iter().position(|column| column == index);
                let value = place.map_or(ValueRef::Null, |place| values[place]);
                append_value(column.column_type, column.nullable, value, &mut key);
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

fn next_row(
    context: &mut StatementContext<'_, '_>,
    state: &mut CompoundState,
    plan: &ChangePlan,
    ordered: &OrderedChange,
) -> Result<Next> {
    let Work::Change(work) = &mut state.work else { return Err(wrong_plan()) };
    work.next += 1;
    if work.next == work.rows.len() { Ok(Next::Done) } else { write_one(context, state, plan, ordered) }
}

fn write_one(
    context: &mut StatementContext<'_, '_>,
    state: &mut CompoundState,
    plan: &ChangePlan,
    ordered: &OrderedChange,
) -> Result<Next> {
    let Work::Change(work) = &state.work else { return Err(wrong_plan()) };
    let range = work.next..work.next + 1;
    write_rows(context, state, plan, ordered, (range, Step::WriteOne))
}

/// Writes some of the rows with one statement.
fn write_rows(
    context: &mut StatementContext<'_, '_>,
    state: &mut CompoundState,
    plan: &ChangePlan,
    ordered: &OrderedChange,
    (range, step): (Range<usize>, Step),
) -> Result<Next> {
    let Work::Change(work) = &mut state.work else { return Err(wrong_plan()) };
    let Some(rows) = work.rows.get(range) else { return Err(wrong_plan()) };
    let sent: &[u8] = if ordered.write.reads_parameters { &state.parameters } else { &[] };
    let (inputs, buffers) = (&mut context.engine.work.inputs, &mut *context.turn.buffers);
    inputs.begin(plan.table.definition.partition_count, buffers);
    for (partition, key) in rows {
        inputs.push_key_at(*partition, key, sent, buffers);
    }
    send_step(context, state, &ordered.write, step)
}
