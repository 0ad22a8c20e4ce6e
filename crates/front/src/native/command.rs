//! Hot path, budget 150 instructions a request besides its execution: requests of sessions.

use junctor_gateway::TurnContext;
use junctor_model::error::{Error, ErrorCode};
use junctor_model::value::ValueRef;
use junctor_sql::result::{Progress, ResultSink};
use junctor_sql::{Engine, KeyReadRequest, KeyReaderRequest, PreparedExecution, Session, SqlCommand};
use junctor_wire::request::{kind, parse_values};
use junctor_wire::{Malformed, Request};

use super::{NativeSink, NativeStatements};

/// Bytes of decoded parameters for which a session keeps its memory.
const DECODED_BYTES_KEPT: usize = 64 * 1024;
/// Bytes before the keys of a read: kind, number, reader.
const BEFORE_KEYS_BYTES: usize = 9;

/// The number and the meaning of a request whose bytes begin with its kind.
#[inline]
pub(crate) fn parse(bytes: &[u8]) -> (u32, Result<Option<Request<'_>>, Malformed>) {
    match bytes.split_first() {
        Some((kind, payload)) => Request::parse(*kind, payload),
        None => (0, Err(Malformed { field: "kind" })),
    }
}

/// The number of a request whose bytes begin with its kind; 0 where it cannot be read.
#[inline]
pub(crate) fn number_of(bytes: &[u8]) -> u32 {
    bytes.get(1..).and_then(|bytes| bytes.first_chunk()).map_or(0, |number| u32::from_le_bytes(*number))
}

/// Executes a request; `bytes` are those that it was parsed from.
pub(crate) fn execute(
    engine: &mut Engine,
    session: &mut Session,
    known: &mut NativeStatements,
    (request, bytes): (Result<Option<Request<'_>>, Malformed>, &[u8]),
    turn: &mut TurnContext<'_>,
    sink: &mut NativeSink<'_>,
) -> Progress {
    let command = match request {
        Ok(Some(Request::ReadKeys { reader, keys })) => {
            let raw = bytes.get(BEFORE_KEYS_BYTES..).unwrap_or(&[]);
            let request = KeyReadRequest { reader, keys, bytes: raw };
            return engine.read_keys(session, request, turn, sink);
        }
        Ok(Some(Request::Execute { handle, count, values })) => {
            return execute_prepared(engine, session, known, (handle, count, values), turn, sink);
        }
        Ok(Some(Request::RunText(text))) => SqlCommand::Query(text.as_bytes()),
        Ok(Some(Request::Ping)) => SqlCommand::Ping,
        Ok(Some(Request::Reset)) => {
            *known = NativeStatements::default();
            SqlCommand::ResetConnection
        }
        Ok(Some(Request::Prepare { handle, text })) => {
            close(engine, session, known, handle);
            let progress = engine.command(session, SqlCommand::Prepare(text.as_bytes()), turn, sink);
            if let Some(statement) = sink.prepared {
                known.statements.insert(handle, statement);
            }
            return progress;
        }
        Ok(Some(Request::Close { handle })) => {
            close(engine, session, known, handle);
            return confirm(session, sink);
        }
        Ok(Some(Request::PrepareReader { reader, database, table, columns })) => {
            let request = KeyReaderRequest { reader, database, table, columns: &columns };
            return engine.prepare_reader(session, &request, turn, sink);
        }
        Ok(Some(Request::CloseReader { reader })) => {
            engine.close_reader(session, reader);
            return confirm(session, sink);
        }
        Ok(None) => {
            sink.error(&Error::new(ErrorCode::UnknownCommand, "Unknown command"));
            return Progress::Done;
        }
        Err(error) => return refuse(error, sink),
    };
    engine.command(session, command, turn, sink)
}

/// Says that something was forgotten; ROW_COUNT() and the warnings of the statement before stay.
fn confirm(session: &Session, sink: &mut NativeSink<'_>) -> Progress {
    sink.complete(&session.completion());
    Progress::Done
}

fn close(engine: &mut Engine, session: &mut Session, known: &mut NativeStatements, handle: u32) {
    if let Some(statement) = known.statements.remove(&handle) {
        engine.close_statement(session, statement);
    }
}

fn execute_prepared(
    engine: &mut Engine,
    session: &mut Session,
    known: &mut NativeStatements,
    (handle, count, values): (u32, u16, &[u8]),
    turn: &mut TurnContext<'_>,
    sink: &mut NativeSink<'_>,
) -> Progress {
    let NativeStatements { statements, builder, decoded } = known;
    let Some(statement) = statements.get(&handle) else {
        let message = format!("Unknown prepared statement handler ({handle}) given to EXECUTE");
        sink.error(&Error::new(ErrorCode::UnknownPreparedStatement, message));
        return Progress::Done;
    };
    builder.clear();
    decoded.clear();
    let parsed = parse_values(count, values, &mut |value| {
        builder.push(match value {
            // A number is what it is as a literal, however the client's type says it.
            ValueRef::UInt(number) => i64::try_from(number).map_or(value, ValueRef::Int),
            value => value,
        });
    });
    if let Err(error) = parsed {
        return refuse(error, sink);
    }
    if let Err(error) = builder.append_to(decoded) {
        sink.error(&error);
        return Progress::Done;
    }
    let execution = PreparedExecution { statement: *statement, parameters: decoded };
    let progress = engine.execute_prepared(session, execution, turn, sink);
    if decoded.capacity() > DECODED_BYTES_KEPT {
        (*builder, *decoded) = Default::default();
    }
    progress
}

/// What does not hold together ends its connection, after its error.
fn refuse(error: Malformed, sink: &mut NativeSink<'_>) -> Progress {
    sink.error(&Error::new(ErrorCode::MalformedPacket, error.to_string()));
    Progress::Close
}

/// What SHOW PROCESSLIST calls a request, and its statement.
pub(crate) fn describe<'a>(
    bytes: &'a [u8],
    session: &'a Session,
    known: &NativeStatements,
) -> (&'static str, Option<&'a [u8]>) {
    match parse(bytes).1 {
        Ok(Some(Request::RunText(text))) => ("Query", Some(text.as_bytes())),
        Ok(Some(Request::Prepare { text, .. })) => ("Prepare", Some(text.as_bytes())),
        Ok(Some(Request::Execute { handle, .. })) => {
            let statement = known.statements.get(&handle);
            ("Execute", statement.and_then(|statement| session.statement_text(*statement)))
        }
        _ => ("Execute", None),
    }
}

/// The text of a request that is a statement; `None` for every other.
pub(crate) fn text_of(bytes: &[u8]) -> Option<&[u8]> {
    match bytes {
        [kind::RUN_TEXT, _, _, _, _, text @ ..] => Some(text),
        _ => None,
    }
}
