//! Finds the end of an answer in a stream of bytes, without looking at its rows.

use super::wire::PacketReader;

/// The byte that tells what the packet is, and the longest length-encoded number.
const START_LENGTH: usize = 10;

/// Follows one answer of `COM_QUERY` or `COM_STMT_EXECUTE` at a time.
#[derive(Default)]
pub struct ReplyScanner {
    header: [u8; 4],
    header_length: usize,
    /// Bytes of the packet's payload that are still to come.
    remaining: usize,
    first_byte: Option<u8>,
    /// The first bytes of the first packet: an OK packet's number of changed rows, or an error's number.
    start: [u8; START_LENGTH],
    start_length: usize,
    phase: Phase,
    /// Rows of the answer being read.
    pub rows: u64,
    /// Whether the answer was an error.
    pub is_error: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Start,
    Columns,
    Rows,
    End,
}

impl ReplyScanner {
    /// Takes bytes as they came. True when the answer ended with them; what was counted stays until [`Self::restart`].
    pub fn feed(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() && self.phase != Phase::End {
            if self.header_length < 4 {
                self.header[self.header_length] = bytes[0];
                self.header_length += 1;
                bytes = &bytes[1..];
                if self.header_length == 4 {
                    let [low, middle, high, _] = self.header;
                    self.remaining = u32::from_le_bytes([low, middle, high, 0]) as usize;
                }
            } else {
                self.first_byte = self.first_byte.or(bytes.first().copied());
                let taken = self.remaining.min(bytes.len());
                if self.phase == Phase::Start && self.start_length < START_LENGTH {
                    let kept = taken.min(START_LENGTH - self.start_length);
                    self.start[self.start_length..][..kept].copy_from_slice(&bytes[..kept]);
                    self.start_length += kept;
                }
                self.remaining -= taken;
                bytes = &bytes[taken..];
            }
            if self.header_length == 4 && self.remaining == 0 {
                self.end_packet();
            }
        }
        self.phase == Phase::End
    }

    /// Gets ready for the next answer.
    pub fn restart(&mut self) {
        *self = ReplyScanner::default();
    }

    /// Rows changed by a statement that gives none; 0 for other answers.
    pub fn affected_rows(&self) -> u64 {
        match self.start[..self.start_length].split_first() {
            Some((0, rest)) => PacketReader(rest).encoded_number().unwrap_or(0),
            _ => 0,
        }
    }

    /// MySQL's number of the error; 0 for other answers.
    pub fn errno(&self) -> u16 {
        match (self.is_error, &self.start) {
            (true, [_, low, high, ..]) => u16::from_le_bytes([*low, *high]),
            _ => 0,
        }
    }

    fn end_packet(&mut self) {
        let length = u32::from_le_bytes([self.header[0], self.header[1], self.header[2], 0]);
        let first = self.first_byte.take();
        self.header_length = 0;
        let is_eof = first == Some(0xfe) && length < 9;
        self.phase = match (self.phase, first) {
            (Phase::Start, Some(0)) => Phase::End,
            (Phase::Start | Phase::Rows, Some(0xff)) => {
                self.is_error = true;
                Phase::End
            }
            (Phase::Start, _) => Phase::Columns,
            (Phase::Columns, _) if is_eof => Phase::Rows,
            (Phase::Rows, _) if is_eof => Phase::End,
            (Phase::Rows, _) => {
                self.rows += 1;
                Phase::Rows
            }
            (phase, _) => phase,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::wire::push_packet;

    fn answer(packets: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for packet in packets {
            push_packet(&mut bytes, 0, packet);
        }
        bytes
    }

    const EOF: &[u8] = &[0xfe, 0, 0, 2, 0];

    #[test]
    fn an_answer_ends_at_its_last_byte_however_it_is_cut() {
        let two_rows = answer(&[&[1], b"\x03def", EOF, b"\x01a", b"", EOF]);
        for cut in 1..two_rows.len() {
            let mut scanner = ReplyScanner::default();
            assert!(!scanner.feed(&two_rows[..cut]), "ended after {cut} bytes");
            assert!(scanner.feed(&two_rows[cut..]));
            assert_eq!((scanner.rows, scanner.is_error), (2, false));
        }
    }

    #[test]
    fn ok_and_error_are_answers_of_one_packet() {
        let mut scanner = ReplyScanner::default();
        assert!(scanner.feed(&answer(&[&[0, 0, 0, 2, 0, 0, 0]])));
        assert_eq!((scanner.affected_rows(), scanner.errno()), (0, 0));
        scanner.restart();
        assert!(scanner.feed(&answer(&[&[0, 0xfc, 1, 2, 0, 2, 0, 0, 0]])));
        assert_eq!((scanner.affected_rows(), scanner.errno()), (0x201, 0));
        scanner.restart();
        assert!(scanner.feed(&answer(&[&[0xff, 0xbd, 4]])));
        assert_eq!((scanner.is_error, scanner.affected_rows(), scanner.errno()), (true, 0, 1213));
    }
}
