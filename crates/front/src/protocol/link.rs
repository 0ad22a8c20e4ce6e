//! The trait by which each protocol divides a connection's bytes into messages and logs its client in.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use junctor_kernel::Buffer;
use junctor_kernel::transport::security::{Agreed, CertificateNames, ClientSecurity, Encryption};
use junctor_model::access::AccountName;
use junctor_model::id::ConnectionId;

use crate::account::{Accounts, Challenge, Peer, Refusal};

/// Properties of a new connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkOpening<'a> {
    pub connection: ConnectionId,
    pub peer: Peer,
    /// The challenge for the proof of the password. One connection uses it for all its logins.
    pub challenge: Challenge,
    pub server_version: &'a str,
    /// Maximum length of a command in bytes.
    pub command_bytes_max: usize,
    /// Whether the connection can continue with TLS.
    pub offers_tls: bool,
}

/// The resources of a link while it reads input.
#[derive(Debug)]
pub(crate) struct LinkContext<'a> {
    pub accounts: &'a Accounts,
    /// TLS and the key for passwords; `None` if the node has none.
    pub security: Option<&'a dyn ClientSecurity>,
    /// Whether every login needs a private connection.
    pub private_required: &'a AtomicBool,
    pub peer: &'a Peer,
    /// The connection's TLS.
    pub encryption: Option<&'a dyn Encryption>,
    /// The time in microseconds since 1970.
    pub now_us: u64,
    /// Empty at the call. Bytes appended here are sent to the client before the returned [`Input`] takes
    /// effect.
    pub out: &'a mut Vec<u8>,
}

impl LinkContext<'_> {
    /// Whether every login needs a private connection.
    pub fn is_private_required(&self) -> bool {
        self.private_required.load(Ordering::Relaxed)
    }

    /// Whether nobody between client and server can read the connection: it has TLS, or it is local to the
    /// machine by its nature.
    pub fn is_private(&self) -> bool {
        self.has_tls() || self.peer.is_private()
    }

    /// Whether the connection has TLS.
    pub fn has_tls(&self) -> bool {
        self.encryption.is_some()
    }

    /// The parameters of the connection's TLS; `None` without TLS.
    pub fn tls(&self) -> Option<Agreed> {
        self.encryption.and_then(|encryption| encryption.agreed())
    }

    /// The names in the client's certificate; `None` without one.
    pub fn certificate_names(&self) -> Option<CertificateNames> {
        self.encryption.and_then(|encryption| encryption.certificate_names())
    }
}

/// The message at the front of the received bytes.
#[derive(Debug)]
pub(crate) enum Input {
    /// The message is not complete. The connection keeps the bytes that were not consumed, and repeats the
    /// call when more bytes have arrived.
    Incomplete,
    /// A command for the session. The range of its payload refers to the bytes of the call.
    Command(Range<usize>),
    /// A command whose payload was assembled from several packets.
    AssembledCommand(Buffer),
    /// The link has processed the message itself, as it does with the steps of a login.
    Handled,
    /// The client's password is being checked. The connection calls [`ProtocolLink::continue_login`] until
    /// the outcome is another, and reads nothing meanwhile.
    Checking,
    /// The answer to the login is delayed by this number of milliseconds. Then the connection calls
    /// [`ProtocolLink::continue_login`]. It reads nothing meanwhile.
    Delayed(u64),
    /// The connection continues with TLS. The bytes after the message are the first of its handshake.
    StartTls,
    /// The client has proved its identity. The connection opens its session, or replaces the existing one. A
    /// protocol without a login message returns this when the first command arrives, and consumes nothing.
    LoggedIn(Box<LoggedIn>),
    /// The login is refused, and its error was appended. The connection must end.
    Refused(Box<Refusal>),
    /// The connection must end, because the client requested it or violated the protocol.
    Close,
}

/// A verified identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoggedIn {
    pub user: String,
    /// The session's default database. The session checks whether it exists.
    pub database: Option<String>,
    /// The account of the user.
    pub account: AccountName,
    /// Whether the session may only change its password.
    pub is_expired: bool,
    /// The capabilities that client and server agreed on. Only the protocol's own
    /// [`super::ProtocolSession::open`] interprets the bits.
    pub capabilities: u32,
    /// Number of the collation that the client requested, or of the default.
    pub character_set: u16,
}

/// Framing and login of one connection. The session executes one command at a time. The connection requests
/// the next input only after the previous command has been answered, so pipelined commands wait in the
/// connection's buffer.
pub(crate) trait ProtocolLink: Sized {
    /// Creates the state of a new connection. Appends the greeting if the protocol has one.
    fn open(opening: &LinkOpening<'_>, out: &mut Vec<u8>) -> Self;

    /// Appends the error for a connection that is refused before it gets a greeting.
    fn encode_refused_connection(refusal: &Refusal, out: &mut Vec<u8>);

    /// Whether the client is in the middle of a login, which may take at most `connect_timeout` seconds.
    fn awaits_login(&self) -> bool;

    /// Whether the link keeps the beginning of a message whose rest has not arrived.
    fn is_within_message(&self) -> bool {
        false
    }

    /// Reads the next message. Returns the number of bytes that it consumed from the front of `bytes`. Bytes
    /// of an incomplete message that it consumes are kept in the link.
    fn next_input(&mut self, bytes: &[u8], context: &mut LinkContext<'_>) -> (usize, Input);

    /// Takes the next step of a check, after [`Input::Checking`].
    fn continue_login(&mut self, _context: &mut LinkContext<'_>) -> Input {
        Input::Close
    }

    /// Notes that the next message is a part of a file, not a command. Called after the answer in which the
    /// session asks for it.
    fn await_file(&mut self) {}

    /// Completes a part of an answer before it is sent, with data that only the link has (MySQL's sequence
    /// numbers). With `is_unsolicited`, the packets answer no command.
    fn finish_answer(&mut self, packets: &mut Buffer, is_unsolicited: bool);
}
