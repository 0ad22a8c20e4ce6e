//! Hot path: at most 15 instructions per packet.
//!
//! The frame around a row, and length-encoded strings.

/// Payload bytes of a full packet. A payload of this many bytes or more continues in the next packet.
pub const PACKET_PAYLOAD_MAX: usize = 0xFF_FFFF;

/// Bytes before the payload of every packet: length (3) and sequence number (1).
pub const PACKET_HEADER_BYTES: usize = 4;

/// Reserves the header of a packet, and returns its position for [`end_packet`].
#[inline]
pub fn begin_packet(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; PACKET_HEADER_BYTES]);
    start
}

/// Writes the length of the packet that begins at `start`. A payload too long for one packet is split into
/// full packets and a shorter, perhaps empty, last one. All get the sequence number 0.
#[inline]
pub fn end_packet(out: &mut Vec<u8>, start: usize) {
    let (header, payload) = out[start..].split_first_chunk_mut().expect("begin_packet reserved the header");
    if payload.len() >= PACKET_PAYLOAD_MAX {
        return split(out, start);
    }
    // The sequence number is the fourth byte: 0.
    *header = (payload.len() as u32).to_le_bytes();
}

/// The first byte of a NULL, in place of a length.
pub const NULL_MARK: u8 = 0xFB;

/// Number of bytes of the length prefix of a string with this length.
#[inline]
pub fn length_bytes(length: usize) -> usize {
    match length {
        0..251 => 1,
        251..=0xFFFF => 3,
        0x1_0000..=0xFF_FFFF => 4,
        _ => 9,
    }
}

/// Appends a length-encoded integer.
#[inline]
pub fn append_length(length: u64, out: &mut Vec<u8>) {
    if length < 251 {
        out.push(length as u8);
    } else {
        append_long_length(length, out);
    }
}

/// Appends a length-encoded string.
#[inline]
pub fn append_length_prefixed(bytes: &[u8], out: &mut Vec<u8>) {
    append_length(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn append_long_length(length: u64, out: &mut Vec<u8>) {
    let bytes = length.to_le_bytes();
    match length {
        0..=0xFFFF => out.extend_from_slice(&[0xFC, bytes[0], bytes[1]]),
        0x1_0000..=0xFF_FFFF => out.extend_from_slice(&[0xFD, bytes[0], bytes[1], bytes[2]]),
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Moves the parts of the payload apart, from the last to the first, so that a header fits before each.
#[cold]
fn split(out: &mut Vec<u8>, start: usize) {
    let payload = out.len() - start - PACKET_HEADER_BYTES;
    let full_packets = payload / PACKET_PAYLOAD_MAX;
    let last_bytes = payload % PACKET_PAYLOAD_MAX;
    out.resize(out.len() + full_packets * PACKET_HEADER_BYTES, 0);
    let first = start + PACKET_HEADER_BYTES;
    // Every part moves to a higher address, so the last one must move first.
    for packet in (0..=full_packets).rev() {
        let bytes = if packet == full_packets { last_bytes } else { PACKET_PAYLOAD_MAX };
        let from = first + packet * PACKET_PAYLOAD_MAX;
        let to = start + packet * (PACKET_PAYLOAD_MAX + PACKET_HEADER_BYTES) + PACKET_HEADER_BYTES;
        out.copy_within(from..from + bytes, to);
        out[to - PACKET_HEADER_BYTES..to].copy_from_slice(&(bytes as u32).to_le_bytes());
    }
}
