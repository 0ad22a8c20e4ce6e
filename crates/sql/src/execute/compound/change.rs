//! UPDATE and DELETE in several steps: those with LIMIT, those with IGNORE if a row may violate a unique or
//! foreign key, and an UPDATE in which one row may get the current key of another.
//!
//! The rows are locked first and then written: one by one if a key may be violated, otherwise a few hundred
//! at a time. Without LIMIT, IGNORE and ORDER BY, all rows are first written together. If that write finds a
//! duplicate key, the write is rolled back, and the rows are written one by one in the order of MySQL's
//! clustered key.

use std::sync::Arc;

use junctor_expression::Parameters;
use junctor_gateway::gateway::NO_OPERATION;
use junctor_gateway::{invariant, require};
use junctor_model::error::{ErrorCode, Result};
use junctor_signals::diagnostics;
use junctor_signals::read_rows::OperationId;

use super::drive::{Next, continue_steps, is_ignorable, may_retry, open_transaction_if_none, unexpected_step};
use super::insert::{Locking, send_step};
use super::locked_rows::{LockedRows, LockedStep};
use super::returned::check_returned;
use super::state::{ChangeWork, CompoundState, Step, StepState, Work};
use crate::execute::context::StatementContext;
use crate::execute::key::{InputWriter, Values};
use crate::execute::read::push_path;
use crate::execute::state::{PlanInput, Workspace};
use crate::execute::write::{StatementOutcome, level_of};
use crate::mysql_catalog::show::WarningLevel;
use crate::plan::{ChangePlan, OrderedChange};
use crate::result::Progress;

/// Maximum number of rows that one step writes.
const ROWS_WRITTEN_MAX: usize = 128;

/// An UPDATE or DELETE at one of its steps.
pub(super) struct Change<'s> {
    plan: &'s ChangePlan,
    ordered: &'s OrderedChange,
    steps: &'s mut StepState,
    work: &'s mut ChangeWork,
}

impl<'s> Change<'s> {
    pub(super) fn new(plan: &'s ChangePlan, steps: &'s mut StepState, work: &'s mut ChangeWork) -> Change<'s> {
        let Some(ordered) = &plan.ordered else {
            invariant::fail("a change of several steps has an order", format_args!("its plan has none"));
        };
        Change { plan, ordered, steps, work }
    }
}

/// Starts a change. If the order of the rows matters only after a duplicate key, it writes all rows;
/// otherwise it first locks them. The inputs are in the workspace.
pub(in crate::execute) fn start_ordered_change(
    context: &mut StatementContext<'_, '_>,
    plan: &Arc<ChangePlan>,
    input: &PlanInput<'_>,
    limit: Option<u64>,
) -> Progress {
    let Some(ordered) = &plan.ordered else {
        invariant::fail("a change of several steps has an order", format_args!("its plan has none"));
    };
    let parameters = context.copy_parameters();
    let in_transaction = context.session.transaction.explicit;
    let steps = StepState {
        operation: OperationId::default(),
        protocol: input.protocol,
        step: Step::Lock,
        owns_transaction: !ordered.after_duplicate && open_transaction_if_none(context.session),
        before: context.session.transaction.statement(),
        retry: input.input.keep(in_transaction, &parameters, context.turn),
        parameters,
        is_stopped: false,
        awaits_input: false,
        is_receiving: false,
        fills: None,
    };
    let work = ChangeWork {
        locked: None,
        rows: Vec::new(),
        writing: 0..0,
        limit: limit.unwrap_or(u64::MAX),
        locked_max: match (limit, ordered.in_order) {
            (Some(limit), true) => u32::try_from(limit).unwrap_or(u32::MAX),
            _ => u32::MAX,
        },
        matched: 0,
        changed: 0,
        outputs: Vec::new(),
    };
    let mut state = Box::new(CompoundState { steps, work: Work::Change(Arc::clone(plan), work) });
    let CompoundState { steps, work: Work::Change(_, work) } = &mut *state else {
        invariant::fail("a change has the record of a change", format_args!("it was made above"));
    };
    let mut change = Change { plan, ordered, steps, work };
    let next = match ordered.after_duplicate {
        true => change.send(context, Step::WriteAll),
        false => change.send(context, Step::Lock),
    };
    continue_steps(context, state, next)
}

/// Continues a change with the outcome of one of its steps.
pub(super) fn on_outcome(
    context: &mut StatementContext<'_, '_>,
    change: &mut Change<'_>,
    outcome: StatementOutcome,
    outputs: &mut Vec<Vec<u8>>,
) -> Result<Next> {
    let ordered = change.ordered;
    let is_duplicate = outcome.error.as_ref().is_some_and(|error| error.code == ErrorCode::DuplicateEntry);
    let goes_one_by_one = is_duplicate && ordered.after_duplicate && matches!(change.steps.step, Step::WriteAll);
    // If the rows are written again one by one, they report these warnings again, so they are not counted
    // here.
    if let Some(diagnostics) = outcome.diagnostics.filter(|_| !goes_one_by_one) {
        context.session.note_diagnostics(level_of(&ordered.write), *diagnostics);
    }
    if let Some(error) = outcome.error {
        let retries = may_retry(change.steps, &error);
        return match change.steps.step {
            Step::WriteAll if goes_one_by_one => change.begin_one_by_one(context),
            Step::WriteAll if ordered.after_duplicate && retries => Ok(Next::Retry),
            Step::WriteRows if ordered.ignore && is_ignorable(error.code) => {
                require!(change.work.writing.len() == 1, "UPDATE IGNORE and DELETE IGNORE write rows one by one");
                change.work.matched += 1;
                context.session.warn(WarningLevel::Warning, error.code.errno(), error.message);
                change.write_next(context)
            }
            // The statement's own transaction holds nothing yet, so the statement may start again.
            Step::Lock if retries && !context.session.transaction.has_begun() => Ok(Next::Retry),
            _ => Err(error),
        };
    }
    let work = &mut *change.work;
    match change.steps.step {
        Step::Lock => {
            work.locked = Some(LockedRows::new(context.engine, ordered, work.limit, std::mem::take(outputs)));
            change.take_rows(context)
        }
        Step::WriteAll => {
            (work.matched, work.changed) = (outcome.matched, outcome.changed);
            check_returned(outputs.iter().map(Vec::len).sum())?;
            work.outputs = std::mem::take(outputs);
            Ok(Next::Done)
        }
        Step::WriteRows => {
            require!(
                outcome.matched <= work.writing.len() as u64,
                "a write by keys matches at most the rows of its keys"
            );
            work.matched += outcome.matched;
            work.changed += outcome.changed;
            // The returned rows are collected in one buffer, in the order of the writes.
            let mut returned = work.outputs.pop().unwrap_or_default();
            for output in outputs.drain(..) {
                returned.extend_from_slice(&output);
                context.turn.buffers.give(output);
            }
            check_returned(returned.len())?;
            work.outputs.push(returned);
            change.continue_writing(context)
        }
        _ => unexpected_step("the outcome of a change"),
    }
}

impl Change<'_> {
    /// Locks the rows of a change, to write them one by one. The write of all rows together has failed with a
    /// duplicate key and is rolled back.
    fn begin_one_by_one(&mut self, context: &mut StatementContext<'_, '_>) -> Result<Next> {
        std::mem::take(&mut self.steps.retry).release(context.turn);
        self.steps.owns_transaction = open_transaction_if_none(context.session);
        self.steps.before = context.session.transaction.statement();
        let Workspace { inputs, scratch, key_builder, .. } = &mut context.engine.work;
        let parameters = &self.steps.parameters;
        let sent: &[u8] = if self.ordered.locking_program.reads_parameters { parameters } else { &[] };
        scratch.set_value_rules(context.session.variables.value_rules());
        let values = Values { parameters: Parameters::from_bytes(parameters), scratch };
        let mut writer = InputWriter { inputs, turn: context.turn, parameters: sent };
        let pushed = push_path(&mut writer, key_builder, &self.plan.table.definition, &self.plan.path, &values);
        // The statement has already reported these warnings when it began.
        diagnostics::take(&mut context.engine.work.scratch);
        pushed?;
        self.send(context, Step::Lock)
    }

    /// Takes the next locked rows and writes them. If they are not sorted yet, requests another step.
    fn take_rows(&mut self, context: &mut StatementContext<'_, '_>) -> Result<Next> {
        let ChangeWork { locked: Some(locked), rows, writing, .. } = &mut *self.work else {
            unexpected_step("locked rows of a change that has locked none")
        };
        rows.clear();
        *writing = 0..0;
        match locked.take_rows(context, &self.plan.table.definition, rows)? {
            LockedStep::Rows => self.write_next(context),
            LockedStep::More => {
                self.steps.step = Step::ContinueRows;
                self.steps.operation = NO_OPERATION;
                context.request_step();
                Ok(Next::Wait)
            }
            LockedStep::Done => Ok(Next::Done),
        }
    }

    /// Writes the next rows: now, or after the thread's other work if many were written. If all blocks run on
    /// one thread, each step gets its answer within the turn, so several steps would make one long turn.
    fn continue_writing(&mut self, context: &mut StatementContext<'_, '_>) -> Result<Next> {
        if self.work.writing.len() < ROWS_WRITTEN_MAX {
            return self.write_next(context);
        }
        self.steps.step = Step::ContinueRows;
        self.steps.operation = NO_OPERATION;
        context.request_step();
        Ok(Next::Wait)
    }

    /// Writes the locked rows after those written last: one, or up to [`ROWS_WRITTEN_MAX`]. If all are
    /// written, takes more.
    pub(super) fn write_next(&mut self, context: &mut StatementContext<'_, '_>) -> Result<Next> {
        let (start, end) = (self.work.writing.end, self.work.rows.len());
        if start == end {
            return self.take_rows(context);
        }
        let count = if self.ordered.one_by_one { 1 } else { ROWS_WRITTEN_MAX };
        self.work.writing = start..end.min(start + count);
        let sent: &[u8] = if self.ordered.write.reads_parameters { &self.steps.parameters } else { &[] };
        let (inputs, buffers) = (&mut context.engine.work.inputs, &mut *context.turn.buffers);
        inputs.begin(self.plan.table.definition.partition_count, buffers);
        for (partition, key) in &self.work.rows[self.work.writing.clone()] {
            inputs.push_key_at(*partition, key, sent, buffers);
        }
        self.send(context, Step::WriteRows)
    }

    /// Sends a step whose inputs are in the workspace.
    fn send(&mut self, context: &mut StatementContext<'_, '_>, step: Step) -> Result<Next> {
        let program = match step {
            Step::Lock => &self.ordered.locking_program,
            Step::WriteAll => &self.plan.program,
            _ => &self.ordered.write,
        };
        let locking = match step {
            Step::Lock => Locking { ranges: true, rows_max: self.work.locked_max },
            Step::WriteAll => Locking { ranges: true, rows_max: u32::MAX },
            _ => Locking::ROWS,
        };
        send_step(context, self.steps, program, step, locking)
    }
}
