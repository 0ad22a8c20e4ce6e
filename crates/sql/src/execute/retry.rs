//! The input of a statement, and the copy from which it can start again.
//!
//! A statement starts again in seven cases:
//! - a table definition changed between planning and execution;
//! - a change of the membership of a cluster ended it, and it is not committed;
//! - another session took one of its AUTO_INCREMENT values;
//! - the rows that it sorts take too much memory: it then uses temporary files;
//! - the tables that it waited for are free;
//! - the main block has returned the results of its lock calls;
//! - the ldm blocks have reported the statistics of tables.
//!
//! For a definition, a value or its rows, it starts again only once. For the membership, the statements of a
//! session start again only some times in each epoch.

use std::sync::Arc;

use junctor_gateway::TurnContext;
use junctor_gateway::epoch::has_lost_node;
use junctor_model::error::{Error, ErrorCode};

use super::context::StatementContext;
use super::schema::{AccessRetry, DefinitionRetry, FillTable};
use super::user_lock::CallResults;
use crate::mysql_catalog::show::StatisticsSnapshot;

/// The input with which a statement is executed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatementInput<'a> {
    pub form: InputForm<'a>,
    /// Whether the statement may start again after it has begun. False in a retry, which bounds the number of
    /// retries.
    pub may_retry: bool,
    /// Whether the statement has started before.
    pub is_restart: bool,
}

/// The form in which a statement was received.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InputForm<'a> {
    /// No input: a query inside another statement, or a statement whose state has everything that it needs.
    None,
    /// The statement's text.
    Text(&'a [u8]),
    /// The number of a prepared statement. Its parameters are in the workspace.
    Prepared(u32),
    /// The number of a key reader, and the keys as received.
    Keys(u32, &'a [u8]),
}

/// An owned copy of a statement's input.
#[derive(Debug, Default)]
pub(crate) enum RetryInput {
    /// The statement cannot start again.
    #[default]
    None,
    /// The input that the session keeps.
    OfSession,
    /// The statement's text.
    Text(Vec<u8>),
    /// The number of a prepared statement, and its parameters.
    Prepared(u32, Vec<u8>),
    /// The number of a key reader, and the keys as received.
    Keys(u32, Vec<u8>),
    /// Not a copy: the second part of a CREATE TABLE ... SELECT, after its table has been created.
    Fill(Box<FillTable>),
    /// A statement about accounts, which others have changed meanwhile.
    Access(AccessRetry),
    /// A statement about a table that others have changed meanwhile.
    Definition(Box<DefinitionRetry>),
}

/// The input of a session's query under way, in memory that the session reuses. A pool would cost more than
/// the copy.
#[derive(Debug, Default)]
pub(crate) struct KeptInput {
    /// The number of the prepared statement; `None` for a text.
    prepared: Option<u32>,
    /// The text, or the parameters.
    bytes: Vec<u8>,
}

impl KeptInput {
    /// Moves the input out.
    pub(crate) fn take(&mut self) -> RetryInput {
        let bytes = std::mem::take(&mut self.bytes);
        match self.prepared {
            None => RetryInput::Text(bytes),
            Some(statement) => RetryInput::Prepared(statement, bytes),
        }
    }
}

/// A statement that is about to start again.
#[derive(Debug)]
pub(crate) struct RetryState {
    pub input: RetryInput,
    /// The results of its lock calls; `None` if it has none.
    pub lock_results: Option<CallResults>,
    /// The statistics of tables that it uses; `None` if it has not requested them.
    pub statistics: Option<Arc<StatisticsSnapshot>>,
    /// Whether it may start again once more.
    pub may_retry: bool,
}

impl RetryState {
    /// Starts the statement again without results of earlier requests.
    pub(crate) fn of_input(input: RetryInput) -> RetryState {
        RetryState { input, lock_results: None, statistics: None, may_retry: false }
    }

    /// Starts the statement again after this error.
    pub(crate) fn after(error: &Error, input: RetryInput) -> RetryState {
        RetryState { may_retry: has_lost_node(error), ..RetryState::of_input(input) }
    }
}

impl StatementContext<'_, '_> {
    /// Whether a statement that nothing is committed of may succeed if it starts again after this error.
    #[cold]
    pub(crate) fn may_succeed_after(&mut self, error: &Error) -> bool {
        if !has_lost_node(error) {
            return is_temporary(error);
        }
        let epoch = self.engine.gateway.epoch();
        let count = match self.session.repeated_in {
            (last, count) if last == epoch => count.saturating_add(1),
            _ => 1,
        };
        self.session.repeated_in = (epoch, count);
        count <= REPEATS_PER_EPOCH_MAX
    }
}

/// Whether a statement that starts again may succeed after this error.
pub(super) fn is_temporary(error: &Error) -> bool {
    error.code == ErrorCode::TableDefinitionChanged || has_lost_node(error)
}

/// How often statements of a session start again in one epoch. The news of an epoch may come behind its
/// errors, so several epochs can look like one.
const REPEATS_PER_EPOCH_MAX: u8 = 8;

/// Maximum length of the input that stays with the session, in bytes, so that idle sessions hold little.
const OF_SESSION_BYTES_MAX: usize = 256;

/// Maximum length of the input that a running statement keeps for a retry, in bytes. A longer statement fails
/// instead.
const KEPT_BYTES_MAX: usize = 16 * 1024;

impl<'a> StatementInput<'a> {
    /// The input of a statement that never starts again.
    pub(crate) const NONE: StatementInput<'static> =
        StatementInput { form: InputForm::None, may_retry: false, is_restart: false };

    /// The input of a statement that may start again once.
    pub(crate) fn new(form: InputForm<'a>) -> StatementInput<'a> {
        StatementInput { form, may_retry: true, is_restart: false }
    }

    /// Copies the input of a statement that begins. In a transaction of several statements nothing is kept,
    /// because earlier statements may depend on the old table definition.
    pub(crate) fn keep(self, in_transaction: bool, parameters: &[u8], turn: &mut TurnContext<'_>) -> RetryInput {
        let bytes = match self.form {
            InputForm::None => return RetryInput::None,
            InputForm::Text(text) => text.len(),
            InputForm::Prepared(_) => parameters.len(),
            InputForm::Keys(_, keys) => keys.len(),
        };
        if in_transaction || !self.may_retry || bytes > KEPT_BYTES_MAX {
            return RetryInput::None;
        }
        self.copy(parameters, turn)
    }

    /// As [`StatementInput::keep`], for a query: a short input stays with the session.
    #[inline]
    pub(crate) fn keep_in_session(
        self,
        in_transaction: bool,
        kept: &mut KeptInput,
        parameters: &[u8],
        turn: &mut TurnContext<'_>,
    ) -> RetryInput {
        let (prepared, bytes) = match self.form {
            InputForm::Text(text) if text.len() <= OF_SESSION_BYTES_MAX => (None, text),
            InputForm::Prepared(statement) if parameters.len() <= OF_SESSION_BYTES_MAX => (Some(statement), parameters),
            _ => return self.keep(in_transaction, parameters, turn),
        };
        if in_transaction || !self.may_retry {
            return RetryInput::None;
        }
        kept.prepared = prepared;
        kept.bytes.clear();
        kept.bytes.extend_from_slice(bytes);
        RetryInput::OfSession
    }

    /// Copies the input of a statement that has not begun, whatever its length.
    pub(crate) fn copy(self, parameters: &[u8], turn: &mut TurnContext<'_>) -> RetryInput {
        let mut copy = |bytes: &[u8]| {
            let mut buffer = turn.buffers.take(bytes.len());
            buffer.extend_from_slice(bytes);
            buffer
        };
        match self.form {
            InputForm::None => RetryInput::None,
            InputForm::Text(text) => RetryInput::Text(copy(text)),
            InputForm::Prepared(statement) => RetryInput::Prepared(statement, copy(parameters)),
            InputForm::Keys(reader, keys) => RetryInput::Keys(reader, copy(keys)),
        }
    }
}

impl RetryInput {
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, RetryInput::None)
    }

    /// Returns the memory to the thread's buffers.
    pub(crate) fn release(self, turn: &mut TurnContext<'_>) {
        match self {
            RetryInput::None
            | RetryInput::OfSession
            | RetryInput::Fill(_)
            | RetryInput::Access(_)
            | RetryInput::Definition(_) => {}
            RetryInput::Text(buffer) | RetryInput::Prepared(_, buffer) | RetryInput::Keys(_, buffer) => {
                turn.buffers.give(buffer);
            }
        }
    }
}
