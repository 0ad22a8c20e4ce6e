//! Executes queries over rows that the session itself provides. This file applies the filter, aggregates,
//! projection, order and limit.

use std::sync::Arc;

use junctor_expression::{Parameters, ParametersBuilder, Scratch, compare_values};
use junctor_model::collation::CollationId;
use junctor_model::error::Result;
use junctor_model::value::{Value, ValueRef};
use junctor_signals::program::{RowProtocol, SortKey};

use super::completion::{fail, finish_rows};
use super::context::StatementContext;
use super::packets::append_row;
use super::read::{accumulators, append_projection, window_of};
use super::state::{Execution, StatusState};
use crate::mysql_catalog::show::WarningLevel;
use crate::plan::{ComputePlan, ComputeSource};
use crate::result::Progress;

/// Starts a query without a stored table. The parameters are in the workspace.
pub(crate) fn start_compute(
    context: &mut StatementContext<'_, '_>,
    plan: &Arc<ComputePlan>,
    protocol: RowProtocol,
) -> Progress {
    let status = match &plan.source {
        ComputeSource::Nothing => return compute_now(context, plan, &[Vec::new()], protocol),
        ComputeSource::Rows(rows) => return compute_now(context, plan, rows, protocol),
        ComputeSource::Status(status) => *status,
    };
    match context.engine.gateway.read_status(context.session.connection, (status, &[]), context.turn) {
        Ok(operation) => {
            let state =
                StatusState { plan: Arc::clone(plan), operation, protocol, parameters: context.copy_parameters() };
            context.session.execution = Execution::Status(Box::new(state));
            Progress::Waiting
        }
        Err(error) => fail(context, &error),
    }
}

/// Executes a query over rows that were known when it was planned.
fn compute_now(
    context: &mut StatementContext<'_, '_>,
    plan: &ComputePlan,
    rows: &[Vec<Value>],
    protocol: RowProtocol,
) -> Progress {
    let parameters = std::mem::take(&mut context.engine.work.parameters);
    let progress = compute_rows(context, plan, rows, &parameters, protocol);
    context.engine.work.parameters = parameters;
    progress
}

/// Executes a query over `rows` and sends the answer.
pub(super) fn compute_rows(
    context: &mut StatementContext<'_, '_>,
    plan: &ComputePlan,
    rows: &[Vec<Value>],
    parameters: &[u8],
    protocol: RowProtocol,
) -> Progress {
    let mut computation = Computation {
        plan,
        own: Parameters::from_bytes(parameters),
        builder: ParametersBuilder::new(),
        bytes: Vec::new(),
        scratch: Scratch::new(),
    };
    computation.scratch.set_strict(plan.is_strict);
    computation.scratch.set_warnings_max(context.session.variables.warnings_max);
    computation.scratch.set_value_rules(context.session.variables.value_rules());
    computation.scratch.set_now(context.session.variables.timestamp_us.unwrap_or(context.turn.wall_clock_us));
    let answer = computation.run(rows, protocol, context.session.variables.select_limit);
    context.session.note_evaluated(WarningLevel::Warning, &mut computation.scratch);
    match answer {
        Ok((packets, count)) => {
            context.sink.header(&plan.header, &context.session.completion());
            context.sink.row_packets(&packets);
            finish_rows(context, count)
        }
        Err(error) => fail(context, &error),
    }
}

/// The execution of one query.
struct Computation<'a> {
    plan: &'a ComputePlan,
    /// The statement's own parameters.
    own: Parameters<'a>,
    builder: ParametersBuilder,
    bytes: Vec<u8>,
    scratch: Scratch,
}

impl Computation<'_> {
    /// Returns the row packets and the number of rows.
    fn run(&mut self, rows: &[Vec<Value>], protocol: RowProtocol, select_limit: u64) -> Result<(Vec<u8>, u64)> {
        let mut window = window_of(self.plan.limit.as_ref(), self.own, select_limit)?;
        if !self.plan.aggregates.is_empty() {
            let packet = self.aggregate(rows, protocol)?;
            let (_, taken) = window.take(1);
            return Ok((if taken == 1 { packet } else { Vec::new() }, taken));
        }
        let mut found = Vec::new();
        for row in rows {
            if let Some(row) = self.row(row)? {
                found.push(row);
            }
        }
        if self.plan.distinct {
            self.drop_equal(&mut found);
        }
        found.sort_by(|left, right| compare_keys(&self.plan.sort, &left.keys, &right.keys));
        let (skipped, taken) = window.take(found.len() as u64);
        let mut packets = Vec::new();
        for row in found.iter().skip(skipped as usize).take(taken as usize) {
            let values = row.values.iter().map(Value::as_ref).zip(&self.plan.projection.columns);
            append_row(protocol, values, &mut packets);
        }
        Ok((packets, taken))
    }

    /// Appends the values of a row to the statement's own parameters, where the plan's expressions read them.
    fn bind(&mut self, row: &[Value]) -> Result<()> {
        self.builder.clear();
        for ordinal in 0..self.plan.first_column {
            self.builder.push(self.own.get(ordinal));
        }
        for value in row {
            self.builder.push(value.as_ref());
        }
        self.bytes.clear();
        self.builder.append_to(&mut self.bytes)
    }

    /// The result row and its sort keys; `None` if the condition rejects the row.
    fn row(&mut self, row: &[Value]) -> Result<Option<ResultRow>> {
        self.bind(row)?;
        self.scratch.reset();
        let parameters = Parameters::from_bytes(&self.bytes);
        if let Some(filter) = &self.plan.filter
            && !filter.is_true(None, parameters, &self.scratch)?
        {
            return Ok(None);
        }
        let mut result = ResultRow { values: Vec::new(), keys: Vec::new() };
        for value in &self.plan.projection.values {
            result.values.push(value.evaluate(None, parameters, &self.scratch)?.to_value());
        }
        for key in &self.plan.sort {
            let mark = self.scratch.warning_mark();
            result.keys.push(key.value.evaluate(None, parameters, &self.scratch)?.to_value());
            if key.is_in_result {
                self.scratch.forget_warnings_after(mark);
            }
        }
        Ok(Some(result))
    }

    fn aggregate(&mut self, rows: &[Vec<Value>], protocol: RowProtocol) -> Result<Vec<u8>> {
        let mut states = accumulators(&self.plan.aggregates);
        for row in rows {
            self.bind(row)?;
            self.scratch.reset();
            let parameters = Parameters::from_bytes(&self.bytes);
            if let Some(filter) = &self.plan.filter
                && !filter.is_true(None, parameters, &self.scratch)?
            {
                continue;
            }
            for (state, aggregate) in states.iter_mut().zip(&self.plan.aggregates) {
                let value = match &aggregate.argument {
                    Some(argument) if aggregate.distinct => argument.evaluate(None, parameters, &self.scratch)?,
                    Some(argument) => argument.evaluate_unrounded(None, parameters, &self.scratch)?,
                    None => ValueRef::Null,
                };
                state.add(value, &self.scratch)?;
            }
        }
        // The result row reads only aggregates and the statement's parameters, so the columns are NULL.
        let columns = usize::from(self.plan.first_aggregate - self.plan.first_column);
        let mut values = vec![Value::Null; columns];
        for state in &states {
            values.push(state.finish()?);
        }
        self.bind(&values)?;
        let mut packet = Vec::new();
        let parameters = Parameters::from_bytes(&self.bytes);
        append_projection(&self.plan.projection, (None, parameters), protocol, &self.scratch, &mut packet)?;
        Ok(packet)
    }

    fn drop_equal(&self, rows: &mut Vec<ResultRow>) {
        let mut kept: Vec<ResultRow> = Vec::new();
        for row in rows.drain(..) {
            let is_known = kept.iter().any(|known| {
                known
                    .values
                    .iter()
                    .zip(&row.values)
                    .zip(&self.plan.projection.values)
                    .all(|((left, right), value)| compare_nullable(value.result.collation, left, right).is_eq())
            });
            if !is_known {
                kept.push(row);
            }
        }
        *rows = kept;
    }
}

/// A result row before sorting.
struct ResultRow {
    values: Vec<Value>,
    keys: Vec<Value>,
}

fn compare_keys(sort: &[SortKey], left: &[Value], right: &[Value]) -> std::cmp::Ordering {
    for (key, (left, right)) in sort.iter().zip(left.iter().zip(right)) {
        let order = compare_nullable(key.value.result.collation, left, right);
        let order = if key.descending { order.reverse() } else { order };
        if order.is_ne() {
            return order;
        }
    }
    std::cmp::Ordering::Equal
}

/// Compares two values; NULL sorts before all others.
fn compare_nullable(collation: CollationId, left: &Value, right: &Value) -> std::cmp::Ordering {
    match (left.is_null(), right.is_null()) {
        (true, true) => std::cmp::Ordering::Equal,
        (true, false) => std::cmp::Ordering::Less,
        (false, true) => std::cmp::Ordering::Greater,
        (false, false) => compare_values(collation, left.as_ref(), right.as_ref()),
    }
}
