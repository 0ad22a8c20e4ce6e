//! Hot path: at most 100 instructions for a frame, not counting the checksum and the copy of its body.
//!
//! Frames: how bytes between two nodes are divided and checked. The layout is in `docs/format.md`, "Frames
//! between nodes".
//!
//! The header has a checksum of its own, so that its length is checked before anybody waits for that many
//! bytes.

use std::fmt;

/// Size of a header in bytes.
pub const HEADER_BYTES: usize = 48;

/// Maximum size of a body in bytes. A longer one is refused before its bytes are kept.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// A reader keeps this much memory between two frames, in bytes.
const IDLE_BYTES_MAX: usize = 64 << 10;

/// The content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Records of signals. Numbered, acknowledged and sent again after a reset.
    Signals = 1,
    /// Sent when nothing else is: acknowledges, grants and shows that the sender lives. Its body lists the
    /// nodes that the sender hears: 32 bytes, one bit for each node. Not numbered.
    Heartbeat = 2,
    /// The beginning of a record that is too long for one frame and goes on in the next numbered frame.
    Part = 3,
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// The content.
    pub kind: FrameKind,
    /// The channel, from 0.
    pub channel: u8,
    /// Number of signals in the body.
    pub signals: u16,
    /// Membership epoch of the sender when it formed the frame.
    pub epoch: u32,
    /// Number of the frame in its channel, from 1; 0 for a heartbeat.
    pub sequence: u64,
    /// The sender has received all frames of the other direction up to this number.
    pub acknowledged: u64,
    /// Bytes of deferrable signals in the body; these spent credits.
    pub deferrable: u32,
    /// Bytes of deferrable signals that the receiver of this frame may send in all, counted from the
    /// beginning of the channel.
    pub granted: u64,
}

/// Why bytes are not a frame. The connection that carried them is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameFault {
    /// The header does not match its checksum.
    HeaderChecksum,
    /// The body does not match its checksum.
    BodyChecksum,
    /// An unknown kind.
    Kind(u8),
    /// A body longer than [`BODY_BYTES_MAX`].
    Length(u32),
}

impl fmt::Display for FrameFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HeaderChecksum => formatter.write_str("the header of a frame is damaged"),
            Self::BodyChecksum => formatter.write_str("the body of a frame is damaged"),
            Self::Kind(kind) => write!(formatter, "frames of kind {kind} are unknown"),
            Self::Length(length) => write!(formatter, "a frame of {length} bytes is too long"),
        }
    }
}

/// A whole frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The header.
    pub header: FrameHeader,
    /// The body; its checksum matches.
    pub body: &'a [u8],
}

impl FrameHeader {
    /// The header's bytes before a body with this checksum.
    pub(super) fn encode(&self, body_bytes: usize, body_checksum: u32) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut position = 0;
        let mut put = |part: &[u8]| {
            bytes[position..position + part.len()].copy_from_slice(part);
            position += part.len();
        };
        put(&(body_bytes as u32).to_le_bytes());
        put(&body_checksum.to_le_bytes());
        put(&self.sequence.to_le_bytes());
        put(&self.acknowledged.to_le_bytes());
        put(&self.granted.to_le_bytes());
        put(&self.epoch.to_le_bytes());
        put(&self.deferrable.to_le_bytes());
        put(&[self.kind as u8, self.channel]);
        put(&self.signals.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..HEADER_BYTES - 4]);
        bytes[HEADER_BYTES - 4..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header, the size of its body and the checksum of its body.
    fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<(Self, usize, u32), FrameFault> {
        if crc32c::crc32c(&bytes[..HEADER_BYTES - 4]) != word(bytes, HEADER_BYTES - 4) {
            return Err(FrameFault::HeaderChecksum);
        }
        let kind = match bytes[40] {
            1 => FrameKind::Signals,
            2 => FrameKind::Heartbeat,
            3 => FrameKind::Part,
            other => return Err(FrameFault::Kind(other)),
        };
        let body_bytes = word(bytes, 0);
        if body_bytes as usize > BODY_BYTES_MAX {
            return Err(FrameFault::Length(body_bytes));
        }
        let header = Self {
            kind,
            channel: bytes[41],
            signals: u16::from_le_bytes([bytes[42], bytes[43]]),
            epoch: word(bytes, 32),
            deferrable: word(bytes, 36),
            sequence: long(bytes, 8),
            acknowledged: long(bytes, 16),
            granted: long(bytes, 24),
        };
        Ok((header, body_bytes as usize, word(bytes, 4)))
    }

    /// Appends a whole frame.
    pub fn write(&self, body: &[u8], output: &mut Vec<u8>) {
        output.extend_from_slice(&self.encode(body.len(), crc32c::crc32c(body)));
        output.extend_from_slice(body);
    }
}

/// The little-endian word at an offset.
pub(super) fn word(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|index| bytes[offset + index]))
}

/// The little-endian long word at an offset.
pub(super) fn long(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| bytes[offset + index]))
}

/// Divides the bytes of one connection into frames. Keeps the beginning of a frame until its rest arrives; a
/// frame that arrives in one piece is not copied.
#[derive(Debug, Default)]
pub struct FrameReader {
    /// A frame that is not complete yet, or the frame that was returned last.
    partial: Vec<u8>,
    is_returned: bool,
}

impl FrameReader {
    /// The next frame, once all of its bytes have arrived. Takes the bytes it uses from `input`; `None` means
    /// that all are used. After a fault the connection cannot be read further.
    pub fn read<'f, 'i: 'f>(&'f mut self, input: &mut &'i [u8]) -> Result<Option<Frame<'f>>, FrameFault> {
        if self.is_returned {
            self.is_returned = false;
            self.partial.clear();
            self.partial.shrink_to(IDLE_BYTES_MAX);
        }
        if self.partial.is_empty() {
            if let Some(header) = input.first_chunk::<HEADER_BYTES>() {
                let (header, body_bytes, checksum) = FrameHeader::decode(header)?;
                if let Some((frame, rest)) = input.split_at_checked(HEADER_BYTES + body_bytes) {
                    *input = rest;
                    return checked(header, &frame[HEADER_BYTES..], checksum).map(Some);
                }
            }
            if input.is_empty() {
                return Ok(None);
            }
        }
        self.collect(HEADER_BYTES, input);
        let Some(header) = self.partial.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let (header, body_bytes, checksum) = FrameHeader::decode(header)?;
        self.collect(HEADER_BYTES + body_bytes, input);
        if self.partial.len() < HEADER_BYTES + body_bytes {
            return Ok(None);
        }
        self.is_returned = true;
        checked(header, &self.partial[HEADER_BYTES..], checksum).map(Some)
    }

    /// Moves bytes of the input to the partial frame until that has `length` bytes.
    fn collect(&mut self, length: usize, input: &mut &[u8]) {
        let wanted = length.saturating_sub(self.partial.len()).min(input.len());
        let (taken, rest) = input.split_at(wanted);
        self.partial.extend_from_slice(taken);
        *input = rest;
    }
}

fn checked(header: FrameHeader, body: &[u8], checksum: u32) -> Result<Frame<'_>, FrameFault> {
    if crc32c::crc32c(body) == checksum { Ok(Frame { header, body }) } else { Err(FrameFault::BodyChecksum) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn header(sequence: u64) -> FrameHeader {
        FrameHeader {
            kind: FrameKind::Signals,
            channel: 3,
            signals: 2,
            epoch: 7,
            sequence,
            acknowledged: 5,
            deferrable: 6,
            granted: 1 << 40,
        }
    }

    #[test]
    fn frames_arrive_whole_however_their_bytes_are_cut() {
        let mut random = Random::new(1);
        for _ in 0..300 {
            let bodies: Vec<Vec<u8>> = (0..random.below(6))
                .map(|_| {
                    let mut body = vec![0; random.below(300) as usize];
                    random.bytes(&mut body);
                    body
                })
                .collect();
            let mut bytes = Vec::new();
            for (sequence, body) in bodies.iter().enumerate() {
                header(sequence as u64).write(body, &mut bytes);
            }
            let mut reader = FrameReader::default();
            let (mut read, mut rest) = (Vec::new(), bytes.as_slice());
            while !rest.is_empty() {
                let (mut input, after) = rest.split_at(1 + random.below(rest.len() as u64) as usize);
                rest = after;
                while let Some(frame) = reader.read(&mut input).unwrap() {
                    assert_eq!(frame.header, header(read.len() as u64));
                    read.push(frame.body.to_vec());
                }
                assert!(input.is_empty());
            }
            assert_eq!(read, bodies);
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed_before_a_frame_is_returned() {
        let mut bytes = Vec::new();
        header(9).write(b"some signals", &mut bytes);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let fault = FrameReader::default().read(&mut damaged.as_slice()).unwrap_err();
            let expected = if bit < HEADER_BYTES * 8 { FrameFault::HeaderChecksum } else { FrameFault::BodyChecksum };
            assert_eq!(fault, expected, "bit {bit}");
        }
    }

    #[test]
    fn a_frame_that_claims_to_be_too_long_is_refused_by_its_header() {
        let bytes = header(1).encode(BODY_BYTES_MAX + 1, 0);
        let fault = FrameReader::default().read(&mut bytes.as_slice()).unwrap_err();
        assert_eq!(fault, FrameFault::Length(BODY_BYTES_MAX as u32 + 1));
    }

    #[test]
    fn the_layout_is_that_of_the_format_page() {
        let bytes = header(0x0102_0304_0506_0708).encode(0x11, 0x2222_3333);
        assert_eq!(&bytes[..8], &[0x11, 0, 0, 0, 0x33, 0x33, 0x22, 0x22]);
        assert_eq!(&bytes[8..16], &[8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(&bytes[16..32], &[5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(&bytes[32..44], &[7, 0, 0, 0, 6, 0, 0, 0, 1, 3, 2, 0]);
        assert_eq!(word(&bytes, 44), crc32c::crc32c(&bytes[..44]));
    }
}
