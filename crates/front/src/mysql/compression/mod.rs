//! The compressed form of the protocol: packets travel in frames, which zlib or zstd may have compressed.
//!
//! A frame has the length of its content (3 bytes), a sequence number, and the length of the content before
//! it was compressed (3 bytes), or 0 if it was not. Frames and packets are independent: a frame may hold
//! several packets, and a packet may continue in the next frame.

use std::io::{self, Read, Write};

use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use super::wire::capability::Capabilities;
use super::wire::error::ProtocolError;

/// Bytes before the content of every frame.
const HEADER_BYTES: usize = 7;

/// Maximum content of a frame in bytes, before and after it is compressed.
const CONTENT_BYTES_MAX: usize = (1 << 24) - 1;

/// Shorter contents are sent as they are, as MySQL does: compression would not pay for its header.
const COMPRESSED_BYTES_MIN: usize = 50;

/// Highest level of zstd. Higher ones, which clients may ask for, would hold up the other clients of the
/// thread.
const ZSTD_LEVEL_MAX: i32 = 6;

/// Level of zlib. A part of an answer (128 KiB) then takes about a millisecond.
const ZLIB_LEVEL: u32 = 1;

/// The compressor on which client and server agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Zlib,
    Zstd { level: i32 },
}

impl Algorithm {
    /// The compressor of a login with these common capabilities. zlib goes before zstd, as in MySQL.
    pub fn agreed(capabilities: Capabilities, zstd_level: u8) -> Option<Algorithm> {
        match capabilities {
            _ if capabilities.contains(Capabilities::COMPRESS) => Some(Algorithm::Zlib),
            _ if capabilities.contains(Capabilities::ZSTD_COMPRESSION) => Some(Algorithm::zstd(zstd_level)),
            _ => None,
        }
    }

    /// The name in `protocol_compression_algorithms`.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Zlib => "zlib",
            Algorithm::Zstd { .. } => "zstd",
        }
    }

    /// zstd with the level that the client asks for, from 1 to 22.
    pub fn zstd(level: u8) -> Algorithm {
        Algorithm::Zstd { level: i32::from(level).clamp(1, ZSTD_LEVEL_MAX) }
    }
}

/// The frames of one connection.
#[derive(Debug)]
pub(super) struct Compression {
    algorithm: Algorithm,
    /// The answer to the login is the last one that is sent without frames.
    is_sending: bool,
    /// Sequence number of the next frame to send.
    sequence: u8,
    /// Content of the frame at the front of the received bytes. The bytes before `position` are consumed.
    content: Vec<u8>,
    position: usize,
    /// Length of that frame with its header; 0 if the next frame is not read yet.
    frame_bytes: usize,
}

impl Compression {
    pub fn new(algorithm: Algorithm) -> Compression {
        Compression { algorithm, is_sending: false, sequence: 0, content: Vec::new(), position: 0, frame_bytes: 0 }
    }

    /// The content of the first frame in `received` that is not consumed. `None` if the frame is incomplete.
    /// `received` begins with the same frame until [`Compression::finish_frame`] gives its length.
    ///
    /// # Errors
    /// [`ProtocolError::Malformed`] if the content is not what the header says.
    pub fn content(&mut self, received: &[u8]) -> Result<Option<&[u8]>, ProtocolError> {
        if self.frame_bytes == 0 && !self.read_frame(received)? {
            return Ok(None);
        }
        Ok(Some(&self.content[self.position..]))
    }

    /// Consumes bytes of the content. Returns the length of the frame if this was the last of it, else 0.
    pub fn consume(&mut self, bytes: usize) -> usize {
        self.position += bytes;
        if self.position < self.content.len() {
            return 0;
        }
        // Not kept for the next frame: an idle connection holds no buffer.
        self.content = Vec::new();
        self.position = 0;
        std::mem::take(&mut self.frame_bytes)
    }

    fn read_frame(&mut self, received: &[u8]) -> Result<bool, ProtocolError> {
        let Some((header, rest)) = received.split_first_chunk::<HEADER_BYTES>() else { return Ok(false) };
        let [low, middle, high, sequence, plain_low, plain_middle, plain_high] = *header;
        let length = u32::from_le_bytes([low, middle, high, 0]) as usize;
        let plain_length = u32::from_le_bytes([plain_low, plain_middle, plain_high, 0]) as usize;
        let Some(content) = rest.get(..length) else { return Ok(false) };
        self.content = match plain_length {
            0 => content.to_vec(),
            _ => {
                self.decompress(content, plain_length).ok_or(ProtocolError::Malformed { field: "compressed_packet" })?
            }
        };
        self.sequence = sequence.wrapping_add(1);
        self.frame_bytes = HEADER_BYTES + length;
        Ok(true)
    }

    /// `None` unless the result has exactly `plain_length` bytes, at most [`CONTENT_BYTES_MAX`].
    fn decompress(&self, content: &[u8], plain_length: usize) -> Option<Vec<u8>> {
        // The buffer grows with the bytes that there are, never with the length that a header claims.
        let mut plain = Vec::new();
        let limit = plain_length as u64 + 1;
        match self.algorithm {
            Algorithm::Zlib => ZlibDecoder::new(content).take(limit).read_to_end(&mut plain).ok()?,
            Algorithm::Zstd { .. } => {
                zstd::stream::read::Decoder::with_buffer(content).ok()?.take(limit).read_to_end(&mut plain).ok()?
            }
        };
        (plain.len() == plain_length).then_some(plain)
    }

    /// Begins an answer that no frame of the client precedes.
    pub fn restart_sequence(&mut self) {
        self.sequence = 0;
    }

    /// Puts packets into frames, from the answer after that to the login on.
    pub fn frame(&mut self, packets: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.is_sending, true) || packets.is_empty() {
            return;
        }
        let mut frames = Vec::with_capacity(packets.len() / 2 + HEADER_BYTES);
        for content in packets.chunks(CONTENT_BYTES_MAX) {
            self.append_frame(content, &mut frames);
        }
        *packets = frames;
    }

    fn append_frame(&mut self, content: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        let is_shorter = content.len() >= COMPRESSED_BYTES_MIN
            && self.compress(content, out).is_ok()
            && out.len() - start - HEADER_BYTES < content.len();
        if !is_shorter {
            out.truncate(start + HEADER_BYTES);
            out.extend_from_slice(content);
        }
        let length = ((out.len() - start - HEADER_BYTES) as u32).to_le_bytes();
        let plain_length = if is_shorter { content.len() as u32 } else { 0 }.to_le_bytes();
        out[start..start + 3].copy_from_slice(&length[..3]);
        out[start + 3] = self.sequence;
        out[start + 4..start + HEADER_BYTES].copy_from_slice(&plain_length[..3]);
        self.sequence = self.sequence.wrapping_add(1);
    }

    fn compress(&self, content: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        match self.algorithm {
            Algorithm::Zlib => {
                let mut encoder = ZlibEncoder::new(out, flate2::Compression::new(ZLIB_LEVEL));
                encoder.write_all(content)?;
                encoder.finish().map(drop)
            }
            Algorithm::Zstd { level } => zstd::stream::copy_encode(content, out, level),
        }
    }
}

#[cfg(test)]
mod tests;
