//! Hot path: at most 40 instructions per integer.
//!
//! Numbers as text, two digits at a time, without formatting machinery.

use std::num::NonZeroU64;

/// "00" to "99".
static DIGIT_PAIRS: [[u8; 2]; 100] = digit_pairs();

/// [`DIGIT_PAIRS`] with room for every index of seven bits, so that fields of few bits need no check.
static TWO_DIGITS: [[u8; 2]; 128] = two_digits_table();

/// Number of digits of the longest integer.
const INTEGER_DIGITS_MAX: usize = 20;

/// Eight digits 0 as text.
const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);

/// Digits after the point that are copied together with the point.
const SHORT_FRACTION_DIGITS: u8 = 7;

/// Maximum number of digits of a number that [`append_scaled_prefixed`] prints.
pub(super) const SCALED_DIGITS_MAX: u8 = 18;

static POWERS_OF_TEN: [u64; SCALED_DIGITS_MAX as usize + 1] = powers_of_ten();

/// The lowest number with nine digits.
const EIGHT_DIGITS_END: u64 = 100_000_000;

/// The lowest number with 17 digits.
const SIXTEEN_DIGITS_END: u64 = EIGHT_DIGITS_END * EIGHT_DIGITS_END;

/// Digits after the point that leave one before it, if there are 16 in all.
const LONG_FRACTION_DIGITS_MAX: usize = 15;

/// Bytes that a number of 16 digits takes while it is written: length, sign, 16 digits, and a copy of 16
/// behind the point.
const LONG_SCALED_BYTES_MAX: usize = 40;

/// A double is printed without an exponent if its decimal point is within this many digits.
const POINT_DISTANCE_MAX: i32 = 15;

/// Appends the decimal digits of an unsigned integer.
#[inline]
pub fn append_unsigned(value: u64, out: &mut Vec<u8>) {
    let mut buffer = [0; INTEGER_DIGITS_MAX];
    let first = write_digits(value, &mut buffer);
    out.extend_from_slice(&buffer[first..]);
}

/// Appends the decimal digits of a signed integer.
#[inline]
pub fn append_signed(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    append_unsigned(value.unsigned_abs(), out);
}

/// Appends the decimal digits of a signed integer as a length-encoded string.
#[inline(always)]
pub(super) fn append_signed_prefixed(value: i64, out: &mut Vec<u8>) {
    // A negative number has the highest bit set, so it is large as an unsigned number. One comparison
    // therefore detects all long numbers.
    match value as u64 {
        short @ ..EIGHT_DIGITS_END => append_short_prefixed(short, out),
        _ => append_long_prefixed(value < 0, value.unsigned_abs(), out),
    }
}

/// Appends the decimal digits of an unsigned integer as a length-encoded string.
#[inline(always)]
pub(super) fn append_unsigned_prefixed(value: u64, out: &mut Vec<u8>) {
    match value {
        short @ ..EIGHT_DIGITS_END => append_short_prefixed(short, out),
        long => append_long_prefixed(false, long, out),
    }
}

/// Like [`append_unsigned_prefixed`], for a value below [`EIGHT_DIGITS_END`].
#[inline(always)]
fn append_short_prefixed(value: u64, out: &mut Vec<u8>) {
    let (text, length) = short_text(value);
    // Length and text are written in one copy of fixed size. The excess is cut off afterwards.
    let start = out.len();
    out.extend_from_slice(&(length as u128 | u128::from(text) << 8).to_le_bytes());
    out.truncate(start + 1 + length);
}

/// The text of a value below [`EIGHT_DIGITS_END`], its first digit in the lowest byte, and its length.
#[inline(always)]
fn short_text(value: u64) -> (u64, usize) {
    let digits = if value < 10_000 { four_digits(value) << 32 } else { eight_digits(value) };
    // Number of bits of the leading zero digits. The last digit never counts as a leading zero.
    let zero_bits = (digits | 1 << 56).trailing_zeros() & !7;
    ((digits | ZEROS) >> zero_bits, 8 - zero_bits as usize / 8)
}

/// How a column of scaled numbers prints: the point is at the same place among the digits of each.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScaledLayout {
    /// The bits of the stored number.
    mask: u64,
    /// Added to a number in its stored form, which has no sign.
    bias: u64,
    /// Numbers below this one print at once, as eight digits.
    short_end: u64,
    /// The lanes of the digits behind the point, one per byte, the first in the lowest byte.
    fraction: u64,
    /// A bit in the lane of the last digit before the point, which prints also if it is 0.
    last_whole: NonZeroU64,
    /// The first eight bytes of the text of 0 with eight digits.
    zeros: u64,
    /// Bytes of the text with all eight digits, and of its length.
    bytes: u64,
    scale: u8,
}

impl ScaledLayout {
    /// Layout of numbers in this many bytes (up to 8), with the sign flipped. `scale` digits, at most
    /// [`SCALED_DIGITS_MAX`], are behind the point.
    pub(super) fn new(bytes: u32, scale: u8) -> ScaledLayout {
        let short_scale = u32::from(scale.min(SHORT_FRACTION_DIGITS));
        let (whole_bits, has_point) = (8 * (8 - short_scale), scale > 0);
        ScaledLayout {
            mask: u64::MAX >> (u64::BITS - 8 * bytes),
            bias: 1 << (8 * bytes - 1),
            short_end: if scale <= SHORT_FRACTION_DIGITS { EIGHT_DIGITS_END } else { 0 },
            fraction: u64::MAX.checked_shl(whole_bits).unwrap_or(0),
            last_whole: NonZeroU64::new(1 << (whole_bits - 8)).unwrap_or(NonZeroU64::MIN),
            zeros: if has_point { ZEROS ^ u64::from(b'0' ^ b'.') << whole_bits } else { ZEROS },
            bytes: 9 + u64::from(has_point),
            scale,
        }
    }

    /// The number in the low bits of a word.
    #[inline(always)]
    fn value(&self, word: u64) -> i64 {
        (word & self.mask).wrapping_sub(self.bias) as i64
    }
}

/// Whether this many bytes fit without an allocation. A function that returns if they do not, and cannot
/// allocate otherwise, need not save registers.
#[inline(always)]
pub(super) fn has_room(bytes: usize, out: &Vec<u8>) -> bool {
    bytes <= out.capacity().wrapping_sub(out.len())
}

/// Appends the scaled number in the low bits of a word with all digits after its point, as a length-encoded
/// string.
#[inline(never)]
pub(super) fn append_scaled_prefixed(word: u64, layout: &ScaledLayout, out: &mut Vec<u8>) {
    let value = layout.value(word) as u64;
    // As in [`append_signed_prefixed`], negative numbers are large ones.
    if value >= layout.short_end || !has_room(size_of::<u128>(), out) {
        return append_long_scaled(word, layout, out);
    }
    let digits = eight_digits(value);
    // The digits behind the point move by one lane, the last one into a ninth.
    let low = (digits & layout.fraction).wrapping_mul(0xFF).wrapping_add(digits) | layout.zeros;
    let lanes = u128::from(low) | u128::from(digits >> 56 | u64::from(b'0')) << 64;
    let zero_bits = (layout.last_whole | digits).trailing_zeros() & 56;
    let bytes = layout.bytes - u64::from(zero_bits / 8);
    // Length and text are written in one copy of fixed size. The excess is cut off afterwards.
    let text = (lanes >> zero_bits) << 8 | u128::from(bytes - 1);
    let start = out.len();
    out.extend_from_slice(&text.to_le_bytes());
    out.truncate(start + bytes as usize);
}

/// As [`append_scaled_prefixed`], for any number. One of up to 16 digits prints without a loop.
#[inline(never)]
fn append_long_scaled(word: u64, layout: &ScaledLayout, out: &mut Vec<u8>) {
    let (value, scale) = (layout.value(word), usize::from(layout.scale));
    let magnitude = value.unsigned_abs();
    if magnitude >= SIXTEEN_DIGITS_END || scale > LONG_FRACTION_DIGITS_MAX || !has_room(LONG_SCALED_BYTES_MAX, out) {
        return append_longest_scaled(value, layout.scale, out);
    }
    let [high, low] = [magnitude / EIGHT_DIGITS_END, magnitude % EIGHT_DIGITS_END].map(eight_digits);
    let digits = u128::from(high) | u128::from(low) << 64;
    let text = digits | u128::from(ZEROS) << 64 | u128::from(ZEROS);
    // The last digit before the point prints also if it is 0.
    let last_whole_bit = 8 * (15 - scale as u32);
    let zero_bits = (digits | 1 << last_whole_bit).trailing_zeros() & !7;
    let sign = usize::from(value < 0);
    let point_at = 1 + sign + 16 - scale - zero_bits as usize / 8;
    let fraction_at = point_at + usize::from(scale > 0);
    // Copies of fixed sizes, whose excess the next one overwrites or the end cuts off.
    let mut buffer = [0; LONG_SCALED_BYTES_MAX];
    buffer[0] = (fraction_at + scale - 1) as u8;
    buffer[1] = b'-';
    buffer[1 + sign..][..16].copy_from_slice(&(text >> zero_bits).to_le_bytes());
    buffer[point_at] = b'.';
    buffer[fraction_at..][..16].copy_from_slice(&(text >> last_whole_bit >> 8).to_le_bytes());
    let start = out.len();
    out.extend_from_slice(&buffer);
    out.truncate(start + fraction_at + scale);
}

/// As [`append_scaled_prefixed`], for any number.
#[inline(never)]
fn append_longest_scaled(value: i64, scale: u8, out: &mut Vec<u8>) {
    let (unit, start) = (POWERS_OF_TEN[usize::from(scale)], out.len());
    out.push(0);
    append_scaled(value < 0, (value.unsigned_abs() / unit, value.unsigned_abs() % unit), scale, out);
    out[start] = (out.len() - start - 1) as u8;
}

/// Appends a number with `scale` digits after the point, which make the `fraction`.
fn append_scaled(negative: bool, (whole, fraction): (u64, u64), scale: u8, out: &mut Vec<u8>) {
    if negative {
        out.push(b'-');
    }
    append_unsigned(whole, out);
    if scale > 0 {
        let mut buffer = [b'0'; INTEGER_DIGITS_MAX];
        write_digits(fraction, &mut buffer);
        out.push(b'.');
        out.extend_from_slice(&buffer[INTEGER_DIGITS_MAX - usize::from(scale)..]);
    }
}

/// The two digits of a number below 100.
#[inline(always)]
pub(super) fn two_digits(number: u32) -> [u8; 2] {
    TWO_DIGITS[number as usize % TWO_DIGITS.len()]
}

/// The digits of a number below [`EIGHT_DIGITS_END`], one per byte, the first in the lowest byte.
#[inline(always)]
fn eight_digits(value: u64) -> u64 {
    // The reciprocal of 10,000, exact for eight digits.
    let high = (value * 1_759_218_605) >> 44;
    four_digits((value << 32) - high * ((10_000 << 32) - 1))
}

/// The digits of a number below 10,000 in the lowest four bytes. Two such numbers may be given, one in each
/// half.
#[inline(always)]
fn four_digits(halves: u64) -> u64 {
    // First pairs of digits, then digits. Each step divides all lanes together by multiplying with the
    // reciprocal, which is exact for this few digits. It leaves the quotient in a lane and puts the remainder
    // into the one above: `high + (halves - high * 100 << 16)`.
    let high = ((halves * 10_486) >> 20) & 0x7F_0000_007F;
    let quarters = (halves << 16) - high * ((100 << 16) - 1);
    let high = ((quarters * 103) >> 10) & 0x000F_000F_000F_000F;
    (quarters << 8) - high * ((10 << 8) - 1)
}

#[inline(never)]
fn append_long_prefixed(negative: bool, magnitude: u64, out: &mut Vec<u8>) {
    let mut buffer = [0; INTEGER_DIGITS_MAX];
    let first = write_digits(magnitude, &mut buffer);
    out.push((INTEGER_DIGITS_MAX - first) as u8 + u8::from(negative));
    if negative {
        out.push(b'-');
    }
    out.extend_from_slice(&buffer[first..]);
}

/// Appends a double with the fewest digits that read back as the same number. It has an exponent (`1e20`, no
/// plus sign) if the decimal point is more than 15 digits away. Values that SQL does not have print as `nan`,
/// `inf`, `-inf`.
pub fn append_double(value: f64, out: &mut Vec<u8>) {
    if !value.is_finite() {
        let text: &[u8] = if value.is_nan() { b"nan" } else { [b"inf".as_slice(), b"-inf"][usize::from(value < 0.0)] };
        return out.extend_from_slice(text);
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let magnitude = value.abs();
    if magnitude < 1e15 && magnitude.trunc() == magnitude {
        return append_unsigned(magnitude as u64, out);
    }
    let (digits, count, exponent) = shortest_digits(magnitude);
    append_digits(&digits[..count], exponent + 1, out);
}

/// Appends a FLOAT with at most six significant digits, as MySQL does. They do not always read back as the
/// same number.
pub fn append_float(value: f32, out: &mut Vec<u8>) {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(0.0);
    append_double(rounded, out);
}

/// Appends a double with exactly `decimals` digits after the point, as a column with a fixed number of
/// decimals prints it.
pub fn append_double_fixed(value: f64, decimals: u8, out: &mut Vec<u8>) {
    use std::io::Write;
    if value.is_finite() && value != 0.0 {
        let (digits, count, exponent) = shortest_digits(value.abs());
        let fraction = (count as i32 - 1 - exponent).max(0);
        if fraction <= decimals.into() {
            // Like MySQL, the shortest digits that read back as the number, and zeros.
            if value < 0.0 {
                out.push(b'-');
            }
            append_point(&digits[..count], exponent + 1, out);
            if decimals > 0 {
                out.extend_from_slice(if fraction == 0 { b"." } else { b"" });
                out.extend(std::iter::repeat_n(b'0', (i32::from(decimals) - fraction) as usize));
            }
            return;
        }
    }
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{value:.*}", usize::from(decimals));
}

/// Fills the end of the buffer with digits, and returns the position of the first.
#[inline]
fn write_digits(mut value: u64, buffer: &mut [u8; INTEGER_DIGITS_MAX]) -> usize {
    let mut at = INTEGER_DIGITS_MAX;
    while value >= 100 {
        let pair = DIGIT_PAIRS[(value % 100) as usize];
        value /= 100;
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&pair);
    }
    if value >= 10 {
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&DIGIT_PAIRS[value as usize]);
    } else {
        at -= 1;
        buffer[at] = b'0' + value as u8;
    }
    at
}

/// Appends `digits` with the decimal point after the first `point` of them, if the number prints without
/// exponent. Otherwise appends one digit, the point, the remaining digits and the exponent.
fn append_digits(digits: &[u8], point: i32, out: &mut Vec<u8>) {
    let count = digits.len() as i32;
    if !(1 - POINT_DISTANCE_MAX..=POINT_DISTANCE_MAX).contains(&point) {
        out.push(digits[0]);
        if count > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.push(b'e');
        append_signed(i64::from(point - 1), out);
    } else {
        append_point(digits, point, out);
    }
}

/// Appends `digits` with the decimal point after the first `point` of them, without an exponent.
fn append_point(digits: &[u8], point: i32, out: &mut Vec<u8>) {
    let count = digits.len() as i32;
    if point <= 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', -point as usize));
        out.extend_from_slice(digits);
    } else if point >= count {
        out.extend_from_slice(digits);
        out.extend(std::iter::repeat_n(b'0', (point - count) as usize));
    } else {
        out.extend_from_slice(&digits[..point as usize]);
        out.push(b'.');
        out.extend_from_slice(&digits[point as usize..]);
    }
}

/// The shortest digits of a positive finite double, their number, and the decimal exponent of the first.
fn shortest_digits(value: f64) -> ([u8; 20], usize, i32) {
    use std::io::Write;
    // "1.7976931348623157e308" is the longest form.
    let mut text = [0u8; 32];
    let mut rest = &mut text[..];
    // At most 24 characters, so the write cannot fail.
    let _ = write!(rest, "{value:e}");
    let left = rest.len();
    let text = &text[..32 - left];
    let mut digits = [0u8; 20];
    let mut count = 0;
    let mut bytes = text.iter();
    for byte in bytes.by_ref() {
        match byte {
            b'0'..=b'9' if count < digits.len() => {
                digits[count] = *byte;
                count += 1;
            }
            b'.' => {}
            _ => break,
        }
    }
    let mut exponent = 0i32;
    let mut negative = false;
    for byte in bytes {
        match byte {
            b'-' => negative = true,
            digit => exponent = exponent * 10 + i32::from(digit - b'0'),
        }
    }
    (digits, count, if negative { -exponent } else { exponent })
}

const fn powers_of_ten() -> [u64; SCALED_DIGITS_MAX as usize + 1] {
    let mut powers = [1; SCALED_DIGITS_MAX as usize + 1];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
}

const fn two_digits_table() -> [[u8; 2]; 128] {
    let mut table = [[b'0'; 2]; 128];
    let mut value = 0;
    while value < 100 {
        table[value] = digit_pairs()[value];
        value += 1;
    }
    table
}

const fn digit_pairs() -> [[u8; 2]; 100] {
    let mut pairs = [[0; 2]; 100];
    let mut value = 0;
    while value < 100 {
        pairs[value] = [b'0' + (value / 10) as u8, b'0' + (value % 10) as u8];
        value += 1;
    }
    pairs
}
