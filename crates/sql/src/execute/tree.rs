//! Executes trees of operators: starts them, runs steps when replies arrive, and sends the rows.

use std::sync::Arc;

use junctor_expression::{Parameters, Scratch};
use junctor_gateway::{Event, TurnContext, invariant};
use junctor_model::error::{Error, Result};
use junctor_model::session_call::SessionCall;
use junctor_model::user_value::UserValue;
use junctor_model::value::ValueRef;
use junctor_signals::diagnostics;
use junctor_signals::program::RowProtocol;
use junctor_signals::read_rows::OperationId;

use super::completion::{fail, finish_rows, interrupted};
use super::context::StatementContext;
use super::engine::Engine;
use super::memory::{MemoryLimits, QueryMemory};
use super::operator::{Batch, Input, Leaf, Meters, Run, STEP_ROWS, SpillFile, Step, open_block};
use super::packets::{Window, append_row};
use super::read::window_of;
use super::resume::{resume, run_requested_step, unexpected};
use super::retry::{RetryInput, RetryState, is_temporary};
use super::session::Session;
use super::state::{Execution, PlanInput};
use super::user_lock::{action_of, state_name};
use crate::mysql_catalog::show::WarningLevel;
use crate::mysql_catalog::variable::unsigned_of;
use crate::plan::tree::PlanNode;
use crate::plan::{LeafMeasure, Measures, OperatorMeasure, TreePlan, explain_operators};
use crate::result::{OUTPUT_PART_BYTES, Progress};

/// The execution of a tree.
#[derive(Debug)]
pub(crate) struct TreeState {
    pub plan: Arc<TreePlan>,
    protocol: RowProtocol,
    parameters: Vec<u8>,
    root: Option<Input>,
    leaves: Vec<Leaf>,
    scratch: Scratch,
    window: Window,
    /// Rows returned, and rows found without LIMIT.
    rows: u64,
    found: u64,
    memory: Arc<QueryMemory>,
    spill: Box<SpillFile>,
    header_sent: bool,
    /// A batch of which the rows from the first number to the second are not sent yet.
    unsent: Option<(Batch, usize, usize)>,
    /// Whether the statement was stopped, and ends when its locking read has ended.
    is_stopped: bool,
    /// The call of SLEEP or of a user-level lock that a row waits for.
    call: Option<(OperationId, SessionCall)>,
    /// Whether such a call has been carried out, so that the statement cannot start again.
    has_called: bool,
    /// Whether the session waits until the client has received the last part.
    pub awaits_room: bool,
    /// Whether the session has sent itself a `ContinueStatement` signal.
    pub step_requested: bool,
    /// Whether the last step has ended only because it had done enough.
    yields: bool,
    retry: RetryInput,
    /// The meters of EXPLAIN ANALYZE.
    meters: Option<Arc<Meters>>,
}

impl TreeState {
    /// Whether a row waits for a call of SLEEP or of a user-level lock.
    pub fn awaits_call(&self) -> bool {
        self.call.is_some()
    }

    /// The text of SHOW PROCESSLIST while a row waits for such a call.
    pub fn call_name(&self) -> Option<&'static str> {
        self.call.as_ref().map(|(_, call)| state_name(call.function == "SLEEP"))
    }

    /// Whether a leaf or a call waits for a reply of this operation.
    pub fn awaits(&self, operation: OperationId) -> bool {
        let of_call = self.call.as_ref().is_some_and(|(awaited, _)| *awaited == operation);
        let of_leaf = |leaf: &Leaf| leaf.source.as_ref().is_some_and(|source| source.awaits(operation));
        of_call || self.spill.awaits(operation) || self.leaves.iter().any(of_leaf)
    }

    /// Whether rows are being written to the temporary file, or read from it.
    pub fn uses_file(&self) -> bool {
        self.spill.is_busy()
    }

    /// Whether a step would go on. It would not while the tree waits for a reply, an answer about its file or
    /// a call.
    pub fn wants_step(&mut self) -> bool {
        self.yields || self.inner().any(|inner| inner.step_requested().is_some_and(|requested| *requested))
    }

    /// Whether a step has been requested, by the tree or by a leaf.
    pub fn take_request(&mut self) -> bool {
        let mut is_requested = std::mem::take(&mut self.step_requested);
        for leaf in &mut self.leaves {
            if let Some(source) = &mut leaf.source {
                is_requested |= source.inner().step_requested().is_some_and(|requested| *requested);
            }
        }
        is_requested
    }

    /// The executions of the leaves, for KILL.
    pub fn inner(&mut self) -> impl Iterator<Item = &mut Execution> {
        self.leaves.iter_mut().filter_map(|leaf| leaf.source.as_mut()).map(|source| source.inner())
    }

    /// The operation of a leaf that locks rows in the transaction.
    pub fn statement(&self) -> Option<OperationId> {
        self.leaves.iter().find_map(|leaf| leaf.source.as_ref()?.statement())
    }

    /// Notes that the statement ends when its locking read has ended.
    pub fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Ends a tree whose rows are no longer wanted.
    pub fn abandon(mut self: Box<Self>, context: &mut StatementContext<'_, '_>) {
        close(context, &mut self);
        self.release(context.engine, context.session, context.turn);
    }

    /// Ends the snapshot and the copies of the statement. The leaves have ended or are stale.
    pub fn release(mut self, engine: &mut Engine, session: &mut Session, turn: &mut TurnContext<'_>) {
        std::mem::take(&mut self.retry).release(turn);
        self.root = None;
        self.spill.end(engine, turn);
        session.note_evaluated(WarningLevel::Warning, &mut self.scratch);
        session.shares_snapshot = false;
        engine.gateway.end_statement(&mut session.transaction);
    }
}

/// Starts a tree. The parameters are in the workspace.
pub(crate) fn start_tree(
    context: &mut StatementContext<'_, '_>,
    plan: &Arc<TreePlan>,
    input: &PlanInput<'_>,
) -> Progress {
    start_tree_after(context, plan, input, Vec::new())
}

/// As [`start_tree`], for a statement that has assigned these values to user variables.
pub(super) fn start_tree_after(
    context: &mut StatementContext<'_, '_>,
    plan: &Arc<TreePlan>,
    input: &PlanInput<'_>,
    assigned: Vec<(Box<str>, UserValue)>,
) -> Progress {
    match begin(context, plan, input) {
        Ok(state) => {
            state.scratch.restore_assigned(assigned);
            drive(context, Box::new(state))
        }
        Err(error) => fail(context, &error),
    }
}

fn begin(context: &mut StatementContext<'_, '_>, plan: &Arc<TreePlan>, input: &PlanInput<'_>) -> Result<TreeState> {
    context.session.enter_statement();
    context.session.variables.sort_with_files(false);
    let parameters = context.engine.work.parameters.clone();
    let select_limit = context.session.variables.select_limit;
    let window = window_of(plan.limit.as_ref(), Parameters::from_bytes(&parameters), select_limit)?;
    if !plan.tables.is_empty() {
        context.engine.gateway.take_snapshot(&mut context.session.transaction)?;
        context.session.shares_snapshot = true;
    }
    let in_transaction = context.session.transaction.explicit;
    let retry = input.input.keep(in_transaction, &context.engine.work.parameters, context.turn);
    let mut scratch = Scratch::new();
    scratch.set_strict(plan.is_strict);
    scratch.set_warnings_max(context.session.variables.warnings_max);
    scratch.set_value_rules(context.session.variables.value_rules());
    scratch.set_now(context.session.variables.timestamp_us.unwrap_or(context.turn.wall_clock_us));
    let leaves = plan.leaves.iter().map(|_| Leaf::default()).collect();
    let (limits, space_max) = limits_of(context);
    let resources = &context.engine.settings.query_resources;
    Ok(TreeState {
        plan: Arc::clone(plan),
        protocol: input.protocol,
        parameters,
        root: None,
        leaves,
        scratch,
        window,
        rows: 0,
        found: 0,
        memory: QueryMemory::new(resources, limits),
        spill: Box::new(SpillFile::new(resources, space_max, limits.spill_from)),
        header_sent: false,
        unsent: None,
        is_stopped: false,
        call: None,
        has_called: false,
        awaits_room: false,
        step_requested: false,
        yields: false,
        retry,
        meters: plan.explain.is_some_and(|request| request.analyze).then(|| Arc::new(Meters::new(&plan.root))),
    })
}

/// The limits of the memory of a query, and of the temporary space of all queries.
fn limits_of(context: &StatementContext<'_, '_>) -> (MemoryLimits, u64) {
    let Engine { settings, globals, .. } = &*context.engine;
    let number = |name| unsigned_of(&globals.value_named(name));
    let kept_max = settings.sort_buffer_bytes_max as u64;
    let spill_from = context.session.variables.temporary_table_bytes();
    let limits =
        MemoryLimits { spill_from, bytes_max: kept_max.max(spill_from), node_max: number("temptable_max_ram") };
    let may_spill = settings.temporary_files.is_some();
    (limits, if may_spill { number("temptable_max_mmap") } else { 0 })
}

/// Continues a tree with a reply for one of its leaves or for a call, or an answer about its temporary file.
pub(super) fn resume_tree(context: &mut StatementContext<'_, '_>, mut state: Box<TreeState>, event: Event) -> Progress {
    let operation = super::resume::operation_of(&event);
    if let Event::File { step, bytes, .. } = event {
        return match state.spill.on_answer(context, step, bytes) {
            Ok(()) => drive(context, state),
            Err(error) => settle(context, state, Err(error)),
        };
    }
    if let Some((_, call)) = state.call.take_if(|(awaited, _)| *awaited == operation) {
        let (value, error) = match event {
            Event::UserLock { value, error, .. } => (value, error),
            other => unexpected("a user-level lock", &other),
        };
        if let Some(error) = error {
            return settle(context, state, Err(error));
        }
        state.has_called = true;
        state.scratch.session_calls_mut().answer(call, value);
        return drive(context, state);
    }
    let awaits = |leaf: &&mut Leaf| leaf.source.as_ref().is_some_and(|source| source.awaits(operation));
    if let Some(leaf) = state.leaves.iter_mut().find(awaits)
        && let Some(source) = &mut leaf.source
    {
        leaf.measure.replies += 1;
        source.run(context, |context| resume(context, event));
    }
    drive(context, state)
}

/// Runs the steps that the tree and its leaves have requested.
pub(super) fn continue_tree(context: &mut StatementContext<'_, '_>) -> Progress {
    let Execution::Tree(mut state) = std::mem::take(&mut context.session.execution) else {
        invariant::fail("a step of a tree belongs to one", format_args!("{:?}", context.session.execution))
    };
    for leaf in &mut state.leaves {
        if let Some(source) = &mut leaf.source
            && source.inner().step_requested().is_some_and(std::mem::take)
        {
            source.run(context, run_requested_step);
        }
    }
    drive(context, state)
}

/// Runs one step of the operators, unless a row waits for a call, or the client must receive rows first.
fn drive(context: &mut StatementContext<'_, '_>, mut state: Box<TreeState>) -> Progress {
    state.yields = false;
    let stepped = match () {
        () if state.is_stopped => stopped(&mut state),
        () if state.awaits_room || state.call.is_some() => Ok(Outcome::Waits),
        () => match step(context, &mut state) {
            Ok(Outcome::Calls) => begin_call(context, &mut state),
            other => other,
        },
    };
    settle(context, state, stepped)
}

/// Begins the call that a row waits for.
fn begin_call(context: &mut StatementContext<'_, '_>, state: &mut TreeState) -> Result<Outcome> {
    let Some(call) = state.scratch.session_calls_mut().take_wanted() else { return Ok(Outcome::Yields) };
    if call.function == "BENCHMARK" {
        return Ok(Outcome::Yields);
    }
    let action = action_of(call.function, &call.arguments)?;
    // A lock that is granted after the statement has ended is released at the end of the session, too.
    context.session.holds_user_locks |= call.function == "GET_LOCK";
    let operation = context.engine.gateway.use_user_lock(context.session.connection, action, context.turn)?;
    state.call = Some((operation, call));
    Ok(Outcome::Waits)
}

/// Goes on as the outcome of a step says.
fn settle(context: &mut StatementContext<'_, '_>, mut state: Box<TreeState>, stepped: Result<Outcome>) -> Progress {
    // The user variables that the statement assigns stay with it, because its next steps read them.
    if let Some(diagnostics) = diagnostics::take(&mut state.scratch) {
        context.session.note_diagnostics(WarningLevel::Warning, *diagnostics);
    }
    match stepped {
        Ok(Outcome::Waits | Outcome::Calls) => {
            context.session.execution = Execution::Tree(state);
            Progress::Waiting
        }
        Ok(Outcome::Yields) => {
            state.yields = true;
            if !std::mem::replace(&mut state.step_requested, true) {
                context.request_step();
            }
            context.session.execution = Execution::Tree(state);
            Progress::Waiting
        }
        Ok(Outcome::Full) => {
            state.awaits_room = true;
            context.session.execution = Execution::Tree(state);
            Progress::MoreOutput
        }
        Ok(Outcome::Done) => {
            let is_explained = explain(context, &mut state);
            close(context, &mut state);
            if !state.header_sent {
                context.sink.header(&state.plan.header, &context.session.completion());
            }
            let rows = match is_explained {
                true => 1,
                false if state.plan.calc_found_rows => state.found,
                false => state.rows,
            };
            state.release(context.engine, context.session, context.turn);
            finish_rows(context, rows)
        }
        Err(error) => {
            close(context, &mut state);
            let may_start_again =
                !state.header_sent && !state.has_called && !context.session.interrupted && !state.retry.is_none();
            let retries = may_start_again && context.may_succeed_after(&error);
            let retry = std::mem::take(&mut state.retry);
            // A compound statement around the tree may start again, too.
            if !state.has_called && is_temporary(&error) {
                state.scratch.take_assigned();
            }
            state.release(context.engine, context.session, context.turn);
            if retries {
                context.session.execution = Execution::Retry(Box::new(RetryState::after(&error, retry)));
                return Progress::Waiting;
            }
            retry.release(context.turn);
            fail(context, &error)
        }
    }
}

/// The state of the tree after a step.
enum Outcome {
    Waits,
    /// A row waits for a call.
    Calls,
    Yields,
    Full,
    Done,
}

fn stopped(state: &mut TreeState) -> Result<Outcome> {
    let runs = state.leaves.iter().filter_map(|leaf| leaf.source.as_ref()).any(|source| source.statement().is_some());
    if runs || state.call.is_some() { Ok(Outcome::Waits) } else { Err(interrupted()) }
}

fn step(context: &mut StatementContext<'_, '_>, state: &mut TreeState) -> Result<Outcome> {
    if state.plan.explain.is_some_and(|request| !request.analyze) {
        return Ok(Outcome::Done);
    }
    // A tree that never waits takes many steps before the timer's turn comes.
    if context.session.query_deadline.is_some_and(|deadline| context.turn.turn_start > deadline) {
        return Err(Error::query_timed_out());
    }
    let TreeState { plan, parameters, root, leaves, scratch, memory, spill, meters, .. } = state;
    let mut run = Run {
        context,
        plan: plan.as_ref(),
        parameters,
        leaves,
        scratch,
        rows_left: STEP_ROWS,
        yields: false,
        memory,
        spill,
        spilled: (0, 0),
        meters: meters.as_ref(),
    };
    if root.is_none() {
        *root = Some(open_block(&run, &run.plan.root, &[]));
    }
    let Some(root) = root else { return Ok(Outcome::Done) };
    let counts_all = run.plan.calc_found_rows;
    loop {
        let (batch, first, last, left_out) = match state.unsent.take() {
            Some((batch, first, last)) => (batch, first, last, 0),
            None if state.window.remaining == 0 && !counts_all => return Ok(Outcome::Done),
            None => {
                let batch = match root.next(&mut run)? {
                    Step::Batch(batch) => batch,
                    Step::Wait if run.scratch.session_calls().is_wanting() => return Ok(Outcome::Calls),
                    Step::Wait if run.yields => return Ok(Outcome::Yields),
                    Step::Wait => return Ok(Outcome::Waits),
                    Step::Done => return Ok(Outcome::Done),
                };
                state.found += batch.len() as u64;
                let (skipped, taken) = state.window.take(batch.len() as u64);
                let left_out = batch.len() - taken as usize;
                (batch, skipped as usize, (skipped + taken) as usize, left_out)
            }
        };
        if run.plan.explain.is_some() {
            state.rows += (last - first) as u64;
            if run.is_spent(batch.len()) {
                return Ok(Outcome::Yields);
            }
            continue;
        }
        let mut packets = Vec::new();
        let mut next = first;
        let mut waits = false;
        while next < last && packets.len() < OUTPUT_PART_BYTES && !waits {
            waits = !append_result_row(&mut run, batch.row(next), state.protocol, &mut packets)?;
            next += usize::from(!waits);
        }
        let sent = next - first;
        state.rows += sent as u64;
        if sent > 0 {
            if !std::mem::replace(&mut state.header_sent, true) {
                run.context.sink.header(&run.plan.header, &run.context.session.completion());
            }
            run.context.sink.row_packets(&packets);
        }
        let is_spent = run.is_spent(left_out + sent);
        if next < last {
            state.unsent = Some((batch, next, last));
        }
        // A call begins when its row is evaluated again, after the client has received those before it.
        if run.context.sink.pending_bytes() >= OUTPUT_PART_BYTES && !run.context.session.interrupted && sent > 0 {
            return Ok(Outcome::Full);
        }
        if waits {
            return Ok(Outcome::Calls);
        }
        if is_spent {
            return Ok(Outcome::Yields);
        }
    }
}

/// Appends the packet of a result row. Returns false if the row waits for a call.
fn append_result_row(
    run: &mut Run<'_, '_, '_>,
    row: Parameters<'_>,
    protocol: RowProtocol,
    packets: &mut Vec<u8>,
) -> Result<bool> {
    let plan = run.plan;
    let mut append = |scratch: &Scratch| {
        let mut values = Vec::with_capacity(plan.root.values.len());
        for (value, column) in plan.root.values.iter().zip(&plan.header.columns) {
            values.push((value.evaluate(None, row, scratch)?, column));
        }
        append_row(protocol, values.into_iter(), packets);
        Ok(())
    };
    match plan.root.is_stateful {
        true => Ok(run.with_calls(append)?.is_some()),
        false => {
            run.scratch.reset();
            append(run.scratch).map(|()| true)
        }
    }
}

/// Writes the operators, with what they did if they were executed, if the statement is EXPLAIN. Returns
/// whether it is.
fn explain(context: &mut StatementContext<'_, '_>, state: &mut TreeState) -> bool {
    let Some(request) = state.plan.explain else { return false };
    let measured = state.meters.as_ref().map(|meters| Measured { meters, leaves: &state.leaves });
    let measures = measured.as_ref().map(|measured| measured as &dyn Measures);
    let parameters = Parameters::from_bytes(&state.parameters);
    let text = explain_operators(&state.plan, request.format, (parameters, measures));
    let mut packet = Vec::new();
    let column = &state.plan.header.columns[0];
    append_row(state.protocol, [(ValueRef::Bytes(text.as_bytes()), column)].into_iter(), &mut packet);
    context.sink.header(&state.plan.header, &context.session.completion());
    context.sink.row_packets(&packet);
    state.header_sent = true;
    true
}

/// The measurements of an execution.
struct Measured<'m> {
    meters: &'m Meters,
    leaves: &'m [Leaf],
}

impl Measures for Measured<'_> {
    fn of_node(&self, node: &PlanNode) -> OperatorMeasure {
        self.meters.of(node)
    }

    fn of_leaf(&self, leaf: usize) -> LeafMeasure {
        self.leaves[leaf].measure
    }
}

/// Ends the leaves that still run, and the call that a row waits for.
fn close(context: &mut StatementContext<'_, '_>, state: &mut TreeState) {
    state.root = None;
    if state.call.take().is_some() {
        context.engine.gateway.cancel_user_lock(context.session.connection, context.turn);
    }
    for leaf in &mut state.leaves {
        if let Some(source) = leaf.source.take() {
            source.stop(context);
        }
    }
}

/// Continues a tree once the client can receive more.
pub(super) fn continue_tree_output(context: &mut StatementContext<'_, '_>) -> Progress {
    let Execution::Tree(mut state) = std::mem::take(&mut context.session.execution) else {
        invariant::fail("a tree is continued", format_args!("{:?}", context.session.execution))
    };
    state.awaits_room = false;
    drive(context, state)
}
