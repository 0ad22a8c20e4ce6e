//! A connection that waits for each answer.

use std::fmt;
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::reply::ReplyScanner;
use super::value::{Column, Value, binary_row, text_row};
use super::wire::{COM_QUIT, COM_STMT_PREPARE, PacketReader, push_execute, push_packet, push_query};

/// A statement that takes longer is a failure of the server.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(300);

const LONG_PASSWORD: u32 = 1;
const CONNECT_WITH_DB: u32 = 8;
const PROTOCOL_41: u32 = 0x200;
const TRANSACTIONS: u32 = 0x2000;
const SECURE_CONNECTION: u32 = 0x8000;
const PLUGIN_AUTH: u32 = 0x8_0000;
const UTF8MB4_GENERAL_CI: u8 = 45;

/// Why a statement or a connection failed.
#[derive(Debug)]
pub enum ClientError {
    /// The server said so.
    Server {
        /// MySQL's number.
        errno: u16,
        /// What it says.
        message: String,
    },
    /// The connection broke or nothing came in time.
    Io(std::io::Error),
    /// The server sent what the protocol does not allow.
    Protocol(&'static str),
}

impl ClientError {
    /// The server's error number, 0 if it did not give one.
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
            ClientError::Protocol(what) => write!(out, "protocol: {what}"),
        }
    }
}

impl std::error::Error for ClientError {}

impl From<std::io::Error> for ClientError {
    fn from(error: std::io::Error) -> ClientError {
        ClientError::Io(error)
    }
}

/// The rows of an answer; empty for a statement that gives none.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, values as text.
    pub rows: Vec<Vec<Value>>,
    /// Rows changed by a statement that gives none.
    pub affected_rows: u64,
}

/// A prepared statement of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Statement {
    /// The server's number of it.
    pub id: u32,
}

/// A connection of user root without a password, over TCP or any other stream of bytes.
pub struct Connection<S: Read + Write = TcpStream> {
    stream: BufReader<S>,
    sequence: u8,
    says_goodbye: bool,
}

type Answer<T> = Result<T, ClientError>;

impl Connection {
    /// Connects and logs in; an empty database is none.
    ///
    /// # Errors
    /// No connection, or the server's refusal.
    pub fn open(address: SocketAddr, database: &str) -> Answer<Connection> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Connection::log_in(stream, database)
    }

    /// Logs in on a stream that has said nothing yet; an empty database is none.
    ///
    /// # Errors
    /// The server's refusal.
    pub fn log_in(stream: TcpStream, database: &str) -> Answer<Connection> {
        stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
        Connection::over(stream, database)
    }

    /// Another handle of the socket; between answers nothing is left unread in this one.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn stream(&self) -> std::io::Result<TcpStream> {
        self.stream.get_ref().try_clone()
    }

    /// The socket alone; between answers nothing is left unread here.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn into_stream(mut self) -> std::io::Result<TcpStream> {
        self.says_goodbye = false;
        self.stream()
    }
}

impl<S: Read + Write> Connection<S> {
    /// Logs in over any stream that has said nothing yet; an empty database is none.
    ///
    /// # Errors
    /// A broken stream, or the server's refusal.
    pub fn over(stream: S, database: &str) -> Answer<Connection<S>> {
        let mut connection = Connection { stream: BufReader::new(stream), sequence: 0, says_goodbye: true };
        let greeting = connection.read_packet()?;
        if greeting.first() != Some(&10) {
            return Err(ClientError::Protocol("a greeting of another protocol version"));
        }
        connection.send(&login(database))?;
        let mut answer = connection.read_packet()?;
        if answer.first() == Some(&0xfe) {
            // Asked for another way to log in: an empty password is an empty answer in each.
            connection.send(&[])?;
            answer = connection.read_packet()?;
        }
        match answer.first() {
            Some(0) => Ok(connection),
            _ => Err(ClientError::Protocol("neither OK nor an error after the login")),
        }
    }

    /// Runs a statement in text.
    ///
    /// # Errors
    /// The server's error, or a broken connection.
    pub fn query(&mut self, text: &str) -> Answer<Rows> {
        let mut packet = Vec::with_capacity(text.len() + 5);
        push_query(&mut packet, text);
        self.write(&packet)?;
        self.read_rows(text_row)
    }

    /// The first value of the first row.
    ///
    /// # Errors
    /// As [`Self::query`]; an answer without rows is an error of the protocol.
    pub fn query_value(&mut self, text: &str) -> Answer<Value> {
        let rows = self.query(text)?.rows;
        rows.into_iter().flatten().next().ok_or(ClientError::Protocol("a value was asked for and no row came"))
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// The server's error, or a broken connection.
    pub fn prepare(&mut self, text: &str) -> Answer<Statement> {
        let mut payload = vec![COM_STMT_PREPARE];
        payload.extend_from_slice(text.as_bytes());
        self.sequence = 0;
        self.send(&payload)?;
        let answer = self.read_packet()?;
        let parsed = || {
            let mut reader = PacketReader(&answer);
            reader.number(1)?;
            Some((reader.number(4)?, reader.number(2)?, reader.number(2)?))
        };
        let (id, columns, parameters) = parsed().ok_or(ClientError::Protocol("a short answer to a preparation"))?;
        for count in [parameters, columns] {
            // Definitions end with an EOF packet, if there are any.
            let packets = if count == 0 { 0 } else { count + 1 };
            for _ in 0..packets {
                self.read_packet()?;
            }
        }
        Ok(Statement { id: id as u32 })
    }

    /// Executes a prepared statement with whole numbers as parameters.
    ///
    /// # Errors
    /// The server's error, or a broken connection.
    pub fn execute(&mut self, statement: Statement, parameters: &[i64]) -> Answer<Rows> {
        let mut packet = Vec::new();
        push_execute(&mut packet, statement.id, parameters);
        self.write(&packet)?;
        self.read_rows(binary_row)
    }

    /// Sends a whole request and follows its answer to the end. The buffer is only used meanwhile.
    ///
    /// # Errors
    /// A broken connection; what the server refuses is in the scanner.
    pub fn exchange(&mut self, request: &[u8], buffer: &mut [u8]) -> Answer<ReplyScanner> {
        self.stream.get_mut().write_all(request)?;
        let mut scanner = ReplyScanner::default();
        loop {
            match self.stream.read(buffer)? {
                0 => return Err(ClientError::Protocol("the server closed the connection")),
                count if scanner.feed(&buffer[..count]) => return Ok(scanner),
                _ => {}
            }
        }
    }

    fn read_rows(&mut self, decode: fn(&[u8], &[Column]) -> Option<Vec<Value>>) -> Answer<Rows> {
        let first = self.read_packet()?;
        if first.first() == Some(&0) {
            let affected_rows = PacketReader(&first[1..]).encoded_number();
            let affected_rows = affected_rows.ok_or(ClientError::Protocol("no number of changed rows"))?;
            return Ok(Rows { affected_rows, ..Rows::default() });
        }
        let count = PacketReader(&first).encoded_number().ok_or(ClientError::Protocol("no number of columns"))?;
        let mut answer = Rows::default();
        for _ in 0..count {
            let packet = self.read_packet()?;
            answer.columns.push(Column::parse(&packet).ok_or(ClientError::Protocol("a bad column definition"))?);
        }
        self.read_packet()?;
        loop {
            let packet = self.read_packet()?;
            if packet.first() == Some(&0xfe) && packet.len() < 9 {
                return Ok(answer);
            }
            answer.rows.push(decode(&packet, &answer.columns).ok_or(ClientError::Protocol("a bad row"))?);
        }
    }

    fn write(&mut self, packet: &[u8]) -> Answer<()> {
        self.sequence = 1;
        Ok(self.stream.get_mut().write_all(packet)?)
    }

    fn send(&mut self, payload: &[u8]) -> Answer<()> {
        let mut packet = Vec::with_capacity(payload.len() + 4);
        push_packet(&mut packet, self.sequence, payload);
        self.sequence = self.sequence.wrapping_add(1);
        Ok(self.stream.get_mut().write_all(&packet)?)
    }

    /// A packet's payload; an ERR packet is the error that it says.
    fn read_packet(&mut self) -> Answer<Vec<u8>> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header)?;
        let [low, middle, high, sequence] = header;
        if sequence != self.sequence {
            return Err(ClientError::Protocol("a packet out of sequence"));
        }
        self.sequence = sequence.wrapping_add(1);
        let mut payload = vec![0; u32::from_le_bytes([low, middle, high, 0]) as usize];
        self.stream.read_exact(&mut payload)?;
        if payload.first() != Some(&0xff) {
            return Ok(payload);
        }
        let mut reader = PacketReader(&payload[1..]);
        let errno = reader.number(2).unwrap_or(0) as u16;
        // A refusal before the login has no SQLSTATE.
        let text = if reader.0.first() == Some(&b'#') { reader.0.get(6..).unwrap_or(&[]) } else { reader.0 };
        Err(ClientError::Server { errno, message: String::from_utf8_lossy(text).into_owned() })
    }
}

impl<S: Read + Write> Drop for Connection<S> {
    fn drop(&mut self) {
        if self.says_goodbye {
            self.sequence = 0;
            // The server may be gone already.
            let _ = self.send(&[COM_QUIT]);
        }
    }
}

fn login(database: &str) -> Vec<u8> {
    let mut flags = LONG_PASSWORD | PROTOCOL_41 | TRANSACTIONS | SECURE_CONNECTION | PLUGIN_AUTH;
    if !database.is_empty() {
        flags |= CONNECT_WITH_DB;
    }
    let mut payload = flags.to_le_bytes().to_vec();
    payload.extend_from_slice(&(16_u32 << 20).to_le_bytes());
    payload.push(UTF8MB4_GENERAL_CI);
    payload.extend_from_slice(&[0; 23]);
    payload.extend_from_slice(b"root\0\0");
    if !database.is_empty() {
        payload.extend_from_slice(database.as_bytes());
        payload.push(0);
    }
    payload.extend_from_slice(b"mysql_native_password\0");
    payload
}
