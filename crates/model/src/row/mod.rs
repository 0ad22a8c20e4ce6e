//! Hot path: at most 12 instructions per column read; no allocation, no formatting; an image is only
//! borrowed.
//!
//! A row is one byte string, the image: `[flags u8][null bits][fixed part][variable ends][variable data]`.
//! Only nullable columns have a null bit. Integers are little-endian at column width; DOUBLE is 8 bytes
//! little-endian; other types of the fixed part have the bytes of [`Packed`]. NULL columns have zero bytes in
//! the fixed part.
//!
//! Variable columns are in column order, each in its wire form: its bytes, preceded by their length as a
//! length-encoded integer of MySQL's protocol, or the single mark FB for NULL. The encoder of text-protocol
//! rows therefore copies adjacent columns at once. End `i` is the offset of the first byte after variable
//! column `i`, from the start of the variable data: a `u16`, or a `u32` in a wide image.
//!
//! The values of columns that ALTER TABLE added without touching the rows come last ([`added`]). They move no
//! other column, so reads of the others do not know them. Columns that it dropped keep their place
//! ([`dropped`]).

mod added;
mod dropped;
mod edits;
mod number;

pub use added::{AddedColumn, is_valid_addition};
pub use edits::apply_edits;
pub use number::{NumberForm, NumberPlace};

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, ErrorCode, Result};
use crate::id::ColumnNumber;
use crate::limit;
use crate::row_encoding::{NULL_MARK, append_length_prefixed, length_bytes, wire_type};
use crate::schema::ColumnDefinition;
use crate::types::{Members, Packed};
use crate::value::ValueRef;
use added::AddedSlot;
use dropped::DroppedSlot;

/// Bit of the flags byte: variable ends are `u32`.
pub const FLAG_WIDE: u8 = 1;
/// Bit of the flags byte: a variable value is a reference to overflow pages. Only storage sets it, and a
/// [`RowView`] is made only of images without it.
pub const FLAG_OVERFLOW: u8 = 2;

/// The position of each column in a row image. Derived from the columns once per table definition.
#[derive(Clone, Debug)]
pub struct RowFormat {
    slots: Box<[Slot]>,
    variable_columns: Box<[u16]>,
    /// The columns of the kind [`SlotKind::Packed`].
    packed: Box<[PackedColumn]>,
    /// The columns of the kind [`SlotKind::Added`].
    added: Box<[AddedSlot]>,
    dropped: Box<[DroppedSlot]>,
    /// Offset of the first byte after the null bits.
    fixed_start: u32,
    /// Offset of the variable ends.
    ends_start: u32,
    /// Offset of the variable data in an image that is not wide.
    narrow_start: u32,
}

/// The position of one column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    kind: SlotKind,
    /// 0 for a column that is never NULL.
    null_mask: u8,
    /// Offset in the image of the byte with the null bit.
    null_byte: u16,
    /// Offset in the image, or the ordinal among the variable, packed or added columns.
    position: u32,
}

/// Where to read the number of a packed column: in the eight bytes from `start` on, `shift` bits above the
/// lowest one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedPlace {
    start: u32,
    shift: u8,
}

/// A column whose bytes are a [`Packed`] value.
#[derive(Clone, Debug)]
struct PackedColumn {
    /// Offset in the image.
    position: u32,
    form: Packed,
    /// The members of an ENUM or SET.
    members: Option<Arc<Members>>,
}

/// The form of a value in a row image. Numbers are in the fixed part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotKind {
    Int8,
    UInt8,
    Int16,
    UInt16,
    Int24,
    UInt24,
    Int32,
    UInt32,
    Int64,
    UInt64,
    Double,
    /// Its form is in the list of packed columns.
    Packed,
    /// A document in the variable part.
    Json,
    Variable,
    /// Its value follows the variable data, or is absent.
    Added,
}

/// One row, borrowed: the format, and an image without overflow references that [`check_image`] accepts.
#[derive(Clone, Copy, Debug)]
pub struct RowView<'a> {
    format: &'a RowFormat,
    image: &'a [u8],
}

/// A column's value as a row stores it.
pub(crate) enum Field<'a> {
    Null,
    Int(i64),
    UInt(u64),
    Double(f64),
    Bytes(&'a [u8]),
    /// The ordinal of a packed column that is not NULL. Its value is not here, so that a field fits
    /// registers.
    Packed(usize),
    Json(&'a [u8]),
    /// The ordinal of an added column, NULL or not.
    Added(usize),
}

impl RowFormat {
    /// Derives the format from a table's columns.
    pub fn new(columns: &[ColumnDefinition]) -> RowFormat {
        let added = AddedSlot::all(columns);
        let nullable_count = columns.iter().filter(|column| column.nullable && column.added.is_none()).count();
        let fixed_start = 1 + nullable_count.div_ceil(8);
        let mut slots = Vec::with_capacity(columns.len());
        let mut variable_columns = Vec::new();
        let mut packed: Vec<PackedColumn> = Vec::new();
        let mut position = fixed_start;
        let mut null_bit = 0;
        for (index, column) in columns.iter().enumerate() {
            if column.added.is_some() {
                let ordinal = added.iter().position(|slot| slot.column() == index).unwrap_or_default();
                slots.push(Slot { kind: SlotKind::Added, null_mask: 0, null_byte: 0, position: ordinal as u32 });
                continue;
            }
            let (null_mask, null_byte) = match column.nullable {
                true => (1 << (null_bit % 8), 1 + null_bit / 8),
                false => (0, 0),
            };
            // Columns that are never NULL take no bit, so a change of nullability changes the image.
            null_bit += usize::from(column.nullable);
            let kind = column.column_type.slot();
            let at = match (column.column_type.packed(), kind.fixed_bytes()) {
                (Some(form), _) => {
                    let members = column.column_type.members().cloned();
                    packed.push(PackedColumn { position: position as u32, form, members });
                    position += form.bytes();
                    packed.len() - 1
                }
                (None, Some(bytes)) => {
                    position += bytes;
                    position - bytes
                }
                (None, None) => {
                    variable_columns.push(index as u16);
                    variable_columns.len() - 1
                }
            };
            slots.push(Slot { kind, null_mask, null_byte: null_byte as u16, position: at as u32 });
        }
        let narrow_start = (position + variable_columns.len() * 2) as u32;
        RowFormat {
            slots: slots.into(),
            variable_columns: variable_columns.into(),
            packed: packed.into(),
            added,
            dropped: DroppedSlot::all(columns),
            fixed_start: fixed_start as u32,
            ends_start: position as u32,
            narrow_start,
        }
    }

    /// Appends the image of a row. The values must already have the column types.
    ///
    /// # Errors
    /// 1118 above [`limit::ROW_BYTES_MAX`] bytes, 1136 if the number of values differs from the number of
    /// columns, 1048 for a NULL in a NOT NULL column, 1105 for a value of another type than its column. `out`
    /// is unchanged then.
    pub fn encode(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>) -> Result<()> {
        if values.len() != self.slots.len() {
            return Err(Error::new(ErrorCode::ColumnCountMismatch, "Column count doesn't match value count at row 1"));
        }
        let mut data_bytes = 0usize;
        for column in &self.variable_columns {
            let wire_bytes = match values[usize::from(*column)] {
                ValueRef::Bytes(bytes) | ValueRef::Json(bytes) => length_bytes(bytes.len()) + bytes.len(),
                _ => 1,
            };
            data_bytes = data_bytes.saturating_add(wire_bytes);
        }
        let wide = data_bytes > usize::from(u16::MAX);
        let header = self.header_bytes(wide);
        if header.saturating_add(data_bytes) > limit::ROW_BYTES_MAX {
            return Err(row_too_large());
        }
        let start = out.len();
        out.reserve(header + data_bytes);
        out.resize(start + header, 0);
        out[start] = if wide { FLAG_WIDE } else { 0 };
        for (index, (slot, value)) in self.slots.iter().zip(values).enumerate() {
            let written = self.write_value(slot, *value, (start, wide), out);
            if !written {
                out.truncate(start);
                return Err(value_does_not_fit(index, value.is_null()));
            }
        }
        if !self.added.is_empty() {
            self.append_added(values, start, out)?;
            if out.len() - start > limit::ROW_BYTES_MAX {
                out.truncate(start);
                return Err(row_too_large());
            }
        }
        Ok(())
    }

    /// Number of columns, hidden ones included.
    pub fn column_count(&self) -> usize {
        self.slots.len()
    }

    /// Number of columns in the variable part.
    pub fn var_column_count(&self) -> usize {
        self.variable_columns.len()
    }

    /// Bytes of an image before its variable data.
    #[inline]
    pub fn header_bytes(&self, wide: bool) -> usize {
        let end_bytes = if wide { 4 } else { 2 };
        self.ends_start as usize + self.variable_columns.len() * end_bytes
    }

    /// The position of a column.
    pub(crate) fn slot(&self, column: ColumnNumber) -> Slot {
        self.slots[usize::from(column.0)]
    }

    /// The ordinal of a column among the variable columns; `None` for a column of the fixed part.
    pub(crate) fn var_ordinal(&self, column: ColumnNumber) -> Option<u16> {
        let slot = self.slots.get(usize::from(column.0))?;
        matches!(slot.kind, SlotKind::Variable | SlotKind::Json).then_some(slot.position as u16)
    }

    /// The range in the image of the wire forms of the variable columns from `first` to `last`, which are
    /// adjacent.
    #[inline(always)]
    pub fn var_extent(&self, image: &[u8], first: usize, last: usize) -> Range<usize> {
        if image[0] & FLAG_WIDE != 0 {
            return self.wide_extent(image, first, last);
        }
        let data = self.narrow_start as usize;
        let ends = self.ends_start as usize;
        let end = u16::from_le_bytes(bytes_at(image, ends + last * 2));
        let start = if first == 0 { 0 } else { u16::from_le_bytes(bytes_at(image, ends + first * 2 - 2)) };
        data + usize::from(start)..data + usize::from(end)
    }

    #[cold]
    fn wide_extent(&self, image: &[u8], first: usize, last: usize) -> Range<usize> {
        let data = self.header_bytes(true);
        let start = if first == 0 { 0 } else { self.var_end(image, true, first - 1) };
        data + start..data + self.var_end(image, true, last)
    }

    #[inline]
    fn var_end(&self, image: &[u8], wide: bool, var_ordinal: usize) -> usize {
        let ends = self.ends_start as usize;
        if wide {
            u32::from_le_bytes(bytes_at(image, ends + var_ordinal * 4)) as usize
        } else {
            usize::from(u16::from_le_bytes(bytes_at(image, ends + var_ordinal * 2)))
        }
    }

    /// Writes one value into the reserved header at `start` of a narrow or wide row, or appends it to the
    /// variable data; false if it does not fit its column.
    fn write_value(&self, slot: &Slot, value: ValueRef<'_>, (start, wide): (usize, bool), out: &mut Vec<u8>) -> bool {
        if value.is_null() {
            if slot.null_mask == 0 {
                return slot.kind == SlotKind::Added;
            }
            out[start + usize::from(slot.null_byte)] |= slot.null_mask;
        }
        let position = slot.position as usize;
        if matches!(slot.kind, SlotKind::Variable | SlotKind::Json) {
            match value {
                ValueRef::Json(document) if slot.kind == SlotKind::Json => append_length_prefixed(document, out),
                ValueRef::Bytes(bytes) if slot.kind == SlotKind::Variable => append_length_prefixed(bytes, out),
                ValueRef::Null => out.push(NULL_MARK),
                _ => return false,
            }
            let end = out.len() - start - self.header_bytes(wide);
            let ends = start + self.ends_start as usize;
            match wide {
                true => out[ends + position * 4..][..4].copy_from_slice(&(end as u32).to_le_bytes()),
                false => out[ends + position * 2..][..2].copy_from_slice(&(end as u16).to_le_bytes()),
            }
            return true;
        }
        let bits = match (value, slot.kind) {
            // Added columns are appended afterwards.
            (ValueRef::Null, _) | (_, SlotKind::Added) => return true,
            (value, SlotKind::Packed) => {
                let column = &self.packed[position];
                let at = start + column.position as usize;
                return column.form.write(value, &mut out[at..at + column.form.bytes()]);
            }
            (value, kind) => match number_bits(value, kind) {
                Some(bits) => bits,
                None => return false,
            },
        };
        let width = slot.kind.fixed_bytes().unwrap_or(0);
        out[start + position..][..width].copy_from_slice(&bits.to_le_bytes()[..width]);
        true
    }
}

impl<'a> RowView<'a> {
    /// A view of an image in this format. The image must be valid ([`check_image`]) and without overflow
    /// references. A caller that received it from outside its own partition checks it first.
    #[inline]
    pub fn new(format: &'a RowFormat, image: &'a [u8]) -> RowView<'a> {
        RowView { format, image }
    }

    /// The value of a column.
    #[inline]
    pub fn column(&self, column: ColumnNumber) -> ValueRef<'a> {
        self.value_at(self.format.slots[usize::from(column.0)])
    }

    /// Like [`Self::column`], for a column whose position is known.
    #[inline(always)]
    pub(crate) fn value_at(&self, slot: Slot) -> ValueRef<'a> {
        match self.field_at(slot) {
            Field::Int(value) => ValueRef::Int(value),
            Field::Bytes(bytes) => ValueRef::Bytes(bytes),
            Field::UInt(value) => ValueRef::UInt(value),
            Field::Double(value) => ValueRef::Double(value),
            Field::Null => ValueRef::Null,
            Field::Packed(ordinal) => self.packed_value(ordinal),
            Field::Json(document) => ValueRef::Json(document),
            Field::Added(ordinal) => self.format.added_value(self.image, ordinal),
        }
    }

    /// The value of a column in a form that row encoders match on directly, without a copy in memory.
    #[inline(always)]
    pub(crate) fn field_at(&self, slot: Slot) -> Field<'a> {
        if self.is_null_at(slot) {
            return Field::Null;
        }
        let at = slot.position as usize;
        match slot.kind {
            SlotKind::Int32 => Field::Int(i64::from(i32::from_le_bytes(bytes_at(self.image, at)))),
            SlotKind::UInt32 => Field::UInt(u64::from(u32::from_le_bytes(bytes_at(self.image, at)))),
            SlotKind::Int64 => Field::Int(i64::from_le_bytes(bytes_at(self.image, at))),
            SlotKind::UInt64 => Field::UInt(u64::from_le_bytes(bytes_at(self.image, at))),
            SlotKind::Variable => Field::Bytes(value_of_wire(&self.image[self.format.var_extent(self.image, at, at)])),
            SlotKind::Double => Field::Double(f64::from_le_bytes(bytes_at(self.image, at))),
            SlotKind::Packed => Field::Packed(at),
            SlotKind::Added => Field::Added(at),
            SlotKind::Json => {
                let extent = self.format.var_extent(self.image, at, at);
                Field::Json(value_of_wire(&self.image[extent]))
            }
            SlotKind::Int8 => Field::Int(i64::from(self.image[at] as i8)),
            SlotKind::UInt8 => Field::UInt(u64::from(self.image[at])),
            SlotKind::Int16 => Field::Int(i64::from(i16::from_le_bytes(bytes_at(self.image, at)))),
            SlotKind::UInt16 => Field::UInt(u64::from(u16::from_le_bytes(bytes_at(self.image, at)))),
            SlotKind::Int24 => {
                let [low, middle, high] = bytes_at(self.image, at);
                Field::Int(i64::from(i32::from_le_bytes([0, low, middle, high]) >> 8))
            }
            SlotKind::UInt24 => {
                let [low, middle, high] = bytes_at(self.image, at);
                Field::UInt(u64::from(u32::from_le_bytes([low, middle, high, 0])))
            }
        }
    }

    #[inline(never)]
    fn packed_value(&self, ordinal: usize) -> ValueRef<'a> {
        let column = &self.format.packed[ordinal];
        let at = column.position as usize;
        let bytes = &self.image[at..at + column.form.bytes()];
        column.form.read(bytes, column.members.as_deref())
    }

    /// The big-endian number of a packed column in its low bits. The bits above are those of other columns.
    #[inline(always)]
    pub(crate) fn word_at(&self, place: PackedPlace) -> u64 {
        u64::from_be_bytes(bytes_at(self.image, place.start as usize)) >> place.shift
    }

    /// Whether the column with this slot is NULL.
    #[inline(always)]
    pub(crate) fn is_null_at(&self, slot: Slot) -> bool {
        slot.null_mask != 0 && self.image[usize::from(slot.null_byte)] & slot.null_mask != 0
    }

    /// The value of a column for which [`Slot::is_plain_int`] holds.
    #[inline(always)]
    pub(crate) fn int_at(&self, slot: Slot) -> i32 {
        i32::from_le_bytes(bytes_at(self.image, slot.position as usize))
    }

    /// The adjacent wire forms of the variable columns with ordinals from `first` to `last`.
    #[inline(always)]
    pub(crate) fn wire_run(&self, first: u16, last: u16) -> &'a [u8] {
        &self.image[self.format.var_extent(self.image, usize::from(first), usize::from(last))]
    }

    /// Whether any column but the added ones is NULL.
    #[inline]
    pub(crate) fn has_null(&self) -> bool {
        self.image[1..self.format.fixed_start as usize].iter().any(|bits| *bits != 0)
    }

    /// Whether a column is NULL.
    #[inline]
    pub fn is_null(&self, column: ColumnNumber) -> bool {
        let slot = &self.format.slots[usize::from(column.0)];
        match slot.kind {
            SlotKind::Added => self.column(column).is_null(),
            _ => self.image[usize::from(slot.null_byte)] & slot.null_mask != 0,
        }
    }

    /// The bytes of the whole row.
    #[inline]
    pub fn image(&self) -> &'a [u8] {
        self.image
    }

    /// The format of the image.
    #[inline]
    pub fn format(&self) -> &'a RowFormat {
        self.format
    }
}

/// Whether an image without overflow references is valid: known flags, unused null bits zero, ends that
/// ascend to exactly the end of the variable data, every variable value in its wire form, NULL columns zero
/// or the mark of NULL, and after them only values of added columns. Reading a valid image through a
/// [`RowView`] cannot fail.
pub fn check_image(format: &RowFormat, image: &[u8]) -> bool {
    let Some(flags) = image.first() else { return false };
    let wide = flags & FLAG_WIDE != 0;
    let header = format.header_bytes(wide);
    if flags & !FLAG_WIDE != 0 || image.len() < header || image.len() > limit::ROW_BYTES_MAX {
        return false;
    }
    // Only the last byte of null bits can have unused ones.
    let last = format.fixed_start as usize - 1;
    let in_last = format.slots.iter().filter(|slot| usize::from(slot.null_byte) == last);
    let used = in_last.fold(0, |used, slot| used | slot.null_mask);
    if last > 0 && image[last] & !used != 0 {
        return false;
    }
    let data_bytes = image.len() - header;
    let mut before = 0;
    for ordinal in 0..format.variable_columns.len() {
        let end = format.var_end(image, wide, ordinal);
        if end < before || end > data_bytes {
            return false;
        }
        before = end;
    }
    // A wide image whose data fits in 16 bits would be a second encoding of the same row.
    if wide && before <= usize::from(u16::MAX) {
        return false;
    }
    format.slots.iter().all(|slot| is_well_formed(format, slot, image))
        && format.is_added_well_formed(&image[header + before..])
}

impl RowFormat {
    /// Whether a column is a JSON document.
    pub(crate) fn is_json(&self, slot: Slot) -> bool {
        slot.kind == SlotKind::Json
    }

    /// The form that the values of an added column would have in another column: its kind, and the form of
    /// packed ones. `None` for other columns.
    pub(crate) fn added_form(&self, slot: Slot) -> Option<(SlotKind, Option<Packed>)> {
        (slot.kind == SlotKind::Added).then(|| self.added[slot.position as usize].form())
    }

    /// The form of a packed column.
    pub(crate) fn packed(&self, slot: Slot) -> Option<Packed> {
        (slot.kind == SlotKind::Packed).then(|| self.packed[slot.position as usize].form)
    }

    /// Where to read a packed column of at most eight bytes with a single load. `None` if images can be too
    /// short for that, or if the column is wider.
    pub(crate) fn packed_place(&self, slot: Slot) -> Option<PackedPlace> {
        const WORD_BYTES: usize = size_of::<u64>();
        let column = &self.packed[slot.position as usize];
        let end = column.position as usize + column.form.bytes();
        let start = end.saturating_sub(WORD_BYTES);
        let is_covered = column.form.bytes() <= WORD_BYTES && start + WORD_BYTES <= self.header_bytes(false);
        is_covered.then_some(PackedPlace { start: start as u32, shift: 8 * (start + WORD_BYTES - end) as u8 })
    }
}

impl Slot {
    /// Whether the column is an INT that is never NULL.
    pub(crate) fn is_plain_int(self) -> bool {
        self.kind == SlotKind::Int32 && self.null_mask == 0
    }

    /// Whether a binary-protocol row encodes the column in this wire type without conversion: a number of the
    /// same width, or a string with its length.
    pub(crate) fn is_of_wire_type(self, wire_type: u8) -> bool {
        self.kind.is_of_wire_type(wire_type)
    }

    /// Bytes of the number in a binary row: its width, but 4 for a width of 3; 0 for a string.
    pub(crate) fn wire_bytes(self) -> u8 {
        match self.kind.fixed_bytes() {
            Some(3) => 4,
            width => width.unwrap_or(0) as u8,
        }
    }
}

impl SlotKind {
    /// As [`Slot::is_of_wire_type`].
    pub(crate) fn is_of_wire_type(self, wire_type: u8) -> bool {
        match self {
            SlotKind::Int8 | SlotKind::UInt8 => wire_type == wire_type::TINY,
            SlotKind::Int16 | SlotKind::UInt16 => wire_type == wire_type::SHORT,
            SlotKind::Int24 | SlotKind::UInt24 => wire_type == wire_type::INT24,
            SlotKind::Int32 | SlotKind::UInt32 => wire_type == wire_type::LONG,
            SlotKind::Int64 | SlotKind::UInt64 => wire_type == wire_type::LONGLONG,
            SlotKind::Double => wire_type == wire_type::DOUBLE,
            SlotKind::Packed | SlotKind::Json | SlotKind::Added => false,
            SlotKind::Variable => {
                use wire_type::{BLOB, GEOMETRY, STRING, VAR_STRING, VECTOR};
                matches!(wire_type, VAR_STRING | STRING | BLOB | VECTOR | GEOMETRY)
            }
        }
    }

    fn is_unsigned(self) -> bool {
        use SlotKind::{UInt8, UInt16, UInt24, UInt32, UInt64};
        matches!(self, UInt8 | UInt16 | UInt24 | UInt32 | UInt64)
    }

    /// The bytes in the fixed part; `None` in the variable part.
    pub(crate) fn fixed_bytes(self) -> Option<usize> {
        match self {
            SlotKind::Int8 | SlotKind::UInt8 => Some(1),
            SlotKind::Int16 | SlotKind::UInt16 => Some(2),
            SlotKind::Int24 | SlotKind::UInt24 => Some(3),
            SlotKind::Int32 | SlotKind::UInt32 => Some(4),
            SlotKind::Int64 | SlotKind::UInt64 | SlotKind::Double => Some(8),
            SlotKind::Variable | SlotKind::Json | SlotKind::Packed | SlotKind::Added => None,
        }
    }

    /// Whether an integer is in the range of an integer slot.
    fn holds(self, value: i128) -> bool {
        let bits = self.fixed_bytes().unwrap_or(0) as u32 * 8;
        match self {
            SlotKind::UInt8 | SlotKind::UInt16 | SlotKind::UInt24 | SlotKind::UInt32 | SlotKind::UInt64 => {
                value >= 0 && value < 1i128 << bits
            }
            SlotKind::Int8 | SlotKind::Int16 | SlotKind::Int24 | SlotKind::Int32 | SlotKind::Int64 => {
                value >= -(1i128 << (bits - 1)) && value < 1i128 << (bits - 1)
            }
            SlotKind::Double | SlotKind::Packed | SlotKind::Json | SlotKind::Variable | SlotKind::Added => false,
        }
    }
}

/// The bits of a number in a column of this kind; `None` if it does not fit.
#[inline(always)]
fn number_bits(value: ValueRef<'_>, kind: SlotKind) -> Option<u64> {
    match (value, kind) {
        (ValueRef::Double(value), SlotKind::Double) => Some(value.to_bits()),
        (_, SlotKind::Double) => None,
        (ValueRef::Int(value), kind) if kind.holds(i128::from(value)) => Some(value as u64),
        (ValueRef::UInt(value), kind) if kind.holds(i128::from(value)) => Some(value),
        _ => None,
    }
}

#[inline(always)]
fn bytes_at<const N: usize>(image: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&image[at..at + N]);
    bytes
}

/// The bytes after the length in a wire form; none for NULL.
#[inline(always)]
fn value_of_wire(wire: &[u8]) -> &[u8] {
    match wire[0] {
        0..=NULL_MARK => &wire[1..],
        mark => long_value_of_wire(mark, wire),
    }
}

#[cold]
fn long_value_of_wire(mark: u8, wire: &[u8]) -> &[u8] {
    let length_bytes = match mark {
        0xFC => 3,
        0xFD => 4,
        _ => 9,
    };
    &wire[length_bytes..]
}

/// Whether a NULL is empty, and whether a variable value has the length that its prefix states.
fn is_well_formed(format: &RowFormat, slot: &Slot, image: &[u8]) -> bool {
    let is_null = image[usize::from(slot.null_byte)] & slot.null_mask != 0;
    let at = slot.position as usize;
    match slot.kind {
        SlotKind::Variable | SlotKind::Json if is_null => image[format.var_extent(image, at, at)] == [NULL_MARK],
        SlotKind::Variable | SlotKind::Json => {
            // A length has exactly one valid form, so equal values have equal images.
            let wire = &image[format.var_extent(image, at, at)];
            let Some((prefix_bytes, length)) = prefix_of(wire) else { return false };
            let is_whole = prefix_bytes + length == wire.len() && length_bytes(length) == prefix_bytes;
            is_whole && (slot.kind != SlotKind::Json || crate::json::is_valid(&wire[prefix_bytes..]))
        }
        SlotKind::Packed => {
            let column = &format.packed[at];
            let bytes = &image[column.position as usize..][..column.form.bytes()];
            match is_null {
                true => bytes.iter().all(|byte| *byte == 0),
                false => column.form.is_valid(bytes, column.members.as_deref()),
            }
        }
        kind => !is_null || image[at..][..kind.fixed_bytes().unwrap_or(0)].iter().all(|byte| *byte == 0),
    }
}

/// Bytes of a length-encoded integer, and the length that it states; `None` for NULL and damaged bytes.
fn prefix_of(wire: &[u8]) -> Option<(usize, usize)> {
    match *wire {
        [length, ..] if length < NULL_MARK => Some((1, usize::from(length))),
        [0xFC, a, b, ..] => Some((3, usize::from(u16::from_le_bytes([a, b])))),
        [0xFD, a, b, c, ..] => Some((4, u32::from_le_bytes([a, b, c, 0]) as usize)),
        [0xFE, a, b, c, d, 0, 0, 0, 0, ..] => Some((9, u32::from_le_bytes([a, b, c, d]) as usize)),
        _ => None,
    }
}

#[cold]
fn row_too_large() -> Box<Error> {
    let message = format!(
        "Row size too large. The maximum row size for the used table type, counting BLOBs, is {}",
        limit::ROW_BYTES_MAX
    );
    Error::new(ErrorCode::RowTooLarge, message)
}

#[cold]
fn value_does_not_fit(column: usize, is_null: bool) -> Box<Error> {
    match is_null {
        true => Error::new(ErrorCode::ColumnNotNull, format!("Column number {} cannot be null", column + 1)),
        false => {
            Error::new(ErrorCode::UnknownError, format!("A value is not of the type of column number {}", column + 1))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
