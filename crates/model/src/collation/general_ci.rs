//! Hot path: at most 1 instruction per character of ASCII text without spaces, 10 of other ASCII.
//!
//! `utf8mb4_general_ci`: every character has one weight, and texts are padded with spaces.
//!
//! ASCII letters have the weight of their upper case form, other ASCII characters their own code. Characters
//! of the basic plane have their weight in a table. All supplementary characters share the weight 0xFFFD.

use std::cmp::Ordering;

use super::character::{INVALID_FIRST, all_within, decode, skip_equal_ascii};
use super::padding::{self, SPACE};
use super::table::{self, Shape};

static BLOB: &[u8] = include_bytes!("tables/general_ci.bin");
const SHAPE: Shape = Shape::of(BLOB);
static INDEX: [u16; SHAPE.index_count] = table::decode_numbers(BLOB, SHAPE.index_start());
static PAGES: [u16; SHAPE.page_number_count()] = table::decode_numbers(BLOB, SHAPE.pages_start());

/// Index entry of a page in which the weight of every character is its code point.
const IDENTITY_PAGE: u16 = 0xFFFF;
const SUPPLEMENTARY_WEIGHT: u32 = 0xFFFD;
const LAST_ASCII: u8 = 0x7F;

/// The weight of a character. A byte outside any character weighs more than every character.
#[inline]
pub(super) fn weight(code: u32) -> u32 {
    if code > 0xFFFF {
        return if code < INVALID_FIRST { SUPPLEMENTARY_WEIGHT } else { code };
    }
    match INDEX[table::page_of(code)] {
        IDENTITY_PAGE => code,
        page => u32::from(PAGES[table::position_in(page, code)]),
    }
}

/// Whether two characters have the same weight.
pub(super) fn same_character(left: u32, right: u32) -> bool {
    left == right || weight(left) == weight(right)
}

/// The order of two texts.
pub(super) fn compare<'t>(mut left: &'t [u8], mut right: &'t [u8]) -> Ordering {
    loop {
        (left, right) = skip_equal_ascii(left, right);
        let (Some((a, a_bytes)), Some((b, b_bytes))) = (decode(left), decode(right)) else {
            return padding::compare_rest(left, right);
        };
        let order = weight(a).cmp(&weight(b));
        if order != Ordering::Equal {
            return order;
        }
        (left, right) = (&left[a_bytes..], &right[b_bytes..]);
    }
}

/// Appends the weight key of `text`: weights in the form of UTF-8, a byte outside any character as 0xFF and
/// the byte. Returns false if the key certainly has no zero byte.
pub(super) fn append_weight_key(text: &[u8], out: &mut Vec<u8>) -> bool {
    let mut rest = padding::trim_spaces(text);
    if all_within(rest, SPACE + 1, LAST_ASCII) {
        out.reserve(rest.len() + 1);
        let start = out.len();
        out.extend_from_slice(rest);
        make_capitals(&mut out[start..]);
        out.push(SPACE);
        return false;
    }
    while let Some(&first) = rest.first() {
        if first >= 0x80 {
            let Some((code, bytes)) = decode(rest) else { break };
            append_weight(weight(code), out);
            rest = &rest[bytes..];
            continue;
        }
        let plain = padding::plain_bytes(rest, |byte| byte >= 0x80);
        out.extend(rest[..plain].iter().map(|byte| byte.to_ascii_uppercase()));
        rest = padding::append_special(&rest[plain..], out);
    }
    out.push(SPACE);
    true
}

/// Converts lower case ASCII letters to upper case, sixteen bytes at a time.
#[inline]
fn make_capitals(text: &mut [u8]) {
    let capital = |byte: &mut u8| *byte -= u8::from(byte.wrapping_sub(b'a') < 26) << 5;
    let (steps, rest) = text.as_chunks_mut::<16>();
    steps.iter_mut().for_each(|step| step.iter_mut().for_each(capital));
    rest.iter_mut().for_each(capital);
}

fn append_weight(weight: u32, out: &mut Vec<u8>) {
    let tail = |shift: u32| 0x80 | (weight >> shift & 0x3F) as u8;
    match weight {
        0..=0x7F => out.push(weight as u8),
        0x80..=0x7FF => out.extend_from_slice(&[0xC0 | (weight >> 6) as u8, tail(0)]),
        0x800..=0xFFFF => out.extend_from_slice(&[0xE0 | (weight >> 12) as u8, tail(6), tail(0)]),
        _ => out.extend_from_slice(&[0xFF, (weight - INVALID_FIRST) as u8]),
    }
}
