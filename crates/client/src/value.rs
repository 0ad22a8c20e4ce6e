//! Conversion between Rust's types and SQL values.

use junctor_model::temporal::TemporalKind;
use junctor_model::value::{Decimal, Value, ValueRef};

use super::error::{Error, Result};

/// A type that can be a statement's parameter. See [`params!`](crate::params).
pub trait ToValue {
    /// The SQL value, borrowed from `self`.
    fn to_value(&self) -> ValueRef<'_>;
}

macro_rules! to_value {
    ($($type:ty: $value:ident => $made:expr;)*) => {
        $(impl ToValue for $type {
            fn to_value(&self) -> ValueRef<'_> {
                let $value = self;
                $made
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
    f32: value => ValueRef::Double(f64::from(*value));
    f64: value => ValueRef::Double(*value);
    Decimal: value => ValueRef::Decimal(*value);
    str: value => ValueRef::Bytes(value.as_bytes());
    String: value => ValueRef::Bytes(value.as_bytes());
    [u8]: value => ValueRef::Bytes(value);
    Vec<u8>: value => ValueRef::Bytes(value);
    Value: value => value.as_ref();
    ValueRef<'_>: value => *value;
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> ValueRef<'_> {
        (**self).to_value()
    }
}

impl<const N: usize> ToValue for [u8; N] {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Bytes(self)
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> ValueRef<'_> {
        self.as_ref().map_or(ValueRef::Null, ToValue::to_value)
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

#[cold]
fn mismatch(value: ValueRef<'_>, wanted: &str) -> Error {
    let what = match value {
        ValueRef::Null => "NULL",
        ValueRef::Int(_) | ValueRef::UInt(_) => "an integer beyond its range",
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
                    _ => None,
                };
                integer.ok_or_else(|| mismatch(value, stringify!($type)))
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
