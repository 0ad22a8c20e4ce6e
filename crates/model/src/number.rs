//! Numbers from text by MySQL's rules: skip leading white space, convert the longest prefix that is a number,
//! and ignore the remaining text.

use crate::decimal::{DECIMAL_SCALE_MAX, MANTISSA_LIMIT, of_digits};
use crate::value::{Decimal, ValueRef};

/// A number parsed from the front of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parsed<T> {
    /// The number: 0 if the text has none, `None` if it does not fit the type.
    pub value: T,
    /// Whether the text has no number, or characters other than white space follow the number.
    pub is_truncated: bool,
    /// Whether the text has no number.
    pub is_missing: bool,
    /// Whether the number was out of range and `value` is the nearest limit.
    pub is_out_of_range: bool,
}

/// The parts of a number at the front of a text.
struct Scan<'a> {
    negative: bool,
    integer: &'a [u8],
    fraction: &'a [u8],
    exponent: i32,
    /// The number without leading white space.
    text: &'a [u8],
    is_truncated: bool,
}

/// A double, clamped to the finite range.
pub fn parse_double(text: &[u8]) -> Parsed<f64> {
    let scan = scan(text, true);
    let number = std::str::from_utf8(scan.text).ok().and_then(|text| text.parse::<f64>().ok());
    let number = number.unwrap_or(0.0);
    let value = number.clamp(-f64::MAX, f64::MAX);
    let is_out_of_range = value != number;
    Parsed { value, is_truncated: scan.is_truncated, is_missing: scan.is_missing(), is_out_of_range }
}

/// An integer. Without `rounds`, only the digits before the point count: `1.9` is 1 and truncated. With
/// `rounds`, any number is rounded half away from zero. Numbers beyond the range of `i128` give its nearest
/// limit.
pub fn parse_integer(text: &[u8], rounds: bool) -> Parsed<i128> {
    let scan = scan(text, rounds);
    let is_truncated = scan.is_truncated;
    if rounds && (!scan.fraction.is_empty() || scan.exponent != 0) {
        let value = scan.decimal(0).and_then(Decimal::narrow_mantissa).unwrap_or(scan.limit());
        let is_out_of_range = value == scan.limit();
        return Parsed { value, is_truncated, is_missing: scan.is_missing(), is_out_of_range };
    }
    let mut value = Some(0i128);
    for digit in scan.integer {
        value = value.and_then(|value| value.checked_mul(10)?.checked_add(i128::from(digit - b'0')));
    }
    let value = value.map_or(scan.limit(), |value| if scan.negative { -value } else { value });
    let is_out_of_range = value == scan.limit();
    Parsed { value, is_truncated, is_missing: scan.is_missing(), is_out_of_range }
}

/// A decimal with the scale of the text, at most 30. `None` beyond 81 digits.
pub fn parse_decimal(text: &[u8]) -> Parsed<Option<Decimal>> {
    let scan = scan(text, true);
    let digits_after = (scan.fraction.len() as i64 - i64::from(scan.exponent)).clamp(0, i64::from(DECIMAL_SCALE_MAX));
    let value = scan.decimal(digits_after as u8);
    Parsed { value, is_truncated: scan.is_truncated, is_missing: scan.is_missing(), is_out_of_range: value.is_none() }
}

/// The number with which a text is compared to an integer: an exact integer if possible, otherwise a double.
pub fn parse_number(text: &[u8]) -> Parsed<ValueRef<'static>> {
    let scan = scan(text, true);
    if scan.fraction.is_empty() && scan.exponent == 0 && scan.integer.len() <= 20 {
        let integer = parse_integer(text, false).value;
        let value = match (i64::try_from(integer), u64::try_from(integer)) {
            (Ok(value), _) => Some(ValueRef::Int(value)),
            (_, Ok(value)) => Some(ValueRef::UInt(value)),
            _ => None,
        };
        if let Some(value) = value {
            let (is_truncated, is_missing) = (scan.is_truncated, scan.is_missing());
            return Parsed { value, is_truncated, is_missing, is_out_of_range: false };
        }
    }
    let Parsed { value, is_truncated, is_missing, is_out_of_range } = parse_double(text);
    Parsed { value: ValueRef::Double(value), is_truncated, is_missing, is_out_of_range }
}

impl Scan<'_> {
    fn is_missing(&self) -> bool {
        self.integer.is_empty() && self.fraction.is_empty()
    }

    fn limit(&self) -> i128 {
        if self.negative { i128::MIN } else { i128::MAX }
    }

    /// The number rounded half away from zero to `scale` digits after the point; `None` beyond 81 digits.
    fn decimal(&self, scale: u8) -> Option<Decimal> {
        match self.narrow_decimal(scale) {
            None => self.wide_decimal(scale),
            narrow => narrow,
        }
    }

    /// Position of the end of the digits kept, counted in digits from the first one.
    fn digits_kept(&self, scale: u8) -> i64 {
        self.integer.len() as i64 + i64::from(self.exponent) + i64::from(scale)
    }

    /// Whether the first digit that is not kept rounds the number up.
    fn rounds_up(&self, kept: i64) -> bool {
        let next = usize::try_from(kept).ok().and_then(|kept| self.integer.iter().chain(self.fraction).nth(kept));
        next.is_some_and(|digit| *digit >= b'5')
    }

    fn narrow_decimal(&self, scale: u8) -> Option<Decimal> {
        let wanted = self.digits_kept(scale);
        let mut mantissa = 0i128;
        let mut taken = 0i64;
        for digit in self.integer.iter().chain(self.fraction) {
            if taken >= wanted {
                break;
            }
            mantissa = mantissa.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
            taken += 1;
        }
        mantissa = mantissa.checked_add(self.rounds_up(wanted).into())?;
        if mantissa != 0 && taken < wanted {
            let zeros = u32::try_from(wanted - taken).ok()?;
            mantissa = mantissa.checked_mul(10i128.checked_pow(zeros)?)?;
        }
        let mantissa = if self.negative { -mantissa } else { mantissa };
        (mantissa.unsigned_abs() < MANTISSA_LIMIT).then_some(Decimal::Narrow { mantissa, scale })
    }

    #[cold]
    fn wide_decimal(&self, scale: u8) -> Option<Decimal> {
        let wanted = self.digits_kept(scale);
        let count = (self.integer.len() + self.fraction.len()) as i64;
        let digits = self.integer.iter().chain(self.fraction).take(wanted.clamp(0, count) as usize).copied();
        of_digits(digits, ((wanted - count).max(0), scale), (self.negative, self.rounds_up(wanted)))
    }
}

fn scan(text: &[u8], with_fraction: bool) -> Scan<'_> {
    let text = text.trim_ascii_start();
    let negative = text.first() == Some(&b'-');
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let integer = digits(&text[sign..]);
    let mut end = sign + integer.len();
    let mut fraction: &[u8] = &[];
    let mut exponent = 0;
    if with_fraction {
        if text.get(end) == Some(&b'.') {
            fraction = digits(&text[end + 1..]);
            if !integer.is_empty() || !fraction.is_empty() {
                end += 1 + fraction.len();
            }
        }
        if !(integer.is_empty() && fraction.is_empty()) && matches!(text.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(text.get(end + 1), Some(b'-' | b'+')));
            let digits = digits(&text[end + 1 + sign..]);
            if !digits.is_empty() {
                let size = digits.iter().fold(0i32, |size, digit| (size * 10 + i32::from(digit - b'0')).min(100_000));
                exponent = if text[end + 1] == b'-' { -size } else { size };
                end += 1 + sign + digits.len();
            }
        }
    }
    if integer.is_empty() && fraction.is_empty() {
        end = 0;
    }
    let is_truncated = end == 0 || !text[end..].trim_ascii_end().is_empty();
    Scan { negative, integer, fraction, exponent, text: &text[..end], is_truncated }
}

fn digits(text: &[u8]) -> &[u8] {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    &text[..count]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_the_largest_mantissa_up_is_out_of_range() {
        for text in [format!("{}.5", i128::MAX), format!("-{}.5", i128::MAX)] {
            let parsed = parse_integer(text.as_bytes(), true);
            assert!(parsed.is_out_of_range, "{parsed:?}");
            let rounded = parse_decimal(text.as_bytes()).value.and_then(|value| crate::decimal::with_scale(value, 0));
            let mut shown = Vec::new();
            rounded.unwrap().append_text(&mut shown);
            assert!(shown.ends_with(b"170141183460469231731687303715884105728"), "{rounded:?}");
        }
    }
}
