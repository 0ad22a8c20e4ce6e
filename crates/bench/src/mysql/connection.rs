//! A blocking connection: every call waits for its reply.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use junctor_front::mysql::wire::connect_attributes::ConnectAttributes;
use junctor_front::mysql::wire::field::FieldReader;
use junctor_front::mysql::wire::greeting::{Greeting, NATIVE_PASSWORD};
use junctor_front::mysql::wire::handshake_response::HandshakeResponse;
use junctor_front::mysql::wire::reply::{ErrorReply, OkReply, PrepareReply};
use junctor_front::mysql::wire::{Capabilities, Command, PacketReader, PacketWriter, ProtocolError};

use super::reply::{PAYLOAD_BYTES_MAX, ReplyScanner, is_eof, is_error, is_ok};
use super::request::{CAPABILITIES, push_command, push_execute, push_execute_encoded, push_query};
use super::value::{Column, Value, binary_row, text_row};

/// A server that takes longer to reply is treated as failed.
const REPLY_TIME_MAX: Duration = Duration::from_secs(300);

/// Maximum packet size that the client announces, in bytes.
const PACKET_BYTES_MAX: u32 = 16 << 20;
const UTF8MB4_GENERAL_CI: u8 = 45;
const AUTHENTICATION_SWITCH_HEADER: u8 = 0xfe;
const BUFFER_BYTES: usize = 16 << 10;

/// Why a statement or a connection failed.
#[derive(Debug)]
pub enum ClientError {
    /// The server replied with an error.
    Server {
        /// MySQL's error number.
        errno: u16,
        /// The error's text.
        message: String,
    },
    /// The connection broke, or no reply arrived within 300 seconds.
    Io(std::io::Error),
    /// The server sent bytes that the protocol does not allow.
    Protocol(ProtocolError),
}

impl ClientError {
    /// The server's error number; 0 for errors of the connection or the protocol.
    pub fn errno(&self) -> u16 {
        match self {
            ClientError::Server { errno, .. } => *errno,
            _ => 0,
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Server { errno, message } => write!(out, "error {errno}: {message}"),
            ClientError::Io(error) => write!(out, "connection: {error}"),
            ClientError::Protocol(error) => write!(out, "protocol: {error}"),
        }
    }
}

impl std::error::Error for ClientError {}

impl From<std::io::Error> for ClientError {
    fn from(error: std::io::Error) -> ClientError {
        ClientError::Io(error)
    }
}

impl From<ProtocolError> for ClientError {
    fn from(error: ProtocolError) -> ClientError {
        ClientError::Protocol(error)
    }
}

/// The result of a statement. `columns` and `rows` are empty if it returns no rows.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Columns, from left to right.
    pub columns: Vec<Column>,
    /// Rows with their values as text.
    pub rows: Vec<Vec<Value>>,
    /// Number of rows that the statement changed; 0 if it returns rows.
    pub affected_rows: u64,
}

/// A prepared statement of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Statement {
    /// The server's id of the statement, valid on this connection.
    pub id: u32,
}

/// A connection as root without a password, over TCP or any other byte stream.
pub struct Connection<S: Read + Write = TcpStream> {
    stream: S,
    packets: PacketReader,
    /// Received bytes. Those before `taken` have been passed to `packets`.
    received: Vec<u8>,
    taken: usize,
    sends_quit: bool,
}

type Result<T, E = ClientError> = std::result::Result<T, E>;
type DecodeRow = fn(&[u8], &[Column]) -> Result<Vec<Value>, ProtocolError>;

impl Connection {
    /// Connects and logs in. An empty `database` selects none.
    ///
    /// # Errors
    /// The connection fails, or the server refuses the login.
    pub fn open(address: SocketAddr, database: &str) -> Result<Connection> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Connection::log_in(stream, database)
    }

    /// Logs in over a stream from which nothing has been read yet. An empty `database` selects none.
    ///
    /// # Errors
    /// The server refuses the login.
    pub fn log_in(stream: TcpStream, database: &str) -> Result<Connection> {
        stream.set_read_timeout(Some(REPLY_TIME_MAX))?;
        Connection::log_in_over(stream, database)
    }

    /// Returns a second handle to the socket. Between replies, this connection buffers no received bytes.
    ///
    /// # Errors
    /// The process has no free file descriptor.
    pub fn stream(&self) -> std::io::Result<TcpStream> {
        self.stream.try_clone()
    }

    /// Turns the connection back into its socket without sending `COM_QUIT`. Between replies this loses no
    /// received bytes.
    ///
    /// # Errors
    /// The process has no free file descriptor.
    pub fn into_stream(mut self) -> std::io::Result<TcpStream> {
        self.sends_quit = false;
        self.stream()
    }
}

impl<S: Read + Write> Connection<S> {
    /// Logs in over any byte stream from which nothing has been read yet. An empty `database` selects none.
    ///
    /// # Errors
    /// The stream breaks, or the server refuses the login.
    pub fn log_in_over(stream: S, database: &str) -> Result<Connection<S>> {
        let packets = PacketReader::new(0, PAYLOAD_BYTES_MAX);
        let mut connection = Connection { stream, packets, received: Vec::new(), taken: 0, sends_quit: true };
        Greeting::parse(&connection.read_packet()?)?;
        connection.send_login(|out| login(database).encode(out), 1)?;
        let mut reply = connection.read_packet()?;
        if reply.first() == Some(&AUTHENTICATION_SWITCH_HEADER) {
            // Every authentication plugin accepts an empty response for an empty password.
            connection.send_login(|_| {}, 3)?;
            reply = connection.read_packet()?;
        }
        OkReply::parse(&reply)?;
        Ok(connection)
    }

    /// Runs a statement as text.
    ///
    /// # Errors
    /// The server replies with an error, or the connection breaks.
    pub fn query(&mut self, text: &str) -> Result<Rows> {
        self.send(|out| push_query(out, text))?;
        self.read_rows(text_row)
    }

    /// Runs a statement as text and returns the first value of its first row.
    ///
    /// # Errors
    /// As [`Self::query`]. A reply without rows is a protocol error.
    pub fn query_value(&mut self, text: &str) -> Result<Value> {
        let rows = self.query(text)?.rows;
        Ok(rows.into_iter().flatten().next().ok_or(ProtocolError::Malformed { field: "first row" })?)
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// The server replies with an error, or the connection breaks.
    pub fn prepare(&mut self, text: &str) -> Result<Statement> {
        self.send(|out| push_command(out, Command::StmtPrepare { statement: text.as_bytes() }))?;
        let reply = PrepareReply::parse(&self.read_packet()?)?;
        for count in [reply.parameter_count, reply.column_count].into_iter().filter(|count| *count > 0) {
            // An EOF packet follows the definitions.
            for _ in 0..=count {
                self.read_packet()?;
            }
        }
        Ok(Statement { id: reply.statement_id })
    }

    /// Executes a prepared statement with BIGINT parameters.
    ///
    /// # Errors
    /// The server replies with an error, or the connection breaks.
    pub fn execute(&mut self, statement: Statement, parameters: &[i64]) -> Result<Rows> {
        self.send(|out| push_execute(out, statement.id, parameters))?;
        self.read_rows(binary_row)
    }

    /// Executes a prepared statement with parameters that are already encoded: NULL bitmap, flag, types and
    /// values.
    ///
    /// # Errors
    /// The server replies with an error, or the connection breaks.
    pub fn execute_encoded(&mut self, statement: Statement, parameters: &[u8]) -> Result<Rows> {
        self.send(|out| push_execute_encoded(out, statement.id, parameters))?;
        self.read_rows(binary_row)
    }

    /// Closes a prepared statement. The server does not reply.
    ///
    /// # Errors
    /// The connection breaks.
    pub fn close_statement(&mut self, statement: Statement) -> Result<()> {
        self.send(|out| push_command(out, Command::StmtClose { statement_id: statement.id }))
    }

    /// Sends a whole request and reads its reply to the end without decoding rows. `buffer` is scratch space.
    ///
    /// # Errors
    /// The connection breaks. The server's error is not returned here, but recorded in the scanner.
    pub fn exchange(&mut self, request: &[u8], buffer: &mut [u8]) -> Result<ReplyScanner> {
        self.stream.write_all(request)?;
        let mut scanner = ReplyScanner::default();
        loop {
            match self.stream.read(buffer)? {
                0 => return Err(closed().into()),
                count if scanner.feed(&buffer[..count])? => return Ok(scanner),
                _ => {}
            }
        }
    }

    fn read_rows(&mut self, decode: DecodeRow) -> Result<Rows> {
        let first = self.read_packet()?;
        if is_ok(&first) {
            return Ok(Rows { affected_rows: OkReply::parse(&first)?.affected_rows, ..Rows::default() });
        }
        let column_count = FieldReader::new(&first).length_encoded_integer("column_count")?;
        let mut result = Rows::default();
        for _ in 0..column_count {
            result.columns.push(Column::parse(&self.read_packet()?)?);
        }
        // The EOF packet after the column definitions.
        self.read_packet()?;
        loop {
            let payload = self.read_packet()?;
            if is_eof(&payload) {
                return Ok(result);
            }
            result.rows.push(decode(&payload, &result.columns)?);
        }
    }

    fn send(&mut self, push: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let mut request = Vec::new();
        push(&mut request);
        self.packets.expect_sequence(1);
        Ok(self.stream.write_all(&request)?)
    }

    fn send_login(&mut self, encode: impl FnOnce(&mut Vec<u8>), sequence: u8) -> Result<()> {
        let mut packet = Vec::new();
        PacketWriter::new(&mut packet, sequence).packet(encode);
        self.packets.expect_sequence(sequence.wrapping_add(1));
        Ok(self.stream.write_all(&packet)?)
    }

    /// Reads the next payload. An error packet becomes [`ClientError::Server`].
    fn read_packet(&mut self) -> Result<Vec<u8>> {
        loop {
            let mut rest = &self.received[self.taken..];
            let packet = self.packets.next_packet(&mut rest)?;
            let found = packet.map(|packet| (packet.payload.to_vec(), packet.reply_sequence()));
            self.taken = self.received.len() - rest.len();
            if let Some((payload, next_sequence)) = found {
                self.packets.expect_sequence(next_sequence);
                return if is_error(&payload) { Err(server_error(&payload)?) } else { Ok(payload) };
            }
            self.taken = 0;
            self.received.resize(BUFFER_BYTES, 0);
            let count = self.stream.read(&mut self.received)?;
            self.received.truncate(count);
            if count == 0 {
                return Err(closed().into());
            }
        }
    }
}

impl<S: Read + Write> Drop for Connection<S> {
    fn drop(&mut self) {
        if self.sends_quit {
            // The server may already be gone.
            let _ = self.send(|out| push_command(out, Command::Quit));
        }
    }
}

fn server_error(payload: &[u8]) -> Result<ClientError> {
    let error = ErrorReply::parse(payload)?;
    Ok(ClientError::Server { errno: error.errno, message: String::from_utf8_lossy(error.message).into_owned() })
}

fn closed() -> std::io::Error {
    std::io::Error::new(ErrorKind::UnexpectedEof, "the server closed the connection")
}

fn login(database: &str) -> HandshakeResponse<'_> {
    let with_database = if database.is_empty() { Capabilities::NONE } else { Capabilities::CONNECT_WITH_DB };
    HandshakeResponse {
        capabilities: Capabilities::from_bits(CAPABILITIES.bits() | with_database.bits()),
        packet_bytes_max: PACKET_BYTES_MAX,
        charset: UTF8MB4_GENERAL_CI,
        user: b"root",
        auth_response: b"",
        database: database.as_bytes(),
        plugin: Some(NATIVE_PASSWORD),
        attributes: ConnectAttributes::default(),
        zstd_level: 0,
    }
}
