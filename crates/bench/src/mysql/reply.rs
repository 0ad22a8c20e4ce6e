//! Finds the end of a reply in a byte stream without decoding its rows.

use junctor_front::mysql::wire::reply::{EOF_HEADER, ERROR_HEADER, ErrorReply, OK_HEADER, OkReply};
use junctor_front::mysql::wire::{PacketReader, ProtocolError};

/// Maximum payload that a server may send, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 30;

/// An EOF packet is shorter than this. A row can begin with the same byte, but is then at least this long.
const EOF_BYTES_MAX: usize = 9;

/// Whether a payload is the EOF packet that ends column definitions or rows.
pub fn is_eof(payload: &[u8]) -> bool {
    payload.first() == Some(&EOF_HEADER) && payload.len() < EOF_BYTES_MAX
}

/// Whether a payload is the reply to a statement without rows.
pub fn is_ok(payload: &[u8]) -> bool {
    payload.first() == Some(&OK_HEADER)
}

/// Whether a payload is an error packet.
pub fn is_error(payload: &[u8]) -> bool {
    payload.first() == Some(&ERROR_HEADER)
}

/// Follows one reply at a time, to a query or to the execution of a prepared statement.
pub struct ReplyScanner {
    packets: PacketReader,
    phase: Phase,
    /// Number of rows of the reply so far.
    pub rows: u64,
    /// Number of rows that the statement changed; 0 if it returns rows.
    pub affected_rows: u64,
    /// MySQL's error number; 0 if the reply is not an error.
    pub errno: u16,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Start,
    Columns,
    Rows,
    End,
}

impl Default for ReplyScanner {
    fn default() -> ReplyScanner {
        let packets = PacketReader::new(1, PAYLOAD_BYTES_MAX);
        ReplyScanner { packets, phase: Phase::Start, rows: 0, affected_rows: 0, errno: 0 }
    }
}

impl ReplyScanner {
    /// Reads the next received bytes. Returns true when the reply ends with these bytes. Its counts stay
    /// readable until [`Self::restart`].
    ///
    /// # Errors
    /// The bytes do not follow the protocol.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<bool, ProtocolError> {
        while self.phase != Phase::End {
            let Some(packet) = self.packets.next_packet(&mut bytes)? else { break };
            let next_sequence = packet.reply_sequence();
            let payload = packet.payload;
            self.phase = match self.phase {
                Phase::Start | Phase::Rows if is_error(payload) => {
                    self.errno = ErrorReply::parse(payload)?.errno;
                    Phase::End
                }
                Phase::Start if is_ok(payload) => {
                    self.affected_rows = OkReply::parse(payload)?.affected_rows;
                    Phase::End
                }
                Phase::Start => Phase::Columns,
                Phase::Columns if is_eof(payload) => Phase::Rows,
                Phase::Rows if is_eof(payload) => Phase::End,
                Phase::Rows => {
                    self.rows += 1;
                    Phase::Rows
                }
                phase => phase,
            };
            self.packets.expect_sequence(next_sequence);
        }
        Ok(self.phase == Phase::End)
    }

    /// Prepares for the next reply.
    pub fn restart(&mut self) {
        *self = ReplyScanner::default();
    }
}

#[cfg(test)]
mod tests {
    use junctor_front::mysql::wire::PacketWriter;

    use super::*;

    fn reply(packets: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = PacketWriter::new(&mut bytes, 1);
        for packet in packets {
            writer.packet(|out| out.extend_from_slice(packet));
        }
        bytes
    }

    const EOF: &[u8] = &[0xfe, 0, 0, 2, 0];

    #[test]
    fn a_reply_ends_at_its_last_byte_however_it_is_split() {
        let two_rows = reply(&[&[1], b"\x03def", EOF, b"\x01a", b"\xfe........", EOF]);
        for cut in 1..two_rows.len() {
            let mut scanner = ReplyScanner::default();
            assert_eq!(scanner.feed(&two_rows[..cut]), Ok(false), "ended after {cut} bytes");
            assert_eq!(scanner.feed(&two_rows[cut..]), Ok(true));
            assert_eq!((scanner.rows, scanner.errno), (2, 0));
        }
    }

    #[test]
    fn ok_and_error_are_replies_of_one_packet() {
        let mut scanner = ReplyScanner::default();
        assert_eq!(scanner.feed(&reply(&[&[0, 0, 0, 2, 0, 0, 0]])), Ok(true));
        assert_eq!((scanner.affected_rows, scanner.errno), (0, 0));
        scanner.restart();
        assert_eq!(scanner.feed(&reply(&[&[0, 0xfc, 1, 2, 0, 2, 0, 0, 0]])), Ok(true));
        assert_eq!((scanner.affected_rows, scanner.errno), (0x201, 0));
        scanner.restart();
        assert_eq!(scanner.feed(&reply(&[&[0xff, 0xbd, 4]])), Ok(true));
        assert_eq!((scanner.affected_rows, scanner.errno), (0, 1213));
    }
}
