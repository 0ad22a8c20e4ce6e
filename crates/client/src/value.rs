//! Conversion between Rust's types and SQL values.

use junctor_model::row_encoding::append_text;
use junctor_model::temporal::{Temporal, TemporalKind};
use junctor_model::value::{Decimal, Value, ValueRef};

use super::error::{Error, Result};

/// A type that can be a statement's parameter. See [`params!`](crate::params).
pub trait ToValue {
    /// The SQL value. A value that SQL has not, as a number that is not finite or a day before year 0, is
    /// refused with [`ErrorKind::Value`](crate::ErrorKind::Value) before the statement is sent.
    fn to_value(&self) -> Parameter<'_>;
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter<'a> {
    /// Part of the given value.
    Borrowed(ValueRef<'a>),
    /// Made from the given value, as a text is from a document.
    Owned(Value),
}

impl Parameter<'_> {
    /// The value.
    #[inline]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Parameter::Borrowed(value) => *value,
            Parameter::Owned(value) => value.as_ref(),
        }
    }

    /// The value with its own bytes.
    pub fn into_owned(self) -> Value {
        match self {
            Parameter::Borrowed(value) => value.to_value(),
            Parameter::Owned(value) => value,
        }
    }
}

/// Refuses values that the protocol cannot carry.
///
/// # Errors
/// The value is infinite or not a number, or a day or time beyond the range of its type.
#[inline]
pub(crate) fn check(value: ValueRef<'_>) -> Result<()> {
    match value {
        ValueRef::Double(number) if !number.is_finite() => Err(not_finite()),
        ValueRef::Float(number) if !number.is_finite() => Err(not_finite()),
        ValueRef::Temporal(value) if !value.is_valid() => {
            Err(Error::value("A day or time is out of the range of its type".into()))
        }
        _ => Ok(()),
    }
}

#[cold]
fn not_finite() -> Error {
    Error::value("A value is NaN or infinite".into())
}

macro_rules! to_value {
    ($($type:ty: $value:ident => $made:expr;)*) => {
        $(impl ToValue for $type {
            #[inline]
            fn to_value(&self) -> Parameter<'_> {
                let $value = self;
                Parameter::Borrowed($made)
            }
        })*
    };
}

to_value! {
    bool: value => ValueRef::Int(i64::from(*value));
    i8: value => ValueRef::Int(i64::from(*value));
    i16: value => ValueRef::Int(i64::from(*value));
    i32: value => ValueRef::Int(i64::from(*value));
    i64: value => ValueRef::Int(*value);
    u8: value => ValueRef::Int(i64::from(*value));
    u16: value => ValueRef::Int(i64::from(*value));
    u32: value => ValueRef::Int(i64::from(*value));
    u64: value => ValueRef::UInt(*value);
    f32: value => ValueRef::Float(*value);
    f64: value => ValueRef::Double(*value);
    Decimal: value => ValueRef::Decimal(*value);
    str: value => ValueRef::Bytes(value.as_bytes());
    String: value => ValueRef::Bytes(value.as_bytes());
    [u8]: value => ValueRef::Bytes(value);
    Vec<u8>: value => ValueRef::Bytes(value);
    Value: value => value.as_ref();
    ValueRef<'_>: value => *value;
    Temporal: value => ValueRef::Temporal(*value);
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> Parameter<'_> {
        (**self).to_value()
    }
}

impl<const N: usize> ToValue for [u8; N] {
    fn to_value(&self) -> Parameter<'_> {
        Parameter::Borrowed(ValueRef::Bytes(self))
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> Parameter<'_> {
        self.as_ref().map_or(Parameter::Borrowed(ValueRef::Null), ToValue::to_value)
    }
}

/// The bytes of a VECTOR.
impl ToValue for [f32] {
    fn to_value(&self) -> Parameter<'_> {
        match self.iter().all(|entry| entry.is_finite()) {
            true => Parameter::Owned(Value::Bytes(self.iter().flat_map(|entry| entry.to_le_bytes()).collect())),
            false => Parameter::Borrowed(ValueRef::Double(f64::NAN)),
        }
    }
}

/// The bytes of a VECTOR.
impl ToValue for Vec<f32> {
    fn to_value(&self) -> Parameter<'_> {
        self.as_slice().to_value()
    }
}

/// Makes a list of parameters from expressions of any types that implement [`ToValue`](crate::ToValue).
///
/// ```
/// use junctor_client::params;
///
/// let name = String::from("cup");
/// assert_eq!(params![1, name, 2.5, None::<i64>].len(), 4);
/// assert_eq!(params![].len(), 0);
/// ```
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        (&[$(&$value as &dyn $crate::ToValue),*] as &[&dyn $crate::ToValue])
    };
}

/// A type that a value of a row can be read as.
pub trait FromValue<'a>: Sized {
    /// Converts a value.
    ///
    /// # Errors
    /// [`ErrorKind::Value`](crate::ErrorKind::Value) for a number out of the type's range, for a value of
    /// another type, and for NULL unless the type is an `Option`.
    fn from_value(value: ValueRef<'a>) -> Result<Self>;
}

/// The error for a value of the wrong type.
#[cold]
pub(crate) fn mismatch(value: ValueRef<'_>, wanted: &str) -> Error {
    let what = match value {
        ValueRef::Null => "NULL",
        ValueRef::Int(_) | ValueRef::UInt(_) => "an integer",
        ValueRef::Double(_) => "a DOUBLE",
        ValueRef::Decimal(_) => "a DECIMAL",
        ValueRef::Bytes(_) | ValueRef::Choice(_) => "a string",
        ValueRef::Float(_) => "a FLOAT",
        ValueRef::Temporal(_) => "a day or time",
        ValueRef::Bit(_) => "a BIT",
        ValueRef::Json(_) => "a JSON document",
    };
    Error::value(format!("The value is {what}, not {wanted}"))
}

/// The error for a value that a type of Rust does not have.
#[cold]
pub(crate) fn out_of_range(value: ValueRef<'_>, wanted: &str) -> Error {
    let mut text = Vec::new();
    append_text(value, &mut text);
    Error::value(format!("The value {} is out of the range of {wanted}", String::from_utf8_lossy(&text)))
}

macro_rules! from_integer {
    ($($type:ty),*) => {
        $(impl<'a> FromValue<'a> for $type {
            #[inline]
            fn from_value(value: ValueRef<'a>) -> Result<$type> {
                let integer = match value {
                    ValueRef::Int(value) => <$type>::try_from(value).ok(),
                    ValueRef::UInt(value) => <$type>::try_from(value).ok(),
                    ValueRef::Decimal(Decimal::Narrow { mantissa, scale: 0 }) => <$type>::try_from(mantissa).ok(),
                    ValueRef::Temporal(year) if year.kind == TemporalKind::Year => <$type>::try_from(year.packed).ok(),
                    ValueRef::Bit(value) => <$type>::try_from(value.number).ok(),
                    _ => return Err(mismatch(value, stringify!($type))),
                };
                integer.ok_or_else(|| out_of_range(value, stringify!($type)))
            }
        })*
    };
}

from_integer!(i8, i16, i32, i64, u8, u16, u32, u64);

impl<'a> FromValue<'a> for bool {
    fn from_value(value: ValueRef<'a>) -> Result<bool> {
        i64::from_value(value).map(|value| value != 0)
    }
}

impl<'a> FromValue<'a> for f64 {
    fn from_value(value: ValueRef<'a>) -> Result<f64> {
        Ok(match value {
            ValueRef::Double(value) => value,
            ValueRef::Int(value) => value as f64,
            ValueRef::UInt(value) => value as f64,
            ValueRef::Decimal(value) => value.to_double(),
            ValueRef::Float(value) => value.into(),
            _ => return Err(mismatch(value, "a number")),
        })
    }
}

impl<'a> FromValue<'a> for f32 {
    /// A FLOAT, or another number that the type has exactly.
    fn from_value(value: ValueRef<'a>) -> Result<f32> {
        if let ValueRef::Float(value) = value {
            return Ok(value);
        }
        let number = f64::from_value(value)?;
        if f64::from(number as f32) == number { Ok(number as f32) } else { Err(out_of_range(value, "f32")) }
    }
}

impl<'a> FromValue<'a> for Vec<f32> {
    /// The entries of a VECTOR.
    fn from_value(value: ValueRef<'a>) -> Result<Vec<f32>> {
        match value {
            ValueRef::Bytes(bytes) if let (entries, []) = bytes.as_chunks() => {
                Ok(entries.iter().map(|entry| f32::from_le_bytes(*entry)).collect())
            }
            _ => Err(mismatch(value, "a VECTOR")),
        }
    }
}

impl<'a> FromValue<'a> for Temporal {
    fn from_value(value: ValueRef<'a>) -> Result<Temporal> {
        match value {
            ValueRef::Temporal(value) => Ok(value),
            _ => Err(mismatch(value, "a day or time")),
        }
    }
}

impl<'a> FromValue<'a> for Decimal {
    fn from_value(value: ValueRef<'a>) -> Result<Decimal> {
        Ok(match value {
            ValueRef::Decimal(value) => value,
            ValueRef::Int(value) => Decimal::Narrow { mantissa: value.into(), scale: 0 },
            ValueRef::UInt(value) => Decimal::Narrow { mantissa: value.into(), scale: 0 },
            _ => return Err(mismatch(value, "an exact number")),
        })
    }
}

impl<'a> FromValue<'a> for &'a [u8] {
    fn from_value(value: ValueRef<'a>) -> Result<&'a [u8]> {
        match value {
            ValueRef::Bytes(bytes) => Ok(bytes),
            _ => Err(mismatch(value, "a string")),
        }
    }
}

impl<'a> FromValue<'a> for Vec<u8> {
    fn from_value(value: ValueRef<'a>) -> Result<Vec<u8>> {
        if let ValueRef::Bit(bits) = value {
            let mut bytes = Vec::new();
            bits.append_text(&mut bytes);
            return Ok(bytes);
        }
        <&[u8]>::from_value(value).map(<[u8]>::to_vec)
    }
}

impl<'a> FromValue<'a> for &'a str {
    fn from_value(value: ValueRef<'a>) -> Result<&'a str> {
        let bytes = <&[u8]>::from_value(value)?;
        std::str::from_utf8(bytes).map_err(|_| Error::value("The value is not UTF-8".into()))
    }
}

impl<'a> FromValue<'a> for String {
    fn from_value(value: ValueRef<'a>) -> Result<String> {
        match value {
            ValueRef::Temporal(value) => {
                let mut text = Vec::new();
                value.append_text(&mut text);
                Ok(String::from_utf8_lossy(&text).into_owned())
            }
            value => <&str>::from_value(value).map(str::to_owned),
        }
    }
}

impl<'a> FromValue<'a> for Value {
    fn from_value(value: ValueRef<'a>) -> Result<Value> {
        Ok(value.to_value())
    }
}

impl<'a> FromValue<'a> for ValueRef<'a> {
    fn from_value(value: ValueRef<'a>) -> Result<ValueRef<'a>> {
        Ok(value)
    }
}

impl<'a, T: FromValue<'a>> FromValue<'a> for Option<T> {
    fn from_value(value: ValueRef<'a>) -> Result<Option<T>> {
        if value.is_null() { Ok(None) } else { T::from_value(value).map(Some) }
    }
}
