//! Hot path: at most 150 instructions per request, not counting execution.
//!
//! Executes the requests of sessions.

use std::collections::BTreeMap;

use junctor_model::error::{Error, ErrorCode};
use junctor_model::value::ValueRef;
use junctor_signals::client_command::Login;
use junctor_signals::program::RowProtocol;
use junctor_sql::result::{Progress, ResultSink};
use junctor_sql::{KeyReadRequest, KeyReaderRequest, PreparedExecution, Session, SqlCommand};
use junctor_wire::request::{kind, parse_values};
use junctor_wire::{Malformed, Request};

use super::sink::NativeSink;
use crate::protocol::{CommandContext, ProtocolSession, SessionTraits};

/// Bytes that precede the keys of a read: kind, number, reader.
const BEFORE_KEYS_BYTES: usize = 9;

/// The state that the native protocol keeps for one session.
#[derive(Debug, Default)]
pub(crate) struct SessionState {
    /// Number of the current request, which its reply repeats. 0 if no request is being executed.
    number: u32,
    /// The SQL engine's id of each prepared statement, by the client's handle.
    statements: BTreeMap<u32, u32>,
}

/// The parameters of an execution, as the client sent them.
#[derive(Clone, Copy)]
struct Execution<'a> {
    handle: u32,
    count: u16,
    values: &'a [u8],
}

impl ProtocolSession for SessionState {
    type Sink<'a> = NativeSink<'a>;

    fn open(_login: &Login) -> (SessionState, SessionTraits) {
        let traits = SessionTraits {
            found_rows: false,
            multi_statements: false,
            is_interactive: false,
            tracks_state: false,
            compression: None,
            row_protocol: RowProtocol::Binary,
        };
        (SessionState::default(), traits)
    }

    #[inline]
    fn sink<'a>(&'a mut self, out: &'a mut Vec<u8>, result_start: Option<usize>) -> NativeSink<'a> {
        NativeSink { out, number: self.number, result_start, prepared: None }
    }

    #[inline]
    fn begin_command(&mut self, payload: &[u8]) {
        // A payload that is too short for a number gets an error reply with number 0.
        let number = payload.get(1..).and_then(|bytes| bytes.first_chunk());
        self.number = number.map_or(0, |number| u32::from_le_bytes(*number));
    }

    fn begin_unsolicited(&mut self) {
        self.number = 0;
    }

    fn execute(&mut self, payload: &[u8], answer: &mut Vec<u8>, context: CommandContext<'_, '_>) -> Progress {
        let (_, request) = parse(payload);
        let mut sink = NativeSink { out: answer, number: self.number, result_start: Some(0), prepared: None };
        let CommandContext { engine, session, parameters: _, turn } = context;
        let command = match request {
            Ok(Some(Request::ReadKeys { reader, keys })) => {
                let raw = payload.get(BEFORE_KEYS_BYTES..).unwrap_or(&[]);
                let request = KeyReadRequest { reader, keys, bytes: raw };
                return engine.read_keys(session, request, turn, &mut sink);
            }
            Ok(Some(Request::Execute { handle, count, values })) => {
                let context = CommandContext { engine, session, turn, ..context };
                return self.execute_prepared(Execution { handle, count, values }, context, &mut sink);
            }
            Ok(Some(Request::RunText(text))) => SqlCommand::Query(text.as_bytes()),
            Ok(Some(Request::Ping)) => SqlCommand::Ping,
            Ok(Some(Request::Reset)) => {
                self.statements.clear();
                SqlCommand::ResetConnection
            }
            Ok(Some(Request::Prepare { handle, text })) => {
                if let Some(replaced) = self.statements.remove(&handle) {
                    engine.close_statement(session, replaced);
                }
                let progress = engine.command(session, SqlCommand::Prepare(text.as_bytes()), turn, &mut sink);
                if let Some(statement) = sink.prepared {
                    self.statements.insert(handle, statement);
                }
                return progress;
            }
            Ok(Some(Request::Close { handle })) => {
                if let Some(statement) = self.statements.remove(&handle) {
                    engine.close_statement(session, statement);
                }
                return confirm(session, &mut sink);
            }
            Ok(Some(Request::PrepareReader { reader, database, table, columns })) => {
                let request = KeyReaderRequest { reader, database, table, columns: &columns };
                return engine.prepare_reader(session, &request, turn, &mut sink);
            }
            Ok(Some(Request::CloseReader { reader })) => {
                engine.close_reader(session, reader);
                return confirm(session, &mut sink);
            }
            Ok(None) => {
                sink.error(&Error::new(ErrorCode::UnknownCommand, "Unknown command"));
                return Progress::Done;
            }
            Err(error) => return refuse(error, &mut sink),
        };
        engine.command(session, command, turn, &mut sink)
    }

    fn query_text<'p>(&self, payload: &'p [u8]) -> Option<&'p [u8]> {
        match payload {
            [kind::RUN_TEXT, _, _, _, _, text @ ..] => Some(text),
            _ => None,
        }
    }

    fn describe<'p>(&self, payload: &'p [u8], session: &'p Session) -> (&'static str, Option<&'p [u8]>) {
        match parse(payload).1 {
            Ok(Some(Request::RunText(text))) => ("Query", Some(text.as_bytes())),
            Ok(Some(Request::Prepare { text, .. })) => ("Prepare", Some(text.as_bytes())),
            Ok(Some(Request::Execute { handle, .. })) => {
                let statement = self.statements.get(&handle);
                ("Execute", statement.and_then(|statement| session.statement_text(*statement)))
            }
            _ => ("Execute", None),
        }
    }
}

impl SessionState {
    fn execute_prepared(
        &self,
        execution: Execution<'_>,
        context: CommandContext<'_, '_>,
        sink: &mut NativeSink<'_>,
    ) -> Progress {
        let Execution { handle, count, values } = execution;
        let CommandContext { engine, session, parameters, turn } = context;
        let Some(statement) = self.statements.get(&handle) else {
            let message = format!("Unknown prepared statement handler ({handle}) given to EXECUTE");
            sink.error(&Error::new(ErrorCode::UnknownPreparedStatement, message));
            return Progress::Done;
        };
        parameters.clear();
        let parsed = parse_values(count, values, &mut |value| {
            parameters.builder.push(match value {
                // Some drivers send every positive integer as unsigned. As for a literal, only the value
                // decides the type.
                ValueRef::UInt(number) => i64::try_from(number).map_or(value, ValueRef::Int),
                value => value,
            });
        });
        let progress = match parsed {
            Err(error) => refuse(error, sink),
            Ok(_) => match parameters.builder.append_to(&mut parameters.bytes) {
                Ok(_) => {
                    let bytes = &mut parameters.bytes;
                    let execution = PreparedExecution { statement: *statement, parameters: bytes, wants_cursor: false };
                    engine.execute_prepared(session, execution, turn, sink)
                }
                Err(error) => {
                    sink.error(&error);
                    Progress::Done
                }
            },
        };
        parameters.trim();
        progress
    }
}

/// Decodes a request, which begins with its kind. Returns its number and the request.
#[inline]
fn parse(payload: &[u8]) -> (u32, Result<Option<Request<'_>>, Malformed>) {
    match payload.split_first() {
        Some((kind, payload)) => Request::parse(*kind, payload),
        None => (0, Err(Malformed { field: "kind" })),
    }
}

/// Confirms a request that is not a statement. ROW_COUNT() and the warnings of the previous statement stay
/// unchanged.
fn confirm(session: &Session, sink: &mut NativeSink<'_>) -> Progress {
    sink.complete(&session.completion());
    Progress::Done
}

/// Appends the error of a malformed request; the connection then closes.
fn refuse(error: Malformed, sink: &mut NativeSink<'_>) -> Progress {
    sink.error(&Error::new(ErrorCode::MalformedPacket, error.to_string()));
    Progress::Close
}
