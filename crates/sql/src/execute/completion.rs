//! The end of statements: the answer, the diagnostics, and the values of LAST_INSERT_ID(), ROW_COUNT() and
//! FOUND_ROWS() for later statements.

use junctor_model::error::{Error, ErrorCode};
use junctor_model::value::Value;
use junctor_signals::program::RowProtocol;

use super::context::StatementContext;
use super::packets::append_row;
use super::state::Execution;
use super::transaction::note_lost_transaction;
use crate::mysql_catalog::show::VirtualTable;
use crate::result::{Completion, Progress, ResultHeader};

/// Ends the statement with an error. A session whose client has disconnected gets no answer.
#[cold]
pub(crate) fn fail(context: &mut StatementContext<'_, '_>, error: &Error) -> Progress {
    context.session.execution = Execution::Idle;
    // A read may have found that the writes before it are lost.
    note_lost_transaction(&mut context.engine.gateway, context.session);
    context.session.end_hinted_statement();
    context.session.insert_id.end_statement();
    // Later statements of the same text are not executed.
    context.session.next_statement_at = 0;
    // A session that ends with its statement tells the client why.
    let reason = context.session.closing_reason.take().filter(|_| error.code == ErrorCode::QueryInterrupted);
    let reason = reason.or_else(|| reason_of(context, error));
    let error = reason.as_deref().unwrap_or(error);
    context.session.note_error(error);
    context.session.has_failed = true;
    if !context.session.interrupted {
        context.sink.error(error);
    }
    Progress::Done
}

/// The error of a stopped statement whose reason is not KILL: 1053 or 3024.
fn reason_of(context: &StatementContext<'_, '_>, error: &Error) -> Option<Box<Error>> {
    if error.code != ErrorCode::QueryInterrupted {
        return None;
    }
    if context.engine.is_stopping {
        return Some(Error::server_shutdown());
    }
    let deadline = context.session.query_deadline?;
    (context.turn.turn_start >= deadline).then(Error::query_timed_out)
}

/// Error 1317 of a stopped statement.
#[cold]
pub(crate) fn interrupted() -> Box<Error> {
    Error::query_interrupted()
}

/// The outcome of a statement without result rows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChangeCounts {
    pub affected_rows: u64,
    pub last_insert_id: u64,
    /// Whether the workspace's `info` contains a text for the client.
    pub has_info: bool,
}

/// Ends a statement without result rows.
pub(crate) fn finish_ok(context: &mut StatementContext<'_, '_>, changed: ChangeCounts) -> Progress {
    context.session.execution = Execution::Idle;
    context.session.end_hinted_statement();
    context.session.row_count = i64::try_from(changed.affected_rows).unwrap_or(i64::MAX);
    if !context.session.interrupted {
        if context.session.tracker.is_some() {
            context.tell_transaction();
        }
        let mut completion = Completion {
            affected_rows: changed.affected_rows,
            last_insert_id: changed.last_insert_id,
            ..context.session.completion()
        };
        if !context.session.state_changes.is_empty() {
            completion.state_changes = std::mem::take(&mut context.session.state_changes);
        }
        // The text is swapped into the packet and back, so that the next statement reuses the text's buffer.
        let info = &mut context.engine.work.info;
        if changed.has_info {
            std::mem::swap(info, &mut completion.info);
        }
        context.sink.complete(&completion);
        if changed.has_info {
            std::mem::swap(info, &mut completion.info);
        }
    }
    Progress::Done
}

/// Ends a statement whose rows have all been sent.
#[inline]
pub(crate) fn finish_rows(context: &mut StatementContext<'_, '_>, rows: u64) -> Progress {
    context.session.set_execution(Execution::Idle);
    context.session.end_hinted_statement();
    context.session.row_count = -1;
    context.session.found_rows = rows;
    if context.session.tracker.is_some() {
        return finish_tracked_rows(context);
    }
    if !context.session.interrupted {
        context.sink.end_rows(&context.session.completion());
    }
    Progress::Done
}

/// Ends rows for a client that wants to know the session's transaction.
#[cold]
fn finish_tracked_rows(context: &mut StatementContext<'_, '_>) -> Progress {
    if !context.session.interrupted {
        context.tell_after_rows();
        let mut completion = context.session.completion();
        if context.sink.ends_rows_with_changes() {
            completion.state_changes = std::mem::take(&mut context.session.state_changes);
        }
        context.sink.end_rows(&completion);
    }
    Progress::Done
}

/// Sends a complete computed result.
pub(crate) fn send_table(
    context: &mut StatementContext<'_, '_>,
    table: VirtualTable,
    protocol: RowProtocol,
) -> Progress {
    let VirtualTable { columns, rows } = table;
    let mut packets = Vec::new();
    for row in &rows {
        append_row(protocol, row.iter().map(Value::as_ref).zip(&columns), &mut packets);
    }
    context.sink.header(&ResultHeader::new(columns), &context.session.completion());
    context.sink.row_packets(&packets);
    finish_rows(context, rows.len() as u64)
}
