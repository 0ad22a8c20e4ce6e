//! The query of INSERT ... SELECT.
//!
//! The query runs like any other query of the session, but its rows are collected as tagged values and
//! inserted in batches. Between batches the query is suspended until the collected rows are inserted.

use junctor_expression::ParametersBuilder;
use junctor_expression::parameter::read_value;
use junctor_gateway::gateway::NO_OPERATION;
use junctor_gateway::{Event, require};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::row_encoding::ResultColumn;
use junctor_model::user_value::UserValue;
use junctor_signals::program::RowProtocol;
use junctor_signals::read_rows::OperationId;

use super::drive::{Next, continue_steps, may_retry, unexpected_step};
use super::insert::{Insert, Locking, send_step};
use super::load::{LoadInput, advance_load};
use super::state::{CompoundState, InsertWork, Step, Work};
use crate::execute::completion::interrupted;
use crate::execute::context::StatementContext;
use crate::execute::insert::{EncodeOutcome, encode_selected_rows, level_of_mode};
use crate::execute::into::start_query;
use crate::execute::packets::{RowPackets, row_start};
use crate::execute::read::abandon_read;
use crate::execute::resume::{continue_output, resume, run_requested_step};
use crate::execute::retry::StatementInput;
use crate::execute::state::{Execution, PlanInput};
use crate::execute::tree::start_tree_after;
use crate::plan::tree::PlanNode;
use crate::plan::{LoadPlan, QueryPlan};
use crate::result::{Completion, Progress, ResultHeader, ResultSink};

/// Maximum number of rows in one batch.
pub(super) const BATCH_ROWS_MAX: usize = 1024;
/// Maximum bytes of collected rows if the query must end before the first row is inserted. More give error
/// 1041.
const COLLECTED_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The query and its rows that are not inserted yet.
#[derive(Debug, Default)]
pub(in crate::execute) struct Source {
    /// The query's own execution state. During a step of the query it is moved into the session.
    inner: Execution,
    /// Row packets of tagged values that the query has returned.
    collected: Vec<u8>,
    /// Number of bytes of `collected` that batches have consumed.
    taken: usize,
    has_ended: bool,
    /// Whether the query evaluates assignments of user variables or calls of the session.
    is_stateful: bool,
    /// Whether such a call was carried out, or assigned values may have left the query. The statement then
    /// cannot start again.
    has_called: bool,
    /// Whether all rows must be collected before the first one is inserted, because the query would otherwise
    /// see the statement's own writes.
    collects: bool,
    error: Option<Box<Error>>,
    pub batch: SelectedRows,
    /// The file of LOAD DATA, which then takes the place of a query.
    pub(super) load: Option<Box<LoadInput>>,
    /// Number of rows in earlier batches.
    pub rows_before: u64,
}

/// Rows that a query returned. Each row is encoded as the parameters of one inserted row: one parameter for
/// each column.
#[derive(Debug, Default)]
pub(crate) struct SelectedRows {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl SelectedRows {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The parameters of the row number `row`, which must exist.
    pub(crate) fn row(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[row]]
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds the row whose parameters the builder has collected.
    pub(super) fn append(&mut self, builder: &mut ParametersBuilder) -> Result<()> {
        builder.append_to(&mut self.bytes)?;
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// Adds a row of tagged values.
    fn push(&mut self, values: &[u8], builder: &mut ParametersBuilder) -> Result<()> {
        builder.clear();
        push_values(values, builder)?;
        self.append(builder)
    }
}

/// Adds tagged values to the parameters. Error: values that no query returns.
pub(super) fn push_values(mut values: &[u8], builder: &mut ParametersBuilder) -> Result<()> {
    while !values.is_empty() {
        let (value, rest) = read_value(values).ok_or_else(Error::broken_reply)?;
        builder.push(value);
        values = rest;
    }
    Ok(())
}

impl Source {
    /// Creates the source of a file of the server, or of one that the client has not begun to send.
    pub fn of_file(plan: &LoadPlan, server_file: Option<OperationId>) -> Source {
        Source { load: Some(Box::new(LoadInput::new(plan, server_file))), ..Source::default() }
    }

    /// Creates a query that has not started.
    pub(in crate::execute) fn new(collects: bool) -> Source {
        Source { collects, ..Source::default() }
    }

    /// Whether the query waits for a reply of this operation.
    pub(in crate::execute) fn awaits(&self, operation: OperationId) -> bool {
        self.inner.awaits(operation)
    }

    /// Whether the query waits for a call of SLEEP or of a user-level lock.
    pub fn awaits_call(&self) -> bool {
        matches!(&self.inner, Execution::Tree(state) if state.awaits_call())
    }

    /// The text of SHOW PROCESSLIST while the query waits for such a call.
    pub fn call_name(&self) -> Option<&'static str> {
        if let Execution::Tree(state) = &self.inner { state.call_name() } else { None }
    }

    /// Whether the statement cannot start again, because its query has done what must not happen twice.
    pub fn has_called(&self) -> bool {
        self.has_called
    }

    /// Whether the query waits for a reply that comes soon if the statement is stopped: that of a call, or of
    /// a locking read.
    pub fn can_be_interrupted(&self) -> bool {
        self.awaits_call() || self.statement().is_some()
    }

    /// The operation (not the text) of the query in its transaction, if the query locks the rows that it
    /// reads.
    pub fn statement(&self) -> Option<OperationId> {
        match &self.inner {
            Execution::Write(state) => Some(state.operation),
            Execution::Tree(state) => state.statement(),
            _ => None,
        }
    }

    /// Whether the query has more rows to return than its reader has taken.
    pub(in crate::execute) fn awaits_room(&self) -> bool {
        self.inner.awaits_room()
    }

    /// Requests the next step of a query that runs in its own steps, unless one is requested already. A step
    /// that arrives while rows are being inserted is not run (see `continue_source`), so it is requested
    /// again here. A tree that waits for a reply, a call or its file goes on with the answer.
    pub(in crate::execute) fn request_step(&mut self, context: &mut StatementContext<'_, '_>) {
        if let Execution::Tree(state) = &mut self.inner
            && !state.wants_step()
        {
            return;
        }
        if let Some(is_requested) = self.inner.step_requested()
            && !std::mem::replace(is_requested, true)
        {
            context.request_step();
        }
    }

    /// Ends the query and discards its remaining rows, or closes the file.
    pub(in crate::execute) fn stop(self, context: &mut StatementContext<'_, '_>) {
        if let Some(mut load) = self.load {
            load.close(context);
        }
        match self.inner {
            Execution::Read(mut state) => {
                context.engine.gateway.end_read(state.operation, context.turn);
                abandon_read(context.engine, context.session, &mut state, context.turn);
            }
            Execution::Received(state) => state.abandon(context.engine, context.session, context.turn),
            Execution::Sorted(state) => state.sorter.retire(&mut context.engine.work.sorters),
            Execution::Tree(state) => state.abandon(context),
            // Other states need no message: their reply is dropped as stale when it arrives.
            _ => {}
        }
    }

    /// The execution state of the query.
    pub(in crate::execute) fn inner(&mut self) -> &mut Execution {
        &mut self.inner
    }

    /// Whether the query has returned its last row.
    pub(in crate::execute) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Takes the error of the query, if it has failed.
    pub(in crate::execute) fn take_error(&mut self) -> Option<Box<Error>> {
        self.error.take()
    }

    /// Takes the rows that the query has returned since the last call.
    pub(in crate::execute) fn take_packets(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.collected)
    }

    /// Starts the query. Its parameters are in the workspace.
    pub(in crate::execute) fn start(&mut self, context: &mut StatementContext<'_, '_>, query: &QueryPlan) {
        self.is_stateful = is_stateful(query);
        // SQL_SELECT_LIMIT bounds the rows sent to clients, not the rows written.
        let select_limit = std::mem::replace(&mut context.session.variables.select_limit, u64::MAX);
        self.run(context, |context| start_query(context, query, RowProtocol::Values));
        context.session.variables.select_limit = select_limit;
    }

    /// Starts a query of a line, as the statement has left these user variables. Its parameters are in the
    /// workspace, and what the query before it has left is forgotten.
    pub(super) fn start_line(
        &mut self,
        context: &mut StatementContext<'_, '_>,
        query: &QueryPlan,
        assigned: Vec<(Box<str>, UserValue)>,
    ) {
        (self.collects, self.has_ended, self.taken) = (true, false, 0);
        self.collected.clear();
        let QueryPlan::Tree(plan) = query else { return self.start(context, query) };
        let select_limit = std::mem::replace(&mut context.session.variables.select_limit, u64::MAX);
        self.run(context, |context| {
            let input = PlanInput { protocol: RowProtocol::Values, shaped_text: None, input: StatementInput::NONE };
            start_tree_after(context, plan, &input, assigned)
        });
        context.session.variables.select_limit = select_limit;
    }

    /// The only row of a query of a line, once it has ended. Otherwise requests the next step of the query.
    /// Errors: those of the query; `UnknownError` if it had no row.
    pub(super) fn line_values(&mut self, context: &mut StatementContext<'_, '_>) -> Result<Option<Vec<u8>>> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if !self.has_ended {
            self.request_step(context);
            return Ok(None);
        }
        let row = RowPackets::new(&self.collected).next().ok_or_else(Error::broken_reply)?;
        Ok(Some(row.into_owned()))
    }

    /// Runs one step of the query as if it were the session's own statement, and collects its output.
    pub(in crate::execute) fn run(
        &mut self,
        context: &mut StatementContext<'_, '_>,
        step: impl FnOnce(&mut StatementContext<'_, '_>) -> Progress,
    ) {
        let noted = (context.session.warning_count, context.session.error_count, context.session.diagnostics.len());
        context.session.execution = std::mem::take(&mut self.inner);
        // The end of the query is not the end of the statement that the hints are for.
        let hinted = context.session.hinted.take();
        let mut sink = RowCollector { rows: Vec::new(), error: None, collects: self.collects };
        let progress = step(&mut StatementContext {
            engine: context.engine,
            session: context.session,
            turn: context.turn,
            sink: &mut sink,
        });
        context.session.hinted = hinted;
        self.inner = std::mem::take(&mut context.session.execution);
        self.has_ended = matches!(progress, Progress::Done | Progress::Close);
        match self.collected.is_empty() {
            true => self.collected = sink.rows,
            false => self.collected.extend_from_slice(&sink.rows),
        }
        if sink.error.is_some() {
            // The query's error becomes the statement's error, which enters the diagnostics once.
            (context.session.warning_count, context.session.error_count) = (noted.0, noted.1);
            context.session.diagnostics.truncate(noted.2);
            self.error = sink.error;
        } else {
            self.has_called |= self.is_stateful && (self.has_ended || !self.collected.is_empty());
        }
        self.has_called |= self.awaits_call();
    }
}

/// Whether a query evaluates assignments of user variables or calls of the session.
fn is_stateful(query: &QueryPlan) -> bool {
    let QueryPlan::Tree(plan) = query else { return false };
    let mut is_stateful = plan.root.is_stateful;
    plan.root.root.visit(&mut |node| {
        is_stateful |= match node {
            PlanNode::Single(_) => true,
            PlanNode::Project(block, _) => block.is_stateful,
            _ => false,
        };
    });
    is_stateful
}

/// Starts the query. Its parameters are in the workspace.
pub(super) fn start_source(context: &mut StatementContext<'_, '_>, insert: &mut Insert<'_>) -> Result<Next> {
    let (Some(query), Some(mut source)) = (&insert.plan.select, insert.work.source.take()) else {
        unexpected_step("the start of a query that the INSERT does not have")
    };
    source.start(context, query);
    insert.work.source = Some(source);
    advance(context, insert)
}

/// Continues the query with a reply for it.
pub(super) fn resume_source(
    context: &mut StatementContext<'_, '_>,
    mut state: Box<CompoundState>,
    event: Event,
) -> Progress {
    let CompoundState { steps, work: Work::Insert(plan, work) } = &mut *state else {
        unexpected_step("rows of a query for a statement that has none")
    };
    let Some(mut source) = work.source.take() else { unexpected_step("rows of a query that has ended") };
    source.run(context, |context| resume(context, event));
    work.source = Some(source);
    if !matches!(steps.step, Step::Select) {
        // A batch is being inserted. When that is complete, the rows that the query has returned meanwhile
        // are processed.
        context.session.execution = Execution::Compound(state);
        return Progress::Waiting;
    }
    let next = match steps.is_stopped {
        true => Err(interrupted()),
        false => advance(context, &mut Insert { plan, steps, work }),
    };
    continue_steps(context, state, next)
}

/// Runs the step that the query has requested. Returns `None` if it has not requested one, or while rows are
/// being inserted: the step is then postponed, because its output would accumulate without a bound.
pub(super) fn continue_source(context: &mut StatementContext<'_, '_>, insert: &mut Insert<'_>) -> Option<Result<Next>> {
    let source = insert.work.source.as_mut()?;
    if source.load.as_ref().is_some_and(|load| !load.queries.is_running()) {
        // The only step of its own that a LOAD DATA requests is its end by KILL while it awaits its file.
        let is_stopped = insert.steps.is_stopped && insert.steps.awaits_input;
        return (is_stopped && matches!(insert.steps.step, Step::Select)).then(|| Err(interrupted()));
    }
    let is_requested = source.inner.step_requested().is_some_and(std::mem::take);
    if !matches!(insert.steps.step, Step::Select) {
        return None;
    }
    if insert.steps.is_stopped {
        return (!source.can_be_interrupted()).then(|| Err(interrupted()));
    }
    if !is_requested {
        return None;
    }
    source.run(context, run_requested_step);
    Some(advance(context, insert))
}

/// Inserts the next batch or waits for more rows. No insert may be pending.
pub(super) fn advance(context: &mut StatementContext<'_, '_>, insert: &mut Insert<'_>) -> Result<Next> {
    if insert.plan.load.is_some() {
        return advance_load(context, insert);
    }
    insert.steps.step = Step::Select;
    insert.steps.operation = NO_OPERATION;
    loop {
        let Some(source) = &mut insert.work.source else { return Ok(Next::Done) };
        if source.has_called {
            std::mem::take(&mut insert.steps.retry).release(context.turn);
        }
        if let Some(error) = source.error.take() {
            let retries = may_retry(insert.steps, &error) && !context.session.transaction.has_begun();
            return if retries { Ok(Next::Retry) } else { Err(error) };
        }
        if source.collects && source.collected.len() > COLLECTED_BYTES_MAX {
            let message = "Out of memory; the rows selected from the table that they are inserted into are too many";
            return Err(Error::new(ErrorCode::OutOfResources, message));
        }
        let is_ready = source.has_ended || !source.collects;
        if is_ready && source.taken < source.collected.len() {
            take_batch(source, &mut context.engine.work.builder)?;
            if let Some(next) = make_batch(context, insert)? {
                return Ok(next);
            }
            continue;
        }
        if source.has_ended {
            return Ok(Next::Done);
        }
        if !source.awaits_room() {
            source.request_step(context);
            return Ok(Next::Wait);
        }
        if let Execution::Sorted(state) = &mut source.inner
            && source.collects
        {
            // The first insert needs all rows, so the query continues immediately with its next step.
            state.awaits_room = false;
            source.request_step(context);
            return Ok(Next::Wait);
        }
        source.run(context, continue_output);
    }
}

/// Moves the next rows of the query into the batch.
fn take_batch(source: &mut Source, builder: &mut ParametersBuilder) -> Result<()> {
    source.batch.clear();
    let rest = &source.collected[source.taken..];
    for row in RowPackets::new(rest).take(BATCH_ROWS_MAX) {
        source.batch.push(&row, builder)?;
    }
    source.taken += row_start(rest, source.batch.len() as u64);
    if source.taken == source.collected.len() {
        source.collected.clear();
        source.taken = 0;
    }
    Ok(())
}

/// Encodes the rows of the batch and inserts them. If they need AUTO_INCREMENT values, these are requested
/// first. Returns `None` if IGNORE leaves out all rows.
pub(super) fn make_batch(context: &mut StatementContext<'_, '_>, insert: &mut Insert<'_>) -> Result<Option<Next>> {
    let plan = insert.plan;
    let InsertWork { source: Some(source), rows, numbered, .. } = &mut *insert.work else {
        unexpected_step("a batch of rows without a query")
    };
    rows.clear();
    let made = encode_selected_rows(context, plan, (&source.batch, source.rows_before), rows);
    if made.is_err() {
        context.session.note_evaluated(level_of_mode(plan.mode), &mut context.engine.work.scratch);
    }
    match made? {
        EncodeOutcome::NeedsNumbers(request) => {
            insert.steps.operation = context.reserve_numbers(plan.table.definition.id, request)?;
            insert.steps.step = Step::Numbers { needed: request.needed, beyond: request.beyond };
            Ok(Some(Next::Wait))
        }
        EncodeOutcome::Rows(made) => {
            require!(made.rows == rows.len() as u64, "every row that is not left out is kept");
            // Each row of the query makes all rows of VALUES, if there are any.
            source.rows_before += (source.batch.len() * plan.rows.len()) as u64;
            *numbered = made;
            match made.rows {
                0 => Ok(None),
                _ => send_step(context, insert.steps, &plan.program, Step::Batch, Locking::ROWS).map(Some),
            }
        }
    }
}

/// Continues with the AUTO_INCREMENT values for the batch.
pub(super) fn resume_numbers(
    context: &mut StatementContext<'_, '_>,
    mut state: Box<CompoundState>,
    (first, count): (u64, u64),
    error: Option<Box<Error>>,
) -> Progress {
    let CompoundState { steps, work: Work::Insert(plan, work) } = &mut *state else {
        unexpected_step("numbers for a statement that inserts nothing")
    };
    let Step::Numbers { needed, beyond } = steps.step else { unexpected_step("numbers that were not requested") };
    let next = match error {
        Some(error) => Err(error),
        None if steps.is_stopped => Err(interrupted()),
        None => context.engine.ranges.add_reserved(plan.table.definition.id, (first, count), needed, beyond).and_then(
            |()| {
                let insert = &mut Insert { plan, steps, work };
                match make_batch(context, insert)? {
                    Some(next) => Ok(next),
                    None => advance(context, insert),
                }
            },
        ),
    };
    continue_steps(context, state, next)
}

/// Collects the rows or the error of a query.
struct RowCollector {
    rows: Vec<u8>,
    error: Option<Box<Error>>,
    collects: bool,
}

impl ResultSink for RowCollector {
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

    /// Reports a full output, so that the query is suspended after every reply until its rows are inserted.
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
