//! The socket's half of a protocol.

use std::ops::Range;

use junctor_kernel::Buffer;
use junctor_model::id::ConnectionId;

use crate::account::{Accounts, Challenge, Peer};

/// The facts about a new connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkOpening<'a> {
    pub connection: ConnectionId,
    pub peer: Peer,
    /// For the proof of the password. One connection uses it for all its logins.
    pub challenge: Challenge,
    pub server_version: &'a str,
    /// Maximum length of a command in bytes.
    pub command_bytes_max: usize,
}

/// What a link may use while it reads input.
#[derive(Debug)]
pub(crate) struct LinkContext<'a> {
    pub accounts: &'a Accounts,
    /// Empty at the call. Bytes appended here go to the client before the returned [`Input`] takes effect.
    pub out: &'a mut Vec<u8>,
}

/// What a link found at the front of the received bytes.
#[derive(Debug)]
pub(crate) enum Input {
    /// No complete message. The connection keeps the bytes that were not consumed and calls again with more
    /// behind them.
    Incomplete,
    /// A command for the session. Its payload lies at this range of the bytes of the call.
    Command(Range<usize>),
    /// A command whose payload was assembled from several packets.
    AssembledCommand(Buffer),
    /// The message was handled here, as a step of a login is.
    Handled,
    /// The client proved its identity: open its session, or replace the one it has. A protocol without a
    /// login message says so, consuming nothing, when the first command arrives.
    LoggedIn(Box<LoggedIn>),
    /// The connection ends: the client asked for it, was refused, or broke the protocol.
    Close,
}

/// A verified identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoggedIn {
    pub user: String,
    /// The session's first default database. Whether it exists is for the session to find out.
    pub database: Option<String>,
    /// What client and server agreed on, in bits that only the protocol's own
    /// [`super::ProtocolSession::open`] reads.
    pub capabilities: u32,
    /// Number of the collation that the client asked for, or of the default.
    pub character_set: u16,
}

/// Framing and login of one connection. One command is with the session at a time: the connection asks for
/// the next input only when the command before it is answered, so pipelined commands wait in the connection's
/// buffer.
pub(crate) trait ProtocolLink: Sized {
    /// The state of a new connection. Appends the greeting, if the protocol has one.
    fn open(opening: &LinkOpening<'_>, out: &mut Vec<u8>) -> Self;

    /// Appends error 1040 for a connection that will not be opened.
    fn emit_too_many_connections(out: &mut Vec<u8>);

    /// Whether the client is in the middle of a login, which may take only `connect_timeout` seconds.
    fn awaits_login(&self) -> bool;

    /// Reads the next message. Returns how many bytes from the front of `bytes` it consumed; bytes that it
    /// consumes without a complete message are kept in the link.
    fn next_input(&mut self, bytes: &[u8], context: &mut LinkContext<'_>) -> (usize, Input);

    /// Completes a part of an answer on its way to the socket, where only the link knows what went before
    /// (MySQL's sequence numbers). With `is_unsolicited` it answers no command.
    fn finish_answer(&mut self, packets: &mut [u8], is_unsolicited: bool);
}
