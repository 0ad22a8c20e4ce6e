//! FLOAT and DOUBLE, also with a fixed number of digits after the point.

use super::{DataType, Family, Form, Packed, TypeDescriptor, WireType};
use crate::error::Result;
use crate::key::KeyPart;
use crate::number::parse_double;
use crate::row::SlotKind;
use crate::row_encoding::{DECIMALS_NOT_FIXED, wire_type};
use crate::scratch::{Scratch, to_text};
use crate::store::StoreTarget;
use crate::stored_type::StoredType;
use crate::value::{Value, ValueRef};

/// One of the two types.
pub(super) struct Floating {
    is_double: bool,
}

pub(super) static DOUBLE: Floating = Floating { is_double: true };
pub(super) static FLOAT: Floating = Floating { is_double: false };

impl DataType {
    /// DOUBLE.
    pub const fn double() -> DataType {
        DataType::plain(Family::Double)
    }

    /// FLOAT.
    pub const fn float() -> DataType {
        DataType::plain(Family::Float)
    }

    /// FLOAT or DOUBLE with digits before and after the point, of which `fixed.1` are after it, and UNSIGNED.
    pub const fn floating(is_double: bool, fixed: Option<(u8, u8)>, unsigned: bool) -> DataType {
        let mut data_type = DataType::plain(if is_double { Family::Double } else { Family::Float });
        data_type.unsigned = unsigned;
        if let Some((digits, scale)) = fixed {
            data_type.bytes = digits;
            data_type.scale = scale;
        }
        data_type
    }
}

/// The digits, and those after the point, if they are fixed.
fn fixed_digits(data_type: &DataType) -> Option<(u8, u8)> {
    (data_type.bytes > 0).then_some((data_type.bytes, data_type.scale))
}

impl TypeDescriptor for Floating {
    fn name(&self, _: &DataType) -> &'static str {
        if self.is_double { "double" } else { "float" }
    }

    fn append_attributes(&self, data_type: &DataType, _: Option<u16>, out: &mut String) {
        if let Some((digits, scale)) = fixed_digits(data_type) {
            out.push_str(&format!("({digits},{scale})"));
        }
        data_type.append_number_attributes(out);
    }

    fn form(&self, _: &DataType) -> Form {
        if self.is_double { Form::Double } else { Form::Float }
    }

    fn slot(&self, _: &DataType) -> SlotKind {
        if self.is_double { SlotKind::Double } else { SlotKind::Packed }
    }

    fn packed(&self, _: &DataType) -> Option<Packed> {
        (!self.is_double).then_some(Packed::Float)
    }

    fn packed_key(&self, _: &DataType) -> KeyPart {
        KeyPart::Double
    }

    fn key_bytes(&self, _: &DataType) -> Option<usize> {
        Some(if self.is_double { 8 } else { 4 })
    }

    fn wire(&self, data_type: &DataType) -> WireType {
        let code = if self.is_double { wire_type::DOUBLE } else { wire_type::FLOAT };
        let flags = data_type.number_flags();
        match fixed_digits(data_type) {
            Some((digits, decimals)) => WireType { code, length: digits.into(), decimals, flags },
            None => {
                WireType { code, length: if self.is_double { 22 } else { 12 }, decimals: DECIMALS_NOT_FIXED, flags }
            }
        }
    }

    fn digits(&self, data_type: &DataType) -> (Option<u64>, Option<u64>) {
        match fixed_digits(data_type) {
            Some((digits, scale)) => (Some(digits.into()), Some(scale.into())),
            None => (Some(if self.is_double { 22 } else { 12 }), None),
        }
    }

    fn implicit_default(&self, _: &DataType) -> Value {
        if self.is_double { Value::Double(0.0) } else { Value::Float(0.0) }
    }

    fn store<'r>(
        &self,
        data_type: &DataType,
        value: ValueRef<'r>,
        target: &StoreTarget<'_>,
        scratch: &'r Scratch,
    ) -> Result<ValueRef<'r>> {
        let given = number_of(value, target, scratch)?;
        if data_type.unsigned && given < 0.0 {
            // Even if it is rounded to 0.
            target.out_of_range(scratch)?;
            return Ok(if self.is_double { ValueRef::Double(0.0) } else { ValueRef::Float(0.0) });
        }
        let mut number = given;
        let mut most = if self.is_double { f64::MAX } else { f32::MAX.into() };
        if let Some((digits, scale)) = fixed_digits(data_type) {
            let unit = 10f64.powi(scale.into());
            most = most.min(10f64.powi(i32::from(digits) - i32::from(scale)) - 1.0 / unit);
            let scaled = number * unit;
            if scaled.is_finite() {
                // With fixed digits, zero has no sign.
                number = scaled.round_ties_even() / unit + 0.0;
            }
        }
        let least = if data_type.unsigned { 0.0 } else { -most };
        // `clamp` keeps a NaN, which has no order in a key.
        let stored = if number.is_nan() { 0.0 } else { number.clamp(least, most) };
        if stored != number {
            target.out_of_range(scratch)?;
        }
        Ok(if self.is_double { ValueRef::Double(stored) } else { ValueRef::Float(stored as f32) })
    }

    fn stored(&self, data_type: &DataType) -> StoredType {
        let (unsigned, zerofill, digits) = (data_type.unsigned, data_type.zerofill, fixed_digits(data_type));
        match self.is_double {
            true => StoredType::Double { unsigned, zerofill, digits },
            false => StoredType::Float { unsigned, zerofill, digits },
        }
    }
}

/// The value as a double. Error or warning 1265 for a text that is only partly a number, 1264 for a number
/// out of range.
fn number_of(value: ValueRef<'_>, target: &StoreTarget<'_>, scratch: &Scratch) -> Result<f64> {
    // MySQL stores the text of a document.
    if let ValueRef::Json(_) = value {
        return number_of(ValueRef::Bytes(to_text(value, scratch)?), target, scratch);
    }
    match value.as_number().to_double() {
        Ok(number) => Ok(number),
        Err(text) => {
            let parsed = parse_double(text);
            if parsed.is_truncated {
                target.truncated(scratch)?;
            } else if parsed.is_out_of_range {
                target.out_of_range(scratch)?;
            }
            Ok(parsed.value)
        }
    }
}
