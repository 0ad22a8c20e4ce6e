//! BENCHMARK: evaluates an expression many times, in steps that let other sessions of the thread work.

use std::sync::Arc;

use junctor_expression::{Expression, Parameters, Scratch};
use junctor_gateway::invariant;
use junctor_model::error::{Error, Result};
use junctor_model::value::Value;
use junctor_signals::diagnostics;

use super::completion::fail;
use super::context::StatementContext;
use super::state::Execution;
use super::user_lock::{PendingCalls, request_next};
use crate::result::Progress;

/// Time after which a step ends, in nanoseconds. A single evaluation may exceed it.
const STEP_NS_MAX: u64 = 80_000;

/// A call of BENCHMARK.
#[derive(Debug)]
pub(crate) struct Benchmark {
    /// Number of evaluations that remain. `None` if the call is NULL.
    pub remaining: Option<u64>,
    pub expression: Expression,
    /// The parameters of the statement, which the expression may name.
    pub parameters: Arc<[u8]>,
    /// The warnings of all evaluations.
    pub scratch: Scratch,
}

/// A statement that runs one of its calls of BENCHMARK.
#[derive(Debug)]
pub(crate) struct BenchmarkState {
    pub benchmark: Box<Benchmark>,
    pub calls: PendingCalls,
    /// Whether the session has sent itself a `ContinueStatement` signal.
    pub step_requested: bool,
}

impl Benchmark {
    /// Evaluates the expression once more. Errors: those of the expression; 1235 if it assigns a variable.
    fn evaluate(&mut self) -> Result<()> {
        self.scratch.reset();
        self.expression.evaluate(None, Parameters::from_bytes(&self.parameters), &self.scratch)?;
        // An expression of one execution reads the variables only once, so the next evaluation would not see
        // the assignment.
        if self.scratch.has_assigned() {
            return Err(Error::not_supported("an assignment in BENCHMARK"));
        }
        Ok(())
    }
}

/// Runs the next step of BENCHMARK. After the last evaluation, the next call of the statement begins.
pub(super) fn continue_benchmark(context: &mut StatementContext<'_, '_>) -> Progress {
    let Execution::Benchmark(mut state) = std::mem::take(&mut context.session.execution) else {
        invariant::fail("a step of BENCHMARK belongs to one", format_args!("{:?}", context.session.execution))
    };
    let end = context.turn.clock_now().0.saturating_add(STEP_NS_MAX);
    while let Some(remaining) = state.benchmark.remaining.filter(|remaining| *remaining > 0) {
        if let Err(error) = state.benchmark.evaluate() {
            state.calls.input.release(context.turn);
            return fail(context, &error);
        }
        state.benchmark.remaining = Some(remaining - 1);
        if context.turn.clock_now().0 >= end {
            state.step_requested = true;
            context.session.execution = Execution::Benchmark(state);
            context.request_step();
            return Progress::Waiting;
        }
    }
    let BenchmarkState { mut benchmark, mut calls, .. } = *state;
    calls.results.values.push(benchmark.remaining.map_or(Value::Null, |_| Value::Int(0)));
    calls.results.diagnostics.extend(diagnostics::take(&mut benchmark.scratch).map(|diagnostics| *diagnostics));
    request_next(context, calls)
}
