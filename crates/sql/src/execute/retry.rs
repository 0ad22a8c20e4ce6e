//! The input of a statement, and the copy that starts it once more.
//!
//! A statement starts again when a table definition changed between planning and execution, when an
//! AUTO_INCREMENT number was taken meanwhile, when tables that it waited for are free, and when main has
//! answered its calls of user-level locks. After the first two it is not retried again.

use junctor_gateway::TurnContext;
use junctor_model::value::Value;

/// What a statement is executed with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatementInput<'a> {
    pub form: InputForm<'a>,
    /// Whether the statement may be retried after it has begun. False for a retry, so that it ends.
    pub may_retry: bool,
}

/// The form in which a statement arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InputForm<'a> {
    /// Nothing to retry with: the query of another statement, or a statement whose state has all that it
    /// needs.
    None,
    /// A text.
    Text(&'a [u8]),
    /// A prepared statement, whose parameters are in the workspace.
    Prepared(u32),
    /// A key reader, and the keys in their wire form.
    Keys(u32, &'a [u8]),
}

/// An owned copy of a statement's input.
#[derive(Debug, Default)]
pub(crate) enum RetryInput {
    /// The statement cannot start again.
    #[default]
    None,
    /// A text.
    Text(Vec<u8>),
    /// A prepared statement and its parameters.
    Prepared(u32, Vec<u8>),
    /// A key reader, and the keys in their wire form.
    Keys(u32, Vec<u8>),
}

/// A statement that is about to start again.
#[derive(Debug)]
pub(crate) struct RetryState {
    pub input: RetryInput,
    /// The results of its calls of user-level locks; `None` when main was not asked.
    pub lock_results: Option<Vec<Value>>,
}

/// Longest input that a running statement keeps for a retry, in bytes. Longer statements fail instead.
const KEPT_BYTES_MAX: usize = 16 * 1024;

impl<'a> StatementInput<'a> {
    /// The input of a statement that is never retried.
    pub(crate) const NONE: StatementInput<'static> = StatementInput { form: InputForm::None, may_retry: false };

    /// The input of a statement that may be retried once.
    pub(crate) fn new(form: InputForm<'a>) -> StatementInput<'a> {
        StatementInput { form, may_retry: true }
    }

    /// A copy for a statement that begins. Nothing is kept in a transaction of several statements, whose
    /// earlier statements may depend on the old table definition.
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

    /// A copy for a statement that has not begun, however long it is.
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
            RetryInput::None => {}
            RetryInput::Text(buffer) | RetryInput::Prepared(_, buffer) | RetryInput::Keys(_, buffer) => {
                turn.buffers.give(buffer);
            }
        }
    }
}
