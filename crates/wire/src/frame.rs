//! Frames: `[length u24][kind u8]`, then a payload of `length` bytes. A row that `model/row_encoding` has
//! encoded is itself a frame of kind [`ROW`], so a partition produces rows in the form in which they are
//! sent.

/// Bytes of a frame before its payload.
pub const HEADER_BYTES: usize = 4;
/// A payload of this many bytes continues in the next frame of the same kind. Only rows may be that long.
pub const PAYLOAD_BYTES_MAX: usize = 0xFF_FFFF;
/// Kind of a result row in the binary encoding.
pub const ROW: u8 = 0;

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// [`ROW`], or a constant of `request::kind` or `reply::kind`.
    pub kind: u8,
    /// The bytes after the header.
    pub payload: &'a [u8],
}

/// Decodes a frame's header: the kind, and the length of the payload in bytes. `None` if `bytes` has fewer
/// than [`HEADER_BYTES`].
#[inline]
pub fn decode_header(bytes: &[u8]) -> Option<(u8, usize)> {
    let [a, b, c, kind] = *bytes.first_chunk::<HEADER_BYTES>()?;
    Some((kind, u32::from_le_bytes([a, b, c, 0]) as usize))
}

/// Splits the first frame from the bytes after it. `None` while the frame is incomplete.
#[inline]
pub fn next_frame(bytes: &[u8]) -> Option<(Frame<'_>, &[u8])> {
    let (kind, length) = decode_header(bytes)?;
    let (payload, rest) = bytes[HEADER_BYTES..].split_at_checked(length)?;
    Some((Frame { kind, payload }, rest))
}

/// Begins a frame and returns its position for [`end_frame`].
#[inline]
pub fn begin_frame(kind: u8, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, kind]);
    start
}

/// Writes the length of the frame that began at `start`. Returns false and removes the frame if its payload
/// has [`PAYLOAD_BYTES_MAX`] bytes or more.
#[inline]
#[must_use]
pub fn end_frame(start: usize, out: &mut Vec<u8>) -> bool {
    let length = out.len() - start - HEADER_BYTES;
    // A payload of exactly the maximum would announce a continuation frame.
    if length >= PAYLOAD_BYTES_MAX {
        out.truncate(start);
        return false;
    }
    out[start..start + 3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
    true
}
