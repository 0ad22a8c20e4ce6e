//! Hot path: at most 15 instructions per unit.
//!
//! Collations that pad texts with spaces and whose texts are sequences of numbers, the units. A space is the
//! unit 0x20. `padding.rs` describes the keys.

use std::cmp::Ordering;

use super::character::{INVALID_FIRST, decode};
use super::padding::{self, SPACE};

/// The units of one character.
pub(super) trait Units: Copy {
    /// The units, in a buffer or in a table. A byte outside any character is its own code.
    fn of(self, code: u32, buffer: &mut [u32; UNITS_MAX]) -> usize;
}

/// Maximum number of units of one character.
pub(super) const UNITS_MAX: usize = 8;

/// The units of a text, one after the other.
struct Cursor<'t, U> {
    rest: &'t [u8],
    units: U,
    buffer: [u32; UNITS_MAX],
    next: usize,
    count: usize,
}

impl<'t, U: Units> Cursor<'t, U> {
    fn new(units: U, text: &'t [u8]) -> Self {
        Self { rest: text, units, buffer: [0; UNITS_MAX], next: 0, count: 0 }
    }
}

impl<U: Units> Iterator for Cursor<'_, U> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while self.next == self.count {
            let (code, bytes) = decode(self.rest)?;
            self.rest = &self.rest[bytes..];
            self.next = 0;
            self.count = self.units.of(code, &mut self.buffer);
        }
        self.next += 1;
        Some(self.buffer[self.next - 1])
    }
}

/// Whether two characters have the same units.
pub(super) fn same_character(units: impl Units, left: u32, right: u32) -> bool {
    let (mut left_buffer, mut right_buffer) = ([0; UNITS_MAX], [0; UNITS_MAX]);
    let (left_count, right_count) = (units.of(left, &mut left_buffer), units.of(right, &mut right_buffer));
    left == right || left_buffer[..left_count] == right_buffer[..right_count]
}

/// The order of two texts.
pub(super) fn compare(units: impl Units, left: &[u8], right: &[u8]) -> Ordering {
    let (mut left, mut right) = (Cursor::new(units, left), Cursor::new(units, right));
    let space = u32::from(SPACE);
    loop {
        let (a, b) = (left.next(), right.next());
        let order = a.unwrap_or(space).cmp(&b.unwrap_or(space));
        if order != Ordering::Equal || a.is_none() && b.is_none() {
            return order;
        }
    }
}

/// Appends the key of `text`.
pub(super) fn append_key(units: impl Units, text: &[u8], out: &mut Vec<u8>) {
    let mut spaces: u32 = 0;
    for unit in Cursor::new(units, text) {
        if unit == u32::from(SPACE) {
            spaces = spaces.saturating_add(1);
            continue;
        }
        if spaces > 0 {
            padding::append_spaces(spaces, unit < u32::from(SPACE), out);
            spaces = 0;
        }
        append_unit(unit, out);
    }
    out.push(SPACE);
}

/// Appends the bytes with which the keys of all texts begin whose first characters have the units of
/// `prefix`. The key of a space depends on the characters after it, so the prefix ends before the first one.
pub(super) fn append_prefix_key(units: impl Units, prefix: &[u8], out: &mut Vec<u8>) {
    for unit in Cursor::new(units, prefix) {
        if unit == u32::from(SPACE) {
            return;
        }
        append_unit(unit, out);
    }
}

fn append_unit(unit: u32, out: &mut Vec<u8>) {
    let tail = |shift: u32| 0x80 | (unit >> shift & 0x3F) as u8;
    match unit {
        0x1F => out.extend_from_slice(&[padding::BELOW_SPACE, 0]),
        0..=0x7F => out.push(unit as u8),
        0x80..=0x7FF => out.extend_from_slice(&[0xC0 | (unit >> 6) as u8, tail(0)]),
        0x800..=0xFFFF => out.extend_from_slice(&[0xE0 | (unit >> 12) as u8, tail(6), tail(0)]),
        _ => out.extend_from_slice(&[0xFF, (unit - INVALID_FIRST) as u8]),
    }
}
