//! Hot path, budget 200 instructions a point read besides its key: queries of a table. Rows are said as they come, or sorted, or
//! merged from partial states.

use std::sync::Arc;

use junctor_expression::aggregate::Accumulator;
use junctor_expression::{Expression, Parameters, ParametersBuilder, Scratch};
use junctor_gateway::event::Next;
use junctor_gateway::gateway::ReadOptions;
use junctor_gateway::{RowBound, TurnContext};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ColumnIndex;
use junctor_model::row::RowView;
use junctor_model::value::ValueRef;
use junctor_signals::diagnostics::Diagnostics;
use junctor_signals::program::{Aggregate, Projection, ReadProgram, RowProtocol};
use junctor_signals::read_rows::OperationId;

use super::completion::{fail, finish};
use super::context::StatementContext;
use super::key::{Values, push_keys};
use super::packets::{Window, append_row};
use super::sorter::{SortRequest, SortStep, Sorter};
use super::state::{Execution, GatherState, Origin, ReadState, Run, SortedState, Workspace};
use super::write::{check_writable, locks_exclusively, start_lock_read};
use crate::bind::{message, operand_type};
use crate::engine::Engine;
use crate::mysql_catalog::show::WarningLevel;
use crate::plan::{AccessPath, Gather, LimitTemplate, Plan, Quantity, SelectPlan};
use crate::result::{OUTPUT_PART_BYTES, Progress};

/// Partitions of which each may be the first to answer, so that each says the columns.
pub(super) const HEADERS_MAX: usize = 4;
/// The most room that is made in advance; what is longer grows.
const ROOM_BYTES_MAX: usize = 64 * 1024;

/// Rows of one partition, as they came.
pub(crate) struct PartRows {
    pub output: Vec<u8>,
    /// Whether the columns stand before the rows.
    pub is_prefixed: bool,
    pub count: u32,
    pub next: Next,
}

/// Starts a query. The parameters are in the engine's workspace.
pub(crate) fn start_select(context: &mut StatementContext<'_, '_>, plan: &Arc<Plan>, run: &Run<'_>) -> Progress {
    match try_start(context, plan, run) {
        Ok(Start::Sent) => {
            context.session.note_evaluated(WarningLevel::Warning, &mut context.engine.work.scratch);
            Progress::Waiting
        }
        Ok(Start::Empty(state)) => {
            context.session.note_evaluated(WarningLevel::Warning, &mut context.engine.work.scratch);
            let progress = settle(context, *state);
            context.engine.work.inputs.clear(context.turn.buffers);
            progress
        }
        Err(error) => {
            context.session.note_evaluated(WarningLevel::Warning, &mut context.engine.work.scratch);
            context.engine.work.inputs.clear(context.turn.buffers);
            fail(context, &error)
        }
    }
}

enum Start {
    Sent,
    /// No row can be found.
    Empty(Box<ReadState>),
}

fn try_start(context: &mut StatementContext<'_, '_>, plan: &Arc<Plan>, run: &Run<'_>) -> Result<Start> {
    let Plan::Select(select) = &**plan else { return Err(wrong_plan()) };
    if select.lock.as_ref().is_some_and(|lock| locks_exclusively(lock)) {
        check_writable(context.session)?;
    }
    context.session.enter_statement();
    let parameters = Parameters::from_bytes(&context.engine.work.parameters);
    let window = window_of(select.limit.as_ref(), parameters, context.session.variables.select_limit)?;
    let guarded = !all_true(&select.guards, parameters, &context.engine.work.scratch)?;
    let is_empty =
        window.remaining == 0 && !matches!(select.gather, Gather::Aggregate { .. }) && !select.calc_found_rows;
    let mut state = ReadState {
        plan: Arc::clone(plan),
        operation: OperationId::default(),
        protocol: run.protocol,
        is_lookup: false,
        header_said: false,
        header_bytes: 0,
        awaits_room: false,
        rows_max: rows_max(select, &window),
        window,
        rows: 0,
        gather: gather_state(context.engine, select, &window),
        parameters: Vec::new(),
        references: Vec::new(),
        origin: Origin::None,
    };
    if is_empty || guarded {
        return Ok(Start::Empty(Box::new(state)));
    }
    let is_lookup = push_inputs(&mut context.engine.work, select, context.turn)?;
    if context.engine.work.inputs.is_empty() {
        return Ok(Start::Empty(Box::new(state)));
    }
    if is_lookup || needs_parameters(&select.gather) {
        state.parameters = context.turn.buffers.take(context.engine.work.parameters.len());
        state.parameters.extend_from_slice(&context.engine.work.parameters);
    }
    if let Some(lock) = &select.lock {
        start_lock_read(context, plan, lock, state, run)?;
        return Ok(Start::Sent);
    }
    state.is_lookup = is_lookup;
    send_first_read(context, select, state, run)?;
    Ok(Start::Sent)
}

/// Sends the read of the rows, or of the entries that name them.
fn send_first_read(
    context: &mut StatementContext<'_, '_>,
    select: &SelectPlan,
    mut state: ReadState,
    run: &Run<'_>,
) -> Result<()> {
    let program = match &select.path {
        AccessPath::UniqueKeys { lookup, .. } => {
            // Entry and row are two reads, and must be of one moment.
            context.engine.gateway.take_snapshot(&mut context.session.transaction)?;
            lookup
        }
        _ => &select.program,
    };
    let bound = RowBound::Partition(if state.is_lookup { u32::MAX } else { state.rows_max });
    state.origin = run.again.keep(context.session.transaction.explicit, &context.engine.work.parameters, context.turn);
    say_header_in_advance(context, select, program, &mut state);
    let sent = context.engine.gateway.read(
        context.session.connection,
        &mut context.session.transaction,
        program,
        ReadOptions { protocol: run.protocol, bound, warnings_max: context.session.variables.warnings_max },
        &mut context.engine.work.inputs,
        context.turn,
    );
    match sent {
        Ok(operation) => {
            state.operation = operation;
            context.session.execution = Execution::Read(state);
            Ok(())
        }
        Err(error) => {
            release_snapshot(context);
            Err(error)
        }
    }
}

/// Where few partitions are asked, the buffers of their replies get the columns in front, and room for the other parts: what
/// comes first becomes the client's answer as it is. Where many are, the answer gets room only.
fn say_header_in_advance(
    context: &mut StatementContext<'_, '_>,
    select: &SelectPlan,
    program: &ReadProgram,
    state: &mut ReadState,
) {
    if state.is_lookup || !matches!(state.gather, GatherState::Stream) || context.sink.pending_bytes() > 0 {
        return;
    }
    let inputs = &context.engine.work.inputs;
    let Some(input) = inputs.last() else { return };
    let room = context.engine.gateway.reply_room(program, input);
    let input_count = inputs.len();
    make_room(context, room * input_count);
    if input_count > HEADERS_MAX {
        return;
    }
    context.sink.header(&select.header, &context.session.completion());
    let output = std::mem::take(context.sink.output());
    state.header_bytes = output.len();
    context.engine.work.inputs.set_output(output);
}

/// Gives an output that is still empty room for so many bytes, within reason.
#[inline]
fn make_room(context: &mut StatementContext<'_, '_>, bytes: usize) {
    let output = context.sink.output();
    let bytes = bytes.min(ROOM_BYTES_MAX);
    if output.is_empty() && output.capacity() < bytes {
        let roomy = context.turn.buffers.take(bytes);
        context.turn.buffers.give(std::mem::replace(output, roomy));
    }
}

/// Fills the inputs; true when they are for the entries of a unique index.
fn push_inputs(work: &mut Workspace, select: &SelectPlan, turn: &mut TurnContext<'_>) -> Result<bool> {
    let Workspace { inputs, parameters, scratch, keys, key, .. } = work;
    let sent: &[u8] = if select.program.reads_parameters { parameters } else { &[] };
    let values = Values { parameters: Parameters::from_bytes(parameters), scratch };
    let definition = &select.table.definition;
    match &select.path {
        AccessPath::UniqueKeys { lookup, keys: template, .. } => {
            inputs.begin(lookup.table.definition.partition_count, turn.buffers);
            keys.keys(definition, template, &values, &mut |_, _, entry| {
                // The key of an entry is the key bytes as a binary string.
                key.clear();
                junctor_model::key::append_escaped(entry, key);
                inputs.push_key(key, &[], turn.buffers);
            })?;
            Ok(true)
        }
        path => {
            push_path(inputs, keys, definition, path, &values, sent, turn)?;
            Ok(false)
        }
    }
}

/// Fills the inputs for a way that takes one step.
pub(super) fn push_path(
    inputs: &mut junctor_gateway::PartitionInputs,
    keys: &mut super::KeyMaker,
    definition: &junctor_model::schema::TableDefinition,
    path: &AccessPath,
    values: &Values<'_>,
    sent: &[u8],
    turn: &mut TurnContext<'_>,
) -> Result<()> {
    inputs.begin(definition.partition_count, turn.buffers);
    match path {
        AccessPath::Nothing | AccessPath::UniqueKeys { .. } => Ok(()),
        AccessPath::PrimaryKeys(template) => push_keys(keys, definition, template, values, sent, inputs, turn),
        AccessPath::Ranges { ranges, descending, scope, .. } => {
            let Some(scope) = keys.scope(definition, scope, values)? else { return Ok(()) };
            keys.ranges(definition, ranges, *descending, values, &mut |range| {
                inputs.push_range(scope, range, sent, turn.buffers);
            })
        }
        AccessPath::AllRows(scope) => {
            if let Some(scope) = keys.scope(definition, scope, values)? {
                inputs.push_all(scope, sent, turn.buffers);
            }
            Ok(())
        }
    }
}

/// Whether conditions that need no row are all true.
#[inline]
pub(super) fn all_true(guards: &[Expression], parameters: Parameters<'_>, scratch: &Scratch) -> Result<bool> {
    for guard in guards {
        if !guard.is_true(None, parameters, scratch)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// OFFSET and LIMIT of this execution. Error: 1210 for a parameter that is no number of rows.
pub(super) fn window_of(
    limit: Option<&LimitTemplate>,
    parameters: Parameters<'_>,
    select_limit: u64,
) -> Result<Window> {
    let Some(limit) = limit else { return Ok(Window { offset: 0, remaining: select_limit }) };
    Ok(Window { offset: rows_of(limit.offset, parameters)?, remaining: rows_of(limit.count, parameters)? })
}

/// A number of rows in this execution. Error: 1210 for a parameter that is none.
pub(super) fn rows_of(quantity: Quantity, parameters: Parameters<'_>) -> Result<u64> {
    match quantity {
        Quantity::Rows(rows) => Ok(rows),
        Quantity::Parameter(ordinal) => match parameters.get(ordinal) {
            ValueRef::Int(rows) if rows >= 0 => Ok(rows as u64),
            ValueRef::UInt(rows) => Ok(rows),
            _ => Err(message::wrong_arguments("mysqld_stmt_execute")),
        },
    }
}

fn rows_max(select: &SelectPlan, window: &Window) -> u32 {
    let limited = match select.gather {
        Gather::Stream => true,
        Gather::Sort { ordered, distinct } => ordered && !distinct,
        Gather::Aggregate { .. } => false,
    };
    if limited && !select.calc_found_rows { window.rows_needed().min(u64::from(u32::MAX)) as u32 } else { u32::MAX }
}

pub(super) fn gather_state(engine: &mut Engine, select: &SelectPlan, window: &Window) -> GatherState {
    match &select.gather {
        Gather::Stream => GatherState::Stream,
        Gather::Sort { distinct, .. } => {
            let wanted = if select.calc_found_rows { u64::MAX } else { window.rows_needed() };
            let counts_all = *distinct && select.calc_found_rows;
            let bytes_max = engine.settings.sort_buffer_bytes_max;
            GatherState::Sort(Sorter::begin(
                SortRequest { distinct: *distinct, wanted, counts_all },
                bytes_max,
                &mut engine.work.sorters,
            ))
        }
        Gather::Aggregate { aggregates, .. } => GatherState::Aggregate(accumulators(aggregates)),
    }
}

/// The states of aggregates over no rows.
pub(super) fn accumulators(aggregates: &[Aggregate]) -> Vec<Accumulator> {
    aggregates.iter().map(|aggregate| Accumulator::new(aggregate.kind, operand_type(aggregate))).collect()
}

/// Whether the row computed from aggregates may read the statement's own parameters.
fn needs_parameters(gather: &Gather) -> bool {
    matches!(gather, Gather::Aggregate { first_parameter, .. } if *first_parameter > 0)
}

/// Rows of a reply.
pub(crate) fn on_rows(context: &mut StatementContext<'_, '_>, mut rows: PartRows) -> Progress {
    let Execution::Read(mut state) = std::mem::take(&mut context.session.execution) else {
        context.turn.buffers.give(rows.output);
        return Progress::Waiting;
    };
    let taken = take_rows(context, &mut state, &mut rows);
    let PartRows { output, next, .. } = rows;
    context.turn.buffers.give(output);
    if let Err(error) = taken {
        if next != Next::Done {
            context.engine.gateway.end_read(state.operation, context.turn);
        }
        return give_up(context, state, &error);
    }
    match next {
        Next::Done if state.is_lookup => start_row_read(context, state),
        Next::Done => settle(context, state),
        _ if is_satisfied(&state) => {
            context.engine.gateway.end_read(state.operation, context.turn);
            settle(context, state)
        }
        Next::Coming => {
            context.session.execution = Execution::Read(state);
            Progress::Waiting
        }
        Next::Ask => go_on(context, state),
    }
}

/// Every partition has answered and some have more.
fn go_on(context: &mut StatementContext<'_, '_>, mut state: ReadState) -> Progress {
    state.awaits_room = !context.session.interrupted && context.sink.pending_bytes() >= OUTPUT_PART_BYTES;
    let operation = state.operation;
    let awaits_room = state.awaits_room;
    context.session.execution = Execution::Read(state);
    if awaits_room {
        return Progress::MoreOutput;
    }
    context.engine.gateway.continue_read(operation, context.turn);
    Progress::Waiting
}

/// Whether the rows so far are all that are wanted.
fn is_satisfied(state: &ReadState) -> bool {
    let streams = matches!(state.gather, GatherState::Stream);
    let counts_on = matches!(&*state.plan, Plan::Select(select) if select.calc_found_rows);
    streams && !state.is_lookup && state.window.remaining == 0 && !counts_on
}

#[inline]
fn take_rows(context: &mut StatementContext<'_, '_>, state: &mut ReadState, reply: &mut PartRows) -> Result<()> {
    let PartRows { output, is_prefixed, count: rows, .. } = reply;
    if state.is_lookup {
        return take_references(state, output);
    }
    match &mut state.gather {
        GatherState::Stream => {
            let Plan::Select(select) = &*state.plan else { return Err(wrong_plan()) };
            let header_bytes = if *is_prefixed { state.header_bytes } else { 0 };
            let says_header = !std::mem::replace(&mut state.header_said, true);
            if says_header && !*is_prefixed {
                context.sink.header(&select.header, &context.session.completion());
            }
            let (packets, taken) = state.window.cut(&output[header_bytes..], u64::from(*rows));
            let is_whole = header_bytes + packets.len() == output.len() && (says_header || header_bytes == 0);
            if is_whole && context.sink.pending_bytes() == 0 {
                std::mem::swap(context.sink.output(), output);
            } else {
                context.sink.row_packets(if says_header { &output[..header_bytes] } else { &[] });
                context.sink.row_packets(packets);
            }
            state.rows += if select.calc_found_rows { u64::from(*rows) } else { taken };
            Ok(())
        }
        GatherState::Sort(sorter) => sorter.take(output),
        GatherState::Aggregate(accumulators) => merge_states(accumulators, output),
    }
}

/// Merges runs of partial states.
pub(super) fn merge_states(accumulators: &mut [Accumulator], mut output: &[u8]) -> Result<()> {
    while !output.is_empty() {
        for accumulator in accumulators.iter_mut() {
            let (length, rest) = output.split_first_chunk().ok_or_else(broken_reply)?;
            let length = u32::from_le_bytes(*length) as usize;
            let (state, rest) = rest.split_at_checked(length).ok_or_else(broken_reply)?;
            accumulator.merge_partial(state)?;
            output = rest;
        }
    }
    Ok(())
}

/// Notes the rows that entries of a unique index name, as `[length u16] reference`.
fn take_references(state: &mut ReadState, mut output: &[u8]) -> Result<()> {
    let Plan::Select(select) = &*state.plan else { return Err(wrong_plan()) };
    let AccessPath::UniqueKeys { lookup, .. } = &select.path else { return Err(wrong_plan()) };
    while let Some((length, rest)) = output.split_first_chunk() {
        let (image, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(broken_reply)?;
        if let ValueRef::Bytes(reference) = RowView::new(&lookup.table.row_format, image).column(ColumnIndex(1)) {
            state.references.extend_from_slice(&(reference.len() as u16).to_le_bytes());
            state.references.extend_from_slice(reference);
        }
        output = rest;
    }
    Ok(())
}

/// The second step of a read by a unique index: the rows that the entries name.
fn start_row_read(context: &mut StatementContext<'_, '_>, mut state: ReadState) -> Progress {
    state.is_lookup = false;
    let plan = Arc::clone(&state.plan);
    let Plan::Select(select) = &*plan else { return fail(context, &wrong_plan()) };
    let inputs = &mut context.engine.work.inputs;
    inputs.begin(select.table.definition.partition_count, context.turn.buffers);
    let sent: &[u8] = if select.program.reads_parameters { &state.parameters } else { &[] };
    let mut rest = state.references.as_slice();
    while let Some((length, after)) = rest.split_first_chunk() {
        let Some((reference, after)) = after.split_at_checked(usize::from(u16::from_le_bytes(*length))) else { break };
        if let Some((partition, key)) = reference.split_first_chunk() {
            let partition = u16::from_be_bytes(*partition);
            if partition < select.table.definition.partition_count {
                inputs.push_key_at(partition, key, sent, context.turn.buffers);
            }
        }
        rest = after;
    }
    if inputs.is_empty() {
        return settle(context, state);
    }
    let sent = context.engine.gateway.read(
        context.session.connection,
        &mut context.session.transaction,
        &select.program,
        ReadOptions {
            protocol: state.protocol,
            bound: RowBound::Partition(state.rows_max),
            warnings_max: context.session.variables.warnings_max,
        },
        inputs,
        context.turn,
    );
    match sent {
        Ok(operation) => {
            state.operation = operation;
            context.session.execution = Execution::Read(state);
            Progress::Waiting
        }
        Err(error) => {
            context.engine.work.inputs.clear(context.turn.buffers);
            give_up(context, state, &error)
        }
    }
}

/// All rows are here.
pub(super) fn settle(context: &mut StatementContext<'_, '_>, mut state: ReadState) -> Progress {
    release(context, &mut state);
    let plan = Arc::clone(&state.plan);
    let Plan::Select(select) = &*plan else { return fail(context, &wrong_plan()) };
    let parameters = std::mem::take(&mut state.parameters);
    let progress = match state.gather {
        GatherState::Stream => {
            if !state.header_said {
                context.sink.header(&select.header, &context.session.completion());
            }
            finish(context, state.rows)
        }
        GatherState::Sort(sorter) => {
            make_room(context, sorter.bytes());
            context.sink.header(&select.header, &context.session.completion());
            let counts_all = select.calc_found_rows && matches!(select.gather, Gather::Sort { distinct: true, .. });
            let counted = (select.calc_found_rows && !counts_all).then(|| sorter.len() as u64);
            let (window, asked) = (state.window, state.window);
            context.session.execution = Execution::Sorted(SortedState {
                sorter,
                window,
                asked,
                counted,
                counts_all,
                awaits_room: false,
                step_requested: false,
            });
            pump(context)
        }
        GatherState::Aggregate(accumulators) => {
            let mut window = state.window;
            let row =
                aggregate_row(&select.gather, &accumulators, &parameters, state.protocol, &context.engine.work.scratch);
            context.session.note_evaluated(WarningLevel::Warning, &mut context.engine.work.scratch);
            match row {
                Err(error) => fail(context, &error),
                Ok(packet) => {
                    context.sink.header(&select.header, &context.session.completion());
                    let (_, taken) = window.take(1);
                    if taken == 1 {
                        context.sink.row_packets(&packet);
                    }
                    finish(context, taken)
                }
            }
        }
    };
    context.turn.buffers.give(parameters);
    progress
}

fn aggregate_row(
    gather: &Gather,
    accumulators: &[Accumulator],
    parameters: &[u8],
    protocol: RowProtocol,
    scratch: &Scratch,
) -> Result<Vec<u8>> {
    let Gather::Aggregate { projection, first_parameter, .. } = gather else { return Err(wrong_plan()) };
    let mut builder = ParametersBuilder::new();
    let own = Parameters::from_bytes(parameters);
    for ordinal in 0..*first_parameter {
        builder.push(own.get(ordinal));
    }
    for accumulator in accumulators {
        builder.push(accumulator.finish()?.as_ref());
    }
    let mut bytes = Vec::new();
    builder.append_to(&mut bytes)?;
    let mut packet = Vec::new();
    append_projection(projection, None, Parameters::from_bytes(&bytes), protocol, scratch, &mut packet)?;
    Ok(packet)
}

/// Appends the row packet of a projection; without a row its values need parameters only.
pub(super) fn append_projection(
    projection: &Projection,
    row: Option<RowView<'_>>,
    parameters: Parameters<'_>,
    protocol: RowProtocol,
    scratch: &Scratch,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut values = Vec::with_capacity(projection.values.len());
    for (value, column) in projection.values.iter().zip(&projection.columns) {
        values.push((value.evaluate(row, parameters, scratch)?, column.wire_type));
    }
    append_row(protocol, values.into_iter(), out);
    Ok(())
}

/// Gives sorted rows for one step, while there is room.
pub(crate) fn pump(context: &mut StatementContext<'_, '_>) -> Progress {
    let Execution::Sorted(mut state) = std::mem::take(&mut context.session.execution) else {
        return Progress::Done;
    };
    let step = state.sorter.give(&mut state.window, OUTPUT_PART_BYTES, context.sink.output());
    if step != SortStep::Done && !context.session.interrupted {
        state.awaits_room = step == SortStep::Full;
        state.step_requested = step == SortStep::More;
        context.session.execution = Execution::Sorted(state);
        if step == SortStep::Full {
            return Progress::MoreOutput;
        }
        context.engine.gateway.continue_later(context.session.connection, context.turn);
        return Progress::Waiting;
    }
    let merged = state.sorter.found();
    let in_window = merged.saturating_sub(state.asked.offset).min(state.asked.remaining);
    let rows = state.counted.unwrap_or(if state.counts_all { merged } else { in_window });
    state.sorter.retire(&mut context.engine.work.sorters);
    context.session.found_rows = rows;
    finish(context, rows)
}

/// A read failed: says so, unless the table was changed meanwhile and the statement can be done again.
pub(crate) fn on_read_failed(
    context: &mut StatementContext<'_, '_>,
    (error, diagnostics): (&Error, Option<Box<Diagnostics>>),
) -> Progress {
    let Execution::Read(mut state) = std::mem::take(&mut context.session.execution) else { return Progress::Waiting };
    if error.code == ErrorCode::TableDefinitionChanged && !state.header_said && !context.session.interrupted {
        let origin = std::mem::take(&mut state.origin);
        if !matches!(origin, Origin::None) {
            release(context, &mut state);
            return context.execute_again(origin);
        }
    }
    if let Some(diagnostics) = diagnostics {
        context.session.note_diagnostics(WarningLevel::Warning, *diagnostics);
    }
    give_up(context, state, error)
}

/// Gives up a read whose rows nobody wants any more; the data plane has been told.
pub(super) fn abandon(context: &mut StatementContext<'_, '_>, mut state: ReadState) {
    release(context, &mut state);
    context.turn.buffers.give(std::mem::take(&mut state.parameters));
    if let GatherState::Sort(sorter) = state.gather {
        sorter.retire(&mut context.engine.work.sorters);
    }
}

fn give_up(context: &mut StatementContext<'_, '_>, mut state: ReadState, error: &Error) -> Progress {
    release(context, &mut state);
    context.turn.buffers.give(std::mem::take(&mut state.parameters));
    fail(context, error)
}

/// Gives back what the read held besides its rows.
fn release(context: &mut StatementContext<'_, '_>, state: &mut ReadState) {
    std::mem::take(&mut state.origin).release(context.turn);
    if !state.references.is_empty() {
        state.references = Vec::new();
    }
    let by_unique =
        matches!(&*state.plan, Plan::Select(select) if matches!(select.path, AccessPath::UniqueKeys { .. }));
    if by_unique {
        release_snapshot(context);
    }
}

/// Ends the snapshot that a statement of two steps took for itself.
fn release_snapshot(context: &mut StatementContext<'_, '_>) {
    context.engine.gateway.end_statement(&mut context.session.transaction);
}

pub(super) fn wrong_plan() -> Box<Error> {
    Error::new(ErrorCode::UnknownError, "The plan does not belong to this step")
}

pub(super) fn broken_reply() -> Box<Error> {
    Error::new(ErrorCode::UnknownError, "A reply of the data plane is broken")
}
