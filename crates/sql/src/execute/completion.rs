//! How statements end: the answer, the diagnostics and what LAST_INSERT_ID(), ROW_COUNT() and FOUND_ROWS() say next.

use junctor_model::error::{Error, ErrorCode};

use super::state::Execution;
use crate::result::{Completion, Progress, ResultSink};
use crate::session::Session;

/// The statement failed: says the error, unless the client is gone.
#[cold]
pub(crate) fn fail(session: &mut Session, error: &Error, sink: &mut dyn ResultSink) -> Progress {
    session.execution = Execution::Idle;
    // What follows in the same text is not executed.
    session.rest_at = 0;
    session.note_error(error);
    if !session.interrupted {
        sink.error(error);
    }
    Progress::Done
}

/// What a statement fails with that was stopped.
#[cold]
pub(crate) fn interrupted() -> Box<Error> {
    Error::new(ErrorCode::QueryInterrupted, "Query execution was interrupted")
}

/// What a statement that changed rows came to.
#[derive(Debug, Default)]
pub(crate) struct Changed<'i> {
    pub affected_rows: u64,
    pub last_insert_id: u64,
    /// The text that clients show; its memory is used again.
    pub info: Option<&'i mut String>,
}

/// The statement is done and has no rows.
pub(crate) fn ok(session: &mut Session, changed: Changed<'_>, sink: &mut dyn ResultSink) -> Progress {
    session.execution = Execution::Idle;
    session.row_count = i64::try_from(changed.affected_rows).unwrap_or(i64::MAX);
    if !session.interrupted {
        let mut completion = Completion {
            affected_rows: changed.affected_rows,
            last_insert_id: changed.last_insert_id,
            ..session.completion()
        };
        match changed.info {
            Some(info) => {
                std::mem::swap(info, &mut completion.info);
                sink.complete(&completion);
                std::mem::swap(info, &mut completion.info);
            }
            None => sink.complete(&completion),
        }
    }
    Progress::Done
}

/// The rows have all been said.
#[inline]
pub(crate) fn finish(session: &mut Session, rows: u64, sink: &mut dyn ResultSink) -> Progress {
    session.execution = Execution::Idle;
    session.row_count = -1;
    session.found_rows = rows;
    if !session.interrupted {
        sink.end_rows(&session.completion());
    }
    Progress::Done
}
