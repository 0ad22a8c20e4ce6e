//! Hot path: at most 70 instructions per value.
//!
//! DATE and DATETIME from their bytes in rows. The functions take words whose low bits are a column's bytes.

use super::number::{has_room, two_digits};

/// No value of these types takes more bytes in a row.
const VALUE_BYTES_MAX: usize = 20;

/// The bits of the time of day in a DATETIME.
const TIME_BITS: u32 = 17;

/// The fields of a DATE or of the day of a DATETIME.
#[derive(Clone, Copy)]
struct Day {
    year: u32,
    month: u32,
    day: u32,
}

/// The fields of the time of day.
#[derive(Clone, Copy)]
struct Time {
    hour: u32,
    minute: u32,
    second: u32,
}

#[inline(always)]
fn field(word: u64, shift: u32, width: u32) -> u32 {
    (word >> shift) as u32 & ((1 << width) - 1)
}

#[inline(always)]
fn day_of_date(word: u64) -> Day {
    Day { year: field(word, 9, 15), month: field(word, 5, 4), day: field(word, 0, 5) }
}

#[inline(always)]
fn day_of_date_time(word: u64) -> Day {
    // The highest bit of the column is the flipped sign, which is no part of the field.
    let months = field(word, 22, 17);
    Day { year: months / 13, month: months % 13, day: field(word, TIME_BITS, 5) }
}

#[inline(always)]
fn time_of_date_time(word: u64) -> Time {
    Time { hour: field(word, 12, 5), minute: field(word, 6, 6), second: field(word, 0, 6) }
}

/// Appends the text of a DATE, preceded by its length.
#[inline(never)]
pub(super) fn append_date(word: u64, out: &mut Vec<u8>) {
    if !has_room(11, out) {
        return grow_for(append_date, word, out);
    }
    out.extend_from_slice(b"\x0a0000-00-00");
    if let Some(text) = out.last_chunk_mut::<11>() {
        write_day(day_of_date(word), text);
    }
}

/// Appends the text of a DATETIME, preceded by its length.
#[inline(never)]
pub(super) fn append_date_time(word: u64, out: &mut Vec<u8>) {
    if !has_room(20, out) {
        return grow_for(append_date_time, word, out);
    }
    out.extend_from_slice(b"\x130000-00-00 00:00:00");
    let Some(text) = out.last_chunk_mut::<20>() else { return };
    let Time { hour, minute, second } = time_of_date_time(word);
    write_day(day_of_date_time(word), text);
    write_pair(hour, 12, text);
    write_pair(minute, 15, text);
    write_pair(second, 18, text);
}

/// Writes the digits of a day behind the length.
#[inline(always)]
fn write_day<const LENGTH: usize>(Day { year, month, day }: Day, text: &mut [u8; LENGTH]) {
    write_pair(year / 100, 1, text);
    write_pair(year % 100, 3, text);
    write_pair(month, 6, text);
    write_pair(day, 9, text);
}

#[inline(always)]
fn write_pair<const LENGTH: usize>(number: u32, at: usize, text: &mut [u8; LENGTH]) {
    text[at..at + 2].copy_from_slice(&two_digits(number));
}

/// Appends a DATE as a binary row has it: the length, and the fields if one of them is not 0.
#[inline(never)]
pub(super) fn append_binary_date(word: u64, out: &mut Vec<u8>) {
    if !has_room(8, out) {
        return grow_for(append_binary_date, word, out);
    }
    append_binary_day(day_of_date(word), out);
}

/// Appends a DATETIME as a binary row has it: the length, and the fields up to the last one that is not 0.
#[inline(never)]
pub(super) fn append_binary_date_time(word: u64, out: &mut Vec<u8>) {
    if !has_room(8, out) {
        return grow_for(append_binary_date_time, word, out);
    }
    if word & ((1 << TIME_BITS) - 1) == 0 {
        return append_binary_midnight(word, out);
    }
    let Time { hour, minute, second } = time_of_date_time(word);
    let time = u64::from(hour) | u64::from(minute) << 8 | u64::from(second) << 16;
    out.extend_from_slice(&(7 | day_bytes(day_of_date_time(word)) << 8 | time << 40).to_le_bytes());
}

// Apart, so that a value with a time saves no registers.
#[inline(never)]
fn append_binary_midnight(word: u64, out: &mut Vec<u8>) {
    append_binary_day(day_of_date_time(word), out);
}

#[inline(always)]
fn append_binary_day(day: Day, out: &mut Vec<u8>) {
    let bytes = day_bytes(day);
    match bytes {
        0 => out.push(0),
        bytes => out.extend_from_slice(&(4 | bytes << 8).to_le_bytes()[..5]),
    }
}

/// The four bytes of a day in a binary row.
#[inline(always)]
fn day_bytes(Day { year, month, day }: Day) -> u64 {
    u64::from(year | month << 16 | day << 24)
}

/// Makes room for another value, and appends it.
#[cold]
#[inline(never)]
fn grow_for(append: fn(u64, &mut Vec<u8>), word: u64, out: &mut Vec<u8>) {
    out.reserve(VALUE_BYTES_MAX);
    append(word, out);
}
