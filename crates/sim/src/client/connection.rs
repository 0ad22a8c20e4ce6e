//! The life of a connection: greeting, login, and statements one after the other.

use std::collections::BTreeMap;
use std::fmt;

use junctor_front::mysql::wire::command::{CursorKind, StmtExecute};
use junctor_front::mysql::wire::greeting::{Greeting, NATIVE_PASSWORD};
use junctor_front::mysql::wire::handshake_response::HandshakeResponse;
use junctor_front::mysql::wire::parameter::{
    ColumnType, ParameterBlock, ParameterType, ParameterValue, encode_parameters,
};
use junctor_front::mysql::wire::reply::{ErrorReply, OkReply, PrepareReply, columns_have_end};
use junctor_front::mysql::wire::{Capabilities, Command, PacketReader, PacketWriter, ProtocolError};

use super::result::ResultReader;
use crate::statement::{Parameter, Reply, Statement};

/// Maximum length of an answer packet, in bytes.
const PAYLOAD_BYTES_MAX: usize = 64 << 20;

/// utf8mb4_general_ci.
const CHARSET: u8 = 45;

/// The behaviour of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Whether to prepare statements with parameters. Otherwise their values become part of the text.
    pub prepares: bool,
    /// Whether to announce CLIENT_DEPRECATE_EOF, which replaces the EOF packets of results.
    pub deprecates_eof: bool,
    /// The default database to request at login.
    pub database: Option<&'static str>,
}

/// An event derived from the received bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// Login succeeded; statements may be sent.
    LoggedIn,
    /// The server refused the login.
    Refused {
        /// MySQL's error number.
        errno: u16,
    },
    /// The answer to the last statement.
    Replied(Reply),
}

/// A violation of the protocol by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFault(pub String);

impl fmt::Display for ClientFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "protocol violation by the server: {}", self.0)
    }
}

impl std::error::Error for ClientFault {}

impl From<ProtocolError> for ClientFault {
    fn from(error: ProtocolError) -> Self {
        Self(error.to_string())
    }
}

/// The client side of one connection.
#[derive(Debug)]
pub struct Client {
    options: ClientOptions,
    capabilities: Capabilities,
    reader: PacketReader,
    stage: Stage,
    output: Vec<u8>,
    /// The prepared statements of this connection, by text.
    prepared: BTreeMap<String, Prepared>,
    /// The statement in flight.
    statement: Option<Statement>,
    /// The completed results of the statement in flight, before its current one.
    results: Vec<Reply>,
}

#[derive(Clone, Copy, Debug)]
struct Prepared {
    id: u32,
    parameter_count: u16,
    /// Parameter types are sent only with the first execution, as drivers do.
    types_sent: bool,
}

#[derive(Debug)]
enum Stage {
    Greeting,
    Login,
    Idle,
    /// A statement is being prepared. After the first packet: the statement, and the number of description
    /// packets to come.
    Preparing(Option<(Prepared, usize)>),
    Answer(ResultReader),
    Ended,
}

impl Client {
    /// A client for a new connection.
    pub fn new(options: ClientOptions) -> Self {
        let mut capabilities = Capabilities::SERVER.without(Capabilities::COMPRESS | Capabilities::ZSTD_COMPRESSION);
        if !options.deprecates_eof {
            capabilities = capabilities.without(Capabilities::DEPRECATE_EOF);
        }
        if options.database.is_none() {
            capabilities = capabilities.without(Capabilities::CONNECT_WITH_DB);
        }
        capabilities = capabilities.without(Capabilities::FOUND_ROWS).without(Capabilities::CONNECT_ATTRS);
        capabilities = capabilities.without(Capabilities::QUERY_ATTRIBUTES);
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

    /// Removes and returns the bytes to send.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Whether a statement may be sent.
    pub fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    /// The statement in flight.
    pub fn awaited(&self) -> Option<&Statement> {
        self.statement.as_ref()
    }

    /// Sends a statement, preparing it first if the options ask for that.
    ///
    /// # Errors
    /// The connection is not idle.
    pub fn send(&mut self, statement: Statement) -> Result<(), ClientFault> {
        if !self.is_idle() {
            return Err(ClientFault("a statement is sent while another one is in flight".to_owned()));
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

    /// Sends COM_QUIT.
    pub fn quit(&mut self) {
        if self.is_idle() {
            self.command(&Command::Quit);
            self.stage = Stage::Ended;
        }
    }

    /// Processes bytes from the server.
    ///
    /// # Errors
    /// The first protocol violation. The client is unusable afterwards.
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
                // The server may give a reason before it closes an idle connection.
                ErrorReply::parse(payload)?;
            }
            Stage::Idle | Stage::Ended => {
                return Err(ClientFault(format!("an unsolicited packet of {} bytes", payload.len())));
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
            auth_response: b"",
            database: self.options.database.unwrap_or_default().as_bytes(),
            plugin: Some(NATIVE_PASSWORD),
            attributes: Default::default(),
            zstd_level: 0,
        };
        PacketWriter::new(&mut self.output, next).packet(|out| response.encode(out));
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
            false => Err(ClientFault(format!("{} parameters instead of {wanted}", reply.parameter_count))),
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
        encode_parameters(&parameters, !prepared.types_sent, &mut bytes);
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
        PacketWriter::new(&mut self.output, 0).packet(|out| command.encode(capabilities, out));
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
