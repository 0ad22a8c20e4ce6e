//! The life of a connection: greeting, login, and one statement after the other.

use std::collections::BTreeMap;
use std::fmt;

use junctor_front::mysql::wire::command::{CursorKind, StmtExecute};
use junctor_front::mysql::wire::greeting::{Greeting, NATIVE_PASSWORD};
use junctor_front::mysql::wire::handshake_response::HandshakeResponse;
use junctor_front::mysql::wire::parameter::{
    ColumnType, ParameterBlock, ParameterType, ParameterValue, emit_parameters,
};
use junctor_front::mysql::wire::reply::{ErrorReply, OkReply, PrepareReply, columns_have_end};
use junctor_front::mysql::wire::{Capabilities, Command, PacketReader, PacketWriter, ProtocolError};

use super::result::ResultReader;
use crate::statement::{Parameter, Reply, Statement};

/// The longest answer packet that a client takes, in bytes.
const PAYLOAD_BYTES_MAX: usize = 64 << 20;

/// utf8mb4_general_ci.
const CHARSET: u8 = 45;

/// How a client behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Whether statements with parameters are prepared; otherwise their values are put into the text.
    pub prepares: bool,
    /// Whether the client knows results that end without EOF packets.
    pub deprecates_eof: bool,
    /// The default database, if it names one at the login.
    pub database: Option<&'static str>,
}

/// Something that a client learns from the bytes it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// Statements may be sent.
    LoggedIn,
    /// The server lets nobody in now.
    Refused {
        /// MySQL's number.
        errno: u16,
    },
    /// The answer to the statement sent last.
    Replied(Reply),
}

/// The server sent what the protocol does not allow at this place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFault(pub String);

impl fmt::Display for ClientFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the server breaks the protocol: {}", self.0)
    }
}

impl std::error::Error for ClientFault {}

impl From<ProtocolError> for ClientFault {
    fn from(error: ProtocolError) -> Self {
        Self(error.to_string())
    }
}

/// One connection, the client's side.
#[derive(Debug)]
pub struct Client {
    options: ClientOptions,
    capabilities: Capabilities,
    reader: PacketReader,
    stage: Stage,
    output: Vec<u8>,
    /// Prepared statements of this connection, by their text.
    prepared: BTreeMap<String, Prepared>,
    /// The statement whose answer is awaited.
    statement: Option<Statement>,
    /// The results that came before the one under way.
    results: Vec<Reply>,
}

#[derive(Clone, Copy, Debug)]
struct Prepared {
    id: u32,
    parameter_count: u16,
    /// Types are sent with the first execution only, as drivers do.
    types_sent: bool,
}

#[derive(Debug)]
enum Stage {
    Greeting,
    Login,
    Idle,
    /// A statement is being prepared; packets of its description are still to come once the head is there.
    Preparing(Option<(Prepared, usize)>),
    Answer(ResultReader),
    Ended,
}

impl Client {
    /// A client at the start of a connection.
    pub fn new(options: ClientOptions) -> Self {
        let mut capabilities = Capabilities::SERVER;
        if !options.deprecates_eof {
            capabilities = capabilities.without(Capabilities::DEPRECATE_EOF);
        }
        if options.database.is_none() {
            capabilities = capabilities.without(Capabilities::CONNECT_WITH_DB);
        }
        capabilities = capabilities.without(Capabilities::FOUND_ROWS).without(Capabilities::CONNECT_ATTRS);
        Self {
            options,
            capabilities,
            reader: PacketReader::new(0, PAYLOAD_BYTES_MAX),
            stage: Stage::Greeting,
            output: Vec::new(),
            prepared: BTreeMap::new(),
            statement: None,
            results: Vec::new(),
        }
    }

    /// Bytes for the server.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Whether a statement may be sent.
    pub fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    /// The statement whose answer is awaited.
    pub fn awaited(&self) -> Option<&Statement> {
        self.statement.as_ref()
    }

    /// Sends a statement, after preparing it if that is to be done and was not.
    ///
    /// # Errors
    /// The connection is not idle.
    pub fn send(&mut self, statement: Statement) -> Result<(), ClientFault> {
        if !self.is_idle() {
            return Err(ClientFault("a statement is sent before the answer to the last has come".to_owned()));
        }
        let prepares = self.options.prepares && !statement.parameters.is_empty();
        match (prepares, self.prepared.get(&statement.text).copied()) {
            (false, _) => {
                self.command(&Command::Query { statement: statement.as_text().as_bytes() });
                self.stage = Stage::Answer(ResultReader::text(self.capabilities));
            }
            (true, None) => {
                self.command(&Command::StmtPrepare { statement: statement.text.as_bytes() });
                self.stage = Stage::Preparing(None);
            }
            (true, Some(prepared)) => self.execute(&statement, prepared),
        }
        self.statement = Some(statement);
        Ok(())
    }

    /// Says that the connection ends.
    pub fn quit(&mut self) {
        if self.is_idle() {
            self.command(&Command::Quit);
            self.stage = Stage::Ended;
        }
    }

    /// Takes bytes of the server.
    ///
    /// # Errors
    /// The first thing that the protocol does not allow; the client is of no use afterwards.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<ClientEvent>, ClientFault> {
        let mut events = Vec::new();
        let mut input = bytes;
        loop {
            let (payload, next) = match self.reader.next_packet(&mut input)? {
                Some(packet) => (packet.payload.to_vec(), packet.reply_sequence()),
                None => return Ok(events),
            };
            self.reader.expect_sequence(next);
            self.on_packet(&payload, next, &mut events)?;
        }
    }

    fn on_packet(&mut self, payload: &[u8], next: u8, events: &mut Vec<ClientEvent>) -> Result<(), ClientFault> {
        match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Greeting => self.on_greeting(payload, next, events)?,
            Stage::Login if payload.first() == Some(&0xff) => events.push(refused(payload)?),
            Stage::Login => {
                OkReply::parse(payload)?;
                self.stage = Stage::Idle;
                events.push(ClientEvent::LoggedIn);
            }
            Stage::Preparing(None) if payload.first() == Some(&0xff) => {
                let error = ErrorReply::parse(payload)?;
                self.end_statement(failed(&error), events);
            }
            Stage::Preparing(None) => self.on_prepare_reply(payload)?,
            Stage::Preparing(Some((prepared, left))) => self.on_description(prepared, left - 1),
            Stage::Answer(mut reader) => match reader.on_packet(payload)? {
                Some(reply) if reader.has_more() => {
                    self.results.push(reply);
                    self.stage = Stage::Answer(ResultReader::text(self.capabilities));
                }
                Some(reply) => self.end_statement(reply, events),
                None => self.stage = Stage::Answer(reader),
            },
            Stage::Idle if payload.first() == Some(&0xff) => {
                // The server may say why it closes an idle connection.
                ErrorReply::parse(payload)?;
            }
            Stage::Idle | Stage::Ended => {
                return Err(ClientFault(format!("a packet of {} bytes that nobody asked for", payload.len())));
            }
        }
        Ok(())
    }

    fn on_greeting(&mut self, payload: &[u8], next: u8, events: &mut Vec<ClientEvent>) -> Result<(), ClientFault> {
        if payload.first() == Some(&0xff) {
            events.push(refused(payload)?);
            return Ok(());
        }
        let greeting = Greeting::parse(payload)?;
        self.capabilities = self.capabilities & greeting.capabilities;
        let response = HandshakeResponse {
            capabilities: self.capabilities,
            packet_bytes_max: PAYLOAD_BYTES_MAX as u32,
            charset: CHARSET,
            user: b"root",
            authentication: b"",
            database: self.options.database.unwrap_or_default().as_bytes(),
            plugin: Some(NATIVE_PASSWORD),
            attributes: Default::default(),
        };
        PacketWriter::new(&mut self.output, next).packet(|out| response.emit(out));
        self.reader.expect_sequence(next.wrapping_add(1));
        self.stage = Stage::Login;
        Ok(())
    }

    fn on_prepare_reply(&mut self, payload: &[u8]) -> Result<(), ClientFault> {
        let reply = PrepareReply::parse(payload)?;
        let prepared = Prepared { id: reply.statement_id, parameter_count: reply.parameter_count, types_sent: false };
        let with_end = usize::from(columns_have_end(self.capabilities));
        let packets = |count: u16| if count == 0 { 0 } else { usize::from(count) + with_end };
        self.on_description(prepared, packets(reply.parameter_count) + packets(reply.column_count));
        let wanted = self.statement.as_ref().map_or(0, |statement| statement.parameters.len());
        match usize::from(reply.parameter_count) == wanted {
            true => Ok(()),
            false => Err(ClientFault(format!("{} parameters, not {wanted}", reply.parameter_count))),
        }
    }

    fn on_description(&mut self, prepared: Prepared, left: usize) {
        if left > 0 {
            self.stage = Stage::Preparing(Some((prepared, left)));
            return;
        }
        if let Some(statement) = self.statement.take() {
            self.execute(&statement, prepared);
            self.statement = Some(statement);
        }
    }

    fn execute(&mut self, statement: &Statement, prepared: Prepared) {
        let mut bytes = Vec::new();
        let parameters: Vec<_> = statement.parameters.iter().map(wire_parameter).collect();
        debug_assert_eq!(parameters.len(), usize::from(prepared.parameter_count));
        emit_parameters(&parameters, !prepared.types_sent, &mut bytes);
        let parameters = ParameterBlock { bytes: &bytes, named: false };
        let execution = StmtExecute { statement_id: prepared.id, cursor: CursorKind::None, parameters };
        self.command(&Command::StmtExecute(execution));
        self.prepared.insert(statement.text.clone(), Prepared { types_sent: true, ..prepared });
        self.stage = Stage::Answer(ResultReader::binary(self.capabilities));
    }

    fn end_statement(&mut self, reply: Reply, events: &mut Vec<ClientEvent>) {
        self.statement = None;
        self.stage = Stage::Idle;
        let mut results = std::mem::take(&mut self.results);
        let whole = match results.is_empty() {
            true => reply,
            false => {
                results.push(reply);
                Reply::Several(results)
            }
        };
        events.push(ClientEvent::Replied(whole));
    }

    fn command(&mut self, command: &Command<'_>) {
        let capabilities = self.capabilities;
        PacketWriter::new(&mut self.output, 0).packet(|out| command.emit(capabilities, out));
        self.reader.expect_sequence(1);
    }
}

fn refused(payload: &[u8]) -> Result<ClientEvent, ClientFault> {
    Ok(ClientEvent::Refused { errno: ErrorReply::parse(payload)?.errno })
}

pub(super) fn failed(error: &ErrorReply<'_>) -> Reply {
    Reply::Failed { errno: error.errno, message: String::from_utf8_lossy(error.message).into_owned() }
}

fn wire_parameter(parameter: &Parameter) -> (ParameterType, ParameterValue<'_>) {
    match parameter {
        Parameter::Integer(value) => {
            (ParameterType { column_type: ColumnType::LongLong, unsigned: false }, ParameterValue::Signed(*value))
        }
        Parameter::Text(value) => (
            ParameterType { column_type: ColumnType::VarString, unsigned: false },
            ParameterValue::Text(value.as_bytes()),
        ),
    }
}
