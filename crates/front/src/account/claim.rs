//! What clients claim, where they are, and why they are refused.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use junctor_kernel::{PeerAddress, PeerCredentials};
use junctor_model::access::Authentication;
use junctor_model::access::name::ClientHost;
use junctor_model::error::Error;

/// Maximum length of a user name in bytes. A longer name matches no account.
pub const USER_NAME_BYTES_MAX: usize = 96;

/// Maximum length of a database name in bytes. No database has a longer name.
pub const DATABASE_NAME_BYTES_MAX: usize = 256;

/// The identity that a client claims, before it is verified.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim<'a> {
    pub user: &'a [u8],
    /// Whether the client has sent a password or its proof.
    pub has_password: bool,
    /// Empty for none.
    pub database: &'a [u8],
}

/// Why a client was refused. Every protocol encodes it in its own form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// MySQL error number.
    pub errno: u16,
    /// The SQLSTATE of the error.
    pub sqlstate: [u8; 5],
    /// Text for the client.
    pub message: String,
    /// The user whom the client claimed to be, for the audit log.
    pub user: Option<String>,
}

impl Refusal {
    /// The number of the error for what is no login.
    pub(crate) const BAD_HANDSHAKE: u16 = 1043;

    /// The number of the error for an unknown user or a wrong password.
    pub(crate) const ACCESS_DENIED: u16 = 1045;

    /// 1043: the bytes of a login are malformed, or request something that the server does not support.
    pub(crate) fn bad_handshake(message: impl Into<String>) -> Refusal {
        Refusal { errno: Refusal::BAD_HANDSHAKE, sqlstate: *b"08S01", message: message.into(), user: None }
    }

    /// 1040: the node has `max_connections` sessions, or the extra port its own number.
    pub(crate) fn too_many_connections() -> Refusal {
        Refusal { errno: 1040, sqlstate: *b"08004", message: "Too many connections".into(), user: None }
    }

    /// 1129: `max_connect_errors` broken logins came from the address.
    pub(crate) fn host_blocked(peer: Peer) -> Refusal {
        let message = format!(
            "Host '{peer}' is blocked because of many connection errors; unblock with 'mysqladmin flush-hosts'"
        );
        Refusal { errno: 1129, sqlstate: *b"HY000", message, user: None }
    }

    /// 1203: the user has `max_user_connections` sessions.
    pub(crate) fn too_many_user_connections(user: &str) -> Refusal {
        let message = format!("User {user} already has more than 'max_user_connections' active connections");
        Refusal { errno: 1203, sqlstate: *b"42000", message, user: Some(user.to_owned()) }
    }

    /// 1040: the address has `max_address_connections` connections.
    pub(crate) fn too_many_address_connections(peer: Peer, maximum: u64) -> Refusal {
        let message = format!("Too many connections from '{peer}': max_address_connections allows {maximum} at a time");
        Refusal { errno: 1040, sqlstate: *b"08004", message, user: None }
    }

    /// 3159: `require_secure_transport` is on.
    pub(crate) fn insecure_transport() -> Refusal {
        let message = "Connections using insecure transport are prohibited while --require_secure_transport=ON.";
        Refusal { errno: 3159, sqlstate: *b"HY000", message: message.into(), user: None }
    }

    /// An error of the server about a user as a refusal.
    pub(crate) fn of_error(error: &Error, user: &str) -> Refusal {
        let mut sqlstate = *b"HY000";
        sqlstate.copy_from_slice(error.code.sqlstate().as_bytes());
        let (errno, message) = (error.code.errno(), error.message.as_ref().into());
        Refusal { errno, sqlstate, message, user: Some(user.to_owned()) }
    }

    /// 1045: an unknown user, a wrong proof, a forbidden address or transport.
    pub(crate) fn access_denied(user: &str, peer: Peer, has_password: bool) -> Refusal {
        let using_password = if has_password { "YES" } else { "NO" };
        let message = format!("Access denied for user '{user}'@'{peer}' (using password: {using_password})");
        Refusal { errno: Refusal::ACCESS_DENIED, sqlstate: *b"28000", message, user: Some(user.to_owned()) }
    }

    /// 3168: the node recovers its data.
    pub(crate) fn recovering() -> Refusal {
        let message = "Server isn't available: it recovers its data. Try again later".into();
        Refusal { errno: 3168, sqlstate: *b"HY000", message, user: None }
    }
}

/// The client at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    address: IpAddr,
    way: Way,
}

/// How a client reaches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Network,
    UnixSocket(PeerCredentials),
    Memory,
    /// The node itself.
    Internal,
}

impl Peer {
    /// The node itself, which logs in without a password and counts nowhere.
    pub(crate) fn internal() -> Self {
        Self { address: IpAddr::V4(Ipv4Addr::LOCALHOST), way: Way::Internal }
    }

    /// Whether the client is the node itself.
    pub(crate) fn is_internal(self) -> bool {
        self.way == Way::Internal
    }

    /// A client at this address. An IPv4 address mapped to IPv6 is treated as the IPv4 address.
    pub fn new(address: IpAddr) -> Self {
        Self { address: address.to_canonical(), way: Way::Network }
    }

    /// Whether the connection proves that the client is the user of an account with `auth_socket`. Only a
    /// Unix socket tells who is at its other end.
    pub(crate) fn proves_user(self, authentication: &Authentication, user: &[u8]) -> bool {
        let name = self.credentials().and_then(|credentials| credentials.user_name);
        // An account may name a user of the machine other than its own.
        name.is_some_and(|name| {
            let name = name.as_str().as_bytes();
            !name.is_empty() && (name == user || name == authentication.stored)
        })
    }

    /// Where the client is, for the choice of its account.
    pub(crate) fn host(self) -> ClientHost {
        match self.way {
            Way::UnixSocket(_) => ClientHost::Socket,
            Way::Network | Way::Memory | Way::Internal => ClientHost::Address(self.address),
        }
    }

    /// Whether the client runs on this machine.
    pub fn is_loopback(self) -> bool {
        self.address.is_loopback()
    }

    /// The address in the network; `None` for a client over a Unix socket or in this process.
    pub fn network_address(self) -> Option<IpAddr> {
        (self.way == Way::Network).then_some(self.address)
    }

    /// Whether the client uses a Unix socket.
    pub fn is_unix_socket(self) -> bool {
        matches!(self.way, Way::UnixSocket(_))
    }

    /// The user and the process at the other end of a Unix socket, as the operating system names them.
    pub fn credentials(self) -> Option<PeerCredentials> {
        match self.way {
            Way::UnixSocket(credentials) => Some(credentials),
            Way::Network | Way::Memory | Way::Internal => None,
        }
    }

    /// Whether nobody but the two processes and the operating system can read the connection.
    pub fn is_private(self) -> bool {
        self.way != Way::Network
    }
}

impl From<&PeerAddress> for Peer {
    fn from(address: &PeerAddress) -> Peer {
        let way = match address {
            PeerAddress::Internet(_) => Way::Network,
            PeerAddress::Unix(credentials) => Way::UnixSocket(**credentials),
            PeerAddress::Memory => Way::Memory,
        };
        Peer { way, ..Peer::new(address.ip()) }
    }
}

/// The host part of an account name: `localhost` for this machine, otherwise the address.
impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_loopback() { formatter.write_str("localhost") } else { self.address.fmt(formatter) }
    }
}

/// A name in the form for error messages: valid UTF-8, truncated to `bytes_max` bytes.
pub(crate) fn shown_name(name: &[u8], bytes_max: usize) -> String {
    let mut text = String::from_utf8_lossy(name).into_owned();
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}
