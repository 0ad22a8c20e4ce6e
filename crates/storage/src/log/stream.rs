//! A stream is the sequence of records that one block forms (an ldm, or main). The log is written in groups,
//! which carry pieces of the streams. A record may begin in one piece and end in a later one.

use super::group::Piece;
use super::record::{RECORD_HEADER_BYTES, Record, RecordError, decode_record};
use crate::bytes::u32_at;
use crate::invariant::require;

/// A stream: the number of an ldm instance, or [`MAIN_STREAM`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u16);

/// The stream of block main: schema changes, and marks, which are the highest values that counters such as
/// AUTO_INCREMENT have reached.
pub const MAIN_STREAM: StreamId = StreamId(u16::MAX);

/// Joins the pieces of one stream and decodes its records.
#[derive(Debug, Default)]
pub struct StreamReader {
    /// The beginning of a record whose rest is in a later piece.
    incomplete: Vec<u8>,
    /// Whether a record boundary was seen. A reader that starts in the middle of a log skips the rest of the
    /// record that began before.
    is_aligned: bool,
}

impl StreamReader {
    /// A reader that may start at any piece.
    pub fn new() -> StreamReader {
        StreamReader::default()
    }

    /// Decodes the records that end in `piece`, in order.
    ///
    /// # Errors
    /// A record is damaged although its group's checksum is right, or the piece does not continue the one
    /// before. Later pieces of the stream cannot be decoded then.
    pub fn read(&mut self, piece: &Piece<'_>, visit: &mut dyn FnMut(&Record<'_>)) -> Result<(), RecordError> {
        let mut rest = piece.bytes;
        let first = piece.first_record.map(|first| first as usize);
        if !self.is_aligned {
            let Some(first) = first else { return Ok(()) };
            rest = rest.get(first..).ok_or(RecordError::Corrupt)?;
            self.is_aligned = true;
        } else if !self.incomplete.is_empty() {
            let taken = first.unwrap_or(rest.len());
            let (end, after) = rest.split_at_checked(taken).ok_or(RecordError::Corrupt)?;
            self.incomplete.extend_from_slice(end);
            if first.is_none() && matches!(decode_record(&self.incomplete), Err(RecordError::Incomplete(_))) {
                return Ok(());
            }
            let (record, length) = decode_record(&self.incomplete).map_err(|_| RecordError::Corrupt)?;
            if length != self.incomplete.len() {
                return Err(RecordError::Corrupt);
            }
            visit(&record);
            self.incomplete.clear();
            rest = after;
        } else if first != Some(0) && !rest.is_empty() {
            return Err(RecordError::Corrupt);
        }
        while !rest.is_empty() {
            match decode_record(rest) {
                Ok((record, length)) => {
                    visit(&record);
                    rest = &rest[length..];
                }
                Err(RecordError::Incomplete(_)) => {
                    self.incomplete.extend_from_slice(rest);
                    return Ok(());
                }
                Err(RecordError::Corrupt) => return Err(RecordError::Corrupt),
            }
        }
        Ok(())
    }

    /// Drops an incomplete record. The node stopped before the end of the record was written.
    pub fn end_life(&mut self) {
        self.incomplete.clear();
        self.is_aligned = true;
    }
}

/// Cuts the bytes of one stream into pieces (hot path: 10 instructions a record).
#[derive(Debug, Default)]
pub struct StreamCutter {
    /// Bytes of the last record that are not cut off yet.
    record_left: usize,
}

impl StreamCutter {
    /// A cutter at a record boundary.
    pub fn new() -> StreamCutter {
        StreamCutter::default()
    }

    /// Chooses the next piece. `bytes` must begin where the previous piece ended, and must end with a whole
    /// record. Returns the length of the piece, at most `length_max`, and the offset of the first record that
    /// begins in it. A piece never ends inside the header of a record, because the next call must read the
    /// record's length there. The length is therefore 0 if the next header does not fit in `length_max`.
    pub fn cut(&mut self, bytes: &[u8], length_max: usize) -> (usize, Option<u32>) {
        let end = bytes.len().min(length_max);
        if self.record_left >= end {
            self.record_left -= end;
            return (end, None);
        }
        let first = self.record_left;
        let mut at = first;
        while at < end {
            if end - at < RECORD_HEADER_BYTES {
                // The remainder of this header lies beyond `end`, so the piece ends before the header.
                self.record_left = 0;
                return (at, (at > first).then_some(first as u32));
            }
            let length = u32_at(bytes, at) as usize;
            require!(length >= RECORD_HEADER_BYTES, "a record has at least its header: {length} bytes");
            at += length;
        }
        self.record_left = at - end;
        (end, Some(first as u32))
    }
}
