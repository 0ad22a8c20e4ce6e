//! GET_LOCK and the related functions, which the main block evaluates.
//!
//! A statement with such calls is planned once to check it and to evaluate the arguments of the calls. The
//! calls are then sent to the main block one by one, and the statement starts again with their results in
//! place of the calls. Each call is therefore evaluated once, from left to right, before any other part of
//! the statement.

use std::collections::VecDeque;
use std::sync::Arc;

use junctor_model::error::{Error, Result};
use junctor_model::value::Value;
use junctor_signals::read_rows::OperationId;
use junctor_signals::use_user_lock::UserLockAction;

use super::completion::fail;
use super::context::StatementContext;
use super::retry::{RetryInput, RetryState};
use super::state::Execution;
use crate::mysql_catalog::show::StatisticsSnapshot;
use crate::result::Progress;

/// The lock calls of the statement that is being planned or executed.
#[derive(Debug, Default)]
pub(crate) struct LockCalls {
    pub mode: LockCallMode,
    /// Number of calls that planning has reached so far.
    pub calls_reached: usize,
    pub actions: Vec<UserLockAction>,
    pub results: Vec<Value>,
}

/// Determines the value of a lock call while its statement is planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LockCallMode {
    /// An error, because the statement is not one that sends requests to the main block.
    #[default]
    Refused,
    /// A dummy value, because only the type is needed.
    Described,
    /// A dummy value, while the requests to the main block are collected.
    Collected,
    /// The result that the main block returned.
    Answered,
}

/// A statement that waits for the results of its lock calls.
#[derive(Debug)]
pub(crate) struct UserLockState {
    pub operation: OperationId,
    is_get: bool,
    /// The calls that have not been sent to the main block yet.
    unsent: VecDeque<UserLockAction>,
    results: Vec<Value>,
    input: RetryInput,
    statistics: Option<Arc<StatisticsSnapshot>>,
}

impl LockCalls {
    /// Returns to the first call, because the statement is planned again.
    pub(crate) fn restart(&mut self) {
        self.calls_reached = 0;
        self.actions.clear();
    }

    /// Determines the values of the following calls, unless the main block has already returned results.
    pub(crate) fn set_mode(&mut self, mode: LockCallMode) {
        if self.mode != LockCallMode::Answered {
            self.mode = mode;
            self.restart();
        }
    }

    /// Whether calls must be sent to the main block before the statement can be executed.
    pub(crate) fn has_unanswered(&self) -> bool {
        self.mode != LockCallMode::Answered && !self.actions.is_empty()
    }

    /// The value of the next call; `None` if its request must be collected.
    ///
    /// # Errors
    /// 1235 where lock calls are not supported.
    pub(crate) fn next_value(&mut self, function: &str) -> Result<Option<Value>> {
        self.calls_reached += 1;
        match self.mode {
            LockCallMode::Refused => Err(Error::not_supported(&format!("{function} here"))),
            LockCallMode::Described => Ok(Some(Value::Int(1))),
            LockCallMode::Answered => {
                Ok(Some(self.results.get(self.calls_reached - 1).cloned().unwrap_or(Value::Null)))
            }
            LockCallMode::Collected => Ok(None),
        }
    }
}

/// Sends the calls of a statement that has not begun to the main block, and then starts the statement.
pub(crate) fn start_user_locks(
    context: &mut StatementContext<'_, '_>,
    actions: Vec<UserLockAction>,
    input: RetryInput,
) -> Progress {
    if input.is_none() {
        return fail(context, &Error::not_supported("GET_LOCK in a statement of more than 16 KiB"));
    }
    let statistics = context.engine.table_statistics.known.clone();
    request_next(context, actions.into(), Vec::new(), (input, statistics))
}

impl StatementContext<'_, '_> {
    /// Starts LOCK INSTANCE FOR BACKUP or UNLOCK INSTANCE.
    pub(crate) fn start_backup_lock(&mut self, action: UserLockAction) -> Progress {
        match self.engine.gateway.use_user_lock(self.session.connection, action, self.turn) {
            Ok(operation) => {
                // The end of the session releases the backup lock with the user-level locks.
                self.session.holds_user_locks = true;
                self.session.execution = Execution::BackupLock(operation);
                Progress::Waiting
            }
            Err(error) => fail(self, &error),
        }
    }
}

/// Sends the next call to the main block. After the last call, starts the statement again.
fn request_next(
    context: &mut StatementContext<'_, '_>,
    mut unsent: VecDeque<UserLockAction>,
    results: Vec<Value>,
    (input, statistics): (RetryInput, Option<Arc<StatisticsSnapshot>>),
) -> Progress {
    let Some(action) = unsent.pop_front() else {
        let state = RetryState { input, lock_results: Some(results), statistics };
        context.session.execution = Execution::Retry(Box::new(state));
        return Progress::Waiting;
    };
    let is_get = matches!(action, UserLockAction::Get { .. });
    match context.engine.gateway.use_user_lock(context.session.connection, action, context.turn) {
        Ok(operation) => {
            let state = UserLockState { operation, is_get, unsent, results, input, statistics };
            context.session.execution = Execution::UserLock(Box::new(state));
            Progress::Waiting
        }
        Err(error) => {
            input.release(context.turn);
            fail(context, &error)
        }
    }
}

/// Continues with the result of a call.
pub(super) fn resume_user_lock(
    context: &mut StatementContext<'_, '_>,
    state: UserLockState,
    value: Value,
    error: Option<Box<Error>>,
) -> Progress {
    let UserLockState { is_get, unsent, mut results, input, statistics, .. } = state;
    if let Some(error) = error {
        input.release(context.turn);
        return fail(context, &error);
    }
    context.session.holds_user_locks |= is_get && value == Value::Int(1);
    if context.session.interrupted {
        input.release(context.turn);
        return Progress::Done;
    }
    results.push(value);
    request_next(context, unsent, results, (input, statistics))
}

/// Error of a lock call in a statement that uses a table. Such a statement may start more than once, but a
/// lock must be taken exactly once.
pub(crate) fn lock_call_in_table_statement() -> Box<Error> {
    Error::not_supported("GET_LOCK in a statement of a table")
}
