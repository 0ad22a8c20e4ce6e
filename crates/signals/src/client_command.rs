//! Commands of clients. The recv block, which owns the sockets and knows the framing, passes them to the sql
//! block, which owns the sessions. A connection has one command under way at a time. A long answer is sent in
//! parts, each on request.

use junctor_kernel::Address;
use junctor_kernel::transport::security::Agreed;
use junctor_kernel::{Buffer, SocketId};
use junctor_model::access::AccountName;
use junctor_model::id::ConnectionId;

/// Opens a session for a connection that has logged in. The answer is a `CommandReply` with OK or an error.
#[derive(Debug)]
pub struct OpenSession {
    /// Identifies the connection within the node.
    pub connection: ConnectionId,
    /// The recv block of the connection.
    pub reply_to: Address,
    /// The connection's socket, returned in its answers.
    pub socket: SocketId,
    /// Whether the session exists and is reset (COM_CHANGE_USER).
    pub reset: bool,
    /// The authenticated client.
    pub login: Box<Login>,
}

/// Result of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// User name.
    pub user: Box<str>,
    /// The client's address, as text; `localhost` for the loopback.
    pub host: Box<str>,
    /// The account that the client has proven.
    pub account: AccountName,
    /// Whether the session may only change its password.
    pub is_expired: bool,
    /// Initial database.
    pub database: Option<Box<str>>,
    /// Capability bits that client and server agreed on; only the protocol knows their meaning.
    pub capabilities: u32,
    /// Number of the client's collation.
    pub character_set: u16,
    /// The client's protocol, as its number in `front`'s table of protocols.
    pub protocol: u16,
    /// The parameters of the connection's TLS; `None` without TLS.
    pub tls: Option<Agreed>,
    /// Whether the connection came through the extra port, so that its commands pass the thread pool.
    pub is_extra: bool,
}

/// Executes one command.
#[derive(Debug)]
pub struct ExecuteCommand {
    /// The session's connection.
    pub connection: ConnectionId,
    /// Contains the command's payload.
    pub bytes: Buffer,
    /// Start of the payload in `bytes`.
    pub start: u32,
    /// End of the payload in `bytes`.
    pub end: u32,
}

/// Bytes of the file that a client sends for LOAD DATA LOCAL. Empty bytes are the end of the file.
#[derive(Debug)]
pub struct ReceiveFile {
    /// The session's connection.
    pub connection: ConnectionId,
    /// Contains the bytes of the file.
    pub bytes: Buffer,
    /// Start of the file's bytes in `bytes`.
    pub start: u32,
    /// End of the file's bytes in `bytes`.
    pub end: u32,
}

/// The client has sent a part of a command, or of a part of a file, and owes the rest.
#[derive(Debug)]
pub struct NoteHalfCommand {
    /// The session's connection.
    pub connection: ConnectionId,
}

/// Requests the next part of an answer, once the client took the last one.
#[derive(Debug)]
pub struct ContinueCommand {
    /// The session's connection.
    pub connection: ConnectionId,
}

/// Sent by a session to itself when another step of its statement is due. Other work of the thread runs
/// first.
#[derive(Debug)]
pub struct ContinueStatement {
    /// The session's connection.
    pub connection: ConnectionId,
    /// Counts the steps that the session has requested. A signal of a statement that was killed thus differs
    /// from those of the next statement.
    pub step: u64,
}

/// Closes the session of a lost connection: rolls back and forgets it.
#[derive(Debug)]
pub struct CloseSession {
    /// The session's connection.
    pub connection: ConnectionId,
}

/// The continuation after a part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterReply {
    /// The answer is complete; take the next command.
    NextCommand,
    /// More parts follow; request the next one once the client has taken enough output.
    MoreParts,
    /// The session needs the next part of the file that the client sends.
    AwaitInput,
    /// The answer is complete; close the connection.
    Close,
}

/// Whole packets of an answer with sequence number 0; recv numbers them.
#[derive(Debug)]
pub struct CommandReply {
    /// The session's connection.
    pub connection: ConnectionId,
    /// Copied from `OpenSession`.
    pub socket: SocketId,
    /// May be empty.
    pub packets: Buffer,
    /// The connection's next action after these packets.
    pub after: AfterReply,
}
