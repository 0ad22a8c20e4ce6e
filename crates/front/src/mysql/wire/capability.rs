//! Capability bits: the protocol features that server and client support.

use std::ops::BitAnd;

use super::bit_set::bit_set;

/// A set of capability bits. A connection uses the intersection of the server's and the client's sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(u32);

impl Capabilities {
    /// No capability.
    pub const NONE: Self = Self(0);
    /// Passwords of the 4.1 method. A MariaDB client takes a server without this bit for a MariaDB server.
    pub const LONG_PASSWORD: Self = Self(1);
    /// UPDATE reports the number of matched rows, not of changed rows.
    pub const FOUND_ROWS: Self = Self(1 << 1);
    /// Column flags have 16 bits.
    pub const LONG_FLAG: Self = Self(1 << 2);
    /// The handshake response names a database.
    pub const CONNECT_WITH_DB: Self = Self(1 << 3);
    /// The connection continues in frames that zlib compresses.
    pub const COMPRESS: Self = Self(1 << 5);
    /// The client can send files for LOAD DATA LOCAL.
    pub const LOCAL_FILES: Self = Self(1 << 7);
    /// The SQL parser ignores blanks before an opening parenthesis.
    pub const IGNORE_SPACE: Self = Self(1 << 8);
    /// The protocol of version 4.1 and later.
    pub const PROTOCOL_41: Self = Self(1 << 9);
    /// The session times out after `interactive_timeout`, not `wait_timeout`.
    pub const INTERACTIVE: Self = Self(1 << 10);
    /// The connection continues with TLS.
    pub const SSL: Self = Self(1 << 11);
    /// OK packets have status flags, which report whether a transaction is open.
    pub const TRANSACTIONS: Self = Self(1 << 13);
    /// Authentication by a 20-byte challenge.
    pub const SECURE_CONNECTION: Self = Self(1 << 15);
    /// Several statements in one query.
    pub const MULTI_STATEMENTS: Self = Self(1 << 16);
    /// Several results for one query.
    pub const MULTI_RESULTS: Self = Self(1 << 17);
    /// A prepared statement may have several results.
    pub const PS_MULTI_RESULTS: Self = Self(1 << 18);
    /// Authentication methods have names and can be switched.
    pub const PLUGIN_AUTH: Self = Self(1 << 19);
    /// The handshake response carries connection attributes.
    pub const CONNECT_ATTRS: Self = Self(1 << 20);
    /// The authentication response has a length-encoded length.
    pub const PLUGIN_AUTH_LENENC: Self = Self(1 << 21);
    /// The client can change an expired password.
    pub const EXPIRED_PASSWORDS: Self = Self(1 << 22);
    /// OK packets may report changes of the session's state.
    pub const SESSION_TRACK: Self = Self(1 << 23);
    /// An OK packet with header 0xFE ends a result, instead of an EOF packet.
    pub const DEPRECATE_EOF: Self = Self(1 << 24);
    /// The connection continues in frames that zstd compresses.
    pub const ZSTD_COMPRESSION: Self = Self(1 << 26);
    /// Queries and executions carry named attributes.
    pub const QUERY_ATTRIBUTES: Self = Self(1 << 27);

    /// The capabilities of this server. SSL is added where the server has TLS.
    pub const SERVER: Self = Self(
        Self::LONG_PASSWORD.0
            | Self::FOUND_ROWS.0
            | Self::LONG_FLAG.0
            | Self::CONNECT_WITH_DB.0
            | Self::COMPRESS.0
            | Self::LOCAL_FILES.0
            | Self::IGNORE_SPACE.0
            | Self::PROTOCOL_41.0
            | Self::INTERACTIVE.0
            | Self::TRANSACTIONS.0
            | Self::SECURE_CONNECTION.0
            | Self::MULTI_STATEMENTS.0
            | Self::MULTI_RESULTS.0
            | Self::PS_MULTI_RESULTS.0
            | Self::PLUGIN_AUTH.0
            | Self::CONNECT_ATTRS.0
            | Self::PLUGIN_AUTH_LENENC.0
            | Self::EXPIRED_PASSWORDS.0
            | Self::SESSION_TRACK.0
            | Self::DEPRECATE_EOF.0
            | Self::ZSTD_COMPRESSION.0
            | Self::QUERY_ATTRIBUTES.0,
    );

    /// This set without the capabilities of `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

bit_set!(Capabilities, u32);

impl BitAnd for Capabilities {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}
