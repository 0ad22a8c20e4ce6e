//! Queries whose rows do not go to the client: SELECT ... INTO, SET and DO with subqueries, and the opening
//! of a cursor. They run like any other query of the session.
//!
//! The query of INTO OUTFILE starts when its file is open. Rows are written in steps. While a write is under
//! way the query may return the rows that it is working on, but it is not continued. The statement is
//! answered when its file is closed or, after an error, deleted.

use std::sync::Arc;

use junctor_expression::parameter::read_value;
use junctor_gateway::file::{FileAnswer, FileBuffer, FileUse};
use junctor_gateway::{Event, TurnContext, invariant};
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::row_encoding::ResultColumn;
use junctor_model::user_value::UserValue;
use junctor_model::value::Value;
use junctor_signals::program::RowProtocol;
use junctor_signals::read_rows::OperationId;

use super::completion::{ChangeCounts, fail, finish_ok, interrupted};
use super::compound::Source;
use super::compute::start_compute;
use super::context::StatementContext;
use super::engine::Engine;
use super::output_file::{FilePhase, FileTarget};
use super::packets::{RowPackets, row_start};
use super::read::start_select;
use super::resume::{continue_output, resume, run_requested_step};
use super::retry::StatementInput;
use super::server_file::{FILE_STEP_BYTES, FileAttempt};
use super::session::Session;
use super::state::{Execution, PlanInput};
use super::tree::start_tree;
use crate::mysql_catalog::is_system_database;
use crate::mysql_catalog::show::WarningLevel;
use crate::plan::{IntoPlace, IntoPlan, Plan, QueryPlan, TableUse, ambiguous_separator};
use crate::result::Progress;

/// A query that has not ended.
#[derive(Debug)]
pub(crate) struct IntoState {
    query: Source,
    target: Target,
    rows: u64,
}

/// The place for the rows.
#[derive(Debug)]
enum Target {
    /// Variables, for the values of the first row and no other.
    Row { plan: Arc<IntoPlan>, row: Option<Vec<Value>> },
    /// A file of the server.
    File { plan: Arc<IntoPlan>, file: Box<FileTarget> },
    /// A cursor of a prepared statement.
    Cursor { statement: u32, plan: QueryPlan, packets: Vec<u8> },
}

impl IntoState {
    pub(super) fn awaits(&self, operation: OperationId) -> bool {
        let is_of_file = matches!(&self.target, Target::File { file, .. } if file.operation == operation);
        is_of_file || self.query.awaits(operation)
    }

    /// Stops a statement that writes a file, whose query has ended. The statement ends when the file is
    /// deleted. Returns false if it has no file.
    pub(super) fn stop_file(&mut self, engine: &mut Engine, turn: &mut TurnContext<'_>) -> bool {
        let Target::File { file, .. } = &mut self.target else { return false };
        // A file that is being closed is complete.
        if !matches!(file.phase, FilePhase::Closing | FilePhase::Discarding(_)) {
            file.phase = FilePhase::Discarding(interrupted());
            engine.gateway.discard_file(file.operation, true, turn);
        }
        true
    }

    /// The number of rows that an INTO OUTFILE has taken from its query; `None` for other statements.
    pub(crate) fn rows_written(&self) -> Option<u64> {
        matches!(self.target, Target::File { .. }).then_some(self.rows)
    }

    /// Whether the statement waits only for its file, because the query has not started or is over.
    pub(super) fn awaits_file_only(&self) -> bool {
        let Target::File { file, .. } = &self.target else { return false };
        matches!(file.phase, FilePhase::Opening | FilePhase::Closing | FilePhase::Discarding(_))
            || self.query.has_ended()
    }

    pub(super) fn step_requested(&mut self) -> Option<&mut bool> {
        self.query.inner().step_requested()
    }

    /// The execution of the query, for KILL.
    pub(super) fn query(&mut self) -> &mut Execution {
        self.query.inner()
    }

    pub(super) fn table_uses(&self) -> Vec<TableUse> {
        match &self.target {
            Target::Row { plan, .. } | Target::File { plan, .. } => Plan::Into(Arc::clone(plan)).table_uses().collect(),
            Target::Cursor { plan, .. } => Plan::from(plan.clone()).table_uses().collect(),
        }
    }
}

/// Starts a SELECT ... INTO. The parameters are in the workspace.
pub(crate) fn start_into(context: &mut StatementContext<'_, '_>, plan: &Arc<IntoPlan>) -> Progress {
    let target = || Target::Row { plan: Arc::clone(plan), row: None };
    let output = match &plan.place {
        IntoPlace::File(output) => output,
        IntoPlace::Variables(_) => return start(context, &plan.query, target(), RowProtocol::Values),
        IntoPlace::Assignments(items) => {
            if let Err(error) = context.check_assignments(items) {
                return fail(context, &error);
            }
            let mut state = Box::new(IntoState { query: Source::new(false), target: target(), rows: 0 });
            state.query.start(context, &plan.query);
            return advance(context, state);
        }
    };
    let operation = match context.open_server_file(&output.name, FileUse::Create) {
        Ok(operation) => operation,
        Err(error) => return fail(context, &error),
    };
    if output.lines.as_ref().is_some_and(|lines| lines.is_ambiguous) {
        let (code, text) = ambiguous_separator();
        context.session.warn(WarningLevel::Warning, code.errno(), text.into());
    }
    let file = Box::new(FileTarget::new(operation, context.copy_parameters()));
    let target = Target::File { plan: Arc::clone(plan), file };
    context.session.execution = Execution::Into(Box::new(IntoState { query: Source::new(false), target, rows: 0 }));
    Progress::Waiting
}

/// Opens a cursor of a prepared statement. The parameters are in the workspace.
#[cold]
pub(crate) fn start_cursor(context: &mut StatementContext<'_, '_>, plan: QueryPlan) -> Progress {
    let statement = std::mem::take(&mut context.session.cursor_wanted);
    context.engine.close_cursor(context.session, statement);
    let target = Target::Cursor { statement, plan: plan.clone(), packets: Vec::new() };
    start(context, &plan, target, RowProtocol::Binary)
}

fn start(context: &mut StatementContext<'_, '_>, query: &QueryPlan, target: Target, protocol: RowProtocol) -> Progress {
    let state = IntoState { query: Source::new(false), target, rows: 0 };
    run(context, Box::new(state), |context| start_query(context, query, protocol))
}

/// Starts a query as the session's own statement. The parameters are in the workspace.
pub(super) fn start_query(
    context: &mut StatementContext<'_, '_>,
    query: &QueryPlan,
    protocol: RowProtocol,
) -> Progress {
    let input = PlanInput { protocol, shaped_text: None, input: StatementInput::NONE };
    match query {
        QueryPlan::Select(plan) => start_select(context, plan, &input),
        QueryPlan::Compute(plan) => start_compute(context, plan, input.protocol),
        QueryPlan::Tree(plan) => start_tree(context, plan, &input),
    }
}

/// Continues the query with a reply for it, or the statement with an answer about its file.
pub(super) fn resume_into(context: &mut StatementContext<'_, '_>, state: Box<IntoState>, event: Event) -> Progress {
    match event {
        // The query has a temporary file of its own.
        Event::File { operation, step, bytes } if !state.query.awaits(operation) => {
            resume_file(context, state, step, bytes)
        }
        event => run(context, state, |context| resume(context, event)),
    }
}

/// Continues the statement with an answer about its file.
fn resume_file(
    context: &mut StatementContext<'_, '_>,
    mut state: Box<IntoState>,
    step: FileAnswer,
    bytes: FileBuffer,
) -> Progress {
    let Target::File { plan, file } = &mut state.target else {
        invariant::fail("an answer about a file belongs to a statement with one", format_args!("{step:?}"))
    };
    let IntoPlace::File(output) = &plan.place else {
        invariant::fail("a statement with a file has its name", format_args!("{plan:?}"))
    };
    match (std::mem::replace(&mut file.phase, FilePhase::Ready), step) {
        (FilePhase::Opening, Err(error)) => {
            let error = context.server_file_error(&output.name, FileAttempt::Create, error);
            context.turn.buffers.give(std::mem::take(&mut file.parameters));
            fail(context, &error)
        }
        (FilePhase::Opening, Ok(_)) => {
            let parameters = std::mem::take(&mut file.parameters);
            context.engine.work.parameters.clear();
            context.engine.work.parameters.extend_from_slice(&parameters);
            context.turn.buffers.give(parameters);
            let plan = Arc::clone(plan);
            run(context, state, |context| start_query(context, &plan.query, RowProtocol::Text))
        }
        (FilePhase::Discarding(error), _) => fail(context, &error),
        (FilePhase::Closing, Ok(_)) => finish(context, *state),
        (FilePhase::Closing, Err(error)) => {
            // The operation has ended with the close.
            let error = context.server_file_error(&output.name, FileAttempt::Write, error);
            fail(context, &error)
        }
        (_, Ok(_)) => {
            file.buffer = bytes;
            advance(context, state)
        }
        (_, Err(error)) => {
            let error = context.server_file_error(&output.name, FileAttempt::Write, error);
            std::mem::take(&mut state.query).stop(context);
            end_with(context, state, error)
        }
    }
}

/// Ends the statement with an error, after the query has ended.
fn end_with(context: &mut StatementContext<'_, '_>, mut state: Box<IntoState>, error: Box<Error>) -> Progress {
    let Target::File { file, .. } = &mut state.target else { return fail(context, &error) };
    file.phase = FilePhase::Discarding(error);
    context.engine.gateway.discard_file(file.operation, true, context.turn);
    context.session.execution = Execution::Into(state);
    Progress::Waiting
}

/// Runs the step that the query has requested.
pub(super) fn continue_into(context: &mut StatementContext<'_, '_>) -> Progress {
    let Execution::Into(state) = std::mem::take(&mut context.session.execution) else {
        invariant::fail("a step of SELECT INTO belongs to one", format_args!("{:?}", context.session.execution))
    };
    if state.is_writing() {
        // The step is requested again when the rows before it are written.
        context.session.execution = Execution::Into(state);
        return Progress::Waiting;
    }
    run(context, state, run_requested_step)
}

/// Runs a step of the query, and more until the statement waits or ends.
fn run(
    context: &mut StatementContext<'_, '_>,
    mut state: Box<IntoState>,
    step: impl FnOnce(&mut StatementContext<'_, '_>) -> Progress,
) -> Progress {
    state.query.run(context, step);
    advance(context, state)
}

/// Takes the rows that have arrived, and runs steps of the query until the statement waits or ends.
fn advance(context: &mut StatementContext<'_, '_>, mut state: Box<IntoState>) -> Progress {
    loop {
        if let Some(error) = state.query.take_error() {
            return end_with(context, state, error);
        }
        if state.is_writing() {
            context.session.execution = Execution::Into(state);
            return Progress::Waiting;
        }
        if let Err(error) = state.take_rows(context.engine.cursor_bytes) {
            std::mem::take(&mut state.query).stop(context);
            // As in MySQL, the variables have the values of the first row.
            let assigned = match &state.target {
                Target::Row { plan, row } => assign(context, plan, row.as_deref()),
                Target::File { .. } | Target::Cursor { .. } => Ok(()),
            };
            return end_with(context, state, assigned.err().unwrap_or(error));
        }
        let has_ended = state.query.has_ended();
        if let Target::File { file, .. } = &mut state.target {
            let is_due = has_ended && !file.pending.is_empty() || file.pending.len() >= FILE_STEP_BYTES;
            if is_due {
                file.write(&mut context.engine.gateway, context.turn);
                context.session.execution = Execution::Into(state);
                return Progress::Waiting;
            }
            if has_ended {
                file.phase = FilePhase::Closing;
                context.engine.gateway.finish_file(file.operation, context.turn);
                context.session.execution = Execution::Into(state);
                return Progress::Waiting;
            }
        }
        if has_ended {
            return finish(context, *state);
        }
        if !state.query.awaits_room() {
            state.query.request_step(context);
            context.session.execution = Execution::Into(state);
            return Progress::Waiting;
        }
        state.query.run(context, continue_output);
    }
}

impl IntoState {
    /// Whether rows of a file are being written.
    fn is_writing(&self) -> bool {
        matches!(&self.target, Target::File { file, .. } if !matches!(file.phase, FilePhase::Ready))
    }

    /// Takes the rows that have arrived. `cursor_bytes` are those that the cursors of the block hold. Errors:
    /// 1172 for the second row of INTO variables or DUMPFILE, 1041 for too many rows of a cursor.
    fn take_rows(&mut self, cursor_bytes: usize) -> Result<()> {
        let arrived = self.query.take_packets();
        if let Target::File { plan, file } = &mut self.target {
            let IntoPlace::File(output) = &plan.place else { return Ok(()) };
            file.take(arrived);
            self.rows += file.make_lines(output.lines.as_ref())?;
            return match output.lines.is_none() && self.rows > 1 {
                true => Err(several_rows()),
                false => Ok(()),
            };
        }
        for row in RowPackets::new(&arrived) {
            self.rows += 1;
            let Target::Row { row: first, .. } = &mut self.target else { continue };
            if self.rows > 1 {
                return Err(several_rows());
            }
            let mut values = Vec::new();
            let mut rest = &row[..];
            while !rest.is_empty() {
                let (value, after) = read_value(rest).ok_or_else(Error::broken_reply)?;
                values.push(value.to_value());
                rest = after;
            }
            *first = Some(values);
        }
        if let Target::Cursor { packets, .. } = &mut self.target {
            let bytes = packets.len() + arrived.len();
            if bytes > CURSOR_BYTES_MAX || cursor_bytes + bytes > CURSOR_BYTES_ALL_MAX {
                return Err(Error::new(ErrorCode::OutOfResources, "Out of memory; the rows of a cursor are too many"));
            }
            match packets.is_empty() {
                true => *packets = arrived,
                false => packets.extend_from_slice(&arrived),
            }
        }
        Ok(())
    }
}

/// Error 1172.
#[cold]
fn several_rows() -> Box<Error> {
    Error::new(ErrorCode::TooManyRows, "Result consisted of more than one row")
}

/// Answers, after all rows have arrived.
fn finish(context: &mut StatementContext<'_, '_>, state: IntoState) -> Progress {
    let IntoState { target, rows, .. } = state;
    match target {
        Target::Row { plan, row } => {
            if let IntoPlace::Assignments(items) = &plan.place {
                context.session.execution = Execution::Idle;
                let values =
                    row.as_deref().unwrap_or_default().iter().zip(plan.query.header().columns.iter().map(collation_of));
                return context.assign_answers(items, values);
            }
            if row.is_none() {
                let message = "No data - zero rows fetched, selected, or processed";
                context.session.warn(WarningLevel::Warning, ErrorCode::NoData.errno(), message.into());
            }
            if let Err(error) = assign(context, &plan, row.as_deref()) {
                return fail(context, &error);
            }
            finish_ok(context, ChangeCounts { affected_rows: rows, last_insert_id: 0, has_info: false })
        }
        Target::File { .. } => {
            finish_ok(context, ChangeCounts { affected_rows: rows, last_insert_id: 0, has_info: false })
        }
        Target::Cursor { statement, plan, packets } => {
            context.session.execution = Execution::Idle;
            context.session.row_count = -1;
            context.session.found_rows = rows;
            if !context.session.interrupted {
                context.sink.cursor_opened(plan.header(), &context.session.completion());
                context.engine.cursor_bytes += packets.len();
                context.session.cursors.push(Cursor { statement, packets, position: 0 });
            }
            Progress::Done
        }
    }
}

/// Assigns the values of a row to the variables. Error: 1041 for too many or too long values.
fn assign(context: &mut StatementContext<'_, '_>, plan: &IntoPlan, row: Option<&[Value]>) -> Result<()> {
    let IntoPlace::Variables(variables) = &plan.place else { return Ok(()) };
    let values = variables.iter().zip(row.unwrap_or_default());
    let connection = context.session.variables.collation_connection;
    let mut values = values.zip(&plan.query.header().columns);
    values.try_for_each(|((name, value), column)| {
        // As in `ResultType::variable_collation`. A result does not know which texts are the system's.
        let may_be_of_system = column.database.is_empty() || is_system_database(&column.database);
        let collation = match collation_of(column) {
            CollationId::UTF8MB4_GENERAL_CI if may_be_of_system => connection,
            collation => collation,
        };
        context.session.variables.put_user_variable(name, UserValue::new(value.clone(), collation))
    })
}

/// The collation of a column of a result.
fn collation_of(column: &ResultColumn) -> CollationId {
    CollationId::from_number(column.charset).unwrap_or(CollationId::BINARY)
}

/// Maximum bytes of the rows of a cursor.
const CURSOR_BYTES_MAX: usize = 256 << 20;
/// Maximum bytes of the rows of all cursors of a block.
const CURSOR_BYTES_ALL_MAX: usize = 1 << 30;
/// Number of bytes after which a fetch ends, although the client wants more rows. It fetches again.
const FETCH_BYTES_MAX: usize = 1 << 20;

/// An open cursor: the rows that the client has not fetched.
#[derive(Debug)]
pub(crate) struct Cursor {
    statement: u32,
    packets: Vec<u8>,
    /// Start of the next row in `packets`.
    position: usize,
}

impl Engine {
    /// Closes the cursor of a prepared statement, if it has one.
    pub fn close_cursor(&mut self, session: &mut Session, statement: u32) {
        if let Some(position) = session.cursors.iter().position(|cursor| cursor.statement == statement) {
            self.cursor_bytes -= session.cursors.swap_remove(position).packets.len();
        }
    }

    /// Closes all cursors of a session.
    pub(crate) fn close_cursors(&mut self, session: &mut Session) {
        for cursor in std::mem::take(&mut session.cursors) {
            self.cursor_bytes -= cursor.packets.len();
        }
    }
}

impl StatementContext<'_, '_> {
    /// Executes COM_STMT_FETCH. Like MySQL's, a cursor reports its end when a fetch asks for more rows than
    /// it has left.
    pub(crate) fn fetch(&mut self, statement: u32, rows_max: u32) -> Progress {
        self.session.clear_diagnostics();
        if self.session.statements.get(statement).is_none() {
            let message = format!("Unknown prepared statement handler ({statement}) given to mysqld_stmt_fetch");
            return fail(self, &Error::new(ErrorCode::UnknownPreparedStatement, message));
        }
        let Some(cursor) = self.session.cursors.iter_mut().find(|cursor| cursor.statement == statement) else {
            let message = format!("The statement ({statement}) has no open cursor.");
            return fail(self, &Error::new(ErrorCode::NoOpenCursor, message));
        };
        let mut rest = &cursor.packets[cursor.position..];
        let (mut rows, mut bytes) = (0, 0);
        while rows < rows_max && bytes < FETCH_BYTES_MAX && !rest.is_empty() {
            let length = row_start(rest, 1);
            rest = &rest[length..];
            bytes += length;
            rows += 1;
        }
        let fetched = cursor.position..cursor.position + bytes;
        cursor.position += bytes;
        let is_end = rest.is_empty() && rows < rows_max;
        self.sink.row_packets(&cursor.packets[fetched]);
        let completion = self.session.completion();
        self.sink.end_fetch(&completion, is_end);
        if is_end {
            self.engine.close_cursor(self.session, statement);
        }
        Progress::Done
    }
}
