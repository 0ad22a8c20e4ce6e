//! Hot path: at most 40 instructions per received whole packet, 20 per sent packet; no copy, no allocation,
//! no formatting.
//!
//! Packets: each has a 3-byte length, a sequence number and at most 16 MiB - 1 bytes of payload. A longer
//! payload is split into full packets and a shorter last packet, which may be empty.

use junctor_kernel::require;
use junctor_model::row_encoding::{PACKET_HEADER_BYTES, PACKET_PAYLOAD_MAX};

use super::error::ProtocolError;

/// Bytes before the payload of every packet: length (3) and sequence number (1).
pub const HEADER_BYTES: usize = PACKET_HEADER_BYTES;

/// Maximum payload of one packet in bytes. A packet of exactly this size continues in the next one.
pub const PACKET_PAYLOAD_BYTES_MAX: usize = PACKET_PAYLOAD_MAX;

/// Maximum payload in bytes before a client is authenticated. It bounds the memory that a stranger can claim.
pub const HANDSHAKE_PAYLOAD_BYTES_MAX: usize = 64 * 1024;

/// A whole payload: a command, or a step of the login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The bytes, joined if they arrived in several packets.
    pub payload: &'a [u8],
    /// Sequence number of the last packet of the payload.
    pub sequence: u8,
    /// Whether the payload was assembled in the reader's buffer, because it arrived in several packets or
    /// pieces. Otherwise it lies in the input.
    pub is_assembled: bool,
}

impl Packet<'_> {
    /// Sequence number of the first packet of the reply.
    #[inline]
    pub const fn reply_sequence(&self) -> u8 {
        self.sequence.wrapping_add(1)
    }
}

/// Finds payloads in received bytes. If a packet lies completely in one received slice, its payload is
/// returned without a copy. The bytes of an incomplete packet are kept in a buffer that exists only until the
/// packet is complete, so an idle connection holds no buffer.
///
/// The buffer grows with the bytes that arrive, never with the length that a header claims.
#[derive(Debug)]
pub struct PacketReader {
    assembled: Vec<u8>,
    stage: Stage,
    payload_bytes_max: usize,
    header: [u8; HEADER_BYTES],
    header_bytes: u8,
    first_sequence: u8,
    next_sequence: u8,
    checks_sequence: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Between payloads; no bytes are kept.
    Idle,
    /// Inside a header, or before the header of a continuation packet.
    Header,
    /// Inside a packet that lacks `missing_bytes`. `last` tells whether the packet ends its payload.
    Body { missing_bytes: usize, last: bool },
    /// The payload in `assembled` was returned; the next call drops it.
    Delivered,
    /// The reader has failed, so the remaining bytes have no defined meaning.
    Failed(ProtocolError),
}

impl PacketReader {
    /// A reader of payloads with at most `payload_bytes_max` bytes. Each starts with the sequence number
    /// `first_sequence`: 0 for commands, 1 for the reply to the greeting.
    pub const fn new(first_sequence: u8, payload_bytes_max: usize) -> Self {
        Self {
            assembled: Vec::new(),
            stage: Stage::Idle,
            payload_bytes_max,
            header: [0; HEADER_BYTES],
            header_bytes: 0,
            first_sequence,
            next_sequence: first_sequence,
            checks_sequence: true,
        }
    }

    /// Sets the sequence number with which all further payloads start. Call it between payloads.
    pub fn expect_sequence(&mut self, first_sequence: u8) {
        self.first_sequence = first_sequence;
    }

    /// Accepts every sequence number, as MySQL does inside compressed frames, where clients differ.
    pub fn ignore_sequence(&mut self) {
        self.checks_sequence = false;
    }

    /// Sets the maximum payload in bytes, from the next packet on.
    pub fn set_payload_bytes_max(&mut self, payload_bytes_max: usize) {
        self.payload_bytes_max = payload_bytes_max;
    }

    /// Bytes of memory used for an incomplete payload.
    pub fn buffered_bytes(&self) -> usize {
        self.assembled.capacity()
    }

    /// Returns the assembled payload of the last call by value, which saves a copy.
    pub fn take_assembled(&mut self) -> Vec<u8> {
        require!(self.stage == Stage::Delivered, "an assembled payload is taken once, after it was returned");
        std::mem::take(&mut self.assembled)
    }

    /// Whether the reader is between payloads.
    pub fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle | Stage::Delivered)
    }

    /// Sequence number for the error packet after a failure: one more than the last number that arrived.
    pub const fn failure_sequence(&self) -> u8 {
        self.header[3].wrapping_add(1)
    }

    /// Reads the next payload from the front of `input`. Returns `None` when `input` is used up and the next
    /// payload is incomplete. Call it until it returns `None`.
    ///
    /// # Errors
    /// [`ProtocolError::PacketsOutOfOrder`] and [`ProtocolError::PacketTooLarge`]. After the first error,
    /// every call returns that error again and consumes nothing.
    #[inline]
    pub fn next_packet<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Option<Packet<'s>>, ProtocolError> {
        if matches!(self.stage, Stage::Idle)
            && let Some((header, rest)) = input.split_first_chunk::<HEADER_BYTES>()
        {
            let length = payload_length(header);
            if header[3] == self.first_sequence
                && length < PACKET_PAYLOAD_BYTES_MAX
                && length <= self.payload_bytes_max
                && length <= rest.len()
            {
                let (payload, rest) = rest.split_at(length);
                *input = rest;
                return Ok(Some(Packet { payload, sequence: header[3], is_assembled: false }));
            }
        }
        self.next_packet_in_parts(input)
    }

    #[inline(never)]
    fn next_packet_in_parts<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Packet<'s>>, ProtocolError> {
        loop {
            match self.stage {
                Stage::Failed(error) => return Err(error),
                Stage::Delivered => {
                    self.assembled = Vec::new();
                    self.stage = Stage::Idle;
                }
                Stage::Idle => {
                    if input.is_empty() {
                        return Ok(None);
                    }
                    self.next_sequence = self.first_sequence;
                    self.stage = Stage::Header;
                }
                Stage::Header => {
                    if !self.take_header(input) {
                        return Ok(None);
                    }
                    self.stage = self.stage_after_header();
                }
                Stage::Body { missing_bytes, last } => {
                    if last && self.assembled.is_empty() && missing_bytes <= input.len() {
                        let (payload, rest) = input.split_at(missing_bytes);
                        *input = rest;
                        self.stage = Stage::Idle;
                        return Ok(Some(Packet { payload, sequence: self.header[3], is_assembled: false }));
                    }
                    let missing_bytes = missing_bytes - self.take_body(input, missing_bytes);
                    if missing_bytes > 0 {
                        self.stage = Stage::Body { missing_bytes, last };
                        return Ok(None);
                    }
                    if last {
                        self.stage = Stage::Delivered;
                        return Ok(Some(Packet {
                            payload: &self.assembled,
                            sequence: self.header[3],
                            is_assembled: true,
                        }));
                    }
                    self.stage = Stage::Header;
                }
            }
        }
    }

    /// Reads header bytes. Returns true when the header is complete.
    fn take_header(&mut self, input: &mut &[u8]) -> bool {
        let received = usize::from(self.header_bytes);
        let (taken, rest) = input.split_at(input.len().min(HEADER_BYTES - received));
        self.header[received..received + taken.len()].copy_from_slice(taken);
        *input = rest;
        let received = received + taken.len();
        self.header_bytes = if received == HEADER_BYTES { 0 } else { received as u8 };
        received == HEADER_BYTES
    }

    fn stage_after_header(&mut self) -> Stage {
        let (length, received) = (payload_length(&self.header), self.header[3]);
        if received != self.next_sequence && self.checks_sequence {
            self.assembled = Vec::new();
            return Stage::Failed(ProtocolError::PacketsOutOfOrder { expected: self.next_sequence, received });
        }
        if length > self.payload_bytes_max.saturating_sub(self.assembled.len()) {
            self.assembled = Vec::new();
            return Stage::Failed(ProtocolError::PacketTooLarge);
        }
        self.next_sequence = received.wrapping_add(1);
        Stage::Body { missing_bytes: length, last: length < PACKET_PAYLOAD_BYTES_MAX }
    }

    /// Moves up to `missing_bytes` of `input` into the buffer. Returns the number of bytes moved.
    fn take_body(&mut self, input: &mut &[u8], missing_bytes: usize) -> usize {
        let (taken, rest) = input.split_at(input.len().min(missing_bytes));
        *input = rest;
        let needed = self.assembled.len() + taken.len();
        if needed > self.assembled.capacity() {
            let whole = self.assembled.len() + missing_bytes;
            let wanted = needed.max(2 * self.assembled.capacity()).min(whole);
            self.assembled.reserve_exact(wanted - self.assembled.len());
        }
        self.assembled.extend_from_slice(taken);
        taken.len()
    }
}

/// Appends packets to the caller's buffer and assigns sequence numbers.
#[derive(Debug)]
pub struct PacketWriter<'a> {
    out: &'a mut Vec<u8>,
    sequence: u8,
}

impl<'a> PacketWriter<'a> {
    /// A writer whose next packet has the sequence number `first_sequence`.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>, first_sequence: u8) -> Self {
        Self { out, sequence: first_sequence }
    }

    /// Sequence number of the next packet.
    #[inline]
    pub const fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Appends one payload, written by `encode`, which must not remove bytes from the buffer.
    #[inline]
    pub fn packet(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        self.out.extend_from_slice(&[0, 0, 0, self.sequence]);
        encode(self.out);
        let length = self.out.len() - start - HEADER_BYTES;
        if length >= PACKET_PAYLOAD_BYTES_MAX {
            return self.split(start, length);
        }
        let bytes = (length as u32).to_le_bytes();
        self.out[start..start + 3].copy_from_slice(&bytes[..3]);
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Appends packets that are already encoded, and numbers them.
    #[inline]
    pub fn encoded_packets(&mut self, packets: &[u8]) {
        let start = self.out.len();
        self.out.extend_from_slice(packets);
        self.sequence = patch_sequences(&mut self.out[start..], self.sequence);
    }

    /// Inserts the additional headers of a long payload, from its end to its start, so that no byte is
    /// overwritten before it is moved. Then writes all headers.
    #[cold]
    fn split(&mut self, start: usize, length: usize) {
        let further_packets = length / PACKET_PAYLOAD_BYTES_MAX;
        self.out.resize(self.out.len() + further_packets * HEADER_BYTES, 0);
        let first_payload = start + HEADER_BYTES;
        for packet in (0..=further_packets).rev() {
            let from = first_payload + packet * PACKET_PAYLOAD_BYTES_MAX;
            let bytes = (length - packet * PACKET_PAYLOAD_BYTES_MAX).min(PACKET_PAYLOAD_BYTES_MAX);
            let to = from + packet * HEADER_BYTES;
            self.out.copy_within(from..from + bytes, to);
            let [low, middle, high, _] = (bytes as u32).to_le_bytes();
            let sequence = self.sequence.wrapping_add(packet as u8);
            self.out[to - HEADER_BYTES..to].copy_from_slice(&[low, middle, high, sequence]);
        }
        self.sequence = self.sequence.wrapping_add(further_packets as u8).wrapping_add(1);
    }
}

/// Numbers the packets in `bytes` from `first_sequence` on. Returns the number after the last one. Rows are
/// encoded where they are read, with sequence number 0, because only the connection knows how many packets
/// precede them.
///
/// Stops the node unless `bytes` consists of complete packets: sending anything else would corrupt the
/// client's stream.
#[inline]
pub fn patch_sequences(bytes: &mut [u8], first_sequence: u8) -> u8 {
    let mut sequence = first_sequence;
    let mut at = 0;
    while at < bytes.len() {
        require!(bytes.len() - at >= HEADER_BYTES, "an encoded packet has a complete header");
        let Some(header) = bytes[at..].first_chunk_mut::<HEADER_BYTES>() else { break };
        header[3] = sequence;
        sequence = sequence.wrapping_add(1);
        at += HEADER_BYTES + payload_length(header);
    }
    require!(at == bytes.len(), "an encoded packet ends within its buffer");
    sequence
}

#[inline]
fn payload_length(header: &[u8; HEADER_BYTES]) -> usize {
    u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize
}
