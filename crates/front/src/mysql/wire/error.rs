//! What is wrong with bytes of a client, as MySQL error numbers. Every one of these ends the connection that sent them.

use std::fmt;

/// Why bytes of a client were refused. The connection that sent them is answered with [`ProtocolError::errno`] and
/// closed; no other connection notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolError {
    /// A packet did not carry the next sequence number: bytes were lost or the client's state is not ours.
    PacketsOutOfOrder {
        /// The sequence number that had to come.
        expected: u8,
        /// The sequence number that came.
        received: u8,
    },
    /// A payload, joined from its packets, is longer than `max_allowed_packet` bytes.
    PacketTooLarge,
    /// A field lies outside its packet or holds a value that the protocol does not define.
    Malformed {
        /// The field that could not be read.
        field: &'static str,
    },
}

impl ProtocolError {
    /// The MySQL error number.
    pub const fn errno(self) -> u16 {
        match self {
            Self::PacketsOutOfOrder { .. } => 1156,
            Self::PacketTooLarge => 1153,
            Self::Malformed { .. } => 1835,
        }
    }

    /// The SQLSTATE that goes with [`ProtocolError::errno`].
    pub const fn sqlstate(self) -> [u8; 5] {
        match self {
            Self::PacketsOutOfOrder { .. } | Self::PacketTooLarge => *b"08S01",
            Self::Malformed { .. } => *b"HY000",
        }
    }

    /// The text for the client; the field at fault is in [`fmt::Display`], for logs.
    pub const fn message(self) -> &'static str {
        match self {
            Self::PacketsOutOfOrder { .. } => "Got packets out of order",
            Self::PacketTooLarge => "Got a packet bigger than 'max_allowed_packet' bytes",
            Self::Malformed { .. } => "Malformed communication packet.",
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PacketsOutOfOrder { expected, received } => {
                write!(formatter, "{}: expected sequence {expected}, received {received}", self.message())
            }
            Self::PacketTooLarge => formatter.write_str(self.message()),
            Self::Malformed { field } => write!(formatter, "{} Field: {field}.", self.message()),
        }
    }
}

impl std::error::Error for ProtocolError {}
