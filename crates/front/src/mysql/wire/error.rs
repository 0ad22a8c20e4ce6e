//! Protocol violations and their MySQL error numbers. All but `WrongArguments` end the connection.

use std::fmt;

/// Why a client's bytes were refused. The server replies with [`ProtocolError::errno`] and, except after
/// `WrongArguments`, closes the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolError {
    /// A packet does not have the next sequence number: bytes were lost, or client and server disagree on the
    /// state.
    PacketsOutOfOrder {
        /// The sequence number that was expected.
        expected: u8,
        /// The sequence number that arrived.
        received: u8,
    },
    /// A payload, assembled from its packets, exceeds `max_allowed_packet` bytes.
    PacketTooLarge,
    /// A field lies outside its packet or holds a value that the protocol does not define.
    Malformed {
        /// The field that could not be read.
        field: &'static str,
    },
    /// A parameter of COM_STMT_EXECUTE is infinite or not a number.
    WrongArguments,
}

impl ProtocolError {
    /// The MySQL error number.
    pub const fn errno(self) -> u16 {
        match self {
            Self::PacketsOutOfOrder { .. } => 1156,
            Self::PacketTooLarge => 1153,
            Self::Malformed { .. } => 1835,
            Self::WrongArguments => 1210,
        }
    }

    /// The SQLSTATE of [`ProtocolError::errno`].
    pub const fn sqlstate(self) -> [u8; 5] {
        match self {
            Self::PacketsOutOfOrder { .. } | Self::PacketTooLarge => *b"08S01",
            Self::Malformed { .. } | Self::WrongArguments => *b"HY000",
        }
    }

    /// The text for the client. [`fmt::Display`] adds the field at fault, for logs.
    pub const fn message(self) -> &'static str {
        match self {
            Self::PacketsOutOfOrder { .. } => "Got packets out of order",
            Self::PacketTooLarge => "Got a packet bigger than 'max_allowed_packet' bytes",
            Self::Malformed { .. } => "Malformed communication packet.",
            Self::WrongArguments => "Incorrect arguments to mysqld_stmt_execute",
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PacketsOutOfOrder { expected, received } => {
                write!(formatter, "{}: expected sequence {expected}, received {received}", self.message())
            }
            Self::PacketTooLarge | Self::WrongArguments => formatter.write_str(self.message()),
            Self::Malformed { field } => write!(formatter, "{} Field: {field}.", self.message()),
        }
    }
}

impl std::error::Error for ProtocolError {}
