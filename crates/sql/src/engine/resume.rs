//! Hot path, budget 60 instructions an answer besides its rows: answers of the data plane, and the client's readiness for
//! more output.

use std::borrow::Cow;

use junctor_gateway::{Event, TurnContext};
use junctor_model::value::Value;
use junctor_signals::read_rows::OperationId;
use junctor_signals::read_status::StatusTable;

use super::Engine;
use super::latency::{bucket_rows, summary_rows};
use crate::execute::{
    Execution, PartRows, StatementOutcome, compute_rows, is_checking, is_filling, on_check_event, on_ended,
    on_fill_ended, on_fill_read_failed, on_fill_rows, on_fill_statement, on_interrupted, on_key_read_failed,
    on_key_rows, on_numbers, on_read_failed, on_rows, on_schema_changed, on_source_event, on_statement, on_undone,
    pump,
};
use crate::mysql_catalog::show::WarningLevel;
use crate::plan::{ComputeSource, Plan};
use crate::result::{Progress, ResultSink};
use crate::session::Session;

impl Engine {
    /// Goes on with what a session waits for.
    pub fn resume(
        &mut self,
        session: &mut Session,
        event: Event,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        if is_filling(session) {
            return self.resume_fill(session, event, turn, sink);
        }
        if is_checking(session) {
            let progress = on_check_event(self, session, event, turn, sink);
            return self.end_of_step(session, progress);
        }
        if let Execution::Compound(state) = &session.execution
            && state.is_of_source(operation_of(&event))
        {
            return on_source_event(self, session, event, turn, sink);
        }
        if !session.execution.awaits(operation_of(&event)) {
            // The session has gone on without this answer.
            if let Event::Rows { output, .. } = event {
                turn.buffers.give(output);
            }
            return Progress::Waiting;
        }
        let progress = match event {
            Event::Rows { output, is_prefixed, partition, next, .. }
                if matches!(session.execution, Execution::Keys(_)) =>
            {
                on_key_rows(self, session, (partition, is_prefixed, output), next, turn, sink)
            }
            Event::ReadFailed { error, .. } if matches!(session.execution, Execution::Keys(_)) => {
                on_key_read_failed(self, session, &error, turn, sink)
            }
            Event::Rows { output, is_prefixed, rows, remarks, next, .. } => {
                if let Some(remarks) = remarks {
                    session.note_remarks(WarningLevel::Warning, *remarks);
                }
                on_rows(self, session, PartRows { output, is_prefixed, count: rows, next }, turn, sink)
            }
            Event::ReadFailed { remarks, error, .. } => on_read_failed(self, session, (&error, remarks), turn, sink),
            Event::Statement { matched, changed, remarks, outputs, error, .. } => {
                let outcome = StatementOutcome { matched, changed, remarks, outputs, error };
                on_statement(self, session, outcome, turn, sink)
            }
            Event::Ended { error, .. } => on_ended(self, session, error, turn, sink),
            Event::Undone { .. } => on_undone(session, turn, sink),
            Event::Interrupted { is_known, .. } => on_interrupted(session, is_known, sink),
            Event::GlobalsSet { .. } => self.on_globals_set(session, turn, sink),
            Event::UserLock { value, error, .. } => self.on_user_lock(session, value, error, turn, sink),
            Event::SchemaChanged { notes, error, .. } => on_schema_changed(self, session, notes, error, turn, sink),
            Event::AutoIncrement { first, count, error, .. } => {
                on_numbers(self, session, (first, count), error, turn, sink)
            }
            Event::Status { rows, .. } => self.on_status(session, &rows, turn, sink),
        };
        self.end_of_step(session, progress)
    }

    fn resume_fill(
        &mut self,
        session: &mut Session,
        event: Event,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        let progress = match event {
            Event::Rows { output, next, .. } => on_fill_rows(self, session, output, next, turn, sink),
            Event::ReadFailed { error, .. } => on_fill_read_failed(self, session, error, turn, sink),
            Event::Statement { matched, changed, remarks, outputs, error, .. } => {
                let outcome = StatementOutcome { matched, changed, remarks, outputs, error };
                on_fill_statement(self, session, outcome, turn, sink)
            }
            Event::Ended { error, .. } => on_fill_ended(self, session, error, turn, sink),
            // None of these is asked for while an index is filled.
            _ => Progress::Waiting,
        };
        self.end_of_step(session, progress)
    }

    /// An interrupted session never waits for its client.
    fn end_of_step(&mut self, session: &mut Session, progress: Progress) -> Progress {
        if session.interrupted && progress == Progress::MoreOutput {
            return Progress::Done;
        }
        progress
    }

    fn on_status(
        &mut self,
        session: &mut Session,
        rows: &[Vec<Value>],
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        let Execution::Status(state) = std::mem::take(&mut session.execution) else { return Progress::Waiting };
        let progress = match &*state.plan {
            Plan::Compute(plan) => {
                let told = match plan.source {
                    ComputeSource::Status(StatusTable::OperationLatency) => Cow::Owned(summary_rows(rows)),
                    ComputeSource::Status(StatusTable::OperationLatencyBuckets) => Cow::Owned(bucket_rows(rows)),
                    _ => Cow::Borrowed(rows),
                };
                compute_rows(session, plan, &told, &state.parameters, state.protocol, sink)
            }
            _ => Progress::Done,
        };
        turn.buffers.give(state.parameters);
        progress
    }

    /// The client took the last part of an answer.
    pub fn continue_output(
        &mut self,
        session: &mut Session,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        match &mut session.execution {
            Execution::Sorted(_) => pump(self, session, sink),
            Execution::Read(state) if state.awaits_room => {
                state.awaits_room = false;
                self.gateway.continue_read(state.operation, turn);
                Progress::Waiting
            }
            Execution::Idle => Progress::Done,
            _ => Progress::Waiting,
        }
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
