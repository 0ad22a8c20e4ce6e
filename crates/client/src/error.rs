//! Errors of the driver.

use std::fmt;
use std::sync::Arc;

use junctor_wire::Malformed;

/// The result of an operation of the driver.
pub type Result<T> = std::result::Result<T, Error>;

/// The error of an operation. Errors of the node have the numbers and SQLSTATEs of MySQL's server, errors of
/// the driver those of MySQL's client library.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    errno: u16,
    sqlstate: [u8; 5],
    message: Arc<str>,
}

/// Category of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The node refused the operation. The connection remains usable.
    Server,
    /// The connection is lost or was never established. The node may or may not have executed a pending
    /// operation.
    Connection,
    /// The node violated the protocol. The connection can no longer be used.
    Protocol,
    /// The driver refused a value: a column does not exist or has another type, a parameter is not allowed,
    /// or a reply is longer than the limit.
    Value,
    /// The request is longer than the protocol allows. It was not sent.
    TooLong,
}

/// Transient errors, after which the same transaction may succeed: a deadlock (1213), a lock wait timeout
/// (1205), a lock not granted immediately (3572), a row or table that changed since the snapshot (1020,
/// 1412), too many transactions or another temporary state of the node (1297, 1296).
const RETRYABLE: [u16; 7] = [1213, 1205, 3572, 1020, 1412, 1297, 1296];

impl Error {
    pub(crate) fn server(errno: u16, sqlstate: [u8; 5], message: &str) -> Error {
        Error { kind: ErrorKind::Server, errno, sqlstate, message: message.into() }
    }

    pub(crate) fn lost(why: &str) -> Error {
        let message = format!("Lost connection to the node: {why}");
        Error { kind: ErrorKind::Connection, errno: 2013, sqlstate: *b"08S01", message: message.into() }
    }

    /// No connection could be established. The message includes `why`.
    pub fn not_connected(why: &impl fmt::Display) -> Error {
        let message = format!("Can't connect to the node: {why}");
        Error { kind: ErrorKind::Connection, errno: 2003, sqlstate: *b"08001", message: message.into() }
    }

    pub(crate) fn protocol(why: &str) -> Error {
        let message = format!("Malformed packet from the node: {why}");
        Error { kind: ErrorKind::Protocol, errno: 2027, sqlstate: *b"HY000", message: message.into() }
    }

    pub(crate) fn tls(why: &dyn fmt::Display) -> Error {
        let message = format!("SSL connection error: {why}");
        Error { kind: ErrorKind::Connection, errno: 2026, sqlstate: *b"HY000", message: message.into() }
    }

    pub(crate) fn value(message: String) -> Error {
        Error { kind: ErrorKind::Value, errno: 2036, sqlstate: *b"HY000", message: message.into() }
    }

    /// The node's error for a name that is too long, made by the driver because the name does not even fit
    /// into a request.
    pub(crate) fn name_too_long(name: &str) -> Error {
        let message = format!("Identifier name '{}...' is too long", &name[..name.floor_char_boundary(64)]);
        Error::server(1059, *b"42000", &message)
    }

    pub(crate) fn too_long() -> Error {
        let message = "The request is longer than the protocol allows".into();
        Error { kind: ErrorKind::TooLong, errno: 2020, sqlstate: *b"HY000", message }
    }

    /// The error's category.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// MySQL's error number. Numbers from 2000 to 2999 come from the driver.
    pub fn errno(&self) -> u16 {
        self.errno
    }

    /// The SQLSTATE: five characters.
    pub fn sqlstate(&self) -> &str {
        std::str::from_utf8(&self.sqlstate).unwrap_or("HY000")
    }

    /// The error's text, without number and SQLSTATE.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the same transaction may succeed if it is run again. This is so after a deadlock (1213), a
    /// lock that was not granted (1205, 3572), a row or table that changed (1020, 1412), or a temporary state
    /// of the node (1296, 1297).
    pub fn is_retryable(&self) -> bool {
        self.kind == ErrorKind::Server && RETRYABLE.contains(&self.errno)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ERROR {} ({}): {}", self.errno, self.sqlstate(), self.message)
    }
}

impl std::error::Error for Error {}

impl From<Malformed> for Error {
    fn from(error: Malformed) -> Error {
        Error::protocol(error.field)
    }
}
