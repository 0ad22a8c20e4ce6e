//! How statements end: the answer, the diagnostics and what LAST_INSERT_ID(), ROW_COUNT() and FOUND_ROWS() say next.

use junctor_model::error::Error;

use super::context::StatementContext;
use super::state::Execution;
use crate::result::{Completion, Progress};

/// The statement failed: says the error, unless the client is gone.
#[cold]
pub(crate) fn fail(context: &mut StatementContext<'_, '_>, error: &Error) -> Progress {
    context.session.execution = Execution::Idle;
    // What follows in the same text is not executed.
    context.session.rest_at = 0;
    context.session.note_error(error);
    if !context.session.interrupted {
        context.sink.error(error);
    }
    Progress::Done
}

/// What a statement fails with that was stopped.
#[cold]
pub(crate) fn interrupted() -> Box<Error> {
    Error::query_interrupted()
}

/// What a statement that changed rows came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Changed {
    pub affected_rows: u64,
    pub last_insert_id: u64,
    /// Whether the workspace's `info` is the text that clients show.
    pub has_info: bool,
}

/// The statement is done and has no rows.
pub(crate) fn ok(context: &mut StatementContext<'_, '_>, changed: Changed) -> Progress {
    context.session.execution = Execution::Idle;
    context.session.row_count = i64::try_from(changed.affected_rows).unwrap_or(i64::MAX);
    if !context.session.interrupted {
        let mut completion = Completion {
            affected_rows: changed.affected_rows,
            last_insert_id: changed.last_insert_id,
            ..context.session.completion()
        };
        // The text's memory goes back to the workspace, where the next statement uses it.
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

/// The rows have all been said.
#[inline]
pub(crate) fn finish(context: &mut StatementContext<'_, '_>, rows: u64) -> Progress {
    context.session.execution = Execution::Idle;
    context.session.row_count = -1;
    context.session.found_rows = rows;
    if !context.session.interrupted {
        context.sink.end_rows(&context.session.completion());
    }
    Progress::Done
}
