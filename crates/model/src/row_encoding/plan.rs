//! Hot path: at most 30 instructions per number, and 20 plus one copy per run of adjacent strings.
//!
//! Encodes result rows whose values are plain columns.

use super::binary::{append_binary_number, append_binary_value, begin_binary_row};
use super::number::{SCALED_DIGITS_MAX, ScaledLayout, append_scaled_prefixed, append_signed_prefixed};
use super::packet::{NULL_MARK, begin_packet, end_packet};
use super::result_column::{ResultColumn, wire_type};
use super::stored::{append_binary_date, append_binary_date_time, append_date, append_date_time};
use super::text::{append_formatted, append_text_field, append_text_value, filled_width, is_formatted};
use crate::id::ColumnNumber;
use crate::row::{PackedPlace, RowFormat, RowView, Slot, SlotKind};
use crate::types::Packed;

/// How to encode a result row whose columns are plain table columns. Strings are stored in their wire form,
/// so strings that are adjacent both in the row and in the result are copied together.
#[derive(Clone, Debug)]
pub struct RowPlan {
    steps: Box<[Step]>,
    columns: Box<[(ColumnNumber, u8)]>,
    /// Whether a column is one that ALTER TABLE added without touching the rows. Its NULL has no bit.
    has_added: bool,
}

// With a tag of its own, which costs fewer instructions than one between the values of a field.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
enum Step {
    /// An INT that is never NULL.
    Int {
        slot: Slot,
    },
    /// Another column of the fixed part, and its number of bytes in a binary row.
    Number {
        slot: Slot,
        wire_bytes: u8,
    },
    /// Adjacent variable columns, by their ordinals, both ends included.
    Run {
        first: u16,
        last: u16,
    },
    /// A number whose text has fixed digits or leading zeros.
    Formatted {
        slot: Slot,
        decimals: u8,
        width: u8,
        wire_type: u8,
    },
    // Columns whose bytes are printed without a value between: DECIMAL of up to 18 digits, DATE, and DATETIME
    // without digits after the point of the seconds.
    Decimal {
        slot: Slot,
        place: PackedPlace,
        layout: ScaledLayout,
    },
    Date {
        slot: Slot,
        place: PackedPlace,
    },
    DateTime {
        slot: Slot,
        place: PackedPlace,
    },
    /// A column that does not print as its wire type.
    Encoded {
        slot: Slot,
        wire_type: u8,
    },
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
        let mut has_added = false;
        for ((column, wire_type), (_, result)) in columns.iter().zip(&results) {
            let slot = format.slot(*column);
            if let Some((kind, packed)) = format.added_form(slot) {
                let is_printed = match packed {
                    Some(packed) => !matches!(packed, Packed::Timestamp(_)),
                    None => kind == SlotKind::Json || kind.is_of_wire_type(*wire_type),
                };
                if is_formatted(result) || !is_printed {
                    return None;
                }
                steps.push(Step::Encoded { slot, wire_type: *wire_type });
                has_added = true;
                continue;
            }
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
                    let direct =
                        format.packed_place(slot).and_then(|place| direct_step((packed, *wire_type), slot, place));
                    steps.push(direct.unwrap_or(Step::Encoded { slot, wire_type: *wire_type }));
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
        Some(RowPlan { steps: steps.into(), columns, has_added })
    }

    /// Appends a row of the text protocol as a whole packet.
    #[inline(always)]
    pub fn append_text(&self, row: RowView<'_>, out: &mut Vec<u8>) {
        let packet = begin_packet(out);
        for step in &self.steps {
            match *step {
                Step::Run { first, last } => out.extend_from_slice(row.wire_run(first, last)),
                Step::Int { slot } => append_signed_prefixed(row.int_at(slot).into(), out),
                ref other => append_other_text(other, row, out),
            }
        }
        end_packet(out, packet);
    }

    /// Appends a row of the binary protocol as a whole packet.
    #[inline(always)]
    pub fn append_binary(&self, row: RowView<'_>, out: &mut Vec<u8>) {
        let packet = begin_binary_row(self.columns.len(), out);
        // A NULL has no bytes in a binary row, so runs of strings cannot be copied as they are.
        if self.has_added || row.has_null() {
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
                Step::Decimal { place, ref layout, .. } => append_scaled_prefixed(row.word_at(place), layout, out),
                Step::Date { place, .. } => append_binary_date(row.word_at(place), out),
                Step::DateTime { place, .. } => append_binary_date_time(row.word_at(place), out),
                Step::Encoded { slot, wire_type } | Step::Formatted { slot, wire_type, .. } => {
                    append_encoded_binary(row, slot, wire_type, out);
                }
            }
        }
        packet.end(out);
    }
}

/// The text of any step. The loop over the steps has those of integers and strings itself. In a function of
/// its own, because the loop over the steps would run out of registers, which costs rows of integers and
/// strings ten instructions.
#[inline(never)]
fn append_other_text(step: &Step, row: RowView<'_>, out: &mut Vec<u8>) {
    match *step {
        Step::Decimal { slot, .. } | Step::Date { slot, .. } | Step::DateTime { slot, .. } if row.is_null_at(slot) => {
            out.push(NULL_MARK);
        }
        Step::Decimal { place, ref layout, .. } => append_scaled_prefixed(row.word_at(place), layout, out),
        Step::Date { place, .. } => append_date(row.word_at(place), out),
        Step::DateTime { place, .. } => append_date_time(row.word_at(place), out),
        Step::Encoded { slot, .. } => append_encoded_text(row, slot, out),
        Step::Formatted { slot, decimals, width, .. } => append_formatted_text(row, slot, (decimals, width), out),
        Step::Run { first, last } => out.extend_from_slice(row.wire_run(first, last)),
        Step::Int { slot } => append_signed_prefixed(row.int_at(slot).into(), out),
        Step::Number { slot, .. } => append_text_field(row.field_at(slot), out),
    }
}

/// The step that prints a packed column of this form and wire type from its bytes, if there is one.
fn direct_step(sent: (Packed, u8), slot: Slot, place: PackedPlace) -> Option<Step> {
    match sent {
        (packed @ Packed::Decimal { precision, scale }, wire_type::NEWDECIMAL) if precision <= SCALED_DIGITS_MAX => {
            Some(Step::Decimal { slot, place, layout: ScaledLayout::new(packed.bytes() as u32, scale) })
        }
        (Packed::Date, wire_type::DATE) => Some(Step::Date { slot, place }),
        (Packed::DateTime(0), wire_type::DATETIME) => Some(Step::DateTime { slot, place }),
        _ => None,
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
