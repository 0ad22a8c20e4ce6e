//! Queries whose rows stay in the session: SELECT ... INTO, SET and DO with subqueries, and the opening of a
//! cursor. They run like any other query of the session.

use std::sync::Arc;

use junctor_expression::parameter::read_value;
use junctor_gateway::Event;
use junctor_gateway::invariant;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::Value;
use junctor_signals::program::RowProtocol;
use junctor_signals::read_rows::OperationId;

use super::completion::{ChangeCounts, fail, finish_ok};
use super::compound::Source;
use super::compute::start_compute;
use super::context::StatementContext;
use super::engine::Engine;
use super::packets::{RowPackets, row_start};
use super::read::start_select;
use super::resume::{continue_output, resume, run_requested_step};
use super::retry::StatementInput;
use super::session::Session;
use super::state::{Execution, PlanInput};
use super::tree::start_tree;
use crate::mysql_catalog::show::WarningLevel;
use crate::plan::{IntoPlan, IntoTarget, Plan, QueryPlan, TableUse};
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
    /// A cursor of a prepared statement.
    Cursor { statement: u32, plan: QueryPlan, packets: Vec<u8> },
}

impl IntoState {
    pub(super) fn awaits(&self, operation: OperationId) -> bool {
        self.query.awaits(operation)
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
            Target::Row { plan, .. } => Plan::Into(Arc::clone(plan)).table_uses().collect(),
            Target::Cursor { plan, .. } => Plan::from(plan.clone()).table_uses().collect(),
        }
    }
}

/// Starts a SELECT ... INTO. The parameters are in the workspace.
pub(crate) fn start_into(context: &mut StatementContext<'_, '_>, plan: &Arc<IntoPlan>) -> Progress {
    let target = Target::Row { plan: Arc::clone(plan), row: None };
    start(context, &plan.query, target, RowProtocol::Values)
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
    run(context, Box::new(state), |context| {
        let input = PlanInput { protocol, shaped_text: None, input: StatementInput::NONE };
        match query {
            QueryPlan::Select(plan) => start_select(context, plan, &input),
            QueryPlan::Compute(plan) => start_compute(context, plan, input.protocol),
            QueryPlan::Tree(plan) => start_tree(context, plan, &input),
        }
    })
}

/// Continues the query with a reply for it.
pub(super) fn resume_into(context: &mut StatementContext<'_, '_>, state: Box<IntoState>, event: Event) -> Progress {
    run(context, state, |context| resume(context, event))
}

/// Runs the step that the query has requested.
pub(super) fn continue_into(context: &mut StatementContext<'_, '_>) -> Progress {
    let Execution::Into(state) = std::mem::take(&mut context.session.execution) else {
        invariant::fail("a step of SELECT INTO belongs to one", format_args!("{:?}", context.session.execution))
    };
    run(context, state, run_requested_step)
}

/// Runs steps of the query until it waits or ends.
fn run(
    context: &mut StatementContext<'_, '_>,
    mut state: Box<IntoState>,
    step: impl FnOnce(&mut StatementContext<'_, '_>) -> Progress,
) -> Progress {
    state.query.run(context, step);
    loop {
        if let Some(error) = state.query.take_error() {
            return fail(context, &error);
        }
        if let Err(error) = state.take_rows(context.engine.cursor_bytes) {
            let IntoState { target, query, .. } = *state;
            query.stop(context);
            // As in MySQL, the variables have the values of the first row.
            let assigned = match &target {
                Target::Row { plan, row } => assign(context, plan, row.as_deref()),
                Target::Cursor { .. } => Ok(()),
            };
            return fail(context, assigned.as_ref().err().unwrap_or(&error));
        }
        if state.query.has_ended() {
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
    /// Takes the rows that have arrived. `cursor_bytes` are those that the cursors of the block hold. Errors:
    /// 1172 for the second row of INTO, 1041 for too many rows of a cursor.
    fn take_rows(&mut self, cursor_bytes: usize) -> Result<()> {
        let arrived = self.query.take_packets();
        for row in RowPackets::new(&arrived) {
            self.rows += 1;
            let Target::Row { row: first, .. } = &mut self.target else { continue };
            if self.rows > 1 {
                return Err(Error::new(ErrorCode::TooManyRows, "Result consisted of more than one row"));
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

/// Answers, after all rows have arrived.
fn finish(context: &mut StatementContext<'_, '_>, state: IntoState) -> Progress {
    let IntoState { target, rows, .. } = state;
    match target {
        Target::Row { plan, row } => {
            if let IntoTarget::Assignments(items) = &plan.target {
                context.session.execution = Execution::Idle;
                return context.assign_answers(items, row.as_deref().unwrap_or_default());
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
    let IntoTarget::Variables(variables) = &plan.target else { return Ok(()) };
    let mut values = variables.iter().zip(row.unwrap_or_default());
    values.try_for_each(|(name, value)| context.session.variables.put_user_variable(name, value.clone()))
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
