//! Frames: `[length u24][kind u8]` and so many bytes. A row as `model/row_encoding` says it is a frame of kind [`ROW`], so that
//! rows leave a partition in the form in which they are sent.

/// Bytes before the payload.
pub const HEAD_BYTES: usize = 4;
/// A payload of this many bytes goes on in the next frame of the same kind. Only rows are so long.
pub const PAYLOAD_BYTES_MAX: usize = 0xFF_FFFF;
/// A row of a result, in the binary encoding.
pub const ROW: u8 = 0;

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What it is.
    pub kind: u8,
    /// Its contents.
    pub payload: &'a [u8],
}

/// What a frame's first bytes say: its kind and the length of its payload; `None` when there are too few of them.
#[inline]
pub fn head(bytes: &[u8]) -> Option<(u8, usize)> {
    let [a, b, c, kind] = *bytes.first_chunk::<HEAD_BYTES>()?;
    Some((kind, u32::from_le_bytes([a, b, c, 0]) as usize))
}

/// The first frame and what comes after it; `None` while it is not whole.
#[inline]
pub fn next_frame(bytes: &[u8]) -> Option<(Frame<'_>, &[u8])> {
    let (kind, length) = head(bytes)?;
    let (payload, rest) = bytes[HEAD_BYTES..].split_at_checked(length)?;
    Some((Frame { kind, payload }, rest))
}

/// Begins a frame; gives what [`end_frame`] needs.
#[inline]
pub fn begin_frame(kind: u8, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, kind]);
    start
}

/// Ends the frame that began at `start`. False when it is too long for one, and then it is taken back.
#[inline]
#[must_use]
pub fn end_frame(start: usize, out: &mut Vec<u8>) -> bool {
    let length = out.len() - start - HEAD_BYTES;
    if length >= PAYLOAD_BYTES_MAX {
        out.truncate(start);
        return false;
    }
    out[start..start + 3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
    true
}
