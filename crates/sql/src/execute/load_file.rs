//! LOAD_FILE: reads a file of the server before its statement starts, like the calls of `user_lock`.
//!
//! A statement may start again and then reads the file again. Its plan finds the content by the file's name,
//! however often it binds the call.

use junctor_expression::Warning;
use junctor_gateway::TurnContext;
use junctor_gateway::file::{FileAnswer, FileBuffer, FileError, FileStep, FileUse};
use junctor_model::access::Privilege;
use junctor_model::error::{Error, ErrorCode};
use junctor_model::value::Value;
use junctor_signals::diagnostics::Diagnostics;
use junctor_signals::read_rows::OperationId;

use super::completion::fail;
use super::context::StatementContext;
use super::engine::Engine;
use super::server_file::{FILE_STEP_BYTES, FileAttempt};
use super::session::Session;
use super::state::Execution;
use super::user_lock::{PendingCalls, request_next};
use crate::result::Progress;

/// Maximum bytes of all files of one statement, if `max_allowed_packet` is not more.
pub(super) const FILE_BYTES_MAX: usize = 256 << 20;

/// A statement whose file is being read.
#[derive(Debug)]
pub(crate) struct LoadFileState {
    pub operation: OperationId,
    calls: PendingCalls,
    name: Box<str>,
    content: Vec<u8>,
}

impl LoadFileState {
    /// Ends the call, because its statement is stopped.
    pub(super) fn abandon(self, engine: &mut Engine, turn: &mut TurnContext<'_>) {
        engine.gateway.discard_file(self.operation, false, turn);
        self.calls.input.release(turn);
    }
}

impl Engine {
    /// Whether LOAD_FILE may return more than NULL to the session.
    pub(crate) fn may_load_files(&self, session: &Session) -> bool {
        self.settings.secure_file_priv.is_some() && self.rights_for(session).global().has_any(Privilege::File.into())
    }
}

/// Begins to read a file. Error: 29 if too many files are open.
pub(super) fn start_load_file(context: &mut StatementContext<'_, '_>, name: Box<str>, calls: PendingCalls) -> Progress {
    match context.open_server_file(&name, FileUse::Read) {
        Ok(operation) => {
            let state = LoadFileState { operation, calls, name, content: Vec::new() };
            context.session.execution = Execution::LoadFile(Box::new(state));
            Progress::Waiting
        }
        Err(error) => {
            calls.input.release(context.turn);
            fail(context, &error)
        }
    }
}

/// Continues with an answer about the file.
pub(super) fn resume_load_file(
    context: &mut StatementContext<'_, '_>,
    mut state: Box<LoadFileState>,
    step: FileAnswer,
    bytes: FileBuffer,
) -> Progress {
    let packet_max = context.engine.settings.max_allowed_packet as usize;
    let outcome = match step {
        Ok(FileStep::Opened { length }) if length > packet_max as u64 => Outcome::TooLong,
        Ok(FileStep::Opened { .. }) => Outcome::Continue,
        Ok(FileStep::Read) if state.content.len() + bytes.len() > packet_max => Outcome::TooLong,
        Ok(_) => {
            state.content.extend_from_slice(&bytes);
            // Fewer bytes than were asked for are the last ones.
            if bytes.len() < FILE_STEP_BYTES { Outcome::Complete } else { Outcome::Continue }
        }
        Err(error @ (FileError::TooManyOpen | FileError::QueueFull)) => {
            // NULL would tell the same as a file that does not exist.
            context.engine.gateway.discard_file(state.operation, false, context.turn);
            let LoadFileState { calls, name, .. } = *state;
            calls.input.release(context.turn);
            let error = context.server_file_error(&name, FileAttempt::Open, error);
            return fail(context, &error);
        }
        Err(_) => Outcome::Unreadable,
    };
    if outcome == Outcome::Continue {
        context.engine.gateway.read_file(state.operation, FILE_STEP_BYTES as u32, bytes, context.turn);
        context.session.execution = Execution::LoadFile(state);
        return Progress::Waiting;
    }
    context.engine.gateway.discard_file(state.operation, false, context.turn);
    let LoadFileState { mut calls, name, content, .. } = *state;
    if outcome == Outcome::TooLong {
        let text = format!("Result of load_file() was larger than max_allowed_packet ({packet_max}) - truncated");
        let warning = Warning { code: ErrorCode::ResultTooLong, message: text.into() };
        calls.results.diagnostics.push(Diagnostics { warnings: vec![warning], count: 1, last_insert_id: None });
    }
    let value = if outcome == Outcome::Complete { Value::Bytes(content) } else { Value::Null };
    calls.results.files.push((name, value));
    let bytes_max = packet_max.max(FILE_BYTES_MAX);
    let length = |(_, value): &(Box<str>, Value)| if let Value::Bytes(bytes) = value { bytes.len() } else { 0 };
    if calls.results.files.iter().map(length).sum::<usize>() > bytes_max {
        calls.input.release(context.turn);
        let text = format!("Out of memory; the files of the statement have more than {bytes_max} bytes");
        return fail(context, &Error::new(ErrorCode::OutOfResources, text));
    }
    request_next(context, calls)
}

/// The outcome of a request about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// More of the file is to be read.
    Continue,
    /// The whole file is read.
    Complete,
    TooLong,
    Unreadable,
}
