//! The query of INSERT ... SELECT. It runs as any other query of the session does, but what it says is caught: its rows come as tagged
//! values, and are inserted in batches. A query that has more waits until the rows caught are inserted.

use junctor_expression::ParametersBuilder;
use junctor_expression::parameter::read_value;
use junctor_gateway::Event;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::row_encoding::ResultColumn;
use junctor_signals::program::RowProtocol;
use junctor_signals::read_rows::OperationId;

use super::drive::{Next, settle};
use super::insert;
use super::state::{CompoundState, NO_OPERATION, Step, Work};
use crate::execute::completion::interrupted;
use crate::execute::context::StatementContext;
use crate::execute::insert::{MadeSelected, level_of_mode, make_selected};
use crate::execute::packets::{RowPackets, row_start};
use crate::execute::read::{abandon, broken_reply, pump, start_select, wrong_plan};
use crate::execute::state::{Again, Execution, Run};
use crate::plan::{InsertPlan, Plan};
use crate::result::{Completion, Progress, ResultHeader, ResultSink};

/// Rows of one batch.
const BATCH_ROWS_MAX: usize = 1024;
/// Bytes of a query's rows that are kept where all of them must be known before the first one is inserted.
const COLLECTED_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The query, and its rows that are not inserted yet.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// What the query waits for.
    inner: Execution,
    /// Row packets of values.
    caught: Vec<u8>,
    /// How much of them is in a batch already.
    taken: usize,
    has_ended: bool,
    /// Whether all rows must be known first: the query sees what the statement writes.
    collects: bool,
    error: Option<Box<Error>>,
    /// The batch that is being made.
    batch: SelectedRows,
    /// Rows of the batches before.
    pub rows_before: u64,
}

/// Rows that a query gave, each as the bytes of its parameters.
#[derive(Debug, Default)]
pub(crate) struct SelectedRows {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl SelectedRows {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The parameters of a row.
    pub(crate) fn row(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(row).map_or(&[], |end| &self.bytes[start..*end])
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds a row whose values are tagged, one after the other.
    fn push(&mut self, mut values: &[u8], builder: &mut ParametersBuilder) -> Result<()> {
        builder.clear();
        while !values.is_empty() {
            let (value, rest) = read_value(values).ok_or_else(broken_reply)?;
            builder.push(value);
            values = rest;
        }
        builder.append_to(&mut self.bytes)?;
        self.ends.push(self.bytes.len());
        Ok(())
    }
}

impl Source {
    /// A query that has not begun.
    pub fn new(collects: bool) -> Source {
        Source { collects, ..Source::default() }
    }

    /// Whether the query waits for that answer.
    pub fn awaits(&self, operation: OperationId) -> bool {
        self.inner.awaits(operation)
    }

    /// The statement of the transaction that the query is, if it locks what it reads.
    pub fn statement(&self) -> Option<OperationId> {
        match &self.inner {
            Execution::Write(state) => Some(state.operation),
            _ => None,
        }
    }

    /// Whether the query has more and waits for room.
    fn waits_for_room(&self) -> bool {
        match &self.inner {
            Execution::Sorted(state) => state.awaits_room,
            Execution::Read(state) => state.awaits_room,
            _ => false,
        }
    }

    /// Asks for another step of a sort whose last request came while rows were being inserted.
    fn request_step(&mut self, context: &mut StatementContext<'_, '_>) {
        if let Execution::Sorted(state) = &mut self.inner
            && !std::mem::replace(&mut state.step_requested, true)
        {
            context.engine.gateway.continue_later(context.session.connection, context.turn);
        }
    }

    /// Gives up what is left of the query.
    pub fn stop(self, context: &mut StatementContext<'_, '_>) {
        match self.inner {
            Execution::Read(state) => {
                context.engine.gateway.end_read(state.operation, context.turn);
                abandon(context, state);
            }
            Execution::Sorted(state) => state.sorter.retire(&mut context.engine.work.sorters),
            // Whatever else is awaited, its answer is dropped when it comes.
            _ => {}
        }
    }

    /// Lets the query make a step and catches what it says.
    fn run(
        &mut self,
        context: &mut StatementContext<'_, '_>,
        step: impl FnOnce(&mut StatementContext<'_, '_>) -> Progress,
    ) {
        let noted = (context.session.warning_count, context.session.error_count, context.session.diagnostics.len());
        context.session.execution = std::mem::take(&mut self.inner);
        let mut sink = Caught { rows: Vec::new(), error: None, collects: self.collects };
        let progress = step(&mut StatementContext {
            engine: context.engine,
            session: context.session,
            turn: context.turn,
            sink: &mut sink,
        });
        self.inner = std::mem::take(&mut context.session.execution);
        self.has_ended = matches!(progress, Progress::Done | Progress::Close);
        match self.caught.is_empty() {
            true => self.caught = sink.rows,
            false => self.caught.extend_from_slice(&sink.rows),
        }
        if sink.error.is_some() {
            // It is the error of the whole statement, which notes it itself.
            (context.session.warning_count, context.session.error_count) = (noted.0, noted.1);
            context.session.diagnostics.truncate(noted.2);
            self.error = sink.error;
        }
    }
}

/// Begins the query. Its parameters are in the engine's workspace.
pub(super) fn start_source(
    context: &mut StatementContext<'_, '_>,
    state: &mut CompoundState,
    plan: &InsertPlan,
) -> Result<Next> {
    let (Some(select), Some(mut source)) = (&plan.select, state.source.take()) else { return Err(wrong_plan()) };
    let select = std::sync::Arc::clone(select);
    // The limit of queries is one of what clients get.
    let select_limit = std::mem::replace(&mut context.session.variables.select_limit, u64::MAX);
    source.run(context, |context| {
        let run = Run { protocol: RowProtocol::Values, shaped_text: None, again: Again::No };
        match &*select {
            Plan::Select(_) => start_select(context, &select, &run),
            _ => crate::execute::compute_now(context, &select, run.protocol),
        }
    });
    context.session.variables.select_limit = select_limit;
    state.source = Some(source);
    advance(context, state, plan)
}

/// An answer that the query waited for.
pub(crate) fn on_source_event(context: &mut StatementContext<'_, '_>, event: Event) -> Progress {
    let Execution::Compound(mut state) = std::mem::take(&mut context.session.execution) else {
        return Progress::Waiting;
    };
    let plan = std::sync::Arc::clone(&state.plan);
    let (Plan::Insert(insert), Some(mut source)) = (&*plan, state.source.take()) else {
        return settle(context, state, Err(wrong_plan()));
    };
    source.run(context, |context| context.resume(event));
    state.source = Some(source);
    if !matches!(state.step, Step::Select) {
        // Rows are being inserted; what has come is looked at when that is done.
        context.session.execution = Execution::Compound(state);
        return Progress::Waiting;
    }
    let next = match state.is_stopped {
        true => Err(interrupted()),
        false => advance(context, &mut state, insert),
    };
    settle(context, state, next)
}

/// Another step of the query's sort is due. It waits while rows are being inserted, because what it gives would pile up.
pub(crate) fn on_source_step(context: &mut StatementContext<'_, '_>) -> Progress {
    let Execution::Compound(mut state) = std::mem::take(&mut context.session.execution) else {
        return Progress::Waiting;
    };
    let is_requested = match state.source.as_mut().map(|source| &mut source.inner) {
        Some(Execution::Sorted(sorted)) => std::mem::take(&mut sorted.step_requested),
        _ => false,
    };
    if !is_requested || !matches!(state.step, Step::Select) {
        context.session.execution = Execution::Compound(state);
        return Progress::Waiting;
    }
    let plan = std::sync::Arc::clone(&state.plan);
    let (Plan::Insert(insert), Some(mut source)) = (&*plan, state.source.take()) else {
        return settle(context, state, Err(wrong_plan()));
    };
    source.run(context, pump);
    state.source = Some(source);
    let next = match state.is_stopped {
        true => Err(interrupted()),
        false => advance(context, &mut state, insert),
    };
    settle(context, state, next)
}

/// Nothing is being inserted: the next batch is, or more rows are awaited.
pub(super) fn advance(
    context: &mut StatementContext<'_, '_>,
    state: &mut CompoundState,
    plan: &InsertPlan,
) -> Result<Next> {
    state.step = Step::Select;
    state.operation = NO_OPERATION;
    loop {
        let Some(source) = &mut state.source else { return Ok(Next::Done) };
        if let Some(error) = source.error.take() {
            let repeats = super::drive::may_repeat(state, &error) && !context.session.transaction.has_begun();
            return if repeats { Ok(Next::Again) } else { Err(error) };
        }
        if source.collects && source.caught.len() > COLLECTED_BYTES_MAX {
            let message = "Out of memory; the rows selected from the table that they are inserted into are too many";
            return Err(Error::new(ErrorCode::OutOfResources, message));
        }
        let is_ready = source.has_ended || !source.collects;
        if is_ready && source.taken < source.caught.len() {
            take_batch(context, source)?;
            return make_batch(context, state, plan);
        }
        if source.has_ended {
            return Ok(Next::Done);
        }
        if !source.waits_for_room() {
            source.request_step(context);
            return Ok(Next::Wait);
        }
        let mut source = state.source.take().unwrap_or_default();
        source.run(context, |context| context.continue_output());
        state.source = Some(source);
    }
}

/// Takes the next rows that were caught into the batch.
fn take_batch(context: &mut StatementContext<'_, '_>, source: &mut Source) -> Result<()> {
    source.batch.clear();
    let rest = &source.caught[source.taken..];
    for row in RowPackets::new(rest).take(BATCH_ROWS_MAX) {
        source.batch.push(&row, &mut context.engine.work.builder)?;
    }
    source.taken += row_start(rest, source.batch.len() as u64);
    if source.taken == source.caught.len() {
        source.caught.clear();
        source.taken = 0;
    }
    Ok(())
}

/// Makes the rows of the batch and inserts them, once their numbers are here.
pub(super) fn make_batch(
    context: &mut StatementContext<'_, '_>,
    state: &mut CompoundState,
    plan: &InsertPlan,
) -> Result<Next> {
    let Some(source) = &mut state.source else { return Err(wrong_plan()) };
    let Work::Insert(work) = &mut state.work else { return Err(wrong_plan()) };
    work.rows.clear();
    let batch = (&source.batch, source.rows_before);
    let made = make_selected(context, plan, batch, &mut work.rows);
    if made.is_err() {
        context.session.note_evaluated(level_of_mode(plan.mode), &mut context.engine.work.scratch);
    }
    match made? {
        MadeSelected::Asks { needed, count, beyond } => {
            let table = plan.table.definition.id;
            let connection = context.session.connection;
            let gateway = &mut context.engine.gateway;
            state.operation = gateway.reserve_auto_increment(connection, table, count, beyond, context.turn)?;
            state.step = Step::Numbers { needed, beyond };
            Ok(Next::Wait)
        }
        MadeSelected::Rows(numbered) => {
            source.rows_before += numbered.rows;
            work.numbered = numbered;
            insert::send_step(context, state, &plan.program, Step::Batch)
        }
    }
}

/// Numbers for the rows of the batch arrived.
pub(crate) fn on_numbers(
    context: &mut StatementContext<'_, '_>,
    (first, count): (u64, u64),
    error: Option<Box<Error>>,
) -> Progress {
    let Execution::Compound(mut state) = std::mem::take(&mut context.session.execution) else {
        return Progress::Waiting;
    };
    let plan = std::sync::Arc::clone(&state.plan);
    let next = match (&*plan, &state.step, error) {
        (_, _, Some(error)) => Err(error),
        _ if state.is_stopped => Err(interrupted()),
        (Plan::Insert(insert), Step::Numbers { needed, beyond }, None) => {
            let table = insert.table.definition.id;
            match context.engine.ranges.take_in(table, (first, count), *needed, *beyond) {
                Ok(()) => make_batch(context, &mut state, insert),
                Err(error) => Err(error),
            }
        }
        _ => Err(wrong_plan()),
    };
    settle(context, state, next)
}

/// Catches what a query says.
struct Caught {
    rows: Vec<u8>,
    error: Option<Box<Error>>,
    collects: bool,
}

impl ResultSink for Caught {
    fn header(&mut self, _header: &ResultHeader, _completion: &Completion) {}

    fn row_packets(&mut self, packets: &[u8]) {
        self.rows.extend_from_slice(packets);
    }

    fn output(&mut self) -> &mut Vec<u8> {
        &mut self.rows
    }

    fn end_rows(&mut self, _completion: &Completion) {}

    fn complete(&mut self, _completion: &Completion) {}

    fn error(&mut self, error: &Error) {
        self.error = Some(Box::new(error.clone()));
    }

    fn prepared(&mut self, _statement: u32, _parameters: u16, _header: &ResultHeader, _completion: &Completion) {}

    fn field_list(&mut self, _columns: &[(ResultColumn, Option<Vec<u8>>)], _completion: &Completion) {}

    fn plain_text(&mut self, _text: &str) {}

    /// As if the output were full, so that the query waits after every round until its rows are inserted.
    fn pending_bytes(&self) -> usize {
        if self.collects { 0 } else { usize::MAX }
    }
}

#[cfg(test)]
mod tests {
    use junctor_expression::Parameters;
    use junctor_expression::parameter::append_value;
    use junctor_model::value::ValueRef;

    use super::*;

    #[test]
    fn selected_rows_are_parameters() {
        let mut rows = SelectedRows::default();
        let mut builder = ParametersBuilder::new();
        for number in 0..3i64 {
            let mut values = Vec::new();
            append_value(ValueRef::Int(number), &mut values);
            append_value(ValueRef::Bytes(b"text"), &mut values);
            append_value(ValueRef::Null, &mut values);
            rows.push(&values, &mut builder).expect("the values are whole");
        }
        assert_eq!(rows.len(), 3);
        for number in 0..3 {
            let row = Parameters::from_bytes(rows.row(number));
            assert_eq!((row.count(), row.get(0)), (3, ValueRef::Int(number as i64)));
            assert_eq!((row.get(1), row.get(2)), (ValueRef::Bytes(b"text"), ValueRef::Null));
        }
        assert!(rows.push(&[9, 9], &mut builder).is_err());
    }
}
