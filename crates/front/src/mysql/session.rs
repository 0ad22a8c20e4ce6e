//! Hot path: at most 150 instructions per command, not counting execution.
//!
//! Executes the commands of sessions.

use junctor_model::collation::CharacterSet;
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::ConnectionId;
use junctor_signals::client_command::Login;
use junctor_signals::program::RowProtocol;
use junctor_sql::result::{Progress, ResultSink};
use junctor_sql::{PreparedExecution, QueryAttribute, Session, SqlCommand};

use super::compression::Algorithm;
use super::result_encoding::ResultEncoding;
use super::sink::PacketSink;
use super::statement_parameters::{StatementParameters, attribute};
use super::wire::capability::Capabilities;
use super::wire::command::{Command, CursorKind, StmtExecute, code};
use super::wire::error::ProtocolError;
use super::wire::field::FieldReader;
use super::wire::query_attributes::of_query;
use crate::protocol::{CommandContext, ProtocolSession, SessionTraits};

/// The state that the MySQL protocol keeps for one session.
#[derive(Debug)]
pub(crate) struct SessionState {
    capabilities: Capabilities,
    /// State of prepared statements between executions.
    parameters: StatementParameters,
    /// The character set of results.
    encoding: ResultEncoding,
}

impl ProtocolSession for SessionState {
    type Sink<'a> = PacketSink<'a>;

    fn open(login: &Login) -> (SessionState, SessionTraits) {
        let capabilities = Capabilities::from_bits(login.capabilities);
        let traits = SessionTraits {
            found_rows: capabilities.contains(Capabilities::FOUND_ROWS),
            multi_statements: capabilities.contains(Capabilities::MULTI_STATEMENTS),
            is_interactive: capabilities.contains(Capabilities::INTERACTIVE),
            tracks_state: capabilities.contains(Capabilities::SESSION_TRACK),
            compression: Algorithm::agreed(capabilities, 0).map(Algorithm::name),
            row_protocol: RowProtocol::Text,
        };
        let (parameters, encoding) = (StatementParameters::default(), ResultEncoding::default());
        (SessionState { capabilities, parameters, encoding }, traits)
    }

    #[inline]
    fn sink<'a>(&'a mut self, out: &'a mut Vec<u8>, result_start: Option<usize>) -> PacketSink<'a> {
        PacketSink::new(out, self.capabilities, &mut self.encoding, result_start)
    }

    fn execute(&mut self, payload: &[u8], answer: &mut Vec<u8>, context: CommandContext<'_, '_>) -> Progress {
        let SessionState { capabilities, parameters, encoding } = self;
        encoding.is_binary = false;
        // KILL may have ended rows early.
        encoding.end_rows();
        // Nearly every command is one of these two. A move of the parsed form of all commands would cost more
        // than their parsing.
        match payload {
            [code::QUERY, statement @ ..] if !capabilities.contains(Capabilities::QUERY_ATTRIBUTES) => {
                let mut sink = PacketSink::new(answer, *capabilities, encoding, Some(0));
                let CommandContext { engine, session, turn, .. } = context;
                return engine.command(session, SqlCommand::Query(statement), turn, &mut sink);
            }
            [code::STMT_EXECUTE, body @ ..] => {
                let execution = match StmtExecute::parse(FieldReader::new(body), *capabilities) {
                    Ok(execution) => execution,
                    Err(error) => return refuse(error, &mut PacketSink::new(answer, *capabilities, encoding, Some(0))),
                };
                (encoding.is_binary, encoding.statement) = (true, execution.statement_id);
                let mut sink = PacketSink::new(answer, *capabilities, encoding, Some(0));
                return execute_prepared(parameters, &execution, context, &mut sink);
            }
            _ => {}
        }
        let command = match Command::parse(payload, *capabilities) {
            Ok(command) => command,
            Err(error) => return refuse(error, &mut PacketSink::new(answer, *capabilities, encoding, Some(0))),
        };
        match &command {
            Command::StmtFetch { statement_id, .. } => {
                encoding.is_binary = true;
                encoding.begin_fetch(*statement_id);
            }
            Command::StmtClose { statement_id } | Command::StmtReset { statement_id } => {
                encoding.forget_cursor(*statement_id);
            }
            Command::ResetConnection => *encoding = ResultEncoding::default(),
            _ => {}
        }
        let mut sink = PacketSink::new(answer, *capabilities, encoding, Some(0));
        let CommandContext { engine, session, turn, .. } = context;
        if capabilities.contains(Capabilities::QUERY_ATTRIBUTES) {
            session.set_query_attributes(attributes_of_query(payload, *capabilities, session.client_character_set()));
        }
        let sql_command = match command {
            Command::Query { statement } => SqlCommand::Query(statement),
            Command::StmtPrepare { statement } => SqlCommand::Prepare(statement),
            Command::StmtClose { statement_id } => {
                parameters.forget(statement_id);
                engine.close_statement(session, statement_id);
                return Progress::Done;
            }
            Command::StmtReset { statement_id } => {
                parameters.forget_long_data(statement_id);
                engine.close_cursor(session, statement_id);
                if engine.parameter_count(session, statement_id).is_none() {
                    return unknown_statement(statement_id, "mysqld_stmt_reset", &mut sink);
                }
                SqlCommand::Ping
            }
            Command::StmtSendLongData { statement_id, parameter, data } => {
                // Data for an unknown statement or parameter is dropped. Otherwise a client could fill memory
                // with it.
                if engine.parameter_count(session, statement_id).is_some_and(|count| parameter < count) {
                    parameters.append_long_data(statement_id, parameter, data);
                }
                return Progress::Done;
            }
            Command::InitDb { database } => SqlCommand::UseDatabase(database),
            Command::FieldList { table, wildcard } => SqlCommand::FieldList { table, wildcard },
            Command::Statistics => SqlCommand::Statistics,
            Command::Ping => SqlCommand::Ping,
            Command::ResetConnection => {
                *parameters = StatementParameters::default();
                SqlCommand::ResetConnection
            }
            Command::SetOption { multi_statements } => SqlCommand::SetMultiStatements(multi_statements),
            Command::ProcessKill { connection_id } => SqlCommand::Kill(ConnectionId(connection_id)),
            Command::ProcessInfo => SqlCommand::Query(b"SHOW PROCESSLIST"),
            Command::StmtFetch { statement_id, row_count } => {
                SqlCommand::Fetch { statement: statement_id, rows_max: row_count }
            }
            Command::Unknown(_) => {
                sink.error(&Error::new(ErrorCode::UnknownCommand, "Unknown command"));
                return Progress::Done;
            }
            // The link handles Quit and ChangeUser, and StmtExecute has returned.
            Command::Quit | Command::ChangeUser(_) | Command::StmtExecute(_) => return Progress::Close,
        };
        engine.command(session, sql_command, turn, &mut sink)
    }

    fn text_start(&self, payload: &[u8]) -> Option<usize> {
        let text = match Command::parse(payload, self.capabilities).ok()? {
            Command::Query { statement } | Command::StmtPrepare { statement } => statement,
            Command::InitDb { database } => database,
            // The name of the table and the pattern.
            Command::FieldList { .. } => payload.get(1..)?,
            _ => return None,
        };
        payload.len().checked_sub(text.len())
    }

    fn query_text<'p>(&self, payload: &'p [u8]) -> Option<&'p [u8]> {
        if payload.first() != Some(&code::QUERY) {
            return None;
        }
        match Command::parse(payload, self.capabilities) {
            Ok(Command::Query { statement }) => Some(statement),
            _ => None,
        }
    }

    fn describe<'p>(&self, payload: &'p [u8], session: &'p Session) -> (&'static str, Option<&'p [u8]>) {
        match Command::parse(payload, self.capabilities) {
            Ok(Command::Query { statement }) => ("Query", Some(statement)),
            Ok(Command::StmtExecute(execution)) => ("Execute", session.statement_text(execution.statement_id)),
            Ok(Command::StmtPrepare { statement }) => ("Prepare", Some(statement)),
            Ok(Command::InitDb { database }) => ("Init DB", Some(database)),
            Ok(Command::StmtClose { .. }) => ("Close stmt", None),
            Ok(Command::StmtReset { .. }) => ("Reset stmt", None),
            Ok(Command::StmtFetch { .. }) => ("Fetch", None),
            Ok(Command::StmtSendLongData { .. }) => ("Long Data", None),
            Ok(Command::FieldList { .. }) => ("Field List", None),
            Ok(Command::Statistics) => ("Statistics", None),
            Ok(Command::Ping) => ("Ping", None),
            Ok(Command::ResetConnection) => ("Reset Connection", None),
            Ok(Command::SetOption { .. }) => ("Set option", None),
            Ok(Command::ProcessKill { .. }) => ("Kill", None),
            Ok(Command::ProcessInfo) => ("Processlist", None),
            Ok(Command::Quit) => ("Quit", None),
            Ok(Command::ChangeUser(_)) => ("Change user", None),
            Ok(Command::Unknown(_)) | Err(_) => ("Error", None),
        }
    }
}

/// The query attributes of a command that has been parsed, so that they are well-formed.
#[inline]
fn attributes_of_query(payload: &[u8], capabilities: Capabilities, client: CharacterSet) -> Vec<QueryAttribute> {
    let mut attributes = Vec::new();
    let _ = of_query(payload, capabilities, &mut |name, value| attributes.push(attribute(client, name, value)));
    attributes
}

#[inline]
fn execute_prepared(
    bound: &mut StatementParameters,
    execution: &StmtExecute<'_>,
    context: CommandContext<'_, '_>,
    sink: &mut PacketSink<'_>,
) -> Progress {
    let CommandContext { engine, session, parameters, turn } = context;
    let statement = execution.statement_id;
    let Some(count) = engine.parameter_count(session, statement) else {
        return unknown_statement(statement, "mysqld_stmt_execute", sink);
    };
    let (count, client) = (usize::from(count), session.client_character_set());
    if execution.parameters.named {
        match bound.attributes(execution, count, client) {
            Ok(attributes) => session.set_query_attributes(attributes),
            Err(error) => return refuse(error, sink),
        }
    }
    let progress = match bound.decode(execution, count, client, parameters) {
        Ok(()) => {
            let wants_cursor = execution.cursor == CursorKind::ReadOnly;
            let execution = PreparedExecution { statement, parameters: &mut parameters.bytes, wants_cursor };
            engine.execute_prepared(session, execution, turn, sink)
        }
        Err(error) => refuse(error, sink),
    };
    parameters.trim();
    progress
}

/// Appends the error of a refused command. The connection closes if the client broke the protocol.
fn refuse(error: ProtocolError, sink: &mut PacketSink<'_>) -> Progress {
    let code = match error {
        ProtocolError::PacketsOutOfOrder { .. } => ErrorCode::PacketsOutOfOrder,
        ProtocolError::PacketTooLarge => ErrorCode::PacketTooLarge,
        ProtocolError::Malformed { .. } => ErrorCode::MalformedPacket,
        ProtocolError::WrongArguments => ErrorCode::WrongArguments,
    };
    sink.error(&Error::new(code, error.message()));
    if error == ProtocolError::WrongArguments { Progress::Done } else { Progress::Close }
}

fn unknown_statement(statement: u32, command: &str, sink: &mut PacketSink<'_>) -> Progress {
    let message = format!("Unknown prepared statement handler ({statement}) given to {command}");
    sink.error(&Error::new(ErrorCode::UnknownPreparedStatement, message));
    Progress::Done
}
