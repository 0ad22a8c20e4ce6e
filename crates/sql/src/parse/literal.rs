//! Converts the bytes of a literal into its value. The parser, the shape scanner and the binder of lifted
//! literals share these functions, so that a literal means the same on every path.

use junctor_model::temporal::{self as model, DateRules, Temporal, Zone, parse_date_time, parse_time};

use super::expression::TemporalKind;

/// Like [`decode_string`], where a backslash is an ordinary character.
pub fn decode_plain_string(inside: &[u8], quote: u8, value: &mut Vec<u8>) {
    let mut rest = inside;
    while let Some(quoted) = rest.iter().position(|byte| *byte == quote) {
        value.extend_from_slice(&rest[..=quoted]);
        rest = rest.get(quoted + 2..).unwrap_or(&[]);
    }
    value.extend_from_slice(rest);
}

/// Appends the value of a quoted literal to `value`. `inside` is the text between the quotes, and `quote` is
/// the quote character. A doubled quote becomes one, and backslash escapes are replaced as in MySQL without
/// NO_BACKSLASH_ESCAPES.
pub fn decode_string(inside: &[u8], quote: u8, value: &mut Vec<u8>) {
    let mut rest = inside;
    while let Some(special) = rest.iter().position(|byte| *byte == b'\\' || *byte == quote) {
        value.extend_from_slice(&rest[..special]);
        let next = rest.get(special + 1).copied();
        if rest[special] == quote {
            value.push(quote);
        } else {
            match next {
                Some(escaped) => decode_escape(escaped, value),
                None => value.push(b'\\'),
            }
        }
        rest = rest.get(special + 2..).unwrap_or(&[]);
    }
    value.extend_from_slice(rest);
}

fn decode_escape(escaped: u8, value: &mut Vec<u8>) {
    match escaped {
        b'0' => value.push(0),
        b'b' => value.push(8),
        b'n' => value.push(b'\n'),
        b'r' => value.push(b'\r'),
        b't' => value.push(b'\t'),
        b'Z' => value.push(26),
        // LIKE interprets `\%` and `\_` itself, so the backslash stays in the value.
        b'%' | b'_' => value.extend_from_slice(&[b'\\', escaped]),
        other => value.push(other),
    }
}

/// The value of decimal digits, or `None` if it needs more than 64 bits or a byte is not a digit.
pub fn decode_integer(digits: &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// The bytes that hexadecimal digits denote, or `None` if a byte is not such a digit. An odd number of digits
/// is padded with a leading zero.
pub fn decode_hexadecimal(digits: &[u8]) -> Option<Vec<u8>> {
    let mut value = Vec::with_capacity(digits.len().div_ceil(2));
    let mut pending = if digits.len() % 2 == 1 { Some(0u8) } else { None };
    for digit in digits {
        let digit = char::from(*digit).to_digit(16)? as u8;
        match pending.take() {
            Some(high) => value.push(high << 4 | digit),
            None => pending = Some(digit),
        }
    }
    Some(value)
}

/// The bytes that binary digits denote, or `None` if a byte is neither 0 nor 1. The first byte is padded with
/// leading zeros.
pub fn decode_bits(digits: &[u8]) -> Option<Vec<u8>> {
    let mut value = Vec::with_capacity(digits.len().div_ceil(8));
    let mut byte = 0u8;
    for (index, digit) in digits.iter().enumerate() {
        byte = match digit {
            b'0' => byte << 1,
            b'1' => byte << 1 | 1,
            _ => return None,
        };
        if (digits.len() - index - 1).is_multiple_of(8) {
            value.push(byte);
            byte = 0;
        }
    }
    Some(value)
}

/// Whether a LIKE pattern begins with a literal character, not with a wildcard. False for an empty pattern,
/// and for one that begins with a backslash.
pub fn starts_with_literal(string: &[u8]) -> bool {
    !matches!(string.first(), None | Some(b'%' | b'_' | b'\\'))
}

/// The value of a DATE, TIME or TIMESTAMP literal; `None` for a text that is none. A DATE has no time, and a
/// TIMESTAMP has one, perhaps with an offset from UTC: its value is the time in this zone.
pub fn read_temporal(kind: TemporalKind, text: &[u8], zone: Zone) -> Option<Temporal> {
    let rules = DateRules { zone: Some(zone), ..DateRules::FUZZY };
    let (read, wanted) = match kind {
        TemporalKind::Date => (parse_date_time(text, DateRules::FUZZY), model::TemporalKind::Date),
        TemporalKind::Time => (parse_time(text, None), model::TemporalKind::Time),
        TemporalKind::Timestamp => (parse_date_time(text, rules), model::TemporalKind::DateTime),
    };
    let digits = if wanted == model::TemporalKind::Date { 0 } else { read.digits };
    let parts = read.parts.filter(|_| read.defects.is_none() && read.kind == wanted)?;
    Some(Temporal::from_parts(wanted, digits, &parts))
}
