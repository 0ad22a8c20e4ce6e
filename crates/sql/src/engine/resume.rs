//! Hot path, budget 60 instructions an answer besides its rows: answers of the data plane, and the client's readiness for
//! more output.

use std::borrow::Cow;

use junctor_gateway::Event;
use junctor_model::value::Value;
use junctor_signals::read_rows::OperationId;
use junctor_signals::read_status::StatusTable;

use super::Engine;
use super::latency::{bucket_rows, summary_rows};
use crate::execute::StatementContext;
use crate::execute::{
    Execution, PartRows, StatementOutcome, compute_rows, is_checking, is_filling, on_check_event, on_ended,
    on_fill_ended, on_fill_read_failed, on_fill_rows, on_fill_statement, on_interrupted, on_key_read_failed,
    on_key_rows, on_numbers, on_read_failed, on_rows, on_schema_changed, on_source_event, on_source_step, on_statement,
    on_undone, pump,
};
use crate::mysql_catalog::show::WarningLevel;
use crate::plan::{ComputeSource, Plan};
use crate::result::Progress;
use crate::session::Session;

impl StatementContext<'_, '_> {
    /// Goes on with what a session waits for.
    pub fn resume(&mut self, event: Event) -> Progress {
        if is_filling(self.session) {
            return self.resume_fill(event);
        }
        if is_checking(self.session) {
            let progress = on_check_event(self, event);
            return self.engine.end_of_step(self.session, progress);
        }
        if let Execution::Compound(state) = &self.session.execution
            && state.is_of_source(operation_of(&event))
        {
            return on_source_event(self, event);
        }
        if !self.session.execution.awaits(operation_of(&event)) {
            // The session has gone on without this answer.
            if let Event::Rows { output, .. } = event {
                self.turn.buffers.give(output);
            }
            return Progress::Waiting;
        }
        let progress = match event {
            Event::Rows { output, is_prefixed, partition, next, .. }
                if matches!(self.session.execution, Execution::Keys(_)) =>
            {
                on_key_rows(self, (partition, is_prefixed, output), next)
            }
            Event::ReadFailed { error, .. } if matches!(self.session.execution, Execution::Keys(_)) => {
                on_key_read_failed(self, &error)
            }
            Event::Rows { output, is_prefixed, rows, diagnostics, next, .. } => {
                if let Some(diagnostics) = diagnostics {
                    self.session.note_diagnostics(WarningLevel::Warning, *diagnostics);
                }
                on_rows(self, PartRows { output, is_prefixed, count: rows, next })
            }
            Event::ReadFailed { diagnostics, error, .. } => on_read_failed(self, (&error, diagnostics)),
            Event::Statement { matched, changed, diagnostics, outputs, error, .. } => {
                let outcome = StatementOutcome { matched, changed, diagnostics, outputs, error };
                on_statement(self, outcome)
            }
            Event::Ended { error, .. } => on_ended(self, error),
            Event::Undone { .. } => on_undone(self),
            Event::Interrupted { is_known, .. } => on_interrupted(self, is_known),
            Event::GlobalsSet { .. } => self.on_globals_set(),
            Event::UserLock { value, error, .. } => self.on_user_lock(value, error),
            Event::SchemaChanged { notes, error, .. } => on_schema_changed(self, notes, error),
            Event::AutoIncrement { first, count, error, .. } => on_numbers(self, (first, count), error),
            Event::Status { rows, .. } => self.on_status(&rows),
        };
        self.engine.end_of_step(self.session, progress)
    }

    fn resume_fill(&mut self, event: Event) -> Progress {
        let progress = match event {
            Event::Rows { output, next, .. } => on_fill_rows(self, output, next),
            Event::ReadFailed { error, .. } => on_fill_read_failed(self, error),
            Event::Statement { matched, changed, diagnostics, outputs, error, .. } => {
                let outcome = StatementOutcome { matched, changed, diagnostics, outputs, error };
                on_fill_statement(self, outcome)
            }
            Event::Ended { error, .. } => on_fill_ended(self, error),
            // None of these is asked for while an index is filled.
            _ => Progress::Waiting,
        };
        self.engine.end_of_step(self.session, progress)
    }

    fn on_status(&mut self, rows: &[Vec<Value>]) -> Progress {
        let Execution::Status(state) = std::mem::take(&mut self.session.execution) else { return Progress::Waiting };
        let progress = match &*state.plan {
            Plan::Compute(plan) => {
                let told = match plan.source {
                    ComputeSource::Status(StatusTable::OperationLatency) => Cow::Owned(summary_rows(rows)),
                    ComputeSource::Status(StatusTable::OperationLatencyBuckets) => Cow::Owned(bucket_rows(rows)),
                    _ => Cow::Borrowed(rows),
                };
                compute_rows(self, plan, &told, &state.parameters, state.protocol)
            }
            _ => Progress::Done,
        };
        self.turn.buffers.give(state.parameters);
        progress
    }

    /// The client took the last part of an answer.
    pub fn continue_output(&mut self) -> Progress {
        match &mut self.session.execution {
            Execution::Sorted(state) => {
                state.awaits_room = false;
                pump(self)
            }
            Execution::Read(state) if state.awaits_room => {
                state.awaits_room = false;
                self.engine.gateway.continue_read(state.operation, self.turn);
                Progress::Waiting
            }
            Execution::Idle => Progress::Done,
            _ => Progress::Waiting,
        }
    }

    /// Another step is due, unless the statement that asked for it has ended.
    pub fn continue_statement(&mut self) -> Progress {
        match &mut self.session.execution {
            Execution::Sorted(state) if state.step_requested => pump(self),
            Execution::Compound(_) => on_source_step(self),
            _ => Progress::Waiting,
        }
    }
}

impl Engine {
    /// An interrupted session never waits for its client.
    fn end_of_step(&mut self, session: &mut Session, progress: Progress) -> Progress {
        if session.interrupted && progress == Progress::MoreOutput {
            return Progress::Done;
        }
        progress
    }
}

fn operation_of(event: &Event) -> OperationId {
    match event {
        Event::Rows { operation, .. }
        | Event::ReadFailed { operation, .. }
        | Event::Statement { operation, .. }
        | Event::Ended { operation, .. }
        | Event::Undone { operation }
        | Event::Interrupted { operation, .. }
        | Event::GlobalsSet { operation }
        | Event::UserLock { operation, .. }
        | Event::SchemaChanged { operation, .. }
        | Event::AutoIncrement { operation, .. }
        | Event::Status { operation, .. } => *operation,
    }
}
