//! Hot path: at most 5 instructions per byte.
//!
//! The order of texts padded with spaces, and keys with the same order as byte strings.
//!
//! Two texts compare as if endless spaces followed both, so `"a\t" < "a" = "a " < "a b"`. A text is a
//! sequence of units, which are its bytes or its weights in the form of UTF-8. A key contains each unit
//! unchanged and ends with one space. That suffices unless the text contains spaces or a unit below the
//! space. In those cases the order depends on what follows the spaces:
//!
//! | piece of the text | bytes of the key |
//! |---|---|
//! | unit 0x1F | `1F 00` |
//! | k spaces, then a unit below the space | `1F FF`, then the byte k, or from 255 on `FF` and k in 4 bytes |
//! | the end | `20` |
//! | k spaces, then a unit above the space | `20`, then no byte for k = 1, 0x21 - k for k up to 32, |
//! | | and from 33 on `00` and 2^32-1-k in 4 bytes |
//!
//! The rows are in key order. In the second row more spaces sort later, in the last row earlier, because
//! every unit that can follow the `20` of a single space is above 0x20. Numbers of 4 bytes have the most
//! significant byte first.

use std::cmp::Ordering;

use super::character::all_within;

/// Bytes that the end of the text adds to every key.
pub(super) const END_BYTES: usize = 1;

pub(super) const SPACE: u8 = b' ';
pub(super) const BELOW_SPACE: u8 = 0x1F;

/// `text` without its trailing spaces.
#[inline]
pub(super) fn trim_spaces(text: &[u8]) -> &[u8] {
    let length = text.iter().rposition(|&byte| byte != SPACE).map_or(0, |last| last + 1);
    &text[..length]
}

/// The order of two texts by their bytes, padded with spaces.
pub(super) fn compare_bytes(left: &[u8], right: &[u8]) -> Ordering {
    let common = left.len().min(right.len());
    let order = left[..common].cmp(&right[..common]);
    order.then_with(|| compare_rest(&left[common..], &right[common..]))
}

/// The order of two texts that are equal up to here, of which at most one has bytes left. The first of these
/// bytes that is not a space decides: in the padded collations, every character outside ASCII weighs more
/// than a space.
#[inline]
pub(super) fn compare_rest(left: &[u8], right: &[u8]) -> Ordering {
    let against_spaces =
        |rest: &[u8]| rest.iter().find(|&&byte| byte != SPACE).map_or(Ordering::Equal, |byte| byte.cmp(&SPACE));
    against_spaces(left).then_with(|| against_spaces(right).reverse())
}

/// Appends the key of `text` for byte order. Returns false if the key certainly has no zero byte.
pub(super) fn append_bytes_key(text: &[u8], out: &mut Vec<u8>) -> bool {
    let mut rest = trim_spaces(text);
    out.reserve(rest.len() + END_BYTES);
    if all_within(rest, SPACE + 1, u8::MAX) {
        out.extend_from_slice(rest);
        out.push(SPACE);
        return false;
    }
    while !rest.is_empty() {
        let plain = plain_bytes(rest, |_| false);
        out.extend_from_slice(&rest[..plain]);
        rest = append_special(&rest[plain..], out);
    }
    out.push(SPACE);
    true
}

/// Length of the prefix whose bytes are special neither here nor to the caller.
#[inline]
pub(super) fn plain_bytes(text: &[u8], is_other: impl Fn(u8) -> bool) -> usize {
    text.iter().position(|&byte| is_special(byte) || is_other(byte)).unwrap_or(text.len())
}

/// Whether `byte` needs [`append_special`].
#[inline]
fn is_special(byte: u8) -> bool {
    byte == SPACE || byte == BELOW_SPACE
}

/// Appends the spaces, or one unit 0x1F, at the start of `text`, and returns the rest. `text` must not end
/// with a space.
#[inline]
pub(super) fn append_special<'t>(text: &'t [u8], out: &mut Vec<u8>) -> &'t [u8] {
    match text.first() {
        Some(&SPACE) => {
            let spaces = text.iter().position(|&byte| byte != SPACE).unwrap_or(text.len());
            let rest = &text[spaces..];
            // The unit after the spaces decides whether the run sorts below or above the end of the text.
            let below = rest.first().is_some_and(|&next| next < SPACE);
            append_spaces(u32::try_from(spaces).unwrap_or(u32::MAX), below, out);
            rest
        }
        Some(&BELOW_SPACE) => {
            out.extend_from_slice(&[BELOW_SPACE, 0]);
            &text[1..]
        }
        _ => text,
    }
}

/// Appends a run of spaces before a unit that is not a space.
pub(super) fn append_spaces(spaces: u32, followed_by_below: bool, out: &mut Vec<u8>) {
    if followed_by_below {
        out.extend_from_slice(&[BELOW_SPACE, 0xFF]);
        match u8::try_from(spaces) {
            Ok(few) if few < 0xFF => out.push(few),
            _ => {
                out.push(0xFF);
                out.extend_from_slice(&spaces.to_be_bytes());
            }
        }
        return;
    }
    out.push(SPACE);
    match spaces {
        1 => {}
        2..=32 => out.push(SPACE + 1 - spaces as u8),
        _ => {
            out.push(0);
            out.extend_from_slice(&(!spaces).to_be_bytes());
        }
    }
}
