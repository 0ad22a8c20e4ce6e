//! The file of a SELECT ... INTO OUTFILE or INTO DUMPFILE that has not ended.

use junctor_gateway::file::FileBuffer;
use junctor_gateway::{Gateway, TurnContext};
use junctor_model::error::{Error, Result};
use junctor_model::row_encoding::NULL_MARK;
use junctor_signals::read_rows::OperationId;

use super::packets::{RowPackets, row_start};
use super::server_file::FILE_STEP_BYTES;
use crate::plan::LineWriter;

/// The file and the rows that are not written yet.
#[derive(Debug)]
pub(super) struct FileTarget {
    pub operation: OperationId,
    pub phase: FilePhase,
    /// The parameters of the query, until it starts.
    pub parameters: Vec<u8>,
    /// Rows that are not yet lines.
    arrived: Vec<u8>,
    /// Start of the next row in `arrived`.
    position: usize,
    /// Bytes of lines that the file does not have yet.
    pub pending: Vec<u8>,
    /// Memory for the next write.
    pub buffer: FileBuffer,
}

/// The state of the file.
#[derive(Debug)]
pub(super) enum FilePhase {
    /// The file is being opened. The query has not started.
    Opening,
    /// Rows may be written.
    Ready,
    /// Rows are being written.
    Writing,
    /// All rows are written, and the file is being closed.
    Closing,
    /// The file is being deleted. Then the statement fails with this error.
    Discarding(Box<Error>),
}

impl FileTarget {
    /// A file that is being opened.
    pub fn new(operation: OperationId, parameters: Vec<u8>) -> FileTarget {
        let (arrived, pending, buffer) = (Vec::new(), Vec::new(), FileBuffer::new());
        FileTarget { operation, phase: FilePhase::Opening, parameters, arrived, position: 0, pending, buffer }
    }

    /// Adds rows of the text protocol.
    pub fn take(&mut self, rows: Vec<u8>) {
        match self.arrived.is_empty() {
            true => self.arrived = rows,
            false => self.arrived.extend_from_slice(&rows),
        }
    }

    /// Makes lines of rows, until enough of them are pending. Lines of a fixed size may be much longer than
    /// their rows. Returns the number of rows.
    pub fn make_lines(&mut self, lines: Option<&LineWriter>) -> Result<u64> {
        let mut rows = 0;
        let arrived = std::mem::take(&mut self.arrived);
        while self.position < arrived.len() && self.pending.len() < FILE_STEP_BYTES {
            let rest = &arrived[self.position..];
            let length = row_start(rest, 1);
            for row in RowPackets::new(&rest[..length]) {
                self.append(lines, &row)?;
            }
            self.position += length;
            rows += 1;
        }
        if self.position < arrived.len() {
            self.arrived = arrived;
        } else {
            self.position = 0;
        }
        Ok(rows)
    }

    /// Appends a row of the text protocol: as a line, or its values alone. As in MySQL, NULL is then a zero
    /// byte.
    fn append(&mut self, lines: Option<&LineWriter>, row: &[u8]) -> Result<()> {
        let mut values = TextValues { rest: row };
        match lines {
            Some(lines) => lines.append(&mut values, &mut self.pending),
            None => values.by_ref().for_each(|value| self.pending.extend_from_slice(value.unwrap_or(&[0]))),
        }
        if values.rest.is_empty() { Ok(()) } else { Err(Error::broken_reply()) }
    }

    /// Writes the pending rows.
    pub fn write(&mut self, gateway: &mut Gateway, turn: &mut TurnContext<'_>) {
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.clear();
        bytes.extend_from_slice(&self.pending);
        self.pending.clear();
        self.phase = FilePhase::Writing;
        gateway.write_file(self.operation, bytes, turn);
    }
}

/// The values of a row of the text protocol; `None` is NULL. Ends early at bytes that are no value.
struct TextValues<'r> {
    rest: &'r [u8],
}

impl<'r> Iterator for TextValues<'r> {
    type Item = Option<&'r [u8]>;

    fn next(&mut self) -> Option<Option<&'r [u8]>> {
        let (first, after) = self.rest.split_first()?;
        let width = match *first {
            NULL_MARK => {
                self.rest = after;
                return Some(None);
            }
            0xfc => 2,
            0xfd => 3,
            0xfe => 8,
            _ => 0,
        };
        let mut length = [0; 8];
        length[..width].copy_from_slice(after.get(..width)?);
        let length = if width == 0 { u64::from(*first) } else { u64::from_le_bytes(length) };
        let value = after.get(width..)?.get(..usize::try_from(length).ok()?)?;
        self.rest = &after[width + value.len()..];
        Some(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use junctor_model::row_encoding::append_length_prefixed;

    use super::*;

    #[test]
    fn a_row_is_divided_into_its_values() {
        let long = [vec![b'x'; 250], vec![b'y'; 251], vec![b'z'; 65_536], vec![b'w'; 1 << 24]];
        let mut row = vec![NULL_MARK];
        long.iter().for_each(|value| append_length_prefixed(value, &mut row));
        append_length_prefixed(b"", &mut row);
        let values: Vec<_> = TextValues { rest: &row }.collect();
        assert_eq!(values[0], None);
        assert!(values[1..5].iter().zip(&long).all(|(value, long)| *value == Some(long)));
        assert_eq!((values[5], values.len()), (Some(&[][..]), 6));
    }

    #[test]
    fn a_dump_is_the_values_alone_and_a_broken_row_is_an_error() {
        let mut file = FileTarget::new(OperationId(1), Vec::new());
        file.append(None, b"\x01a\xfb\x00\x02bc").expect("a row");
        assert_eq!(file.pending, b"a\0bc");
        for row in [&b"\x02a"[..], b"\xfc\x01", b"\xff"] {
            assert!(file.append(None, row).is_err(), "{row:?}");
        }
    }
}
