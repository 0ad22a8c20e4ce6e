//! Hot path: at most 30 instructions per number, and 20 plus one copy per run of adjacent strings.
//!
//! Encodes result rows whose values are plain columns.

use super::binary::{append_binary_number, append_binary_value, begin_binary_row};
use super::number::append_signed_prefixed;
use super::packet::{NULL_MARK, begin_packet, end_packet};
use super::result_column::ResultColumn;
use super::stored::StoredForm;
use super::text::{append_formatted, append_text_field, append_text_value, filled_width, is_formatted};
use crate::id::ColumnNumber;
use crate::row::{RowFormat, RowView, Slot};
use crate::types::Packed;

/// How to encode a result row whose columns are plain table columns. Strings are stored in their wire form,
/// so strings that are adjacent both in the row and in the result are copied together.
#[derive(Clone, Debug)]
pub struct RowPlan {
    steps: Box<[Step]>,
    columns: Box<[(ColumnNumber, u8)]>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// An INT that is never NULL.
    Int { slot: Slot },
    /// Another column of the fixed part, and its number of bytes in a binary row.
    Number { slot: Slot, wire_bytes: u8 },
    /// Adjacent variable columns, by their ordinals, both ends included.
    Run { first: u16, last: u16 },
    /// A number whose text has fixed digits or leading zeros.
    Formatted { slot: Slot, decimals: u8, width: u8, wire_type: u8 },
    /// A column whose bytes are printed without a value between.
    Stored { slot: Slot, form: StoredForm, position: u32, bytes: u8 },
    /// A column that does not print as its wire type.
    Encoded { slot: Slot, wire_type: u8 },
}

impl RowPlan {
    /// The plan for these columns of a table with this format. `None` if a column is sent to clients with
    /// another type than it is stored with.
    pub fn new<'c>(
        format: &RowFormat,
        columns: impl IntoIterator<Item = (ColumnNumber, &'c ResultColumn)>,
    ) -> Option<RowPlan> {
        let results: Vec<(ColumnNumber, &ResultColumn)> = columns.into_iter().collect();
        let columns: Box<[_]> = results.iter().map(|(column, result)| (*column, result.wire_type)).collect();
        let mut steps: Vec<Step> = Vec::with_capacity(columns.len());
        for ((column, wire_type), (_, result)) in columns.iter().zip(&results) {
            let slot = format.slot(*column);
            let is_stored_so = slot.is_of_wire_type(*wire_type) || format.packed(slot) == Some(Packed::Float);
            if is_formatted(result) && is_stored_so {
                let width = filled_width(result);
                steps.push(Step::Formatted { slot, decimals: result.decimals, width, wire_type: *wire_type });
                continue;
            }
            match format.packed(slot) {
                // Its text depends on the time zone of the session.
                Some(Packed::Timestamp(_)) => return None,
                // Its zeros are also in binary rows.
                Some(Packed::Decimal { .. } | Packed::WideDecimal { .. }) if is_formatted(result) => return None,
                None if format.is_json(slot) => {
                    steps.push(Step::Encoded { slot, wire_type: *wire_type });
                    continue;
                }
                Some(packed) => {
                    let (position, bytes) = (format.packed_position(slot), packed.bytes() as u8);
                    steps.push(match StoredForm::of(packed, *wire_type) {
                        Some(form) => Step::Stored { slot, form, position, bytes },
                        None => Step::Encoded { slot, wire_type: *wire_type },
                    });
                    continue;
                }
                None if !slot.is_of_wire_type(*wire_type) => return None,
                None => {}
            }
            match (format.var_ordinal(*column), steps.last_mut()) {
                (Some(ordinal), Some(Step::Run { last, .. })) if *last + 1 == ordinal => *last = ordinal,
                (Some(ordinal), _) => steps.push(Step::Run { first: ordinal, last: ordinal }),
                (None, _) if slot.is_plain_int() => steps.push(Step::Int { slot }),
                (None, _) => steps.push(Step::Number { slot, wire_bytes: slot.wire_bytes() }),
            }
        }
        Some(RowPlan { steps: steps.into(), columns })
    }

    /// Appends a row of the text protocol as a whole packet.
    #[inline(always)]
    pub fn append_text(&self, row: RowView<'_>, out: &mut Vec<u8>) {
        let packet = begin_packet(out);
        for step in &self.steps {
            match *step {
                Step::Run { first, last } => out.extend_from_slice(row.wire_run(first, last)),
                Step::Int { slot } => append_signed_prefixed(row.int_at(slot).into(), out),
                Step::Number { slot, .. } => append_text_field(row.field_at(slot), out),
                Step::Stored { slot, form, position, bytes } => match row.packed_bits(slot, position, bytes) {
                    Some(bits) => form.append_text(bits, u64::BITS - 8 * u32::from(bytes), out),
                    None => out.push(NULL_MARK),
                },
                Step::Encoded { slot, .. } => append_encoded_text(row, slot, out),
                Step::Formatted { slot, decimals, width, .. } => {
                    append_formatted_text(row, slot, (decimals, width), out);
                }
            }
        }
        end_packet(out, packet);
    }

    /// Appends a row of the binary protocol as a whole packet.
    #[inline(always)]
    pub fn append_binary(&self, row: RowView<'_>, out: &mut Vec<u8>) {
        let packet = begin_binary_row(self.columns.len(), out);
        // A NULL has no bytes in a binary row, so runs of strings cannot be copied as they are.
        if row.has_null() {
            for (ordinal, (column, wire_type)) in self.columns.iter().enumerate() {
                packet.append(ordinal, row.column(*column), *wire_type, out);
            }
            return packet.end(out);
        }
        for step in &self.steps {
            match *step {
                Step::Run { first, last } => out.extend_from_slice(row.wire_run(first, last)),
                Step::Int { slot } => out.extend_from_slice(&row.int_at(slot).to_le_bytes()),
                Step::Number { slot, wire_bytes } => append_binary_number(row.field_at(slot), wire_bytes, out),
                Step::Stored { slot, form, position, bytes } => {
                    if let Some(bits) = row.packed_bits(slot, position, bytes) {
                        form.append_binary(bits, u64::BITS - 8 * u32::from(bytes), out);
                    }
                }
                Step::Encoded { slot, wire_type } | Step::Formatted { slot, wire_type, .. } => {
                    append_encoded_binary(row, slot, wire_type, out);
                }
            }
        }
        packet.end(out);
    }
}

// Values of these steps are larger than registers. Separate functions keep them out of the loops above.

#[inline(never)]
fn append_encoded_text(row: RowView<'_>, slot: Slot, out: &mut Vec<u8>) {
    append_text_value(row.value_at(slot), out);
}

#[inline(never)]
fn append_formatted_text(row: RowView<'_>, slot: Slot, (decimals, width): (u8, u8), out: &mut Vec<u8>) {
    append_formatted(row.value_at(slot), decimals, width, out);
}

#[inline(never)]
fn append_encoded_binary(row: RowView<'_>, slot: Slot, wire_type: u8, out: &mut Vec<u8>) {
    append_binary_value(row.value_at(slot), wire_type, out);
}
