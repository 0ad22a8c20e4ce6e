//! Values as the parser, the evaluator, rows and the wire protocols exchange them.

use std::cmp::Ordering;

use crate::decimal::{self, Wide};
use crate::json::Json;
use crate::temporal::Temporal;
use crate::types::Members;

/// A value that owns its bytes. Whether the bytes are text, and in which collation, follows from the static
/// type.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A binary floating-point number.
    Double(f64),
    /// An exact decimal number.
    Decimal(Decimal),
    /// Text (UTF-8) or binary bytes.
    Bytes(Vec<u8>),
    /// A FLOAT. As a number it is the double of the same value; its text has fewer digits.
    Float(f32),
    /// A year, a day, a time or both.
    Temporal(Temporal),
    /// A value of BIT.
    Bit(Bit),
    /// A value of ENUM or SET.
    Choice(Choice),
    /// A JSON document in the binary form of [`crate::json`].
    Json(Box<[u8]>),
}

/// A value that borrows its bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRef<'a> {
    /// SQL NULL.
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A binary floating-point number.
    Double(f64),
    /// An exact decimal number.
    Decimal(Decimal),
    /// Text (UTF-8) or binary bytes.
    Bytes(&'a [u8]),
    /// A FLOAT. As a number it is the double of the same value; its text has fewer digits.
    Float(f32),
    /// A year, a day, a time or both.
    Temporal(Temporal),
    /// A value of BIT.
    Bit(Bit),
    /// A value of ENUM or SET.
    Choice(ChoiceRef<'a>),
    /// A JSON document in the binary form of [`crate::json`].
    Json(&'a [u8]),
}

/// A value of BIT: a number where a number is wanted, otherwise its bytes from the highest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bit {
    /// The bits as a number.
    pub number: u64,
    /// The number of bytes of the text, 1 to 8.
    pub bytes: u8,
}

impl Bit {
    /// Appends the bytes, from the highest on.
    pub fn append_text(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.number.to_be_bytes()[8 - usize::from(self.bytes)..]);
    }
}

/// A value of ENUM or SET: its number where a number is wanted, otherwise its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The position of the member from 1, or the bits of the members; 0 for the empty string.
    pub number: u64,
    /// The member, or the members with commas between them.
    pub text: Box<[u8]>,
}

/// A borrowed [`Choice`].
#[derive(Clone, Copy, Debug)]
pub struct ChoiceRef<'a> {
    /// The position of the member from 1, or the bits of the members; 0 for the empty string.
    pub number: u64,
    /// Where the text comes from.
    pub text: ChoiceText<'a>,
}

/// The text of a [`ChoiceRef`].
#[derive(Clone, Copy, Debug)]
pub enum ChoiceText<'a> {
    /// The text itself.
    Text(&'a [u8]),
    /// The members of the SET that the bits name.
    Members(&'a Members),
}

impl ChoiceRef<'_> {
    /// Appends the member, or the members with commas between them.
    pub fn append_text(self, out: &mut Vec<u8>) {
        match self.text {
            ChoiceText::Text(text) => out.extend_from_slice(text),
            ChoiceText::Members(members) => members.append_set(self.number, out),
        }
    }

    /// An owned copy.
    pub fn to_choice(self) -> Choice {
        let mut text = Vec::new();
        self.append_text(&mut text);
        Choice { number: self.number, text: text.into() }
    }
}

impl PartialEq for ChoiceRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number && self.to_choice().text == other.to_choice().text
    }
}

/// An exact decimal number with up to 30 digits after the point.
#[derive(Clone, Copy, Debug)]
pub enum Decimal {
    /// `mantissa / 10^scale`. The mantissa has at most 38 digits.
    Narrow {
        /// All digits, with the sign.
        mantissa: i128,
        /// Number of digits after the point, 0 to 30.
        scale: u8,
    },
    /// A number with more digits. It is never one that the narrow form has.
    Wide(Wide),
}

/// Every integer up to this one is exactly a FLOAT.
pub const FLOAT_INTEGER_MAX: u64 = 1 << 24;
/// Every integer up to this one is exactly a double.
pub const DOUBLE_INTEGER_MAX: u64 = 1 << 53;
/// Ten to every power up to this one is exactly a double.
const EXACT_SCALE_MAX: u8 = 22;

impl Default for Decimal {
    fn default() -> Decimal {
        Decimal::Narrow { mantissa: 0, scale: 0 }
    }
}

impl Decimal {
    /// Number of digits after the point.
    #[inline]
    pub fn scale(self) -> u8 {
        match self {
            Decimal::Narrow { scale, .. } => scale,
            Decimal::Wide(wide) => wide.scale(),
        }
    }

    /// Whether the number is less than 0.
    #[inline]
    pub fn is_negative(self) -> bool {
        match self {
            Decimal::Narrow { mantissa, .. } => mantissa < 0,
            Decimal::Wide(wide) => wide.is_negative(),
        }
    }

    /// Whether the number is 0.
    #[inline]
    pub fn is_zero(self) -> bool {
        matches!(self, Decimal::Narrow { mantissa: 0, .. })
    }

    /// The number times 10^scale, unless it has more than 38 digits.
    #[inline]
    pub fn narrow_mantissa(self) -> Option<i128> {
        match self {
            Decimal::Narrow { mantissa, .. } => Some(mantissa),
            Decimal::Wide(_) => None,
        }
    }

    /// The number times 10^scale, or the nearest limit of `i128`.
    pub fn clamped_mantissa(self) -> i128 {
        match self {
            Decimal::Narrow { mantissa, .. } => mantissa,
            Decimal::Wide(wide) if wide.is_negative() => i128::MIN,
            Decimal::Wide(_) => i128::MAX,
        }
    }

    /// The nearest double.
    pub fn to_double(self) -> f64 {
        if let Decimal::Narrow { mantissa, scale } = self
            && mantissa.unsigned_abs() <= u128::from(DOUBLE_INTEGER_MAX)
            && scale <= EXACT_SCALE_MAX
        {
            // Both operands are exact, so the quotient is the nearest double.
            return mantissa as f64 / 10u128.pow(u32::from(scale)) as f64;
        }
        let mut text = Vec::with_capacity(96);
        self.append_text(&mut text);
        // The text is a number, so it is read.
        std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0)
    }

    /// Appends the number as MySQL prints it, with exactly `scale` digits after the point.
    pub fn append_text(self, out: &mut Vec<u8>) {
        use std::io::Write;
        let (mantissa, scale) = match self {
            Decimal::Narrow { mantissa, scale } => (mantissa, scale),
            Decimal::Wide(wide) => return wide.append_text(out),
        };
        let factor = 10u128.pow(u32::from(scale));
        let magnitude = mantissa.unsigned_abs();
        if mantissa < 0 {
            out.push(b'-');
        }
        // Writing to a Vec cannot fail.
        let _ = write!(out, "{}", magnitude / factor);
        if scale > 0 {
            let _ = write!(out, ".{:0width$}", magnitude % factor, width = usize::from(scale));
        }
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    #[inline]
    fn cmp(&self, other: &Decimal) -> Ordering {
        decimal::compare(*self, *other)
    }
}

impl Value {
    /// A borrowed view of this value.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Int(value) => ValueRef::Int(*value),
            Value::UInt(value) => ValueRef::UInt(*value),
            Value::Double(value) => ValueRef::Double(*value),
            Value::Decimal(value) => ValueRef::Decimal(*value),
            Value::Bytes(bytes) => ValueRef::Bytes(bytes),
            Value::Float(value) => ValueRef::Float(*value),
            Value::Temporal(value) => ValueRef::Temporal(*value),
            Value::Bit(value) => ValueRef::Bit(*value),
            Value::Choice(Choice { number, text }) => {
                ValueRef::Choice(ChoiceRef { number: *number, text: ChoiceText::Text(text) })
            }
            Value::Json(document) => ValueRef::Json(document),
        }
    }

    /// Whether this is SQL NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }
}

impl<'v> ValueRef<'v> {
    /// The number to which this value of an AUTO_INCREMENT column raises the counter; 0 for one that does
    /// not. As in MySQL, these are NULL, negative values, and those beyond the integers that the type has
    /// exactly.
    pub fn counted_number(self) -> u64 {
        match self {
            ValueRef::Int(number) => u64::try_from(number).unwrap_or(0),
            ValueRef::UInt(number) => number,
            ValueRef::Double(number) if number <= DOUBLE_INTEGER_MAX as f64 => number as u64,
            ValueRef::Float(number) if number <= FLOAT_INTEGER_MAX as f32 => number as u64,
            _ => 0,
        }
    }

    /// The number as a double, rounded if necessary; NULL counts as 0. Error: the bytes of a text.
    #[inline]
    pub fn to_double(self) -> Result<f64, &'v [u8]> {
        match self {
            ValueRef::Double(value) => Ok(value),
            ValueRef::Int(value) => Ok(value as f64),
            ValueRef::UInt(value) => Ok(value as f64),
            ValueRef::Decimal(value) => Ok(value.to_double()),
            ValueRef::Null => Ok(0.0),
            ValueRef::Bytes(text) => Err(text),
            ValueRef::Float(value) => Ok(value.into()),
            ValueRef::Temporal(value) => Ok(value.to_double()),
            ValueRef::Bit(value) => Ok(value.number as f64),
            ValueRef::Choice(value) => Ok(value.number as f64),
            ValueRef::Json(document) => match Json::of(document).as_scalar() {
                Some(scalar) => scalar.to_double(),
                None => Ok(0.0),
            },
        }
    }

    /// The number that a value with a text and a number is where a number is wanted: an integer, a decimal or
    /// a double. Other values are returned unchanged.
    #[inline]
    pub fn as_number(self) -> ValueRef<'v> {
        match self {
            ValueRef::Float(value) => ValueRef::Double(value.into()),
            ValueRef::Temporal(value) => value.as_number(),
            ValueRef::Bit(value) => ValueRef::UInt(value.number),
            ValueRef::Choice(value) => ValueRef::UInt(value.number),
            // A string stays text, which the caller reads as a number.
            ValueRef::Json(document) => match Json::of(document).as_scalar() {
                Some(scalar) => scalar.as_number(),
                None => ValueRef::Int(0),
            },
            plain => plain,
        }
    }

    /// An owned copy.
    pub fn to_value(self) -> Value {
        match self {
            ValueRef::Null => Value::Null,
            ValueRef::Int(value) => Value::Int(value),
            ValueRef::UInt(value) => Value::UInt(value),
            ValueRef::Double(value) => Value::Double(value),
            ValueRef::Decimal(value) => Value::Decimal(value),
            ValueRef::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
            ValueRef::Float(value) => Value::Float(value),
            ValueRef::Temporal(value) => Value::Temporal(value),
            ValueRef::Bit(value) => Value::Bit(value),
            ValueRef::Choice(value) => Value::Choice(value.to_choice()),
            ValueRef::Json(document) => Value::Json(document.into()),
        }
    }

    /// Whether this is SQL NULL.
    pub fn is_null(self) -> bool {
        matches!(self, ValueRef::Null)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_wide_form_of_decimals_makes_no_value_larger() {
        assert_eq!((size_of::<Decimal>(), size_of::<Value>(), size_of::<ValueRef<'_>>()), (48, 48, 48));
    }

    #[test]
    fn a_number_beyond_the_exact_integers_raises_no_counter() {
        let values = [ValueRef::Float(16_777_216.0), ValueRef::Float(16_777_218.0), ValueRef::Float(-1.0)];
        assert_eq!(values.map(ValueRef::counted_number), [1 << 24, 0, 0]);
        let values = [ValueRef::Double(9_007_199_254_740_992.0), ValueRef::Double(1e16), ValueRef::Double(f64::NAN)];
        assert_eq!(values.map(ValueRef::counted_number), [1 << 53, 0, 0]);
        let values = [ValueRef::Int(-1), ValueRef::Int(i64::MAX), ValueRef::UInt(u64::MAX), ValueRef::Null];
        assert_eq!(values.map(ValueRef::counted_number), [0, i64::MAX as u64, u64::MAX, 0]);
    }

    proptest! {
        #[test]
        fn the_double_of_a_decimal_is_the_nearest_one(digits in any::<i128>(), bits in 0u32..128, scale in 0u8..=30) {
            let value = decimal::new(digits >> bits, scale);
            let mut text = Vec::new();
            value.append_text(&mut text);
            let expected: f64 = String::from_utf8(text).unwrap().parse().unwrap();
            prop_assert_eq!(value.to_double(), expected, "{:?}", value);
        }
    }
}
