//! The other end of a connection.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where the client of a connection is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerAddress {
    /// A client over TCP.
    Internet(SocketAddr),
    /// A process of this machine over a Unix socket. Boxed, because it is rare and larger than an address.
    Unix(Box<PeerCredentials>),
    /// A client in this process.
    Memory,
}

/// What the operating system says about the process at the other end of a Unix socket, at the time when it
/// connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// Number of the user.
    pub user: u32,
    /// Number of the user's group.
    pub group: u32,
    /// Number of the process.
    pub process: u32,
    /// Name of the user in `/etc/passwd`; `None` for a user whom the file does not name.
    pub user_name: Option<UserName>,
}

/// The name of a user of the operating system.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct UserName {
    bytes: [u8; UserName::BYTES_MAX],
    length: u8,
}

impl UserName {
    /// Maximum length in bytes, which is that of Linux.
    pub const BYTES_MAX: usize = 32;

    /// A name; `None` if it is longer than Linux allows.
    pub fn new(name: &str) -> Option<UserName> {
        let mut bytes = [0; UserName::BYTES_MAX];
        bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        Some(UserName { bytes, length: name.len() as u8 })
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or("")
    }
}

impl fmt::Debug for UserName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

impl PeerAddress {
    /// The address of the client; that of the loopback for a client of this machine.
    pub fn ip(&self) -> IpAddr {
        match self {
            PeerAddress::Internet(address) => address.ip(),
            PeerAddress::Unix(_) | PeerAddress::Memory => IpAddr::V4(Ipv4Addr::LOCALHOST),
        }
    }
}

impl From<SocketAddr> for PeerAddress {
    fn from(address: SocketAddr) -> PeerAddress {
        PeerAddress::Internet(address)
    }
}
