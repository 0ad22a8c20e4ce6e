//! Batches of rows. A batch is one byte string of tagged values and one array of their offsets.

use std::sync::Arc;

use junctor_expression::Parameters;
use junctor_expression::parameter::{append_value, read_value};
use junctor_model::error::{Error, Result};
use junctor_model::value::{Value, ValueRef};

use super::meter::Meters;
use super::recursion::WorkRows;

/// Maximum number of rows in a batch.
pub(super) const BATCH_ROWS: usize = 256;
/// Bytes of values from which a batch counts as full.
const BATCH_BYTES: usize = 1 << 20;

/// Bytes by which the values of a row may exceed twice those of an average row and still be copied at once.
const SPAN_SLACK_BYTES: usize = 64;

/// How the values of a row were copied.
enum Span {
    /// All bytes at once. `moved` is added, with wrapping, to offsets from `own` on.
    Copied { own: u32, moved: u32 },
    /// Not at all: bytes of other rows are between them.
    Scattered,
}

/// The offset of a value whose bytes were copied, if it is not one of the frame.
#[inline]
fn moved_offset(offset: [u8; 4], own: u32, moved: u32) -> [u8; 4] {
    let at = u32::from_le_bytes(offset);
    if at < own { offset } else { at.wrapping_add(moved).to_le_bytes() }
}

/// The beginning of every batch of one execution of a block: the values of the statement's parameters and of
/// the outer block, NULL, and the offsets of a row without other values.
#[derive(Debug)]
pub(in crate::execute) struct Frame {
    bytes: Vec<u8>,
    offsets: Vec<[u8; 4]>,
    null: [u8; 4],
    /// The rows of the last round of a recursive query, in the block of one of its queries.
    pub work: Option<Arc<WorkRows>>,
    /// The meters of EXPLAIN ANALYZE.
    pub meters: Option<Arc<Meters>>,
    /// Whether joins return their rows in the order of the left rows, because values above them depend on it.
    pub keeps_order: bool,
    /// The leaf that reads rows by keys, and the lists of the keys.
    pub lookup: Option<(usize, Vec<Vec<Value>>)>,
}

/// Rows of a block.
#[derive(Clone, Debug)]
pub(in crate::execute) struct Batch {
    frame: Arc<Frame>,
    bytes: Vec<u8>,
    offsets: Vec<[u8; 4]>,
}

impl Frame {
    /// The frame of rows of `width` parameters and slots. `own` are the statement's parameters.
    pub fn new(own: Parameters<'_>, width: usize) -> Frame {
        let (values, offsets) = own.parts();
        let mut bytes = values.to_vec();
        let null = (bytes.len() as u32).to_le_bytes();
        append_value(ValueRef::Null, &mut bytes);
        let mut offsets = offsets.to_vec();
        offsets.resize(width.max(offsets.len()), null);
        Frame { bytes, offsets, null, work: None, meters: None, keeps_order: false, lookup: None }
    }

    /// Sets the value of a slot in all rows.
    pub fn set(&mut self, slot: u16, value: ValueRef<'_>) {
        let at = (self.bytes.len() as u32).to_le_bytes();
        append_value(value, &mut self.bytes);
        if let Some(offset) = self.offsets.get_mut(usize::from(slot)) {
            *offset = at;
        }
    }

    /// The values that all rows have.
    pub fn row(&self) -> Parameters<'_> {
        Parameters::from_parts(&self.bytes, &self.offsets)
    }
}

impl Batch {
    /// A batch without rows.
    pub fn new(frame: &Arc<Frame>) -> Batch {
        Batch { frame: Arc::clone(frame), bytes: frame.bytes.clone(), offsets: Vec::new() }
    }

    /// A batch with room for rows of an operator that takes those of `from`.
    pub fn with_room_of(from: &Batch, rows: usize) -> Batch {
        let mut batch = Batch::new(&from.frame);
        let rows = rows.min(BATCH_ROWS);
        batch.offsets.reserve(rows * batch.width());
        let of_row = (from.bytes.len() - from.frame.bytes.len()) / from.len().max(1);
        batch.bytes.reserve(rows * of_row);
        batch
    }

    /// Reserves room for more rows like those that the batch has.
    pub fn reserve_like_first(&mut self, rows: usize) {
        let of_row = self.bytes.len() - self.frame.bytes.len();
        self.offsets.reserve(rows * self.width());
        self.bytes.reserve(rows * of_row);
    }

    /// A batch of one row of another batch.
    pub fn of_row(from: &Batch, row: usize) -> Batch {
        let mut batch = Batch::new(&from.frame);
        batch.push_copy(from, row);
        batch
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len() / self.width()
    }

    /// Whether the batch should be passed on.
    pub fn is_full(&self) -> bool {
        self.len() >= BATCH_ROWS || self.bytes.len() >= BATCH_BYTES + self.frame.bytes.len()
    }

    /// The memory of the batch in bytes.
    pub fn memory(&self) -> usize {
        self.bytes.len() + 4 * self.offsets.len()
    }

    fn width(&self) -> usize {
        self.frame.offsets.len().max(1)
    }

    /// The values of a row.
    pub fn row(&self, row: usize) -> Parameters<'_> {
        let width = self.frame.offsets.len();
        Parameters::from_parts(&self.bytes, &self.offsets[row * width..(row + 1) * width])
    }

    /// Adds a row that has only the values of the frame.
    pub fn push(&mut self) {
        if self.frame.offsets.is_empty() {
            // A row needs an offset, to be counted.
            self.offsets.push([0; 4]);
        }
        self.offsets.extend_from_slice(&self.frame.offsets);
    }

    /// Sets a value of a row.
    pub fn set(&mut self, row: usize, slot: u16, value: ValueRef<'_>) {
        let at = (self.bytes.len() as u32).to_le_bytes();
        append_value(value, &mut self.bytes);
        self.point(row, slot, at);
    }

    fn point(&mut self, row: usize, slot: u16, at: [u8; 4]) {
        let place = row * self.width() + usize::from(slot);
        if let Some(offset) = self.offsets.get_mut(place) {
            *offset = at;
        }
    }

    /// Adds a row of tagged values, which belong to these slots. Error: 1105 for malformed values.
    pub fn push_values(&mut self, values: &[u8], slots: &[Option<u16>]) -> Result<()> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(values);
        self.push();
        let row = self.len() - 1;
        let mut rest = values;
        for slot in slots {
            let at = start + (values.len() - rest.len());
            let (_, after) = read_value(rest).ok_or_else(Error::broken_reply)?;
            if let Some(slot) = slot {
                self.point(row, *slot, (at as u32).to_le_bytes());
            }
            rest = after;
        }
        Ok(())
    }

    /// Adds the rows of a batch with the same frame.
    pub fn append(&mut self, from: &Batch) {
        let own = self.frame.bytes.len();
        let moved = (self.bytes.len() - own) as u32;
        self.bytes.extend_from_slice(&from.bytes[own..]);
        self.offsets.extend(from.offsets.iter().map(|offset| {
            let at = u32::from_le_bytes(*offset);
            if at < own as u32 { *offset } else { (at + moved).to_le_bytes() }
        }));
    }

    /// Adds a copy of a row of a batch with the same frame.
    pub fn push_copy(&mut self, from: &Batch, row: usize) {
        let width = self.width();
        let offsets = &from.offsets[row * width..(row + 1) * width];
        match self.copy_span(from, offsets.iter()) {
            Span::Copied { own, moved } => {
                let place = |offset: &[u8; 4]| moved_offset(*offset, own, moved);
                self.offsets.extend(offsets.iter().map(place));
            }
            Span::Scattered => {
                self.push();
                let own = self.len() - 1;
                for slot in 0..width {
                    self.copy((own, slot), from, row);
                }
            }
        }
    }

    /// Copies values of a row of a batch with the same frame into the last row.
    pub fn join(&mut self, from: &Batch, row: usize, slots: &[u16]) {
        let (width, own) = (self.width(), self.len() - 1);
        let offsets = &from.offsets[row * width..(row + 1) * width];
        match self.copy_span(from, slots.iter().map(|slot| &offsets[usize::from(*slot)])) {
            Span::Copied { own: values, moved } => {
                let to = &mut self.offsets[own * width..];
                for slot in slots {
                    let slot = usize::from(*slot);
                    to[slot] = moved_offset(offsets[slot], values, moved);
                }
            }
            Span::Scattered => {
                for slot in slots {
                    self.copy((own, usize::from(*slot)), from, row);
                }
            }
        }
    }

    /// Copies the bytes of these values of one row at once, if they are next to each other, as those of a row
    /// that an operator has made as a whole are.
    fn copy_span<'o>(&mut self, from: &Batch, offsets: impl Iterator<Item = &'o [u8; 4]>) -> Span {
        let own = self.frame.bytes.len() as u32;
        let (mut first, mut last) = (u32::MAX, 0);
        for offset in offsets {
            let at = u32::from_le_bytes(*offset);
            if at >= own {
                first = first.min(at);
                last = last.max(at);
            }
        }
        if first == u32::MAX {
            return Span::Copied { own, moved: 0 };
        }
        let (first_byte, last_byte) = (first as usize, last as usize);
        let Some((_, rest)) = read_value(&from.bytes[last_byte..]) else { return Span::Scattered };
        let end = from.bytes.len() - rest.len();
        let average = (from.bytes.len() - own as usize) / from.len().max(1);
        if end - first_byte > 2 * average + SPAN_SLACK_BYTES {
            return Span::Scattered;
        }
        let moved = (self.bytes.len() as u32).wrapping_sub(first);
        self.bytes.extend_from_slice(&from.bytes[first_byte..end]);
        Span::Copied { own, moved }
    }

    fn copy(&mut self, (own, slot): (usize, usize), from: &Batch, row: usize) {
        let width = self.width();
        let offset = from.offsets[row * width + slot];
        let at = u32::from_le_bytes(offset) as usize;
        if at < self.frame.bytes.len() {
            self.offsets[own * width + slot] = offset;
            return;
        }
        let tail = &from.bytes[at..];
        let length = read_value(tail).map_or(0, |(_, rest)| tail.len() - rest.len());
        let to = (self.bytes.len() as u32).to_le_bytes();
        self.bytes.extend_from_slice(&tail[..length]);
        self.offsets[own * width + slot] = if length == 0 { self.frame.null } else { to };
    }

    /// Removes all rows and frees their memory.
    pub fn clear(&mut self) {
        (self.bytes, self.offsets) = (self.frame.bytes.clone(), Vec::new());
    }

    /// Appends the rows in the form of the temporary file, without the values of the frame.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        let own = &self.bytes[self.frame.bytes.len()..];
        out.extend_from_slice(&(self.offsets.len() as u32).to_le_bytes());
        out.extend_from_slice(&(own.len() as u32).to_le_bytes());
        out.extend_from_slice(self.offsets.as_flattened());
        out.extend_from_slice(own);
    }

    /// Reads the rows that [`Self::append_to`] wrote into a batch without rows and with the same frame.
    /// Returns the bytes after them; `None` if the bytes are too few.
    pub fn read_from<'b>(&mut self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let (offsets, rest) = bytes.split_first_chunk()?;
        let (own, rest) = rest.split_first_chunk()?;
        let (offsets, rest) = rest.split_at_checked(4 * u32::from_le_bytes(*offsets) as usize)?;
        let (own, rest) = rest.split_at_checked(u32::from_le_bytes(*own) as usize)?;
        self.offsets.extend_from_slice(offsets.as_chunks().0);
        self.bytes.extend_from_slice(own);
        Some(rest)
    }

    /// Removes the last row.
    pub fn pop(&mut self) {
        self.offsets.truncate(self.offsets.len() - self.width());
    }

    /// Keeps the rows for which `keep` has true.
    pub fn retain(&mut self, keep: &[bool]) {
        let width = self.width();
        let mut to = 0;
        for (row, keep) in keep.iter().enumerate() {
            if *keep {
                self.offsets.copy_within(row * width..(row + 1) * width, to * width);
                to += 1;
            }
        }
        self.offsets.truncate(to * width);
    }
}
