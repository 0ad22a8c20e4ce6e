//! DEFAULT clauses: converts literals to values of the column's type.

use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::error::{Error, Result};
use junctor_model::schema::{ColumnDefinition, ColumnType};
use junctor_model::value::Value;

use super::message;
use crate::mysql_catalog::variable::ConnectionCharacterSet;
use crate::parse::expression::{Expression, FunctionCall, Literal};

/// The default of a column whose type and nullability are known: the written value, otherwise NULL for a
/// nullable column.
///
/// # Errors
/// 1067 for a value outside the column's type, 1101 for any value of TEXT or BLOB, 1235 for an expression.
pub(super) fn default_of(column: &ColumnDefinition, written: Option<&Expression>) -> Result<Option<Value>> {
    let name = &column.name;
    let Some(expression) = written else {
        return Ok(column.nullable.then_some(Value::Null));
    };
    let literal = match expression {
        Expression::Literal(literal) => literal,
        Expression::Function(call) if is_clock(call) => return Err(message::invalid_default(name)),
        _ => return Err(Error::not_supported("expression as default")),
    };
    if column.auto_increment {
        return Err(message::invalid_default(name));
    }
    if *literal == Literal::Null {
        return if column.nullable { Ok(Some(Value::Null)) } else { Err(message::invalid_default(name)) };
    }
    let value = match column.column_type {
        ColumnType::Text { .. } => return Err(message::blob_default(name)),
        ColumnType::Integer { bytes, unsigned } => integer(literal, bytes, unsigned),
        ColumnType::Double => double(literal).map(Value::Double),
        ColumnType::Char { length, collation } => {
            let text = text(literal)?;
            char_value(text, usize::from(length), collation)
        }
        ColumnType::VarChar { length, collation } => {
            let text = text(literal)?;
            fit(text, usize::from(length), collation).map(Value::Bytes)
        }
    };
    value.map(Some).ok_or_else(|| message::invalid_default(name))
}

/// Whether the function is CURRENT_TIMESTAMP or a synonym, which only a temporal column may have as default.
fn is_clock(call: &FunctionCall) -> bool {
    ["CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"].iter().any(|name| call.name.eq_ignore_ascii_case(name))
}

fn integer(literal: &Literal, bytes: u8, unsigned: bool) -> Option<Value> {
    let value = match literal {
        Literal::Integer(value) => *value,
        Literal::Boolean(value) => i128::from(*value),
        Literal::Hexadecimal(digits) | Literal::Bits(digits) => i128::from(big_endian(digits)?),
        Literal::Decimal(_) | Literal::Double(_) | Literal::String(_) => {
            let text = number_text(literal)?;
            match text.parse::<i128>() {
                Ok(value) => value,
                Err(_) => rounded(&text)?,
            }
        }
        Literal::Null | Literal::Temporal { .. } => return None,
    };
    let bits = u32::from(bytes) * 8;
    if unsigned {
        return (0..1i128 << bits).contains(&value).then_some(Value::UInt(value as u64));
    }
    let half = 1i128 << (bits - 1);
    (-half..half).contains(&value).then_some(Value::Int(value as i64))
}

/// Number of digits of the largest value of BIGINT UNSIGNED.
const INTEGER_DIGITS_MAX: i64 = 20;

/// The integer nearest to a decimal number, halves away from zero, as MySQL rounds for an integer column.
/// `None` if the text is not a number or has more digits than any integer type.
fn rounded(text: &str) -> Option<i128> {
    text.parse::<f64>().ok()?;
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            // An exponent beyond 32 bits moves the point out of any text, so only its sign matters.
            let beyond = if exponent.starts_with('-') { i32::MIN } else { i32::MAX };
            (mantissa, i64::from(exponent.parse().unwrap_or(beyond)))
        }
        None => (text, 0),
    };
    let is_negative = mantissa.starts_with('-');
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes()).filter(u8::is_ascii_digit);
    let point = whole.bytes().filter(u8::is_ascii_digit).count() as i64 + exponent;
    let leading_zeros = digits().take_while(|digit| *digit == b'0').count() as i64;
    if digits().all(|digit| digit == b'0') {
        return Some(0);
    }
    if point - leading_zeros > INTEGER_DIGITS_MAX {
        return None;
    }
    let digit_at = |at: i64| usize::try_from(at).ok().and_then(|at| digits().nth(at)).map_or(0, |digit| digit - b'0');
    let first = leading_zeros.min(point.max(0));
    let kept = (first..point).fold(0i128, |value, at| value * 10 + i128::from(digit_at(at)));
    let value = kept + i128::from(digit_at(point) >= 5);
    Some(if is_negative { -value } else { value })
}

fn double(literal: &Literal) -> Option<f64> {
    let value = match literal {
        Literal::Integer(value) => *value as f64,
        Literal::Boolean(value) => f64::from(u8::from(*value)),
        Literal::Double(value) => *value,
        Literal::Decimal(_) | Literal::String(_) => number_text(literal)?.parse().ok()?,
        Literal::Hexadecimal(digits) | Literal::Bits(digits) => big_endian(digits)? as f64,
        Literal::Null | Literal::Temporal { .. } => return None,
    };
    value.is_finite().then_some(value)
}

/// The text of a number, or of a string that can be one. The filter rejects words such as `inf`, which Rust's
/// parser would accept.
fn number_text(literal: &Literal) -> Option<String> {
    let text = match literal {
        Literal::Decimal(text) => text.clone(),
        Literal::Double(value) => value.to_string(),
        Literal::String(text) => std::str::from_utf8(&text.bytes).ok()?.trim().to_owned(),
        _ => return None,
    };
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    is_number.then_some(text)
}

fn big_endian(bytes: &[u8]) -> Option<u64> {
    let significant = bytes.iter().position(|byte| *byte != 0).map_or(&[][..], |start| &bytes[start..]);
    (significant.len() <= 8).then(|| significant.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// The literal as bytes of a string. Errors: 1115 and 1235 for the character set of an introducer.
fn text(literal: &Literal) -> Result<Vec<u8>> {
    Ok(match literal {
        Literal::Integer(value) => value.to_string().into_bytes(),
        Literal::Boolean(value) => vec![b'0' + u8::from(*value)],
        Literal::Decimal(text) => text.clone().into_bytes(),
        Literal::Double(value) => value.to_string().into_bytes(),
        Literal::String(text) => {
            if let Some(set) = &text.character_set {
                ConnectionCharacterSet::from_name(set)?;
            }
            text.bytes.clone()
        }
        Literal::Hexadecimal(bytes) | Literal::Bits(bytes) => bytes.clone(),
        Literal::Temporal { text, .. } => text.clone(),
        Literal::Null => Vec::new(),
    })
}

/// The value as stored: CHAR without trailing spaces, BINARY padded with zero bytes to its length.
fn char_value(text: Vec<u8>, length: usize, collation: CollationId) -> Option<Value> {
    let mut text = fit(text, length, collation)?;
    match collation.character_set() {
        CharacterSet::Binary => text.resize(length, 0),
        CharacterSet::Utf8mb4 => {
            let kept = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
            text.truncate(kept);
        }
    }
    Some(Value::Bytes(text))
}

/// The text if it fits in `length` characters. A character string loses trailing spaces beyond the length;
/// binary bytes are never cut.
fn fit(mut text: Vec<u8>, length: usize, collation: CollationId) -> Option<Vec<u8>> {
    let set = collation.character_set();
    if !set.is_valid(&text) {
        return None;
    }
    let kept = set.prefix(&text, length).len();
    let is_spaces = text[kept..].iter().all(|byte| *byte == b' ');
    if kept < text.len() && (set == CharacterSet::Binary || !is_spaces) {
        return None;
    }
    text.truncate(kept);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn decimal_defaults_round_without_loss_of_digits() {
        let cases = [
            ("18446744073709551614.6", Some(18_446_744_073_709_551_615)),
            ("10000000000000000001.4", Some(10_000_000_000_000_000_001)),
            ("9007199254740993.4", Some(9_007_199_254_740_993)),
            ("0.49999999999999999999", Some(0)),
            ("-2.5", Some(-3)),
            ("1.25e1", Some(13)),
            ("125e-1", Some(13)),
            (".5", Some(1)),
            ("4.e0", Some(4)),
            ("00000000000000000000000001.2", Some(1)),
            ("0e99999999999", Some(0)),
            ("5e-99999999999", Some(0)),
            ("1e20", None),
            ("1e99999999999", None),
            ("1.2.3", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(rounded(text), expected, "{text}");
        }
    }
}
