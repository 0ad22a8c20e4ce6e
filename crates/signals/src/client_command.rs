//! Commands of clients: between recv, which has the sockets and speaks the framing, and sql, which has the sessions.
//! One command of a connection is under way at a time; a long answer comes in parts, the next part only when asked for.

use junctor_kernel::Address;
use junctor_kernel::{Buffer, SocketId};
use junctor_model::id::ConnectionId;

/// A connection has logged in: make its session. Answered by a `CommandReply` that says OK or why not.
#[derive(Debug)]
pub struct OpenSession {
    /// The connection.
    pub connection: ConnectionId,
    /// The recv block.
    pub reply_to: Address,
    /// The connection's socket, which answers name.
    pub socket: SocketId,
    /// Whether the session exists already and is begun anew (COM_CHANGE_USER).
    pub reset: bool,
    /// Who it is.
    pub login: Box<Login>,
}

/// What a login settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The user name.
    pub user: Box<str>,
    /// The client's address, as text; `localhost` for the loopback.
    pub host: Box<str>,
    /// The database to begin with.
    pub database: Option<Box<str>>,
    /// What client and server agreed on, in bits that only the protocol knows.
    pub capabilities: u32,
    /// Number of the client's collation.
    pub character_set: u16,
    /// The client's protocol, as its number in `front`'s table of protocols.
    pub protocol: u16,
}

/// One command.
#[derive(Debug)]
pub struct ExecuteCommand {
    /// The connection.
    pub connection: ConnectionId,
    /// Holds the command's payload.
    pub bytes: Buffer,
    /// Where in `bytes` the payload begins.
    pub start: u32,
    /// Where it ends.
    pub end: u32,
}

/// The client took the last part; send the next one.
#[derive(Debug)]
pub struct ContinueCommand {
    /// The connection.
    pub connection: ConnectionId,
}

/// The connection is gone: roll back and forget.
#[derive(Debug)]
pub struct CloseSession {
    /// The connection.
    pub connection: ConnectionId,
}

/// What follows a part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterReply {
    /// The answer is complete: take the next command.
    NextCommand,
    /// There is more: ask for it when the output has room.
    MoreParts,
    /// The answer is complete and the connection is to be closed.
    Close,
}

/// Packets of an answer, whole, with sequence number 0; recv numbers them.
#[derive(Debug)]
pub struct CommandReply {
    /// The connection.
    pub connection: ConnectionId,
    /// Its socket, from `OpenSession`.
    pub socket: SocketId,
    /// Packets.
    pub packets: Buffer,
    /// What follows.
    pub after: AfterReply,
}
