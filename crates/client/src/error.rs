//! What can go wrong.

use std::fmt;
use std::sync::Arc;

use junctor_wire::Malformed;

/// The result of an operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation failed. Errors of the server have MySQL's numbers and SQLSTATEs, and so have those of the connection, as
/// MySQL's clients number them.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    errno: u16,
    sqlstate: [u8; 5],
    message: Arc<str>,
}

/// What sort of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The server refused the operation; the connection goes on.
    Server,
    /// The connection is lost, or was never made. Whether an operation under way was done is not known.
    Connection,
    /// The other side does not keep to the protocol; the connection is of no use any more.
    Protocol,
    /// A value is not of the type that was asked for, or there is no such column.
    Value,
    /// The request is longer than the protocol allows.
    TooLong,
}

/// Errors after which the same transaction may well succeed: deadlock, lock not granted in time or not at once, a row or table that has
/// changed since the snapshot, too many transactions or another state that passes.
const RETRYABLE: [u16; 7] = [1213, 1205, 3572, 1020, 1412, 1297, 1296];

impl Error {
    pub(crate) fn server(errno: u16, sqlstate: [u8; 5], message: &str) -> Error {
        Error { kind: ErrorKind::Server, errno, sqlstate, message: message.into() }
    }

    pub(crate) fn lost(why: &str) -> Error {
        let message = format!("Lost connection to the node: {why}");
        Error { kind: ErrorKind::Connection, errno: 2013, sqlstate: *b"08S01", message: message.into() }
    }

    /// Nobody could be connected to, for a reason that the message shall say.
    pub fn not_connected(why: &impl fmt::Display) -> Error {
        let message = format!("Can't connect to the node: {why}");
        Error { kind: ErrorKind::Connection, errno: 2003, sqlstate: *b"08001", message: message.into() }
    }

    pub(crate) fn protocol(why: &str) -> Error {
        let message = format!("Malformed answer of the node: {why}");
        Error { kind: ErrorKind::Protocol, errno: 2027, sqlstate: *b"HY000", message: message.into() }
    }

    pub(crate) fn value(message: String) -> Error {
        Error { kind: ErrorKind::Value, errno: 2036, sqlstate: *b"HY000", message: message.into() }
    }

    /// What the node says of names that are too long, for one that does not even fit a request.
    pub(crate) fn name_too_long(name: &str) -> Error {
        let message = format!("Identifier name '{}...' is too long", &name[..name.floor_char_boundary(64)]);
        Error::server(1059, *b"42000", &message)
    }

    pub(crate) fn too_long() -> Error {
        let message = "Got a packet bigger than one request may be".into();
        Error { kind: ErrorKind::TooLong, errno: 2020, sqlstate: *b"HY000", message }
    }

    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// MySQL's error number; from 2000 on it comes from this side.
    pub fn errno(&self) -> u16 {
        self.errno
    }

    /// The SQLSTATE, five characters.
    pub fn sqlstate(&self) -> &str {
        std::str::from_utf8(&self.sqlstate).unwrap_or("HY000")
    }

    /// The text.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the same transaction, begun anew, may well succeed: a deadlock (1213), a lock that was not granted (1205, 3572), a row or
    /// table that has changed (1020, 1412), or a state of the node that passes (1296, 1297).
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
