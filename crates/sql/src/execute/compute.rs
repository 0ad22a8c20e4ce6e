//! Executes queries over rows that the session itself provides. This file applies the filter, aggregates,
//! projection, order and limit, in steps that let the thread's other work run.

use std::borrow::Cow;
use std::sync::Arc;

use junctor_expression::aggregate::Accumulator;
use junctor_expression::{Parameters, ParametersBuilder, Scratch};
use junctor_gateway::invariant;
use junctor_model::error::Result;
use junctor_model::value::{Value, ValueRef};
use junctor_signals::change_schema::Catalog;
use junctor_signals::program::RowProtocol;

use super::completion::{fail, finish_rows};
use super::context::StatementContext;
use super::digest::DigestRows;
use super::packets::{Window, append_row};
use super::read::{accumulators, append_projection, window_of};
use super::result_rows::{ResultRow, ResultRows};
use super::state::{Execution, StatusState};
use crate::mysql_catalog::show::WarningLevel;
use crate::plan::{ComputePlan, ComputeSource, MakeRow};
use crate::result::{OUTPUT_PART_BYTES, Progress};

/// Number of values after which a step ends, which takes tens of microseconds. A row counts its columns, its
/// result and its sort keys.
const STEP_VALUES: usize = 1024;
/// The values that the figures of one digest count as, when they are merged with those of other blocks.
const MERGE_VALUES: usize = 32;

/// A query over rows of the session that has begun.
#[derive(Debug)]
pub(crate) struct ComputeState {
    plan: Arc<ComputePlan>,
    protocol: RowProtocol,
    /// The statement's own parameters.
    parameters: Vec<u8>,
    input: ComputeInput,
    builder: ParametersBuilder,
    /// The parameters of the current row: those of the statement, then its columns.
    bytes: Vec<u8>,
    scratch: Scratch,
    window: Window,
    found: ResultRows,
    /// The states of a query with aggregates, which has one row.
    states: Vec<Accumulator>,
    /// The packet of that row, once it is known.
    aggregated: Option<Vec<u8>>,
    /// Whether all rows are evaluated, so that the result is being sent.
    is_sending: bool,
    sent: u64,
    /// Number of values that the current step may still process.
    values_left: usize,
    /// Whether the session waits until the client has received the last part.
    pub awaits_room: bool,
    /// Whether the session has sent itself a `ContinueStatement` signal.
    pub step_requested: bool,
}

/// The rows of a query, in the order in which they are read.
#[derive(Debug)]
pub(super) enum ComputeInput {
    /// The rows of the plan from this number on. A query without a table has one row.
    OfPlan(usize),
    /// Rows that blocks have reported.
    Reported(std::vec::IntoIter<Vec<Value>>),
    /// Rows that are made from those that blocks have reported.
    Made(Box<ComputeInput>, Arc<Catalog>, MakeRow),
    /// The sessions of all sql blocks, with the account of each as their last value. A session sees those of
    /// its account, unless this is `None`.
    Processes(std::vec::IntoIter<Vec<Value>>, Option<Vec<u8>>),
    /// The statement digests of all sql blocks.
    Digests(Box<DigestRows>),
}

/// Starts a query without a stored table. The parameters are in the workspace.
pub(crate) fn start_compute(
    context: &mut StatementContext<'_, '_>,
    plan: &Arc<ComputePlan>,
    protocol: RowProtocol,
) -> Progress {
    if let ComputeSource::Status(status, _) = plan.source {
        return match context.engine.gateway.read_status(context.session.connection, (status, &[]), context.turn) {
            Ok(operation) => {
                let state =
                    StatusState { plan: Arc::clone(plan), operation, protocol, parameters: context.copy_parameters() };
                context.session.execution = Execution::Status(Box::new(state));
                Progress::Waiting
            }
            Err(error) => fail(context, &error),
        };
    }
    let parameters = context.copy_parameters();
    compute(context, plan, (parameters, protocol), ComputeInput::OfPlan(0))
}

/// Executes a query over the rows of `input`.
pub(super) fn compute(
    context: &mut StatementContext<'_, '_>,
    plan: &Arc<ComputePlan>,
    (parameters, protocol): (Vec<u8>, RowProtocol),
    input: ComputeInput,
) -> Progress {
    let select_limit = context.session.variables.select_limit;
    let window = match window_of(plan.limit.as_ref(), Parameters::from_bytes(&parameters), select_limit) {
        Ok(window) => window,
        Err(error) => {
            context.turn.buffers.give(parameters);
            return fail(context, &error);
        }
    };
    let mut scratch = Scratch::new();
    scratch.set_strict(plan.is_strict);
    scratch.set_warnings_max(context.session.variables.warnings_max);
    scratch.set_value_rules(context.session.variables.value_rules());
    scratch.set_now(context.session.variables.timestamp_us.unwrap_or(context.turn.wall_clock_us));
    let state = ComputeState {
        plan: Arc::clone(plan),
        protocol,
        parameters,
        input,
        builder: ParametersBuilder::new(),
        bytes: Vec::new(),
        scratch,
        window,
        found: ResultRows::default(),
        states: accumulators(&plan.aggregates),
        aggregated: None,
        is_sending: false,
        sent: 0,
        values_left: 0,
        awaits_room: false,
        step_requested: false,
    };
    run_step(context, state)
}

/// Runs the next step of a query that has begun.
pub(super) fn continue_compute(context: &mut StatementContext<'_, '_>) -> Progress {
    let Execution::Computing(state) = std::mem::take(&mut context.session.execution) else {
        invariant::fail("a step of a query belongs to one", format_args!("{:?}", context.session.execution))
    };
    run_step(context, *state)
}

fn run_step(context: &mut StatementContext<'_, '_>, mut state: ComputeState) -> Progress {
    state.values_left = STEP_VALUES;
    if !state.is_sending {
        match state.evaluate_rows() {
            Ok(false) => return state.wait_for_step(context),
            Ok(true) => {}
            Err(error) => {
                state.end(context);
                return fail(context, &error);
            }
        }
        context.session.note_evaluated(WarningLevel::Warning, &mut state.scratch);
        context.sink.header(&state.plan.header, &context.session.completion());
        state.is_sending = true;
    }
    let mut packets = Vec::new();
    let has_more = state.append_rows(&mut packets);
    context.sink.row_packets(&packets);
    if has_more && context.sink.pending_bytes() >= OUTPUT_PART_BYTES {
        state.awaits_room = true;
        context.session.execution = Execution::Computing(Box::new(state));
        return Progress::MoreOutput;
    }
    if has_more {
        return state.wait_for_step(context);
    }
    let rows = state.sent;
    state.end(context);
    finish_rows(context, rows)
}

impl ComputeState {
    /// Lets other work run before the next step.
    fn wait_for_step(mut self, context: &mut StatementContext<'_, '_>) -> Progress {
        self.step_requested = true;
        context.session.execution = Execution::Computing(Box::new(self));
        context.request_step();
        Progress::Waiting
    }

    fn end(mut self, context: &mut StatementContext<'_, '_>) {
        context.session.note_evaluated(WarningLevel::Warning, &mut self.scratch);
        context.turn.buffers.give(self.parameters);
    }

    /// The buffer of a query that was stopped.
    pub fn into_parameters(self) -> Vec<u8> {
        self.parameters
    }

    /// Evaluates rows until the step has processed enough. Returns whether all are evaluated.
    fn evaluate_rows(&mut self) -> Result<bool> {
        let plan = Arc::clone(&self.plan);
        let columns = usize::from(plan.first_aggregate - plan.first_column);
        let values = 1 + columns + plan.projection.values.len() + plan.sort.len() + plan.aggregates.len();
        let mut has_ended = false;
        while self.values_left > 0 && !has_ended {
            match self.input.next(&plan.source) {
                InputStep::Merged => self.values_left = self.values_left.saturating_sub(MERGE_VALUES),
                InputStep::Row(row) => {
                    self.values_left = self.values_left.saturating_sub(values);
                    self.evaluate(&plan, &row)?;
                }
                InputStep::End => has_ended = true,
            }
        }
        self.found.end_run(&plan.sort);
        if has_ended && !plan.aggregates.is_empty() {
            self.aggregated = Some(self.aggregate_packet(&plan)?);
        }
        Ok(has_ended)
    }

    /// Appends the values of a row to the statement's own parameters, where the plan's expressions read them.
    fn bind(&mut self, plan: &ComputePlan, row: &[Value]) -> Result<()> {
        self.builder.clear();
        let own = Parameters::from_bytes(&self.parameters);
        for ordinal in 0..plan.first_column {
            self.builder.push(own.get(ordinal));
        }
        for value in row {
            self.builder.push(value.as_ref());
        }
        self.bytes.clear();
        self.builder.append_to(&mut self.bytes)
    }

    fn evaluate(&mut self, plan: &ComputePlan, row: &[Value]) -> Result<()> {
        self.bind(plan, row)?;
        self.scratch.reset();
        let parameters = Parameters::from_bytes(&self.bytes);
        if let Some(filter) = &plan.filter
            && !filter.is_true(None, parameters, &self.scratch)?
        {
            return Ok(());
        }
        if !plan.aggregates.is_empty() {
            for (state, aggregate) in self.states.iter_mut().zip(&plan.aggregates) {
                let value = match &aggregate.argument {
                    Some(argument) if aggregate.distinct => argument.evaluate(None, parameters, &self.scratch)?,
                    Some(argument) => argument.evaluate_unrounded(None, parameters, &self.scratch)?,
                    None => ValueRef::Null,
                };
                state.add(value, &self.scratch)?;
            }
            return Ok(());
        }
        let mut result = ResultRow { values: Vec::new(), keys: Vec::new() };
        for value in &plan.projection.values {
            result.values.push(value.evaluate(None, parameters, &self.scratch)?.to_value());
        }
        for key in &plan.sort {
            let mark = self.scratch.warning_mark();
            result.keys.push(key.value.evaluate(None, parameters, &self.scratch)?.to_value());
            if key.is_in_result {
                self.scratch.forget_warnings_after(mark);
            }
        }
        if !plan.distinct || self.found.is_new(&result, &plan.projection.values) {
            self.found.push(result);
        }
        Ok(())
    }

    /// The packet of the result row of a query with aggregates. It reads only aggregates and the statement's
    /// parameters, so the columns are NULL.
    fn aggregate_packet(&mut self, plan: &ComputePlan) -> Result<Vec<u8>> {
        let columns = usize::from(plan.first_aggregate - plan.first_column);
        let mut values = vec![Value::Null; columns];
        for state in &self.states {
            values.push(state.finish()?);
        }
        self.bind(plan, &values)?;
        let mut packet = Vec::new();
        let parameters = Parameters::from_bytes(&self.bytes);
        append_projection(&plan.projection, (None, parameters), self.protocol, &self.scratch, &mut packet)?;
        Ok(packet)
    }

    /// Appends the packets of the next result rows. Returns whether rows are left.
    fn append_rows(&mut self, packets: &mut Vec<u8>) -> bool {
        let plan = Arc::clone(&self.plan);
        if let Some(packet) = self.aggregated.take() {
            if self.window.take(1).1 == 1 {
                packets.extend_from_slice(&packet);
                self.sent += 1;
            }
            return false;
        }
        let values = 1 + plan.projection.values.len() + plan.sort.len();
        while self.values_left > 0 && packets.len() < OUTPUT_PART_BYTES {
            if self.window.remaining == 0 {
                return false;
            }
            let Some(row) = self.found.take(&plan.sort) else { return false };
            self.values_left = self.values_left.saturating_sub(values);
            if self.window.take(1).1 == 1 {
                let values = row.values.iter().map(Value::as_ref).zip(&plan.projection.columns);
                append_row(self.protocol, values, packets);
                self.sent += 1;
            }
        }
        true
    }
}

/// The next part of the rows of a query.
enum InputStep<'p> {
    Row(Cow<'p, [Value]>),
    /// The figures of one digest were merged, or a row is not shown; no row is ready yet.
    Merged,
    End,
}

impl ComputeInput {
    fn next<'p>(&mut self, source: &'p ComputeSource) -> InputStep<'p> {
        let row = match (&mut *self, source) {
            (ComputeInput::Made(rows, catalog, make), _) => {
                return match rows.next(source) {
                    InputStep::Row(row) => match make(&catalog.dictionary, row.into_owned()) {
                        Some(row) => InputStep::Row(Cow::Owned(row)),
                        None => InputStep::Merged,
                    },
                    step => step,
                };
            }
            (ComputeInput::OfPlan(at), ComputeSource::Nothing) if *at == 0 => Some(Cow::Borrowed(&[][..])),
            (ComputeInput::OfPlan(at), ComputeSource::Rows(rows)) => rows.get(*at).map(|row| Cow::Borrowed(&row[..])),
            (ComputeInput::OfPlan(_), _) => None,
            (ComputeInput::Reported(rows), _) => rows.next().map(Cow::Owned),
            (ComputeInput::Processes(rows, own), _) => {
                let Some(mut row) = rows.next() else { return InputStep::End };
                let account = row.pop();
                let is_own = |own: &Vec<u8>| matches!(&account, Some(Value::Bytes(account)) if account == own);
                if !own.as_ref().is_none_or(is_own) {
                    return InputStep::Merged;
                }
                Some(Cow::Owned(row))
            }
            (ComputeInput::Digests(rows), _) => {
                if rows.merge_next() {
                    return InputStep::Merged;
                }
                rows.next_row().map(Cow::Owned)
            }
        };
        if let ComputeInput::OfPlan(at) = self {
            *at += 1;
        }
        row.map_or(InputStep::End, InputStep::Row)
    }
}
