//! Characters of utf8mb4 text, where a byte that belongs to no character is a character of its own.

/// The lowest code of bytes outside any character. Such a byte `b` has the code `INVALID_FIRST + b`, above
/// all code points.
pub(super) const INVALID_FIRST: u32 = 0x11_0000;

/// The first character of `text`: its code and its length in bytes. `None` at the end of the text.
///
/// Overlong forms, surrogates and truncated sequences are invalid. Their first byte is returned alone.
#[inline]
pub(super) fn decode(text: &[u8]) -> Option<(u32, usize)> {
    match *text {
        [] => None,
        [a @ 0x00..=0x7F, ..] => Some((u32::from(a), 1)),
        [a @ 0xC2..=0xDF, b @ 0x80..=0xBF, ..] => Some((u32::from(a & 0x1F) << 6 | tail(b), 2)),
        [a @ 0xE0..=0xEF, b @ 0x80..=0xBF, c @ 0x80..=0xBF, ..] => {
            let code = u32::from(a & 0x0F) << 12 | tail(b) << 6 | tail(c);
            let valid = code >= 0x800 && !matches!(code, 0xD800..=0xDFFF);
            Some(if valid { (code, 3) } else { invalid(a) })
        }
        [a @ 0xF0..=0xF4, b @ 0x80..=0xBF, c @ 0x80..=0xBF, d @ 0x80..=0xBF, ..] => {
            let code = u32::from(a & 0x07) << 18 | tail(b) << 12 | tail(c) << 6 | tail(d);
            let valid = matches!(code, 0x1_0000..=0x10_FFFF);
            Some(if valid { (code, 4) } else { invalid(a) })
        }
        [a, ..] => Some(invalid(a)),
    }
}

fn tail(byte: u8) -> u32 {
    u32::from(byte & 0x3F)
}

fn invalid(byte: u8) -> (u32, usize) {
    (INVALID_FIRST + u32::from(byte), 1)
}

/// Whether `text` is well-formed utf8mb4: no overlong forms, no surrogates, nothing above U+10FFFF.
pub fn is_valid_utf8mb4(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok()
}

/// Number of characters in `text`; each byte outside a character counts as one.
pub(super) fn character_count(text: &[u8]) -> usize {
    let mut count = 0;
    for chunk in text.utf8_chunks() {
        count += chunk.valid().chars().count() + chunk.invalid().len();
    }
    count
}

/// The longest prefix of `text` with at most `characters` characters, none of them cut.
pub(super) fn prefix(text: &[u8], characters: usize) -> &[u8] {
    let mut length = 0;
    for _ in 0..characters {
        match decode(&text[length..]) {
            Some((_, bytes)) => length += bytes,
            None => break,
        }
    }
    &text[..length]
}

const ASCII_MASK: u64 = 0x8080_8080_8080_8080;

/// Removes from both texts their common ASCII prefix, ignoring letter case, in whole steps of eight bytes.
#[inline]
pub(super) fn skip_equal_ascii<'t>(mut left: &'t [u8], mut right: &'t [u8]) -> (&'t [u8], &'t [u8]) {
    while let (Some((a, left_rest)), Some((b, right_rest))) = (left.split_first_chunk(), right.split_first_chunk()) {
        let (a, b) = (u64::from_le_bytes(*a), u64::from_le_bytes(*b));
        if (a | b) & ASCII_MASK != 0 || fold_ascii(a) != fold_ascii(b) {
            break;
        }
        (left, right) = (left_rest, right_rest);
    }
    (left, right)
}

/// Converts the lower case letters among eight ASCII bytes to upper case.
#[inline]
fn fold_ascii(bytes: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // The top bit of each byte says whether the byte is at least 'a', and whether it is above 'z'. All bytes
    // are below 0x80, so none carries into the next one.
    let from_a = bytes + (0x80 - b'a' as u64) * ONES;
    let above_z = bytes + (0x7F - b'z' as u64) * ONES;
    let small = from_a & !above_z & ASCII_MASK;
    bytes - (small >> 2)
}

/// Whether every byte is between `first` and `last`, both included. Compares sixteen bytes at a time.
#[inline]
pub(super) fn all_within(text: &[u8], first: u8, last: u8) -> bool {
    let distance = |byte: u8| byte.wrapping_sub(first);
    let Some(end) = text.last_chunk::<16>() else {
        return text.iter().all(|byte| distance(*byte) <= last - first);
    };
    let mut farthest = end.map(distance);
    for step in text.as_chunks::<16>().0 {
        for (farthest, byte) in farthest.iter_mut().zip(step) {
            *farthest = distance(*byte).max(*farthest);
        }
    }
    farthest.into_iter().fold(0, u8::max) <= last - first
}
