//! Hot path: at most 200 instructions per point read, not counting its key.
//!
//! Queries of a table. The session sends the partitions' rows in the order of arrival, or merges them by
//! their sort keys, or computes the result from partial aggregates.

use std::sync::Arc;

use junctor_expression::aggregate::Accumulator;
use junctor_expression::{Expression, Parameters, ParametersBuilder, Scratch};
use junctor_gateway::event::Next;
use junctor_gateway::gateway::ReadOptions;
use junctor_gateway::{PartitionScope, ReadRequest, RowBound, TurnContext, invariant, require};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ColumnNumber;
use junctor_model::key::append_escaped;
use junctor_model::row::RowView;
use junctor_model::schema::TableDefinition;
use junctor_model::value::ValueRef;
use junctor_signals::diagnostics::Diagnostics;
use junctor_signals::program::{Aggregate, Projection, ReadProgram, RowProtocol};
use junctor_signals::read_rows::OperationId;

use super::completion::{fail, finish_rows};
use super::context::StatementContext;
use super::engine::Engine;
use super::key::{InputWriter, KeyBuilder, RangesOf, Values, push_keys};
use super::packets::{Window, append_row};
use super::retry::{RetryInput, RetryState};
use super::session::Session;
use super::sorter::{SortRequest, SortStep, Sorter};
use super::state::{Execution, FinalStepState, LockReadState, PlanInput, ReadState, SortedState, Workspace};
use super::write::{check_writable, locks_exclusively, send_lock_read};
use crate::bind::{message, operand_type};
use crate::mysql_catalog::show::WarningLevel;
use crate::mysql_catalog::variable::unsigned_of;
use crate::plan::{AccessPath, FinalStep, LimitTemplate, Quantity, ScopeTemplate, SelectPlan};
use crate::result::{OUTPUT_PART_BYTES, Progress};

/// Maximum number of partitions of a read whose replies all begin with the encoded result header. Each reply
/// needs the header, because any of them may arrive first and then becomes the client's answer without a
/// copy.
pub(super) const HEADERS_MAX: usize = 4;
/// Maximum number of bytes that are reserved for rows in advance. A longer output is reallocated.
const ROOM_BYTES_MAX: usize = 64 * 1024;

/// Rows that one partition returned.
pub(crate) struct PartitionRows {
    pub output: Vec<u8>,
    /// Whether the encoded result header precedes the rows.
    pub is_prefixed: bool,
    pub count: u32,
    pub next: Next,
}

impl ReadState {
    /// The state of a query before its read is sent. Each partition returns at most `rows_max` rows.
    pub(super) fn new(
        plan: Arc<SelectPlan>,
        protocol: RowProtocol,
        (window, rows_max): (Window, u32),
        final_step: FinalStepState,
    ) -> ReadState {
        ReadState {
            plan,
            operation: OperationId::default(),
            protocol,
            is_lookup: false,
            header_sent: false,
            header_bytes: 0,
            awaits_room: false,
            rows_max,
            window,
            rows: 0,
            final_step,
            parameters: Vec::new(),
            references: Vec::new(),
            retry: RetryInput::None,
        }
    }
}

/// Starts a query. The parameters are in the workspace.
pub(crate) fn start_select(
    context: &mut StatementContext<'_, '_>,
    plan: &Arc<SelectPlan>,
    input: &PlanInput<'_>,
) -> Progress {
    let started = send_select(context, plan, input);
    context.session.note_evaluated(WarningLevel::Warning, &mut context.engine.work.scratch);
    match started {
        Ok(Started::Sent) => Progress::Waiting,
        Ok(Started::Empty(mut state)) => {
            let progress = finish_select(context, &mut state);
            context.engine.work.inputs.clear(context.turn.buffers);
            progress
        }
        Err(error) => {
            context.engine.work.inputs.clear(context.turn.buffers);
            fail(context, &error)
        }
    }
}

/// The result of starting a query.
enum Started {
    Sent,
    /// No row can match; nothing was sent.
    Empty(Box<ReadState>),
}

fn send_select(
    context: &mut StatementContext<'_, '_>,
    plan: &Arc<SelectPlan>,
    input: &PlanInput<'_>,
) -> Result<Started> {
    if plan.locking_program.as_ref().is_some_and(|lock| locks_exclusively(lock)) {
        check_writable(context.session, &plan.table)?;
    }
    context.session.enter_statement();
    let parameters = Parameters::from_bytes(&context.engine.work.parameters);
    let window = window_of(plan.limit.as_ref(), parameters, context.session.variables.select_limit)?;
    context.engine.work.scratch.set_value_rules(context.session.variables.value_rules());
    let never_true = !all_true(&plan.one_time_filter, parameters, &context.engine.work.scratch)?;
    let is_empty =
        window.remaining == 0 && !matches!(plan.final_step, FinalStep::Aggregate { .. }) && !plan.calc_found_rows;
    let final_step = final_step_state(context.engine, plan, &window);
    let mut state = ReadState::new(Arc::clone(plan), input.protocol, (window, rows_max(plan, &window)), final_step);
    if is_empty || never_true {
        return Ok(start_empty(context, state));
    }
    let is_lookup = push_inputs(&mut context.engine.work, plan, context.turn)?;
    if context.engine.work.inputs.is_empty() {
        return Ok(start_empty(context, state));
    }
    if is_lookup || needs_parameters(&plan.final_step) {
        state.parameters = context.copy_parameters();
    }
    if let Some(lock) = &plan.locking_program {
        let ReadState { plan, protocol, window, parameters, rows_max, .. } = state;
        let state = LockReadState { plan, protocol, window, parameters };
        send_lock_read(context, lock, state, rows_max, input)?;
        return Ok(Started::Sent);
    }
    state.is_lookup = is_lookup;
    send_first_read(context, plan, &mut state, input)?;
    context.session.set_execution(Execution::Read(state));
    Ok(Started::Sent)
}

/// A query without rows. Its aggregates have a row all the same.
#[cold]
fn start_empty(context: &mut StatementContext<'_, '_>, mut state: ReadState) -> Started {
    if needs_parameters(&state.plan.final_step) {
        state.parameters = context.copy_parameters();
    }
    Started::Empty(Box::new(state))
}

/// Sends the read of the rows, or of the unique entries that refer to them.
fn send_first_read(
    context: &mut StatementContext<'_, '_>,
    plan: &SelectPlan,
    state: &mut ReadState,
    input: &PlanInput<'_>,
) -> Result<()> {
    let program = match &plan.path {
        AccessPath::UniqueKeys { lookup, .. } => {
            // Entry and row are read one after the other, so both reads need the same snapshot.
            context.engine.gateway.take_snapshot(&mut context.session.transaction)?;
            lookup
        }
        _ => &plan.program,
    };
    let bound = match plan.sample {
        Some(sample) => RowBound::Sample { rows: sample.rows, skip: sample.skip },
        None if state.is_lookup => RowBound::Partition(u32::MAX),
        None => RowBound::Partition(state.rows_max),
    };
    let in_transaction = context.session.transaction.explicit;
    let StatementContext { engine, session, turn, .. } = context;
    state.retry = input.input.keep_in_session(in_transaction, &mut session.kept_input, &engine.work.parameters, turn);
    reserve_output(context, plan, program, state);
    if let FinalStepState::Sort(sorter) = &mut state.final_step {
        note_restart(context, sorter, (input, &state.retry));
    }
    match context.send_read(program, input.protocol, bound) {
        Ok(operation) => {
            state.operation = operation;
            Ok(())
        }
        Err(error) => {
            release_snapshot(context.engine, context.session);
            Err(error)
        }
    }
}

/// Lets a query start again with operators, which can use temporary files, if its rows take too much memory.
/// It needs a copy of its input, unless it has one.
fn note_restart(
    context: &mut StatementContext<'_, '_>,
    sorter: &mut Sorter,
    (input, kept): (&PlanInput<'_>, &RetryInput),
) {
    if !input.input.may_retry || context.engine.settings.temporary_files.is_none() {
        return;
    }
    if unsigned_of(&context.engine.globals.value_named("temptable_max_mmap")) == 0 {
        return;
    }
    let copy = match kept {
        RetryInput::None => input.input.copy(&context.engine.work.parameters, context.turn),
        _ => RetryInput::None,
    };
    if !copy.is_none() || !kept.is_none() {
        let bytes_max = usize::try_from(context.session.variables.temporary_table_bytes()).unwrap_or(usize::MAX);
        sorter.restart_beyond(bytes_max, copy);
    }
}

impl StatementContext<'_, '_> {
    /// Requests another step of the statement, after the thread's other work.
    pub(super) fn request_step(&mut self) {
        self.session.steps_requested += 1;
        let StatementContext { engine, session, turn, .. } = self;
        engine.gateway.continue_later(session.connection, session.steps_requested, turn);
    }

    /// Sends a read whose inputs are in the workspace.
    pub(super) fn send_read(
        &mut self,
        program: &Arc<ReadProgram>,
        protocol: RowProtocol,
        bound: RowBound,
    ) -> Result<OperationId> {
        let warnings_max = self.session.variables.warnings_max;
        let options = ReadOptions { protocol, bound, warnings_max };
        let (transaction, inputs) = (&mut self.session.transaction, &mut self.engine.work.inputs);
        let request = ReadRequest { program, options, inputs };
        self.engine.gateway.read(self.session.connection, transaction, request, self.turn)
    }
}

/// Reserves memory for the result. If the read visits at most [`HEADERS_MAX`] partitions, each reply gets a
/// buffer that begins with the result header and has space for all rows, because the first reply to arrive
/// becomes the client's answer without a copy. With more partitions, only the client's answer gets space.
fn reserve_output(
    context: &mut StatementContext<'_, '_>,
    plan: &SelectPlan,
    program: &ReadProgram,
    state: &mut ReadState,
) {
    if state.is_lookup || !matches!(state.final_step, FinalStepState::Stream) || context.sink.pending_bytes() > 0 {
        return;
    }
    let inputs = &context.engine.work.inputs;
    let Some(input) = inputs.last() else { return };
    let room = context.engine.gateway.reply_room(program, input);
    let input_count = inputs.len();
    reserve_room(context, room * input_count);
    if input_count > HEADERS_MAX {
        return;
    }
    if context.session.variables.recodes(&plan.header.columns) {
        return;
    }
    context.sink.header(&plan.header, &context.session.completion());
    let output = std::mem::take(context.sink.output());
    state.header_bytes = output.len();
    context.engine.work.inputs.set_output(output);
}

/// Reserves `bytes` in an empty output, but at most [`ROOM_BYTES_MAX`].
#[inline]
fn reserve_room(context: &mut StatementContext<'_, '_>, bytes: usize) {
    let output = context.sink.output();
    let bytes = bytes.min(ROOM_BYTES_MAX);
    if output.is_empty() && output.capacity() < bytes {
        let roomy = context.turn.buffers.take(bytes);
        context.turn.buffers.give(std::mem::replace(output, roomy));
    }
}

/// Fills the inputs. Returns true if they are keys of a unique index's entries.
fn push_inputs(work: &mut Workspace, plan: &SelectPlan, turn: &mut TurnContext<'_>) -> Result<bool> {
    let Workspace { inputs, parameters, scratch, key_builder, key, .. } = work;
    let sent: &[u8] = if plan.program.reads_parameters { parameters } else { &[] };
    let values = Values { parameters: Parameters::from_bytes(parameters), scratch };
    let definition = &plan.table.definition;
    match &plan.path {
        AccessPath::UniqueKeys { lookup, keys: template, .. } => {
            inputs.begin(lookup.table.definition.partition_count, turn.buffers);
            key_builder.build_keys(definition, template, &values, &mut |_, _, entry| {
                // The key column of an entry is a binary string that contains the key bytes.
                key.clear();
                append_escaped(entry, key);
                inputs.push_key(key, &[], turn.buffers);
            })?;
            Ok(true)
        }
        path => {
            push_path(&mut InputWriter { inputs, turn, parameters: sent }, key_builder, definition, path, &values)?;
            Ok(false)
        }
    }
}

/// Fills the inputs for an access path that finds its rows in one read.
pub(super) fn push_path(
    writer: &mut InputWriter<'_, '_>,
    key_builder: &mut KeyBuilder,
    definition: &TableDefinition,
    path: &AccessPath,
    values: &Values<'_>,
) -> Result<()> {
    writer.inputs.begin(definition.partition_count, writer.turn.buffers);
    match path {
        AccessPath::Nothing => Ok(()),
        AccessPath::PrimaryKeys(template) => push_keys(writer, key_builder, definition, template, values),
        AccessPath::Ranges { ranges, descending, scope: scope_template, .. } => {
            let Some(scope) = key_builder.bind_scope(definition, scope_template, values)? else { return Ok(()) };
            let by_range = *scope_template == ScopeTemplate::EachRange;
            let template = RangesOf { template: ranges, descending: *descending, by_range };
            key_builder.build_ranges(definition, template, values, &mut |partition, range| {
                let scope = partition.map_or(scope, PartitionScope::One);
                writer.inputs.push_range(scope, range, writer.parameters, writer.turn.buffers);
            })
        }
        AccessPath::AllRows(scope) => {
            if let Some(scope) = key_builder.bind_scope(definition, scope, values)? {
                writer.inputs.push_all(scope, writer.parameters, writer.turn.buffers);
            }
            Ok(())
        }
        AccessPath::UniqueKeys { .. } => {
            invariant::fail("only queries without locks look up unique entries", format_args!("{path:?}"))
        }
    }
}

/// Whether all conditions of a one-time filter are true.
#[inline]
pub(super) fn all_true(conditions: &[Expression], parameters: Parameters<'_>, scratch: &Scratch) -> Result<bool> {
    for condition in conditions {
        if !condition.is_true(None, parameters, scratch)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// OFFSET and LIMIT of this execution. Error: 1210 if a parameter is not a row count.
pub(super) fn window_of(
    limit: Option<&LimitTemplate>,
    parameters: Parameters<'_>,
    select_limit: u64,
) -> Result<Window> {
    let Some(limit) = limit else { return Ok(Window { offset: 0, remaining: select_limit }) };
    Ok(Window { offset: rows_of(limit.offset, parameters)?, remaining: rows_of(limit.count, parameters)? })
}

/// The value of a row count in this execution. Error: 1210 if a parameter is not a row count.
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

/// Maximum number of rows that each partition returns.
fn rows_max(select: &SelectPlan, window: &Window) -> u32 {
    let limited = match select.final_step {
        FinalStep::Stream => true,
        FinalStep::Sort { ordered, distinct } => ordered && !distinct,
        FinalStep::Aggregate { .. } => false,
    };
    if limited && !select.calc_found_rows { window.rows_needed().min(u64::from(u32::MAX)) as u32 } else { u32::MAX }
}

/// The initial state of combining the partitions' rows.
pub(super) fn final_step_state(engine: &mut Engine, select: &SelectPlan, window: &Window) -> FinalStepState {
    match &select.final_step {
        FinalStep::Stream => FinalStepState::Stream,
        FinalStep::Sort { distinct, .. } => {
            let wanted = if select.calc_found_rows { u64::MAX } else { window.rows_needed() };
            let counts_all = *distinct && select.calc_found_rows;
            let bytes_max = engine.settings.sort_buffer_bytes_max;
            let request = SortRequest { distinct: *distinct, wanted, counts_all };
            FinalStepState::Sort(Sorter::begin(request, bytes_max, &mut engine.work.sorters))
        }
        FinalStep::Aggregate { aggregates, .. } => FinalStepState::Aggregate(accumulators(aggregates)),
    }
}

/// The initial aggregate states.
pub(super) fn accumulators(aggregates: &[Aggregate]) -> Vec<Accumulator> {
    aggregates.iter().map(|aggregate| Accumulator::new(aggregate.kind, operand_type(aggregate))).collect()
}

/// Whether the result row of an aggregate query may read the statement's own parameters, in addition to the
/// aggregates.
fn needs_parameters(final_step: &FinalStep) -> bool {
    matches!(final_step, FinalStep::Aggregate { first_parameter, .. } if *first_parameter > 0)
}

/// The state of a query after it has taken rows of one partition.
pub(crate) enum ReadStep {
    /// The query has ended, or the session has another state.
    Ended(Progress),
    /// The query waits, and its state remains that of the session.
    Waits(Progress),
}

/// Continues a query with rows of one partition.
#[inline]
pub(crate) fn resume_read(
    context: &mut StatementContext<'_, '_>,
    state: &mut ReadState,
    mut rows: PartitionRows,
) -> ReadStep {
    let taken = take_rows(context, state, &mut rows);
    let PartitionRows { output, next, .. } = rows;
    context.turn.buffers.give(output);
    if let Err(error) = taken {
        return ReadStep::Ended(fail_rows(context, state, next, &error));
    }
    match next {
        Next::Done if state.is_lookup => send_row_read(context, state),
        Next::Done => ReadStep::Ended(finish_select(context, state)),
        // LIMIT is reached, although the partitions may have more rows.
        _ if is_satisfied(state) => {
            context.engine.gateway.end_read(state.operation, context.turn);
            ReadStep::Ended(finish_select(context, state))
        }
        Next::MoreReplies => {
            continue_parts(context, state);
            ReadStep::Waits(Progress::Waiting)
        }
        Next::MoreRows => ReadStep::Waits(continue_read(context, state)),
    }
}

/// Fails a query whose rows cannot be taken. A sort that takes too much memory starts again with files.
#[cold]
fn fail_rows(context: &mut StatementContext<'_, '_>, state: &mut ReadState, next: Next, error: &Error) -> Progress {
    if next != Next::Done {
        context.engine.gateway.end_read(state.operation, context.turn);
    }
    let restart = match &mut state.final_step {
        FinalStepState::Sort(sorter) if error.code == ErrorCode::OutOfResources => match sorter.restart.take() {
            Some(RetryInput::None) => std::mem::take(&mut state.retry),
            own => own.unwrap_or_default(),
        },
        _ => RetryInput::None,
    };
    abandon_read(context.engine, context.session, state, context.turn);
    if restart.is_none() || context.session.interrupted {
        restart.release(context.turn);
        return fail(context, error);
    }
    context.session.variables.sort_with_files(true);
    context.session.execution = Execution::Retry(Box::new(RetryState::of_input(restart)));
    Progress::Waiting
}

/// Requests more rows after every partition has replied and some have more. If the output is full, the query
/// is suspended until the client has received it.
fn continue_read(context: &mut StatementContext<'_, '_>, state: &mut ReadState) -> Progress {
    state.awaits_room = !context.session.interrupted && context.sink.pending_bytes() >= OUTPUT_PART_BYTES;
    if state.awaits_room {
        return Progress::MoreOutput;
    }
    context.engine.gateway.continue_read(state.operation, &context.session.transaction, context.turn);
    Progress::Waiting
}

/// Requests more rows from the partitions that have answered, while others have not. So no partition waits
/// for a slower one. Each has one reply under way at most, and its rows are taken first.
fn continue_parts(context: &mut StatementContext<'_, '_>, state: &mut ReadState) {
    if context.session.interrupted || !context.engine.gateway.may_continue(state.operation) {
        return;
    }
    state.awaits_room = context.sink.pending_bytes() >= OUTPUT_PART_BYTES;
    if !state.awaits_room {
        context.engine.gateway.continue_read(state.operation, &context.session.transaction, context.turn);
    }
}

/// Whether the rows received so far complete the result.
fn is_satisfied(state: &ReadState) -> bool {
    let streams = matches!(state.final_step, FinalStepState::Stream);
    streams && !state.is_lookup && state.window.remaining == 0 && !state.plan.calc_found_rows
}

#[inline]
fn take_rows(context: &mut StatementContext<'_, '_>, state: &mut ReadState, reply: &mut PartitionRows) -> Result<()> {
    let PartitionRows { output, is_prefixed, count: rows, .. } = reply;
    if state.is_lookup {
        return take_references(state, output);
    }
    match &mut state.final_step {
        FinalStepState::Stream => {
            let header_bytes = if *is_prefixed { state.header_bytes } else { 0 };
            let sends_header = !std::mem::replace(&mut state.header_sent, true);
            if sends_header && !*is_prefixed {
                context.sink.header(&state.plan.header, &context.session.completion());
            }
            let (packets, taken) = state.window.cut(&output[header_bytes..], u64::from(*rows));
            let is_whole = header_bytes + packets.len() == output.len() && (sends_header || header_bytes == 0);
            if is_whole && context.sink.pending_bytes() == 0 {
                std::mem::swap(context.sink.output(), output);
            } else {
                context.sink.row_packets(if sends_header { &output[..header_bytes] } else { &[] });
                context.sink.row_packets(packets);
            }
            state.rows += if state.plan.calc_found_rows { u64::from(*rows) } else { taken };
            Ok(())
        }
        FinalStepState::Sort(sorter) => sorter.add_rows(output),
        FinalStepState::Aggregate(accumulators) => merge_states(accumulators, output),
    }
}

/// Merges runs of partial aggregate states, each as `[length u32] state`.
pub(super) fn merge_states(accumulators: &mut [Accumulator], mut output: &[u8]) -> Result<()> {
    while !output.is_empty() {
        for accumulator in accumulators.iter_mut() {
            let (length, rest) = output.split_first_chunk().ok_or_else(Error::broken_reply)?;
            let length = u32::from_le_bytes(*length) as usize;
            let (state, rest) = rest.split_at_checked(length).ok_or_else(Error::broken_reply)?;
            accumulator.merge_partial(state)?;
            output = rest;
        }
    }
    Ok(())
}

/// Collects the row references from entries of a unique index.
fn take_references(state: &mut ReadState, mut output: &[u8]) -> Result<()> {
    let AccessPath::UniqueKeys { lookup, .. } = &state.plan.path else {
        invariant::fail("a lookup has a unique index", format_args!("{:?}", state.plan.path))
    };
    while let Some((length, rest)) = output.split_first_chunk() {
        let (image, rest) =
            rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(Error::broken_reply)?;
        let entry = RowView::new(&lookup.table.row_format, image);
        let ValueRef::Bytes(reference) = entry.column(ColumnNumber(1)) else { return Err(Error::broken_reply()) };
        state.references.extend_from_slice(&(reference.len() as u16).to_le_bytes());
        state.references.extend_from_slice(reference);
        output = rest;
    }
    Ok(())
}

/// Sends the second read of a query by unique index: the rows to which the entries refer.
fn send_row_read(context: &mut StatementContext<'_, '_>, state: &mut ReadState) -> ReadStep {
    state.is_lookup = false;
    let plan = Arc::clone(&state.plan);
    let partition_count = plan.table.definition.partition_count;
    let inputs = &mut context.engine.work.inputs;
    inputs.begin(partition_count, context.turn.buffers);
    let sent: &[u8] = if plan.program.reads_parameters { &state.parameters } else { &[] };
    let mut rest = state.references.as_slice();
    while let Some((length, after)) = rest.split_first_chunk() {
        let (reference, after) = after.split_at(usize::from(u16::from_le_bytes(*length)));
        let Some((partition, key)) = reference.split_first_chunk() else {
            invariant::fail("a unique entry names a row", format_args!("its reference is {reference:?}"))
        };
        let partition = u16::from_be_bytes(*partition);
        require!(partition < partition_count, "a unique entry names a partition of its table");
        inputs.push_key_at(partition, key, sent, context.turn.buffers);
        rest = after;
    }
    if inputs.is_empty() {
        return ReadStep::Ended(finish_select(context, state));
    }
    match context.send_read(&plan.program, state.protocol, RowBound::Partition(state.rows_max)) {
        Ok(operation) => {
            state.operation = operation;
            ReadStep::Waits(Progress::Waiting)
        }
        Err(error) => {
            context.engine.work.inputs.clear(context.turn.buffers);
            abandon_read(context.engine, context.session, state, context.turn);
            ReadStep::Ended(fail(context, &error))
        }
    }
}

/// Sends the remainder of the answer after all rows have arrived. The state is used up.
pub(super) fn finish_select(context: &mut StatementContext<'_, '_>, state: &mut ReadState) -> Progress {
    release(context.engine, context.session, state, context.turn);
    if !matches!(state.final_step, FinalStepState::Stream) {
        return finish_combined(context, state);
    }
    if !state.header_sent {
        context.sink.header(&state.plan.header, &context.session.completion());
    }
    context.turn.buffers.give(std::mem::take(&mut state.parameters));
    finish_rows(context, state.rows)
}

/// Sends the result of a sort or of aggregates.
#[inline(never)]
fn finish_combined(context: &mut StatementContext<'_, '_>, state: &mut ReadState) -> Progress {
    let plan = &state.plan;
    let parameters = std::mem::take(&mut state.parameters);
    let progress = match std::mem::replace(&mut state.final_step, FinalStepState::Stream) {
        FinalStepState::Stream => finish_rows(context, state.rows),
        FinalStepState::Sort(sorter) => {
            reserve_room(context, sorter.bytes());
            context.sink.header(&plan.header, &context.session.completion());
            let counts_all = plan.calc_found_rows && matches!(plan.final_step, FinalStep::Sort { distinct: true, .. });
            let counted = (plan.calc_found_rows && !counts_all).then(|| sorter.len() as u64);
            let (window, asked) = (state.window, state.window);
            context.session.execution = Execution::Sorted(SortedState {
                sorter,
                window,
                asked,
                counted,
                counts_all,
                has_written: false,
                awaits_room: false,
                step_requested: false,
            });
            send_sorted_rows(context)
        }
        FinalStepState::Aggregate(accumulators) => {
            let mut window = state.window;
            let scratch = &context.engine.work.scratch;
            let row = aggregate_row(&plan.final_step, &accumulators, &parameters, state.protocol, scratch);
            context.session.note_evaluated(WarningLevel::Warning, &mut context.engine.work.scratch);
            match row {
                Err(error) => fail(context, &error),
                Ok(packet) => {
                    context.sink.header(&plan.header, &context.session.completion());
                    let (_, taken) = window.take(1);
                    if taken == 1 {
                        context.sink.row_packets(&packet);
                    }
                    finish_rows(context, taken)
                }
            }
        }
    };
    context.turn.buffers.give(parameters);
    progress
}

/// Encodes the single row that is computed from aggregates.
fn aggregate_row(
    final_step: &FinalStep,
    accumulators: &[Accumulator],
    parameters: &[u8],
    protocol: RowProtocol,
    scratch: &Scratch,
) -> Result<Vec<u8>> {
    let FinalStep::Aggregate { projection, first_parameter, .. } = final_step else {
        invariant::fail("aggregates are merged for a plan that has them", format_args!("{final_step:?}"))
    };
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
    append_projection(projection, (None, Parameters::from_bytes(&bytes)), protocol, scratch, &mut packet)?;
    Ok(packet)
}

/// Appends the row packet of a projection. If `row` is `None`, its expressions may only read parameters.
pub(super) fn append_projection(
    projection: &Projection,
    (row, parameters): (Option<RowView<'_>>, Parameters<'_>),
    protocol: RowProtocol,
    scratch: &Scratch,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut values = Vec::with_capacity(projection.values.len());
    for (value, column) in projection.values.iter().zip(&projection.columns) {
        values.push((value.evaluate(row, parameters, scratch)?, column));
    }
    append_row(protocol, values.into_iter(), out);
    Ok(())
}

/// Sends sorted rows until the output is full or the step has taken long enough. The next step runs when the
/// client has received the rows, or after the thread's other work.
pub(super) fn send_sorted_rows(context: &mut StatementContext<'_, '_>) -> Progress {
    let Execution::Sorted(mut state) = std::mem::take(&mut context.session.execution) else {
        invariant::fail("sorted rows are sent of a sorted result", format_args!("the session has none"))
    };
    let step = state.sorter.emit_rows(&mut state.window, OUTPUT_PART_BYTES, context.sink.output());
    if step != SortStep::Done && !context.session.interrupted {
        state.awaits_room = step == SortStep::Full;
        state.step_requested = step == SortStep::More;
        context.session.execution = Execution::Sorted(state);
        if step == SortStep::Full {
            return Progress::MoreOutput;
        }
        context.request_step();
        return Progress::Waiting;
    }
    let merged = state.sorter.found();
    let in_window = merged.saturating_sub(state.asked.offset).min(state.asked.remaining);
    let rows = state.counted.unwrap_or(if state.counts_all { merged } else { in_window });
    state.sorter.retire(&mut context.engine.work.sorters);
    context.session.found_rows = rows;
    finish_rows(context, rows)
}

/// Fails a read, or starts the query again if its table was changed meanwhile and no row has been sent.
pub(crate) fn fail_read(
    context: &mut StatementContext<'_, '_>,
    state: &mut ReadState,
    error: &Error,
    diagnostics: Option<Box<Diagnostics>>,
) -> Progress {
    let may_start_again = !state.header_sent && !context.session.interrupted && !state.retry.is_none();
    if may_start_again && context.may_succeed_after(error) {
        let input = std::mem::take(&mut state.retry);
        abandon_read(context.engine, context.session, state, context.turn);
        context.session.execution = Execution::Retry(Box::new(RetryState::after(error, input)));
        return Progress::Waiting;
    }
    if let Some(diagnostics) = diagnostics {
        context.session.note_diagnostics(WarningLevel::Warning, *diagnostics);
    }
    abandon_read(context.engine, context.session, state, context.turn);
    fail(context, error)
}

/// Releases a read whose rows are no longer wanted. The data plane has ended it or was asked to.
/// The state is used up.
pub(super) fn abandon_read(
    engine: &mut Engine,
    session: &mut Session,
    state: &mut ReadState,
    turn: &mut TurnContext<'_>,
) {
    release(engine, session, state, turn);
    turn.buffers.give(std::mem::take(&mut state.parameters));
    if let FinalStepState::Sort(sorter) = std::mem::replace(&mut state.final_step, FinalStepState::Stream) {
        sorter.retire(&mut engine.work.sorters);
    }
}

/// Releases the resources of a read except its rows.
fn release(engine: &mut Engine, session: &mut Session, state: &mut ReadState, turn: &mut TurnContext<'_>) {
    std::mem::take(&mut state.retry).release(turn);
    if let FinalStepState::Sort(sorter) = &mut state.final_step
        && let Some(copy) = sorter.restart.take()
    {
        copy.release(turn);
    }
    if matches!(state.plan.path, AccessPath::UniqueKeys { .. }) {
        release_snapshot(engine, session);
    }
}

/// Ends the snapshot that a query with two reads has taken.
fn release_snapshot(engine: &mut Engine, session: &mut Session) {
    // The snapshot belongs to a tree of operators.
    if session.shares_snapshot {
        return;
    }
    engine.gateway.end_statement(&mut session.transaction);
}
