//! Hot path, budget 60 instructions a reply, not counting its rows: continues the suspended statement that
//! waits for a reply of the data plane, or for the client to receive more output.

use std::sync::Arc;

use junctor_gateway::{Event, invariant};
use junctor_model::value::Value;
use junctor_signals::end_transaction::Ending;
use junctor_signals::read_rows::OperationId;
use junctor_signals::read_status::StatusTable;
use junctor_signals::start_epoch::is_of_membership;

use super::benchmark::continue_benchmark;
use super::completion::{ChangeCounts, fail, finish_ok};
use super::compound::{continue_compound, resume_compound};
use super::compute::{ComputeInput, compute, continue_compute};
use super::context::StatementContext;
use super::digest::DigestRows;
use super::insert::resume_insert;
use super::interrupt::resume_kill;
use super::into::{continue_into, resume_into};
use super::key_read::{fail_key_read, resume_key_read};
use super::latency::{bucket_rows, summary_rows};
use super::load_file::resume_load_file;
use super::read::{PartitionRows, ReadStep, fail_read, resume_read, send_sorted_rows};
use super::received::continue_received;
use super::schema::resume_schema;
use super::state::{Execution, StatusState};
use super::table_statistics::resume_table_statistics;
use super::transaction::{AfterTransactionEnd, finish_set, note_lost_transaction, resume_ending, start_ending};
use super::tree::{continue_tree, continue_tree_output, resume_tree};
use super::unique_key::resume_unique_key;
use super::user_lock::resume_user_lock;
use super::write::{StatementOutcome, resume_write};
use crate::mysql_catalog::show::WarningLevel;
use crate::plan::ComputeSource;
use crate::result::Progress;

/// Continues the statement that waits for this event. Drops an event that no statement waits for any longer.
pub(crate) fn resume(context: &mut StatementContext<'_, '_>, event: Event) -> Progress {
    if !context.session.execution.awaits(operation_of(&event)) {
        match event {
            Event::Rows { output, .. } => context.turn.buffers.give(output),
            Event::File { operation, .. } => context.engine.gateway.discard_file(operation, false, context.turn),
            _ => {}
        }
        return Progress::Waiting;
    }
    if let Event::ReadFailed { error, .. } = &event
        && is_of_membership(error)
    {
        // The transaction has lost its writes, and the session leaves it.
        context.engine.gateway.lose_transaction(&mut context.session.transaction, context.turn);
        note_lost_transaction(&mut context.engine.gateway, context.session);
    }
    match context.session.execution {
        Execution::Read(_) => resume_query(context, event),
        _ => resume_other(context, event),
    }
}

/// Continues a query of one table. Its state is moved only twice, because a move costs as much as a look-up.
fn resume_query(context: &mut StatementContext<'_, '_>, event: Event) -> Progress {
    let mut execution = std::mem::take(&mut context.session.execution);
    let Execution::Read(state) = &mut execution else {
        invariant::fail("the session has a query", format_args!("{execution:?}"))
    };
    let step = match event {
        Event::Rows { output, is_prefixed, rows, diagnostics, next, .. } => {
            if let Some(diagnostics) = diagnostics {
                context.session.note_diagnostics(WarningLevel::Warning, *diagnostics);
            }
            resume_read(context, state, PartitionRows { output, is_prefixed, count: rows, next })
        }
        Event::ReadFailed { diagnostics, error, .. } => ReadStep::Ended(fail_read(context, state, &error, diagnostics)),
        other => unexpected("a query", &other),
    };
    match step {
        ReadStep::Ended(progress) => progress,
        ReadStep::Waits(progress) => {
            context.session.execution = execution;
            progress
        }
    }
}

/// Continues any other statement.
fn resume_other(context: &mut StatementContext<'_, '_>, event: Event) -> Progress {
    match std::mem::take(&mut context.session.execution) {
        Execution::Keys(state) => match event {
            Event::Rows { output, is_prefixed, partition, next, .. } => {
                resume_key_read(context, state, (partition, is_prefixed, output), next)
            }
            Event::ReadFailed { error, .. } => fail_key_read(context, state, &error),
            other => unexpected("a read by keys", &other),
        },
        Execution::Write(state) => match event {
            Event::Statement { matched, changed, diagnostics, outputs, error, .. } => {
                resume_write(context, state, StatementOutcome { matched, changed, diagnostics, outputs, error })
            }
            other => unexpected("a write", &other),
        },
        Execution::UniqueKey(state) => resume_unique_key(context, state, event),
        Execution::Ending(_, after) => match event {
            Event::Ended { error, .. } => resume_ending(context, after, error),
            other => unexpected("the end of a transaction", &other),
        },
        Execution::Compound(state) => resume_compound(context, state, event),
        Execution::Into(state) => resume_into(context, state, event),
        Execution::Tree(state) => resume_tree(context, state, event),
        Execution::Numbers(state) => match event {
            Event::AutoIncrement { first, count, error, .. } => resume_insert(context, *state, (first, count), error),
            other => unexpected("an INSERT", &other),
        },
        Execution::Undoing(_) => match event {
            Event::Undone { .. } => finish_ok(context, ChangeCounts::default()),
            other => unexpected("ROLLBACK TO SAVEPOINT", &other),
        },
        Execution::Killing(state) => match event {
            Event::Interrupted { outcome, .. } => resume_kill(context, state, outcome),
            other => unexpected("KILL", &other),
        },
        Execution::SettingGlobals { commits, .. } => match event {
            Event::GlobalsSet { error: None, .. } => finish_set(context, commits),
            Event::GlobalsSet { error: Some(error), .. } => fail(context, &error),
            other => unexpected("SET GLOBAL", &other),
        },
        Execution::UserLock(state) => match event {
            Event::UserLock { value, error, .. } => resume_user_lock(context, *state, value, error),
            other => unexpected("a user-level lock", &other),
        },
        Execution::LoadFile(state) => match event {
            Event::File { step, bytes, .. } => resume_load_file(context, state, step, bytes),
            other => unexpected("a file", &other),
        },
        Execution::BackupLock(_) => match event {
            Event::UserLock { error: Some(error), .. } => fail(context, &error),
            Event::UserLock { .. } => finish_ok(context, ChangeCounts::default()),
            other => unexpected("the backup lock", &other),
        },
        Execution::ControllingNode(_) => match event {
            Event::NodeControlled { error: Some(error), .. } => fail(context, &error),
            Event::NodeControlled { .. } => finish_ok(context, ChangeCounts::default()),
            other => unexpected("a request to a node", &other),
        },
        Execution::ForgettingDigests(_) => match event {
            Event::Status { .. } => {
                let after = AfterTransactionEnd::Complete { chain: false, release: false };
                start_ending(context, Ending::Commit, after)
            }
            other => unexpected("statement digests", &other),
        },
        Execution::Schema(state) => resume_schema(context, *state, event),
        Execution::Status(state) => match event {
            Event::Status { rows, .. } => resume_status(context, *state, rows),
            other => unexpected("a status table", &other),
        },
        Execution::TableStatistics(state) => match event {
            Event::Status { rows, .. } => resume_table_statistics(context, *state, &rows),
            other => unexpected("the statistics of tables", &other),
        },
        Execution::Idle
        | Execution::Lent(_)
        | Execution::Read(_)
        | Execution::Tables(_)
        | Execution::Benchmark(_)
        | Execution::Computing(_)
        | Execution::Received(_)
        | Execution::Sorted(_)
        | Execution::Discarding(_)
        | Execution::Retry(_) => unexpected("no reply", &event),
    }
}

/// Stops the node, because the gateway replied to an operation with an event of the wrong kind. Continuing
/// would lose the statement's rows or suspend its session forever.
#[cold]
pub(super) fn unexpected(awaited_by: &str, event: &Event) -> ! {
    let operation = operation_of(event);
    invariant::fail(
        "a reply belongs to the form of its statement",
        format_args!("operation {operation:?} of {awaited_by} was answered with {event:?}"),
    )
}

/// Continues a query of a status table with its rows.
fn resume_status(context: &mut StatementContext<'_, '_>, state: StatusState, mut rows: Vec<Vec<Value>>) -> Progress {
    let StatusState { plan, protocol, parameters, .. } = state;
    let zone = context.session.variables.value_rules().zone();
    let input = match plan.source {
        ComputeSource::Status(StatusTable::StatementDigests, _) => {
            ComputeInput::Digests(Box::new(DigestRows::summary(rows, zone)))
        }
        ComputeSource::Status(StatusTable::StatementHistograms, _) => {
            ComputeInput::Digests(Box::new(DigestRows::histograms(rows)))
        }
        ComputeSource::Status(StatusTable::Processes, _) => {
            keep_one_row_each(&mut rows);
            ComputeInput::Processes(rows.into_iter(), context.engine.shown_account(context.session))
        }
        ComputeSource::Status(table, _) => {
            match table {
                StatusTable::OperationLatency => rows = summary_rows(&rows),
                StatusTable::OperationLatencyBuckets => rows = bucket_rows(&rows),
                StatusTable::Events => {
                    for at in rows.iter_mut().filter_map(|row| row.get_mut(2)) {
                        let Value::UInt(us) = *at else { continue };
                        *at = Value::Temporal(zone.date_time_at(us, 6));
                    }
                }
                _ => {}
            }
            ComputeInput::Reported(rows.into_iter())
        }
        ComputeSource::Nothing | ComputeSource::Rows(_) => ComputeInput::OfPlan(0),
    };
    let input = match plan.source {
        ComputeSource::Status(_, Some(make)) => {
            ComputeInput::Made(Box::new(input), Arc::clone(context.engine.gateway.catalog()), make)
        }
        _ => input,
    };
    compute(context, &plan, (parameters, protocol), input)
}

/// Continues an answer once the client can receive more. Does nothing while a reply of the data plane is
/// pending, because the arrival of the reply continues the answer anyway; but partitions that have answered
/// read on.
pub(crate) fn continue_output(context: &mut StatementContext<'_, '_>) -> Progress {
    match &mut context.session.execution {
        Execution::Sorted(state) if state.awaits_room => {
            state.awaits_room = false;
            send_sorted_rows(context)
        }
        Execution::Tree(state) if state.awaits_room => continue_tree_output(context),
        Execution::Received(state) if state.awaits_room => {
            state.awaits_room = false;
            continue_received(context)
        }
        Execution::Computing(state) if state.awaits_room => {
            state.awaits_room = false;
            continue_compute(context)
        }
        Execution::Read(state) if state.awaits_room => {
            state.awaits_room = false;
            let operation = state.operation;
            context.engine.gateway.continue_read(operation, &context.session.transaction, context.turn);
            Progress::Waiting
        }
        Execution::Idle => Progress::Done,
        _ => Progress::Waiting,
    }
}

/// Runs the next step of a statement that has yielded to the thread's other work. Does nothing if the
/// statement has ended meanwhile.
pub(crate) fn continue_statement(context: &mut StatementContext<'_, '_>) -> Progress {
    if let Execution::Compound(_) = &context.session.execution {
        return continue_compound(context);
    }
    if let Execution::Tree(state) = &mut context.session.execution {
        return if state.take_request() { continue_tree(context) } else { Progress::Waiting };
    }
    match context.session.execution.step_requested().is_some_and(std::mem::take) {
        true => run_requested_step(context),
        false => Progress::Waiting,
    }
}

/// Runs the step that a query has requested.
pub(super) fn run_requested_step(context: &mut StatementContext<'_, '_>) -> Progress {
    match &context.session.execution {
        Execution::Sorted(_) => send_sorted_rows(context),
        Execution::Into(_) => continue_into(context),
        Execution::Tree(_) => continue_tree(context),
        Execution::Benchmark(_) => continue_benchmark(context),
        Execution::Computing(_) => continue_compute(context),
        _ => continue_received(context),
    }
}

/// The operation that an event belongs to.
pub(super) fn operation_of(event: &Event) -> OperationId {
    match event {
        Event::Rows { operation, .. }
        | Event::ReadFailed { operation, .. }
        | Event::Statement { operation, .. }
        | Event::Ended { operation, .. }
        | Event::Undone { operation }
        | Event::Interrupted { operation, .. }
        | Event::GlobalsSet { operation, .. }
        | Event::UserLock { operation, .. }
        | Event::NodeControlled { operation, .. }
        | Event::File { operation, .. }
        | Event::SchemaChanged { operation, .. }
        | Event::AutoIncrement { operation, .. }
        | Event::Status { operation, .. } => *operation,
    }
}

/// Keeps one row for each session. The block that lends a session reports it by a longer row, which counts
/// while the session is on its way. The session can also move between the reports of two blocks. Each block
/// may have a session of background work.
fn keep_one_row_each(rows: &mut Vec<Vec<Value>>) {
    let length = rows.iter().map(Vec::len).min().unwrap_or(0);
    let connection = |row: &Vec<Value>| match row.first() {
        Some(Value::UInt(number)) => *number,
        _ => 0,
    };
    rows.sort_by_key(|row| (connection(row), row.len()));
    // Sessions of background work have the number 0.
    rows.dedup_by(|later, earlier| connection(later) == connection(earlier) && connection(later) != 0);
    rows.iter_mut().for_each(|row| row.truncate(length));
}
