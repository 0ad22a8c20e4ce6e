//! GET_LOCK and the related functions, which the main block evaluates, BENCHMARK, which takes many steps, and
//! LOAD_FILE, which reads a file.
//!
//! A statement with such calls is planned once to check it and to evaluate the arguments of the calls. The
//! calls are then carried out one by one, and the statement starts again with their results in place of the
//! calls. Each call is therefore evaluated once, from left to right, before any other part of the statement.

use std::collections::VecDeque;
use std::sync::Arc;

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::CommitNumber;
use junctor_model::value::Value;
use junctor_signals::ask_node::{BackupStep, NodeQuestion};
use junctor_signals::diagnostics::Diagnostics;
use junctor_signals::read_rows::OperationId;
use junctor_signals::use_user_lock::UserLockAction;

use super::benchmark::{Benchmark, BenchmarkState};
use super::completion::fail;
use super::context::StatementContext;
use super::load_file::{FILE_BYTES_MAX, start_load_file};
use super::retry::{RetryInput, RetryState};
use super::state::Execution;
use crate::mysql_catalog::show::StatisticsSnapshot;
use crate::mysql_catalog::variable::text_of;
use crate::parse::statement::{BackupPart, BackupStatement, StopStatement};
use crate::result::Progress;

/// Maximum number of characters in a lock name. A longer name is error 3057.
const NAME_CHARACTERS_MAX: usize = 64;
/// Maximum duration of SLEEP, in milliseconds: about 31 years.
const SLEEP_MS_MAX: u64 = 1_000_000_000_000;

/// The lock calls of the statement that is being planned or executed.
#[derive(Debug, Default)]
pub(crate) struct LockCalls {
    pub mode: LockCallMode,
    /// Number of calls that planning has reached so far.
    pub calls_reached: usize,
    pub actions: Vec<OuterCall>,
    /// The parameters of the statement, for all calls that need them.
    pub parameters: Option<Arc<[u8]>>,
    pub results: Vec<Value>,
    /// The names of the files of LOAD_FILE and their contents.
    pub files: Vec<(Box<str>, Value)>,
    /// Bytes of the copies of files in the plan.
    pub(crate) file_bytes: usize,
    /// The diagnostics of the calls that have been carried out, for the statement that starts again.
    pub diagnostics: Vec<Diagnostics>,
}

/// A call that is carried out before its statement starts.
#[derive(Debug)]
pub(crate) enum OuterCall {
    /// By the main block.
    Lock(UserLockAction),
    /// In steps of the session.
    Benchmark(Box<Benchmark>),
    /// By reading the file of this name.
    File(Box<str>),
}

/// The calls of a statement, some of which have been carried out.
#[derive(Debug)]
pub(crate) struct PendingCalls {
    unsent: VecDeque<OuterCall>,
    pub results: CallResults,
    pub input: RetryInput,
    statistics: Option<Arc<StatisticsSnapshot>>,
}

/// The results of the calls so far.
#[derive(Debug, Default)]
pub(crate) struct CallResults {
    pub values: Vec<Value>,
    /// The names of the files of LOAD_FILE and their contents.
    pub files: Vec<(Box<str>, Value)>,
    pub diagnostics: Vec<Diagnostics>,
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
    /// Whether the call is SLEEP.
    pub is_sleep: bool,
    calls: PendingCalls,
}

impl LockCalls {
    /// The content of a file that was read, for one call in the plan. Errors: 1235 for a file that was not
    /// read, 1041 for too many copies.
    pub(crate) fn copy_of_file(&mut self, name: &str) -> Result<Value> {
        let length = |value: &Value| if let Value::Bytes(bytes) = value { bytes.len() } else { 0 };
        let read: usize = self.files.iter().map(|(_, content)| length(content)).sum();
        let Some((_, content)) = self.files.iter().find(|(known, _)| **known == *name) else {
            return Err(Error::not_supported("LOAD_FILE of a name that changes"));
        };
        self.file_bytes = self.file_bytes.saturating_add(length(content));
        if self.file_bytes > read.saturating_add(FILE_BYTES_MAX) {
            let text = format!("Out of memory; the files of the statement have more than {FILE_BYTES_MAX} bytes");
            return Err(Error::new(ErrorCode::OutOfResources, text));
        }
        Ok(content.clone())
    }

    /// Returns to the first call, because the statement is planned again.
    pub(crate) fn restart(&mut self) {
        self.calls_reached = 0;
        self.file_bytes = 0;
        self.actions.clear();
        self.parameters = None;
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

    /// Whether calls must be carried out before the statement, all of which read files. That may be done more
    /// than once.
    pub(crate) fn awaits_files(&self) -> bool {
        self.has_unanswered() && self.actions.iter().all(|action| matches!(action, OuterCall::File(_)))
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

/// Translates a call into the request that main carries out. Errors: 3057 if the name of a lock is wrong,
/// 1210 if the time of SLEEP is.
pub(crate) fn action_of(function: &str, arguments: &[Value]) -> Result<UserLockAction> {
    let argument = |place: usize| arguments.get(place).unwrap_or(&Value::Null);
    Ok(match function {
        "SLEEP" => UserLockAction::Sleep { wait_ms: sleep_ms_of(argument(0))? },
        "GET_LOCK" => UserLockAction::Get { name: lock_name(argument(0))?, wait_ms: wait_ms_of(argument(1)) },
        "RELEASE_LOCK" => UserLockAction::Release { name: lock_name(argument(0))? },
        "RELEASE_ALL_LOCKS" => UserLockAction::ReleaseAll,
        "IS_FREE_LOCK" => UserLockAction::IsFree { name: lock_name(argument(0))? },
        _ => UserLockAction::IsUsed { name: lock_name(argument(0))? },
    })
}

/// Carries out the calls of a statement that has not begun, and then starts the statement.
pub(crate) fn start_user_locks(
    context: &mut StatementContext<'_, '_>,
    actions: Vec<OuterCall>,
    input: RetryInput,
) -> Progress {
    if input.is_none() {
        return fail(
            context,
            &Error::not_supported("GET_LOCK, SLEEP, BENCHMARK or LOAD_FILE in a statement of more than 16 KiB"),
        );
    }
    let statistics = context.engine.table_statistics.known.clone();
    let results = CallResults::default();
    request_next(context, PendingCalls { unsent: actions.into(), results, input, statistics })
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

impl StatementContext<'_, '_> {
    /// Starts SHUTDOWN and RESTART.
    pub(crate) fn start_stop(&mut self, StopStatement { node, restarts, is_forced }: StopStatement) -> Progress {
        self.control_node(node, NodeQuestion::Stop { restarts, is_forced })
    }

    /// Starts a step of a node's part of a backup.
    pub(crate) fn start_node_backup(&mut self, BackupStatement { node, step }: &BackupStatement) -> Progress {
        let step = match step {
            BackupPart::Begin { store, name } => BackupStep::Begin { store: (**store).into(), name: (**name).into() },
            BackupPart::Copy { name, until } => BackupStep::Copy { name: (**name).into(), until: CommitNumber(*until) },
            BackupPart::End { name } => BackupStep::End { name: (**name).into() },
        };
        self.control_node(Some(*node), NodeQuestion::Backup { step })
    }

    /// Lets a node do something; `None` for the own one, or for the leader.
    pub(crate) fn control_node(&mut self, node: Option<u8>, question: NodeQuestion) -> Progress {
        match self.engine.gateway.control_node(self.session.connection, node, question, self.turn) {
            Ok(operation) => {
                self.session.execution = Execution::ControllingNode(operation);
                Progress::Waiting
            }
            Err(error) => fail(self, &error),
        }
    }
}

/// Begins the next call. After the last call, starts the statement again.
pub(super) fn request_next(context: &mut StatementContext<'_, '_>, mut calls: PendingCalls) -> Progress {
    let action = match calls.unsent.pop_front() {
        Some(OuterCall::Lock(action)) => action,
        Some(OuterCall::Benchmark(benchmark)) => {
            let state = BenchmarkState { benchmark, calls, step_requested: true };
            context.session.execution = Execution::Benchmark(Box::new(state));
            context.request_step();
            return Progress::Waiting;
        }
        Some(OuterCall::File(name)) => return start_load_file(context, name, calls),
        None => {
            let PendingCalls { results, input, statistics, .. } = calls;
            let state = RetryState { input, lock_results: Some(results), statistics, may_retry: false };
            context.session.execution = Execution::Retry(Box::new(state));
            return Progress::Waiting;
        }
    };
    let is_get = matches!(action, UserLockAction::Get { .. });
    let is_sleep = matches!(action, UserLockAction::Sleep { .. });
    match context.engine.gateway.use_user_lock(context.session.connection, action, context.turn) {
        Ok(operation) => {
            let state = UserLockState { operation, is_get, is_sleep, calls };
            context.session.execution = Execution::UserLock(Box::new(state));
            Progress::Waiting
        }
        Err(error) => {
            calls.input.release(context.turn);
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
    let UserLockState { is_get, mut calls, .. } = state;
    if let Some(error) = error {
        calls.input.release(context.turn);
        return fail(context, &error);
    }
    context.session.holds_user_locks |= is_get && value == Value::Int(1);
    if context.session.interrupted {
        calls.input.release(context.turn);
        return Progress::Done;
    }
    calls.results.values.push(value);
    request_next(context, calls)
}

/// What a session waits for in SHOW PROCESSLIST during SLEEP or a call of user-level locks.
pub(super) fn state_name(is_sleep: bool) -> &'static str {
    if is_sleep { "User sleep" } else { "User lock" }
}

/// Error of a lock call in a statement that uses a table. Such a statement may start more than once, but a
/// lock must be taken exactly once.
pub(crate) fn lock_call_in_table_statement() -> Box<Error> {
    Error::not_supported("GET_LOCK, SLEEP or BENCHMARK in a statement of a table")
}

/// A lock name in lower case, because lock names are compared without regard to case. Error: 3057.
fn lock_name(value: &Value) -> Result<Box<str>> {
    let text = text_of(value);
    let is_good = !value.is_null() && !text.is_empty() && text.chars().count() <= NAME_CHARACTERS_MAX;
    if !is_good {
        let message = format!("Incorrect user-level lock name '{text}'.");
        return Err(Error::new(ErrorCode::WrongUserLockName, message));
    }
    Ok(text.to_lowercase().into())
}

/// The milliseconds of SLEEP. Error 1210 for NULL and negative numbers.
fn sleep_ms_of(value: &Value) -> Result<u64> {
    let seconds = match value {
        Value::Null => None,
        Value::Bytes(_) => Some(text_of(value).trim().parse().unwrap_or(0.0)),
        number => number.as_ref().to_double().ok(),
    };
    match seconds.filter(|seconds| *seconds >= 0.0) {
        // The cast saturates, so an excessive number becomes the maximum.
        Some(seconds) => Ok(((seconds * 1000.0).ceil() as u64).min(SLEEP_MS_MAX)),
        None => Err(Error::new(ErrorCode::WrongArguments, "Incorrect arguments to sleep.")),
    }
}

/// A timeout in milliseconds, from a number of seconds that is rounded to an integer. A negative number
/// yields `None`, which means no limit. A text that is not a number counts as 0.
fn wait_ms_of(value: &Value) -> Option<u64> {
    let seconds = match value {
        Value::Null => 0.0,
        Value::Int(value) => *value as f64,
        Value::UInt(value) => *value as f64,
        Value::Double(value) => value.round(),
        Value::Decimal(value) => value.to_double().round(),
        Value::Bytes(_) => text_of(value).trim().parse().unwrap_or(0.0_f64).round(),
        other => other.as_ref().to_double().unwrap_or(0.0).round(),
    };
    // The cast saturates, so an excessive number becomes the maximum.
    (seconds >= 0.0).then_some((seconds * 1000.0) as u64)
}
