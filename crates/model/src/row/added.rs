//! Columns that ALTER TABLE added without touching the rows (`docs/decisions/0060-added-columns.md`).
//!
//! Their values follow the variable data of an image, in the order in which the columns were added. Each has
//! the bytes of the fixed or variable part, preceded by their length as a length-encoded integer; NULL is the
//! mark FB. Last values that equal those of rows without them are left out. So a row from before the ALTER
//! TABLE is also the image of its present values, and equal rows have equal images.
//!
//! A virtual generated column among them is unstored (`docs/decisions/0076-unstored-virtual-columns.md`):
//! rows never have its value, whatever they are encoded from, and statements compute it.

use std::ops::Range;
use std::sync::Arc;

use super::{RowFormat, SlotKind, number_bits, prefix_of, value_does_not_fit, value_of_wire};
use crate::error::Result;
use crate::id::ColumnNumber;
use crate::row_encoding::{NULL_MARK, append_length_prefixed, length_bytes};
use crate::schema::{ColumnDefinition, ExpressionKind};
use crate::types::{Members, Packed};
use crate::value::{Value, ValueRef};

/// A column that ALTER TABLE added without touching the rows, and its value in them.
#[derive(Clone, Debug, PartialEq)]
pub struct AddedColumn {
    /// Columns with lower numbers were added earlier.
    pub order: u16,
    /// The value of rows that do not have one. It has the type of the column, and never changes.
    pub value: Value,
}

/// How rows have the values of an added column.
#[derive(Clone, Debug)]
pub(super) struct AddedSlot {
    /// The position of the column in the table.
    column: u16,
    /// The form that its values would have in another column.
    kind: SlotKind,
    packed: Option<Packed>,
    members: Option<Arc<Members>>,
    nullable: bool,
    /// The value of rows that do not have one, as an image would have it.
    missing: Box<[u8]>,
    /// The definition of an unstored column.
    unstored: Option<Box<ColumnDefinition>>,
}

impl AddedSlot {
    /// The added columns of a table, in the order in which they were added.
    pub fn all(columns: &[ColumnDefinition]) -> Box<[AddedSlot]> {
        let added =
            columns.iter().enumerate().filter_map(|(position, column)| Some((position, column.added.as_ref()?)));
        let mut added: Vec<(usize, &AddedColumn)> = added.map(|(position, added)| (position, &**added)).collect();
        added.sort_by_key(|(_, added)| added.order);
        added.iter().map(|(position, added)| AddedSlot::new(&columns[*position], *position, &added.value)).collect()
    }

    fn new(column: &ColumnDefinition, position: usize, value: &Value) -> AddedSlot {
        let mut slot = AddedSlot {
            column: position as u16,
            kind: column.column_type.slot(),
            packed: column.column_type.packed(),
            members: column.column_type.members().cloned(),
            nullable: column.nullable,
            missing: Box::default(),
            unstored: column.is_unstored().then(|| Box::new(column.clone())),
        };
        let mut missing = Vec::new();
        // `is_valid_addition` has refused such a value.
        if !slot.append(value.as_ref(), &mut missing) {
            missing = vec![NULL_MARK];
        }
        slot.missing = missing.into();
        slot
    }

    /// The position of the column in the table.
    pub fn column(&self) -> usize {
        usize::from(self.column)
    }

    /// The form of the column's values: its kind, and the form of packed ones.
    pub fn form(&self) -> (SlotKind, Option<Packed>) {
        (self.kind, self.packed)
    }

    /// Appends a value; false if it does not fit the column.
    fn append(&self, value: ValueRef<'_>, out: &mut Vec<u8>) -> bool {
        // Whether or not the writer has computed it, images have no value of an unstored column.
        let value = if self.unstored.is_some() { ValueRef::Null } else { value };
        match (value, self.kind, self.packed) {
            (ValueRef::Null, ..) => {
                out.push(NULL_MARK);
                self.nullable
            }
            (ValueRef::Json(bytes), SlotKind::Json, _) | (ValueRef::Bytes(bytes), SlotKind::Variable, _) => {
                append_length_prefixed(bytes, out);
                true
            }
            (value, SlotKind::Packed, Some(form)) => {
                out.push(form.bytes() as u8);
                let at = out.len();
                out.resize(at + form.bytes(), 0);
                form.write(value, &mut out[at..])
            }
            (value, kind, _) => {
                let (Some(bits), Some(width)) = (number_bits(value, kind), kind.fixed_bytes()) else { return false };
                out.push(width as u8);
                out.extend_from_slice(&bits.to_le_bytes()[..width]);
                true
            }
        }
    }

    /// The value of valid bytes.
    fn read<'a>(&'a self, wire: &'a [u8]) -> ValueRef<'a> {
        if *wire == [NULL_MARK] {
            return ValueRef::Null;
        }
        let bytes = value_of_wire(wire);
        match (self.kind, self.packed) {
            (SlotKind::Json, _) => ValueRef::Json(bytes),
            (SlotKind::Packed, Some(form)) => form.read(bytes, self.members.as_deref()),
            (SlotKind::Variable | SlotKind::Packed | SlotKind::Added, _) => ValueRef::Bytes(bytes),
            (kind, _) => {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                let (bits, unused) = (u64::from_le_bytes(word), 64 - 8 * bytes.len() as u32);
                match kind {
                    SlotKind::Double => ValueRef::Double(f64::from_bits(bits)),
                    kind if kind.is_unsigned() => ValueRef::UInt(bits),
                    _ => ValueRef::Int((bits as i64) << unused >> unused),
                }
            }
        }
    }

    fn is_well_formed(&self, wire: &[u8]) -> bool {
        if *wire == [NULL_MARK] {
            return self.nullable;
        }
        if self.unstored.is_some() {
            return false;
        }
        let bytes = value_of_wire(wire);
        match (self.kind, self.packed) {
            (SlotKind::Variable, _) => true,
            (SlotKind::Json, _) => crate::json::is_valid(bytes),
            (SlotKind::Packed, Some(form)) => {
                bytes.len() == form.bytes() && form.is_valid(bytes, self.members.as_deref())
            }
            (kind, _) => kind.fixed_bytes() == Some(bytes.len()),
        }
    }
}

impl RowFormat {
    /// Number of columns that ALTER TABLE added without touching the rows.
    pub fn added_column_count(&self) -> usize {
        self.added.len()
    }

    /// The definition of a column if it is unstored. Its value is that of an expression, converted to the
    /// type of the column.
    pub fn unstored_column(&self, column: ColumnNumber) -> Option<&ColumnDefinition> {
        let slot = self.slots.get(usize::from(column.0)).filter(|slot| slot.kind == SlotKind::Added)?;
        self.added[slot.position as usize].unstored.as_deref()
    }

    /// The range in an image of the values of added columns; empty if the row has none.
    pub fn added_extent(&self, image: &[u8]) -> Range<usize> {
        let start = match self.variable_columns.len() {
            0 => self.ends_start as usize,
            count => self.var_extent(image, count - 1, count - 1).end,
        };
        start..image.len()
    }

    /// The value of an added column.
    #[inline(never)]
    pub(super) fn added_value<'a>(&'a self, image: &'a [u8], ordinal: usize) -> ValueRef<'a> {
        let slot = &self.added[ordinal];
        let mut rest = &image[self.added_extent(image)];
        for _ in 0..ordinal {
            let Some(length) = wire_length(rest) else { break };
            rest = &rest[length..];
        }
        match wire_length(rest) {
            Some(length) => slot.read(&rest[..length]),
            None => slot.read(&slot.missing),
        }
    }

    /// Appends the values of the added columns to the image that begins at `start`. `out` ends at `start`
    /// after an error.
    #[inline(never)]
    pub(super) fn append_added(&self, values: &[ValueRef<'_>], start: usize, out: &mut Vec<u8>) -> Result<()> {
        let mut end = out.len();
        for slot in &self.added {
            let at = out.len();
            let value = values[slot.column()];
            if !slot.append(value, out) {
                out.truncate(start);
                return Err(value_does_not_fit(slot.column(), value.is_null()));
            }
            if out[at..] != *slot.missing {
                end = out.len();
            }
        }
        out.truncate(end);
        Ok(())
    }

    /// Whether the bytes after the variable data are values of the added columns, without last ones that need
    /// not be there.
    pub(super) fn is_added_well_formed(&self, mut bytes: &[u8]) -> bool {
        let mut is_needed = true;
        for slot in &self.added {
            if bytes.is_empty() {
                break;
            }
            let Some(length) = checked_length(bytes) else { return false };
            let (wire, rest) = bytes.split_at(length);
            if !slot.is_well_formed(wire) {
                return false;
            }
            is_needed = *wire != *slot.missing;
            bytes = rest;
        }
        bytes.is_empty() && is_needed
    }
}

impl ColumnDefinition {
    /// Whether this is a virtual generated column whose values are not in the rows: ALTER TABLE added it
    /// without touching them. Such a column is nullable, and no key has it.
    pub fn is_unstored(&self) -> bool {
        let is_virtual = |kind: ExpressionKind| kind == ExpressionKind::Virtual;
        self.added.is_some() && self.expression.as_ref().is_some_and(|expression| is_virtual(expression.kind))
    }
}

/// Whether a column can have this value in rows that do not have one.
pub fn is_valid_addition(column: &ColumnDefinition, value: &Value) -> bool {
    AddedSlot::new(column, 0, &Value::Null).append(value.as_ref(), &mut Vec::new())
}

/// Bytes of the first value; `None` if there is none. The bytes are valid.
fn wire_length(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [] => None,
        [NULL_MARK, ..] => Some(1),
        bytes => prefix_of(bytes).map(|(prefix, length)| prefix + length),
    }
}

/// Bytes of the first value; `None` if it is damaged.
fn checked_length(bytes: &[u8]) -> Option<usize> {
    if bytes[0] == NULL_MARK {
        return Some(1);
    }
    let (prefix, length) = prefix_of(bytes)?;
    (length_bytes(length) == prefix && length <= bytes.len() - prefix).then_some(prefix + length)
}
